//! Passes whose matrix products are computed by the kernels, compared with the torch decoder with the same
//! weights, and passes for which there is no memory.
//!
//! The models are wide enough for `gemv.cu` and `skinny.cu`: in one of them the kernels compute all products
//! up to 16 tokens, and in others the library computes one of the products.

use crate::checkpoint::{Checkpoint, Kind, LLAMA, MISTRAL, MIXTRAL, QWEN};
use crate::launcher::{Asked, OnProcessor};
use crate::memory::Chance;
use crate::planned::{ERROR_OF_ROW, Runner, VOCAB, feed, llama, model, options, relative, rows, told};
use crate::processor;
use lexiform_engine::{Feed, LoadOptions, WeightFormat};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A kind, and how many steps a pass of one or two tokens and one of three to sixteen are.
const KINDS: [(Kind, usize, usize); 5] = [
    // Every product.
    (
        Kind {
            heads: 16,
            key_heads: 4,
            hidden: 1024,
            inner: 1024,
            layers: 1,
            ..LLAMA
        },
        1 + 6 + 1,
        1 + 9 + 2,
    ),
    // The sums behind attention are over 256 columns, those of the network over 208.
    (
        Kind {
            hidden: 1024,
            inner: 208,
            ..MISTRAL
        },
        1 + 2 * 6 + 1,
        1 + 2 * 9 + 2,
    ),
    (
        Kind {
            heads: 8,
            key_heads: 2,
            hidden: 1024,
            layers: 1,
            ..QWEN
        },
        1 + 6 + 1,
        1 + 9 + 2,
    ),
    // The kernels have no such width; only the sums behind attention are over one that they have.
    (
        Kind {
            heads: 16,
            key_heads: 4,
            hidden: 640,
            layers: 1,
            ..LLAMA
        },
        1 + 9 + 2,
        1 + 9 + 2,
    ),
    // Norm, router, lists, two products and a sum take the place of the network.
    (
        Kind {
            heads: 16,
            key_heads: 4,
            hidden: 1024,
            layers: 1,
            ..MIXTRAL
        },
        1 + 4 + 6 + 1,
        1 + 5 + 6 + 2,
    ),
];
const SEQUENCES: usize = 6;
const BLOCKS_EACH: usize = 8;

/// Sequences that grow by so many tokens in a pass, whose rows are all wanted but the last sequence's first.
struct Texts {
    chance: Chance,
    lengths: [usize; SEQUENCES],
}

struct Fed {
    sequence: usize,
    tokens: Vec<u32>,
    rows: usize,
}

impl Texts {
    fn next(&mut self, counts: &[usize]) -> Vec<Fed> {
        let last = counts.len() - 1;
        let fed = counts.iter().enumerate().map(|(sequence, &count)| Fed {
            sequence,
            tokens: (0..count).map(|_| self.chance.below(VOCAB) as u32).collect(),
            rows: count - usize::from(sequence == last && count > 1),
        });
        fed.collect()
    }

    fn feeds<'a>(&self, fed: &'a [Fed], tables: &'a [Vec<u32>]) -> Vec<Feed<'a>> {
        let feed = |fed: &'a Fed| Feed {
            tokens: &fed.tokens,
            start: self.lengths[fed.sequence],
            table: &tables[fed.sequence],
            rows: fed.rows,
            parents: None,
            scale: 1.0,
        };
        fed.iter().map(feed).collect()
    }
}

fn steps(asked: &Option<Arc<Asked>>) -> Option<usize> {
    asked.as_ref().map(|asked| asked.steps.load(Ordering::Relaxed))
}

/// What the sequences feed in one pass after another: every size with products of its own, and one of the
/// library's.
const PASSES: [&[usize]; 8] = [
    &[1],
    &[2],
    &[1, 1],
    &[2, 1],
    &[5, 1, 1],
    &[9, 4, 2],
    &[11, 6, 4],
    &[2],
];

/// Passes of these sizes by plan, of which each is so many steps, against torch, or our own loops where
/// weights are in eight bits.
fn compare(
    runner: Runner,
    (kind, weights): (Kind, WeightFormat),
    passes: &[&[usize]],
    steps_of: impl Fn(usize) -> usize,
    seed: u64,
) {
    let checkpoint = Checkpoint::random(kind, &mut Chance::new(seed));
    let (mut planned, asked) = runner.model_that(LoadOptions { weights, ..options() }, &checkpoint);
    let mut known = checkpoint.decoder_in(weights);
    told();
    for model in [&mut planned, &mut known] {
        model.create_cache(SEQUENCES * BLOCKS_EACH, 16).unwrap();
    }
    let told = told();
    assert!(told[0].contains("are run by kernels on"), "{told:?}");
    let tables: Vec<Vec<u32>> = (0..SEQUENCES as u32)
        .map(|sequence| {
            (0..BLOCKS_EACH as u32)
                .map(|block| sequence + block * SEQUENCES as u32)
                .collect()
        })
        .collect();
    let mut texts = Texts {
        chance: Chance::new(seed),
        lengths: [0; SEQUENCES],
    };
    let (mut all, mut worst, mut worst_hidden) = ((Vec::new(), Vec::new()), 0.0_f32, 0.0_f32);
    for counts in passes {
        let fed = texts.next(counts);
        let feeds = texts.feeds(&fed, &tables);
        let before = steps(&asked);
        let found = rows(&mut *planned, &feeds);
        let expected_steps = steps_of(counts.iter().sum());
        if let (Some(before), Some(after)) = (before, steps(&asked)) {
            assert_eq!(after - before, expected_steps, "{kind:?}, {counts:?}");
        }
        // A pass over the same slots again has the same bits: it is captured, and then replayed.
        assert_eq!(rows(&mut *planned, &feeds), found, "{kind:?}, {counts:?}");
        let expected = rows(&mut *known, &feeds);
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.chunks(VOCAB).zip(expected.chunks(VOCAB)) {
            worst = worst.max(relative(found, expected));
        }
        let hidden = [&mut planned, &mut known].map(|model| {
            let mut flight = model.submit(&feeds).unwrap();
            let rows: Vec<usize> = (0..flight.len()).collect();
            flight.hidden(&rows).unwrap().unwrap()
        });
        worst_hidden = worst_hidden.max(relative(&hidden[0], &hidden[1]));
        all.0.extend(found);
        all.1.extend(expected);
        for fed in &fed {
            texts.lengths[fed.sequence] += fed.tokens.len();
        }
    }
    let off = relative(&all.0, &all.1);
    assert!(
        off < 0.03 && worst < ERROR_OF_ROW && worst_hidden < ERROR_OF_ROW,
        "{kind:?}: {off}, {worst}, {worst_hidden}"
    );
}

fn passes_of_every_size_have_the_rows_of_torch(runner: Runner) {
    for ((kind, few, some), seed) in KINDS.into_iter().zip(21..) {
        let steps = |tokens| if tokens <= 2 { few } else { some };
        compare(runner, (kind, WeightFormat::Stored), &PASSES, steps, seed);
    }
}

/// The same with weights in eight bits: passes that read them once, twice, and those whose products the
/// library makes with widened ones.
fn passes_with_weights_in_eight_bits_have_the_rows_of_our_loops(runner: Runner) {
    let of_all = |tokens| match tokens {
        1 | 2 => 1 + 6 + 1,
        3..=16 => 1 + 9 + 2,
        // Twice, or widened before: each product is two steps.
        _ => 1 + 9 + 4 + 3,
    };
    // No kernel takes the columns of two of four products.
    let of_some = |tokens| match tokens {
        1 | 2 => 1 + 2 * (6 + 2) + 1,
        3..=16 => 1 + 2 * (9 + 2) + 2,
        _ => 1 + 2 * (9 + 4) + 3,
    };
    let passes: Vec<&[usize]> = PASSES.into_iter().chain([&[13, 13, 14][..]]).collect();
    // Who makes a product does not depend on the format.
    compare(runner, (KINDS[0].0, WeightFormat::Int8), &passes, of_all, 41);
    compare(runner, (KINDS[1].0, WeightFormat::Fp8), &passes, of_some, 42);
}

/// A model of which libtorch runs all passes, since the cache is not the kernels', and one whose card is
/// lost.
#[test]
fn what_kernels_do_not_run_is_computed_with_widened_weights() {
    if !processor::is_there("what_kernels_do_not_run_is_computed_with_widened_weights") {
        return;
    }
    for weights in [WeightFormat::Int8, WeightFormat::Fp8] {
        let checkpoint = Checkpoint::random(KINDS[1].0, &mut Chance::new(51));
        let mut known = checkpoint.decoder_in(weights);
        known.create_cache(8, 16).unwrap();
        let pass = [feed(&[1, 2, 3], 0), feed(&[40], 1)];
        let expected = rows(&mut *known, &pass);
        for is_lost in [false, true] {
            let launcher = OnProcessor::new();
            let asked = launcher.asked();
            let options = LoadOptions { weights, ..options() };
            let mut model = checkpoint.load(&options, Some(Box::new(launcher)));
            told();
            model.create_cache(8, if is_lost { 16 } else { 32 }).unwrap();
            let before = asked.steps.load(Ordering::Relaxed);
            asked.refused.store(before + 3, Ordering::Relaxed);
            let found = rows(&mut *model, &pass);
            let off = relative(&found, &expected);
            assert!(off < ERROR_OF_ROW, "{weights}: {off}");
            let told = told();
            let words = if is_lost { "from now on" } else { "alone" };
            assert!(told.last().unwrap().contains(words), "{told:?}");
            assert_eq!(before > 0, is_lost);
        }
    }
}

/// Each of these by the kernels on the processor, and on a card.
mod by {
    use crate::planned::by_every_kernel;
    by_every_kernel!(
        passes_of_every_size_have_the_rows_of_torch,
        passes_with_weights_in_eight_bits_have_the_rows_of_our_loops,
    );
}

/// A product that is wrong on some card is found before anybody is answered, whatever the size of the passes
/// that it is made in.
#[test]
fn mistakes_in_products_are_found_at_the_start() {
    if !processor::is_there("mistakes_in_products_are_found_at_the_start") {
        return;
    }
    let checkpoint = Checkpoint::random(KINDS[0].0, &mut Chance::new(31));
    for (source, from, to) in [
        ("gemv.cu", "sums, 2 * row + 1, width", "sums, 2 * row, width"),
        (
            "gemv.cu",
            "END == ADD ? widen(((bf16*)a.out)[place]) : 0.f",
            "0.f",
        ),
        ("skinny.cu", "multiply(sum[t], right, b[2], b[3]);", ""),
    ] {
        let launcher = OnProcessor::new().broken(source, from, to);
        let mut model = checkpoint.load(&options(), Some(Box::new(launcher)));
        told();
        model.create_cache(8, 16).unwrap();
        let why = "passes are run by libtorch alone: on this processor, the kernels compute other rows than libtorch";
        let told = told();
        assert!(
            told.len() == 1 && told[0].starts_with(why),
            "{source}, {from}: {told:?}"
        );
    }
}

/// What there is no memory for is computed by libtorch; smaller passes go on by plan.
#[test]
fn sizes_without_memory_and_larger_ones_are_left_to_torch() {
    if !processor::is_there("sizes_without_memory_and_larger_ones_are_left_to_torch") {
        return;
    }
    let mut torch = llama().load(&options(), None);
    torch.create_cache(6, 16).unwrap();
    let (mut model, asked) = model();
    told();
    model.create_cache(6, 16).unwrap();
    assert!(told()[0].contains("are run by kernels on"));
    // From now on there is what the passes at the start have taken: room for 64 tokens.
    asked.room.store(1, Ordering::Relaxed);
    let steps = || asked.steps.load(Ordering::Relaxed);
    let small = [feed(&[1, 2, 3, 4, 5], 0)];
    let first = rows(&mut *model, &small);
    let before = steps();
    let tokens: Vec<u32> = (0..32).collect();
    let large = |each: usize| [0, 1, 2].map(|table| feed(&tokens[..each], table));
    for (each, is_told) in [(24, true), (32, false), (22, false), (30, false)] {
        let known = rows(&mut *torch, &large(each));
        assert_eq!(
            rows(&mut *model, &large(each)),
            known,
            "three times {each} tokens"
        );
        let told = told();
        assert_eq!(told.len(), usize::from(is_told), "{told:?}");
        assert!(
            told.iter()
                .all(|told| told.contains("no memory for passes of 96 tokens over texts of up to 256")),
            "{told:?}"
        );
    }
    assert_eq!(steps(), before);
    assert_eq!(rows(&mut *model, &small), first);
    assert!(steps() > before);
    // A cache that is made anew begins anew.
    asked.room.store(0, Ordering::Relaxed);
    model.create_cache(6, 16).unwrap();
    let before = steps();
    rows(&mut *model, &large(24));
    assert!(steps() > before);
}

/// Rows of a pass's own, which it needs where those of the one before are still read, are no reason to give
/// up plans.
#[test]
fn a_pass_without_memory_for_rows_of_its_own_is_left_to_torch() {
    if !processor::is_there("a_pass_without_memory_for_rows_of_its_own_is_left_to_torch") {
        return;
    }
    let (mut model, asked) = model();
    model.create_cache(6, 16).unwrap();
    let steps = || asked.steps.load(Ordering::Relaxed);
    let passes = [feed(&[1, 2, 3], 0), feed(&[40, 41, 42], 1)];
    let known = passes.map(|feed| rows(&mut *model, &[feed]));
    told();
    asked.room.store(1, Ordering::Relaxed);
    let mut held = model.submit(&passes[..1]).unwrap();
    let before = steps();
    let alone = rows(&mut *model, &passes[1..]);
    assert_eq!(steps(), before);
    assert!(relative(&alone, &known[1]) < ERROR_OF_ROW);
    let brought = held.rows(&[0, 1, 2]).unwrap();
    let brought: Vec<f32> = (0..3).flat_map(|row| brought.row(row).to_vec()).collect();
    assert_eq!(brought, known[0]);
    drop(held);
    assert_eq!(rows(&mut *model, &passes[1..]), known[1]);
    assert!(steps() > before && told().is_empty());
}
