//! Drafts: tokens that may come next, as a tree whose nodes stand after their parents.

use crate::State;
use crate::request::Origin;
use lexiform_law::draft;
use lexiform_law::draft::{NodeId, Proposal};

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
    /// A store that learns from what was verified, and how sure it was.
    Learned(draft::Origin, Confidence),
    /// A guess of the sequence's [window](lexiform_law::draft::JacobiWindow), fed for the row behind it.
    Guessed,
    /// Whoever drives the request goes on with it, whatever is likely.
    Given,
}

/// How likely a predictor takes a token to be, in steps: chances of one step are judged together by how many
/// tokens were confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Confidence(u8);

impl Confidence {
    /// The lower ends of the steps but the first.
    const STEPS: [f32; 5] = [0.2, 0.4, 0.6, 0.8, 0.95];
    /// How many there are.
    pub(crate) const COUNT: usize = Self::STEPS.len() + 1;

    /// The step of a chance; the middle one where nothing was said.
    pub(crate) fn of(chance: Option<f32>) -> Self {
        let chance = chance.unwrap_or(0.5);
        Confidence(Self::STEPS.iter().filter(|&&step| chance >= step).count() as u8)
    }

    /// All steps, the lowest first, each with the middle of its chances.
    pub(crate) fn all() -> impl Iterator<Item = (Self, f64)> {
        let ends = [0.0]
            .into_iter()
            .chain(Self::STEPS)
            .zip(Self::STEPS.into_iter().chain([1.0]));
        (0..)
            .zip(ends)
            .map(|(step, (from, to))| (Confidence(step), f64::from((from + to) / 2.0)))
    }

    /// The number of the step.
    pub(crate) fn step(self) -> usize {
        self.0.into()
    }
}

impl Draft {
    /// Whether it is fed whatever it is likely to bring: what a driver goes on with, what the draft model
    /// drew, which was bet on before it was drawn, and guesses, which bring something by the rows behind
    /// them.
    pub(crate) fn is_due(&self) -> bool {
        matches!(self.source, Source::Given | Source::Model | Source::Guessed)
    }

    /// Whether it is fed for the row behind it, and not because it is likely.
    pub(crate) fn is_guess(&self) -> bool {
        self.source == Source::Guessed
    }
}

impl Source {
    /// Who drafts so, by a name that people are told.
    pub(crate) fn drafter(self) -> &'static str {
        match self {
            Source::Forced => "forced",
            Source::Copied => "copied",
            Source::Predicted => "predicted",
            Source::Model => "model",
            Source::Learned(origin, _) => learned(origin),
            Source::Guessed => "guess",
            Source::Given => "given",
        }
    }

    /// How a token came about that was drafted so.
    pub(crate) fn origin(self) -> Origin {
        match self {
            Source::Forced => Origin::Forced,
            Source::Copied | Source::Predicted | Source::Model | Source::Learned(..) | Source::Guessed => {
                Origin::Drafted
            }
            Source::Given => Origin::Given,
        }
    }
}

/// The name of a store.
fn learned(origin: draft::Origin) -> &'static str {
    use draft::Origin;
    match origin {
        Origin::Forced => "forced",
        Origin::Copied => "copied",
        Origin::Predicted => "predicted",
        Origin::Model => "model",
        Origin::Recycled => "recycled",
        Origin::Trigram => "trigram",
        Origin::NGram => "n_gram",
        Origin::Keyed => "state",
        Origin::Suffix => "suffix",
        Origin::Retrieved => "corpus",
        Origin::Consensus => "samples",
        Origin::Phrase => "phrase",
    }
}

/// A draft and those above it, the first after the text first; empty for the text itself.
pub(crate) fn path(drafts: &[Draft], node: Option<NodeId>) -> Vec<NodeId> {
    let mut path: Vec<NodeId> = std::iter::successors(node, |&node| drafts[node].parent).collect();
    path.reverse();
    path
}

/// The first draft below a node, or below the text, that has this token.
pub(crate) fn child(drafts: &[Draft], parent: Option<NodeId>, token: u32) -> Option<NodeId> {
    let is_same = |draft: &Draft| draft.parent == parent && draft.token == token;
    drafts.iter().position(is_same)
}

/// Whether each draft goes on after the one before it.
pub(crate) fn is_chain(drafts: &[Draft]) -> bool {
    let mut drafts = drafts.iter().enumerate();
    drafts.all(|(number, draft)| draft.parent == number.checked_sub(1))
}

/// The nodes before each of the drafts as a feed counts them, if they are no chain.
pub(crate) fn parents(drafts: &[Draft]) -> Option<Vec<u16>> {
    let parent = |draft: &Draft| draft.parent.map_or(0, |parent| parent as u16 + 1);
    (!is_chain(drafts)).then(|| drafts.iter().map(parent).collect())
}
