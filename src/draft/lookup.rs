//! Prompt lookup: what followed the last words the last time they stood in the text.
//!
//! ```text
//!   prompt  … "name" : " Ada Lovelace " …        answer  … "author" : " Ada
//!                        └─┬─┘ └──┬─────                              └─┬─┘
//!                        match  copied                         the longest suffix found
//! ```
//!
//! Where the last words have gone on in several ways, each may be offered: a draft whose branches share its tokens.

use super::{Constraint, Draft, Drafter, NodeId, Origin, Proposal, Text};

/// How far back to search; a bound on the time a draft takes.
const WINDOW: usize = 1 << 14;

/// Copies what followed the latest earlier occurrence of the longest suffix of the text.
#[derive(Clone, Copy, Debug)]
pub struct PromptLookup {
    /// The longest suffix to look for.
    pub longest: usize,
    /// The shortest.
    pub shortest: usize,
    /// How many continuations that begin with different tokens to offer, the best first.
    pub branches: usize,
}

impl Default for PromptLookup {
    fn default() -> Self {
        PromptLookup {
            longest: 3,
            shortest: 1,
            branches: 1,
        }
    }
}

impl PromptLookup {
    /// Where the continuations of the best matches begin: of longer ones first, and of equal ones the latest first.
    fn find(&self, text: &[u32]) -> Vec<usize> {
        let mut best: Vec<(usize, usize)> = Vec::new();
        for end in (1..text.len()).rev() {
            let shared = suffix(&text[..end], text, self.longest);
            if shared < self.shortest.max(1) {
                continue;
            }
            // One that begins with the same token and was found before is later, and better unless it is shorter.
            match best.iter_mut().find(|(_, other)| text[*other] == text[end]) {
                Some(known) if known.0 < shared => *known = (shared, end),
                Some(_) => (),
                None => best.push((shared, end)),
            }
            if best.iter().filter(|(shared, _)| *shared == self.longest).count() >= self.branches.max(1) {
                break;
            }
        }
        best.sort_by_key(|&(shared, _)| std::cmp::Reverse(shared));
        best.into_iter()
            .map(|(_, end)| end)
            .take(self.branches.max(1))
            .collect()
    }

    /// Copies from a place below a node, at most so many tokens. A copy that reaches the end of the text goes on with what
    /// it copied: repeated text is drafted in full.
    fn copy<C: Constraint, Q>(
        mut text: Vec<u32>,
        from: usize,
        (mut node, most): (Option<NodeId>, usize),
        draft: &mut Draft<'_, C, Q>,
    ) {
        for place in from..from.saturating_add(most) {
            let token = text[place];
            let before = draft.nodes().len();
            node = draft.offer_below(node, token, Origin::Copied, Proposal::Point);
            if node.is_none() || node.is_some_and(|node| node < before) {
                // Refused, or there already.
                return;
            }
            text.push(token);
        }
    }
}

/// The length of the longest common suffix, up to a bound.
fn suffix(one: &[u32], other: &[u32], bound: usize) -> usize {
    let pairs = one.iter().rev().zip(other.iter().rev()).take(bound);
    pairs.take_while(|(a, b)| a == b).count()
}

impl<C: Constraint, Q> Drafter<C, Q> for PromptLookup {
    fn propose(&mut self, text: Text<'_>, draft: &mut Draft<'_, C, Q>) {
        let mut tokens: Vec<u32> = text
            .prompt
            .iter()
            .chain(text.answer)
            .copied()
            .chain(draft.tokens())
            .collect();
        tokens.drain(..tokens.len().saturating_sub(WINDOW));
        let places = self.find(&tokens);
        let tip = draft.nodes().len().checked_sub(1);
        let room = draft.room_below(tip);
        let each = room.div_ceil(places.len().max(1));
        for from in places {
            Self::copy(tokens.clone(), from, (tip, each), draft);
        }
    }
}
