//! The edits between two texts, as they are reported.

use lexiform_automata::error::Place;

/// A place where a text was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Edit {
    /// The offset of the edit in the given text, in bytes.
    pub offset: usize,
    /// The offset as a line and column.
    pub place: Place,
    /// The text that was removed.
    pub removed: String,
    /// The text that was inserted.
    pub inserted: String,
}

/// One step from a given text to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Keeps a character.
    Keep,
    /// Deletes a character.
    Delete,
    /// Replaces a character by this one.
    Substitute(char),
    /// Inserts this character.
    Insert(char),
}

/// Returns the text that steps lead to, and the edits among the steps.
pub(super) fn apply(text: &str, steps: &[Step]) -> (String, Vec<Edit>) {
    let (mut written, mut edits) = (String::with_capacity(text.len()), Vec::new());
    let mut rest = text.char_indices();
    let mut open: Option<(usize, String, String)> = None;
    for &step in steps {
        let offset = text.len() - rest.as_str().len();
        let old = match step {
            Step::Insert(_) => None,
            _ => rest.next().map(|(_, c)| c),
        };
        let new = match step {
            Step::Keep => old,
            Step::Delete => None,
            Step::Substitute(c) | Step::Insert(c) => Some(c),
        };
        written.extend(new);
        if step == Step::Keep {
            edits.extend(open.take());
            continue;
        }
        let (_, removed, inserted) = open.get_or_insert_with(|| (offset, String::new(), String::new()));
        removed.extend(old);
        inserted.extend(new);
    }
    edits.extend(open);
    let edit = |(offset, removed, inserted)| Edit {
        offset,
        place: Place::in_text(text, offset),
        removed,
        inserted,
    };
    (written, edits.into_iter().map(edit).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_that_touch_are_one_and_places_are_those_of_the_given_text() {
        let steps = [
            Step::Insert('<'),
            Step::Keep,
            Step::Keep,
            Step::Delete,
            Step::Substitute('x'),
            Step::Insert('y'),
            Step::Keep,
            Step::Insert('>'),
        ];
        let (written, edits) = apply("a\nbéc", &steps);
        assert_eq!(written, "<a\nxyc>");
        let told = edits.iter().map(|edit| {
            (
                edit.offset,
                edit.place.to_string(),
                &edit.removed[..],
                &edit.inserted[..],
            )
        });
        let told: Vec<_> = told.collect();
        assert_eq!(
            told,
            [
                (0, "line 1, column 1".to_owned(), "", "<"),
                (2, "line 2, column 1".to_owned(), "bé", "xy"),
                (6, "line 2, column 4".to_owned(), "", ">"),
            ]
        );
    }
}
