//! What edits weigh: their cost first, then how many of them substitute.

use super::edits::Step;
use super::task::Costs;

/// Costs stand above these bits of a weight, and the number of substitutions in them: of repairs that cost
/// the same, the one that keeps more characters is taken.
const SHIFT: u32 = 32;

/// What edits weigh.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weights {
    pub(super) insert: u64,
    pub(super) delete: u64,
    pub(super) substitute: u64,
}

impl Weights {
    /// For edits of these costs.
    pub(super) fn of(costs: &Costs) -> Weights {
        let weight = |cost: u32| u64::from(cost) << SHIFT;
        Weights {
            insert: weight(costs.insert),
            delete: weight(costs.delete),
            substitute: weight(costs.substitute) + 1,
        }
    }

    /// The least cost of putting so many characters in the place of so many others, of which none is the
    /// same.
    pub(super) fn of_replacement(costs: &Costs, removed: usize, inserted: usize) -> u64 {
        let [insert, delete, substitute] = [costs.insert, costs.delete, costs.substitute].map(u64::from);
        let (removed, inserted) = (removed as u64, inserted as u64);
        let both = removed.min(inserted);
        both * substitute.min(insert + delete) + (removed - both) * delete + (inserted - both) * insert
    }

    /// What a step weighs.
    pub(super) fn of_step(&self, step: Step) -> u64 {
        match step {
            Step::Keep => 0,
            Step::Delete => self.delete,
            Step::Substitute(_) => self.substitute,
            Step::Insert(_) => self.insert,
        }
    }

    /// The weight of the cheapest edit.
    pub(super) fn least(&self) -> u64 {
        self.insert.min(self.delete).min(self.substitute)
    }
}

/// The cost in a weight.
pub(super) fn cost_of(weight: u64) -> u64 {
    weight >> SHIFT
}
