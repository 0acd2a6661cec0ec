//! Attention against loops in `f64`.

use super::{Buffers, Case, Expected, Type};
use crate::memory::{Chance, Memory, narrow, widen};
use lexiform_kernels::shapes::{Attend, BLOCK_SIZE, SPLITS};

/// A batch.
#[derive(Clone, Copy)]
struct Batch<'a> {
    size: usize,
    group: usize,
    /// Slots that are cached, and tokens that are fed.
    sequences: &'a [(usize, usize)],
    /// Whether every fed token has two children, as far as there are tokens.
    is_tree: bool,
    window: Option<usize>,
    most_splits: usize,
}

const KEY_HEADS: usize = 2;

pub(super) fn cases() -> Vec<Case> {
    let batch = |size, group, sequences, is_tree, window| Batch {
        size,
        group,
        sequences,
        is_tree,
        window,
        most_splits: SPLITS,
    };
    let pieces = |most_splits, batch| Batch { most_splits, ..batch };
    let batches = [
        batch(64, 4, &[(0, 1), (1, 1), (77, 1), (300, 1)][..], false, None),
        batch(128, 4, &[(15, 1), (16, 1), (500, 1)], false, None),
        batch(128, 8, &[(130, 1), (40, 1)], false, Some(64)),
        batch(64, 8, &[(200, 8), (0, 0), (3, 2)], true, None),
        batch(128, 4, &[(127, 16), (9, 3)], true, None),
        batch(64, 4, &[(260, 7)], false, Some(100)),
        // The window ends among the fed tokens, whose slots are not their positions.
        batch(64, 2, &[(30, 15), (0, 9)], true, Some(2)),
        batch(64, 1, &[(140, 1)], false, Some(1)),
        // Pieces of one prompt and of others, in as many parts as they leave room for.
        pieces(
            1,
            batch(64, 4, &[(300, 16), (284, 16), (0, 16), (530, 5)], false, None),
        ),
        pieces(2, batch(128, 2, &[(500, 32), (120, 31)], false, Some(90))),
    ];
    let numbered = batches.into_iter().zip(1..);
    numbered
        .map(|(batch, seed)| batch.case(&mut Chance::new(seed)))
        .collect()
}

/// What the tokens of a batch are.
#[derive(Default)]
struct Fed {
    firsts: Vec<i32>,
    positions: Vec<i32>,
    sees: Vec<u32>,
    tables: Vec<i32>,
    width: usize,
    blocks: usize,
}

impl Batch<'_> {
    fn heads(&self) -> usize {
        KEY_HEADS * self.group
    }

    fn fed(&self, chance: &mut Chance) -> Fed {
        let blocks = |(start, count): (usize, usize)| (start + count).div_ceil(BLOCK_SIZE);
        let mut fed = Fed {
            firsts: vec![0],
            width: self.sequences.iter().map(|&it| blocks(it)).max().unwrap(),
            blocks: 1 + self.sequences.iter().map(|&it| blocks(it)).sum::<usize>(),
            ..Fed::default()
        };
        let mut order: Vec<i32> = (1..fed.blocks as i32).collect();
        chance.shuffle(&mut order);
        let mut order = order.into_iter();
        for &(start, count) in self.sequences {
            let first = fed.positions.len();
            for token in 0..count {
                let parent = match self.is_tree {
                    true => token.div_ceil(2),
                    false => token,
                };
                let parent = parent.checked_sub(1).map(|parent| first + parent);
                let (sees, position) = match parent {
                    Some(parent) => (fed.sees[parent], fed.positions[parent] + 1),
                    None => (0, start as i32),
                };
                fed.sees.push(sees | 1 << token);
                fed.positions.push(position);
            }
            fed.firsts.push(fed.positions.len() as i32);
            let end = fed.tables.len() + fed.width;
            fed.tables.extend(order.by_ref().take(blocks((start, count))));
            fed.tables.resize(end, 0);
        }
        fed
    }

    fn case(&self, chance: &mut Chance) -> Case {
        let (size, heads, fed) = (self.size, self.heads(), self.fed(chance));
        let (tokens, slots) = (fed.positions.len(), fed.blocks * BLOCK_SIZE);
        let queries = chance.numbers(tokens * heads * size, 1.0);
        let mut keys = chance.numbers(slots * KEY_HEADS * size, 1.0);
        let mut values = chance.numbers(slots * KEY_HEADS * size, 1.0);
        self.spoil(&fed, &mut keys, &mut values);
        let expected = self.expected(&fed, &queries, &keys, &values);
        let mut buffers = Buffers::default();
        let starts: Vec<i32> = self.sequences.iter().map(|&(start, _)| start as i32).collect();
        let (mut parts_at, mut rows) = (Vec::new(), 0);
        for &(start, count) in self.sequences {
            parts_at.push(rows as i32);
            rows += Attend::<usize>::split_rows(start + count, count, self.group, self.most_splits);
        }
        let parts = Attend::<usize>::parts_bytes(rows, KEY_HEADS, size) / 4;
        let out = buffers.add(Memory::bf16(&chance.numbers(tokens * heads * size, 1.0)));
        let arrived = buffers.add(Memory::zeros(4 * starts.len() * KEY_HEADS));
        let node = Attend {
            queries: buffers.add(Memory::bf16(&queries)),
            keys: buffers.add(Memory::bf16(&keys)),
            values: buffers.add(Memory::bf16(&values)),
            out,
            parts: buffers.add(Memory::f32(&vec![f32::NAN; parts + 64])),
            arrived,
            tables: buffers.add(Memory::i32(&fed.tables)),
            starts: buffers.add(Memory::i32(&starts)),
            firsts: buffers.add(Memory::i32(&fed.firsts)),
            positions: buffers.add(Memory::i32(&fed.positions)),
            sees: buffers.add(Memory::u32(&fed.sees)),
            parts_at: buffers.add(Memory::i32(&parts_at)),
            size,
            key_heads: KEY_HEADS,
            group: self.group,
            sequences: starts.len(),
            table_width: fed.width,
            most_fed: self.sequences.iter().map(|&(_, count)| count).max().unwrap(),
            most_splits: self.most_splits,
            window: self.window,
        };
        Case {
            name: self.name(),
            nodes: vec![node.node()],
            // The second round finds what the first left in the counts of arrivals.
            rounds: 2,
            expected: vec![
                Expected {
                    buffer: out.buffer,
                    numbers: expected,
                    type_: Type::Bf16,
                },
                Expected {
                    buffer: arrived.buffer,
                    numbers: vec![f64::NAN; starts.len() * KEY_HEADS],
                    type_: Type::F32,
                },
            ],
            buffers: buffers.0,
        }
    }

    fn name(&self) -> String {
        let kind = if self.is_tree { "trees" } else { "chains" };
        format!(
            "attention, heads of {}, {} to a key head, {kind} {:?}, window {:?}, at most {} splits",
            self.size, self.group, self.sequences, self.window, self.most_splits
        )
    }

    /// The slot of the cache of a slot of a sequence.
    fn row(&self, fed: &Fed, sequence: usize, slot: usize) -> usize {
        fed.tables[sequence * fed.width + slot / BLOCK_SIZE] as usize * BLOCK_SIZE + slot % BLOCK_SIZE
    }

    /// What lies behind a text, in its last block, is no number.
    fn spoil(&self, fed: &Fed, keys: &mut [u16], values: &mut [u16]) {
        for (sequence, &(start, count)) in self.sequences.iter().enumerate() {
            let total = start + count;
            for slot in total..total.next_multiple_of(BLOCK_SIZE) {
                let first = self.row(fed, sequence, slot) * KEY_HEADS * self.size;
                let numbers = first..first + KEY_HEADS * self.size;
                keys[numbers.clone()].fill(narrow(f32::NAN));
                values[numbers].fill(narrow(f32::NAN));
            }
        }
    }

    fn expected(&self, fed: &Fed, queries: &[u16], keys: &[u16], values: &[u16]) -> Vec<f64> {
        let mut expected = Vec::new();
        for (sequence, &(_, count)) in self.sequences.iter().enumerate() {
            for number in 0..count {
                let token = fed.firsts[sequence] as usize + number;
                let seen = self.seen(fed, sequence, token);
                for head in 0..self.heads() {
                    let query = &queries[(token * self.heads() + head) * self.size..][..self.size];
                    let at = |slot: usize| (slot * KEY_HEADS + head / self.group) * self.size;
                    let of =
                        |slot: &usize| (&keys[at(*slot)..][..self.size], &values[at(*slot)..][..self.size]);
                    expected.extend(softmax(query, &seen.iter().map(of).collect::<Vec<_>>()));
                }
            }
        }
        expected
    }

    /// The slots of the cache that a token sees.
    fn seen(&self, fed: &Fed, sequence: usize, token: usize) -> Vec<usize> {
        let (start, count) = self.sequences[sequence];
        let first = fed.firsts[sequence] as usize;
        let oldest = fed.positions[token] - self.window.map_or(1 << 30, |window| window as i32);
        let is_seen = |&slot: &usize| match slot.checked_sub(start) {
            None => slot as i32 > oldest,
            Some(number) => fed.sees[token] >> number & 1 == 1 && fed.positions[first + number] > oldest,
        };
        let seen = (0..start + count).filter(is_seen);
        seen.map(|slot| self.row(fed, sequence, slot)).collect()
    }
}

/// Attention of one query over some keys.
fn softmax(query: &[u16], seen: &[(&[u16], &[u16])]) -> Vec<f64> {
    let size = query.len();
    let wide = |bits: &u16| f64::from(widen(*bits));
    let score = |key: &[u16]| {
        let products = query.iter().zip(key).map(|(q, k)| wide(q) * wide(k));
        products.sum::<f64>() / (size as f64).sqrt()
    };
    let scores: Vec<f64> = seen.iter().map(|(key, _)| score(key)).collect();
    let peak = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut out = vec![0.0; size];
    let mut mass = 0.0;
    for (score, (_, value)) in scores.iter().zip(seen) {
        let weight = (score - peak).exp();
        mass += weight;
        for (out, value) in out.iter_mut().zip(*value) {
            *out += weight * wide(value);
        }
    }
    out.into_iter().map(|out| out / mass).collect()
}
