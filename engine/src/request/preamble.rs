//! Free text before an answer, between two marks, and the most tokens of it.
//!
//! ```text
//!   answer ::= ( open text close )? rest         the prompt may have written `open`
//! ```
//!
//! A limit on the tokens of the text is a budget of its own: after `k` of its tokens, the masks allow only
//! what can be completed with `max_tokens + rest − k` more, where `rest` is the shortest completion from the
//! beginning of the text. So at the bound nothing is left but a shortest way to the closing mark and through
//! the rest of the answer, and which tokens are allowed still follows from the text alone: drafts, forks and
//! rewinds need no record.

use crate::{Grammar, State};
use lexiform::error::Exhausted;
use lexiform::vocab::Vocabulary;

/// A free text that may come before an answer, between two marks. The names of special tokens in a mark
/// denote those tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preamble {
    /// The mark that begins the text. Its first byte begins no JSON text.
    pub open: &'static str,
    /// The marks that end the text, which cannot contain any of them.
    pub close: &'static [&'static str],
    /// `true` if the prompt has already begun the text; otherwise it may also be left out.
    pub is_open: bool,
}

/// The most tokens of a preamble, its closing mark not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreambleLimit {
    /// The preamble.
    pub preamble: Preamble,
    /// The most tokens between its marks.
    pub max_tokens: usize,
    /// The fewest tokens that complete an answer from the beginning of the text, the end included.
    rest: usize,
}

impl PreambleLimit {
    /// Returns the limit for the answers of a grammar that may begin with this preamble.
    ///
    /// # Errors
    /// Finding the shortest completion would cost more than the grammar's limits allow.
    pub fn new(grammar: &Grammar, preamble: Preamble, max_tokens: usize) -> Result<Self, Exhausted> {
        let start = match preamble.is_open {
            true => Some(grammar.start()),
            false => after_mark(grammar, preamble.open)?,
        };
        // Where no answer has the preamble, nothing is limited.
        let rest = start.map(|state| grammar.try_min_completion(state)).transpose()?;
        Ok(PreambleLimit {
            preamble,
            max_tokens,
            rest: rest.flatten().unwrap_or(usize::MAX),
        })
    }
}

/// Returns the state after a mark at the beginning of an answer, or `None` if no answer begins with it.
fn after_mark(grammar: &Grammar, mark: &str) -> Result<Option<State>, Exhausted> {
    let vocabulary = grammar.vocabulary();
    let (mut state, mut left) = (grammar.start(), mark.as_bytes());
    while let Some(byte) = left.get(..1) {
        let named = grammar.specials().iter().copied();
        let begins = |&token: &u32| left.starts_with(vocabulary.bytes(token));
        let special = named
            .filter(begins)
            .max_by_key(|&token| vocabulary.bytes(token).len());
        let (next, read) = match special {
            Some(token) => (grammar.try_step(state, token)?, vocabulary.bytes(token).len()),
            None => (grammar.try_step_bytes(state, byte)?, 1),
        };
        let Some(next) = next else { return Ok(None) };
        (state, left) = (next, &left[read..]);
    }
    Ok(Some(state))
}

/// A place in an answer that may begin with a preamble.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PreambleReader {
    /// So many bytes of the opening mark were read, and nothing else.
    Opening(usize),
    /// In the text, which ends with these bytes; as many as the longest closing mark has.
    Inside(Vec<u8>),
    /// After the preamble, or in an answer without one.
    Over,
}

impl PreambleReader {
    /// Returns the beginning of an answer.
    pub(crate) fn new(preamble: &Preamble) -> Self {
        match preamble.is_open {
            true => PreambleReader::Inside(Vec::new()),
            false => PreambleReader::Opening(0),
        }
    }

    /// Reads a byte of the answer. Returns the length of the closing mark that it completes, if it does.
    pub(crate) fn read(&mut self, preamble: &Preamble, byte: u8) -> Option<usize> {
        match self {
            PreambleReader::Opening(read) => {
                let open = preamble.open.as_bytes();
                *self = match open.get(*read) == Some(&byte) {
                    true if *read + 1 == open.len() => PreambleReader::Inside(Vec::new()),
                    true => PreambleReader::Opening(*read + 1),
                    false => PreambleReader::Over,
                };
            }
            PreambleReader::Inside(text) => {
                text.push(byte);
                let mut marks = preamble.close.iter().map(|close| close.as_bytes());
                if let Some(mark) = marks.find(|mark| text.ends_with(mark)) {
                    *self = PreambleReader::Over;
                    return Some(mark.len());
                }
                let most = preamble.close.iter().map(|close| close.len()).max();
                if text.len() >= 2 * most.unwrap_or(0).max(1) {
                    text.drain(..text.len() - most.unwrap_or(0));
                }
            }
            PreambleReader::Over => {}
        }
        None
    }

    /// Returns `true` in the text.
    pub(crate) fn is_inside(&self) -> bool {
        matches!(self, PreambleReader::Inside(_))
    }
}

/// Counts the tokens of the preamble of an answer: those that write some of its text, and not only a mark.
#[derive(Clone, Debug)]
pub struct PreambleTokens {
    preamble: Preamble,
    reader: PreambleReader,
    /// The bytes of the text before each of its tokens.
    before: Vec<usize>,
    bytes: usize,
    /// The number of tokens, once the preamble has ended.
    ended: Option<usize>,
}

impl PreambleTokens {
    /// Returns the count at the beginning of an answer.
    pub fn new(preamble: Preamble) -> Self {
        PreambleTokens {
            reader: PreambleReader::new(&preamble),
            preamble,
            before: Vec::new(),
            bytes: 0,
            ended: None,
        }
    }

    /// Reads a token of the answer; special tokens write their names.
    pub fn read(&mut self, token: &[u8]) {
        if self.reader == PreambleReader::Over {
            return;
        }
        let mut is_counted = false;
        for &byte in token {
            if self.reader.is_inside() {
                if !is_counted {
                    self.before.push(self.bytes);
                }
                is_counted = true;
                self.bytes += 1;
            }
            if let Some(mark) = self.reader.read(&self.preamble, byte) {
                let text = self.bytes - mark;
                self.ended = Some(self.before.iter().filter(|&&before| before < text).count());
                self.before = Vec::new();
            }
        }
    }

    /// Returns the number of tokens so far.
    pub fn count(&self) -> usize {
        self.ended.unwrap_or(self.before.len())
    }
}

/// The tokens that are left for the preamble at a place in an answer.
#[derive(Clone, Debug)]
pub(crate) struct PreambleBudget {
    limit: PreambleLimit,
    reader: PreambleReader,
    /// The number of tokens of the text so far.
    tokens: usize,
}

impl PreambleBudget {
    /// Returns the budget at the beginning of an answer.
    pub(crate) fn new(limit: PreambleLimit) -> Self {
        PreambleBudget {
            reader: PreambleReader::new(&limit.preamble),
            limit,
            tokens: 0,
        }
    }

    /// Reads a token of the answer.
    pub(crate) fn read(&mut self, token: u32, vocabulary: &Vocabulary) {
        self.tokens += usize::from(self.reader.is_inside());
        for &byte in vocabulary.bytes(token) {
            self.reader.read(&self.limit.preamble, byte);
        }
    }

    /// Returns how many tokens may complete the answer from here, after these more tokens, if a preamble
    /// goes on there.
    pub(crate) fn left(&self, ahead: &[u32], vocabulary: &Vocabulary) -> Option<usize> {
        if self.reader == PreambleReader::Over {
            return None;
        }
        let mut there = self.clone();
        ahead.iter().for_each(|&token| there.read(token, vocabulary));
        let all = self.limit.max_tokens.saturating_add(self.limit.rest);
        there.reader.is_inside().then(|| all.saturating_sub(there.tokens))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKS: Preamble = Preamble {
        open: "<|open|>think<|sep|>",
        close: &["<|close|>think<|sep|>", "<call>"],
        is_open: false,
    };

    /// Marks the places at which the preamble goes on.
    fn inside(preamble: Preamble, text: &str) -> String {
        let mut reader = PreambleReader::new(&preamble);
        let mark = |byte: u8| {
            let is_inside = reader.is_inside();
            reader.read(&preamble, byte);
            if is_inside { '^' } else { '.' }
        };
        text.bytes().map(mark).collect()
    }

    #[test]
    fn a_preamble_lasts_from_its_mark_to_the_first_that_ends_it() {
        let open = MARKS.open;
        for close in MARKS.close {
            let text = format!("{open}<|close|><|close|>thin<cal{close}{open}a");
            let within = "<|close|><|close|>thin<cal".len() + close.len();
            let expected = [
                ".".repeat(open.len()),
                "^".repeat(within),
                ".".repeat(open.len() + 1),
            ];
            assert_eq!(inside(MARKS, &text), expected.concat());
            let begun = Preamble {
                is_open: true,
                ..MARKS
            };
            assert_eq!(inside(begun, &text[open.len()..]), expected[1..].concat());
        }
        let mut tokens = PreambleTokens::new(MARKS);
        let written = [MARKS.open, "so", " it", " is<ca", "ll", ">", "a", "b"];
        let counts = written.map(|token| {
            tokens.read(token.as_bytes());
            tokens.count()
        });
        assert_eq!(
            counts,
            [0, 1, 2, 3, 4, 3, 3, 3],
            "a token that only writes a mark does not count"
        );
        assert!(!inside(MARKS, " <|open|>think<|sep|>a").contains('^'));
        assert!(!inside(MARKS, "<|open|>thin<|open|>think<|sep|>a").contains('^'));
    }
}
