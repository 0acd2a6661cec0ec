//! The room in which threads look ahead: sets of callers, each once, and what was found about them.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Callers, LOCAL, Thread};
use crate::work::spend;

/// The room for local sets. It may be handed from walk to walk, so that a mask need not ask for memory.
#[derive(Default)]
pub(crate) struct Local {
    pub(super) sets: Vec<(u32, u32)>,
    pairs: Vec<Thread>,
    singles: FxHashMap<Thread, Callers>,
    unions: FxHashMap<Box<[Thread]>, Callers>,
    pub(super) open: Reached,
    /// What local sets read next behind a terminal, as ranges of `behind`.
    found: FxHashMap<Callers, (u32, u32)>,
    behind: Vec<Thread>,
}

/// A new set costs as much as so many rounds of a loop.
const NEW: usize = 40;

/// Room for more pairs than this is not kept.
const KEPT_PAIRS: usize = 1 << 14;

impl Local {
    /// Forgets all sets and keeps the room, or gives it up where it is large.
    pub(super) fn clear(&mut self) {
        if self.pairs.len().max(self.behind.len()) > KEPT_PAIRS {
            *self = Local::default();
        }
        self.sets.clear();
        self.pairs.clear();
        self.singles.clear();
        self.unions.clear();
        self.open.clear();
        self.found.clear();
        self.behind.clear();
    }

    pub(super) fn set(&self, callers: Callers) -> &[Thread] {
        let (first, end) = self.sets[(callers & !LOCAL) as usize];
        &self.pairs[first as usize..end as usize]
    }

    /// The set of one thread.
    pub(super) fn single(&mut self, thread: Thread) -> Callers {
        if let Some(&known) = self.singles.get(&thread) {
            return known;
        }
        let callers = self.add_set(&[thread]);
        self.singles.insert(thread, callers);
        callers
    }

    /// The set of these threads, which are in order.
    pub(super) fn union(&mut self, threads: Vec<Thread>) -> Callers {
        if let Some(&known) = self.unions.get(&threads[..]) {
            return known;
        }
        let callers = self.add_set(&threads);
        self.unions.insert(threads.into(), callers);
        callers
    }

    /// What the callers read next behind a terminal, if it was found.
    pub(super) fn behind(&self, callers: Callers) -> Option<&[Thread]> {
        let &(first, end) = self.found.get(&callers)?;
        Some(&self.behind[first as usize..end as usize])
    }

    /// Remembers what the callers read next behind a terminal.
    pub(super) fn keep_behind(&mut self, callers: Callers, readers: &[Thread]) {
        let first = self.behind.len() as u32;
        self.behind.extend_from_slice(readers);
        self.found.insert(callers, (first, self.behind.len() as u32));
    }

    fn add_set(&mut self, threads: &[Thread]) -> Callers {
        spend(NEW + threads.len());
        let first = self.pairs.len() as u32;
        self.pairs.extend_from_slice(threads);
        self.sets.push((first, self.pairs.len() as u32));
        (self.sets.len() as u32 - 1) | LOCAL
    }
}

/// The threads that an expansion has come to, each once and in order.
#[derive(Default)]
pub(super) struct Reached {
    pub(super) list: Vec<Thread>,
    /// The same, once there are too many to look through.
    seen: FxHashSet<Thread>,
}

/// As many threads are looked through faster than one is hashed.
const FEW: usize = 12;

impl Reached {
    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.seen.clear();
    }

    pub(super) fn push(&mut self, thread: Thread) {
        if self.list.len() < FEW {
            if !self.list.contains(&thread) {
                self.list.push(thread);
            }
            return;
        }
        if self.seen.is_empty() {
            self.seen.extend(&self.list);
        }
        if self.seen.insert(thread) {
            self.list.push(thread);
        }
    }

    pub(super) fn extend(&mut self, threads: &[Thread]) {
        for &thread in threads {
            self.push(thread);
        }
    }
}
