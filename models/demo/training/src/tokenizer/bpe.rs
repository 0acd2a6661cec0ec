//! Byte-level byte-pair encoding: the pieces into which text is cut, learned from text.
//!
//! A name must be cut the same way in running text and between the quotes of a JSON string, or copying it
//! would ask for spelling. So a space is a piece of its own (except before small words like `of`, which saves
//! a third of the text's length), quotes and other punctuation never join a word, and digits go in pairs from
//! the left:
//!
//! ```text
//!  "Ada Lovelace is 36"   ─►  Ada · ␣ · Love · lace · ␣is · ␣ · 36
//!  {"name":"Ada Lovelace" ─►  {" · name · ":" · Ada · ␣ · Love · lace · "
//! ```

use std::collections::{BTreeSet, HashMap};

/// How text is cut before pairs are merged; the same expression goes into `tokenizer.json`, which applies it
/// by itself.
pub(crate) const SMALL_WORDS: &[&str] = &[
    "a", "about", "am", "an", "and", "are", "as", "at", "be", "by", "for", "from", "has", "have", "he",
    "her", "his", "in", "is", "it", "its", "me", "my", "not", "of", "on", "or", "our", "she", "that", "the",
    "their", "they", "this", "to", "was", "we", "will", "with", "you",
];

/// The expression that cuts text into the pieces within which pairs are merged.
pub(crate) fn expression() -> String {
    let small = SMALL_WORDS.join("|");
    format!(
        " (?:{small})(?![A-Za-z0-9_])|_?\\p{{Lu}}?\\p{{Ll}}+|_?\\p{{Lu}}+(?!\\p{{Ll}})|\\p{{L}}|\\p{{N}}{{1,2}}\
         |[^\\s\\p{{L}}\\p{{N}}_]+|_| |\\s+"
    )
}

/// The merges that training found, in the order of their finding.
#[derive(Default)]
pub(crate) struct Merges {
    /// Pairs of pieces, each a string of bytes.
    pub(crate) pairs: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Learns merges from pieces and how often each occurs, until with the `known` ones there are `count`.
pub(crate) fn learn(pieces: &HashMap<Vec<u8>, usize>, known: Merges, count: usize) -> Merges {
    let mut words: Vec<(Vec<u32>, usize)> = Vec::with_capacity(pieces.len());
    let mut sorted: Vec<_> = pieces.iter().collect();
    // A hash map has no order of its own; ties between pairs must fall the same way in every run.
    sorted.sort_unstable();
    for (piece, &times) in sorted {
        words.push((piece.iter().map(|&byte| u32::from(byte)).collect(), times));
    }
    let mut symbols: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    let mut seen: BTreeSet<Vec<u8>> = symbols.iter().cloned().collect();
    let mut pairs = known.pairs;
    if pairs.is_empty() {
        // Every pair of digits is a piece, however rare.
        let digits = b'0'..=b'9';
        pairs = digits
            .clone()
            .flat_map(|left| digits.clone().map(move |right| (vec![left], vec![right])))
            .collect();
    }
    for (left, right) in &pairs {
        let id = |bytes: &Vec<u8>| {
            symbols
                .iter()
                .position(|symbol| symbol == bytes)
                .unwrap_or_default() as u32
        };
        let (left, right) = (id(left), id(right));
        seen.insert(join(&mut words, &mut symbols, left, right));
    }
    while pairs.len() < count {
        let Some((left, right)) = commonest(&words, &symbols, &seen) else {
            break;
        };
        pairs.push((symbols[left as usize].clone(), symbols[right as usize].clone()));
        seen.insert(join(&mut words, &mut symbols, left, right));
    }
    Merges { pairs }
}

/// Makes one symbol of two, wherever they stand side by side, and gives its bytes.
fn join(words: &mut [(Vec<u32>, usize)], symbols: &mut Vec<Vec<u8>>, left: u32, right: u32) -> Vec<u8> {
    let joined = [&symbols[left as usize][..], &symbols[right as usize][..]].concat();
    symbols.push(joined.clone());
    let id = symbols.len() as u32 - 1;
    for (word, _) in words {
        merge(word, left, right, id);
    }
    joined
}

/// The pair that stands most often side by side, unless its bytes already are a symbol by another way.
fn commonest(
    words: &[(Vec<u32>, usize)],
    symbols: &[Vec<u8>],
    seen: &BTreeSet<Vec<u8>>,
) -> Option<(u32, u32)> {
    let mut counts: HashMap<(u32, u32), usize> = HashMap::new();
    for (word, times) in words {
        for pair in word.windows(2) {
            *counts.entry((pair[0], pair[1])).or_default() += times;
        }
    }
    let new = |pair: &(u32, u32)| {
        !seen.contains(&[&symbols[pair.0 as usize][..], &symbols[pair.1 as usize]].concat())
    };
    let mut ranked: Vec<((u32, u32), usize)> = counts.into_iter().collect();
    ranked.sort_unstable_by_key(|&(pair, times)| (std::cmp::Reverse(times), pair));
    ranked.into_iter().map(|(pair, _)| pair).find(new)
}

fn merge(word: &mut Vec<u32>, left: u32, right: u32, id: u32) {
    let mut write = 0;
    let mut read = 0;
    while read < word.len() {
        if read + 1 < word.len() && word[read] == left && word[read + 1] == right {
            word[write] = id;
            read += 2;
        } else {
            word[write] = word[read];
            read += 1;
        }
        write += 1;
    }
    word.truncate(write);
}

/// The character that stands for each byte in byte-level vocabularies: printable bytes for themselves, others
/// from U+0100.
pub(crate) fn byte_letters() -> [char; 256] {
    let mut letters = ['\0'; 256];
    let mut next = 0x100;
    for (byte, letter) in (0u8..=255).zip(&mut letters) {
        *letter = match byte {
            b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff => char::from(byte),
            _ => {
                next += 1;
                char::from_u32(next - 1).unwrap_or('\0')
            }
        };
    }
    letters
}

#[cfg(test)]
mod tests {
    use super::{Merges, byte_letters, learn};
    use std::collections::{BTreeSet, HashMap};

    #[test]
    fn common_pairs_are_merged_after_the_digits() {
        let pieces = HashMap::from([(b"lola".to_vec(), 5), (b"lost".to_vec(), 3), (b"36".to_vec(), 1)]);
        let merges = learn(&pieces, Merges::default(), 102);
        assert_eq!(merges.pairs[36], (b"3".to_vec(), b"6".to_vec()));
        assert_eq!(merges.pairs[100], (b"l".to_vec(), b"o".to_vec()));
        assert_eq!(merges.pairs[101], (b"l".to_vec(), b"a".to_vec()));
    }

    #[test]
    fn no_symbol_is_made_twice() {
        let pieces = HashMap::from([(b"abcabcabc".to_vec(), 2), (b"bcbcab".to_vec(), 3)]);
        let merges = learn(&pieces, Merges::default(), 140);
        let made: Vec<Vec<u8>> = merges
            .pairs
            .iter()
            .map(|(left, right)| [&left[..], right].concat())
            .collect();
        assert_eq!(made.iter().collect::<BTreeSet<_>>().len(), made.len());
    }

    #[test]
    fn each_byte_has_a_letter_of_its_own() {
        let letters = byte_letters();
        assert_eq!(letters.iter().collect::<BTreeSet<_>>().len(), 256);
        assert_eq!(
            (
                letters[b'A' as usize],
                letters[b' ' as usize],
                letters[b'\n' as usize]
            ),
            ('A', 'Ġ', 'Ċ')
        );
    }
}
