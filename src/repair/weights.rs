//! The weights of edits: their cost first, then the number of substitutions.

use super::edits::Step;
use super::task::Costs;

/// The number of bits below the cost in a weight. They contain the number of substitutions: among repairs of
/// the same cost, the one that keeps more characters is chosen.
const SHIFT: u32 = 32;

/// The weights of the kinds of edit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weights {
    pub(super) insert: u64,
    pub(super) delete: u64,
    pub(super) substitute: u64,
}

impl Weights {
    /// Returns the weights of edits with these costs.
    pub(super) fn of(costs: &Costs) -> Weights {
        let weight = |cost: u32| u64::from(cost) << SHIFT;
        Weights {
            insert: weight(costs.insert),
            delete: weight(costs.delete),
            substitute: weight(costs.substitute) + 1,
        }
    }

    /// Returns the lowest cost of replacing `removed` characters by `inserted` others, none of which is the
    /// same.
    pub(super) fn of_replacement(costs: &Costs, removed: usize, inserted: usize) -> u64 {
        let [insert, delete, substitute] = [costs.insert, costs.delete, costs.substitute].map(u64::from);
        let (removed, inserted) = (removed as u64, inserted as u64);
        let both = removed.min(inserted);
        both * substitute.min(insert + delete) + (removed - both) * delete + (inserted - both) * insert
    }

    /// Returns the weight of a step.
    pub(super) fn of_step(&self, step: Step) -> u64 {
        match step {
            Step::Keep => 0,
            Step::Delete => self.delete,
            Step::Substitute(_) => self.substitute,
            Step::Insert(_) => self.insert,
        }
    }

    /// Returns the weight of the cheapest edit.
    pub(super) fn least(&self) -> u64 {
        self.insert.min(self.delete).min(self.substitute)
    }
}

/// Returns the cost in a weight.
pub(super) fn cost_of(weight: u64) -> u64 {
    weight >> SHIFT
}
