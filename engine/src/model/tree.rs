//! Drafts that form a tree: the meaning of a feed with parents, and the checks of its validity.
//!
//! Every fed token has a slot, which stores its keys and values, and a position, its place in its text. In a
//! chain the two are the same. Nodes of a tree at the same position exclude each other, and each has its own
//! slot:
//!
//! ```text
//!   … a b ─┬─ c ─┬─ e         tokens     b    c    d    e    f
//!          │     └─ f         parents         0    0    1    1      0 is b, k is the k-th node
//!          └─ d               slot       s   s+1  s+2  s+3  s+4
//!                             position   s   s+1  s+1  s+2  s+2
//!   f sees … a b, c and f
//! ```
//!
//! Tests: `engine/tests/engine/trees.rs` checks that each node has the row that its path has alone.

use crate::error::{EngineError, Malformed};
use crate::model::{Feed, SlotMoves};
use std::ops::Range;

/// The slots that each token of a feed attends to.
#[derive(Clone, Debug)]
pub(crate) struct Sight {
    start: usize,
    /// The number of fed tokens that are text.
    text: usize,
    /// The slots from the text down to each node, inclusive: the first is at the position after the text, and
    /// so on.
    branches: Vec<Vec<usize>>,
}

/// The slots that one token attends to: a range of its text, then those of its ancestors and itself that are
/// nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen<'a> {
    pub(crate) text: Range<usize>,
    pub(crate) branch: &'a [usize],
}

impl Seen<'_> {
    pub(crate) fn len(&self) -> usize {
        self.text.len() + self.branch.len()
    }

    /// Returns the slots in the order of their positions.
    #[inline(always)]
    pub(crate) fn slots(&self) -> impl Iterator<Item = usize> {
        self.text.clone().chain(self.branch.iter().copied())
    }
}

impl Sight {
    /// Returns the sight of a feed, which must have passed [`Feed::check`].
    pub(crate) fn of(feed: &Feed<'_>) -> Self {
        let parents = feed.parents.unwrap_or_default();
        let text = feed.tokens.len() - parents.len();
        let mut branches: Vec<Vec<usize>> = Vec::with_capacity(parents.len());
        for (number, &parent) in parents.iter().enumerate() {
            let mut branch = match usize::from(parent).checked_sub(1) {
                Some(parent) => branches[parent].clone(),
                None => Vec::new(),
            };
            branch.push(feed.start + text + number);
            branches.push(branch);
        }
        Sight {
            start: feed.start,
            text,
            branches,
        }
    }

    /// Returns the slots that the fed token of this number attends to, if it looks back over `window`
    /// positions, including its own.
    #[inline(always)]
    pub(crate) fn seen(&self, number: usize, window: usize) -> Seen<'_> {
        let (end, branch) = match number.checked_sub(self.text) {
            None => (self.start + number + 1, &[][..]),
            Some(node) => (self.start + self.text, self.branches[node].as_slice()),
        };
        let oldest = (end + branch.len()).saturating_sub(window);
        Seen {
            text: oldest.min(end)..end,
            branch: &branch[oldest.saturating_sub(end)..],
        }
    }

    /// Returns the position of every fed token.
    pub(crate) fn positions(&self) -> impl Iterator<Item = usize> {
        let end = self.start + self.text;
        let nodes = self.branches.iter().map(move |branch| end + branch.len() - 1);
        (self.start..end).chain(nodes)
    }

    /// Returns `true` if there are nodes.
    pub(crate) fn is_tree(&self) -> bool {
        !self.branches.is_empty()
    }
}

impl Feed<'_> {
    /// Checks that a model can make a pass of the feed, given the size of its blocks and its maximum number
    /// of positions.
    pub(crate) fn check(&self, block_size: usize, max_positions: usize) -> Result<(), Malformed> {
        let (tokens, parents) = (self.tokens.len(), self.parents.unwrap_or_default());
        let nodes = parents.len();
        if nodes > 0 && nodes >= tokens {
            return Err(Malformed::NoText { tokens, nodes });
        }
        let forward = |&(number, &parent): &(usize, &u16)| usize::from(parent) > number;
        if let Some((number, &parent)) = parents.iter().enumerate().find(forward) {
            let node = number + 1;
            return Err(Malformed::Parent { node, parent });
        }
        let most = if nodes > 0 { nodes + 1 } else { tokens };
        if self.rows > most {
            let rows = self.rows;
            return Err(Malformed::Rows { rows, most });
        }
        covers(self.table, block_size, self.start + tokens)?;
        let end = match nodes {
            0 => self.start + tokens,
            _ => Sight::of(self).positions().max().map_or(0, |last| last + 1),
        };
        match end <= max_positions {
            true => Ok(()),
            false => Err(Malformed::TooLong {
                end,
                limit: max_positions,
            }),
        }
    }
}

impl SlotMoves<'_> {
    /// Checks that the slots can be moved one after the other without losing any.
    pub(crate) fn check(&self, block_size: usize) -> Result<(), Malformed> {
        let mut free = self.start;
        for &slot in self.slots {
            if slot < free {
                return Err(Malformed::Order { slot, free });
            }
            free = slot + 1;
        }
        covers(self.table, block_size, free)
    }

    /// Returns the slots that change their place, with their destinations, as rows of the cache.
    pub(crate) fn rows(&self, block_size: usize) -> impl Iterator<Item = (usize, usize)> {
        let row = move |slot| self.table[slot / block_size] as usize * block_size + slot % block_size;
        let moves = self.slots.iter().copied().zip(self.start..);
        moves
            .filter(|(from, to)| from != to)
            .map(move |(from, to)| (row(from), row(to)))
    }
}

fn covers(table: &[u32], block_size: usize, slots: usize) -> Result<(), Malformed> {
    let blocks = table.len();
    match slots <= blocks.saturating_mul(block_size) {
        true => Ok(()),
        false => Err(Malformed::ShortTable { blocks, slots }),
    }
}

/// Checks all parts of a request to a model, and names the first that is malformed.
pub(crate) fn check_all<T>(
    part: &'static str,
    parts: &[T],
    check: impl Fn(&T) -> Result<(), Malformed>,
) -> Result<(), EngineError> {
    parts.iter().enumerate().try_for_each(|(number, value)| {
        check(value).map_err(|problem| EngineError::Malformed {
            part,
            number,
            problem,
        })
    })
}

/// Checks copies of blocks in a cache of `blocks` blocks: each block exists, and none is overwritten that
/// another copy reads or writes.
pub(crate) fn check_copies(pairs: &[(u32, u32)], blocks: usize) -> Result<(), EngineError> {
    let mut targets: Vec<u32> = pairs.iter().map(|&(_, to)| to).collect();
    targets.sort_unstable();
    let twice = |block: &u32| {
        targets.partition_point(|to| to <= block) - targets.partition_point(|to| to < block) > 1
    };
    check_all("copy", pairs, |&(from, to)| {
        if let Some(block) = [from, to].into_iter().find(|&block| block as usize >= blocks) {
            return Err(Malformed::NoBlock { block, blocks });
        }
        let is_target = targets.binary_search(&from).is_ok();
        match (is_target, twice(&to)) {
            (true, _) => Err(Malformed::Overwritten { block: from }),
            (_, true) => Err(Malformed::Overwritten { block: to }),
            (false, false) => Ok(()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the tree of the module's diagram, in whose text `b` is at slot 7.
    fn picture<'a>(table: &'a [u32]) -> Feed<'a> {
        Feed {
            tokens: &[1, 2, 3, 4, 5],
            start: 7,
            table,
            rows: 5,
            parents: Some(&[0, 0, 1, 1]),
            scale: 1.0,
        }
    }

    fn slots(sight: &Sight, number: usize, window: usize) -> Vec<usize> {
        sight.seen(number, window).slots().collect()
    }

    #[test]
    fn a_node_sees_the_text_and_its_ancestors() {
        let sight = Sight::of(&picture(&[0, 1, 2]));
        assert_eq!(sight.positions().collect::<Vec<_>>(), [7, 8, 8, 9, 9]);
        assert_eq!(slots(&sight, 0, usize::MAX), (0..=7).collect::<Vec<_>>());
        assert_eq!(slots(&sight, 4, usize::MAX), [0, 1, 2, 3, 4, 5, 6, 7, 8, 11]);
        assert_eq!(slots(&sight, 2, 3), [6, 7, 9]);
        assert_eq!(slots(&sight, 4, 2), [8, 11]);
        assert_eq!(slots(&sight, 4, 1), [11]);
        assert_eq!(slots(&sight, 0, 1), [7]);
    }

    #[test]
    fn what_no_pass_can_be_made_of_is_named() {
        let table = [0, 1, 2];
        let good = picture(&table);
        assert_eq!(good.check(4, 10), Ok(()));
        let bad = |feed: Feed<'_>| feed.check(4, 10).unwrap_err();
        let parents = |parents| Feed {
            parents: Some(parents),
            ..good
        };
        assert_eq!(bad(parents(&[0, 2])), Malformed::Parent { node: 2, parent: 2 });
        assert_eq!(bad(parents(&[1])), Malformed::Parent { node: 1, parent: 1 });
        assert_eq!(bad(parents(&[0; 5])), Malformed::NoText { tokens: 5, nodes: 5 });
        assert_eq!(bad(parents(&[0; 3])), Malformed::Rows { rows: 5, most: 4 });
        assert_eq!(
            bad(Feed {
                rows: 6,
                parents: None,
                ..good
            }),
            Malformed::Rows { rows: 6, most: 5 }
        );
        assert_eq!(
            bad(picture(&table[..2])),
            Malformed::ShortTable { blocks: 2, slots: 12 }
        );
        assert_eq!(good.check(4, 9), Err(Malformed::TooLong { end: 10, limit: 9 }));
    }

    #[test]
    fn slots_move_towards_the_text_in_order() {
        let table = [2, 0, 1];
        let moves = |start, slots| SlotMoves {
            table: &table,
            start,
            slots,
        };
        assert_eq!(moves(3, &[3, 5, 9]).check(4), Ok(()));
        let rows: Vec<_> = moves(3, &[3, 5, 9]).rows(4).collect();
        assert_eq!(rows, [(1, 0), (5, 1)], "a slot that is in its place stays");
        assert_eq!(
            moves(3, &[2]).check(4),
            Err(Malformed::Order { slot: 2, free: 3 })
        );
        assert_eq!(
            moves(3, &[6, 6]).check(4),
            Err(Malformed::Order { slot: 6, free: 7 })
        );
        assert_eq!(
            moves(3, &[12]).check(4),
            Err(Malformed::ShortTable { blocks: 3, slots: 13 })
        );
    }

    #[test]
    fn copies_do_not_meet() {
        assert!(check_copies(&[(0, 1), (0, 2), (3, 4)], 5).is_ok());
        for (pairs, problem) in [
            (&[(0, 5)][..], Malformed::NoBlock { block: 5, blocks: 5 }),
            (&[(0, 1), (1, 2)], Malformed::Overwritten { block: 1 }),
            (&[(0, 1), (2, 1)], Malformed::Overwritten { block: 1 }),
            (&[(3, 3)], Malformed::Overwritten { block: 3 }),
        ] {
            let found = check_copies(pairs, 5);
            assert!(
                matches!(&found, Err(EngineError::Malformed { problem: found, .. }) if *found == problem),
                "{found:?}"
            );
        }
    }
}
