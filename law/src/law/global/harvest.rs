//! Harvesting a drafted tree: learning from the rows of all its nodes, including those that the text never
//! reaches.
//!
//! A pass that verifies a draft computes the row after every node. Each row gives the mass that the mask
//! leaves there, which an attempt would otherwise have to fail to learn. So before the attempt draws, all of
//! them are recorded in the trie:
//!
//! ```text
//!   u ─┬─ a ─ ab          rows of u, a, ab, c are there: m of each is noted, and θ is summed anew from the leaves to u
//!      └─ c               then: survive with probability θ_new(u) / θ_old(u), draw in proportion to p·θ_new
//! ```
//!
//! **Why this is exact.** [`Attempt`] reaches `u` with probability `P(u)·held(u)/θ₀(ε)`, whatever the trie
//! knows. Learning below `u` lowers `θ(u)` from `held` to `θ_new`, and the attempt survives with probability
//! `θ_new/held` as it does in any case, so that it continues from `P(u)·θ_new(u)/θ₀(ε)`. Without surviving,
//! prefixes below which a draft found little mass would be favoured; a test keeps that on record. A text
//! whose attempts do not fail has the same ratio as a factor of its weight.
//!
//! **Which trees.** Any tree that was chosen without the random numbers of this attempt: from the text, by
//! another model with separate random numbers, or because the constraint leaves no choice. A draft that
//! guesses the token by drawing it with the attempt's own number must not be harvested: the survival of the
//! attempt would depend on what it is about to draw.
//!
//! Cost: computing the allowed mass of each row, and reading it once more for each of its children that is
//! new to the trie.

use super::cars::Attempt;
use super::trie::{Spot, Trie};
use crate::law::{Allowed, Part, Row, Weight};

impl<W: Weight> Attempt<W> {
    /// Records the rows of a drafted tree in the trie. The tree follows the prefix where the attempt is. Each
    /// node is the number of the node before it (`None` where that is the prefix) and its token; parents come
    /// before their children.
    ///
    /// `rows(node)` is the row and the mask after a node, or after the prefix for `None`; a node without a
    /// row is skipped. The module documentation says which trees may be harvested.
    ///
    /// # Errors
    /// The first error that `rows` returns. Rows recorded until then stay, and are right.
    pub fn harvest<'m, R, E>(
        &mut self,
        trie: &mut Trie<W>,
        tree: &[(Option<usize>, u32)],
        mut rows: impl FnMut(Option<usize>) -> Result<Option<(R, Allowed<'m>)>, E>,
    ) -> Result<(), E>
    where
        R: Row<W>,
    {
        // For the prefix and then for each node: its spot in the trie, and its length in tokens.
        let mut spots = vec![None; tree.len() + 1];
        spots[0] = Some((self.spot, self.position));
        let mut visited = Vec::new();
        for at in 0..spots.len() {
            let Some((spot, length)) = spots[at] else {
                continue;
            };
            let Some((row, allowed)) = rows(at.checked_sub(1))? else {
                continue;
            };
            let possible = trie.possible(allowed, length, row.len());
            let Some(node) = trie.arrive(spot, &row, &possible, self.time) else {
                continue;
            };
            visited.push(node);
            for (child, &(parent, token)) in tree.iter().enumerate().skip(at) {
                if parent == at.checked_sub(1) {
                    spots[child + 1] = trie
                        .below(node, token, &row, &possible)
                        .map(|spot| (spot, length + 1));
                }
            }
        }
        for &node in visited.iter().skip(1).rev() {
            trie.refresh(node);
        }
        if let Some(&top) = visited.first() {
            trie.report(top);
        }
        Ok(())
    }
}

impl<W: Weight> Trie<W> {
    /// Returns the visited prefix at a spot, recording a first visit if it needs one; `None` if there is no
    /// room.
    fn arrive(&mut self, spot: Spot, row: &impl Row<W>, possible: &[u32], time: u64) -> Option<usize> {
        match self.node_at(spot) {
            Some(node) => {
                self.revisit(node, time);
                Some(node)
            }
            None => self.visit(spot, row.part(Allowed::Words(possible)).mass(), time),
        }
    }

    /// Returns the spot below the edge of a token, creating the edge if there is none; `None` for a token
    /// that ends the text or is not possible, and if there is no room.
    fn below(&mut self, node: usize, token: u32, row: &impl Row<W>, possible: &[u32]) -> Option<Spot> {
        let edge = self.edge_tokens(node).position(|other| other == token);
        if let Some(edge) = edge {
            return Some(Spot::Below { node, edge });
        }
        if self.ends().contains(&token) || !Allowed::Words(possible).contains(token) {
            return None;
        }
        let taken: Vec<u32> = self.edge_tokens(node).collect();
        let rest = Allowed::Words(possible).without(&taken, row.len());
        let part = row.part(Allowed::Words(&rest));
        let share = part.share(token);
        if !share.is_positive() {
            return None;
        }
        match self.split(node, token, share, part.share_without(token)) {
            Spot::Untracked => None,
            spot => Some(spot),
        }
    }
}
