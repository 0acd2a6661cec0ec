//! Unions of configurations.
//!
//! Where a text can be read in several ways, a frame has several callers, and these have callers again. Put
//! side by side they would be as many stacks as there are ways; a union merges them level by level, so that
//! each frame stands once on each level:
//!
//! ```text
//!   a      a b      a b c          a ─┬─ (end)
//!                             ─►      └─ b ─┬─ (end)
//!                                           └─ c
//! ```
//!
//! In `s ::= s s s | "a"`, where a letter may stand at any depth, the union of all depths up to `n` is one
//! level above that of all up to `n - 1`, so that a letter adds one configuration. Unions are remembered:
//! level by level they find those of the letters before.
//!
//! A union may have more levels than memory allows to follow, or be of sets of stacks whose merged form is
//! much larger than they are, as where any letter may be the middle of a palindrome. So it goes down a
//! bounded number of levels with bounded work, and leaves the rest side by side, which is the same set.
//!
//! # Why on all levels
//!
//! Graph-structured stacks are usually merged at the top only. In `s ::= s s s | "a"`, each depth was a
//! reading of its own: a mask after 400 letters took 35 ms, and now takes as long as after four. There is
//! one reader for each frame.

use std::sync::atomic::Ordering;

use super::frame::{FrameId, RETURN};
use super::stack::{ConfigId, END, Stacks};
use crate::work::spend;

/// Levels that are merged before the rest is left side by side.
const MERGED_LEVELS: usize = 8;

/// Unions that are made at most for one configuration.
const MOST_UNIONS: usize = 16;

/// What one union may still cost, and whether it was enough.
struct UnionWork {
    left: usize,
    whole: bool,
}

impl Stacks {
    /// The same set of stacks with each frame once, as far as the bounds of a union go. The pairs are in
    /// order.
    pub(crate) fn merge(&self, pairs: Vec<(FrameId, ConfigId)>) -> Vec<(FrameId, ConfigId)> {
        let mut work = UnionWork {
            left: MOST_UNIONS,
            whole: true,
        };
        self.merge_within(pairs, MERGED_LEVELS, &mut work)
    }

    fn merge_within(
        &self,
        pairs: Vec<(FrameId, ConfigId)>,
        levels: usize,
        work: &mut UnionWork,
    ) -> Vec<(FrameId, ConfigId)> {
        let groups = pairs.chunk_by(|a, b| a.0 == b.0);
        let merged = groups.map(|group| match group {
            [one] => *one,
            _ => {
                let all: Vec<ConfigId> = group.iter().map(|&(_, callers)| callers).collect();
                (group[0].0, self.union(&all, levels, work))
            }
        });
        merged.collect()
    }

    /// The union of configurations that are in order.
    fn union(&self, all: &[ConfigId], levels: usize, work: &mut UnionWork) -> ConfigId {
        if let Some(known) = self.unions.get(all) {
            return *known;
        }
        let mut pairs: Vec<_> = all.iter().flat_map(|&config| self.pairs_or_end(config)).collect();
        spend(all.len() + pairs.len());
        pairs.sort_unstable();
        pairs.dedup();
        let mut whole = true;
        if pairs.windows(2).any(|two| two[0].0 == two[1].0) {
            whole = levels > 0 && work.left > 0;
            if whole {
                let left = work.left - 1;
                let mut own = UnionWork { left, whole };
                pairs = self.merge_within(pairs, levels - 1, &mut own);
                (work.left, whole) = (own.left, own.whole);
            }
        }
        let union = self.intern_as_is(&pairs);
        // What was cut short may be found whole another time.
        match whole {
            true => {
                self.list_bytes.fetch_add(size_of_val(all), Ordering::Relaxed);
                self.unions.insert(all.into(), union);
            }
            false => work.whole = false,
        }
        union
    }

    /// The pairs of a configuration; END is kept as the complete frame above END.
    fn pairs_or_end(&self, config: ConfigId) -> Vec<(FrameId, ConfigId)> {
        match config {
            END => vec![(RETURN, END)],
            _ => self.pairs(config).to_vec(),
        }
    }
}
