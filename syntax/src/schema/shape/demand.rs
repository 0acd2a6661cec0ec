//! What a keyword, affirmed or denied, amounts to for one kind of value: steps that all hold, or a choice
//! between such.

use super::step::Step;

/// What a keyword asks of values of one kind.
pub(crate) enum Demand {
    /// No value satisfies it.
    Never,
    /// All of these.
    All(Vec<Step>),
    /// All of one of these.
    Any(Vec<Vec<Step>>),
}

impl Demand {
    pub(crate) fn nothing() -> Demand {
        Demand::All(Vec::new())
    }

    pub(crate) fn one(step: Step) -> Demand {
        Demand::All(vec![step])
    }

    /// The ways to meet it.
    pub(crate) fn ways(self) -> Vec<Vec<Step>> {
        match self {
            Demand::Never => Vec::new(),
            Demand::All(steps) => vec![steps],
            Demand::Any(ways) => ways,
        }
    }

    /// The demand that two demands make together.
    pub(crate) fn and(self, other: Demand) -> Demand {
        let (left, right) = (self.ways(), other.ways());
        let pairs = left
            .iter()
            .flat_map(|one| right.iter().map(|other| [&one[..], other].concat()));
        Demand::any(pairs.collect())
    }

    /// A choice, simplified where it is none.
    pub(crate) fn any(mut ways: Vec<Vec<Step>>) -> Demand {
        match ways.len() {
            0 => Demand::Never,
            1 => Demand::All(ways.remove(0)),
            _ => Demand::Any(ways),
        }
    }
}
