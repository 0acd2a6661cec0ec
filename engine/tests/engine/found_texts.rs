//! The number of texts that a search finds: each once, however it is tokenised, and fewer than were asked for
//! where there are no more.

use crate::rig::{Heard, grammar_over, wait_until};
use crate::searches::{
    CASES, END, EXACT, Listed, SALTS, answers, beam, begins, engine, found, request, row, texts,
};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform_engine::{
    Diagnostics, Engine, EngineConfig, EngineError, LawTag, Request, Sampling, ScriptedModel, Search, Task,
};
use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

/// Tokens that write most texts in several ways.
const SPELLED: [&str; 4] = ["a", "b", "ab", "ba"];

/// Few texts of many token sequences, with the number of texts.
const FEW: [(&str, usize, usize); 4] = [
    ("abab|ba", 6, 2),
    ("(ab|ba){1,3}", 8, 14),
    ("a|ab|aba", 5, 3),
    ("b", 4, 1),
];

fn spelled() -> Arc<Vocabulary> {
    static VOCABULARY: LazyLock<Arc<Vocabulary>> = LazyLock::new(|| {
        let tokens = SPELLED.map(|text| (TokenKind::Text, text));
        let tokens = [&tokens[..], &[(TokenKind::Special, "$")]].concat();
        Arc::new(Vocabulary::new(&tokens, &[END]).unwrap())
    });
    VOCABULARY.clone()
}

fn spelling_engine(salt: u64) -> Engine {
    let script = move |prefix: &[u32]| row(&prefix[1..], salt).iter().map(|p| p.ln() as f32).collect();
    let model = ScriptedModel::new(END as usize + 1, 1_000, script);
    Engine::start(Box::new(model), None, spelled(), EngineConfig::default()).unwrap()
}

fn text_of(tokens: &[u32]) -> String {
    tokens.iter().map(|&token| SPELLED[token as usize]).collect()
}

/// All token sequences of at most `max_tokens` tokens with their end, and `ln P` of each, the likeliest
/// first.
fn sequences(pattern: &str, max_tokens: usize, salt: u64) -> Vec<(Vec<u32>, f64)> {
    let grammar = grammar_over(&spelled(), pattern);
    let mut sequences = Vec::new();
    let mut prefixes = vec![(Vec::new(), 0.0, grammar.start())];
    while let Some((prefix, total, state)) = prefixes.pop() {
        for token in grammar.mask(state).iter() {
            let total: f64 = total + row(&prefix, salt)[token as usize].ln();
            if token == END {
                sequences.push((prefix.clone(), total));
            } else if prefix.len() + 2 <= max_tokens {
                let longer = [&prefix[..], &[token]].concat();
                prefixes.push((longer, total, grammar.step(state, token).unwrap()));
            }
        }
    }
    sequences.sort_by(|one, other| other.1.total_cmp(&one.1));
    sequences
}

/// The best token sequence of each text, in the order given.
fn once(sequences: &[(Vec<u32>, f64)]) -> Vec<(Vec<u32>, f64)> {
    let mut told = HashSet::new();
    let new = sequences
        .iter()
        .filter(|(tokens, _)| told.insert(text_of(tokens)));
    new.cloned().collect()
}

fn spelling(search: Search, (pattern, max_tokens): (&str, usize), answers: usize) -> Request {
    Request::new(vec![0], max_tokens)
        .task(Task::Search { search, answers })
        .grammar(Some(grammar_over(&spelled(), pattern)))
        .sampling(Sampling::seeded(1))
}

/// Checks that the answers are these texts, and that the others say how many there are.
fn tells(engine: &Engine, request: Request, tag: LawTag, expected: &[(Vec<u32>, f64)]) {
    let told = format!("{:?} {}", request.task, request.limits.max_tokens);
    let wanted = request.task.answers();
    let count = expected.len().min(wanted);
    for (number, heard) in answers(engine, request).iter().enumerate() {
        let Some((tokens, score)) = expected.get(number) else {
            let few = EngineError::FewTexts { found: count };
            assert_eq!(heard.failure(), Some(&few), "{told}");
            continue;
        };
        let (own, own_score, _) = found(heard, tag);
        assert_eq!(&own, tokens, "{told}: answer {number} of {expected:?}");
        assert!((own_score - score).abs() < 1e-4, "{told}: {own_score} {score}");
        let Some(Diagnostics::Search { found, met, .. }) = heard.outcome().diagnostics else {
            panic!("{heard:?}");
        };
        assert_eq!((found, met), (Some(count), None), "{told}");
    }
    wait_until(engine, |stats| stats.blocks_used == 0 && stats.running == 0);
}

/// The likeliest token sequence of each text, and no text twice.
#[test]
fn a_text_of_several_token_sequences_is_found_once() {
    for salt in 0..SALTS {
        let engine = spelling_engine(salt);
        for (pattern, max_tokens, count) in FEW {
            let all = sequences(pattern, max_tokens, salt);
            let expected = once(&all);
            assert_eq!(expected.len(), count);
            for wanted in [1, 2, 4, 16] {
                let request = |search| spelling(search, (pattern, max_tokens), wanted);
                tells(&engine, request(EXACT), LawTag::KBest, &expected);
                let wide = (200, 0.0);
                tells(&engine, request(beam(wide.0, wide.1)), LawTag::Beam, &expected);
                let best_first = Search::BestFirstBeam {
                    width: wide.0,
                    length_penalty: wide.1,
                };
                tells(&engine, request(best_first), LawTag::BestFirstBeam, &expected);
            }
        }
    }
    let repeats = FEW.map(|(pattern, max_tokens, count)| sequences(pattern, max_tokens, 0).len() - count);
    assert!(repeats[..3].iter().all(|&repeats| repeats > 0), "{repeats:?}");
}

/// Texts that several groups found in different tokens are told once, and each group looks for as many as are
/// wanted.
#[test]
fn a_text_that_groups_found_in_different_tokens_is_told_once() {
    let (groups, of_each, diversity, penalty) = (2, 2, 1.0, 1.0);
    for salt in 0..SALTS {
        let engine = spelling_engine(salt);
        for (pattern, max_tokens, _) in FEW {
            let begins = begins(&sequences(pattern, max_tokens, salt));
            let mut listed: Vec<Listed> = (0..groups).map(|_| Listed::new()).collect();
            while listed.iter().any(|group| !group.beams.is_empty()) {
                let mut taken: Vec<u32> = Vec::new();
                for group in &mut listed {
                    let times = |token| taken.iter().filter(|&&other| other == token).count() as f64;
                    let more = group.step((of_each, penalty), &begins, salt, |token| {
                        diversity * times(token)
                    });
                    taken.extend(more);
                }
            }
            let lists: Vec<_> = listed.iter().map(|group| once(&group.finished)).collect();
            let mut in_turn = Vec::new();
            for round in 0..lists.iter().map(Vec::len).max().unwrap_or(0) {
                let mut of_round: Vec<_> = lists.iter().filter_map(|list| list.get(round)).cloned().collect();
                of_round.sort_by(|one, other| other.1.total_cmp(&one.1));
                in_turn.extend(of_round);
            }
            let search = Search::DiverseBeam {
                width: groups * of_each,
                groups,
                diversity,
                length_penalty: penalty,
            };
            let request = spelling(search, (pattern, max_tokens), groups * of_each);
            tells(&engine, request, LawTag::DiverseBeam, &once(&in_turn));
        }
    }
}

/// Beam search with lists, which ends once so many texts are finished: after the token with which their
/// number is reached.
fn listed_with_patience(
    texts: &[(Vec<u32>, f64)],
    (width, penalty, patience): (usize, f64, f64),
    salt: u64,
) -> (Vec<(Vec<u32>, f64)>, usize) {
    let begins = begins(texts);
    let (mut listed, mut rows) = (Listed::new(), 0);
    while !listed.beams.is_empty() && (listed.finished.len() as f64) < patience * width as f64 {
        rows += listed.beams.len();
        listed.step((width, penalty), &begins, salt, |_| 0.0);
    }
    (listed.finished, rows)
}

#[test]
fn beams_end_when_their_patience_is_over() {
    let (mut shorter, mut others, mut fewer) = (0, 0, 0);
    for salt in 0..SALTS {
        let engine = engine(salt, EngineConfig::default());
        for (pattern, max_tokens) in CASES {
            let texts = texts(pattern, max_tokens, salt);
            for (width, penalty) in [(2, 0.0), (3, 1.0), (4, 2.0)] {
                let (all, _) = listed_with_patience(&texts, (width, penalty, f64::INFINITY), salt);
                for patience in [0.2, 0.5, 1.0, 1.5, 3.0] {
                    let (mut expected, rows) = listed_with_patience(&texts, (width, penalty, patience), salt);
                    expected.truncate(width);
                    let search = Search::Beam {
                        width,
                        length_penalty: penalty,
                        patience: Some(patience),
                    };
                    let request = request(search, pattern, max_tokens, width);
                    let first = answers(&engine, request.clone()).remove(0);
                    let (_, _, own) = found(&first, LawTag::Beam);
                    assert!(own <= rows, "{pattern} {width} {patience}: {own} {rows}");
                    tells(&engine, request, LawTag::Beam, &expected);
                    others += usize::from(expected[0] != all[0]);
                    fewer += usize::from(expected.len() < width.min(all.len()));
                    shorter += 1;
                }
            }
        }
    }
    println!("of {shorter} searches {others} end with another text, {fewer} with fewer");
    assert!(others > 10 && fewer > 10, "{others} {fewer}");
}

/// Every answer that there is a text for is told where the bound of an exact search is met, with that bound.
#[test]
fn a_search_that_met_its_bound_tells_what_it_has_found() {
    let engine = engine(2, EngineConfig::default());
    let search = Search::KBest {
        max_rows: 6,
        max_frontier: 1_000,
    };
    let heard = answers(&engine, request(search, CASES[1].0, CASES[1].1, 12));
    let whole: Vec<&Heard> = heard.iter().filter(|heard| heard.failure().is_none()).collect();
    assert!(!whole.is_empty() && whole.len() < 12);
    for heard in &whole {
        let Some(Diagnostics::Search { found, met, .. }) = heard.outcome().diagnostics else {
            panic!("{heard:?}");
        };
        assert_eq!((found, met), (Some(whole.len()), Some("max_rows")));
    }
}
