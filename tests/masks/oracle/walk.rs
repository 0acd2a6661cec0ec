//! Walks a grammar along all token sequences and compares every answer with the judge's.

use std::collections::{BTreeSet, HashSet};

use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Grammar, State};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::judge::Judge;
use super::vocabulary::{NAMED, NAMED_MARK};

/// How much of the tree of token sequences is walked.
pub(crate) struct Reach {
    /// The longest text, in bytes.
    pub(crate) bytes: usize,
    /// The most states.
    pub(crate) states: usize,
}

/// Compares masks, steps, acceptance and forced text at every state that token sequences reach.
///
/// The same text is visited by all of its tokenisations; they may lead to different states, never to
/// different answers.
pub(crate) fn check_everywhere(
    grammar: &Grammar,
    judge: &impl Judge,
    reach: &Reach,
) -> Result<(), TestCaseError> {
    let mut open = vec![(grammar.start(), Vec::new())];
    let mut seen: HashSet<(State, Vec<u8>)> = HashSet::new();
    while let Some((state, text)) = open.pop() {
        if text.len() > reach.bytes || seen.len() >= reach.states || !seen.insert((state, text.clone())) {
            continue;
        }
        check_mask(grammar, judge, state, &text)?;
        check_forced(grammar, judge, state, &text)?;
        check_adopted(grammar, state, &text)?;
        let vocabulary = grammar.vocabulary();
        for token in grammar
            .mask(state)
            .iter()
            .filter(|&token| vocabulary.kind(token) == TokenKind::Text)
        {
            let next = grammar.step(state, token);
            let next =
                next.ok_or_else(|| TestCaseError::fail(format!("{text:?} does not step by token {token}")))?;
            open.push((next, [&text, vocabulary.bytes(token)].concat()));
        }
    }
    Ok(())
}

/// A state is the same in a grammar that has read nothing else.
fn check_adopted(grammar: &Grammar, state: State, text: &[u8]) -> Result<(), TestCaseError> {
    let fresh = grammar.fresh();
    let adopted = fresh.adopt(grammar, state).expect("it is the same grammar");
    prop_assert_eq!(fresh.mask(adopted), grammar.mask(state), "after {:?}", show(text));
    prop_assert_eq!(
        fresh.is_accepting(adopted),
        grammar.is_accepting(state),
        "after {:?}",
        show(text)
    );
    Ok(())
}

/// What a token adds to the text, as judges see it: the special token that grammars may name is a mark of its
/// own.
fn written(vocabulary: &Vocabulary, token: u32) -> &[u8] {
    match vocabulary.special(NAMED) == Some(token) {
        true => NAMED_MARK.as_bytes(),
        false => vocabulary.bytes(token),
    }
}

/// Every bit of the mask, and every other way to ask the same question.
fn check_mask(grammar: &Grammar, judge: &impl Judge, state: State, text: &[u8]) -> Result<(), TestCaseError> {
    let vocabulary = grammar.vocabulary();
    let mask = grammar.mask(state);
    let mut copied = vec![u32::MAX; vocabulary.len().div_ceil(32) + 1];
    grammar.fill(state, &mut copied).expect("within the limits");
    prop_assert_eq!(&copied[..copied.len() - 1], mask.words());
    prop_assert_eq!(copied.last(), Some(&0));
    let accepted = judge.verdict(text).accepted;
    prop_assert_eq!(
        grammar.is_accepting(state),
        accepted,
        "accepting {:?}",
        show(text)
    );
    let mut count = 0;
    for token in 0..vocabulary.len() as u32 {
        let bytes = vocabulary.bytes(token);
        let viable = match vocabulary.kind(token) {
            TokenKind::Text => judge.verdict(&[text, bytes].concat()).viable,
            TokenKind::Special if vocabulary.is_eos(token) => accepted,
            TokenKind::Special if vocabulary.special(NAMED) == Some(token) => {
                judge.verdict(&[text, written(vocabulary, token)].concat()).viable
            }
            TokenKind::Special | TokenKind::Mark => false,
            TokenKind::Unused => false,
        };
        let place = || format!("token {token} {:?} after {:?}", show(bytes), show(text));
        // Inside of a character, there may be no token for the rest of it: `spelled` judges that.
        let is_inside = std::str::from_utf8(&[text, bytes].concat()).is_err();
        let expected = viable && !(is_inside && grammar.step(state, token).is_none());
        prop_assert_eq!(mask.contains(token), expected, "mask, {}", place());
        prop_assert_eq!(grammar.allows(state, token), expected, "allows, {}", place());
        prop_assert_eq!(
            grammar.step(state, token).is_some(),
            expected,
            "step, {}",
            place()
        );
        if vocabulary.kind(token) == TokenKind::Text {
            prop_assert_eq!(
                grammar.step_bytes(state, bytes).is_some(),
                viable,
                "step by bytes, {}",
                place()
            );
        }
        count += usize::from(expected);
        if expected && vocabulary.is_eos(token) {
            check_finished(grammar, state, token)?;
        }
    }
    prop_assert_eq!(mask.count(), count);
    prop_assert_eq!(mask.iter().count(), count);
    Ok(())
}

fn check_finished(grammar: &Grammar, state: State, eos: u32) -> Result<(), TestCaseError> {
    prop_assert!(!grammar.is_finished(state));
    let end = grammar.step(state, eos).expect("it was just allowed");
    prop_assert!(grammar.is_finished(end));
    prop_assert_eq!(grammar.mask(end).count(), 0, "nothing follows the end");
    prop_assert!(grammar.step(end, eos).is_none());
    Ok(())
}

/// Forced text is what every completion shares: at each byte of it the text may neither end nor go on
/// otherwise, and behind it one of the two holds.
fn check_forced(
    grammar: &Grammar,
    judge: &impl Judge,
    state: State,
    text: &[u8],
) -> Result<(), TestCaseError> {
    let mut text = text.to_vec();
    let forced = grammar.forced(state);
    for &byte in &forced {
        prop_assert_eq!(
            only_byte(grammar.vocabulary(), judge, &text),
            Some(byte),
            "forced after {:?}",
            show(&text)
        );
        text.push(byte);
    }
    // Forced text may be cut, but never to nothing.
    if forced.is_empty() {
        prop_assert_eq!(
            only_byte(grammar.vocabulary(), judge, &text),
            None,
            "nothing forced after {:?}",
            show(&text)
        );
    }
    Ok(())
}

/// The one byte that can follow. Languages of the tests tell few bytes apart: those of the vocabulary, and
/// one or two of each other kind (another letter, other continuations of a character, the first byte of a
/// longer one, the special token).
fn only_byte(vocabulary: &Vocabulary, judge: &impl Judge, text: &[u8]) -> Option<u8> {
    if judge.verdict(text).accepted {
        return None;
    }
    let mut kinds: BTreeSet<u8> = b"z\x80\x81\xE2"
        .iter()
        .chain(NAMED_MARK.as_bytes())
        .copied()
        .collect();
    kinds.extend((0..=255u8).filter(|&byte| vocabulary.token_of_byte(byte).is_some()));
    let mut next = kinds
        .into_iter()
        .filter(|&byte| judge.verdict(&[text, &[byte]].concat()).viable);
    let only = next.next().filter(|only| !NAMED_MARK.as_bytes().contains(only))?;
    next.next().is_none().then_some(only)
}

/// Bytes as readable text.
pub(crate) fn show(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

/// Compares the states that the bytes of a walk lead to, which takes the tokens that these choices fall on,
/// also with a walk that goes on in another grammar after each token.
pub(crate) fn check_portions(
    grammar: &Grammar,
    choices: &[prop::sample::Index],
) -> Result<(), TestCaseError> {
    let vocabulary = grammar.vocabulary();
    let (mut state, mut text) = (grammar.start(), Vec::new());
    let mut last = grammar.clone();
    let mut moved = last.start();
    for choice in choices {
        let is_text = |&token: &u32| vocabulary.kind(token) == TokenKind::Text;
        let allowed: Vec<u32> = grammar.mask(state).iter().filter(is_text).collect();
        if allowed.is_empty() {
            break;
        }
        let token = *choice.get(&allowed);
        state = grammar.step(state, token).expect("the mask allows it");
        text.extend_from_slice(vocabulary.bytes(token));
        let fresh = grammar.fresh();
        let at_once = fresh
            .step_bytes(fresh.start(), &text)
            .map(|state| (fresh.mask(state), fresh.is_accepting(state)));
        let fresh = grammar.fresh();
        let by_bytes = text
            .iter()
            .try_fold(fresh.start(), |state, &byte| fresh.step_bytes(state, &[byte]));
        let by_bytes = by_bytes.map(|state| (fresh.mask(state), fresh.is_accepting(state)));
        let by_tokens = Some((grammar.mask(state), grammar.is_accepting(state)));
        prop_assert_eq!(&by_tokens, &at_once, "after {:?}", show(&text));
        prop_assert_eq!(&by_tokens, &by_bytes, "after {:?}", show(&text));
        let next = grammar.fresh();
        moved = last.step(moved, token).expect("the other masks allow it");
        moved = next.adopt(&last, moved).expect("it is the same grammar");
        last = next;
        let by_moves = Some((last.mask(moved), last.is_accepting(moved)));
        prop_assert_eq!(&by_tokens, &by_moves, "after {:?}", show(&text));
        let least = grammar.min_completion(state);
        prop_assert_eq!(least, last.min_completion(moved), "after {:?}", show(&text));
    }
    Ok(())
}
