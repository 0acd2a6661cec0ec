//! Drafts that are drawn from what stores remember of rows: the law is the one without drafts, and a store
//! that remembers right rows is accepted as often as can be, at every temperature.

use crate::laws::{agrees, vocabulary};
use crate::residual::{PATTERN, draft, law, model, script, steady, text};
use crate::rig::{WIDTH, drafting, generate, grammar_over, vocabulary as letters_vocabulary};
use lexiform_engine::{
    DraftShape, DraftStores, Engine, EngineConfig, Learner, Model, Request, Sampling, ScriptedModel,
    Speculation, Verification,
};
use std::collections::BTreeMap;

const SAMPLED: Speculation = Speculation {
    forced: false,
    lookup: false,
    learned: true,
    siblings: false,
    model: false,
    candidates: 1,
    max_draft: 5,
    branches: 1,
    verification: Verification::Residual,
    sampled: true,
};

/// An engine with these stores, and a draft model if one is wanted.
fn engine(learners: &[Learner], shape: DraftShape, has_draft_model: bool) -> Engine {
    let scripted = |law| Box::new(ScriptedModel::new(3, 100, script(law))) as Box<dyn Model>;
    let config = EngineConfig {
        draft_stores: DraftStores {
            learners: learners.to_vec(),
            shape,
            ..DraftStores::default()
        },
        ..drafting()
    };
    let draft = has_draft_model.then(|| scripted(draft));
    Engine::start(scripted(model), draft, vocabulary(), config).unwrap()
}

/// Checks the law of the texts of many seeds, and that drafts were accepted.
fn check(engine: &Engine, grammar: bool, speculation: Speculation, count: u64) {
    let law = law(grammar);
    let law: Vec<(&str, f64)> = law.iter().map(|(text, share)| (text.as_str(), *share)).collect();
    let (mut shares, mut accepted) = (BTreeMap::new(), 0);
    for seed in 0..count {
        let request = Request::new(vec![0], 6)
            .grammar(grammar.then(|| grammar_over(&vocabulary(), PATTERN)))
            .sampling(Sampling::seeded(seed))
            .speculation(speculation);
        let heard = generate(engine, request);
        accepted += heard.outcome().accepted;
        *shares.entry(text(&heard)).or_insert(0.0) += 1.0 / count as f64;
    }
    agrees(&shares, &law, count);
    assert!(accepted as u64 > count / 2, "{accepted} accepted");
}

/// Guards against drafts that are dropped or kept for what they are: one that ends the text, or that the
/// tokens left do not allow.
#[test]
fn tokens_drawn_from_stores_leave_the_law_alone() {
    for (learners, shape) in [
        (&[Learner::Recycling][..], DraftShape::BestFirst),
        (&[Learner::NGrams], DraftShape::Recycling),
        (&DraftStores::default().learners, DraftShape::BestFirst),
    ] {
        let engine = engine(learners, shape, false);
        for grammar in [true, false] {
            check(&engine, grammar, SAMPLED, 3000);
        }
    }
}

/// A draft model draws beside the tokens of stores: its tokens are siblings that were drawn without those.
#[test]
fn a_draft_model_beside_tokens_of_stores_leaves_the_law_alone() {
    let engine = engine(&[Learner::Recycling], DraftShape::BestFirst, true);
    for grammar in [true, false] {
        for verification in [Verification::Residual, Verification::KSeq] {
            let both = Speculation {
                model: true,
                candidates: 2,
                max_draft: 7,
                verification,
                ..SAMPLED
            };
            check(&engine, grammar, both, 3000);
        }
    }
}

/// Returns how many drafts of a long text are accepted, of a model that always has the same row.
fn accepted(temperature: f32, sampled: bool) -> f64 {
    let config = EngineConfig {
        draft_stores: DraftStores {
            learners: vec![Learner::Recycling],
            ..DraftStores::default()
        },
        ..drafting()
    };
    let few = |row: Vec<f32>| {
        // A store remembers eight tokens of a row.
        let few = |(token, logit)| if token < 8 { logit } else { f32::NEG_INFINITY };
        (0..).zip(row).map(few).collect()
    };
    let script = move |_: &[u32]| few(steady(false));
    let model = Box::new(ScriptedModel::new(WIDTH, 10_000, script));
    let engine = Engine::start(model, None, letters_vocabulary(), config).unwrap();
    let request = Request::new(vec![0], 6000)
        .sampling(Sampling {
            temperature,
            ..Sampling::seeded(3)
        })
        .speculation(Speculation {
            max_draft: 1,
            sampled,
            ..SAMPLED
        })
        .ignore_eos(true);
    let outcome = generate(&engine, request).outcome().clone();
    outcome.accepted as f64 / outcome.drafted as f64
}

/// Guards against rows that are drawn from at another temperature than that of the request.
#[test]
fn right_rows_are_always_accepted_at_every_temperature() {
    for temperature in [1.0, 0.6, 1.7] {
        let (sampled, likeliest) = (accepted(temperature, true), accepted(temperature, false));
        assert!(sampled > 0.99, "{sampled} at {temperature}");
        assert!(likeliest < 0.8, "{likeliest} at {temperature}");
    }
}

/// The text of a seed is the one without drafts where drafts are verified by drawing once, and greedy texts
/// have no chance.
#[test]
fn nothing_is_drawn_where_drafts_are_verified_by_drawing_once() {
    let engine = engine(&[Learner::Recycling], DraftShape::BestFirst, false);
    for (verification, temperature) in [(Verification::DrawOnce, 1.0), (Verification::Residual, 0.0)] {
        for seed in 0..50 {
            let write = |speculation| {
                let sampling = Sampling {
                    temperature,
                    ..Sampling::seeded(seed)
                };
                let request = Request::new(vec![0], 6).sampling(sampling);
                text(&generate(&engine, request.speculation(speculation)))
            };
            let sampled = Speculation {
                verification,
                ..SAMPLED
            };
            assert_eq!(write(sampled), write(Speculation::none()), "{verification:?}");
        }
    }
}
