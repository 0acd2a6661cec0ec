//! The candidates of a position in one list: the tokens that the model finds likeliest, and the likeliest
//! that may be drawn.
//!
//! ```text
//!   row ─► the model's n likeliest ────────────┐
//!   row ─ warp ─ mask ─► the n likeliest left ─┴─► each once: its probability, whether it is allowed, its share
//! ```

use crate::grammar::masks::Bounds;
use crate::request::{Candidate, Candidates, Drafted, Fate};
use crate::speculation::draft::Draft;
use lexiform_law::draft::NodeId;
use lexiform_law::{Distribution, Part as _, Portion, Row as _, RowError};

/// Returns the candidates of a row: up to `count` of the model's, and as many of the part that may be drawn.
///
/// # Errors
/// Fails if the row is not a distribution.
pub(super) fn of(
    row: &[f32],
    part: &Portion<'_>,
    bounds: Option<&Bounds>,
    count: u8,
) -> Result<Candidates, RowError> {
    let mask = bounds.map(|bounds| &*bounds.mask);
    let own = Distribution::new(row)?;
    let count = usize::from(count);
    let both = own.top(count).into_iter().chain(part.top(count));
    let mut tokens: Vec<u32> = both.map(|(token, _)| token).collect();
    tokens.sort_unstable();
    tokens.dedup();
    let candidate = |token: u32| Candidate {
        token,
        logprob: own.log_probability(token) as f32,
        is_allowed: mask.is_none_or(|mask| mask.contains(token)),
        log_share: part.share(token).ln() as f32,
    };
    let mut likely: Vec<Candidate> = tokens.into_iter().map(candidate).collect();
    likely.sort_by(|one, other| other.logprob.total_cmp(&one.logprob));
    let possible = || row.iter().filter(|logit| **logit > f32::NEG_INFINITY).count();
    Ok(Candidates {
        allowed: mask.map_or_else(possible, |mask| mask.count()),
        is_steered: bounds.is_some_and(|bounds| bounds.is_steered()),
        likely,
        drafted: Vec::new(),
    })
}

/// Returns the drafts of a pass with the fate of each, given the path that was accepted. Guesses are
/// excluded.
pub(super) fn drafted(drafts: &[Draft], accepted: &[NodeId]) -> Vec<Drafted> {
    let is_accepted = |node: NodeId| accepted.contains(&node);
    let told = |(node, draft): (NodeId, &Draft)| Drafted {
        token: draft.token,
        parent: draft.parent,
        drafter: draft.source.drafter(),
        fate: match (is_accepted(node), draft.parent.is_none_or(is_accepted)) {
            (true, _) => Fate::Kept,
            (false, true) => Fate::Refused,
            (false, false) => Fate::Unjudged,
        },
    };
    let drafts = drafts.iter().take_while(|draft| !draft.is_guess());
    drafts.enumerate().map(told).collect()
}
