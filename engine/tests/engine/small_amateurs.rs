//! Contrasts with the draft model: an answer is that of a model whose rows are the combined ones, whether or
//! not that model also drafts.

use crate::branches::answers;
use crate::contrast::{requests, told};
use crate::drafting::Broken;
use crate::laws::{agrees, vocabulary};
use crate::residual;
use crate::rig::{
    WIDTH, drafting, generate, start, vocabulary as letters_vocabulary, wait_until, wordy_script,
};
use lexiform_engine::{
    AmateurRows, Contrast, ContrastWith, Engine, EngineConfig, EngineError, Event, Model, Refusal, Request,
    Sampling, ScriptedModel, Speculation, Verification,
};
use lexiform_law::Allowed;
use std::collections::BTreeMap;
use std::sync::mpsc::channel;

fn contrast() -> Contrast {
    Contrast::beyond(0.0, 0.5)
}

fn contrasted(request: Request) -> Request {
    let contrast = Some(ContrastWith {
        amateur: AmateurRows::DraftModel,
        contrast: contrast(),
    });
    Request {
        sampling: Sampling {
            contrast,
            ..request.sampling.clone()
        },
        ..request
    }
}

/// The rows of the small model.
fn small_script(prefix: &[u32]) -> Vec<f32> {
    wordy_script(&[prefix, &[1]].concat())
}

fn combined_script(prefix: &[u32]) -> Vec<f32> {
    let mut row = wordy_script(prefix);
    let combined = contrast().combine(&mut row, &small_script(prefix), Allowed::All);
    combined.unwrap();
    row
}

fn scripted(script: impl Fn(&[u32]) -> Vec<f32> + Send + 'static, context: usize) -> Box<dyn Model> {
    Box::new(ScriptedModel::new(WIDTH, context, script))
}

fn engine(context: usize, config: EngineConfig) -> Engine {
    let draft = scripted(small_script, context);
    let model = scripted(wordy_script, 10_000);
    Engine::start(model, Some(draft), letters_vocabulary(), config).unwrap()
}

fn compare(config: &EngineConfig) {
    let plain = start(combined_script, drafting());
    let tested = engine(10_000, config.clone());
    for drafts in [true, false] {
        for (name, mut request) in requests() {
            // By the residual rule, the draft model would change the text of the seed.
            request.speculation.verification = Verification::DrawOnce;
            request.speculation.model &= drafts;
            let wanted: Vec<_> = answers(&plain, request.clone()).iter().map(told).collect();
            let got: Vec<_> = answers(&tested, contrasted(request)).iter().map(told).collect();
            assert_eq!(wanted, got, "{name}, {drafts}");
        }
    }
    wait_until(&tested, |stats| stats.running == 0 && stats.blocks_used == 0);
    assert!(!tested.stats().draft_model_failed);
}

#[test]
fn an_answer_is_that_of_the_model_combined_with_the_small_one() {
    compare(&drafting());
}

/// Guards against rows of a text of which only a piece was read.
#[test]
fn pieces_and_small_blocks_change_nothing() {
    compare(&EngineConfig {
        block_size: 3,
        blocks: 1000,
        prompt_piece: 5,
        max_step_tokens: 7,
        ..drafting()
    });
}

/// Guards against answers without rows where the small model's cache is full of other texts.
#[test]
fn a_full_cache_changes_nothing() {
    let config = EngineConfig {
        block_size: 4,
        blocks: 40,
        max_running: 8,
        ..drafting()
    };
    let plain = start(combined_script, drafting());
    let tested = engine(10_000, config);
    let request = |seed: u64| {
        let prompt: Vec<u32> = (0..40).map(|place| (place * 7 + seed as u32) % 26).collect();
        Request::new(prompt, 30)
            .sampling(Sampling::seeded(seed))
            .speculation(Speculation::none())
    };
    let running: Vec<_> = (0..6)
        .map(|seed| {
            let (sender, events) = channel();
            let sink = Box::new(move |event| sender.send(event).is_ok());
            (tested.submit(contrasted(request(seed)), sink).unwrap(), events)
        })
        .collect();
    for (seed, (_ticket, events)) in (0..).zip(running) {
        let tokens = |event: Event| match event {
            Event::Token { token, .. } => Some(token),
            Event::Failed(error) => panic!("{error}"),
            Event::Done(_) => None,
        };
        let got: Vec<u32> = events.iter().filter_map(tokens).collect();
        assert_eq!(got, generate(&plain, request(seed)).tokens(), "{seed}");
    }
}

/// The rows of the two models that the texts of [`residual`] are written by, combined.
fn law() -> BTreeMap<String, f64> {
    let shares = |answer: &[u32]| {
        let logs = |shares: [f32; 3]| shares.map(f32::ln).to_vec();
        let mut row = logs(residual::model(answer));
        contrast()
            .combine(&mut row, &logs(residual::draft(answer)), Allowed::All)
            .unwrap();
        let weights: Vec<f64> = row.iter().map(|&logit| f64::from(logit).exp()).collect();
        let mass: f64 = weights.iter().sum();
        weights
            .into_iter()
            .map(move |weight| weight / mass)
            .collect::<Vec<f64>>()
    };
    let mut law = BTreeMap::new();
    let mut open: Vec<(Vec<u32>, f64)> = vec![(Vec::new(), 1.0)];
    while let Some((answer, probability)) = open.pop() {
        let name: String = answer.iter().map(ToString::to_string).collect();
        if answer.len() == 3 {
            *law.entry(name).or_insert(0.0) += probability;
            continue;
        }
        let shares = shares(&answer);
        *law.entry(name).or_insert(0.0) += probability * shares[2];
        for token in 0..2 {
            open.push((
                [&answer[..], &[token]].concat(),
                probability * shares[token as usize],
            ));
        }
    }
    law
}

/// Speculative contrastive decoding: the amateur drafts, and its own row is what its drafts are judged by.
#[test]
fn drafts_of_the_amateur_leave_the_combined_law_alone() {
    let scripted = |law| Box::new(ScriptedModel::new(3, 100, residual::script(law))) as Box<dyn Model>;
    let draft = Some(scripted(residual::draft));
    let engine = Engine::start(scripted(residual::model), draft, vocabulary(), drafting()).unwrap();
    let (law, count) = (law(), 6000);
    let law: Vec<(&str, f64)> = law.iter().map(|(text, share)| (text.as_str(), *share)).collect();
    let (mut shares, mut accepted) = (BTreeMap::new(), 0);
    for seed in 0..count {
        let request = Request::new(vec![0], 3)
            .sampling(Sampling::seeded(seed))
            .speculation(Speculation {
                model: true,
                max_draft: 3,
                ..Speculation::none()
            });
        let heard = generate(&engine, contrasted(request));
        accepted += heard.outcome().accepted;
        *shares.entry(residual::text(&heard)).or_insert(0.0) += 1.0 / count as f64;
    }
    agrees(&shares, &law, count);
    assert!(accepted as u64 > count / 4, "{accepted}");
}

#[test]
fn a_contrast_without_a_small_model_or_beyond_its_context_is_refused() {
    let refused = |engine: &Engine, max_tokens| {
        let request = contrasted(Request::new(vec![0; 8], max_tokens));
        let (sender, _events) = channel();
        let sink = Box::new(move |event| sender.send(event).is_ok());
        engine.submit(request, sink).err()
    };
    let without = start(wordy_script, drafting());
    assert!(matches!(refused(&without, 4), Some(Refusal::Invalid { name, .. }) if name == "contrast.model"));
    let with = engine(12, drafting());
    assert_eq!(refused(&with, 4), None);
    assert!(matches!(
        refused(&with, 5),
        Some(Refusal::TooLong { limit: 12, .. })
    ));
}

/// Guards against answers that go on without their contrast.
#[test]
fn where_the_small_model_fails_the_answer_fails() {
    let model = scripted(wordy_script, 10_000);
    let engine = Engine::start(model, Some(Box::new(Broken)), letters_vocabulary(), drafting()).unwrap();
    let write = || {
        let request = contrasted(Request::new(vec![0; 8], 30));
        generate(&engine, request.speculation(Speculation::none()))
    };
    for _ in 0..2 {
        assert!(matches!(write().failure(), Some(EngineError::Model(_))));
    }
    assert!(engine.stats().draft_model_failed);
    let plain = Request::new(vec![0; 8], 30);
    assert_eq!(generate(&engine, plain).outcome().completion_tokens, 30);
}
