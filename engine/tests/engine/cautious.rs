//! Cautious next token prediction: the drawn tokens, and the positions at which several continuations are
//! tried.

use crate::rig::{Heard, wait_until};
use crate::searches::{CASES, END, EXACT, answers, engine, found, request, texts, vocabulary};
use lexiform_engine::{
    Diagnostics, Engine, EngineConfig, LawTag, Reporting, Sampling, ScriptedModel, Search, Task,
};
use std::collections::BTreeMap;

pub(crate) fn cautious(trials: usize, low_entropy: f64, high_entropy: f64) -> Search {
    Search::Cntp {
        trials,
        low_entropy,
        high_entropy,
        trial_tokens: 3,
    }
}

fn drawn(engine: &Engine, search: impl Into<Option<Search>>, seed: u64) -> Heard {
    let request = request(EXACT, "[a-d]{4,8}", 9, 1)
        .task(match search.into() {
            Some(search) => Task::Search { search, answers: 1 },
            None => Task::default(),
        })
        .sampling(Sampling::seeded(seed))
        .reporting(Reporting {
            weigh_end: true,
            ..Reporting::default()
        });
    answers(engine, request).remove(0)
}

/// Where no row is unsure enough, tokens are drawn as usual; where all are, the texts are likelier.
#[test]
fn trials_are_made_where_the_model_is_unsure() {
    let engine = engine(2, EngineConfig::default());
    let (mut plain, mut careful, mut rows) = (0.0, 0.0, 0);
    let mut texts = (BTreeMap::new(), BTreeMap::new());
    for seed in 0..200 {
        let local = drawn(&engine, None, seed);
        let sure = drawn(&engine, Some(cautious(8, 100.0, 100.0)), seed);
        assert_eq!(local.tokens(), sure.tokens());
        let outcome = sure.outcome();
        let Some(Diagnostics::Search { rows: own, .. }) = outcome.diagnostics else {
            panic!("{outcome:?}");
        };
        assert_eq!((own, outcome.law), (outcome.completion_tokens, LawTag::Cntp));
        let tried = drawn(&engine, Some(cautious(8, 0.0, 0.0)), seed);
        let (text, score, own) = found(&tried, LawTag::Cntp);
        let outcome = tried.outcome();
        assert!((score - outcome.log_probability / outcome.completion_tokens as f64).abs() < 1e-9);
        plain += local.outcome().log_probability / local.outcome().completion_tokens as f64;
        careful += score;
        rows += own;
        *texts.0.entry(local.tokens()).or_insert(0) += 1;
        *texts.1.entry(text).or_insert(0) += 1;
    }
    println!(
        "mean ln p of a token: {} as drawn, {} with trials; rows of an answer: {}",
        plain / 200.0,
        careful / 200.0,
        rows / 200
    );
    assert!(careful / 200.0 > plain / 200.0 + 0.3);
    assert!(
        texts.1.len() < texts.0.len() && texts.1.len() > 1,
        "it is still left to chance"
    );
    wait_until(&engine, |stats| stats.blocks_used == 0 && stats.running == 0);
}

/// Two trials of a token that is one of two: the unlikely one is kept if both drew it. It may be a letter, or
/// the end itself.
#[test]
fn the_likeliest_of_two_trials_is_kept() {
    for (pattern, first, rare) in [
        ("[ab]", [0.7, 0.3, 0.0, 0.0, 0.0], &[1][..]),
        ("a?", [0.7, 0.0, 0.0, 0.0, 0.3], &[]),
    ] {
        let script = move |prefix: &[u32]| {
            let row: [f32; 5] = match prefix {
                [_] => first,
                _ => [0.0, 0.0, 0.0, 0.0, 1.0],
            };
            row.iter().map(|p| p.ln()).collect()
        };
        let model = ScriptedModel::new(5, 100, script);
        let engine = Engine::start(Box::new(model), None, vocabulary(), EngineConfig::default()).unwrap();
        let count = 2_000;
        let unlikely = (0..count).filter(|&seed| {
            let request = request(cautious(2, 0.0, 0.5), pattern, 3, 1).sampling(Sampling::seeded(seed));
            answers(&engine, request)[0].tokens() == rare
        });
        let (found, expected) = (unlikely.count() as f64 / count as f64, 0.09);
        assert!((found - expected).abs() < 0.03, "{pattern}: {found}");
        wait_until(&engine, |stats| stats.blocks_used == 0 && stats.running == 0);
    }
}

/// The score and `ln P` are of the text with its end, as those of other searches, whether trials were made or
/// not, and without asking for the weight of the end.
#[test]
fn the_end_is_part_of_the_score() {
    let engine = engine(3, EngineConfig::default());
    for (pattern, max_tokens) in CASES {
        let texts = texts(pattern, max_tokens, 3);
        for (low, high) in [(0.0, 0.0), (0.3, 1.0), (100.0, 100.0)] {
            for seed in 0..10 {
                let request = request(cautious(3, low, high), pattern, max_tokens, 1);
                let heard = answers(&engine, request.sampling(Sampling::seeded(seed))).remove(0);
                let (text, score, _) = found(&heard, LawTag::Cntp);
                let (_, total) = texts.iter().find(|other| other.0 == text).expect("a text");
                let own = heard.outcome().log_probability;
                assert!((own - total).abs() < 1e-4, "{pattern} {text:?}: {own} {total}");
                let tokens = (text.len() + 1) as f64;
                assert!(
                    (score - total / tokens).abs() < 1e-4,
                    "{pattern} {text:?}: {score}"
                );
            }
        }
    }
    wait_until(&engine, |stats| stats.blocks_used == 0 && stats.running == 0);
}

/// What was kept is told as it is kept, and several answers are independent of each other.
#[test]
fn cautious_answers_are_whole_and_several() {
    let engine = engine(1, EngineConfig::default());
    for seed in 0..20 {
        let request =
            request(cautious(4, 0.2, 1.0), "(ab|cd|a|d){2,9}", 16, 3).sampling(Sampling::seeded(seed));
        let grammar = request.constraints.grammar.clone().unwrap();
        for heard in answers(&engine, request) {
            let step = |state, token: &u32| grammar.step(state, *token).expect("a text of the grammar");
            let end = heard.tokens().iter().fold(grammar.start(), step);
            assert!(grammar.mask(end).contains(END), "{heard:?}");
        }
    }
    wait_until(&engine, |stats| stats.blocks_used == 0 && stats.running == 0);
    for seed in 0..10 {
        let request =
            request(cautious(4, 0.0, 0.0), "[a-d]{100,200}", 300, 1).sampling(Sampling::seeded(seed));
        crate::rig::listen(&engine, request).cancel();
    }
    wait_until(&engine, |stats| {
        stats.blocks_used == 0 && stats.running == 0 && stats.waiting == 0
    });
}
