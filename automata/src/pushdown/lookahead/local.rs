//! The room in which heads look ahead: sets of callers, each once, and what was found about them.

use rustc_hash::{FxHashMap, FxHashSet};

use super::head::{Callers, Head, LOCAL};
use crate::work::spend;

/// The room for local sets. It may be handed from walk to walk, so that a mask need not ask for memory.
#[derive(Default)]
pub(crate) struct Local {
    pub(crate) sets: Vec<(u32, u32)>,
    pairs: Vec<Head>,
    singles: FxHashMap<Head, Callers>,
    unions: FxHashMap<Box<[Head]>, Callers>,
    pub(crate) open: Reached,
    /// What local sets read next after a terminal, as ranges of `behind`.
    found: FxHashMap<Callers, (u32, u32)>,
    behind: Vec<Head>,
}

/// The cost of a new set, in rounds of a plain loop.
const NEW: usize = 40;

/// Room for more pairs than this is not kept.
const KEPT_PAIRS: usize = 1 << 14;

impl Local {
    /// Forgets all sets and keeps the room, or gives it up where it is large.
    pub(crate) fn clear(&mut self) {
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

    pub(crate) fn set(&self, callers: Callers) -> &[Head] {
        let (first, end) = self.sets[(callers & !LOCAL) as usize];
        &self.pairs[first as usize..end as usize]
    }

    /// The set of one head.
    pub(crate) fn single(&mut self, head: Head) -> Callers {
        if let Some(&known) = self.singles.get(&head) {
            return known;
        }
        let callers = self.add_set(&[head]);
        self.singles.insert(head, callers);
        callers
    }

    /// The set of these heads, which are in order.
    pub(crate) fn union(&mut self, heads: Vec<Head>) -> Callers {
        if let Some(&known) = self.unions.get(&heads[..]) {
            return known;
        }
        let callers = self.add_set(&heads);
        self.unions.insert(heads.into(), callers);
        callers
    }

    /// What the callers read next after a terminal, if it was found.
    pub(crate) fn behind(&self, callers: Callers) -> Option<&[Head]> {
        let &(first, end) = self.found.get(&callers)?;
        Some(&self.behind[first as usize..end as usize])
    }

    /// Remembers what the callers read next after a terminal.
    pub(crate) fn keep_behind(&mut self, callers: Callers, readers: &[Head]) {
        let first = self.behind.len() as u32;
        self.behind.extend_from_slice(readers);
        self.found.insert(callers, (first, self.behind.len() as u32));
    }

    fn add_set(&mut self, heads: &[Head]) -> Callers {
        spend(NEW + heads.len());
        let first = self.pairs.len() as u32;
        self.pairs.extend_from_slice(heads);
        self.sets.push((first, self.pairs.len() as u32));
        (self.sets.len() as u32 - 1) | LOCAL
    }
}

/// The heads that an expansion has come to, each once and in order.
#[derive(Default)]
pub(crate) struct Reached {
    pub(crate) list: Vec<Head>,
    /// The same, once there are too many to look through.
    seen: FxHashSet<Head>,
}

/// As many heads are looked through faster than one is hashed.
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
