//! Drawing on several threads: what is drawn is the same as on one.

use crate::rig::{Heard, WIDTH, grammar, letters, listen, vocabulary, wordy_script};
use lexiform_engine::{
    Engine, EngineConfig, LawChoice, LogprobsOf, Request, Sampling, ScriptedModel, Speculation,
};

/// Logits that real models have beyond the vocabulary, so many that threads are worth it.
const WIDE: usize = 1 << 16;

fn wide(prefix: &[u32]) -> Vec<f32> {
    let mut row = wordy_script(prefix);
    row.resize(WIDE, 3.0);
    row
}

fn engine(draw_threads: usize) -> Engine {
    let model = |script: fn(&[u32]) -> Vec<f32>| Box::new(ScriptedModel::new(WIDE, 1000, script));
    let config = EngineConfig {
        draw_threads,
        ..EngineConfig::default()
    };
    // The draft model is wrong about every other token.
    let draft = |prefix: &[u32]| match prefix.len() % 2 {
        0 => wide(prefix),
        _ => wide(&prefix[1..]),
    };
    Engine::start(model(wide), Some(model(draft)), vocabulary(), config).unwrap()
}

fn request(number: u64) -> Request {
    let constrained = !number.is_multiple_of(4);
    let global = LawChoice::Global { max_attempts: 2000 };
    Request {
        grammar: constrained.then(|| grammar("[a-z ]{2,5}(the|[0-9]{1,3})")),
        law: if number % 4 == 1 { global } else { LawChoice::Local },
        sampling: Sampling::seeded(number),
        speculation: if number % 3 == 1 {
            Speculation::none()
        } else {
            Speculation::all()
        },
        logprobs: Some(2),
        logprobs_of: if number.is_multiple_of(2) {
            LogprobsOf::Model
        } else {
            LogprobsOf::Allowed
        },
        ..Request::new(letters("ab"), 12)
    }
}

fn answers(draw_threads: usize) -> Vec<Heard> {
    let engine = engine(draw_threads);
    let listeners: Vec<_> = (0..24).map(|number| listen(&engine, request(number))).collect();
    listeners.into_iter().map(|listener| listener.wait()).collect()
}

#[test]
fn threads_change_no_draw() {
    const { assert!(WIDE > WIDTH) };
    let alone = answers(1);
    for (number, (one, many)) in alone.iter().zip(answers(8)).enumerate() {
        assert!(!one.tokens().is_empty(), "{number}: {one:?}");
        assert_eq!(
            one.tokens_without_origin(),
            many.tokens_without_origin(),
            "{number}"
        );
        let (one, many) = (one.outcome(), many.outcome());
        assert_eq!(
            (
                one.finish,
                one.law,
                one.log_probability,
                one.log_weight,
                one.attempts
            ),
            (
                many.finish,
                many.law,
                many.log_probability,
                many.log_weight,
                many.attempts
            ),
            "{number}"
        );
    }
}
