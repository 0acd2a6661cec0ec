//! Decides whether the demands of an object list can still be met.
//!
//! A demand counts the items that meet it, and one item may meet several. The items that may still be written
//! after a progress are a *supply*; the question is whether some choice of them brings every count into its
//! bounds. A [`CountTable`] holds the vectors of counts that a choice can reach, clamped where more makes no
//! difference, with the smallest number of items for each.
//!
//! ```text
//!   demands  x: 1.., y: 1..      supply  property a {}, {x}   property b {x}, {y}   additional {}, {x y}
//!   (0,0):0 ──a──► (1,0):1 ──b──► (1,1):2 ──more──► (1,1):1     one item is enough
//! ```
//!
//! If some item can be written any number of times without exceeding a bound, more items than the minimum are
//! possible too. Otherwise, the number of all items is searched like one more demand that every item meets.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::count_table::{Cap, CountTable};
use super::progress::MANY_WORDS;
use crate::grammar::{ItemOrder, Meets};
use crate::language::Terminal;
use crate::pushdown::plan::nfa::ObjectListPlan;

/// The additional items that an object list can supply before anything is written.
#[derive(Debug, Default)]
pub(crate) struct Stock {
    /// Keys that can run out, grouped by the items that can be written after them.
    finite: Vec<Keys>,
    /// The demands met by items that do not run out.
    endless: Vec<Meets>,
}

#[derive(Debug)]
struct Keys {
    words: FxHashSet<Vec<u8>>,
    ways: Vec<Meets>,
}

impl Stock {
    /// Computes the stock of an object list; items of rules that are not `usable` supply nothing.
    pub(crate) fn new(
        plan: &ObjectListPlan,
        terminals: &[Option<Arc<Terminal>>],
        usable: impl Fn(u32) -> bool,
    ) -> Stock {
        let mut stock = Stock::default();
        let mut by_word: FxHashMap<Vec<u8>, Vec<Meets>> = FxHashMap::default();
        for additional in plan
            .additional
            .iter()
            .filter(|additional| usable(additional.item))
        {
            let words = match additional.key.map(|key| &terminals[key as usize]) {
                Some(None) => continue,
                Some(Some(terminal)) => terminal.words(terminal.start(), MANY_WORDS),
                None => None,
            };
            match words {
                None => stock.endless.push(additional.meets),
                Some(words) => {
                    for word in words.into_iter().filter(|word| !plan.is_taken(word)) {
                        by_word.entry(word).or_default().push(additional.meets);
                    }
                }
            }
        }
        let mut by_ways: FxHashMap<Vec<Meets>, FxHashSet<Vec<u8>>> = FxHashMap::default();
        for (word, ways) in by_word {
            by_ways.entry(ways).or_default().insert(word);
        }
        stock.finite = by_ways
            .into_iter()
            .map(|(ways, words)| Keys { words, ways })
            .collect();
        stock.endless.sort_unstable();
        stock.endless.dedup();
        stock
    }

    /// Returns `true` if, for each item with finitely many keys, all its keys are alike: the same other items
    /// share each of them.
    pub(crate) fn keys_are_alike(&self, plan: &ObjectListPlan, terminals: &[Option<Arc<Terminal>>]) -> bool {
        let alike = |key: u32| {
            let Some(terminal) = &terminals[key as usize] else {
                return true;
            };
            let Some(words) = terminal.words(terminal.start(), MANY_WORDS) else {
                return true;
            };
            let holding =
                (self.finite.iter()).filter(|keys| words.iter().any(|word| keys.words.contains(word)));
            holding.count() <= 1
        };
        plan.additional
            .iter()
            .filter_map(|additional| additional.key)
            .all(alike)
    }

    /// Returns, for each group, how many keys are left once `used` keys are used, and the demands that the
    /// items after them meet.
    pub(crate) fn left<'a>(&'a self, used: &'a [Vec<u8>]) -> impl Iterator<Item = (u64, &'a [Meets])> {
        self.finite.iter().map(|keys| {
            let taken = used.iter().filter(|key| keys.words.contains(*key)).count();
            ((keys.words.len() - taken) as u64, &keys.ways[..])
        })
    }
}

/// The items that may still be written after a progress.
pub(crate) struct Supply<'a> {
    pub(crate) plan: &'a ObjectListPlan,
    pub(crate) stock: &'a Stock,
    /// The ways of the properties that may still be written, in order, and whether each property must be.
    pub(crate) properties: Vec<(Vec<Meets>, bool)>,
    pub(crate) used: &'a [Vec<u8>],
    /// The number of items written.
    pub(crate) count: u64,
    /// The number of items that met each demand.
    pub(crate) met: &'a [u64],
}

/// The maximum number of demands of an object list: they and the number of all items are bits of one word.
pub(crate) const MOST_DEMANDS: usize = 31;

/// The maximum number of vectors that a table may have; object lists beyond it are rejected at compile time.
pub(crate) const MOST_VECTORS: u64 = 1 << 16;

/// What the counts of a supply have to be.
struct Bounds {
    /// The number of items that each demand still needs and still allows. If every item uses up some bound,
    /// the last one is met by all items and stands for their number.
    demands: Vec<(u64, Option<u64>)>,
    /// The bit of the demand that all items meet, if there is one.
    every: Meets,
    least: u64,
    most: Option<u64>,
}

impl Supply<'_> {
    /// Returns `true` if the object list can be completed.
    pub(crate) fn suffices(&self) -> bool {
        if self.suffices_plainly() {
            return true;
        }
        let Some(bounds) = self.bounds() else { return false };
        let Some(mut table) = bounds.table(self.most_items(&bounds)) else {
            return false;
        };
        let leading = self.plan.order == ItemOrder::Leading;
        for (index, (ways, required)) in self.properties.iter().enumerate() {
            if leading && bounds.allow_end(&table, Some(index as u64)) {
                return true;
            }
            let ways = bounds.counting(ways);
            match *required || leading {
                true => table.choose_always(&ways),
                false => {
                    table.choose_once(&ways);
                }
            }
        }
        for (left, ways) in self.stock.left(self.used) {
            let ways = bounds.counting(ways);
            // More keys make no difference where one more makes none.
            let _enough = (0..left).find(|_| !table.choose_once(&ways));
        }
        table.choose_any_number(&bounds.counting(&self.stock.endless));
        bounds.allow_end(&table, None)
    }

    /// Checks the usual case: no upper bound, and items without end that meet all missing demands.
    fn suffices_plainly(&self) -> bool {
        let plan = self.plan;
        let met_without_end = self.stock.endless.iter().fold(0, |all, meets| all | meets);
        let mut demands = plan.demands.iter().enumerate();
        !self.stock.endless.is_empty()
            && plan.max.is_none()
            && self.properties.iter().all(|(ways, _)| !ways.is_empty())
            && demands.all(|(bit, demand)| {
                let met = self.met.get(bit).copied().unwrap_or(0);
                demand.max.is_none() && (met >= demand.min || met_without_end >> bit & 1 == 1)
            })
    }

    /// Returns the bounds of the items that may still be written; `None` if one is exceeded.
    fn bounds(&self) -> Option<Bounds> {
        let mut demands = Vec::new();
        let mut bounded = 0;
        for (bit, demand) in self.plan.demands.iter().enumerate() {
            let met = self.met.get(bit).copied().unwrap_or(0);
            let max = match demand.max {
                Some(max) => Some(max.checked_sub(met)?),
                None => None,
            };
            bounded |= u32::from(max.is_some()) << bit;
            demands.push((demand.min.saturating_sub(met), max));
        }
        let least = self.plan.min.saturating_sub(self.count);
        let most = match self.plan.max {
            Some(max) => Some(max.checked_sub(self.count)?),
            None => None,
        };
        let free = self.stock.endless.iter().any(|meets| meets & bounded == 0);
        let mut every = 0;
        if !free {
            every = 1 << demands.len();
            demands.push((least, most));
        }
        Some(Bounds {
            demands,
            every,
            least,
            most,
        })
    }

    /// Returns the most items that can be chosen; [`u64::MAX`] if there is no end of them.
    fn most_items(&self, bounds: &Bounds) -> u64 {
        let keys = self.stock.left(self.used).map(|(left, _)| left);
        let finite = keys.fold(self.properties.len() as u64, u64::saturating_add);
        let endless = match (self.stock.endless.is_empty(), bounds.every) {
            (true, _) => 0,
            (false, 0) => u64::MAX,
            // Each of them uses up some bound.
            (false, _) => {
                let demands = &bounds.demands[..self.plan.demands.len()];
                demands
                    .iter()
                    .filter_map(|&(_, most)| most)
                    .fold(0, u64::saturating_add)
            }
        };
        finite.saturating_add(endless)
    }
}

impl Bounds {
    /// Returns the table of these bounds for at most `items` items; `None` if some demand needs more.
    fn table(&self, items: u64) -> Option<CountTable> {
        let cap = |&(least, most): &(u64, Option<u64>)| {
            let count = most.unwrap_or(least).min(items);
            (least <= items).then(|| Cap {
                count: usize::try_from(count).unwrap_or(usize::MAX),
                is_bound: most.is_some(),
            })
        };
        let caps: Vec<Cap> = self.demands.iter().map(cap).collect::<Option<_>>()?;
        Some(CountTable::new(&caps))
    }

    /// Returns the ways with the demand that all items meet, and without demands that the list does not have.
    fn counting(&self, ways: &[Meets]) -> Vec<Meets> {
        let others = Meets::MAX.checked_shl(self.demands.len() as u32).unwrap_or(0);
        ways.iter().map(|meets| (meets | self.every) & !others).collect()
    }

    /// Returns `true` if the object list may end with one of the vectors: with `exactly` that number of
    /// items, if no more can follow.
    fn allow_end(&self, table: &CountTable, exactly: Option<u64>) -> bool {
        table.reached().any(|(items, counts)| {
            let met = counts
                .zip(&self.demands)
                .all(|(count, (least, _))| count >= *least);
            let enough = exactly.is_none_or(|items| items >= self.least);
            met && enough && self.most.is_none_or(|most| items <= most)
        })
    }
}

impl ObjectListPlan {
    /// Returns an upper bound on the number of vectors that a choice of items can reach.
    pub(crate) fn vectors(&self) -> u64 {
        let bounded = self.demands.iter().map(|demand| demand.max.unwrap_or(demand.min));
        let total = self.max.unwrap_or(self.min);
        let own = bounded.clone().fold(0u64, u64::saturating_add);
        let free = self
            .additional
            .iter()
            .any(|additional| self.is_free(additional.meets) && additional.key.is_none());
        let searched = if free {
            0
        } else {
            total.min(own.saturating_add((self.properties.len() + MANY_WORDS) as u64))
        };
        bounded
            .chain([searched])
            .fold(1, |all, bound| all.saturating_mul(bound.saturating_add(1)))
    }

    fn is_free(&self, meets: Meets) -> bool {
        let bounded =
            |(bit, demand): (usize, &crate::grammar::Demand)| demand.max.is_some() && meets >> bit & 1 == 1;
        !self.demands.iter().enumerate().any(bounded)
    }
}
