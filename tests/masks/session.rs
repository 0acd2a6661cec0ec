//! A session is equivalent to its tokens: whatever was accepted and rolled back, it answers like a fresh walk
//! over the tokens that remain. Trees are walks, and ends are allowed where the text may end.

use std::sync::Arc;

use lexiform::MaskRequest;
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{BatchRow, DraftTree, Ends, Pool, SessionError, TreeError};
use lexiform::{Grammar, Options, Session, Source, State, compile};
use proptest::prelude::*;

/// Two tokens that end a sequence, `.` which may be chosen as a third, and a special token that grammars may
/// name.
const TOKENS: [(TokenKind, &str); 11] = [
    (TokenKind::Special, "<end>"),
    (TokenKind::Special, "<end of turn>"),
    (TokenKind::Text, "."),
    (TokenKind::Special, "<|tool|>"),
    (TokenKind::Text, "a"),
    (TokenKind::Text, "b"),
    (TokenKind::Text, "ab"),
    (TokenKind::Text, "ba"),
    (TokenKind::Text, ",a"),
    (TokenKind::Text, ","),
    (TokenKind::Unused, ""),
];
const SOURCES: [&str; 4] = [
    "root ::= ('a' | 'b')* ('.' 'a'*)?",
    "root ::= item (',' item)* item ::= 'a'{1,3} | 'b' item",
    "root ::= 'a'* (<|tool|> 'b')* 'a'",
    "root ::= '' | 'a' root 'b' | ','",
];
/// A bound on memory that long texts exceed.
const LITTLE: usize = 1 << 15;

fn grammar(source: &str, grammar_bytes: usize) -> Grammar {
    let vocabulary = Arc::new(Vocabulary::new(&TOKENS, &[0, 1]).expect("a vocabulary"));
    let mut options = Options::default();
    options.limits.grammar_bytes = grammar_bytes;
    compile(Source::Ebnf(source), &vocabulary, &options)
        .expect("it compiles")
        .0
}

/// Returns every choice of ends: those of the vocabulary, one of them, another token, a special token, none.
fn ends(grammar: &Grammar) -> Vec<Option<Ends>> {
    let ends =
        |tokens: &[u32]| Some(Ends::new(tokens.to_vec(), grammar.vocabulary()).expect("they are there"));
    vec![
        None,
        ends(&[0, 1]),
        ends(&[1]),
        ends(&[2, 0]),
        ends(&[3]),
        ends(&[]),
    ]
}

/// Returns the state after these tokens in a fresh grammar, one plain step at a time; ends are judged by
/// their definition, and not by the library's own functions.
fn walked(grammar: &Grammar, tokens: &[u32], ends: Option<&Ends>) -> Option<Option<State>> {
    let mut state = Some(grammar.start());
    for &token in tokens {
        let at = state?;
        state = match ends {
            Some(ends) if ends.contains(token) => match grammar.is_accepting(at) {
                true => None,
                false => return None,
            },
            _ => {
                let next = grammar.step(at, token)?;
                match ends.is_some() && grammar.is_finished(next) {
                    true => return None,
                    false => (!grammar.is_finished(next)).then_some(next),
                }
            }
        };
    }
    Some(state)
}

/// Returns the tokens that may come after these, found by trying each.
fn tried(grammar: &Grammar, tokens: &[u32], ends: Option<&Ends>) -> Vec<u32> {
    let may_come = |&token: &u32| walked(grammar, &[tokens, &[token]].concat(), ends).is_some();
    (0..TOKENS.len() as u32).filter(may_come).collect()
}

fn bits(words: &[u32]) -> Vec<u32> {
    (0..words.len() as u32 * 32)
        .filter(|bit| words[*bit as usize / 32] >> (bit % 32) & 1 == 1)
        .collect()
}

#[derive(Clone, Debug)]
enum Act {
    Accept(Vec<u32>),
    Validate(Vec<u32>),
    Rollback(usize),
    Reset,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let tokens = prop::collection::vec(0..TOKENS.len() as u32, 0..4);
    let letters = prop::collection::vec(4..6u32, 1..40);
    let act = prop_oneof![
        4 => tokens.clone().prop_map(Act::Accept),
        4 => letters.prop_map(Act::Accept),
        2 => tokens.prop_map(Act::Validate),
        2 => (0..100usize).prop_map(Act::Rollback),
        1 => Just(Act::Reset),
    ];
    prop::collection::vec(act, 1..30)
}

/// Applies an act to the session and its meaning to the plain tokens, and returns whether the two agree about
/// it.
fn act(
    act: &Act,
    session: &mut Session,
    tokens: &mut Vec<u32>,
    plain: &Grammar,
    ends: Option<&Ends>,
) -> bool {
    match act {
        Act::Accept(more) => {
            let after = [&tokens[..], more].concat();
            let is_right = walked(plain, &after, ends).is_some();
            if is_right {
                *tokens = after;
            }
            session.accept(more).is_ok() == is_right
        }
        Act::Validate(more) => {
            let fits =
                |count: &usize| walked(plain, &[&tokens[..], &more[..*count]].concat(), ends).is_some();
            session.validate(more) == (0..=more.len()).rev().find(fits).unwrap_or(0)
        }
        Act::Rollback(count) if *count > tokens.len() => {
            let too_far = SessionError::TooFar {
                asked: *count,
                taken: tokens.len(),
            };
            session.rollback(*count) == Err(too_far)
        }
        Act::Rollback(count) => {
            tokens.truncate(tokens.len() - count);
            session.rollback(*count).is_ok()
        }
        Act::Reset => {
            tokens.clear();
            session.reset();
            true
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn a_session_is_its_tokens(acts in acts(), source in 0..SOURCES.len(), chosen in 0..6usize, little in any::<bool>()) {
        let bytes = if little { LITTLE } else { 64 << 20 };
        let shared = grammar(SOURCES[source], bytes);
        let ends = ends(&shared).remove(chosen);
        let mut session = Session::new(shared, ends.clone());
        let plain = grammar(SOURCES[source], 64 << 20);
        let mut tokens = Vec::new();
        for one in &acts {
            prop_assert!(act(one, &mut session, &mut tokens, &plain, ends.as_ref()), "{one:?} after {tokens:?}");
            prop_assert_eq!(session.tokens(), &tokens[..]);
            let state = walked(&plain, &tokens, ends.as_ref()).expect("it was accepted");
            prop_assert_eq!(session.is_terminated(), state.is_none());
            prop_assert_eq!(session.is_accepting(), state.is_some_and(|state| plain.is_accepting(state)));
            let mut words = [7];
            prop_assert_eq!(session.fill(None, &mut words), Ok(()));
            let allowed = if state.is_none() { Vec::new() } else { tried(&plain, &tokens, ends.as_ref()) };
            prop_assert_eq!(bits(&words), allowed, "after {:?}", tokens);
        }
    }

    #[test]
    fn the_rows_of_a_tree_are_those_of_its_paths(
        parents in prop::collection::vec((any::<prop::sample::Index>(), 0..TOKENS.len() as i64), 0..12),
        source in 0..SOURCES.len(),
        chosen in 0..6usize,
        budget in prop::option::of(0..12usize),
        threads in 1..3usize,
    ) {
        let grammar = grammar(SOURCES[source], 64 << 20);
        let ends = ends(&grammar).remove(chosen);
        let (mut tokens, mut child, mut sibling, mut paths) = (vec![-1], vec![-1], vec![-1], vec![vec![]]);
        for (parent, token) in &parents {
            let parent = parent.index(tokens.len());
            let mut path: Vec<u32> = paths[parent].clone();
            path.push(*token as u32);
            sibling.push(std::mem::replace(&mut child[parent], tokens.len() as i64));
            tokens.push(*token);
            child.push(-1);
            paths.push(path);
        }
        let tree = DraftTree::new(&tokens, &child, &sibling).expect("a tree");
        let mut words = vec![7; tokens.len()];
        let row = BatchRow { grammar: grammar.clone(), state: grammar.start(), budget, ends: ends.clone() };
        let (states, refused) = Pool::new(threads, std::process::id).fill_tree(&row, &tree, 1, &mut words);
        prop_assert_eq!(refused, []);
        for (node, path) in paths.iter().enumerate() {
            let walk = grammar.walk(grammar.start(), path, ends.as_ref());
            let walked = walked(&grammar, path, ends.as_ref());
            prop_assert_eq!(walk.len() == path.len(), walked.is_some());
            let state = walked.is_some().then(|| walk.last().copied().unwrap_or(grammar.start()));
            prop_assert_eq!(states[node], state);
            let alone = match walked {
                Some(Some(state)) => {
                    let budget = budget.map(|budget| budget.saturating_sub(path.len()));
                    grammar.try_mask(MaskRequest::from(state).within(budget).ending(ends.as_ref())).expect("within the limits").words()[0]
                }
                _ => 7,
            };
            prop_assert_eq!(words[node], alone, "node {} after {:?}", node, path);
        }
    }

    #[test]
    fn ends_are_allowed_where_the_text_may_end(
        path in prop::collection::vec(0..TOKENS.len() as u32, 0..8),
        source in 0..SOURCES.len(),
        chosen in 0..6usize,
        budget in prop::option::of(0..9usize),
    ) {
        let grammar = grammar(SOURCES[source], 64 << 20);
        let ends = ends(&grammar).remove(chosen);
        let walk = grammar.walk(grammar.start(), &path, ends.as_ref());
        let state = walk.last().copied().unwrap_or(grammar.start());
        let mask = grammar.try_mask(MaskRequest::from(state).within(budget).ending(ends.as_ref())).expect("within the limits");
        let plain = budget.map_or_else(|| grammar.mask(state), |budget| grammar.try_mask(MaskRequest::from(state).within(budget)).expect("within the limits"));
        let mut words = [7];
        prop_assert_eq!(grammar.fill(MaskRequest::from(state).within(budget).ending(ends.as_ref()), &mut words), Ok(()));
        prop_assert_eq!(&words[..], mask.words());
        for token in 0..TOKENS.len() as u32 {
            let is_end = ends.as_ref().map_or(token < 2, |ends| ends.contains(token));
            let expected = match (is_end, token < 2) {
                (true, _) => grammar.is_accepting(state) && budget != Some(0),
                // None of these grammars names one.
                (false, true) => false,
                (false, false) => plain.contains(token),
            };
            prop_assert_eq!(mask.contains(token), expected, "token {}", token);
            if budget.is_none() {
                let next = grammar.step_for(state, token, ends.as_ref()).expect("within the limits");
                prop_assert_eq!(next.is_some(), expected);
                prop_assert!(!is_end || next.is_none_or(|next| grammar.is_finished(next)));
            }
        }
    }
}

#[test]
fn numbers_are_states_of_the_grammar_or_none() {
    let grammar = grammar(SOURCES[3], 64 << 20);
    let mut state = grammar.start();
    for _ in 0..20 {
        assert_eq!(grammar.state(state.to_u32()), Some(state));
        state = grammar.step(state, 4).expect("one deeper");
    }
    assert_eq!(grammar.state(0), None, "what is below the bottom is no state");
    assert_eq!(grammar.state(u32::MAX), None);
    let held = (0..10_000)
        .filter_map(|number| grammar.state(number))
        .collect::<Vec<_>>();
    assert!(held.len() >= 20 && held.len() < 200, "{}", held.len());
    // A number that was never handed out yields some state, and no panic.
    held.iter()
        .for_each(|&state| drop((grammar.mask(state), grammar.forced(state))));
}

#[test]
fn arrays_that_are_no_tree_are_refused() {
    let tree = |child: &[i64], sibling: &[i64]| DraftTree::new(&[0, 4, 5], child, sibling).err();
    assert_eq!(tree(&[1, -1, -1], &[-1, 2, -1]), None);
    assert_eq!(
        tree(&[1, 2, 0], &[-1; 3]),
        Some(TreeError::ReachedTwice { node: 0 })
    );
    assert_eq!(
        tree(&[1, 2, -1], &[-1, 2, -1]),
        Some(TreeError::ReachedTwice { node: 2 })
    );
    assert_eq!(
        tree(&[1, -1, -1], &[-1, 3, -1]),
        Some(TreeError::NoSuchNode {
            node: 1,
            named: 3,
            len: 3
        })
    );
    let lengths = TreeError::Lengths {
        tokens: 3,
        children: 1,
        siblings: 3,
    };
    assert_eq!(tree(&[1], &[-1; 3]), Some(lengths));
    assert!(DraftTree::new(&[], &[], &[]).expect("no node").is_empty());
}

#[test]
fn a_deep_tree_takes_no_stack_and_a_long_session_little_memory() {
    let grammar = grammar("root ::= ('a' | 'b')*", LITTLE);
    let nodes = 100_000;
    let child: Vec<i64> = (1..=nodes)
        .map(|next| if next < nodes { next } else { -1 })
        .collect();
    let (tokens, sibling) = (vec![4; child.len()], vec![-1; child.len()]);
    let tree = DraftTree::new(&tokens, &child, &sibling).expect("a tree");
    let row = BatchRow {
        grammar: grammar.clone(),
        state: grammar.start(),
        budget: None,
        ends: None,
    };
    let mut words = vec![0; child.len()];
    let (states, _) = Pool::new(1, std::process::id).fill_tree(&row, &tree, 1, &mut words);
    assert!(states.iter().all(Option::is_some) && words.iter().all(|&word| word == words[0]));
    let mut session = Session::new(self::grammar(SOURCES[3], LITTLE), None);
    for _ in 0..200 {
        session.accept(&[4; 10]).expect("one deeper");
    }
    session.accept(&[5; 1999]).expect("all but one closed");
    session.rollback(3000).expect("far back");
    assert!(session.state() != session.grammar().start() && session.tokens().len() == 999);
    session.accept(&[5; 999]).expect("as many as were opened");
    assert!(session.is_accepting());
}
