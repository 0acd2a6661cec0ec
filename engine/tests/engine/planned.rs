//! Models whose passes are run by plan, by the kernels on this processor and on a card if there is one,
//! compared with the torch decoder with the same weights.
//!
//! Weights are random, in bf16. The torch decoder computes in f32: the rows of the two differ by some
//! hundredths.

use crate::checkpoint::{Checkpoint, Kind, LLAMA, MISTRAL, MIXTRAL, QWEN, QWEN_MIXTURE};
use crate::devices::cuda;
use crate::launcher::{Asked, OnProcessor};
use crate::memory::Chance;
use crate::processor;
use lexiform_engine::{Ask, Device, Dtype, Feed, Flight as _, Landed, LoadOptions, Logits, Model, SlotMoves};
use lexiform_law::{Allowed, History, Law, Place, Seeded, Warper, Warping};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) const VOCAB: usize = 96;
/// The largest root of the mean of squares of the differences of a row, relative to that of the row.
pub(crate) const ERROR_OF_ROW: f32 = 0.12;

thread_local! {
    /// What models of this thread told of how they run passes.
    static TOLD: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn tell(message: &str) {
    TOLD.with_borrow_mut(|told| told.push(message.to_owned()));
}

pub(crate) fn told() -> Vec<String> {
    TOLD.take()
}

pub(crate) fn options() -> LoadOptions {
    LoadOptions {
        dtype: Dtype::Bf16,
        threads: 1,
        draws: Some(true),
        tell,
        ..LoadOptions::default()
    }
}

/// A checkpoint of the Llama family.
pub(crate) fn llama() -> Checkpoint {
    Checkpoint::random(LLAMA, &mut Chance::new(11))
}

/// Who runs the kernels.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Runner {
    Processor,
    Card,
}

impl Runner {
    /// Whether there is a compiler for kernels, or a card; else the test says that it is skipped.
    pub(crate) fn is_there(self, test: &str) -> bool {
        match self {
            Runner::Processor => processor::is_there(test),
            Runner::Card => cuda(&format!("{test} on a graphics card")).is_some_and(|_| {
                told();
                self.model(&llama()).0.create_cache(1, 16).unwrap();
                let is_old = told().iter().any(|told| told.contains("the kernels need 9.0"));
                if is_old {
                    println!("skipped: {test} on a graphics card: it is older than the kernels");
                }
                !is_old
            }),
        }
    }

    /// A model with passes by plan, and on the processor what will have been asked of its launcher.
    pub(crate) fn model(self, checkpoint: &Checkpoint) -> (Box<dyn Model>, Option<Arc<Asked>>) {
        self.model_that(options(), checkpoint)
    }

    /// The same with other options.
    pub(crate) fn model_that(
        self,
        options: LoadOptions,
        checkpoint: &Checkpoint,
    ) -> (Box<dyn Model>, Option<Arc<Asked>>) {
        match self {
            Runner::Processor => {
                let launcher = OnProcessor::new();
                let asked = launcher.asked();
                (checkpoint.load(&options, Some(Box::new(launcher))), Some(asked))
            }
            Runner::Card => {
                let options = LoadOptions {
                    device: Device::Cuda(0),
                    ..options
                };
                (checkpoint.load(&options, None), None)
            }
        }
    }
}

/// Each of these tests by the kernels on the processor, and on a card; to be used in a module `by` beside
/// them.
macro_rules! by_every_kernel {
    ($($test:ident),* $(,)?) => {
        mod processor {
            $(#[test] fn $test() {
                let runner = crate::planned::Runner::Processor;
                if runner.is_there(stringify!($test)) {
                    super::super::$test(runner);
                }
            })*
        }

        mod card {
            $(#[test] fn $test() {
                let runner = crate::planned::Runner::Card;
                if runner.is_there(stringify!($test)) {
                    super::super::$test(runner);
                }
            })*
        }
    };
}

pub(crate) use by_every_kernel;

/// A model on this processor, and what will have been asked of its launcher.
pub(crate) fn model() -> (Box<dyn Model>, Arc<Asked>) {
    let (model, asked) = Runner::Processor.model(&llama());
    (model, asked.unwrap())
}

/// Runs a test with a model of each kind that has such a cache.
pub(crate) fn each(runner: Runner, blocks: usize, run: impl Fn(Kind, Box<dyn Model>, Option<Arc<Asked>>)) {
    let kinds = [LLAMA, MISTRAL, QWEN, MIXTRAL, QWEN_MIXTURE];
    for (kind, seed) in kinds.into_iter().zip(11..) {
        told();
        let (mut model, asked) = runner.model(&Checkpoint::random(kind, &mut Chance::new(seed)));
        model.create_cache(blocks, 16).unwrap();
        let told = told();
        assert!(
            told.len() == 1 && told[0].contains("are run by kernels on"),
            "{told:?}"
        );
        run(kind, model, asked);
    }
}

/// Of what was asked, this number; as many as one wants where nobody counts.
pub(crate) fn counted(asked: &Option<Arc<Asked>>, number: fn(&Asked) -> &AtomicUsize) -> usize {
    asked
        .as_ref()
        .map_or(usize::MAX, |asked| number(asked).load(Ordering::Relaxed))
}

/// The root of the mean of squares of the differences, relative to that of what is expected.
pub(crate) fn relative(found: &[f32], expected: &[f32]) -> f32 {
    let square =
        |numbers: &mut dyn Iterator<Item = f32>| numbers.map(|it| f64::from(it) * f64::from(it)).sum::<f64>();
    let off = square(&mut found.iter().zip(expected).map(|(a, b)| a - b));
    let off = (off / square(&mut expected.iter().copied())).sqrt() as f32;
    // What is no number is far from all.
    if off.is_nan() { f32::INFINITY } else { off }
}

const SEQUENCES: usize = 6;
const BLOCKS_EACH: usize = 16;

/// Texts that grow: plainly, by prompts, by trees of which a path is accepted; and fork.
struct Texts {
    chance: Chance,
    tables: Vec<Vec<u32>>,
    lengths: Vec<usize>,
}

/// What a sequence feeds.
struct Fed {
    sequence: usize,
    tokens: Vec<u32>,
    parents: Option<Vec<u16>>,
    rows: usize,
}

impl Texts {
    fn new(seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let mut blocks: Vec<u32> = (0..(SEQUENCES * BLOCKS_EACH) as u32).collect();
        chance.shuffle(&mut blocks);
        Texts {
            tables: blocks.chunks(BLOCKS_EACH).map(<[u32]>::to_vec).collect(),
            lengths: vec![0; SEQUENCES],
            chance,
        }
    }

    /// What some of the sequences feed, each up to so many tokens.
    fn next(&mut self, most: usize) -> Vec<Fed> {
        let chance = &mut self.chance;
        let mut order: Vec<usize> = (0..SEQUENCES).collect();
        chance.shuffle(&mut order);
        order.truncate(1 + chance.below(SEQUENCES));
        let mut fed = Vec::new();
        for sequence in order {
            let count = 1 + chance.below(most);
            if self.lengths[sequence] + count >= BLOCKS_EACH * 16 {
                // A text that is too long begins anew.
                self.lengths[sequence] = 0;
            }
            let text = match chance.below(2) {
                0 => 1 + chance.below(count),
                _ => count,
            };
            let parents: Vec<u16> = (0..count - text)
                .map(|node| chance.below(node + 1) as u16)
                .collect();
            let rows = if text < count { count - text + 1 } else { count };
            fed.push(Fed {
                sequence,
                tokens: (0..count).map(|_| chance.below(VOCAB) as u32).collect(),
                parents: (text < count).then_some(parents),
                rows: chance.below(rows + 1),
            });
        }
        fed
    }

    fn feeds<'a>(&'a self, fed: &'a [Fed]) -> Vec<Feed<'a>> {
        let feed = |fed: &'a Fed| Feed {
            tokens: &fed.tokens,
            start: self.lengths[fed.sequence],
            table: &self.tables[fed.sequence],
            rows: fed.rows,
            parents: fed.parents.as_deref(),
            scale: 1.0,
        };
        fed.iter().map(feed).collect()
    }

    /// Accepts a path of each tree, in all models.
    fn accept(&mut self, fed: &[Fed], models: &mut [&mut dyn Model]) {
        for fed in fed {
            let parents = fed.parents.as_deref().unwrap_or_default();
            let (start, text) = (self.lengths[fed.sequence], fed.tokens.len() - parents.len());
            let mut node = self.chance.below(parents.len() + 1);
            let mut slots = Vec::new();
            while node > 0 {
                slots.push(start + text + node - 1);
                node = usize::from(parents[node - 1]);
            }
            slots.reverse();
            let moves = SlotMoves {
                table: &self.tables[fed.sequence],
                start: start + text,
                slots: &slots,
            };
            for model in models.iter_mut() {
                model.move_slots(&[moves]).unwrap();
            }
            self.lengths[fed.sequence] = start + text + slots.len();
        }
    }

    /// One sequence goes on with the text of another: its blocks are copied in all models.
    fn fork(&mut self, models: &mut [&mut dyn Model]) {
        let (from, to) = (self.chance.below(SEQUENCES), self.chance.below(SEQUENCES));
        if from == to {
            return;
        }
        let pairs: Vec<(u32, u32)> = self.tables[from]
            .iter()
            .copied()
            .zip(self.tables[to].iter().copied())
            .collect();
        for model in models.iter_mut() {
            model.copy_blocks(&pairs).unwrap();
        }
        self.lengths[to] = self.lengths[from];
    }
}

pub(crate) fn rows(model: &mut dyn Model, feeds: &[Feed<'_>]) -> Vec<f32> {
    let logits = model.forward(feeds).unwrap();
    (0..logits.len())
        .flat_map(|row| logits.row(row).to_vec())
        .collect()
}

/// Any batch through any bucket, prompts, and passes that fit none between them.
fn compare(runner: Runner, kind: Kind, seed: u64) {
    let checkpoint = Checkpoint::random(kind, &mut Chance::new(seed));
    let (mut planned, asked) = runner.model(&checkpoint);
    let mut known = checkpoint.decoder();
    let mut texts = Texts::new(seed);
    for model in [&mut planned, &mut known] {
        model.create_cache(SEQUENCES * BLOCKS_EACH, 16).unwrap();
    }
    let (mut all, mut worst) = ((Vec::new(), Vec::new()), 0.0_f32);
    for round in 0..24 {
        let fed = texts.next([1, 3, 24, 7, 1, 60][round % 6]);
        let feeds = texts.feeds(&fed);
        let (found, expected) = (rows(&mut *planned, &feeds), rows(&mut *known, &feeds));
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.chunks(VOCAB).zip(expected.chunks(VOCAB)) {
            worst = worst.max(relative(found, expected));
        }
        all.0.extend(found);
        all.1.extend(expected);
        texts.accept(&fed, &mut [&mut *planned, &mut *known]);
        texts.fork(&mut [&mut *planned, &mut *known]);
    }
    let off = relative(&all.0, &all.1);
    assert!(off < 0.03 && worst < ERROR_OF_ROW, "{kind:?}: {off}, {worst}");
    assert!(all.0.len() > 100 * VOCAB);
    let (recorded, replayed) = (
        counted(&asked, |it| &it.recorded),
        counted(&asked, |it| &it.replayed),
    );
    assert!(recorded > 1 && replayed > 4, "{asked:?}");
}

fn any_batch_through_any_bucket_has_the_rows_of_torch(runner: Runner) {
    let kinds = [LLAMA, MISTRAL, QWEN, MIXTRAL, QWEN_MIXTURE];
    for (kind, seed) in kinds.into_iter().zip(1..) {
        compare(runner, kind, seed);
    }
}

const TABLES: [[u32; 2]; 3] = [[0, 1], [2, 3], [4, 5]];

pub(crate) fn feed<'a>(tokens: &'a [u32], table: usize) -> Feed<'a> {
    Feed {
        tokens,
        start: 0,
        table: &TABLES[table],
        rows: tokens.len(),
        parents: None,
        scale: 1.0,
    }
}

/// A pass is the same each time, whatever was run between, and alone as in company.
fn a_replay_with_other_passes_between_has_the_same_bits(runner: Runner) {
    each(runner, 6, |kind, mut model, asked| {
        let pass = [feed(&[1, 2, 3, 4, 5], 0), feed(&[30, 31], 1)];
        let first = rows(&mut *model, &pass);
        let mut others = Vec::new();
        for token in 0..3 {
            let tokens = [60 + token, 7, 8];
            others.push(rows(&mut *model, &[feed(&tokens, 2), feed(&[9; 5], 1)]));
            assert_eq!(rows(&mut *model, &pass), first, "{kind:?}");
            assert_eq!(rows(&mut *model, &pass[..1]), first[..5 * VOCAB], "{kind:?}");
        }
        assert_ne!(others[0], others[1]);
        assert!(counted(&asked, |it| &it.replayed) > 4, "{asked:?}");
    });
}

/// The rows of a pass stay what they are when others are submitted before somebody looks at them, and after
/// they were given away.
fn rows_outlive_the_next_pass(runner: Runner) {
    each(runner, 6, |kind, mut model, _| {
        let passes = [feed(&[1, 2, 3], 0), feed(&[40, 41, 42], 1), feed(&[80, 9, 10], 2)];
        let alone: Vec<Vec<f32>> = passes.iter().map(|feed| rows(&mut *model, &[*feed])).collect();
        let mut flights: Vec<_> = passes
            .iter()
            .map(|feed| model.submit(&[*feed]).unwrap())
            .collect();
        let brought: Vec<Logits> = flights
            .iter_mut()
            .map(|flight| flight.rows(&[0, 1, 2]).unwrap())
            .collect();
        drop(flights);
        for feed in passes {
            model
                .forward(&[Feed {
                    tokens: &[5; 3],
                    ..feed
                }])
                .unwrap();
        }
        for (brought, alone) in brought.iter().zip(&alone) {
            let brought: Vec<f32> = (0..3).flat_map(|row| brought.row(row).to_vec()).collect();
            assert_eq!(&brought, alone, "{kind:?}");
        }
    });
}

/// Temperatures, penalties, biases and filters by rank.
fn warpings() -> Vec<Warping> {
    let penalties = Warping {
        repetition_penalty: 1.2,
        frequency_penalty: 0.4,
        presence_penalty: 0.3,
        bias: vec![(9, 1.5), (3, f32::NEG_INFINITY), (9, -0.25)],
        ..Warping::default()
    };
    let filters = Warping {
        top_k: Some(30),
        top_p: 0.9,
        min_p: 0.02,
        ..penalties.clone()
    };
    let at = |temperature: f32, warping: &Warping| Warping {
        temperature,
        ..warping.clone()
    };
    let plain = Warping::default();
    let mut warpings: Vec<Warping> = [1.0, 0.6, 1.7, 0.0].map(|it| at(it, &plain)).to_vec();
    warpings.extend([1.0, 0.0].map(|it| at(it, &penalties)));
    warpings.extend([0.7, 1.3].map(|it| at(it, &filters)));
    warpings.push(Warping { top_p: 0.5, ..plain });
    warpings
}

/// Tokens, masses and probabilities, bit for bit those that the library finds in the same rows.
fn draws_are_those_of_the_library_from_the_same_rows(runner: Runner) {
    each(runner, 6, |kind, mut model, asked| {
        const LEFT_OUT: [usize; 3] = [5, 40, VOCAB - 1];
        model.leave_out(&LEFT_OUT);
        const PASS: [u32; 6] = [7, 8, 9, 10, 11, 12];
        let warpers: Vec<Warper> = warpings()
            .into_iter()
            .map(|warping| Warper::new(warping, Law::Local).unwrap())
            .collect();
        let mask = [0x0FF0_F00F, 0xFFFF_0000, 0x7];
        let mut flight = model.submit(&[feed(&PASS, 0)]).unwrap();
        assert!(flight.draws());
        let ask = |number: usize| Ask {
            row: number * 5 % 6,
            allowed: if number.is_multiple_of(2) {
                Allowed::All
            } else {
                Allowed::Words(&mask)
            },
            warper: &warpers[number % warpers.len()],
            history: History {
                prompt: &PASS[..2],
                answer: &PASS[2..],
                draft: &[7; 3][..number % 4],
            },
            seeded: Seeded::new(number as u64 * 0x9E37_79B9, 3),
            place: Place::new(number as u32 % 3, number as u32),
        };
        let asks: Vec<Ask<'_>> = (0..400).map(ask).collect();
        let drawn = flight.draw(&asks).unwrap();
        let mut landed = Landed::new(flight.rows(&[0, 1, 2, 3, 4, 5]).unwrap());
        for ((ask, found), known) in asks.iter().zip(drawn).zip(landed.draw(&asks).unwrap()) {
            let (found, known) = (found.unwrap(), known.unwrap());
            assert_eq!(found.token, known.token, "{kind:?}, {ask:?}");
            assert!(!LEFT_OUT.contains(&(found.token as usize)));
            assert_eq!(found, known, "{kind:?}");
        }
        assert!(
            [400, usize::MAX].contains(&counted(&asked, |it| &it.drawn)),
            "{kind:?}"
        );
    });
}

/// Why a model with this launcher and block size does not run its passes by plan.
fn refusal(options: &LoadOptions, launcher: OnProcessor, block_size: usize) -> Vec<String> {
    let mut model = llama().load(options, Some(Box::new(launcher)));
    assert!(told().is_empty());
    model.create_cache(8, block_size).unwrap();
    let told = told();
    // Passes are run nevertheless.
    assert_eq!(rows(&mut *model, &[feed(&[1, 2], 0)]).len(), 2 * VOCAB);
    told
}

#[test]
fn a_model_that_the_kernels_do_not_serve_is_run_by_torch_and_says_why() {
    if !processor::is_there("a_model_that_the_kernels_do_not_serve_is_run_by_torch_and_says_why") {
        return;
    }
    told();
    let alone = "passes are run by libtorch alone: ";
    let wide = LoadOptions {
        dtype: Dtype::F32,
        ..options()
    };
    let kind = refusal(&wide, OnProcessor::new(), 16);
    assert_eq!(
        kind,
        [format!(
            "{alone}the kernels do not compute in numbers other than bf16"
        )]
    );
    let blocks = refusal(&options(), OnProcessor::new(), 8);
    assert_eq!(blocks, [format!("{alone}block_size is 8; the kernels take 16")]);
    for step in [1, 20, 60] {
        let launcher = OnProcessor::new();
        launcher.asked().refused.store(step, Ordering::Relaxed);
        let lost = refusal(&options(), launcher, 16);
        assert_eq!(lost, [format!("{alone}the card was lost")], "at step {step}");
    }
    let broken = [
        ("attend.cu", "(r.sees[e] >> (fed & 31) & 1)", "true"),
        ("small.cu", "near[i] * c - far[i] * s", "near[i]"),
        (
            "small.cu",
            "silu(low_half(gates[e])) * low_half(ups[e])",
            "0.f / 0.f",
        ),
    ];
    for (source, from, to) in broken {
        let told = refusal(&options(), OnProcessor::new().broken(source, from, to), 16);
        let why = format!("{alone}on this processor, the kernels compute other rows than libtorch");
        assert!(told.len() == 1 && told[0].starts_with(&why), "{from}: {told:?}");
    }
}

/// A mixture that is computed wrongly is found at the start, also where it takes more tokens of an expert
/// than are read at once.
#[test]
fn mistakes_in_experts_are_found_at_the_start() {
    if !processor::is_there("mistakes_in_experts_are_found_at_the_start") {
        return;
    }
    let checkpoint = Checkpoint::random(MIXTRAL, &mut Chance::new(14));
    for (from, to) in [
        (
            "(u64)item.expert * a.rows",
            "(u64)((item.expert + 1) % a.experts) * a.rows",
        ),
        (
            "a.shares + (u64)blockIdx.y * a.chosen",
            "a.shares + (u64)(blockIdx.y ^ 1) * a.chosen",
        ),
        ("own % count * CHUNK", "own % count * 0"),
    ] {
        told();
        let launcher = OnProcessor::new().broken("experts.cu", from, to);
        let mut model = checkpoint.load(&options(), Some(Box::new(launcher)));
        model.create_cache(8, 16).unwrap();
        let why = "passes are run by libtorch alone: on this processor, the kernels compute other rows than libtorch";
        let told = told();
        assert!(told.len() == 1 && told[0].starts_with(why), "{from}: {told:?}");
    }
}

#[test]
fn passes_that_cannot_be_captured_are_started_step_by_step() {
    if !processor::is_there("passes_that_cannot_be_captured_are_started_step_by_step") {
        return;
    }
    told();
    let launcher = OnProcessor::new().without_graphs();
    let asked = launcher.asked();
    let mut model = llama().load(&options(), Some(Box::new(launcher)));
    model.create_cache(6, 16).unwrap();
    let (mut usual, _) = self::model();
    usual.create_cache(6, 16).unwrap();
    for tokens in [&[1, 2, 3][..], &[4], &[1, 2, 3], &[1, 2, 3], &[4]] {
        let feeds = [feed(tokens, 0)];
        assert_eq!(rows(&mut *model, &feeds), rows(&mut *usual, &feeds));
    }
    let told: Vec<String> = told().into_iter().filter(|told| told.contains("graph")).collect();
    let why = "a pass cannot be captured as a graph, so that its kernels are started one by one: no graph is captured here";
    assert_eq!(told, [why], "said once");
    assert_eq!(asked.replayed.load(Ordering::Relaxed), 0);
}

/// What is lost in the middle of a pass is computed again by libtorch, and so is all that follows.
#[test]
fn a_launcher_that_fails_is_given_up() {
    if !processor::is_there("a_launcher_that_fails_is_given_up") {
        return;
    }
    let pass = [feed(&[1, 2, 3, 4, 5], 0), feed(&[30, 31], 1)];
    let mut torch = llama().load(&options(), None);
    torch.create_cache(6, 16).unwrap();
    let known = rows(&mut *torch, &pass);
    for after in [0, 1, 7, 19] {
        let (mut model, asked) = model();
        model.create_cache(6, 16).unwrap();
        told();
        let begun = asked.steps.load(Ordering::Relaxed);
        asked.refused.store(begun + 1 + after, Ordering::Relaxed);
        assert_eq!(rows(&mut *model, &pass), known, "from step {after} on");
        assert_eq!(
            told(),
            ["passes are run by libtorch from now on: the card was lost"]
        );
        let steps = asked.steps.load(Ordering::Relaxed);
        rows(&mut *model, &pass);
        assert_eq!((asked.steps.load(Ordering::Relaxed), told().len()), (steps, 0));
    }
}

/// Each of these by the kernels on the processor, and on a card.
mod by {
    by_every_kernel!(
        any_batch_through_any_bucket_has_the_rows_of_torch,
        a_replay_with_other_passes_between_has_the_same_bits,
        rows_outlive_the_next_pass,
        draws_are_those_of_the_library_from_the_same_rows,
    );
}
