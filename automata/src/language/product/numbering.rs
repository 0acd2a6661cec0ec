//! Numbers for the states of a product, each of which is a state of every operand.
//!
//! Nearly all products have one operand or two, whose combinations can be counted through: the number of a
//! combination is looked up in a list, or where that would be long by one word. Only what cannot be counted
//! is looked up as it is.

use rustc_hash::FxHashMap;

/// The states of a product, numbered as they are found.
pub(super) struct States {
    /// The states of the operands, for one state of the product after the other.
    parts: Vec<u32>,
    /// How many states there are.
    pub(super) count: usize,
    /// For each operand how many states it has, as long as all combinations can be counted.
    sizes: Option<Vec<u32>>,
    /// The numbers of combinations, where there can only be few; zero for none, and else one more.
    few: Vec<u32>,
    /// The numbers of combinations that can be counted.
    counted: FxHashMap<u64, u32>,
    /// The numbers of all others.
    others: FxHashMap<Box<[u32]>, u32>,
}

/// The most combinations that are looked up in a list.
const FEW_COMBINATIONS: u64 = 1 << 16;

impl States {
    /// No combinations yet, of operands with these numbers of states.
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

    /// The number of a state, which may be new.
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

    /// Copies a state; false if there is none of this number.
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
