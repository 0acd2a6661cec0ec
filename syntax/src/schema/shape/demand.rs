//! The meaning of a keyword, affirmed or denied, for one kind of value: steps that all hold, or a choice
//! between such lists.

use super::step::Step;

/// The demand of a keyword on values of one kind.
pub(crate) enum Demand {
    /// No value satisfies it.
    Never,
    /// All of these steps.
    All(Vec<Step>),
    /// All steps of one of these ways.
    Any(Vec<Vec<Step>>),
}

impl Demand {
    pub(crate) fn nothing() -> Demand {
        Demand::All(Vec::new())
    }

    pub(crate) fn one(step: Step) -> Demand {
        Demand::All(vec![step])
    }

    /// Returns the ways to meet the demand.
    pub(crate) fn ways(self) -> Vec<Vec<Step>> {
        match self {
            Demand::Never => Vec::new(),
            Demand::All(steps) => vec![steps],
            Demand::Any(ways) => ways,
        }
    }

    /// Returns the conjunction of two demands.
    pub(crate) fn and(self, other: Demand) -> Demand {
        let (left, right) = (self.ways(), other.ways());
        let pairs = left
            .iter()
            .flat_map(|one| right.iter().map(|other| [&one[..], other].concat()));
        Demand::any(pairs.collect())
    }

    /// Returns a choice between ways, simplified if there are fewer than two.
    pub(crate) fn any(mut ways: Vec<Vec<Step>>) -> Demand {
        match ways.len() {
            0 => Demand::Never,
            1 => Demand::All(ways.remove(0)),
            _ => Demand::Any(ways),
        }
    }
}
