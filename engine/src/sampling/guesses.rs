//! The lessons of a sequence from rows after tokens that were not drawn: the next guesses of its window, and
//! phrases for a pool.
//!
//! ```text
//!   rows after the guesses  ─► window: the next guesses ─► phrases ─┐
//!   rows after refused drafts ──────────────────────────► phrases ─┴─► store of the owner
//! ```
//!
//! The window is that of lookahead decoding ([`JacobiWindow`](lexiform_law::draft::JacobiWindow)). Discarded
//! drafts are kept as in Ouroboros ([Zhao et al. 2024](https://arxiv.org/abs/2402.13720)): the rows after a
//! refused draft belong to a text that is not this one but may come later, as after a name that differs in
//! its first token.
//!
//! From each row the likeliest token is taken, among those that the grammar allows if that is known. None of
//! these tokens is text, so nothing here can change a law.
//!
//! Tests: `engine/tests/engine/lookahead.rs`.

use crate::grammar::masks::Bounds;
use crate::sampling::Found;
use crate::sequence::Sequence;
use crate::speculation::draft::Draft;
use crate::speculation::window;
use lexiform_law::draft::NodeId;

/// Advances the window of a sequence, and records the phrases of a pass in its owner's store. The sequence's
/// drafts are still those of the pass.
pub(crate) fn take(
    sequence: &mut Sequence,
    (found, masks): (Found<'_>, Option<&[Bounds]>),
    accepted: &[NodeId],
) {
    let next = |node: NodeId| likeliest(found, masks, node + 1);
    let mut phrases = match &mut sequence.draft.window {
        Some(window) => {
            window::know_forced(window, &sequence.draft.drafts);
            let after = |branch: Vec<u32>| next(window::end_of(&sequence.draft.drafts, &branch)?);
            let after: Vec<Option<u32>> = window.branches().map(after).collect();
            window.advance(&after)
        }
        None => Vec::new(),
    };
    let Some(store) = sequence
        .draft
        .store
        .as_ref()
        .filter(|store| store.learns_phrases())
    else {
        return;
    };
    phrases.extend(thrown_away(&sequence.draft.drafts, accepted, next));
    store.learn_phrases(&phrases);
}

/// Returns the tokens predicted by the rows after refused drafts, for each down to the end of its first
/// branch.
fn thrown_away(drafts: &[Draft], accepted: &[NodeId], next: impl Fn(NodeId) -> Option<u32>) -> Vec<Vec<u32>> {
    let is_accepted = |node: &NodeId| accepted.contains(node);
    let is_refused = |&node: &NodeId| {
        let draft = &drafts[node];
        let is_first = draft.parent.is_none_or(|parent| is_accepted(&parent));
        is_first && !is_accepted(&node) && !draft.is_guess()
    };
    let below = |&node: &NodeId| {
        let mut later = (node + 1..drafts.len()).filter(|&later| !drafts[later].is_guess());
        later.find(|&later| drafts[later].parent == Some(node))
    };
    let refused = (0..drafts.len()).filter(is_refused);
    let branch = |node| std::iter::successors(Some(node), below);
    refused
        .map(|node| branch(node).map_while(&next).collect())
        .collect()
}

/// Returns the likeliest token of a row, among the allowed ones if there are any.
fn likeliest(found: Found<'_>, masks: Option<&[Bounds]>, row: usize) -> Option<u32> {
    let rows = match found {
        Found::Drawn { drawn, .. } => return Some(drawn.get(row)?.as_ref()?.token),
        Found::Rows(rows) => rows,
    };
    let mask = masks.and_then(|masks| masks.get(row)).map(|bounds| &bounds.mask);
    let mask = mask.filter(|mask| mask.count() > 0);
    let tokens = rows.get(row)?.logits.iter().zip(0_u32..);
    let allowed =
        tokens.filter(|(logit, token)| logit.is_finite() && mask.is_none_or(|mask| mask.contains(*token)));
    // The first of several equal tokens wins.
    let best = allowed.max_by(|one, other| one.0.total_cmp(other.0).then(other.1.cmp(&one.1)));
    best.map(|(_, token)| token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speculation::draft::Source;
    use lexiform_law::draft::Proposal;

    fn draft((parent, source): (Option<NodeId>, Source)) -> Draft {
        Draft {
            token: 0,
            parent,
            source,
            state: None,
            proposal: Proposal::Point,
            is_last: false,
        }
    }

    #[test]
    fn what_stands_behind_refused_drafts_is_kept() {
        use Source::{Copied, Guessed};
        //   0 ── 1 ── 2     3 ─┬─ 4, a guess
        //                      └─ 5 ── 6
        let tree = [
            (None, Copied),
            (Some(0), Copied),
            (Some(1), Copied),
            (None, Copied),
            (Some(3), Guessed),
            (Some(3), Copied),
            (Some(5), Copied),
        ];
        let drafts: Vec<Draft> = tree.into_iter().map(draft).collect();
        let next = |node: NodeId| Some(10 + node as u32);
        assert_eq!(
            thrown_away(&drafts, &[], next),
            [vec![10, 11, 12], vec![13, 15, 16]]
        );
        assert_eq!(thrown_away(&drafts, &[0], next), [vec![11, 12], vec![13, 15, 16]]);
        assert_eq!(thrown_away(&drafts, &[3, 5], next), [vec![10, 11, 12], vec![16]]);
        let known = |node: NodeId| (node != 5).then_some(node as u32);
        assert_eq!(thrown_away(&drafts, &[0, 1, 2], known), [vec![3]]);
    }
}
