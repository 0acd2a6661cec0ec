//! Numbers the states of a product, each of which is a tuple of one state per operand.
//!
//! Nearly all products have one or two operands, whose combinations can be counted: the number of a
//! combination is looked up in a list or, if that would be long, by one word. Only combinations that cannot
//! be counted are looked up as tuples.

use rustc_hash::FxHashMap;

/// The states of a product, numbered in the order in which they are found.
pub(super) struct States {
    /// The states of the operands, concatenated for all states of the product.
    parts: Vec<u32>,
    /// The number of states.
    pub(super) count: usize,
    /// The number of states of each operand, if all combinations can be counted.
    sizes: Option<Vec<u32>>,
    /// The number of each combination plus one, or zero if it has none; used if there are few combinations.
    few: Vec<u32>,
    /// The numbers of combinations that can be counted.
    counted: FxHashMap<u64, u32>,
    /// The numbers of all other combinations.
    others: FxHashMap<Box<[u32]>, u32>,
}

/// The maximum number of combinations that are looked up in a list.
const FEW_COMBINATIONS: u64 = 1 << 16;

/// About the bytes of an entry of a table, without the tuple that it is found by.
const ENTRY_BYTES: usize = 40;

impl States {
    /// Creates an empty numbering for operands with these numbers of states.
    pub(super) fn new(sizes: Vec<u32>) -> States {
        let mut factors = sizes.iter().map(|&size| u64::from(size));
        let all = factors.try_fold(1, u64::checked_mul);
        let few = all.filter(|&all| all <= FEW_COMBINATIONS).unwrap_or(0);
        States {
            parts: Vec::new(),
            count: 0,
            sizes: all.map(|_| sizes),
            few: vec![0; few as usize],
            counted: FxHashMap::default(),
            others: FxHashMap::default(),
        }
    }

    /// Returns the number of a state, which is added if it is new.
    pub(super) fn number(&mut self, state: &[u32]) -> u32 {
        let new = self.count as u32;
        let number = match &self.sizes {
            None => match self.others.get(state) {
                Some(&known) => known,
                None => *self.others.entry(state.into()).or_insert(new),
            },
            Some(sizes) => {
                let digits = state.iter().zip(sizes);
                let combination =
                    digits.fold(0, |sum, (&part, &size)| sum * u64::from(size) + u64::from(part));
                match self.few.get_mut(combination as usize) {
                    None => *self.counted.entry(combination).or_insert(new),
                    Some(known) => {
                        if *known == 0 {
                            *known = new + 1;
                        }
                        *known - 1
                    }
                }
            }
        };
        if number == new {
            self.count += 1;
            self.parts.extend(state);
        }
        number
    }

    /// Returns about how many bytes the numbering takes. Tuples of many operands take far more than the table
    /// of the product.
    pub(super) fn bytes(&self) -> usize {
        let tuples =
            self.others.len() * (ENTRY_BYTES + size_of::<u32>() * self.parts.len() / self.count.max(1));
        size_of::<u32>() * (self.parts.capacity() + self.few.len())
            + self.counted.len() * ENTRY_BYTES
            + tuples
    }

    /// Copies a state into `state`; returns `false` if there is no state with this number.
    pub(super) fn copy(&self, number: usize, state: &mut Vec<u32>) -> bool {
        state.clear();
        if number >= self.count {
            return false;
        }
        let operands = self.parts.len() / self.count;
        state.extend(&self.parts[number * operands..(number + 1) * operands]);
        true
    }
}
