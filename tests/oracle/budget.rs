//! Budgets against brute force: the distance to the end counted by trying all token sequences, round by round.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use lexiform::grammar::{Cfg, Judge};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Grammar, State};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::walk::show;
use super::{BYTES, LETTERS, cases, context_free, json, lower, regular, series, vocabulary};

/// Token sequences are tried up to this length.
const ROUNDS: usize = 7;
/// Where more states than this are met, the rounds end there and distances beyond are not compared.
const STATES: usize = 3000;

/// The fewest tokens to the end, the end token among them, as far as brute force got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Distance {
    Exactly(usize),
    /// More than this.
    Beyond(usize),
    /// There is no way.
    Never,
}

fn distance(grammar: &Grammar, from: State) -> Distance {
    let mut seen = HashSet::from([from]);
    let mut round = vec![from];
    for length in 1..=ROUNDS {
        if round.iter().any(|&state| grammar.is_accepting(state)) {
            return Distance::Exactly(length);
        }
        let mut next = Vec::new();
        for &state in &round {
            let tokens = 0..grammar.vocabulary().len() as u32;
            let states = tokens.filter_map(|token| grammar.step(state, token));
            next.extend(states.filter(|&state| seen.insert(state)));
        }
        if next.is_empty() {
            return Distance::Never;
        }
        if seen.len() > STATES {
            return Distance::Beyond(length);
        }
        round = next;
    }
    Distance::Beyond(ROUNDS)
}

/// Checks the budgets of a grammar over each of these vocabularies, if it has texts there.
fn check_budgets_of(cfg: &Cfg, vocabularies: [Arc<Vocabulary>; 2]) -> Result<(), TestCaseError> {
    let grammars = vocabularies
        .iter()
        .filter_map(|vocabulary| lower::compile(cfg, vocabulary).ok());
    grammars
        .into_iter()
        .try_for_each(|grammar| check_budgets(&grammar))
}

/// Compares distances and masks within budgets at the states that token sequences of up to three tokens reach.
fn check_budgets(grammar: &Grammar) -> Result<(), TestCaseError> {
    let mut known: HashMap<State, Distance> = HashMap::new();
    let mut open = vec![(grammar.start(), Vec::new())];
    let mut seen = HashSet::new();
    while let Some((state, text)) = open.pop() {
        if text.len() > 6 || seen.len() > 25 || !seen.insert(state) {
            continue;
        }
        check_distance(grammar, state, &text)?;
        for budget in 0..=ROUNDS {
            check_mask(grammar, state, budget, &text, &mut known)?;
        }
        let vocabulary = grammar.vocabulary();
        for token in grammar
            .mask(state)
            .iter()
            .filter(|&token| vocabulary.kind(token) == TokenKind::Text)
        {
            let next = grammar.step(state, token).expect("the mask allows it");
            open.push((next, [&text, vocabulary.bytes(token)].concat()));
        }
    }
    Ok(())
}

fn check_distance(grammar: &Grammar, state: State, text: &[u8]) -> Result<(), TestCaseError> {
    let found = grammar.min_completion(state);
    match distance(grammar, state) {
        Distance::Exactly(length) => prop_assert_eq!(found, Some(length), "after {:?}", show(text)),
        Distance::Never => prop_assert_eq!(found, None, "after {:?}", show(text)),
        Distance::Beyond(length) => {
            let further = found.is_none_or(|found| found > length);
            prop_assert!(
                further,
                "{:?} is not beyond {} after {:?}",
                found,
                length,
                show(text)
            );
        }
    }
    Ok(())
}

fn check_mask(
    grammar: &Grammar,
    state: State,
    budget: usize,
    text: &[u8],
    known: &mut HashMap<State, Distance>,
) -> Result<(), TestCaseError> {
    let mask = grammar.mask_within(state, budget);
    for token in 0..grammar.vocabulary().len() as u32 {
        let expected = match grammar.step(state, token) {
            None => Some(false),
            Some(_) if budget == 0 => Some(false),
            Some(next) if grammar.is_finished(next) => Some(true),
            Some(next) => match *known.entry(next).or_insert_with(|| distance(grammar, next)) {
                Distance::Exactly(length) => Some(length < budget),
                Distance::Never => Some(false),
                Distance::Beyond(length) => (length + 1 >= budget).then_some(false),
            },
        };
        if let Some(expected) = expected {
            let bytes = format!(
                "{token} {} {:?} {:?}",
                show(grammar.vocabulary().bytes(token)),
                grammar.vocabulary().kind(token),
                grammar.step(state, token).map(|next| distance(grammar, next))
            );
            prop_assert_eq!(
                mask.contains(token),
                expected,
                "{} after {:?} within {}",
                bytes,
                show(text),
                budget
            );
        }
    }
    Ok(())
}

/// A vocabulary that lacks tokens for some of its bytes.
fn gappy(letters: &'static [u8]) -> impl Strategy<Value = Arc<Vocabulary>> {
    let letter = prop::sample::select(letters.to_vec());
    let tokens = prop::collection::vec(prop::collection::vec(letter, 1..=3), 1..6);
    tokens.prop_map(|tokens| {
        let text = tokens.into_iter().map(|bytes| (TokenKind::Text, bytes));
        let specials =
            ["<end>", vocabulary::NAMED].map(|name| (TokenKind::Special, name.as_bytes().to_vec()));
        let all: Vec<_> = specials.into_iter().chain(text).collect();
        Arc::new(Vocabulary::new(&all, &[0]).expect("a vocabulary"))
    })
}

/// Words that a judge tells, of which it names one completion each: there may be shorter ones.
#[test]
fn budgets_of_judged_words() {
    let cfg = lower::grammar_of(|builder| {
        let parts = [
            builder.bytes("<"),
            builder.judged(Judge::LabelFromLeft),
            builder.bytes(">"),
        ];
        builder.seq(parts)
    });
    let texts = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    let vocabularies: [Vec<Vec<u8>>; 2] = [
        texts(&["<", ">", "9", "c", "a", "-", "9ca", "ca>", "-9"]),
        texts(&["<", ">", "z", "ca", "c"]),
    ];
    for texts in vocabularies {
        let end = (TokenKind::Special, b"<end>".to_vec());
        let tokens: Vec<_> = std::iter::once(end)
            .chain(texts.into_iter().map(|text| (TokenKind::Text, text)))
            .collect();
        let vocabulary = Arc::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary"));
        let grammar = lower::compile(&cfg, &vocabulary).expect("there are words");
        check_budgets(&grammar).unwrap_or_else(|error| panic!("{error}"));
    }
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn budgets_of_context_free_grammars(
        rules in context_free::grammars(),
        vocabulary in vocabulary::vocabularies(LETTERS),
    ) {
        if let Ok(grammar) = lower::compile(&lower::rules(&rules), &vocabulary) {
            check_budgets(&grammar)?;
        }
    }

    #[test]
    fn budgets_without_a_token_for_every_byte(rules in context_free::grammars(), vocabulary in gappy(LETTERS)) {
        if let Ok(grammar) = lower::compile(&lower::rules(&rules), &vocabulary) {
            check_budgets(&grammar)?;
        }
    }

    #[test]
    fn budgets_of_patterns_with_counts(
        parts in regular::parts(),
        vocabulary in vocabulary::vocabularies(super::BYTES),
        gappy in gappy(super::BYTES),
    ) {
        let regular = lower::regular(&parts);
        let cfg = lower::grammar_of(|builder| {
            let regular = builder.add_regular(regular);
            builder.regular(regular)
        });
        for vocabulary in [vocabulary, gappy] {
            if let Ok(grammar) = lower::compile(&cfg, &vocabulary) {
                check_budgets(&grammar)?;
            }
        }
    }

    /// A token may leave a counted language early where going on would break its bound.
    #[test]
    fn budgets_of_counts_before_patterns(
        counted in regular::counts(),
        pattern in regular::patterns(),
        vocabulary in vocabulary::vocabularies(BYTES),
    ) {
        let cfg = lower::count_before(counted, &pattern);
        if let Ok(grammar) = lower::compile(&cfg, &vocabulary) {
            check_budgets(&grammar)?;
        }
    }

    #[test]
    fn budgets_of_lists(
        list in series::lists(),
        vocabulary in vocabulary::vocabularies(b"ab,:"),
        gappy in gappy(b"ab,:"),
    ) {
        check_budgets_of(&list.grammar(), [vocabulary, gappy])?;
    }

    #[test]
    fn budgets_of_lists_of_which_a_key_comes_again(
        list in series::repeating_lists(),
        vocabulary in vocabulary::vocabularies(b"ab,:"),
        gappy in gappy(b"ab,:"),
    ) {
        check_budgets_of(&list.grammar(), [vocabulary, gappy])?;
    }

    #[test]
    fn budgets_of_json_schemas(
        schema in json::schemas(),
        vocabulary in vocabulary::vocabularies_of(super::JSON_BYTES, super::JSON_PIECES),
    ) {
        let mut options = lexiform::Options::default();
        options.schema.whitespace = lexiform::schema::Whitespace::Compact;
        let source = schema.source();
        let compiled = lexiform::compile(lexiform::Source::JsonSchema(&source), &vocabulary, &options);
        let (grammar, _) = compiled.map_err(|error| TestCaseError::fail(format!("{error} in {source}")))?;
        check_budgets(&grammar)?;
    }

    /// Any walk inside the masks ends in time, however badly it chooses.
    #[test]
    fn every_walk_within_a_budget_ends_in_time(
        rules in context_free::grammars(),
        vocabulary in vocabulary::vocabularies(LETTERS),
        more in 0usize..12,
        choices in prop::collection::vec(any::<prop::sample::Index>(), 40),
    ) {
        let Ok(grammar) = lower::compile(&lower::rules(&rules), &vocabulary) else { return Ok(()) };
        let mut state = grammar.start();
        let Some(least) = grammar.min_completion(state) else { return Ok(()) };
        let mut budget = (least + more).min(choices.len());
        prop_assume!(budget >= least);
        for choice in choices {
            let allowed: Vec<u32> = grammar.mask_within(state, budget).iter().collect();
            prop_assert!(!allowed.is_empty(), "nothing is allowed within {}", budget);
            state = grammar.step(state, *choice.get(&allowed)).expect("the mask allows it");
            budget -= 1;
            if grammar.is_finished(state) {
                break;
            }
        }
        prop_assert!(grammar.is_finished(state));
    }
}
