//! Drafts: tokens that may come next, as a tree whose nodes come after their parents.

use crate::State;
use crate::request::Origin;
use crate::speculation::row::DraftRow;
use lexiform_law::draft;
use lexiform_law::draft::{NodeId, Proposal};

/// A token that may come next, to be verified.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) token: u32,
    /// The draft before it, which has a lower index; `None` after the text.
    pub(crate) parent: Option<NodeId>,
    pub(crate) source: Source,
    /// The state of the grammar after it; `None` without a grammar, and where it was not needed.
    pub(crate) state: Option<State>,
    /// The way in which it was chosen.
    pub(crate) proposal: Proposal<DraftRow>,
    /// `true` if its continuation is not known: it is verified, but nothing is drawn from the row after it.
    pub(crate) is_last: bool,
}

/// The source of a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Text that the grammar forces.
    Forced,
    /// The tokens that followed the last tokens when they occurred before.
    Copied,
    /// The tokens that follow the last tokens in the request's reference.
    Predicted,
    /// The draft model.
    Model,
    /// A draft model that drafts trees, and its confidence.
    Branch(Confidence),
    /// A store that learns from verified tokens, and its confidence.
    Learned(draft::Origin, Confidence),
    /// Drawn from a row of such a store, and the confidence of the likeliest token of the row.
    Drawn(draft::Origin, Confidence),
    /// A guess of the sequence's [window](lexiform_law::draft::JacobiWindow), fed for the row after it.
    Guessed,
    /// A token with which the request's driver continues, whatever its probability.
    Given,
}

/// The probability that a predictor gives to a token, in steps: chances of one step are judged together by
/// how many tokens were confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Confidence(u8);

impl Confidence {
    /// The lower ends of the steps except the first.
    const STEPS: [f32; 5] = [0.2, 0.4, 0.6, 0.8, 0.95];
    /// The number of steps.
    pub(crate) const COUNT: usize = Self::STEPS.len() + 1;

    /// Returns the step of a chance; the middle one if there is no chance.
    pub(crate) fn of(chance: Option<f32>) -> Self {
        let chance = chance.unwrap_or(0.5);
        Confidence(Self::STEPS.iter().filter(|&&step| chance >= step).count() as u8)
    }

    /// Returns all steps, the lowest first, each with the middle of its range.
    pub(crate) fn all() -> impl Iterator<Item = (Self, f64)> {
        let ends = [0.0]
            .into_iter()
            .chain(Self::STEPS)
            .zip(Self::STEPS.into_iter().chain([1.0]));
        (0..)
            .zip(ends)
            .map(|(step, (from, to))| (Confidence(step), f64::from((from + to) / 2.0)))
    }

    /// Returns the middle of the step.
    fn middle(self) -> f32 {
        let all = Self::all().nth(self.step());
        all.map_or(0.5, |(_, middle)| middle as f32)
    }

    /// Returns the number of the step.
    pub(crate) fn step(self) -> usize {
        self.0.into()
    }
}

impl Draft {
    /// Returns `true` if the draft is fed however likely it is: a token that a driver continues with, one
    /// that the draft model drew or that was drawn from a store, which was decided before it was drawn, and a
    /// guess, whose value is the row after it.
    pub(crate) fn is_due(&self) -> bool {
        match self.source {
            Source::Given | Source::Model | Source::Drawn(..) | Source::Guessed => true,
            Source::Forced | Source::Copied | Source::Predicted | Source::Branch(_) | Source::Learned(..) => {
                false
            }
        }
    }

    /// Returns `true` if the draft is fed for the row after it, and not because it is likely.
    pub(crate) fn is_guess(&self) -> bool {
        self.source == Source::Guessed
    }
}

impl Source {
    /// Returns the name of the source that users see.
    pub(crate) fn drafter(self) -> &'static str {
        match self {
            Source::Forced => "forced",
            Source::Copied => "copied",
            Source::Predicted => "predicted",
            Source::Model | Source::Branch(_) => "model",
            Source::Learned(origin, _) | Source::Drawn(origin, _) => learned(origin),
            Source::Guessed => "guess",
            Source::Given => "given",
        }
    }

    /// Returns the origin of a token that was drafted by this source.
    pub(crate) fn origin(self) -> Origin {
        match self {
            Source::Forced => Origin::Forced,
            Source::Copied
            | Source::Predicted
            | Source::Model
            | Source::Branch(_)
            | Source::Learned(..)
            | Source::Drawn(..)
            | Source::Guessed => Origin::Drafted,
            Source::Given => Origin::Given,
        }
    }
}

/// Returns the name of a store.
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

/// Returns the tokens of the path to a draft.
pub(crate) fn tokens_to(drafts: &[Draft], node: Option<NodeId>) -> Vec<u32> {
    let path = path(drafts, node).into_iter();
    path.map(|node| drafts[node].token).collect()
}

/// Returns the path to a draft from the text, the first draft first; empty for the text itself.
pub(crate) fn path(drafts: &[Draft], node: Option<NodeId>) -> Vec<NodeId> {
    let mut path: Vec<NodeId> = std::iter::successors(node, |&node| drafts[node].parent).collect();
    path.reverse();
    path
}

/// Returns the first draft with this token below a node, or below the text.
pub(crate) fn child(drafts: &[Draft], parent: Option<NodeId>, token: u32) -> Option<NodeId> {
    let is_same = |draft: &Draft| draft.parent == parent && draft.token == token;
    drafts.iter().position(is_same)
}

/// Returns the drafts of stores that were verified, each with its store, its chance, and whether it was
/// accepted.
pub(crate) fn judged(
    drafts: &[Draft],
    accepted: &[NodeId],
) -> impl Iterator<Item = (draft::Origin, f32, bool)> {
    let is_judged = |draft: &Draft| draft.parent.is_none_or(|parent| accepted.contains(&parent));
    let judged = drafts
        .iter()
        .enumerate()
        .filter(move |(_, draft)| is_judged(draft));
    judged.filter_map(|(node, draft)| match draft.source {
        Source::Learned(origin, confidence) => Some((origin, confidence.middle(), accepted.contains(&node))),
        _ => None,
    })
}

/// Returns `true` if each draft continues the previous one.
pub(crate) fn is_chain(drafts: &[Draft]) -> bool {
    let mut drafts = drafts.iter().enumerate();
    drafts.all(|(number, draft)| draft.parent == number.checked_sub(1))
}

/// Returns the parent of each draft as a feed counts them, if the drafts are not a chain.
pub(crate) fn parents(drafts: &[Draft]) -> Option<Vec<u16>> {
    let parent = |draft: &Draft| draft.parent.map_or(0, |parent| parent as u16 + 1);
    (!is_chain(drafts)).then(|| drafts.iter().map(parent).collect())
}
