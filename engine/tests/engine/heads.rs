//! Heads that draft in the engine: what they predict is drafted, and nothing that is written changes.

use crate::branches::answers;
use crate::head_rows::{WIDTH, expected, folder, loaded, options};
use crate::laws::agrees;
use crate::rig::{Heard, Redraw, drafting, generate, grammar_over, listen, wait_until};
use crate::torch::vocabulary;
use lexiform_engine::{
    Assistant, DrafterKind, Engine, EngineConfig, EngineError, Event, LoadedModel, ModelFiles, Reporting,
    Request, Sampling, Speculation, Stats, Verification, drafter_kind, load,
};
use lexiform_law::draft::LongestMatch;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What drafts, by the names of the fixtures.
const ALL: [&str; 4] = ["eagle", "eagle3", "medusa", "pard"];

fn engine_with(
    model: LoadedModel,
    assistant: Option<Assistant>,
    config: EngineConfig,
) -> Result<Engine, EngineError> {
    let tokeniser = Arc::new(LongestMatch(vocabulary()));
    Engine::start_with_tokeniser(model.model, assistant, vocabulary(), tokeniser, config)
}

fn engine(name: Option<&str>, config: EngineConfig) -> Engine {
    let (model, assistant) = match name {
        None => (loaded(true, None), None),
        Some(name) => {
            let files = ModelFiles::folder(folder(name));
            match drafter_kind(&files).unwrap() {
                DrafterKind::Head => {
                    let mut model = loaded(true, Some(name));
                    let head = model.head.take().unwrap();
                    (model, Some(Assistant::Head(head)))
                }
                DrafterKind::Parallel { mask } => {
                    let draft = load(&files, &options(true, None)).unwrap().model;
                    let assistant = Assistant::Model {
                        model: draft,
                        tokens: None,
                        mask: Some(mask),
                    };
                    (loaded(true, None), Some(assistant))
                }
                DrafterKind::Model => panic!("{name} is a model"),
            }
        }
    };
    engine_with(model, assistant, config).unwrap()
}

fn small() -> EngineConfig {
    EngineConfig {
        blocks: 64,
        block_size: 4,
        ..drafting()
    }
}

fn by(verification: Verification, max_draft: usize) -> Speculation {
    Speculation {
        model: true,
        max_draft,
        verification,
        ..Speculation::none()
    }
}

/// The figures of an engine that is done.
fn ended(engine: &Engine) -> Stats {
    let stats = wait_until(engine, |stats| stats.running == 0);
    assert!(!stats.draft_model_failed, "{stats:?}");
    stats
}

/// A text of few tokens, so that even random heads are often right.
const PATTERN: &str = "([ab][cd]){6,12}";

fn request(seed: u64, prompt: &[u32], speculation: Speculation, pattern: Option<&str>) -> Request {
    Request::new(prompt.to_vec(), 24)
        .grammar(pattern.map(|pattern| grammar_over(&vocabulary(), pattern)))
        .ignore_eos(pattern.is_none())
        .sampling(Sampling {
            temperature: [0.0, 0.8, 1.0, 1.3][seed as usize % 4],
            ..Sampling::seeded(seed)
        })
        .speculation(speculation)
}

/// The drafts of the first pass that had any.
fn first_drafts(heard: &Heard) -> Vec<(u32, Option<usize>)> {
    let drafts = heard.events.iter().find_map(|event| match event {
        Event::Token {
            candidates: Some(candidates),
            ..
        } if !candidates.drafted.is_empty() => Some(candidates.drafted.clone()),
        _ => None,
    });
    let drafts = drafts.unwrap_or_default().into_iter();
    drafts.map(|draft| (draft.token, draft.parent)).collect()
}

fn best(row: &[f32]) -> u32 {
    (0..WIDTH as u32)
        .max_by(|&one, &other| row[one as usize].total_cmp(&row[other as usize]))
        .unwrap()
}

/// The text of the plain reading is the prompt and a token that the grammar leaves no choice about.
#[test]
fn what_a_head_predicts_is_drafted() {
    for name in ALL {
        let expected = expected(name);
        let (last, prompt) = expected.tokens.split_last().unwrap();
        let first = format!("\\x{:02x}[\\x20-\\x7f]{{9}}", 32 + last);
        let engine = engine(Some(name), small());
        let request = request(0, prompt, by(Verification::Residual, 3), Some(&first)).reporting(Reporting {
            candidates: Some(0),
            ..Reporting::default()
        });
        let drafts = first_drafts(&generate(&engine, request));
        assert_eq!(
            drafts.first().map(|(token, _)| *token),
            Some(best(&expected.rows[0])),
            "{name}"
        );
        // There is no room for a second branch.
        let is_chain = drafts
            .iter()
            .enumerate()
            .all(|(node, (_, parent))| *parent == node.checked_sub(1));
        assert!(is_chain && drafts.len() >= 2, "{name}: {drafts:?}");
        if ["medusa", "pard"].contains(&name) {
            // What is drafted later does not depend on what was drafted before.
            let tokens: Vec<u32> = drafts.iter().map(|(token, _)| *token).collect();
            let wanted: Vec<u32> = expected.rows.iter().map(|row| best(row)).collect();
            assert_eq!(tokens, wanted[..tokens.len()], "{name}");
        }
    }
}

#[test]
fn a_head_changes_nothing_that_is_written() {
    let tokens = expected("eagle").tokens;
    for config in [
        small(),
        // Prompts are read in pieces.
        EngineConfig {
            max_step_tokens: 7,
            ..small()
        },
        // Not all requests fit in the cache at once.
        EngineConfig {
            blocks: 24,
            ..small()
        },
    ] {
        let plain = engine(None, config.clone());
        for name in ALL {
            let with = engine(Some(name), config.clone());
            let run = |engine: &Engine, speculation: Speculation| -> Vec<Vec<u32>> {
                let listeners: Vec<_> = (0..12)
                    .map(|seed| {
                        let pattern = (seed % 3 > 0).then_some(PATTERN);
                        let prompt = &tokens[seed as usize % 2..][..12 + seed as usize % 5];
                        listen(engine, request(seed, prompt, speculation, pattern))
                    })
                    .collect();
                listeners
                    .into_iter()
                    .map(|listener| listener.wait().tokens())
                    .collect()
            };
            let written = run(&plain, Speculation::none());
            for speculation in [
                by(Verification::DrawOnce, 4),
                by(Verification::DrawOnce, 16),
                Speculation {
                    verification: Verification::DrawOnce,
                    ..Speculation::all()
                },
            ] {
                assert_eq!(run(&with, speculation), written, "{name}");
            }
            let stats = ended(&with);
            assert!(stats.drafted > 100 && stats.accepted > 20, "{name}: {stats:?}");
            let is_crowded = config.blocks < small().blocks;
            assert_eq!(stats.preemptions > 0, is_crowded, "{name}: {stats:?}");
        }
    }
}

/// Samples of one request share what was read, and begin anew where they are forked.
#[test]
fn samples_and_attempts_are_drafted_alike() {
    let tokens = expected("eagle").tokens;
    let plain = engine(None, small());
    for name in ALL {
        let with = engine(Some(name), small());
        for law in [lexiform_engine::Law::Local, crate::rig::global(4000)] {
            let run = |engine: &Engine, speculation| {
                let request = request(6, &tokens[..9], speculation, Some("[ -z]{2}[ -q]"));
                let heard = answers(engine, request.task(law).answers(4));
                assert!(
                    heard.iter().all(|heard| heard.failure().is_none()),
                    "{name}, {law:?}"
                );
                heard.iter().map(Heard::tokens).collect::<Vec<_>>()
            };
            let written = run(&plain, by(Verification::DrawOnce, 0));
            assert_eq!(
                run(&with, by(Verification::DrawOnce, 6)),
                written,
                "{name}, {law:?}"
            );
        }
        ended(&with);
    }
}

/// The rows of the model after a text.
fn row(model: &mut dyn lexiform_engine::Model, tokens: &[u32]) -> Vec<f64> {
    model.create_cache(tokens.len(), 1).unwrap();
    let table: Vec<u32> = (0..tokens.len() as u32).collect();
    let feed = lexiform_engine::Feed {
        tokens,
        start: 0,
        table: &table,
        rows: 1,
        parents: None,
        scale: 1.0,
    };
    let logits = model.forward(&[feed]).unwrap();
    logits.row(0).iter().map(|&logit| f64::from(logit)).collect()
}

/// The law of the texts of `[ab][cd][ab]`, by enumeration.
fn law(prompt: &[u32]) -> Vec<(String, f64)> {
    let mut model = loaded(true, None).model;
    let token = |byte: u8| u32::from(byte - b' ');
    let mut open = vec![(String::new(), 1.0)];
    for choice in [b"ab", b"cd", b"ab"] {
        let mut next = Vec::new();
        for (text, chance) in open {
            let tokens: Vec<u32> = prompt.iter().copied().chain(text.bytes().map(token)).collect();
            let row = row(&mut *model, &tokens);
            let shares = choice.map(|byte| row[token(byte) as usize].exp());
            for (byte, share) in choice.iter().zip(shares) {
                let text = format!("{text}{}", char::from(*byte));
                next.push((text, chance * share / shares.iter().sum::<f64>()));
            }
        }
        open = next;
    }
    open
}

/// By every rule: a head has what it drafts verified like any draft model.
#[test]
fn a_head_leaves_the_law_alone() {
    let prompt = &expected("eagle").tokens[..6];
    let law = law(prompt);
    let law: Vec<(&str, f64)> = law.iter().map(|(text, share)| (text.as_str(), *share)).collect();
    let count = 700;
    for name in ALL {
        let engine = engine(Some(name), small());
        for (verification, candidates) in [
            (Verification::Residual, 1),
            (Verification::Residual, 2),
            (Verification::KSeq, 2),
            (Verification::DrawOnce, 1),
        ] {
            let (mut shares, mut accepted) = (BTreeMap::new(), 0);
            for seed in 0..count {
                let speculation = Speculation {
                    candidates,
                    ..by(verification, 6)
                };
                let request = Request::new(prompt.to_vec(), 8)
                    .grammar(grammar_over(&vocabulary(), "[ab][cd][ab]"))
                    .sampling(Sampling::seeded(seed))
                    .speculation(speculation);
                let heard = generate(&engine, request);
                accepted += heard.outcome().accepted;
                let text = heard
                    .tokens()
                    .iter()
                    .map(|&token| char::from(b' ' + token as u8))
                    .collect();
                *shares.entry(text).or_insert(0.0) += 1.0 / count as f64;
            }
            agrees(&shares, &law, count);
            assert!(
                accepted > count as usize / 4,
                "{name}, {verification:?}: {accepted}"
            );
        }
        ended(&engine);
    }
}

#[test]
fn a_head_of_another_model_and_a_mask_that_is_no_token_are_refused_at_start() {
    let mut model = loaded(true, Some("eagle3"));
    let head = model.head.take().unwrap();
    let error = engine_with(loaded(true, None), Some(Assistant::Head(head)), small())
        .err()
        .unwrap();
    assert_eq!(
        error.to_string(),
        "the engine cannot start: the EAGLE-3 head reads 48 numbers of hidden states for each token, and the model keeps 0: it was loaded \
         for another model"
    );
    let draft = load(&ModelFiles::folder(folder("pard")), &options(true, None))
        .unwrap()
        .model;
    let assistant = Assistant::Model {
        model: draft,
        tokens: None,
        mask: Some(96),
    };
    let error = engine_with(loaded(true, None), Some(assistant), small())
        .err()
        .unwrap();
    assert_eq!(
        error.to_string(),
        "the engine cannot start: the draft model's token for unknown tokens is 96, and it has 96 tokens"
    );
}

#[test]
fn drafts_of_a_head_are_named() {
    let engine = engine(Some("eagle"), small());
    let prompt = &expected("eagle").tokens[..8];
    let reporting = Reporting {
        candidates: Some(0),
        ..Reporting::default()
    };
    let heard = generate(
        &engine,
        request(0, prompt, by(Verification::Residual, 3), None).reporting(reporting),
    );
    let named = heard.events.iter().filter_map(|event| match event {
        Event::Token { candidates, .. } => candidates.as_ref(),
        _ => None,
    });
    let named = named.map(|candidates| candidates.drafted.iter().map(|draft| draft.drafter));
    let named: Vec<&str> = named.flatten().collect();
    assert!(
        !named.is_empty() && named.iter().all(|name| *name == "model"),
        "{named:?}"
    );
}

/// Where there is room, the likeliest nodes of a layer are read on, and a tree is verified in one pass.
#[test]
fn a_head_drafts_trees_where_the_law_draws_once_and_chains_elsewhere() {
    let prompt = &expected("eagle").tokens[..8];
    for name in ALL {
        let engine = engine(Some(name), small());
        let shape = |seed, verification| {
            let reporting = Reporting {
                candidates: Some(0),
                ..Reporting::default()
            };
            let request = request(seed, prompt, by(verification, 64), Some(PATTERN)).reporting(reporting);
            let drafts = first_drafts(&generate(&engine, request));
            let is_chain = drafts
                .iter()
                .enumerate()
                .all(|(node, (_, parent))| *parent == node.checked_sub(1));
            let mut depths: Vec<usize> = Vec::new();
            for (_, parent) in &drafts {
                depths.push(parent.map_or(1, |parent| depths[parent] + 1));
            }
            (is_chain, depths.into_iter().max().unwrap_or(0))
        };
        for seed in [4, 5, 6] {
            let (is_chain, depth) = shape(seed, Verification::DrawOnce);
            assert!(!is_chain && depth > 1, "{name}, {seed}: {depth} deep");
        }
        assert!(shape(6, Verification::Residual).0, "{name}");
    }
}
