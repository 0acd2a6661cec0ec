//! Suggestions for misspelt words.
//!
//! Words are compared in their plain form (letters and digits in lower case) by the number of letters that
//! must be inserted, deleted, replaced or swapped with their neighbour. Longer words may differ more: by one
//! letter from four letters on, by two from seven.

/// The number of characters of a word that are compared; the rest is ignored.
const COMPARED: usize = 64;

/// Returns the known word that is nearest to a misspelt one, or `None` if no word is near enough.
///
/// ```
/// use lexiform_syntax::suggest::nearest;
/// assert_eq!(nearest("objct", ["array", "object"]), Some("object"));
/// assert_eq!(nearest("dateTime", ["date", "date-time"]), Some("date-time"));
/// assert_eq!(nearest("tuple", ["array", "object"]), None);
/// ```
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let word = plain(word);
    let near = known.into_iter().filter_map(|known| {
        let distance = near_distance(&word, &plain(known))?;
        Some((distance, known))
    });
    near.min().map(|(_, known)| known)
}

/// Returns `true` if one plain word equals another, or is near enough to be a misspelling of it.
pub fn is_near(word: &str, known: &str) -> bool {
    near_distance(word, known).is_some()
}

fn near_distance(word: &str, known: &str) -> Option<usize> {
    if word == known {
        return Some(0);
    }
    let allowed = match known.len() {
        0..4 => 0,
        4..7 => 1,
        _ => 2,
    };
    if word.len() <= allowed + 2 || word.len().abs_diff(known.len()) > allowed {
        return None;
    }
    Some(distance(word, known)).filter(|distance| *distance <= allowed)
}

/// Returns the number of letters that must be inserted, deleted, replaced, or swapped with their neighbour.
pub fn distance(word: &str, known: &str) -> usize {
    strsim::osa_distance(word, known)
}

/// Returns the [`distance`] of two plain words if it is at most one, in a single pass over their letters.
pub(crate) fn slip(word: &str, known: &str) -> Option<usize> {
    let (word, known) = (word.as_bytes(), known.as_bytes());
    if word.len().abs_diff(known.len()) > 1 {
        return None;
    }
    let alike = word
        .iter()
        .zip(known)
        .take_while(|(one, other)| one == other)
        .count();
    let (word, known) = (&word[alike..], &known[alike..]);
    let ends = word.iter().rev().zip(known.iter().rev());
    let alike = ends.take_while(|(one, other)| one == other).count();
    match (&word[..word.len() - alike], &known[..known.len() - alike]) {
        ([], []) => Some(0),
        ([_], []) | ([], [_]) | ([_], [_]) => Some(1),
        ([one, other], [first, second]) if one == second && other == first => Some(1),
        _ => None,
    }
}

/// Returns a word without case and punctuation: `responseFormat` and `Response-Format` become
/// `responseformat`.
pub fn plain(word: &str) -> String {
    let kept = word.chars().take(COMPARED).filter(char::is_ascii_alphanumeric);
    kept.map(|character| character.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn a_slip_is_a_distance_of_at_most_one(word in "[ab]{0,6}", known in "[ab]{0,6}") {
            let distance = Some(distance(&word, &known)).filter(|distance| *distance <= 1);
            assert_eq!(slip(&word, &known), distance, "{word} {known}");
        }
    }

    #[test]
    fn the_nearest_word_wins_and_short_words_have_no_neighbours() {
        assert_eq!(nearest("intger", ["number", "integer"]), Some("integer"));
        assert_eq!(nearest("boolaen", ["boolean"]), Some("boolean"));
        assert_eq!(nearest("any", ["and", "all"]), None);
        assert_eq!(nearest("", ["object"]), None);
        assert_eq!(nearest(&"object".repeat(1_000_000), ["object"]), None);
    }
}
