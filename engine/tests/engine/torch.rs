//! The libtorch models against `transformers`, on the checkpoints that fixtures/make.py wrote.

use crate::rig::{generate, listen, wait_until};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform_engine::{
    Engine, EngineConfig, Feed, LoadOptions, LoadedModel, Model, ModelFiles, Request, Sampling, Speculation,
    load,
};
use std::path::PathBuf;
use std::sync::Arc;

const FAMILIES: [&str; 7] = [
    "llama2",
    "llama3",
    "llama_bias_yarn",
    "mistral",
    "qwen2",
    "qwen3",
    "qwen3_bf16",
];
const WIDTH: usize = 96;

/// Every family, with the steps between matrix products done by torch and by our loops.
fn kinds() -> impl Iterator<Item = (&'static str, bool)> {
    FAMILIES
        .into_iter()
        .flat_map(|family| [(family, false), (family, true)])
}

const TOLERANCE: f32 = 1e-4;

fn folder(family: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(family)
}

fn load_family(family: &str, fused: bool) -> LoadedModel {
    let options = LoadOptions {
        threads: 1,
        fused,
        ..LoadOptions::default()
    };
    load(&ModelFiles::folder(folder(family)), &options).unwrap()
}

/// What `transformers` computed.
struct Expected {
    tokens: Vec<u32>,
    continuation: Vec<u32>,
    logits: Vec<f32>,
}

impl Expected {
    fn read(family: &str) -> Self {
        let text = std::fs::read_to_string(folder(family).join("expected.json")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let tokens = |name: &str| -> Vec<u32> {
            json[name]
                .as_array()
                .unwrap()
                .iter()
                .map(|token| token.as_u64().unwrap() as u32)
                .collect()
        };
        let bytes = std::fs::read(folder(family).join("logits.f32")).unwrap();
        let logits = bytes
            .chunks(4)
            .map(|number| f32::from_le_bytes(number.try_into().unwrap()))
            .collect();
        Expected {
            tokens: tokens("tokens"),
            continuation: tokens("continuation"),
            logits,
        }
    }

    /// Compares logits of the positions from `first` on.
    fn compare(&self, first: usize, found: &[f32], what: &str) {
        let expected = &self.logits[first * WIDTH..first * WIDTH + found.len()];
        let off = expected
            .iter()
            .zip(found)
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f32::max);
        assert!(off < TOLERANCE, "{what}: logits are off by {off}");
    }
}

fn model((family, fused): (&str, bool), blocks: usize, block_size: usize) -> Box<dyn Model> {
    let mut model = load_family(family, fused).model;
    model.create_cache(blocks, block_size).unwrap();
    model
}

fn rows(model: &mut dyn Model, feeds: &[Feed<'_>]) -> Vec<f32> {
    let logits = model.forward(feeds).unwrap();
    (0..logits.len())
        .flat_map(|row| logits.row(row).to_vec())
        .collect()
}

/// Blocks in an order that leaves no two of them side by side.
const SCATTERED: [u32; 10] = [3, 7, 1, 9, 5, 0, 8, 2, 6, 4];
const IN_A_ROW: [u32; 10] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];

#[test]
fn logits_are_those_of_transformers() {
    for (family, fused) in kinds() {
        let expected = Expected::read(family);
        for table in [IN_A_ROW, SCATTERED] {
            for piece in [40, 7, 1] {
                let mut model = model((family, fused), 10, 4);
                for start in (0..40).step_by(piece) {
                    let tokens = &expected.tokens[start..(start + piece).min(40)];
                    let feed = Feed {
                        tokens,
                        start,
                        table: &table,
                        rows: tokens.len(),
                    };
                    let what = format!("{family}, {fused}, {piece} tokens at a time, from {start}");
                    expected.compare(start, &rows(&mut *model, &[feed]), &what);
                }
            }
        }
    }
}

#[test]
fn sequences_in_one_pass_do_not_see_each_other() {
    for (family, fused) in kinds() {
        let expected = Expected::read(family);
        let mut model = model((family, fused), 40, 4);
        let tables: Vec<Vec<u32>> = (0..4)
            .map(|number| SCATTERED.map(|block| block + number * 10).to_vec())
            .collect();
        // Four copies of the sequence, each at another place: a prompt, a piece, one token, drafts to verify.
        let starts = [0, 11, 30, 21];
        let ends = [13, 25, 31, 27];
        for (table, start) in tables.iter().zip(starts).filter(|(_, start)| *start > 0) {
            let tokens = &expected.tokens[..start];
            assert!(
                rows(
                    &mut *model,
                    &[Feed {
                        tokens,
                        start: 0,
                        table,
                        rows: 0
                    }]
                )
                .is_empty()
            );
        }
        let feeds: Vec<Feed<'_>> = (0..4)
            .map(|number| {
                let (start, end) = (starts[number], ends[number]);
                let tokens = &expected.tokens[start..end];
                Feed {
                    tokens,
                    start,
                    table: &tables[number],
                    rows: [1, 0, 1, 6][number],
                }
            })
            .collect();
        let found = rows(&mut *model, &feeds);
        expected.compare(12, &found[..WIDTH], &format!("{family}: prompt"));
        expected.compare(30, &found[WIDTH..2 * WIDTH], &format!("{family}: one token"));
        expected.compare(21, &found[2 * WIDTH..], &format!("{family}: drafts"));
    }
}

#[test]
fn a_rejected_draft_leaves_no_trace() {
    for (family, fused) in kinds() {
        let expected = Expected::read(family);
        let mut model = model((family, fused), 10, 4);
        let table = &IN_A_ROW;
        let wrong = [expected.tokens[..20].to_vec(), vec![5; 9]].concat();
        rows(
            &mut *model,
            &[Feed {
                tokens: &wrong,
                start: 0,
                table,
                rows: 1,
            }],
        );
        let found = rows(
            &mut *model,
            &[Feed {
                tokens: &expected.tokens[20..],
                start: 20,
                table,
                rows: 20,
            }],
        );
        expected.compare(20, &found, family);
    }
}

fn vocabulary() -> Arc<Vocabulary> {
    let mut tokens: Vec<(TokenKind, Vec<u8>)> = (0..WIDTH as u8)
        .map(|token| (TokenKind::Text, vec![b' ' + token]))
        .collect();
    tokens[2] = (TokenKind::Special, b"</s>".to_vec());
    Arc::new(Vocabulary::new(&tokens, &[2]).unwrap())
}

fn engine(family: &str, config: EngineConfig) -> Engine {
    Engine::start(load_family(family, true).model, None, vocabulary(), config).unwrap()
}

fn small() -> EngineConfig {
    EngineConfig {
        blocks: 64,
        block_size: 4,
        ..EngineConfig::default()
    }
}

#[test]
fn greedy_text_is_that_of_transformers() {
    for family in FAMILIES {
        let Expected {
            tokens, continuation, ..
        } = Expected::read(family);
        let request = |speculation| Request {
            ignore_eos: true,
            speculation,
            ..Request::new(tokens.clone(), continuation.len())
        };
        let plain = engine(family, small());
        assert_eq!(
            generate(&plain, request(Speculation::none())).tokens(),
            continuation,
            "{family}"
        );
        let again = generate(&plain, request(Speculation::all()));
        assert_eq!(again.tokens(), continuation, "{family}, cached and drafted");
        assert_eq!(again.outcome().cached_tokens, 36, "{family}");
        let pieces = engine(
            family,
            EngineConfig {
                max_step_tokens: 6,
                ..small()
            },
        );
        assert_eq!(
            generate(&pieces, request(Speculation::none())).tokens(),
            continuation,
            "{family}, in pieces"
        );
    }
}

#[test]
fn sampled_text_does_not_depend_on_company_drafts_or_space() {
    for family in ["llama3", "mistral", "qwen3"] {
        let Expected { tokens, .. } = Expected::read(family);
        let request = |seed: u64, speculation| Request {
            ignore_eos: true,
            speculation,
            sampling: Sampling {
                temperature: 0.8,
                seed,
                ..Sampling::default()
            },
            ..Request::new(tokens[seed as usize..seed as usize + 20].to_vec(), 30)
        };
        let plain = engine(family, small());
        let alone: Vec<_> = (0..6)
            .map(|seed| generate(&plain, request(seed, Speculation::none())).tokens())
            .collect();
        let tight = engine(
            family,
            EngineConfig {
                blocks: 20,
                ..small()
            },
        );
        let listeners: Vec<_> = (0..6)
            .map(|seed| listen(&tight, request(seed, Speculation::all())))
            .collect();
        let together: Vec<_> = listeners
            .into_iter()
            .map(|listener| listener.wait().tokens())
            .collect();
        assert_eq!(together, alone, "{family}");
        let stats = wait_until(&tight, |stats| stats.running == 0);
        assert!(
            stats.preemptions > 0 && stats.blocks_used == 0,
            "{family}: {stats:?}"
        );
    }
}
