//! The place where a text or token of the request stops a sample.
//!
//! ```text
//!   stop ","   grammar "a" ("," "a")*      a , a      stops after the first "a", which is a whole text
//!   stop ","   grammar "[" "a" ",a]"       [ a , a ]  goes on: "[a" is not whole
//! ```
//!
//! Under a grammar, a sample stops only where the text that is kept is a whole text of the grammar. Elsewhere
//! the bytes of a stop are bytes of the answer, and the search goes on behind their first byte. The stop that
//! counts is the first whose last byte is written; of several with the same last byte, it is the longest that
//! may stop the sample there. So the place depends on the text and not on its tokens.

use lexiform_engine::{Grammar, State};

use crate::wire::generation::Stop;

/// A token, and the bytes of it that belong to the answer.
#[derive(Clone, Copy, Debug)]
pub struct Written<'a> {
    /// The token.
    pub token: u32,
    /// The bytes of the token in the vocabulary.
    pub spelled: &'a [u8],
    /// The bytes that it writes: all of them, those at the end if the others belong to the prompt, or none.
    pub bytes: &'a [u8],
}

/// A search for the first place at which a sample stops.
#[derive(Debug, Default)]
pub struct StopSearch {
    /// The texts, the longest first.
    texts: Vec<String>,
    keeps_text: bool,
    tokens: Vec<u32>,
    /// The bytes that may begin a stop.
    held: Vec<u8>,
    reading: Option<Reading>,
    is_over: bool,
}

impl StopSearch {
    /// Creates a search that has read nothing.
    pub fn new(stop: &Stop) -> Self {
        let mut texts = stop.texts.clone();
        texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
        Self {
            texts,
            keeps_text: stop.keeps_text,
            tokens: stop.tokens.clone(),
            ..Self::default()
        }
    }

    /// Stops the sample only where its text is a whole text of this grammar.
    pub fn judge(&mut self, grammar: &Grammar) {
        let is_needed = !self.texts.is_empty() || !self.tokens.is_empty();
        self.reading = is_needed.then(|| Reading::new(grammar.clone()));
    }

    /// Returns `true` if the sample obeys a grammar, so that it also ends without a stop.
    pub fn is_judged(&self) -> bool {
        self.reading.is_some()
    }

    /// Returns `true` if the sample has stopped.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Takes a token and returns the bytes that are now certain to be in the answer.
    pub fn push(&mut self, written: Written<'_>) -> Vec<u8> {
        let is_stop = self.tokens.contains(&written.token);
        if is_stop && self.reading.as_ref().is_some_and(Reading::is_whole_now) {
            self.is_over = true;
            return std::mem::take(&mut self.held);
        }
        let before = self.held.len();
        self.held.extend_from_slice(written.bytes);
        if let Some(reading) = &mut self.reading {
            reading.push(written, before);
        }
        if let Some(end) = (before + 1..=self.held.len()).find_map(|end| self.stopped_at(end)) {
            self.is_over = true;
            self.held.truncate(end);
            return std::mem::take(&mut self.held);
        }
        let held = self.held.as_slice();
        let texts = self.texts.iter();
        let keep = texts.map(|text| overlap(held, text.as_bytes())).max();
        let rest = self.held.split_off(self.held.len() - keep.unwrap_or(0));
        let certain = std::mem::replace(&mut self.held, rest);
        if let Some(reading) = &mut self.reading {
            reading.forget(certain.len());
        }
        certain
    }

    /// Returns the bytes that were held back, which belong to the answer if it ends here.
    pub fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    /// Returns where the answer ends if a stop whose last byte is before this place stops the sample.
    fn stopped_at(&self, end: usize) -> Option<usize> {
        let found = self
            .texts
            .iter()
            .filter(|text| self.held[..end].ends_with(text.as_bytes()));
        let kept = found.map(|text| match self.keeps_text {
            true => end,
            false => end - text.len(),
        });
        let mut whole =
            kept.filter(|&kept| self.reading.as_ref().is_none_or(|reading| reading.is_whole(kept)));
        whole.next()
    }
}

/// The states of a grammar at the tokens that may be part of a stop.
#[derive(Debug)]
struct Reading {
    grammar: Grammar,
    tokens: Vec<Read>,
    /// The states before each of these tokens, and the state after the last; none from where the grammar
    /// could not follow the text.
    states: Vec<State>,
}

/// A token in the bytes that are held back.
#[derive(Debug)]
struct Read {
    spelled: Vec<u8>,
    /// The place of its last byte in the bytes that are held back, plus one.
    end: usize,
    /// The number of bytes that it writes, of which the first ones may have been released.
    length: usize,
}

impl Reading {
    fn new(grammar: Grammar) -> Self {
        let states = vec![grammar.start()];
        Self {
            grammar,
            tokens: Vec::new(),
            states,
        }
    }

    fn push(&mut self, written: Written<'_>, before: usize) {
        self.tokens.push(Read {
            spelled: written.spelled.to_vec(),
            end: before + written.bytes.len(),
            length: written.bytes.len(),
        });
        if self.states.len() == self.tokens.len() {
            let now = self.states.last();
            let next = now.and_then(|&now| self.grammar.step(now, written.token));
            self.states.extend(next);
            self.grammar.compact(&mut self.states);
        }
    }

    /// Forgets this number of bytes at the beginning, and the tokens that wrote no others.
    fn forget(&mut self, released: usize) {
        let gone = self.tokens.iter().take_while(|read| read.end <= released).count();
        self.tokens.drain(..gone);
        self.states.drain(..gone.min(self.states.len()));
        for read in &mut self.tokens {
            read.end -= released;
        }
    }

    /// Returns `true` if the text after all tokens is whole.
    fn is_whole_now(&self) -> bool {
        let now = self.states.get(self.tokens.len());
        now.is_some_and(|&now| self.grammar.is_accepting(now))
    }

    /// Returns `true` if the text up to this place in the bytes that are held back is whole. Tokens that
    /// write nothing at this place may belong to the text or not.
    fn is_whole(&self, place: usize) -> bool {
        let state = |(read, &before): (&Read, &State)| {
            let left = read.end.checked_sub(place)?;
            match read.length {
                0 if left == 0 => Some(before),
                length if (1..=length).contains(&left) => {
                    let bytes = &read.spelled[..read.spelled.len().saturating_sub(left)];
                    self.grammar.step_bytes(before, bytes)
                }
                _ => None,
            }
        };
        let mut states = self.tokens.iter().zip(&self.states).filter_map(state);
        let end = self.tokens.last().map_or(0, |read| read.end);
        states.any(|state| self.grammar.is_accepting(state)) || (place == end && self.is_whole_now())
    }
}

/// Returns how many bytes at the end of `text` are a proper prefix of `stop`.
pub fn overlap(text: &[u8], stop: &[u8]) -> usize {
    let longest = text.len().min(stop.len().saturating_sub(1));
    (1..=longest)
        .rev()
        .find(|&length| text.ends_with(&stop[..length]))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lexiform::vocab::{TokenKind, Vocabulary};
    use lexiform::{Options, Source, compile};
    use std::sync::Arc;

    const TOKENS: [&str; 9] = ["<end>", "a", "b", ",", "a,", ",a", "ab,", "b,a", ",b"];

    fn grammar(pattern: &str) -> Grammar {
        let tokens = TOKENS.map(|text| (TokenKind::Text, text));
        let vocabulary = Arc::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary"));
        let compiled = compile(Source::Regex(pattern), &vocabulary, &Options::default());
        compiled.expect("a pattern").0
    }

    fn stop(texts: &[&str], keeps_text: bool) -> Stop {
        Stop {
            texts: texts.iter().map(|&text| text.to_owned()).collect(),
            keeps_text,
            tokens: Vec::new(),
        }
    }

    /// Returns the text that is released for these tokens, of which `hidden` bytes belong to the prompt, and
    /// whether they stop.
    fn searched(mut search: StopSearch, tokens: &[u32], mut hidden: usize) -> (String, bool) {
        let mut text = Vec::new();
        for &token in tokens {
            let spelled = TOKENS[token as usize].as_bytes();
            let bytes = &spelled[hidden.min(spelled.len())..];
            hidden -= spelled.len() - bytes.len();
            text.extend(search.push(Written {
                token,
                spelled,
                bytes,
            }));
            if search.is_over() {
                return (String::from_utf8(text).expect("letters"), true);
            }
        }
        text.extend(search.finish());
        (String::from_utf8(text).expect("letters"), false)
    }

    /// Returns where a text stops by the definition: at the first end of a stop, and among the stops that end
    /// there at the longest, before which (or after which, if it is kept) the text is whole.
    fn defined(text: &str, stop: &Stop, is_whole: &dyn Fn(&str) -> bool) -> (String, bool) {
        for end in 1..=text.len() {
            let mut found: Vec<&String> = stop.texts.iter().collect();
            found.retain(|stop| text[..end].ends_with(stop.as_str()));
            found.sort_by_key(|stop| std::cmp::Reverse(stop.len()));
            for stopped in found {
                let kept = &text[..if stop.keeps_text { end } else { end - stopped.len() }];
                if is_whole(kept) {
                    return (kept.to_owned(), true);
                }
            }
        }
        (text.to_owned(), false)
    }

    /// Returns all sequences of up to this many tokens that write something.
    fn sequences(most: usize) -> Vec<Vec<u32>> {
        let mut all: Vec<Vec<u32>> = vec![Vec::new()];
        let mut from = 0;
        for _ in 0..most {
            let until = all.len();
            for place in from..until {
                for token in 1..TOKENS.len() as u32 {
                    let mut longer = all[place].clone();
                    longer.push(token);
                    all.push(longer);
                }
            }
            from = until;
        }
        all
    }

    /// The oracle reads whole texts. All token sequences of a small vocabulary are tried, so the answer is
    /// shown to depend on the text alone, and the law of stopped answers to be the image of the law of whole
    /// ones under this cut.
    #[test]
    fn a_sample_stops_where_its_text_is_whole() {
        let all = sequences(4);
        for (pattern, is_whole) in [
            ("[ab,]*", (|_: &str| true) as fn(&str) -> bool),
            ("[ab,]*b", |text| text.ends_with('b')),
            ("(a,?|b)*", |text| {
                !text.starts_with(',') && !text.contains(",,") && !text.contains("b,")
            }),
        ] {
            let grammar = grammar(pattern);
            for texts in [
                &[","][..],
                &[",a"],
                &["a", "b,"],
                &["b,a", ",", "a"],
                &["ab,a"],
                &["zz"],
            ] {
                for keeps_text in [false, true] {
                    let stop = stop(texts, keeps_text);
                    for tokens in &all {
                        let read = |state: State, &token: &u32| grammar.step(state, token);
                        if tokens.iter().try_fold(grammar.start(), read).is_none() {
                            continue;
                        }
                        let text: String = tokens.iter().map(|&token| TOKENS[token as usize]).collect();
                        let mut search = StopSearch::new(&stop);
                        search.judge(&grammar);
                        let found = searched(search, tokens, 0);
                        assert_eq!(
                            found,
                            defined(&text, &stop, &is_whole),
                            "{pattern} {stop:?} {tokens:?}"
                        );
                    }
                }
            }
        }
    }

    /// Without a grammar, a sample stops at the first stop.
    #[test]
    fn free_text_stops_anywhere() {
        for tokens in sequences(4) {
            let text: String = tokens.iter().map(|&token| TOKENS[token as usize]).collect();
            for texts in [&[","][..], &["b,a", "a"], &["ab,a", ",,"]] {
                let stop = stop(texts, false);
                let found = searched(StopSearch::new(&stop), &tokens, 0);
                assert_eq!(found, defined(&text, &stop, &|_| true), "{texts:?} {tokens:?}");
            }
        }
    }

    /// The grammar of a healed prompt begins with the bytes removed from it, which are no part of the answer.
    #[test]
    fn the_end_of_a_healed_prompt_stops_nothing() {
        let grammar = grammar("ab,?(a|ab)");
        let ended = |tokens: &[u32]| {
            let mut search = StopSearch::new(&stop(&["b", ","], false));
            search.judge(&grammar);
            searched(search, tokens, 2)
        };
        // `ab` is the prompt; `,` and `ab` follow, and only before the last `b` is the text whole.
        assert_eq!(ended(&[6, 1, 2]), (",a".to_owned(), true));
        assert_eq!(ended(&[1, 2, 1, 2]), ("a".to_owned(), true));
        assert_eq!(ended(&[1, 7]), (",a".to_owned(), false));
    }

    #[test]
    fn a_stop_token_stops_where_the_text_is_whole() {
        let grammar = grammar("(ab,)*a?");
        let ended = |tokens: &[u32]| {
            let stop = Stop {
                tokens: vec![1],
                ..stop(&["z"], true)
            };
            let mut search = StopSearch::new(&stop);
            search.judge(&grammar);
            searched(search, tokens, 0)
        };
        assert_eq!(ended(&[1, 2, 3]), (String::new(), true));
        assert_eq!(ended(&[6, 6]), ("ab,ab,".to_owned(), false));
        assert_eq!(ended(&[6, 1]), ("ab,".to_owned(), true));
    }
}
