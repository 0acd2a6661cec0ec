//! Compares predictors with slow ones that scan everything, and checks how many bytes they hold.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::draft::{Origin, Text};

/// Returns the candidates after a text.
fn after(predictor: &dyn Predictor, text: &[u32], path: &[u32], state: Option<u64>) -> Vec<(u32, f32)> {
    let text = Text {
        prompt: &text[..text.len() / 2],
        answer: &text[text.len() / 2..],
    };
    let mut found = Vec::new();
    predictor.predict(&Context { text, path, state }, &mut found);
    let chances: f32 = found.iter().map(|candidate| candidate.chance).sum();
    assert!(chances <= 1.0 + 1e-5, "{chances}");
    assert!(found.is_sorted_by(|one, other| one.chance >= other.chance));
    let mut tokens: Vec<u32> = found.iter().map(|candidate| candidate.token).collect();
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), found.len(), "a token twice");
    found
        .into_iter()
        .map(|candidate| (candidate.token, candidate.chance))
        .collect()
}

fn learn(predictor: &mut dyn Predictor, text: &[u32], state: Option<u64>, row: &[(u32, f32)], drawn: u32) {
    let context = Context {
        text: Text {
            prompt: text,
            answer: &[],
        },
        path: &[],
        state,
    };
    let seen = Observation {
        likely: row,
        allowed: row,
        drawn: Some(drawn),
    };
    predictor.learn(&context, &seen);
}

const BYTES: usize = 1 << 20;

#[test]
fn recycling_keeps_the_last_row_after_a_token() {
    let mut recycling = Recycling::new(BYTES);
    learn(&mut recycling, &[1, 2], None, &[(7, 0.5), (8, 0.25)], 7);
    learn(&mut recycling, &[3, 2], None, &[(9, 0.75)], 9);
    assert_eq!(after(&recycling, &[5, 2], &[], None), [(9, 0.75)]);
    assert_eq!(after(&recycling, &[5, 6], &[2], None), [(9, 0.75)]);
    assert_eq!(after(&recycling, &[5, 6], &[], None), []);
}

#[test]
fn trigrams_count_what_was_drawn_and_fall_back_to_the_last_token() {
    let mut trigram = Trigram::new(BYTES);
    for drawn in [7, 7, 8, 7] {
        learn(&mut trigram, &[1, 2], None, &[], drawn);
    }
    learn(&mut trigram, &[3, 2], None, &[], 9);
    assert_eq!(after(&trigram, &[1, 2], &[], None), [(7, 0.75), (8, 0.25)]);
    assert_eq!(after(&trigram, &[3, 2], &[], None), [(9, 1.0)]);
    let of_last = after(&trigram, &[4, 2], &[], None);
    assert_eq!(
        of_last.iter().map(|(token, _)| *token).collect::<Vec<_>>(),
        [7, 8, 9]
    );
}

#[test]
fn ngrams_average_rows_after_the_longest_context_that_is_known() {
    let mut ngrams = NGrams::new(BYTES);
    learn(&mut ngrams, &[1, 2, 3], None, &[(7, 1.0)], 7);
    learn(&mut ngrams, &[1, 2, 3], None, &[(8, 1.0)], 8);
    learn(&mut ngrams, &[0, 2, 3], None, &[(9, 1.0)], 9);
    let likely = |text: &[u32]| -> Vec<u32> {
        let found = after(&ngrams, text, &[], None).into_iter();
        let mut tokens: Vec<u32> = found.map(|(token, _)| token).collect();
        tokens.sort_unstable();
        tokens
    };
    assert_eq!(after(&ngrams, &[1, 2, 3], &[], None), [(7, 0.5), (8, 0.5)]);
    assert_eq!(likely(&[0, 2, 3]), [9]);
    assert_eq!(likely(&[5, 2, 3]), [7, 8, 9], "two tokens are known");
    assert_eq!(likely(&[5, 5, 3]), [7, 8, 9], "one token is known");
    assert_eq!(likely(&[5, 5, 5]), [] as [u32; 0]);
}

#[test]
fn a_state_says_what_the_last_tokens_do_not() {
    let mut keyed = StateKeyed::new(BYTES);
    learn(&mut keyed, &[1, 2], Some(10), &[(7, 1.0)], 7);
    learn(&mut keyed, &[1, 2], Some(11), &[(8, 1.0)], 8);
    assert_eq!(after(&keyed, &[1, 2], &[], Some(10)), [(7, 1.0)]);
    assert_eq!(after(&keyed, &[1, 2], &[], Some(11)), [(8, 1.0)]);
    assert_eq!(
        after(&keyed, &[5, 6], &[], Some(11)),
        [(8, 1.0)],
        "by the state alone"
    );
    assert_eq!(after(&keyed, &[], &[], Some(11)), [(8, 1.0)], "without a text");
    assert_eq!(after(&keyed, &[1, 2], &[], Some(12)), []);
    assert_eq!(after(&keyed, &[1, 2], &[], None), []);
}

#[test]
fn samples_of_a_request_agree_at_the_same_place() {
    let mut consensus = Consensus::new(BYTES);
    for drawn in [7, 7, 8] {
        learn(&mut consensus, &[1, 2], Some(10), &[], drawn);
    }
    let tokens = |state| -> Vec<u32> {
        let found = after(&consensus, &[1, 2], &[], state);
        found.into_iter().map(|(token, _)| token).collect()
    };
    assert_eq!(tokens(Some(10)), [7, 8]);
    assert_eq!(tokens(Some(11)), [] as [u32; 0]);
}

#[test]
fn phrases_are_offered_whole_after_their_first_token() {
    let mut phrases = Phrases::new(3, BYTES);
    phrases.add(&[1, 2, 3, 4]);
    phrases.add(&[1, 5, 6]);
    assert_eq!(after(&phrases, &[9, 1], &[], None), [(5, 0.5), (2, 0.25)]);
    assert_eq!(after(&phrases, &[9, 1], &[2], None), [(3, 0.75)]);
    assert_eq!(after(&phrases, &[9, 2], &[], None), [(3, 0.5)]);
    assert_eq!(after(&phrases, &[9, 3], &[], None), []);
    // The token drawn after two tokens makes a phrase, too.
    learn(&mut phrases, &[7, 1, 8], None, &[], 9);
    assert_eq!(after(&phrases, &[1], &[8], None), [(9, 0.75)]);
}

#[test]
fn phrases_are_joined_where_one_ends() {
    let mut phrases = Phrases::new(3, BYTES);
    for phrase in [[1, 2, 3], [3, 4, 5], [5, 6, 1]] {
        phrases.learn_phrase(&phrase);
    }
    let mut path = Vec::new();
    for token in [2, 3, 4, 5, 6, 1, 2, 3] {
        let found = after(&phrases, &[1], &path, None);
        assert_eq!(found.first().map(|found| found.0), Some(token), "{path:?}");
        path.push(token);
    }
    phrases.learn_phrase(&[9]);
    phrases.learn_phrase(&[9, 7]);
    assert_eq!(after(&phrases, &[9], &[], None), [(7, 0.5)], "a short one");
    assert_eq!(after(&phrases, &[9], &[7], None), []);
    // A match of two tokens outranks the latest phrase.
    phrases.learn_phrase(&[2, 8, 8]);
    assert_eq!(after(&phrases, &[1, 2], &[], None), [(3, 0.75), (8, 0.125)]);
    assert_eq!(after(&phrases, &[9, 2], &[], None), [(8, 0.5)]);
}

#[test]
fn a_table_says_who_is_asked_at_which_depth() {
    let store = |token: u32| {
        let mut phrases = Phrases::new(3, BYTES);
        phrases.add(&[1, token, token]);
        phrases
    };
    let layers = || {
        let first = Layer {
            depths: 0..1,
            ..Layer::new(store(2))
        };
        vec![first, Layer::new(store(3))]
    };
    let combined = Combined::new(layers(), Union::First);
    assert_eq!(after(&combined, &[1], &[], None), [(2, 0.5)]);
    assert_eq!(after(&combined, &[1], &[3], None), [(3, 0.75)]);
    assert_eq!(
        after(&combined, &[1], &[2], None),
        [],
        "the first is not asked there"
    );
    let combined = Combined::new(layers(), Union::All);
    assert_eq!(after(&combined, &[1], &[], None), [(2, 0.5), (3, 0.5)]);
}

/// A device that draws by itself does not always say what else was likely; guards against rows that shrink to
/// their last successor.
#[test]
fn a_drawn_token_alone_does_not_replace_a_row() {
    let mut recycling = Recycling::new(BYTES);
    learn(&mut recycling, &[1, 2], None, &[(7, 0.5), (8, 0.25)], 7);
    learn(&mut recycling, &[1, 2], None, &[], 9);
    let tokens: Vec<u32> = after(&recycling, &[2], &[], None)
        .into_iter()
        .map(|(token, _)| token)
        .collect();
    assert_eq!(tokens, [9, 7, 8]);
}

/// Guards against a predictor that always knows something unlikely and starves those after it.
#[test]
fn the_surest_predictor_is_asked_wherever_it_stands() {
    let (mut by_state, mut recycled) = (StateKeyed::new(BYTES), Recycling::new(BYTES));
    // In a string the state is always the same, and any word may come.
    for word in 10..20 {
        learn(&mut by_state, &[1], Some(7), &[(word, 1.0)], word);
    }
    learn(&mut recycled, &[5], None, &[(6, 0.9)], 6);
    let layers = || vec![Layer::new(by_state.clone()), Layer::new(recycled.clone())];
    let combined = Combined::new(layers(), Union::Surest);
    assert_eq!(after(&combined, &[5], &[], Some(7)), [(6, 0.9)]);
    let unknown = after(&combined, &[9], &[], Some(7));
    assert!(unknown.iter().all(|(token, _)| (10..20).contains(token)) && !unknown.is_empty());
    let combined = Combined::new(layers(), Union::First);
    assert_eq!(
        after(&combined, &[5], &[], Some(7)),
        unknown,
        "the first in order has some"
    );
}

/// Guards against a predictor that is sure and wrong: after one token, the last row was that of another text.
#[test]
fn a_predictor_that_is_often_wrong_is_asked_less() {
    let (mut suffixes, mut recycled) = (Suffixes::new(BYTES), Recycling::new(BYTES));
    suffixes.record(&[1, 2, 3, 4]);
    learn(&mut recycled, &[3], None, &[(9, 0.99)], 9);
    let layers = vec![Layer::new(suffixes), Layer::new(recycled)];
    let mut combined = Combined::new(layers, Union::Surest);
    let first = |combined: &Combined| after(combined, &[1, 2, 3], &[], None)[0].0;
    assert_eq!(
        first(&combined),
        4,
        "a match of three tokens is surer than a row after one"
    );
    (0..40).for_each(|_| combined.judge(Origin::Suffix, 0.75, false));
    assert_eq!(first(&combined), 9);
    (0..40).for_each(|_| combined.judge(Origin::Recycled, 0.99, false));
    (0..40).for_each(|_| combined.judge(Origin::Suffix, 0.75, true));
    assert_eq!(first(&combined), 4);
}

/// Guards against drafts that end soon after a passage was recognised: REST copies long passages.
#[test]
fn a_passage_that_occurs_once_is_drafted_to_its_end() {
    let passage: Vec<u32> = (100..140).collect();
    let retrieval = Retrieval::of_texts([passage.clone()]).expect("it is short");
    let mut chance = 1.0;
    for known in 4..27 {
        let found = after(&retrieval, &passage[..4], &passage[4..known], None);
        assert_eq!(found.first().map(|found| found.0), Some(passage[known]));
        chance *= found[0].1;
    }
    // Stores draft paths that are at least this likely.
    assert!(chance > 0.1, "{chance}");
}

/// Returns the tokens that followed the longest suffix of at least two tokens in some text, with their
/// counts.
fn followers(texts: &[Vec<u32>], text: &[u32], longest: usize) -> BTreeMap<u32, usize> {
    let begin = text.len().saturating_sub(longest);
    for begin in begin..text.len().saturating_sub(1) {
        let wanted = &text[begin..];
        let windows = texts.iter().flat_map(|text| text.windows(wanted.len() + 1));
        let mut found = BTreeMap::new();
        for window in windows.filter(|window| window.starts_with(wanted)) {
            *found.entry(window[wanted.len()]).or_default() += 1;
        }
        let is_there = (texts.iter()).any(|text| text.windows(wanted.len()).any(|window| window == wanted));
        if is_there {
            return found;
        }
    }
    BTreeMap::new()
}

fn tokens() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(0u32..4, 0..24)
}

proptest! {
    #[test]
    fn the_automaton_finds_the_longest_suffix_with_all_that_followed(
        texts in prop::collection::vec(tokens(), 0..6),
        text in tokens(),
    ) {
        let mut suffixes = Suffixes::new(BYTES);
        texts.iter().for_each(|text| suffixes.record(text));
        let mut found: Vec<u32> = after(&suffixes, &text, &[], None).into_iter().map(|(token, _)| token).collect();
        found.sort_unstable();
        let wanted: Vec<u32> = followers(&texts, &text, 32).into_keys().collect();
        prop_assert_eq!(found, wanted);
    }

    #[test]
    fn retrieval_counts_what_followed(corpus in prop::collection::vec(0u32..4, 0..200), text in tokens()) {
        let retrieval = Retrieval::new(corpus.clone()).expect("it is short");
        let found = after(&retrieval, &text, &[], None);
        let wanted = followers(&[corpus], &text, 16);
        prop_assert_eq!(found.len(), wanted.len());
        let all: f32 = found.iter().map(|(_, chance)| chance).sum();
        let places: usize = wanted.values().sum();
        for (token, chance) in found {
            let share = wanted[&token] as f32 / places as f32;
            prop_assert!((chance / all - share).abs() < 1e-5);
        }
    }
}

/// Guards against drafts that begin in one document and continue in the next, and against bytes that are not
/// counted.
#[test]
fn texts_of_a_corpus_do_not_run_into_each_other() {
    let texts = [vec![1, 2, 3], vec![4, 5, 1, 2], vec![], vec![6, 2]];
    let corpus = Retrieval::of_texts(texts.clone()).expect("it is short");
    assert_eq!(after(&corpus, &[9, 1, 2], &[], None), [(3, 1.0 / 3.0)]);
    assert_eq!(after(&corpus, &[2, 3], &[], None), []);
    assert_eq!(after(&corpus, &[3], &[4], None), []);
    assert_eq!(corpus.greatest(), Some(6));
    let tokens: usize = texts.iter().map(Vec::len).sum::<usize>() + texts.len() - 1;
    assert_eq!(corpus.bytes(), tokens * Retrieval::TOKEN_BYTES);
    let empty = Retrieval::of_texts([]).expect("it is short");
    assert_eq!((empty.greatest(), empty.bytes()), (None, 0));
    assert_eq!(after(&empty, &[1, 2], &[], None), []);
}

/// Returns every store, each with the bytes that it may hold.
fn stores(bytes: usize) -> Vec<Box<dyn Predictor>> {
    vec![
        Box::new(Recycling::new(bytes)),
        Box::new(Trigram::new(bytes)),
        Box::new(NGrams::new(bytes)),
        Box::new(StateKeyed::new(bytes)),
        Box::new(Consensus::new(bytes)),
        Box::new(Suffixes::new(bytes)),
        Box::new(Phrases::new(4, bytes)),
    ]
}

#[test]
fn no_store_outgrows_its_bytes_and_all_of_them_go_on_learning() {
    for (number, mut store) in stores(1 << 16).into_iter().enumerate() {
        for round in 0..2_000_u32 {
            let text: Vec<u32> = (0..40)
                .map(|at| round.wrapping_mul(7919) % 997 * 64 + at)
                .collect();
            let row = [(text[39], 1.0)];
            for end in 2..text.len() {
                learn(&mut *store, &text[..end], Some(round.into()), &row, text[end]);
            }
            store.record(&text);
            assert!(
                store.bytes() <= 1 << 16,
                "store {number}: {} bytes",
                store.bytes()
            );
            let known = after(&*store, &text[..20], &[], Some(round.into()));
            assert!(!known.is_empty(), "store {number} forgot the last text");
        }
    }
}

/// Returns the parts that a store saves.
fn saved(store: &dyn Predictor) -> Vec<(&'static str, Vec<u8>)> {
    let mut parts = Vec::new();
    store.save(&mut |name, part| parts.push((name, part)));
    parts
}

/// Generates texts with the state at which each was seen, and the likely tokens there.
fn lessons() -> impl Strategy<Value = Vec<(Vec<u32>, u64, Vec<u32>)>> {
    let row = prop::collection::btree_set(0u32..50, 1..9).prop_map(|row| row.into_iter().collect());
    prop::collection::vec((tokens(), 0u64..4, row), 0..40)
}

proptest! {
    /// A restored store predicts the same as the saved one and learns the same afterwards, however small it
    /// is.
    #[test]
    fn a_store_that_is_restored_is_the_one_that_was_saved(lessons in lessons(), kib in 1usize..64) {
        let bytes = kib << 10;
        for kind in 0..4 {
            let mut store = stores(bytes).swap_remove(kind);
            for half in lessons.chunks(lessons.len() / 2 + 1) {
                for (text, state, row) in half {
                    let chance = 1.0 / row.len() as f32;
                    let row: Vec<(u32, f32)> = row.iter().map(|&token| (token, chance)).collect();
                    learn(&mut *store, text, Some(*state), &row, row[0].0);
                }
                let mut new = stores(bytes).swap_remove(kind);
                for (name, part) in saved(&*store) {
                    prop_assert!(part.len() <= store.bytes());
                    prop_assert!(new.restore(name, &part));
                    prop_assert!(!new.restore("somebody else's", &part));
                }
                prop_assert_eq!(saved(&*new), saved(&*store));
                for (text, state, _) in &lessons {
                    prop_assert_eq!(after(&*new, text, &[], Some(*state)), after(&*store, text, &[], Some(*state)));
                }
                store = new;
            }
        }
    }

    /// The content of a file is never trusted: predictions stay well-formed, and bytes bounded.
    #[test]
    fn what_is_no_row_is_left_out(part in prop::collection::vec(any::<u8>(), 0..400), at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let mut taught = Recycling::new(BYTES);
        (0..30).for_each(|token| learn(&mut taught, &[token], None, &[(token, 0.5), (9, 0.25)], 9));
        let mut changed = saved(&taught)[0].1.clone();
        let place = at.index(changed.len());
        changed[place] = to;
        for part in [part, changed] {
            let mut store = Recycling::new(1 << 12);
            prop_assert!(store.restore("recycling 1", &part));
            prop_assert!(store.bytes() <= 1 << 12);
            (0..30).for_each(|token| _ = after(&store, &[token], &[], None));
        }
    }
}

/// The saved parts of several predictors are restored to their owners, in whatever order the predictors are.
#[test]
fn a_combination_restores_what_its_layers_saved() {
    let layers = |names: [&str; 2]| {
        let layers = names.map(|name| match name {
            "keyed" => Layer::new(StateKeyed::new(BYTES)),
            _ => Layer::new(Recycling::new(BYTES)),
        });
        Combined::new(layers.into(), Union::First)
    };
    let mut taught = layers(["keyed", "recycling"]);
    learn(&mut taught, &[1, 2], Some(7), &[(3, 0.5)], 3);
    learn(&mut taught, &[4], None, &[(5, 0.5)], 5);
    let mut other = layers(["recycling", "keyed"]);
    for (name, part) in saved(&taught) {
        assert!(other.restore(name, &part), "{name}");
    }
    assert!(!other.restore("state-keyed 0", &[]));
    for (text, state) in [(&[1, 2][..], Some(7)), (&[4], None), (&[2], None)] {
        assert_eq!(
            after(&*other.layers[0].predictor, text, &[], state),
            after(&*taught.layers[1].predictor, text, &[], state)
        );
        assert_eq!(
            after(&*other.layers[1].predictor, text, &[], state),
            after(&*taught.layers[0].predictor, text, &[], state)
        );
    }
}
