//! Words that end only where no longer word would begin with them.
//!
//! A lexer takes the longest match: `ab` is one name and not two, and `inx` is not `in` and a name. So after
//! a word, some bytes must not follow, those with which it would be a word of the lexer again:
//!
//! ```text
//!   words    in                 the states are pairs of states; where a word ends, the bytes that lead the
//!   lexer    [a-z]+      ─►     second to the end of a word are blocked: in │ not before [a-z]
//! ```
//!
//! A character of several bytes is blocked by its first byte, if all characters that begin with that byte
//! are. Where the lexer would need more than one character to find a longer word, as in `1.5` after `1`,
//! nothing is blocked. Nor is it where all bytes that may follow every word would be blocked, so that every
//! word can be followed by something.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};

use super::byte_set::ByteSet;
use super::error::TerminalError;
use super::graph::DEAD;
use super::language_id::{LanguageId, language_ids};
use super::minimise::Dfa;
use super::table::Table;
use crate::limits::Limits;

/// The state of the lexer in which no longer word is possible.
const NONE: u32 = u32::MAX;

/// A state of both automata: that of the words, and that of the lexer.
type Pair = (u32, u32);

impl Table {
    /// Returns the table of the same words, which end only before bytes with which they are no words of
    /// another table. If a word becomes longer by all of the gaps, it ends before all bytes.
    pub(super) fn ending_longest(
        self,
        longest: &Table,
        gaps: &[u8],
        limits: &Limits,
    ) -> Result<Table, TerminalError> {
        let (classes, bytes) = joint_classes(&self, longest);
        let mut pairs: Vec<Pair> = vec![(0, 0)];
        let mut known: HashMap<Pair, u32> = HashMap::new();
        known.insert((0, 0), 0);
        let mut completing: HashMap<u32, ByteSet> = HashMap::new();
        let (mut next, mut accepting, mut blocked) = (Vec::new(), Vec::new(), Vec::new());
        let mut at = 0;
        while let Some(&(word, longer)) = pairs.get(at) {
            at += 1;
            check_size(pairs.len(), bytes.len(), limits)?;
            for &byte in &bytes {
                let packed = self.after(word, byte);
                if packed == DEAD {
                    next.push(DEAD);
                    continue;
                }
                let pair = (packed >> 1, longest.state_after(longer, byte));
                let new = pairs.len() as u32;
                let number = *known.entry(pair).or_insert(new);
                if number == new {
                    pairs.push(pair);
                }
                next.push(number << 1 | packed & 1);
            }
            let ends = self.accepting[word as usize];
            accepting.push(ends);
            blocked.push(match ends {
                false => ByteSet::default(),
                true => *completing.entry(longer).or_insert_with(|| {
                    let bytes = longest.completing(longer);
                    let is_blocking = gaps.iter().any(|&gap| !bytes.contains(gap));
                    if is_blocking { bytes } else { ByteSet::default() }
                }),
            });
        }
        if blocked.iter().all(ByteSet::is_empty) {
            return Ok(self);
        }
        Ok(Table {
            classes,
            stride: bytes.len(),
            next,
            accepting,
            prefix_code: self.prefix_code,
            units: None,
            named: Arc::default(),
            blocked: Some(blocked.into()),
        })
    }

    fn after(&self, state: u32, byte: u8) -> u32 {
        self.next[state as usize * self.stride + usize::from(self.classes[usize::from(byte)])]
    }

    fn state_after(&self, state: u32, byte: u8) -> u32 {
        match state {
            NONE => NONE,
            state => match self.after(state, byte) {
                DEAD => NONE,
                packed => packed >> 1,
            },
        }
    }

    /// Returns the bytes with which a character completes a word, whichever of the characters that begin
    /// with the byte it is.
    fn completing(&self, state: u32) -> ByteSet {
        let mut found = ByteSet::default();
        if state == NONE {
            return found;
        }
        for first in 0..=0xF4u8 {
            let more = match first {
                0..=0x7F => 0,
                0xC2..=0xDF => 1,
                0xE0..=0xEF => 2,
                0xF0..=0xF4 => 3,
                _ => continue,
            };
            let mut states = vec![self.state_after(state, first)];
            for number in 0..more {
                let seconds = if number == 0 {
                    second_bytes(first)
                } else {
                    0x80..=0xBF
                };
                let next = states
                    .iter()
                    .flat_map(|&state| seconds.clone().map(move |byte| self.state_after(state, byte)));
                states = next.collect();
                states.sort_unstable();
                states.dedup();
            }
            let completes = |&state: &u32| state != NONE && self.accepting[state as usize];
            if states.iter().all(completes) {
                found.insert_range(first, first);
            }
        }
        found
    }
}

/// Returns the second bytes of the characters that begin with a byte (Unicode 15, table 3-7).
fn second_bytes(first: u8) -> std::ops::RangeInclusive<u8> {
    match first {
        0xE0 => 0xA0..=0xBF,
        0xED => 0x80..=0x9F,
        0xF0 => 0x90..=0xBF,
        0xF4 => 0x80..=0x8F,
        _ => 0x80..=0xBF,
    }
}

fn check_size(states: usize, stride: usize, limits: &Limits) -> Result<(), TerminalError> {
    if states > limits.regular_states {
        return Err(TerminalError::Limit {
            what: "states",
            limit: limits.regular_states,
        });
    }
    if states * (stride * 4 + size_of::<ByteSet>()) > limits.regular_bytes {
        return Err(TerminalError::Limit {
            what: "bytes",
            limit: limits.regular_bytes,
        });
    }
    Ok(())
}

/// Returns the classes of bytes that both tables treat alike, and a byte of each.
fn joint_classes(one: &Table, other: &Table) -> (Box<[u8; 256]>, Vec<u8>) {
    let mut known: HashMap<(u8, u8), u8> = HashMap::new();
    let mut classes = Box::new([0; 256]);
    let mut bytes = Vec::new();
    for byte in 0..=255u8 {
        let at = usize::from(byte);
        let class = *known
            .entry((one.classes[at], other.classes[at]))
            .or_insert_with(|| {
                bytes.push(byte);
                (bytes.len() - 1) as u8
            });
        classes[at] = class;
    }
    (classes, bytes)
}

/// An automaton in which the blocked bytes of a state are part of its language, so that states with
/// different ones have different names.
pub(super) struct Marked {
    classes: Box<[u8; 256]>,
    stride: usize,
    next: Vec<u32>,
    accepting: Vec<bool>,
    /// The number of states of the terminal.
    states: usize,
}

/// A byte that no text has. It leads to a state that reads the blocked bytes.
const MARK: u8 = 0xFF;

impl Marked {
    pub(super) fn new(automaton: &Dfa<'_>, blocked: &[ByteSet]) -> Marked {
        let states = automaton.accepting.len();
        let mut sets: Vec<ByteSet> = blocked.iter().filter(|set| !set.is_empty()).copied().collect();
        sets.sort_unstable_by_key(|set| (0..=255).map(|byte| set.contains(byte)).collect::<Vec<_>>());
        sets.dedup();
        let (classes, bytes) = classes_with(automaton.classes, &sets);
        let end = (states + sets.len()) as u32;
        let mut next = Vec::new();
        for (state, blocked) in blocked.iter().enumerate() {
            let row = &automaton.next[state * automaton.stride..];
            next.extend(
                bytes
                    .iter()
                    .map(|&byte| match (byte, sets.iter().position(|set| set == blocked)) {
                        (MARK, Some(set)) => ((states + set) as u32) << 1,
                        (MARK, None) => DEAD,
                        _ => row[usize::from(automaton.classes[usize::from(byte)])],
                    }),
            );
        }
        for set in &sets {
            let reads = |&byte: &u8| if set.contains(byte) { end << 1 } else { DEAD };
            next.extend(bytes.iter().map(reads));
        }
        next.extend(bytes.iter().map(|_| DEAD));
        let mut accepting = automaton.accepting.to_vec();
        accepting.resize(end as usize, false);
        accepting.push(true);
        Marked {
            classes,
            stride: bytes.len(),
            next,
            accepting,
            states,
        }
    }

    /// Returns the names of the states of the terminal.
    pub(super) fn language_ids(&self) -> Box<[LanguageId]> {
        let ids = language_ids(&Dfa {
            classes: &self.classes,
            stride: self.stride,
            next: &self.next,
            accepting: &self.accepting,
            units: false,
        });
        ids[..self.states].into()
    }
}

/// Returns the classes of bytes that some classes and all sets treat alike, and a byte of each; the mark is
/// a class of its own.
fn classes_with(classes: &[u8; 256], sets: &[ByteSet]) -> (Box<[u8; 256]>, Vec<u8>) {
    let mut known: HashMap<(bool, u8, Vec<bool>), u8> = HashMap::new();
    let mut joint = Box::new([0; 256]);
    let mut bytes = Vec::new();
    for byte in 0..=255u8 {
        let held = sets.iter().map(|set| set.contains(byte)).collect();
        let key = (byte == MARK, classes[usize::from(byte)], held);
        joint[usize::from(byte)] = *known.entry(key).or_insert_with(|| {
            bytes.push(byte);
            (bytes.len() - 1) as u8
        });
    }
    (joint, bytes)
}

#[cfg(test)]
mod tests {
    use crate::grammar::{Expression, Longest, Part, Regular};
    use crate::language::{Terminal, TerminalError};
    use crate::limits::Limits;

    fn expression(pattern: &str) -> Expression {
        regex_syntax::parse(pattern)
            .expect("the test's pattern is well formed")
            .into()
    }

    fn regular(words: &str, longer: &str) -> Regular {
        let longest = Longest {
            longer: expression(longer),
            gaps: vec![b' '],
        };
        Regular {
            longest: Some(longest),
            ..Regular::of(vec![Part::Match(expression(words))])
        }
    }

    fn terminal(words: &str, longest: &str) -> Terminal {
        Terminal::new(&regular(words, longest), &Limits::default()).expect("it has words")
    }

    /// Returns the bytes of `of` that must not follow a word.
    fn blocked(terminal: &Terminal, word: &str, of: &str) -> String {
        let read = |cursor, byte| terminal.next(cursor, byte);
        let end = word.bytes().try_fold(terminal.start(), read).expect("a word");
        assert!(terminal.is_accepting(end), "{word}");
        let bytes = of.chars().filter(|c| {
            let mut buffer = [0; 4];
            !terminal.ends_before(end.state, c.encode_utf8(&mut buffer).as_bytes()[0])
        });
        bytes.collect()
    }

    #[test]
    fn a_word_ends_where_no_longer_one_begins_with_it() {
        let name = terminal("[a-z]+", "[a-z]+|[0-9]+(\\.[0-9]+)?");
        assert_eq!(blocked(&name, "ab", "b1. \u{e9}"), "b");
        let keyword = terminal("in", "[a-z]+|in\\+");
        assert_eq!(blocked(&keyword, "in", "x+ 1"), "x+");
        let number = terminal("[0-9]+", "[0-9]+(\\.[0-9]+)?");
        // What needs a second character is not blocked.
        assert_eq!(blocked(&number, "1", "1.a"), "1");
        let text = terminal("[a-z]+", "[a-z ]+");
        assert_eq!(blocked(&text, "a", "b "), "", "the gap makes it longer");
    }

    #[test]
    fn letters_beyond_ascii_are_blocked_where_all_with_their_first_byte_are() {
        let all = terminal("[a-z\u{80}-\u{10FFFF}]+", "[a-z\u{80}-\u{10FFFF}]+");
        assert_eq!(
            blocked(&all, "a", "a\u{e9}\u{4e2d}\u{1F600} "),
            "a\u{e9}\u{4e2d}\u{1F600}"
        );
        let some = terminal("[a-z\u{e9}]+", "[a-z\u{e9}]+");
        assert_eq!(blocked(&some, "a", "a\u{e9} "), "a");
    }

    #[test]
    fn states_with_other_blocked_bytes_have_other_names() {
        let [one, other, same] =
            ["[a-z]+", "[a-z]+|[a-z]+1", "[a-z][a-z]*"].map(|longest| terminal("[a-z]+", longest));
        let name = |terminal: &Terminal| {
            let cursor = terminal.next(terminal.start(), b'a').expect("a letter");
            terminal.language_ids(false)[cursor.state as usize]
        };
        assert_ne!(name(&one), name(&other));
        assert_eq!(name(&one), name(&same));
    }

    #[test]
    fn the_size_is_limited() {
        let both = regular("(?s).*a.{8}", "(?s).*b.{8}");
        let limits = Limits {
            regular_states: 2_000,
            ..Limits::default()
        };
        let refused = Terminal::new(&both, &limits);
        assert!(matches!(
            refused,
            Err(TerminalError::Limit { what: "states", .. })
        ));
    }
}
