//! The fewest steps that complete a series of which a key must come again.
//!
//! Two ways end it: a key that was written comes again, or a short one is written twice. Everything else that must be
//! there is as short as can be. While a key is being written it can become one of those that were written, or the
//! shortest word that is left, which can then be written again itself.

use std::sync::Arc;

use super::Distances;
use crate::language::Cursor;
use crate::language::{NEVER, plus};
use crate::pushdown::frame::{FrameId, Frames};
use crate::pushdown::intern::interner::NIL;
use crate::pushdown::object::progress::Progress;

impl Distances {
    /// The distance in a series of which a key must come again, the shortest of which takes `known` steps.
    pub(crate) fn of_repeating(&self, frames: &Frames, series: u32, progress: Progress, known: u64) -> u64 {
        if progress.repeated {
            return self.of_list(frames, series, progress, (0, 0));
        }
        let plan = &frames.nfa.series[series as usize];
        let keys = plan.rest.iter().filter_map(|rest| {
            let key = rest.key?;
            let word = self.of_cursor(key, frames.terminal(key).start());
            Some(plus(word, self.rules[rest.item as usize]))
        });
        let new = keys.min().unwrap_or(NEVER);
        let again = self.of_list(frames, series, progress, (1, known));
        again.min(self.of_list(frames, series, progress, (2, plus(new, new))))
    }

    /// The same with `some` items of the rest, which take `steps` together.
    fn of_list(&self, frames: &Frames, series: u32, progress: Progress, (some, steps): (u64, u64)) -> u64 {
        let plan = &frames.nfa.series[series as usize];
        let members = &plan.members[(progress.done as usize).min(plan.members.len())..];
        let needed = if some > 0 { members.len() as u64 + some } else { 0 };
        let missing = plan.min.saturating_sub(progress.count);
        let items = needed.max(missing).max(u64::from(progress.separated));
        if plan
            .max
            .is_some_and(|max| progress.count.saturating_add(items) > max)
        {
            return NEVER;
        }
        if items == 0 {
            return 0;
        }
        let leading = members.iter().map(|member| self.of_member(member)).fold(0, plus);
        let others = match items - needed {
            0 => 0,
            more => self.cheapest_rest(frames, plan, 1).saturating_mul(more),
        };
        let separators = match items - 1 + u64::from(progress.started && !progress.separated) {
            0 => 0,
            more => plan
                .separator
                .map_or(0, |rule| self.rules[rule as usize])
                .saturating_mul(more),
        };
        [leading, steps, others, separators].into_iter().fold(0, plus)
    }

    /// The steps of the shortest key that was written.
    pub(crate) fn of_used(&self, frames: &Frames, progress: Progress) -> u64 {
        let used = frames.used_keys(progress);
        used.iter().map(|word| self.of_bytes(word)).min().unwrap_or(NEVER)
    }

    /// The distance in the shortest of these words, of which the first `at` bytes are written.
    pub(crate) fn of_words(&self, words: &[Arc<[u8]>], at: u32) -> u64 {
        let left = words.iter().map(|word| self.of_bytes(&word[at as usize..]));
        left.min().unwrap_or(NEVER)
    }

    fn of_bytes(&self, bytes: &[u8]) -> u64 {
        match bytes.iter().all(|&byte| self.usable.contains(byte)) {
            true => bytes.len() as u64,
            false => NEVER,
        }
    }

    /// A key in progress of which this is written, and the rest of its series.
    pub(crate) fn of_key_to_repeat(
        &self,
        frames: &Frames,
        frame: FrameId,
        cursor: Cursor,
        text: &[u8],
    ) -> u64 {
        let (series, rest, progress, _) = frames.key_parts(frame);
        let after = frames.after_rest(series, rest, progress);
        let key = frames.nfa.series[series as usize].rest[rest as usize].key;
        let word = key.map_or(NEVER, |key| self.of_cursor(key, cursor));
        let whole = plus(self.of_bytes(text), word);
        let known = self.of_used(frames, progress).min(whole);
        let new = plus(word, self.of_repeating(frames, series, after, known));
        let begun = frames.used_keys(progress);
        let begun = begun.behind(text).map(|left| self.of_bytes(left));
        let repeated = Progress {
            used: NIL,
            repeated: true,
            ..after
        };
        let again = begun.min().unwrap_or(NEVER);
        new.min(plus(again, self.of_list(frames, series, repeated, (0, 0))))
    }

    /// The rest of a series after any key of a frame, as if it were a new one that does not come again.
    pub(crate) fn behind_new_key(&self, frames: &Frames, frame: FrameId) -> u64 {
        let (series, rest, progress, _) = frames.key_parts(frame);
        let after = frames.after_rest(series, rest, progress);
        self.of_repeating(frames, series, after, NEVER)
    }
}
