//! A model that drafts for itself without some of its layers: the draft is the model that its checkpoint
//! would be without them, and changes nothing that is written.

use crate::rig::{drafting, generate, wait_until};
use crate::torch::{Expected, FAMILIES, TOLERANCE, WIDTH, folder, vocabulary};
use lexiform_engine::{
    Device, Dtype, Engine, EngineConfig, Feed, LoadError, LoadOptions, LoadedModel, Model, ModelFiles,
    Request, Sampling, SelfDraft, SkippedLayers, Speculation, Verification, load,
};
use std::path::{Path, PathBuf};

fn options(fused: bool, draft_without: Option<SkippedLayers>) -> LoadOptions {
    LoadOptions {
        dtype: Dtype::F32,
        device: Device::Cpu,
        threads: 1,
        fused,
        draft_without,
        ..LoadOptions::default()
    }
}

fn without(folder: &Path, fused: bool, skipped: SkippedLayers) -> Result<LoadedModel, LoadError> {
    load(&ModelFiles::folder(folder), &options(fused, Some(skipped)))
}

/// The rows of all tokens of a text.
fn rows(model: &mut dyn Model, tokens: &[u32]) -> Vec<Vec<f32>> {
    model.create_cache(tokens.len(), 1).unwrap();
    let table: Vec<u32> = (0..tokens.len() as u32).collect();
    let feed = Feed {
        tokens,
        start: 0,
        table: &table,
        rows: tokens.len(),
        parents: None,
        scale: 1.0,
    };
    let logits = model.forward(&[feed]).unwrap();
    (0..tokens.len()).map(|row| logits.row(row).to_vec()).collect()
}

/// A copy of a checkpoint whose configuration has one layer less, the last one.
fn shortened(family: &str) -> PathBuf {
    let copy = std::env::temp_dir().join(format!("lexiform-shortened-{}-{family}", std::process::id()));
    std::fs::create_dir_all(&copy).unwrap();
    for file in std::fs::read_dir(folder(family)).unwrap() {
        let file = file.unwrap().path();
        std::fs::copy(&file, copy.join(file.file_name().unwrap())).unwrap();
    }
    let config = copy.join("config.json");
    let mut json: serde_json::Value = serde_json::from_slice(&std::fs::read(&config).unwrap()).unwrap();
    let text = match json.get("text_config") {
        Some(_) => &mut json["text_config"],
        None => &mut json,
    };
    for name in ["num_hidden_layers", "n_layer"] {
        if let Some(layers) = text[name].as_u64() {
            text[name] = (layers - 1).into();
        }
    }
    for name in ["layer_types", "no_rope_layers"] {
        if let Some(layers) = text[name].as_array_mut() {
            layers.pop();
        }
    }
    std::fs::write(&config, json.to_string()).unwrap();
    copy
}

#[test]
fn a_draft_is_what_a_checkpoint_without_the_layer_would_be() {
    for family in FAMILIES {
        let last = SkippedLayers::Named(vec![1]);
        let shorter = shortened(family);
        let tokens = Expected::read(family).tokens;
        for fused in [true, false] {
            let mut whole = without(&folder(family), fused, last.clone()).unwrap();
            let mut draft = whole.draft.take().unwrap();
            assert_eq!(draft.skipped, [1]);
            let before = rows(&mut *whole.model, &tokens);
            let found = rows(&mut *draft.model, &tokens);
            assert_eq!(
                before,
                rows(&mut *whole.model, &tokens),
                "{family}: the whole model is as it was"
            );
            let mut shorter = load(&ModelFiles::folder(&shorter), &options(fused, None)).unwrap();
            for (found, wanted) in found.iter().zip(rows(&mut *shorter.model, &tokens)) {
                for (found, wanted) in found.iter().zip(wanted) {
                    assert!(
                        (found - wanted).abs() < TOLERANCE,
                        "{family}: {found} and {wanted}"
                    );
                }
            }
        }
        std::fs::remove_dir_all(shorter).unwrap();
    }
}

#[test]
fn a_model_that_drafts_for_itself_writes_the_text_of_the_seed() {
    let mut accepted = 0;
    for family in ["llama3", "qwen3", "gemma3", "mixtral", "gpt2"] {
        let plain = load(&ModelFiles::folder(folder(family)), &options(true, None)).unwrap();
        let mut itself = without(&folder(family), true, SkippedLayers::Named(vec![0])).unwrap();
        let config = || EngineConfig {
            blocks: 64,
            block_size: 4,
            ..drafting()
        };
        let plain = Engine::start(plain.model, None, vocabulary(), config()).unwrap();
        let draft = itself.draft.take().map(|draft| draft.model);
        let itself = Engine::start(itself.model, draft, vocabulary(), config()).unwrap();
        let tokens = Expected::read(family).tokens;
        for seed in 0..4 {
            let request = |speculation| {
                Request::new(tokens[..20].to_vec(), 30)
                    .sampling(Sampling {
                        temperature: [0.0, 0.8, 1.0, 1.3][seed as usize],
                        ..Sampling::seeded(seed)
                    })
                    .speculation(speculation)
                    .ignore_eos(true)
            };
            let speculation = Speculation {
                model: true,
                max_draft: 4,
                verification: Verification::DrawOnce,
                ..Speculation::none()
            };
            let without = generate(&plain, request(Speculation::none()));
            let with = generate(&itself, request(speculation));
            assert_eq!(without.tokens(), with.tokens(), "{family}, {seed}");
        }
        let stats = wait_until(&itself, |stats| stats.running == 0);
        assert!(
            stats.drafted > 0 && !stats.draft_model_failed,
            "{family}: {stats:?}"
        );
        accepted += stats.accepted;
    }
    assert!(accepted > 0);
}

/// The share of places where two models find the same token the likeliest.
fn agreement(one: &[Vec<f32>], other: &[Vec<f32>]) -> f64 {
    let likeliest = |row: &[f32]| (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b]));
    let same = one
        .iter()
        .zip(other)
        .filter(|(one, other)| likeliest(one) == likeliest(other));
    same.count() as f64 / one.len() as f64
}

/// On the demo model, all sets of two of its six layers against the one that is chosen by a text of random
/// tokens.
#[test]
fn layers_are_chosen_that_the_model_can_do_without() {
    let demo = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../models/demo");
    let text: Vec<u32> = (0..120_u32).map(|place| 3 + place * 131 % 1999).collect();
    let chosen_by = |count| SkippedLayers::Likeliest {
        count,
        text: text.clone(),
    };
    let mut first = without(&demo, true, chosen_by(2)).unwrap();
    let whole = rows(&mut *first.model, &text);
    let agreement_of =
        |mut draft: SelfDraft| (agreement(&whole, &rows(&mut *draft.model, &text)), draft.skipped);
    let agreement_without = |skipped| agreement_of(without(&demo, true, skipped).unwrap().draft.unwrap());
    let (chosen, skipped) = agreement_of(first.draft.take().unwrap());
    assert_eq!(skipped.len(), 2);
    let pairs = (0..6).flat_map(|one| (one + 1..6).map(move |other| vec![one, other]));
    let all: Vec<f64> = pairs
        .map(|pair| agreement_without(SkippedLayers::Named(pair)).0)
        .collect();
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    let best = all.iter().copied().fold(0.0, f64::max);
    assert!(
        chosen > mean && chosen > 0.5 * best,
        "{skipped:?}: {chosen} of {all:?}"
    );
    let by_torch = without(&demo, false, chosen_by(2)).unwrap().draft.unwrap();
    assert_eq!(by_torch.skipped, skipped, "whoever computes");
}

#[test]
fn what_cannot_be_skipped_is_named() {
    let problem = |skipped: SkippedLayers| match without(&folder("llama3"), true, skipped) {
        Err(error) => error.to_string(),
        Ok(_) => "no error".to_owned(),
    };
    let likeliest = |count, text: &[u32]| SkippedLayers::Likeliest {
        count,
        text: text.to_vec(),
    };
    for (skipped, wanted) in [
        (
            SkippedLayers::Named(vec![2]),
            "there is no layer 2; the model has 2, from 0 on",
        ),
        (
            SkippedLayers::Named(vec![1, 0, 1]),
            "2 layers cannot be skipped of 2",
        ),
        (SkippedLayers::Named(Vec::new()), "no layer would be skipped"),
        (likeliest(2, &[1]), "2 layers cannot be skipped of 2"),
        (likeliest(0, &[1]), "no layer would be skipped"),
        (likeliest(1, &[]), "there is no text to choose layers by"),
        (
            likeliest(1, &[1, WIDTH as u32]),
            "the text has token 96, and the model 96",
        ),
    ] {
        let found = problem(skipped);
        assert!(found.contains(wanted), "{found}");
    }
}
