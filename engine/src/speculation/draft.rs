//! Drafts: tokens that may come next, as a tree whose nodes stand after their parents.

use crate::State;
use crate::request::Origin;
use lexiform::draft::{self, NodeId, Proposal};

/// A token that may come next, to be verified.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) token: u32,
    /// The draft before it; `None` after the text. It stands before this one.
    pub(crate) parent: Option<NodeId>,
    pub(crate) source: Source,
    /// Where the grammar is after it; `None` without a grammar, and where nobody has asked.
    pub(crate) state: Option<State>,
    /// How it was chosen.
    pub(crate) proposal: Proposal,
    /// What follows it is not known, so it is verified and nothing is drawn from the row behind it.
    pub(crate) is_last: bool,
}

/// Where a draft comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Text that the grammar leaves no choice about.
    Forced,
    /// What followed the last tokens when they occurred before.
    Copied,
    /// What follows them in the request's reference.
    Predicted,
    /// The draft model.
    Model,
    /// A store that learns from what was verified.
    Learned(draft::Origin),
    /// Whoever drives the request goes on with it, whatever is likely.
    Given,
}

impl Draft {
    /// Whether it is fed whatever it is likely to bring: what a driver goes on with, and what the draft model drew, which was
    /// bet on before it was drawn.
    pub(crate) fn is_due(&self) -> bool {
        matches!(self.source, Source::Given | Source::Model)
    }
}

impl Source {
    /// How a token came about that was drafted so.
    pub(crate) fn origin(self) -> Origin {
        match self {
            Source::Forced => Origin::Forced,
            Source::Copied | Source::Predicted | Source::Model | Source::Learned(_) => Origin::Drafted,
            Source::Given => Origin::Given,
        }
    }
}

/// A draft and those above it, the first after the text first; empty for the text itself.
pub(crate) fn path(drafts: &[Draft], node: Option<NodeId>) -> Vec<NodeId> {
    let mut path: Vec<NodeId> = std::iter::successors(node, |&node| drafts[node].parent).collect();
    path.reverse();
    path
}

/// Whether each draft goes on after the one before it.
pub(crate) fn is_chain(drafts: &[Draft]) -> bool {
    let mut drafts = drafts.iter().enumerate();
    drafts.all(|(number, draft)| draft.parent == number.checked_sub(1))
}
