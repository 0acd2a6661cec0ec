//! States that no short text tells apart.
//!
//! The terminal mask of such a state is that of the other, but for long tokens. Where a pattern counts words or letters, each
//! count is a state of its own, and only the last of them differ in what a token of eight bytes may do.

use std::sync::{Arc, Mutex, Weak};

use super::terminal_mask::TerminalMask;
use crate::language::Terminal;

/// The states of a terminal that are walked before it is found out which are alike.
const FIRST: usize = 3;

/// How many transitions are compared in the time of one walk.
const TRANSITIONS: usize = 12_000;

/// No more states are compared with.
const MOST: usize = 64;

/// The states of a terminal that were walked as a whole.
#[derive(Debug, Default)]
pub(crate) struct Walked(Mutex<Vec<(u32, Weak<TerminalMask>)>>);

/// A state, its terminal mask, and the number of bytes for which another state goes on like it.
pub(crate) struct KEquivalent {
    pub(crate) state: u32,
    pub(crate) terminal_mask: Arc<TerminalMask>,
    pub(crate) bytes: usize,
}

/// The state that is like this one for the longest, among those that were walked.
pub(crate) fn find(walked: &Walked, terminal: &Terminal, state: u32) -> Option<KEquivalent> {
    let walked = walked.0.lock().ok()?;
    // It is done when it would have paid already.
    if walked.len() < FIRST || walked.len() * TRANSITIONS < terminal.transitions() {
        return None;
    }
    let alike = terminal.k_equivalence();
    let near = walked.iter().filter_map(|(other, terminal_mask)| {
        Some(KEquivalent {
            state: *other,
            bytes: alike.bytes(state, *other)?,
            terminal_mask: terminal_mask.upgrade()?,
        })
    });
    near.max_by_key(|near| near.bytes)
}

/// Remembers the terminal mask of a state that others may be like.
pub(crate) fn remember(walked: &Walked, state: u32, terminal_mask: &Arc<TerminalMask>) {
    let (None, Ok(mut walked)) = (&terminal_mask.base, walked.0.lock()) else {
        return;
    };
    if walked.len() == MOST {
        walked.remove(0);
    }
    walked.push((state, Arc::downgrade(terminal_mask)));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::compile::{Options, Source};
    use crate::limits::Limits;
    use crate::mask::Tables;
    use crate::pushdown::TerminalSource as _;
    use crate::vocab::{TokenKind, Vocabulary};

    fn vocabulary(texts: &[String]) -> Arc<Vocabulary> {
        let end = (TokenKind::Special, b"<end>".to_vec());
        let letters = ["a", "b", " ", ";", "x"].map(str::to_owned);
        let texts = letters.iter().chain(texts);
        let tokens = texts.map(|text| (TokenKind::Text, text.clone().into_bytes()));
        let tokens: Vec<_> = std::iter::once(end).chain(tokens).collect();
        Arc::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary"))
    }

    #[test]
    fn a_word_with_many_behind_it_is_like_another_one() {
        let tables = Tables::new(vocabulary(&[]), 1 << 20);
        let hir = regex_syntax::parse("([ab]+ ){0,20}[ab]+;").expect("it is well formed");
        let regular = crate::grammar::Regular {
            parts: vec![crate::grammar::Part::Match(hir.into())],
        };
        let terminal = tables
            .terminal(&regular, &Limits::default())
            .expect("it compiles");
        let behind = |words: usize| {
            let mut text = "a ".repeat(words).into_bytes();
            text.push(b'a');
            let mut bytes = text.iter();
            bytes.try_fold(0, |state, &byte| terminal.next_state(state, byte))
        };
        let notes = tables.notes(&terminal);
        let walked = &notes.walked;
        for words in 0..FIRST {
            let state = behind(words).expect("so many words are allowed");
            assert!(find(walked, &terminal, state).is_none());
            tables.terminal_mask(&terminal, state);
        }
        let near = |words: usize| find(walked, &terminal, behind(words).expect("so many are allowed"));
        assert_eq!(near(3).map(|near| near.bytes), Some(32));
        assert_eq!(near(13).map(|near| near.bytes), Some(12));
        assert!(near(18).is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

        #[test]
        fn long_tokens_are_told_apart(
            most in 1..14usize,
            end in prop::sample::select(vec!["", ";", "[ab; ]{0,9}x"]),
            texts in prop::collection::vec("[ab]{1,2}( [ab]{1,2}){0,9}[ ;x]{0,2}", 1..12),
        ) {
            let pattern = format!("([ab]+ ){{0,{most}}}[ab]+{end}");
            let vocabulary = vocabulary(&texts);
            let (grammar, _) = crate::compile(Source::Regex(&pattern), &vocabulary, &Options::default()).expect("it compiles");
            let mut state = grammar.start();
            for byte in "ab ".bytes().cycle().take(3 * most + 2) {
                let mask = grammar.mask(state);
                for token in 1..vocabulary.len() as u32 {
                    let fits = grammar.step_bytes(state, vocabulary.bytes(token)).is_some();
                    prop_assert_eq!(mask.contains(token), fits, "{:?}", vocabulary.bytes(token));
                }
                state = grammar.step_bytes(state, &[byte]).expect("the text is a beginning");
            }
        }
    }
}
