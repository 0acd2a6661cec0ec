//! Answers of one request that learn from each other: the texts of a seed do not depend on drafts, on the
//! sizes of passes, or on other requests.

use crate::branches::answers;
use crate::laws::{self, agrees};
use crate::rig::{
    Heard, Redraw, WIDTH, drafting, generate, global, grammar, grammar_over, letters, listen, vocabulary,
    wordy_script,
};
use lexiform_engine::{
    Drafting, Draw, Engine, EngineConfig, Law, LawTag, Model, Request, Sampling, ScriptedModel, Speculation,
    Verification,
};
use std::collections::BTreeMap;

const ASAP: Law = Law::Asap {
    share_attempts: false,
};

/// With parts that are forced, parts that others copy, and parts where the model writes something else.
const PATTERN: &str = "(quick|the [a-f]{2}|ab) (fox|the) [0-4]{1,2}";

fn engine(config: EngineConfig) -> Engine {
    let model = || Box::new(ScriptedModel::new(WIDTH, 100_000, wordy_script));
    let draft = Some(model() as Box<dyn Model>);
    Engine::start(model(), draft, vocabulary(), config).unwrap()
}

/// How a request drafts that must get the text of its seed.
fn once(speculation: Speculation) -> Speculation {
    Speculation {
        verification: Verification::DrawOnce,
        ..speculation
    }
}

fn request(law: Law, seed: u64) -> Request {
    Request::new(letters("a fox and the quick fox"), 30)
        .task(Draw {
            law,
            answers: 16,
            ..Draw::default()
        })
        .grammar(grammar(PATTERN))
        .sampling(Sampling::seeded(seed))
        .speculation(once(Speculation::none()))
}

/// The texts of a request, with the numbers that they report.
fn texts(engine: &Engine, request: Request) -> Vec<(String, usize, Option<f64>)> {
    let reported = |heard: Heard| {
        let outcome = heard.outcome();
        (heard.text(), outcome.attempts, outcome.log_weight)
    };
    answers(engine, request).into_iter().map(reported).collect()
}

/// Guards against answers that learn from whichever is ahead: that depends on drafts, and on the room in
/// passes.
#[test]
fn the_texts_of_a_seed_do_not_depend_on_drafts_or_passes() {
    let narrow = EngineConfig {
        max_step_tokens: 7,
        ..drafting()
    };
    let few = EngineConfig {
        max_running: 3,
        drafting: Drafting::Always,
        ..EngineConfig::default()
    };
    let engines = [EngineConfig::default(), drafting(), narrow, few].map(engine);
    let all = Speculation::all();
    let stores = Speculation { model: false, ..all };
    for law in [global(1000), ASAP] {
        for seed in 0..3 {
            let wanted = texts(&engines[0], request(law, seed));
            let differ: std::collections::BTreeSet<_> = wanted.iter().map(|(text, ..)| text).collect();
            assert!(differ.len() > 3, "{wanted:?}");
            for (number, engine) in engines.iter().enumerate() {
                for speculation in [Speculation::none(), stores, all] {
                    let request = request(law, seed).speculation(once(speculation));
                    assert_eq!(
                        texts(engine, request),
                        wanted,
                        "{law:?}, seed {seed}, engine {number}, {speculation:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_texts_of_a_seed_do_not_depend_on_other_requests() {
    let config = EngineConfig {
        max_running: 5,
        max_step_tokens: 9,
        ..drafting()
    };
    let engine = engine(config);
    for law in [global(1000), ASAP] {
        let wanted = texts(&engine, request(law, 7));
        for others in [1, 4] {
            let other = |seed| {
                let request = Request::new(letters("the lazy dog"), 40).sampling(Sampling::seeded(seed));
                listen(&engine, request.speculation(Speculation::all()))
            };
            let company: Vec<_> = (0..others).map(other).collect();
            assert_eq!(texts(&engine, request(law, 7)), wanted, "beside {others}");
            drop(company);
        }
    }
}

/// An answer learns from those before it alone, so that it does not matter how many follow it.
#[test]
fn an_answer_is_the_same_among_more() {
    let engine = engine(drafting());
    for law in [global(1000), ASAP] {
        let wanted = texts(&engine, request(law, 3));
        for count in [1, 2, 5] {
            assert_eq!(texts(&engine, request(law, 3).answers(count)), wanted[..count]);
        }
        let best = |speculation| {
            let request = request(law, 3).answers(2).best_of(9);
            texts(&engine, request.speculation(once(speculation)))
        };
        assert_eq!(best(Speculation::none()), best(Speculation::all()));
    }
}

/// Guards against a fixed order that is bought with learning nothing.
#[test]
fn answers_of_a_seed_learn_from_each_other() {
    let engine = engine(drafting());
    let attempts = |request: Request| -> usize {
        let heard = answers(&engine, request);
        heard.iter().map(|heard| heard.outcome().attempts).sum()
    };
    let together: usize = (0..8).map(|seed| attempts(request(global(1000), seed))).sum();
    let alone = |stream| {
        let alone = |seed| {
            let sampling = Sampling {
                stream,
                ..Sampling::seeded(seed)
            };
            attempts(request(global(1000), seed).answers(1).sampling(sampling))
        };
        (0..8).map(alone).sum::<usize>()
    };
    let alone: usize = (0..16).map(alone).sum();
    assert!(
        2 * together < alone,
        "{together} attempts, {alone} of answers asked for alone"
    );
}

/// The law of the answers is exact, whichever answer they are.
#[test]
fn answers_that_learn_in_turn_have_the_global_law() {
    let engine = laws::engine(EngineConfig::default());
    let count = 2000;
    let mut shares = vec![BTreeMap::new(); 4];
    for seed in 0..count {
        let request = laws::request(global(1000), seed).answers(4);
        let request = request.speculation(once(Speculation::none()));
        for (answer, heard) in answers(&engine, request).iter().enumerate() {
            assert_eq!(heard.outcome().law, LawTag::GlobalExact);
            *shares[answer].entry(laws::text(heard)).or_insert(0.0) += 1.0 / count as f64;
        }
    }
    for shares in &shares {
        agrees(shares, &laws::GLOBAL, count);
    }
}

/// Guards against answers that wait for ever for one whose client has left.
#[test]
fn an_answer_that_is_cancelled_holds_nobody_up() {
    let engine = engine(drafting());
    let heard = crate::branches::all_but_the_first(&engine, request(global(1000), 5));
    assert!(
        heard
            .iter()
            .all(|heard| heard.outcome().law == LawTag::GlobalExact)
    );
    assert_eq!(heard.len(), 15);
    let failing = request(global(1), 5).grammar(grammar_over(&vocabulary(), "[0-9]{9}"));
    let failed = answers(&engine, failing);
    assert!(failed.iter().all(|heard| heard.failure().is_some()));
    let again = generate(&engine, request(ASAP, 1).answers(1));
    assert_eq!(again.outcome().law, LawTag::Asap);
}
