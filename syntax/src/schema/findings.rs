//! Findings about a schema that compiles, each reported once.

use std::hash::BuildHasher;

use foldhash::{HashSet, fast::FixedState};

use lexiform_automata::error::{Place, Problem};
use lexiform_automata::limits::Account;

/// Findings in the order in which they were added.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    list: Vec<Problem>,
    /// The hashes of the findings: there may be as many findings as schemas.
    known: HashSet<u64>,
    held: Account,
}

impl Findings {
    pub(crate) fn new(held: Account) -> Findings {
        Findings {
            held,
            ..Findings::default()
        }
    }

    /// Adds a finding, unless it has been added before.
    pub(crate) fn add(&mut self, finding: Problem) {
        let hash = FixedState::with_seed(0).hash_one((&finding.place, &finding.message));
        if self.known.insert(hash) && self.held.grow(bytes_of(&finding)) {
            self.list.push(finding);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.list.iter()
    }

    pub(crate) fn into_list(self) -> Vec<Problem> {
        self.list
    }
}

/// Returns the approximate number of bytes of a problem and of the copy that a caller gets.
pub(crate) fn bytes_of(problem: &Problem) -> usize {
    let place = match &problem.place {
        Place::Pointer(text) | Place::Rule(text) => text.len(),
        Place::Whole | Place::LineColumn { .. } => 0,
    };
    2 * (size_of::<Problem>() + place + problem.message.len())
}
