//! Plans of passes, interpreted on the processor, against the decoder of torch.

use crate::checkpoint::{Checkpoint, Kind, LLAMA, MISTRAL, MIXTRAL, POSITIONS, QWEN, QWEN_MIXTURE};
use crate::interpreter::Interpreter;
use crate::launcher::MULTIPROCESSORS;
use crate::memory::{Chance, Memory};
use crate::processor;
use lexiform_engine::{Feed, Model};
use lexiform_kernels::inputs::{self, Bucket, Input};
use lexiform_kernels::plan::{Buffer, Plan, Scratch};

/// Of more query heads for each key head.
const GROUPED_MISTRAL: Kind = Kind { heads: 8, ..MISTRAL };
/// Sizes at which all products of few tokens are those of the kernels.
const OWN_LLAMA: Kind = Kind {
    heads: 16,
    key_heads: 4,
    hidden: 1024,
    inner: 1024,
    layers: 1,
    ..LLAMA
};
/// Sizes at which attention's product behind it, or the second of the network, is the library's.
const OWN_MISTRAL: Kind = Kind {
    hidden: 1024,
    inner: 1024,
    layers: 1,
    ..GROUPED_MISTRAL
};
const OWN_QWEN: Kind = Kind {
    heads: 8,
    key_heads: 2,
    hidden: 1024,
    layers: 1,
    ..QWEN
};

/// The largest root of the mean of squares of errors of logits, relative to that of the logits, over all
/// passes and of one pass: two layers in bf16 against f32.
const ERROR: f64 = 2e-2;
const ERROR_OF_PASS: f64 = 6e-2;
/// Sequences, each with blocks of its own.
const SEQUENCES: usize = 4;
const BLOCKS: usize = SEQUENCES * POSITIONS / 16;

/// What one sequence feeds.
#[derive(Clone, Debug)]
struct Fed {
    sequence: usize,
    start: usize,
    tokens: Vec<u32>,
    parents: Option<Vec<u16>>,
    rows: usize,
}

/// Sequences with their tables, over both caches.
struct Texts {
    tables: Vec<Vec<u32>>,
    /// How many slots of each sequence hold text.
    lengths: Vec<usize>,
}

impl Texts {
    fn new(chance: &mut Chance) -> Self {
        let mut blocks: Vec<u32> = (0..BLOCKS as u32).collect();
        chance.shuffle(&mut blocks);
        Texts {
            tables: blocks.chunks(POSITIONS / 16).map(<[u32]>::to_vec).collect(),
            lengths: vec![0; SEQUENCES],
        }
    }

    /// What some of the sequences feed next: chains, and trees below one or two tokens of text.
    fn next(&mut self, bucket: &Bucket, chance: &mut Chance) -> Vec<Fed> {
        let mut order: Vec<usize> = (0..SEQUENCES).collect();
        chance.shuffle(&mut order);
        order.truncate(1 + chance.below(bucket.sequences.min(SEQUENCES)));
        let mut left = bucket.tokens;
        let mut fed = Vec::new();
        for sequence in order {
            let count = (1 + chance.below(bucket.most_fed)).min(left);
            if count == 0 {
                break;
            }
            left -= count;
            let text = if chance.below(3) == 0 {
                1 + chance.below(count)
            } else {
                count
            };
            let parents = (0..count - text).map(|node| chance.below(node + 1) as u16);
            let parents: Vec<u16> = parents.collect();
            let start = self.lengths[sequence];
            self.lengths[sequence] += text;
            let most = if text < count { count - text + 1 } else { count };
            fed.push(Fed {
                sequence,
                start,
                tokens: (0..count).map(|_| chance.below(96) as u32).collect(),
                parents: (text < count).then_some(parents),
                rows: chance.below(most + 1),
            });
        }
        fed
    }

    fn feeds<'a>(&'a self, fed: &'a [Fed]) -> Vec<Feed<'a>> {
        let feed = |fed: &'a Fed| Feed {
            tokens: &fed.tokens,
            start: fed.start,
            table: &self.tables[fed.sequence],
            rows: fed.rows,
            parents: fed.parents.as_deref(),
            scale: 1.0,
        };
        fed.iter().map(feed).collect()
    }
}

fn fed_to_kernels<'a>(feeds: &[Feed<'a>]) -> Vec<inputs::Feed<'a>> {
    feeds.iter().map(inputs::Feed::from).collect()
}

fn bucket(tokens: usize, most_fed: usize) -> Bucket {
    Bucket {
        tokens,
        sequences: tokens.min(6),
        pieces: 0,
        rows: tokens,
        table_width: POSITIONS / 16,
        most_fed,
    }
}

/// The logits of the rows that a pass was asked for.
fn logits(interpreter: &Interpreter, rows: usize, vocab: usize) -> Vec<f32> {
    let mut logits = interpreter.buffers[&Buffer::Scratch(Scratch::Logits)].to_f32();
    logits.truncate(rows * vocab);
    logits
}

fn error(found: &[f32], known: &[f32]) -> f64 {
    assert_eq!(found.len(), known.len());
    let square = |it: f32| f64::from(it) * f64::from(it);
    let off = found.iter().zip(known).map(|(a, b)| square(a - b)).sum::<f64>();
    (off / known.iter().map(|&it| square(it)).sum::<f64>()).sqrt()
}

/// Where keys and values of a pass go: those slots of the cache alone may change.
fn slots(inputs: &[u8], bucket: &Bucket) -> Vec<usize> {
    let first = bucket.offset(Input::Slots);
    let slots = inputs[first..first + 4 * bucket.tokens].as_chunks::<4>().0.iter();
    let slots = slots.filter_map(|slot| usize::try_from(i32::from_le_bytes(*slot)).ok());
    slots.collect()
}

/// The rows of a cache that differ.
fn changed(before: &Memory, after: &Memory, row: usize) -> Vec<usize> {
    let (before, after) = (before.bytes(), after.bytes());
    let rows = before.chunks(row).zip(after.chunks(row)).enumerate();
    rows.filter(|(_, (before, after))| before != after)
        .map(|(number, _)| number)
        .collect()
}

fn compare(kind: Kind, seed: u64) {
    let chance = &mut Chance::new(seed);
    let checkpoint = Checkpoint::random(kind, chance);
    let shape = &checkpoint.shape;
    let mut decoder: Box<dyn Model> = checkpoint.decoder();
    decoder.create_cache(BLOCKS, 16).unwrap();
    let mut interpreter = Interpreter::new(checkpoint.buffers(), shape, BLOCKS * 16);
    let mut texts = Texts::new(chance);
    let buckets = [
        bucket(16, 16),
        bucket(1, 1),
        bucket(8, 5),
        bucket(2, 2),
        bucket(24, 16),
        bucket(4, 1),
    ];
    let mut all = (Vec::new(), Vec::new());
    for round in 0..14 {
        let bucket = &buckets[round % buckets.len()];
        let plan = Plan::new(shape, bucket, MULTIPROCESSORS).unwrap();
        interpreter.prepare(&plan);
        let fed = texts.next(bucket, chance);
        let feeds = texts.feeds(&fed);
        let inputs = bucket.fill(&fed_to_kernels(&feeds), shape.group()).unwrap();
        let last = Buffer::Keys(kind.layers - 1);
        let before = interpreter.buffers[&last].clone();
        interpreter.run(&plan, &inputs).unwrap();
        let wanted = fed.iter().map(|fed| fed.rows).sum();
        let known = decoder.forward(&feeds).unwrap();
        let known: Vec<f32> = (0..wanted).flat_map(|row| known.row(row).to_vec()).collect();
        let found = logits(&interpreter, wanted, shape.vocab);
        let off = error(&found, &known);
        assert!(
            wanted == 0 || off < ERROR_OF_PASS,
            "{kind:?}, round {round}, {fed:?}: {off}"
        );
        let after = &interpreter.buffers[&last];
        let written = changed(&before, after, shape.key_heads * shape.head_size * 2);
        let slots = slots(&inputs, bucket);
        assert!(
            written.iter().all(|slot| slots.contains(slot)),
            "{written:?} {slots:?}"
        );
        all.0.extend(found);
        all.1.extend(known);
    }
    let off = error(&all.0, &all.1);
    assert!(all.0.len() > 20 * shape.vocab && off < ERROR, "{kind:?}: {off}");
}

#[test]
fn plans_of_llama_are_its_decoder() {
    if processor::is_there("plans_of_llama_are_its_decoder") {
        compare(LLAMA, 1);
    }
}

#[test]
fn plans_with_windows_are_their_decoder() {
    if processor::is_there("plans_with_windows_are_their_decoder") {
        compare(GROUPED_MISTRAL, 2);
    }
}

#[test]
fn plans_with_norms_of_heads_are_their_decoder() {
    if processor::is_there("plans_with_norms_of_heads_are_their_decoder") {
        compare(QWEN, 3);
    }
}

#[test]
fn plans_with_experts_are_their_decoder() {
    if processor::is_there("plans_with_experts_are_their_decoder") {
        for (kind, seed) in [(MIXTRAL, 9), (QWEN_MIXTURE, 10)] {
            compare(kind, seed);
        }
    }
}

#[test]
fn plans_with_products_of_the_kernels_are_their_decoder() {
    if processor::is_there("plans_with_products_of_the_kernels_are_their_decoder") {
        for (kind, seed) in [(OWN_LLAMA, 6), (OWN_MISTRAL, 7), (OWN_QWEN, 8)] {
            compare(kind, seed);
        }
    }
}

/// A graph is replayed over the same buffers: what a pass leaves in them must not reach the next.
#[test]
fn a_replay_with_other_inputs_between_has_the_same_bits() {
    if !processor::is_there("a_replay_with_other_inputs_between_has_the_same_bits") {
        return;
    }
    let chance = &mut Chance::new(5);
    let checkpoint = Checkpoint::random(LLAMA, chance);
    let (shape, bucket) = (&checkpoint.shape, bucket(16, 8));
    let plan = Plan::new(shape, &bucket, MULTIPROCESSORS).unwrap();
    let mut interpreter = Interpreter::new(checkpoint.buffers(), shape, BLOCKS * 16);
    interpreter.prepare(&plan);
    let texts = Texts::new(chance);
    let fed = |sequence: usize, count: usize, first: u32| Fed {
        sequence,
        start: 0,
        tokens: (first..first + count as u32).collect(),
        parents: None,
        rows: count,
    };
    let passes = [
        vec![fed(0, 8, 1), fed(1, 3, 30)],
        vec![fed(2, 1, 50), fed(3, 7, 60), fed(1, 8, 70)],
    ];
    let mut run = |pass: &[Fed]| {
        let inputs = bucket
            .fill(&fed_to_kernels(&texts.feeds(pass)), shape.group())
            .unwrap();
        interpreter.run(&plan, &inputs).unwrap();
        let arrived = interpreter.buffers[&Buffer::Scratch(Scratch::Arrived)].bytes();
        assert!(arrived.iter().all(|&byte| byte == 0));
        let rows = pass.iter().map(|fed| fed.rows).sum();
        let found = logits(&interpreter, rows, shape.vocab);
        found.into_iter().map(f32::to_bits).collect::<Vec<_>>()
    };
    let first = run(&passes[0]);
    let other = run(&passes[1]);
    assert_eq!(run(&passes[0]), first);
    assert_ne!(other[..96], first[..96]);
    // Alone, a sequence has the row that it has in company.
    assert_eq!(run(&passes[0][..1]), first[..8 * 96]);
}
