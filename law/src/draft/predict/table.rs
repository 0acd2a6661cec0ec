//! A table of fixed size from contexts to the few likeliest tokens after each.
//!
//! ```text
//!   key ─► set of WAYS slots ─► the slot with this key, or else the one that was learned longest ago
//! ```
//!
//! This is a set-associative cache like those of processors: the size never changes, a look-up reads one set,
//! and the least recently learned slot is replaced. Different contexts with the same 64 bits share a slot,
//! which makes a draft worse but never a result wrong.

use super::context::Candidate;
use crate::draft::Origin;

/// The number of tokens in a slot, as many as in Token Recycling's adjacency matrix.
pub(super) const WIDTH: usize = 8;
/// The number of slots that may hold a key.
const WAYS: usize = 8;
/// A new row changes a running average by at least one part in `MEMORY`, so that recent rows are learned at
/// any time.
const MEMORY: f32 = 64.0;

/// The likeliest tokens after a context.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slot {
    /// The key; 0 if the slot is empty.
    key: u64,
    learned: u32,
    /// The number of rows or tokens learned.
    seen: f32,
    /// The likeliest first; entries with zero weight are empty.
    tokens: [(u32, f32); WIDTH],
}

impl Slot {
    /// Replaces the slot by the likeliest tokens of a row.
    pub(super) fn replace(&mut self, row: &[(u32, f32)]) {
        self.seen = 1.0;
        self.tokens = [(0, 0.0); WIDTH];
        self.tokens
            .iter_mut()
            .zip(row)
            .for_each(|(known, new)| *known = *new);
    }

    /// Adds the likeliest tokens of a row to the running average of all rows.
    pub(super) fn average(&mut self, row: &[(u32, f32)]) {
        let part = 1.0 / (self.seen + 1.0).min(MEMORY);
        self.seen += 1.0;
        self.mix(
            row.iter().map(|&(token, chance)| (token, part * chance)),
            1.0 - part,
        );
    }

    /// Counts a token; after many tokens older ones count less.
    pub(super) fn count(&mut self, token: u32) {
        self.average(&[(token, 1.0)]);
    }

    /// Scales the known tokens by `kept`, adds those of a row, and keeps the heaviest.
    fn mix(&mut self, row: impl Iterator<Item = (u32, f32)>, kept: f32) {
        let mut all: [(u32, f32); 2 * WIDTH] = [(0, 0.0); 2 * WIDTH];
        all[..WIDTH].copy_from_slice(&self.tokens);
        let mut length = self.tokens.iter().take_while(|(_, weight)| *weight > 0.0).count();
        all[..length].iter_mut().for_each(|(_, weight)| *weight *= kept);
        for (token, weight) in row.take(WIDTH) {
            match all[..length].iter_mut().find(|(known, _)| *known == token) {
                Some((_, known)) => *known += weight,
                None => {
                    all[length] = (token, weight);
                    length += 1;
                }
            }
        }
        all[..length].sort_by(|one, other| other.1.total_cmp(&one.1));
        self.tokens.copy_from_slice(&all[..WIDTH]);
        self.tokens[length.min(WIDTH)..].fill((0, 0.0));
    }

    /// Returns `true` if learning could have produced this slot: each token occurs once, the likeliest first,
    /// with chances that sum to at most 1.
    fn is_row(&self) -> bool {
        let weights = self.tokens.iter().map(|(_, weight)| *weight);
        let is_sorted = weights.clone().is_sorted_by(|one, other| one >= other);
        let are_shares = weights.clone().all(|weight| (0.0..=1.0).contains(&weight));
        let length = weights.clone().take_while(|weight| *weight > 0.0).count();
        let tokens = &self.tokens[..length];
        let is_new = |(at, token): (usize, u32)| tokens[..at].iter().all(|known| known.0 != token);
        let are_once = tokens.iter().map(|(token, _)| *token).enumerate().all(is_new);
        // Allows for rounding.
        let is_whole = weights.sum::<f32>() <= 1.0 + 1e-5;
        is_sorted && are_shares && are_once && is_whole && self.seen >= 1.0 && self.seen.is_finite()
    }

    /// Adds the tokens as candidates.
    pub(super) fn candidates(&self, origin: Origin, found: &mut Vec<Candidate>) {
        let tokens = self.tokens.iter().take_while(|(_, weight)| *weight > 0.0);
        found.extend(tokens.map(|&(token, chance)| Candidate {
            token,
            chance,
            origin,
        }));
    }
}

/// A map from contexts to the likeliest tokens after each.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// As many whole sets as fit into the bytes; empty until something is learned.
    slots: Vec<Slot>,
    sets: usize,
    clock: u32,
}

impl Table {
    /// Creates a table of at most `bytes` bytes, but at least one set.
    pub(super) fn new(bytes: usize) -> Table {
        Table {
            slots: Vec::new(),
            sets: (bytes / (WAYS * size_of::<Slot>())).max(1),
            clock: 0,
        }
    }

    fn set(&self, key: u64) -> std::ops::Range<usize> {
        let set = ((u128::from(key) * self.sets as u128) >> 64) as usize;
        set * WAYS..(set + 1) * WAYS
    }

    /// Returns the slot of a context, if it is known.
    pub(super) fn get(&self, key: u64) -> Option<&Slot> {
        let key = key.max(1);
        self.slots.get(self.set(key))?.iter().find(|slot| slot.key == key)
    }

    /// Returns the slot of a context for learning.
    pub(super) fn learn(&mut self, key: u64) -> &mut Slot {
        let key = key.max(1);
        if self.slots.is_empty() {
            self.slots = vec![Slot::default(); self.sets * WAYS];
        }
        self.clock = self.clock.wrapping_add(1);
        let (set, clock) = (self.set(key), self.clock);
        let slots = &mut self.slots[set];
        let place = slots.iter().position(|slot| slot.key == key).unwrap_or_else(|| {
            let oldest = (0..WAYS).max_by_key(|&way| match slots[way].key {
                0 => u32::MAX,
                _ => clock.wrapping_sub(slots[way].learned),
            });
            let oldest = oldest.unwrap_or(0);
            slots[oldest] = Slot {
                key,
                ..Slot::default()
            };
            oldest
        });
        slots[place].learned = clock;
        &mut slots[place]
    }

    /// Serializes all slots, the least recently learned one first:
    ///
    /// ```text
    ///   key │ rows seen │ number of tokens │ tokens, each with its weight       lowest byte first
    ///   u64 │ f32       │ u8               │ u32, f32
    /// ```
    pub(super) fn save(&self) -> Vec<u8> {
        let mut slots: Vec<&Slot> = self.slots.iter().filter(|slot| slot.key != 0).collect();
        slots.sort_by_key(|slot| std::cmp::Reverse(self.clock.wrapping_sub(slot.learned)));
        let mut saved = Vec::with_capacity(slots.len() * size_of::<Slot>());
        for slot in slots {
            let tokens = slot.tokens.iter().filter(|(_, weight)| *weight > 0.0);
            saved.extend(slot.key.to_le_bytes());
            saved.extend(slot.seen.to_le_bytes());
            saved.push(tokens.clone().count() as u8);
            for (token, weight) in tokens {
                saved.extend(token.to_le_bytes());
                saved.extend(weight.to_le_bytes());
            }
        }
        saved
    }

    /// Learns the saved slots in their order, except those that are no valid rows. Always returns `true`,
    /// which a predictor returns to say that the part was its own.
    pub(super) fn restore(&mut self, mut saved: &[u8]) -> bool {
        while let Some(slot) = read_slot(&mut saved) {
            if slot.is_row() {
                let known = self.learn(slot.key);
                (known.seen, known.tokens) = (slot.seen, slot.tokens);
            }
        }
        true
    }

    pub(super) fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
    }
}

/// Reads the next saved slot, whatever it holds; `None` at the end, and if the input is cut short.
fn read_slot(saved: &mut &[u8]) -> Option<Slot> {
    let mut slot = Slot {
        key: u64::from_le_bytes(take(saved)?),
        seen: f32::from_le_bytes(take(saved)?),
        ..Slot::default()
    };
    let [count] = take(saved)?;
    for place in slot.tokens.get_mut(..usize::from(count))? {
        let token = u32::from_le_bytes(take(saved)?);
        *place = (token, f32::from_le_bytes(take(saved)?));
    }
    Some(slot)
}

/// Takes the next `N` bytes.
fn take<const N: usize>(saved: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = saved.split_first_chunk()?;
    *saved = rest;
    Some(*first)
}
