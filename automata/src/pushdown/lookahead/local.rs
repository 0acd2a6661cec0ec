//! The buffers in which heads look ahead: interned sets of callers, and the results cached for them.

use rustc_hash::{FxHashMap, FxHashSet};

use super::head::{Callers, Head, LOCAL};
use crate::work::spend;

/// The buffers for local sets. They are reused from walk to walk, so that a mask need not allocate memory.
#[derive(Default)]
pub(crate) struct Local {
    pub(crate) sets: Vec<(u32, u32)>,
    pairs: Vec<Head>,
    singles: FxHashMap<Head, Callers>,
    unions: FxHashMap<Box<[Head]>, Callers>,
    pub(crate) open: Reached,
    /// The readers of local sets after a terminal, as ranges of `after`.
    found: FxHashMap<Callers, (u32, u32)>,
    after: Vec<Head>,
}

/// The cost of a new set, in rounds of a plain loop.
const NEW: usize = 40;

/// Buffers for more pairs than this are not kept.
const KEPT_PAIRS: usize = 1 << 14;

impl Local {
    /// Clears all sets and keeps the buffers, or drops them if they are large.
    pub(crate) fn clear(&mut self) {
        if self.pairs.len().max(self.after.len()) > KEPT_PAIRS {
            *self = Local::default();
        }
        self.sets.clear();
        self.pairs.clear();
        self.singles.clear();
        self.unions.clear();
        self.open.clear();
        self.found.clear();
        self.after.clear();
    }

    pub(crate) fn set(&self, callers: Callers) -> &[Head] {
        let (first, end) = self.sets[(callers & !LOCAL) as usize];
        &self.pairs[first as usize..end as usize]
    }

    /// Returns the set of one head.
    pub(crate) fn single(&mut self, head: Head) -> Callers {
        if let Some(&known) = self.singles.get(&head) {
            return known;
        }
        let callers = self.add_set(&[head]);
        self.singles.insert(head, callers);
        callers
    }

    /// Returns the set of these heads, which are in order.
    pub(crate) fn union(&mut self, heads: Vec<Head>) -> Callers {
        if let Some(&known) = self.unions.get(&heads[..]) {
            return known;
        }
        let callers = self.add_set(&heads);
        self.unions.insert(heads.into(), callers);
        callers
    }

    /// Returns the readers of the callers after a terminal, if they were computed.
    pub(crate) fn after(&self, callers: Callers) -> Option<&[Head]> {
        let &(first, end) = self.found.get(&callers)?;
        Some(&self.after[first as usize..end as usize])
    }

    /// Caches the readers of the callers after a terminal.
    pub(crate) fn keep_after(&mut self, callers: Callers, readers: &[Head]) {
        let first = self.after.len() as u32;
        self.after.extend_from_slice(readers);
        self.found.insert(callers, (first, self.after.len() as u32));
    }

    fn add_set(&mut self, heads: &[Head]) -> Callers {
        spend(NEW + heads.len());
        let first = self.pairs.len() as u32;
        self.pairs.extend_from_slice(heads);
        self.sets.push((first, self.pairs.len() as u32));
        (self.sets.len() as u32 - 1) | LOCAL
    }
}

/// The heads that an expansion has reached, without duplicates and in order.
#[derive(Default)]
pub(crate) struct Reached {
    pub(crate) list: Vec<Head>,
    /// The same heads, once there are too many to search linearly.
    seen: FxHashSet<Head>,
}

/// The number of heads that are searched faster than one is hashed.
const LISTED_HEADS: usize = 12;

impl Reached {
    pub(crate) fn clear(&mut self) {
        self.list.clear();
        self.seen.clear();
    }

    pub(crate) fn push(&mut self, head: Head) {
        if self.list.len() < LISTED_HEADS {
            if !self.list.contains(&head) {
                self.list.push(head);
            }
            return;
        }
        if self.seen.is_empty() {
            self.seen.extend(&self.list);
        }
        if self.seen.insert(head) {
            self.list.push(head);
        }
    }

    pub(crate) fn extend(&mut self, heads: &[Head]) {
        for &head in heads {
            self.push(head);
        }
    }
}
