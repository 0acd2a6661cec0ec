//! Which drafts teach the trie of the global law.
//!
//! The rows of all drafts of a pass are there, also of those that are not confirmed; each says what mass its
//! mask leaves, which an attempt would have to fail to find out
//! ([`Walk::harvest`](lexiform_law::Walk::harvest)). The law of the answer stays what it is. Which text a
//! seed gives does not: so nothing is taught where the request wants the text of its seed
//! ([`Verification::DrawOnce`]), and it is drafted or not as before.
//!
//! What a draft model draws with the numbers that the attempt itself will use must not teach, nor what stands
//! below it; nor do guesses, which are no drafts.

use crate::request::Verification;
use crate::speculation::draft::{Draft, Source};
use lexiform_law::draft::{NodeId, Proposal};

/// The drafts that teach, each with the one before it; none if the text is that of a seed.
///
/// They are a beginning of the drafts, so that their numbers are those of the drafts: a draft model goes on
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
