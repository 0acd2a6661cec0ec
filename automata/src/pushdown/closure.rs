//! Closures: what a configuration reads next, after following calls and returns as far as nothing is read.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::frame::{FrameId, Guard, RETURN};
use super::stack::{Closure, ConfigId, END, Readers, Stacks};
use crate::pushdown::intern::seen::Seen;
use crate::work::spend;

/// The pairs to follow, last one first.
type OpenFrame = SmallVec<[(FrameId, ConfigId); 8]>;

/// The maximum number of readers that are compared pairwise, which is faster than sorting so few.
const FEW_READERS: usize = 16;

impl Stacks {
    /// Returns the closure of a configuration, if it was computed before.
    pub(crate) fn known_closure(&self, config: ConfigId) -> Option<&Closure> {
        self.closure_cell(config).get()
    }

    /// Returns the closure of a configuration.
    pub fn closure(&self, config: ConfigId) -> &Closure {
        if let Some(known) = self.closure_cell(config).get() {
            return known;
        }
        for below in self.ends_below(config) {
            self.closure_cell(below).get_or_init(|| self.expand(below));
        }
        self.closure_cell(config).get_or_init(|| self.expand(config))
    }

    /// Returns the callers that a configuration may return to without reading and whose closures are not
    /// known; each comes after its own callers, which have smaller numbers.
    fn ends_below(&self, config: ConfigId) -> Vec<ConfigId> {
        let mut found = Vec::new();
        let mut seen = Seen::default();
        let (mut at, mut config) = (0, config);
        loop {
            spend(1 + self.pairs(config).len());
            for &(frame, callers) in self.pairs(config) {
                let is_end = callers != END && self.frames.get(frame).accepting;
                let is_known = || self.closure_cell(callers).get().is_some();
                if is_end && !is_known() && seen.insert(callers) {
                    found.push(callers);
                }
            }
            let Some(&next) = found.get(at) else { break };
            (at, config) = (at + 1, next);
        }
        found.sort_unstable();
        found
    }

    fn expand(&self, config: ConfigId) -> Closure {
        let mut closure = Closure {
            readers: Readers::new(),
            accepting: config == END,
            lowest: self.height(config),
        };
        let mut seen = Seen::default();
        let mut open: OpenFrame = self.pairs(config).iter().rev().copied().collect();
        while let Some((frame, callers)) = open.pop() {
            if !seen.insert((frame, callers)) {
                continue;
            }
            spend(1);
            let known = self.frames.get(frame);
            if known.reads {
                closure.readers.push((frame, callers));
            }
            for call in self.frames.calls(frame).iter().rev() {
                let below = if call.then == RETURN {
                    callers
                } else {
                    self.intern_as_is(&[(call.then, callers)])
                };
                open.push((call.callee, below));
            }
            match self.frames.guard(frame) {
                _ if !known.accepting => {}
                None => self.give_back(callers, &mut open, &mut closure),
                Some(guard) => self.give_back_guarded(callers, guard, &mut closure),
            }
        }
        self.merge_readers(&mut closure.readers);
        closure
    }

    /// Continues with the callers of a complete frame; usually their closure is known already.
    fn give_back(&self, callers: ConfigId, open: &mut OpenFrame, closure: &mut Closure) {
        match self.closure_cell(callers).get() {
            _ if callers == END => {
                closure.accepting = true;
                closure.lowest = 0;
            }
            Some(known) => {
                spend(known.readers.len());
                closure.lowest = closure.lowest.min(known.lowest);
                closure.readers.extend_from_slice(&known.readers);
                closure.accepting |= known.accepting;
            }
            None => {
                closure.lowest = closure.lowest.min(self.height(callers));
                open.extend_from_slice(self.pairs(callers));
            }
        }
    }

    /// Continues with the callers of a word that some bytes must not follow.
    fn give_back_guarded(&self, callers: ConfigId, guard: Guard, closure: &mut Closure) {
        if callers == END {
            closure.accepting = true;
            closure.lowest = 0;
            return;
        }
        let known = self.closure(callers);
        spend(known.readers.len());
        closure.lowest = closure.lowest.min(known.lowest);
        closure.accepting |= known.accepting;
        let readers = known.readers.iter();
        let guarded =
            readers.filter_map(|&(frame, callers)| Some((self.frames.guarded(frame, guard)?, callers)));
        closure.readers.extend(guarded);
    }

    /// Merges readers with the same frame into one, with the callers of all. The others keep their order.
    fn merge_readers(&self, readers: &mut Readers) {
        let mut ahead = readers.iter().enumerate();
        if readers.len() <= FEW_READERS
            && !ahead.any(|(at, one)| readers[..at].iter().any(|other| other.0 == one.0))
        {
            return;
        }
        let mut sorted = readers.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let merged: FxHashMap<FrameId, ConfigId> = self.merge(sorted).into_iter().collect();
        let mut seen = Seen::default();
        readers.retain(|(frame, callers)| {
            *callers = merged[frame];
            seen.insert(*frame)
        });
    }
}
