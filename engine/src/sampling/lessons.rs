//! The drafts whose rows are recorded in the trie of the global law.
//!
//! A pass has the rows of all its drafts, including those that are not confirmed; each gives the mass that
//! its mask leaves, which an attempt would have to fail to find out
//! ([`Walk::harvest`](lexiform_law::Walk::harvest)). The law of the answer does not change, but the text of a
//! seed does: so nothing is recorded if the request requires the text of its seed
//! ([`Verification::DrawOnce`]), whether or not it is drafted.
//!
//! Tokens that a draft model draws with the numbers that the attempt itself will use must not be recorded,
//! nor the drafts below them; nor are guesses, which are not drafts.

use crate::request::Verification;
use crate::speculation::draft::{Draft, Source};
use lexiform_law::draft::{NodeId, Proposal};

/// Returns the drafts to record, each with its parent; none if the text is determined by its seed.
///
/// They are a prefix of the drafts, so that their numbers are those of the drafts: a draft model continues
/// below what was drafted without it.
pub(crate) fn of(drafts: &[Draft], verification: Verification) -> Vec<(Option<NodeId>, u32)> {
    let is_coupled =
        |draft: &&Draft| draft.source == Source::Model && matches!(draft.proposal, Proposal::Point);
    let teaching = match verification {
        Verification::Residual | Verification::KSeq => drafts
            .iter()
            .take_while(|draft| !is_coupled(draft) && !draft.is_guess()),
        Verification::DrawOnce => return Vec::new(),
    };
    teaching.map(|draft| (draft.parent, draft.token)).collect()
}
