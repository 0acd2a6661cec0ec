//! Unions of configurations.
//!
//! If a text has several parses, a frame has several callers, and these have callers in turn. Stored side by
//! side, they would be as many stacks as there are parses; a union merges them level by level, so that each
//! frame occurs once on each level:
//!
//! ```text
//!   a      a b      a b c          a ─┬─ (end)
//!                             ─►      └─ b ─┬─ (end)
//!                                           └─ c
//! ```
//!
//! In `s ::= s s s | "a"`, where a letter may be at any depth, the union of all depths up to `n` is one level
//! above the union of all depths up to `n - 1`, so a letter adds one configuration. Unions are cached: level
//! by level, they find the unions of the previous letters.
//!
//! A union may have too many levels to follow, or be a union of sets of stacks whose merged form is much
//! larger than the sets themselves, as when any letter may be the middle of a palindrome. So merging goes
//! down a bounded number of levels with bounded work, and leaves the rest side by side, which represents the
//! same set.
//!
//! # Why all levels are merged
//!
//! Graph-structured stacks are usually merged at the top only. In `s ::= s s s | "a"`, each depth was a parse
//! of its own: a mask after 400 letters took 35 ms, and now takes as long as after four. There is one reader
//! for each frame.

use std::sync::atomic::Ordering;

use super::frame::{FrameId, RETURN};
use super::stack::{ConfigId, END, Stacks};
use crate::work::spend;

/// The number of levels that are merged before the rest is left side by side.
const MERGED_LEVELS: usize = 8;

/// The maximum number of unions that are computed for one configuration.
const MOST_UNIONS: usize = 16;

/// The remaining work of one union, and whether it has sufficed so far.
struct UnionWork {
    left: usize,
    whole: bool,
}

impl Stacks {
    /// Returns the same set of stacks with each frame once, as far as the bounds of a union allow. The pairs
    /// are in order.
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

    /// Returns the union of configurations that are in order.
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
        // A union that was cut short may be computed in full another time.
        match whole {
            true => {
                self.list_bytes.fetch_add(size_of_val(all), Ordering::Relaxed);
                self.unions.insert(all.into(), union);
            }
            false => work.whole = false,
        }
        union
    }

    /// Returns the pairs of a configuration; END is represented as the complete frame above END.
    fn pairs_or_end(&self, config: ConfigId) -> Vec<(FrameId, ConfigId)> {
        match config {
            END => vec![(RETURN, END)],
            _ => self.pairs(config).to_vec(),
        }
    }
}
