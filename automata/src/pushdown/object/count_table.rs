//! The counts that a choice of items can reach.
//!
//! A cell of the table is a vector of counts, one for each demand, and holds the fewest items that reach it.
//! Counts end at a *cap*: a bounded demand forbids more, and any other counts no further.
//!
//! ```text
//!   x: at most 1    y: at least 2          (x, y)   00  10  01  11  02  12
//!   one item that meets x, or none                   0   1
//!   any number of items that meet y                  0   1   1   2   2   3
//! ```
//!
//! An item never leads to a smaller cell. So a pass from the last cell to the first chooses an item once, and
//! a pass from the first to the last chooses it any number of times, both in place.

use crate::grammar::Meets;
use crate::work::spend;

/// The counts of one demand that are told apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cap {
    /// The greatest count.
    pub(super) count: usize,
    /// `true` if no item may exceed it.
    pub(super) is_bound: bool,
}

/// The fewest items for each vector of counts.
#[derive(Debug)]
pub(super) struct CountTable {
    /// For each demand, the distance between cells whose counts differ by one.
    strides: Vec<usize>,
    /// For each cell, the demands whose counts are at their caps.
    full: Vec<Meets>,
    bounded: Meets,
    fewest: Vec<u32>,
}

/// The number of items in a cell that no choice reaches.
const UNREACHED: u32 = u32::MAX;

/// The number of cells that are passed in one round of counted work.
const CELLS_A_ROUND: usize = 4;

impl CountTable {
    /// Creates the table before any choice: only the zero vector is reached.
    pub(super) fn new(caps: &[Cap]) -> CountTable {
        let (mut strides, mut cells) = (Vec::with_capacity(caps.len()), 1usize);
        for cap in caps {
            strides.push(cells);
            cells = cells.saturating_mul(cap.count.saturating_add(1));
        }
        // Before the memory is taken: the query ends here if there are too many.
        spend(cells);
        let mut full = vec![0; cells];
        let mut bounded = 0;
        for (bit, (cap, stride)) in caps.iter().zip(&strides).enumerate() {
            bounded |= Meets::from(cap.is_bound) << bit;
            let counts = full.chunks_mut(*stride).enumerate();
            let capped = counts.filter(|(count, _)| count % (cap.count + 1) == cap.count);
            capped.for_each(|(_, cells)| cells.iter_mut().for_each(|full| *full |= 1 << bit));
        }
        let mut fewest = vec![UNREACHED; cells];
        fewest[0] = 0;
        CountTable {
            strides,
            full,
            bounded,
            fewest,
        }
    }

    /// Chooses one more item or none; the item meets the demands of one of its ways. Returns `true` if that
    /// changes anything.
    pub(super) fn choose_once(&mut self, ways: &[Meets]) -> bool {
        self.pay(ways);
        let cells = (0..self.fewest.len()).rev();
        cells.fold(false, |changed, cell| self.choose_in(cell, ways) | changed)
    }

    /// Chooses any number of such items.
    pub(super) fn choose_any_number(&mut self, ways: &[Meets]) {
        self.pay(ways);
        for cell in 0..self.fewest.len() {
            self.choose_in(cell, ways);
        }
    }

    /// Chooses exactly one more such item.
    pub(super) fn choose_always(&mut self, ways: &[Meets]) {
        self.pay(ways);
        for cell in (0..self.fewest.len()).rev() {
            let items = std::mem::replace(&mut self.fewest[cell], UNREACHED);
            for &way in ways.iter().filter(|_| items != UNREACHED) {
                self.reach(cell, way, items + 1);
            }
        }
    }

    /// Returns the fewest items for each cell that is reached, with its counts.
    pub(super) fn reached(&self) -> impl Iterator<Item = (u64, impl Iterator<Item = u64> + '_)> + '_ {
        self.pay(&[0]);
        let cells = self.fewest.iter().enumerate();
        let reached = cells.filter(|&(_, &items)| items != UNREACHED);
        reached.map(|(cell, &items)| {
            let ends = self.strides.iter().skip(1).copied();
            let ends = ends.chain([self.fewest.len()]).zip(&self.strides);
            let counts = ends.map(move |(end, stride)| (cell % end / stride) as u64);
            (u64::from(items), counts)
        })
    }

    fn pay(&self, ways: &[Meets]) {
        spend(1 + self.fewest.len() / CELLS_A_ROUND * ways.len());
    }

    fn choose_in(&mut self, cell: usize, ways: &[Meets]) -> bool {
        let items = self.fewest[cell];
        let ways = ways.iter().filter(|_| items != UNREACHED);
        ways.fold(false, |changed, &way| self.reach(cell, way, items + 1) | changed)
    }

    /// Notes that one more item leads from a cell to another with this number of items. Returns `true` if
    /// that is fewer than before.
    fn reach(&mut self, from: usize, meets: Meets, items: u32) -> bool {
        let full = self.full[from] & meets;
        if full & self.bounded != 0 {
            return false;
        }
        let (mut to, mut grows) = (from, meets & !full);
        while grows != 0 {
            to += self.strides[grows.trailing_zeros() as usize];
            grows &= grows - 1;
        }
        let is_fewer = items < self.fewest[to];
        if is_fewer {
            self.fewest[to] = items;
        }
        is_fewer
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    type Counts = Vec<u64>;

    /// Returns the fewest items for all counts that a list of choices reaches, each a way or none.
    fn brute(caps: &[Cap], items: &[(Vec<Meets>, bool)]) -> BTreeMap<Counts, u64> {
        let mut all = BTreeSet::from([(vec![0; caps.len()], 0u64)]);
        for (ways, is_required) in items {
            let mut next = if *is_required {
                BTreeSet::new()
            } else {
                all.clone()
            };
            for (counts, chosen) in &all {
                for way in ways {
                    let more = counts.iter().enumerate();
                    let more: Counts = more
                        .map(|(bit, count)| count + u64::from(way >> bit & 1))
                        .collect();
                    next.insert((more, chosen + 1));
                }
            }
            all = next;
        }
        let mut fewest = BTreeMap::new();
        for (mut counts, chosen) in all {
            let bounds = counts.iter_mut().zip(caps);
            let fits = bounds.fold(true, |fits, (count, cap)| {
                let fits = fits && !(cap.is_bound && *count > cap.count as u64);
                *count = (*count).min(cap.count as u64);
                fits
            });
            if fits {
                let known = fewest.entry(counts).or_insert(chosen);
                *known = chosen.min(*known);
            }
        }
        fewest
    }

    fn told(table: &CountTable) -> BTreeMap<Counts, u64> {
        let reached = table.reached();
        reached.map(|(items, counts)| (counts.collect(), items)).collect()
    }

    fn caps() -> impl Strategy<Value = Vec<Cap>> {
        let cap = (0usize..4, any::<bool>()).prop_map(|(count, is_bound)| Cap { count, is_bound });
        prop::collection::vec(cap, 0..4)
    }

    proptest! {
        #[test]
        fn a_table_reaches_what_some_choice_of_items_reaches(
            caps in caps(),
            items in prop::collection::vec((prop::collection::vec(0u32..8, 0..3), any::<bool>()), 0..6),
        ) {
            let within = (1u32 << caps.len()) - 1;
            let cut = |ways: Vec<u32>| ways.into_iter().map(|way| way & within).collect::<Vec<_>>();
            let items: Vec<_> = items.into_iter().map(|(ways, required)| (cut(ways), required)).collect();
            let mut table = CountTable::new(&caps);
            for (ways, required) in &items {
                match required {
                    true => table.choose_always(ways),
                    false => {
                        table.choose_once(ways);
                    }
                }
            }
            prop_assert_eq!(told(&table), brute(&caps, &items));
        }

        #[test]
        fn any_number_of_items_is_as_many_as_make_a_difference(
            caps in caps(),
            ways in prop::collection::vec(0u32..8, 0..3),
        ) {
            let within = (1u32 << caps.len()) - 1;
            let ways: Vec<u32> = ways.into_iter().map(|way| way & within).collect();
            let mut table = CountTable::new(&caps);
            table.choose_any_number(&ways);
            let enough = caps.iter().map(|cap| cap.count).sum();
            prop_assert_eq!(told(&table), brute(&caps, &vec![(ways, false); enough]));
        }
    }
}
