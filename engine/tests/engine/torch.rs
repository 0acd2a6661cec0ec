//! The libtorch models against `transformers`, on the checkpoints that fixtures/make.py wrote.

use crate::rig::{drafting, generate, listen, wait_until};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform_engine::{
    Device, Dtype, Engine, EngineConfig, Feed, LoadOptions, LoadedModel, Model, ModelFiles, Request,
    Sampling, Speculation, WeightFormat, load,
};
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

pub(crate) const FAMILIES: [&str; 26] = [
    "llama2",
    "llama3",
    "llama_bias_yarn",
    "mistral",
    "qwen2",
    "qwen3",
    "qwen3_bf16",
    "mixtral",
    "qwen3_moe",
    "gemma2",
    "gemma3",
    "gemma3_images",
    "phi3",
    "phi4",
    "gpt2",
    "olmo2",
    "smollm3",
    "mixtral_bf16",
    "qwen3_moe_bf16",
    "gemma2_bf16",
    "gemma3_bf16",
    "phi3_bf16",
    "phi4_bf16",
    "gpt2_bf16",
    "olmo2_bf16",
    "smollm3_bf16",
];
pub(crate) const WIDTH: usize = 96;

/// A family, where it runs, and who does the steps between matrix products.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) family: &'static str,
    pub(crate) device: Device,
    pub(crate) fused: bool,
    pub(crate) dtype: Dtype,
}

impl Kind {
    /// In f32, with our loops where there are any.
    pub(crate) fn usual(family: &'static str, device: Device) -> Self {
        Kind {
            family,
            device,
            fused: true,
            dtype: Dtype::F32,
        }
    }
}

/// Every family: on the processor with the small steps done by torch and by our loops, elsewhere by torch.
pub(crate) fn kinds(device: Device) -> impl Iterator<Item = Kind> {
    let by = if device == Device::Cpu {
        &[false, true][..]
    } else {
        &[false]
    };
    FAMILIES.into_iter().flat_map(move |family| {
        by.iter().map(move |&fused| Kind {
            fused,
            ..Kind::usual(family, device)
        })
    })
}

pub(crate) const TOLERANCE: f32 = 1e-4;

pub(crate) fn folder(family: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(family)
}

pub(crate) fn load_family(kind: Kind) -> LoadedModel {
    let options = LoadOptions {
        device: kind.device,
        dtype: kind.dtype,
        threads: 1,
        fused: kind.fused,
        weights: WeightFormat::Stored,
        batch_invariant: false,
        // Half of the tests draw as a card does.
        draws: Some(!kind.fused),
        ..LoadOptions::default()
    };
    load(&ModelFiles::folder(folder(kind.family)), &options).unwrap()
}

/// What `transformers` computed.
pub(crate) struct Expected {
    pub(crate) tokens: Vec<u32>,
    continuation: Vec<u32>,
    logits: Vec<f32>,
}

impl Expected {
    pub(crate) fn read(family: &str) -> Self {
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
        let off = self.off(first, found);
        assert!(off < TOLERANCE, "{what}: logits are off by {off}");
    }

    /// How far logits of the positions from `first` on are off.
    pub(crate) fn off(&self, first: usize, found: &[f32]) -> f32 {
        let expected = &self.logits[first * WIDTH..first * WIDTH + found.len()];
        let off = expected.iter().zip(found).map(|(a, b)| (a - b).abs());
        // NaN is no number's neighbour.
        off.fold(0.0, |most, off| if off <= most { most } else { off })
    }
}

pub(crate) fn model(kind: Kind, blocks: usize, block_size: usize) -> Box<dyn Model> {
    let mut model = load_family(kind).model;
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

fn logits_are_those_of_transformers(device: Device) {
    for kind in kinds(device) {
        let expected = Expected::read(kind.family);
        for table in [IN_A_ROW, SCATTERED] {
            for piece in [40, 7, 1] {
                let mut model = model(kind, 10, 4);
                for start in (0..40).step_by(piece) {
                    let tokens = &expected.tokens[start..(start + piece).min(40)];
                    let feed = Feed {
                        tokens,
                        start,
                        table: &table,
                        rows: tokens.len(),
                        parents: None,
                        scale: 1.0,
                    };
                    let what = format!("{kind:?}, {piece} tokens at a time, from {start}");
                    expected.compare(start, &rows(&mut *model, &[feed]), &what);
                }
            }
        }
    }
}

fn sequences_in_one_pass_do_not_see_each_other(device: Device) {
    for kind in kinds(device) {
        let expected = Expected::read(kind.family);
        let mut model = model(kind, 40, 4);
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
                        rows: 0,
                        parents: None,
                        scale: 1.0,
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
                    parents: None,
                    scale: 1.0,
                }
            })
            .collect();
        let found = rows(&mut *model, &feeds);
        expected.compare(12, &found[..WIDTH], &format!("{kind:?}: prompt"));
        expected.compare(30, &found[WIDTH..2 * WIDTH], &format!("{kind:?}: one token"));
        expected.compare(21, &found[2 * WIDTH..], &format!("{kind:?}: drafts"));
    }
}

/// Guards against sequences that attend together and see too much, too little or each other: of every length,
/// from one token up to several, in tables of their own and in company of every size.
fn crowds_see_what_each_sees_alone(device: Device) {
    let many: Vec<(usize, usize)> = (0..12).map(|number| (number * 3, 1 + number * 2 % 7)).collect();
    // Two of similar length and one that is longer: as many fed tokens as the two have with their padding.
    let few = [(0, 1), (3, 2), (30, 1)];
    for kind in kinds(device) {
        for block_size in [1, 4, 16] {
            for parts in [&many[..], &many[..5], &many[..2], &few] {
                crowd(kind, block_size, parts);
            }
        }
    }
}

/// Sequences that start at these positions and feed so many tokens, all in one pass.
fn crowd(kind: Kind, block_size: usize, parts: &[(usize, usize)]) {
    let expected = Expected::read(kind.family);
    let (blocks, company) = (40_usize.div_ceil(block_size) as u32, parts.len() as u32);
    let mut model = model(kind, (company * blocks) as usize, block_size);
    let scattered = |number| (0..blocks).map(move |block| block * company + number);
    let tables: Vec<Vec<u32>> = (0..company).map(|number| scattered(number).collect()).collect();
    let fed = |start, count, table, rows| Feed {
        tokens: &expected.tokens[start..start + count],
        start,
        table,
        rows,
        parents: None,
        scale: 1.0,
    };
    let own = || parts.iter().zip(&tables);
    let before: Vec<Feed<'_>> = own()
        .filter(|((start, _), _)| *start > 0)
        .map(|(&(start, _), table)| fed(0, start, table, 0))
        .collect();
    assert!(rows(&mut *model, &before).is_empty());
    let feeds: Vec<Feed<'_>> = own()
        .map(|(&(start, count), table)| fed(start, count, table, count))
        .collect();
    let found = rows(&mut *model, &feeds);
    let mut first = 0;
    for &(start, count) in parts {
        let what = format!("{kind:?}, blocks of {block_size}, {company} together, from {start}");
        expected.compare(start, &found[first * WIDTH..(first + count) * WIDTH], &what);
        first += count;
    }
}

/// Guards against a card that measures rows other than those that it gives: their largest logits, the sums of
/// their blocks, and both without the columns that are no tokens.
fn measures_are_true(device: Device) {
    let left_out = [5, 40, WIDTH - 1];
    for kind in kinds(device) {
        let expected = Expected::read(kind.family);
        let mut model = model(kind, 10, 4);
        let feed = Feed {
            tokens: &expected.tokens,
            start: 0,
            table: &IN_A_ROW,
            rows: 40,
            parents: None,
            scale: 1.0,
        };
        assert!(
            model.forward(&[feed]).unwrap().measure(0).is_none(),
            "{kind:?}: nobody has said what to leave out"
        );
        model.leave_out(&left_out);
        let logits = model.forward(&[feed]).unwrap();
        for number in 0..logits.len() {
            let Some(measured) = logits.measure(number) else {
                assert_eq!(device, Device::Cpu, "{kind:?}: a card measures");
                continue;
            };
            let row = logits.row(number);
            assert!(left_out.iter().all(|&column| row[column] == f32::NEG_INFINITY));
            let peak = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            assert_eq!(measured.peak, peak, "{kind:?}");
            let weight = |&logit: &f32| (f64::from(logit) - f64::from(peak)).exp();
            let sums: Vec<f64> = row
                .chunks(32)
                .map(|block| block.iter().map(weight).sum())
                .collect();
            assert_eq!(measured.sums.len(), sums.len());
            for (found, expected) in measured.sums.iter().zip(sums) {
                assert!(
                    (found / expected - 1.0).abs() < 1e-12,
                    "{kind:?}: {found} {expected}"
                );
            }
        }
    }
}

/// In 16 bits logits are near those in 32, however many sequences attend together.
fn half_numbers_are_near(device: Device) {
    for kind in kinds(device).filter(|kind| !kind.fused) {
        let expected = Expected::read(kind.family);
        let largest = expected
            .logits
            .iter()
            .fold(0.0, |most: f32, logit| most.max(logit.abs()));
        for dtype in [Dtype::Bf16, Dtype::F16] {
            let mut model = model(Kind { dtype, ..kind }, 30, 4);
            let tables: Vec<Vec<u32>> = (0..3)
                .map(|number| (0..10).map(|block| block * 3 + number).collect())
                .collect();
            for (start, count) in [(0, 30), (30, 1), (31, 9)] {
                let feeds: Vec<_> = tables
                    .iter()
                    .map(|table| Feed {
                        tokens: &expected.tokens[start..start + count],
                        start,
                        table,
                        rows: count,
                        parents: None,
                        scale: 1.0,
                    })
                    .collect();
                for found in rows(&mut *model, &feeds).chunks(count * WIDTH) {
                    let off = expected.off(start, found) / largest;
                    let bound = if dtype == Dtype::Bf16 { 0.08 } else { 0.01 };
                    assert!(off < bound, "{kind:?}, {dtype:?}, from {start}: off by {off}");
                }
            }
        }
    }
}

fn a_rejected_draft_leaves_no_trace(device: Device) {
    for kind in kinds(device) {
        let expected = Expected::read(kind.family);
        let mut model = model(kind, 10, 4);
        let table = &IN_A_ROW;
        let wrong = [expected.tokens[..20].to_vec(), vec![5; 9]].concat();
        rows(
            &mut *model,
            &[Feed {
                tokens: &wrong,
                start: 0,
                table,
                rows: 1,
                parents: None,
                scale: 1.0,
            }],
        );
        let found = rows(
            &mut *model,
            &[Feed {
                tokens: &expected.tokens[20..],
                start: 20,
                table,
                rows: 20,
                parents: None,
                scale: 1.0,
            }],
        );
        expected.compare(20, &found, kind.family);
    }
}

pub(crate) fn vocabulary() -> Arc<Vocabulary> {
    static VOCABULARY: LazyLock<Arc<Vocabulary>> = LazyLock::new(|| {
        let mut tokens: Vec<(TokenKind, Vec<u8>)> = (0..WIDTH as u8)
            .map(|token| (TokenKind::Text, vec![b' ' + token]))
            .collect();
        tokens[2] = (TokenKind::Special, b"</s>".to_vec());
        Arc::new(Vocabulary::new(&tokens, &[2]).unwrap())
    });
    VOCABULARY.clone()
}

fn engine(family: &'static str, device: Device, config: EngineConfig) -> Engine {
    let kind = Kind::usual(family, device);
    Engine::start(load_family(kind).model, None, vocabulary(), config).unwrap()
}

fn small() -> EngineConfig {
    EngineConfig {
        blocks: 64,
        block_size: 4,
        ..drafting()
    }
}

fn greedy_text_is_that_of_transformers(device: Device) {
    for family in FAMILIES {
        let Expected {
            tokens, continuation, ..
        } = Expected::read(family);
        let request = |speculation| {
            Request::new(tokens.clone(), continuation.len())
                .speculation(speculation)
                .ignore_eos(true)
        };
        let plain = engine(family, device, small());
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
            device,
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

fn sampled_text_does_not_depend_on_company_drafts_or_space(device: Device) {
    for family in ["llama3", "mistral", "qwen3"] {
        let Expected { tokens, .. } = Expected::read(family);
        let request = |seed: u64, speculation| {
            Request::new(tokens[seed as usize..seed as usize + 20].to_vec(), 30)
                .sampling(Sampling {
                    temperature: 0.8,
                    seed,
                    ..Sampling::default()
                })
                .speculation(speculation)
                .ignore_eos(true)
        };
        let plain = engine(family, device, small());
        let alone: Vec<_> = (0..6)
            .map(|seed| generate(&plain, request(seed, Speculation::none())).tokens())
            .collect();
        let tight = engine(
            family,
            device,
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

/// Each of these on the processor, and on a graphics card.
mod on {
    use super::*;
    use crate::devices::on_every_device;

    on_every_device!(
        logits_are_those_of_transformers,
        sequences_in_one_pass_do_not_see_each_other,
        crowds_see_what_each_sees_alone,
        half_numbers_are_near,
        measures_are_true,
        a_rejected_draft_leaves_no_trace,
        greedy_text_is_that_of_transformers,
        sampled_text_does_not_depend_on_company_drafts_or_space,
    );
}
