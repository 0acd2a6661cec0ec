//! Bounds the memory of a grammar while its texts grow.
//!
//! A state is a number that stays valid, so no single state can be evicted. A grammar whose states have
//! outgrown their share of [`Limits::grammar_bytes`](crate::limits::Limits::grammar_bytes) is replaced as a
//! whole, and sequences take along the data that they need: the open frames, and the keys that these frames
//! have to remember.
//!
//! ```text
//!   grammar      ██████████▌  outgrown ── compacted ►  ▌           the same one for all callers
//!   state 81,204                       ── adopt ────►  state 7     the same future
//! ```
//!
//! The data that a sequence takes along does not count against the new grammar: twice as much may be used
//! before the new grammar has itself outgrown its share. So a text with a million different keys is copied a
//! number of times that is logarithmic in its length, and not at every step.
//!
//! # Why whole grammars are replaced
//!
//! A state is a number that stays valid for the life of its grammar. That makes rollback and forks free, and
//! it rules out the eviction of single states. Of `grammar_bytes`, five eighths are for masks and an eighth
//! is for distances; both are dropped and computed again. A grammar whose states exceed the last quarter is
//! replaced: the decode loop does this between passes, the service when a request asks for a grammar. The
//! mask of a state is the same before and after, which the oracle (`tests/masks/oracle.rs`) checks for every
//! state that it reaches.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};

use super::masks::Masks;
use super::{Grammar, Inner, State};
use crate::pushdown::Machine;

impl Grammar {
    /// Returns the same grammar with empty caches. O(1).
    ///
    /// States belong to the grammar that returned them; [`adopt`](Grammar::adopt) transfers them.
    pub fn fresh(&self) -> Grammar {
        let machine = self.inner.machine.fresh();
        let start = match self.start == self.inner.machine.start() {
            true => machine.start(),
            false => machine.adopt(&self.inner.machine, self.start),
        };
        Grammar {
            start,
            ..self.over(machine)
        }
    }

    /// Returns a grammar over an equivalent machine, with empty caches. O(1).
    #[doc(hidden)]
    pub fn over(&self, machine: Machine) -> Grammar {
        let old = &self.inner;
        Grammar::beginning(Inner {
            machine,
            tables: old.tables.clone(),
            masks: Masks::new(old.shares.masks),
            specials: old.specials.clone(),
            budget: OnceLock::new(),
            spells_all: old.spells_all,
            shares: old.shares,
            allowances: old.allowances,
            brought: AtomicUsize::new(0),
            lineage: old.lineage.clone(),
        })
    }

    /// Replaces this grammar, if it has outgrown its memory, together with those of its states that are still
    /// needed. Returns `true` if it was replaced. O(1) while the grammar has not outgrown its memory; see
    /// [`compacted`](Grammar::compacted). If one of the states is too large to be transferred, nothing
    /// changes.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use lexiform::{Options, Source, compile};
    /// # use lexiform::vocab::{TokenKind, Vocabulary};
    /// # let tokens = ["<eos>", "a", "b", ","].map(|text| (TokenKind::Text, text));
    /// # let vocab = Arc::new(Vocabulary::new(&tokens, &[0])?);
    /// let mut options = Options::default();
    /// options.limits.grammar_bytes = 1 << 17;
    /// let (mut grammar, _) = compile(Source::Regex("((a|b){1,500},)*"), &vocab, &options)?;
    /// let mut state = grammar.start();
    /// for _ in 0..100 {
    ///     state = grammar.step_bytes(state, b"abba").expect("a word is as long as that");
    ///     grammar.compact(std::slice::from_mut(&mut state));
    ///     assert!(grammar.memory_usage() < 1 << 17 && grammar.mask(state).contains(3));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compact(&mut self, states: &mut [State]) -> bool {
        let Some(compacted) = self.compacted() else {
            return false;
        };
        let adopted: Option<Vec<State>> = states.iter().map(|&state| compacted.adopt(self, state)).collect();
        let Some(adopted) = adopted else {
            return false;
        };
        states.copy_from_slice(&adopted);
        *self = compacted;
        true
    }

    /// Returns the grammar that replaces this one if the states of the texts read so far have outgrown their
    /// quarter of [`Limits::grammar_bytes`](crate::limits::Limits::grammar_bytes), and `None` otherwise.
    /// O(1).
    ///
    /// Masks are dropped and recomputed within their own share, but a [`State`] stays valid for ever. A
    /// caller that reads long texts, or many, calls this now and then and continues with the states that
    /// [`adopt`](Grammar::adopt) returns; once the old grammar is no longer used, its memory is freed. All
    /// callers that hold this grammar, or one that it replaced, get the same replacement. A grammar of the
    /// texts [after](Grammar::after) some bytes is not replaced if the state after them is too large to be
    /// copied.
    pub fn compacted(&self) -> Option<Grammar> {
        if !self.has_outgrown() {
            return None;
        }
        let latest = self.inner.lineage.latest.lock();
        let mut latest = latest.unwrap_or_else(PoisonError::into_inner);
        let known = latest.upgrade().map(|inner| Grammar {
            start: inner.machine.start(),
            inner,
        });
        let compacted = known.filter(|known| !known.has_outgrown());
        let compacted = compacted.unwrap_or_else(|| {
            let fresh = self.over(self.inner.machine.fresh());
            *latest = Arc::downgrade(&fresh.inner);
            fresh
        });
        if self.start == self.inner.machine.start() {
            return Some(compacted);
        }
        let start = compacted.adopt(self, self.start())?.0;
        Some(Grammar { start, ..compacted })
    }

    /// Returns the state of this grammar that is equivalent to `state` of `other`: it allows the same texts
    /// and has the same masks. Returns `None` if the two grammars do not stem from the same compile, or if
    /// the state is too large to be copied within [`Limits::mask_work`](crate::limits::Limits::mask_work).
    /// O(the open frames of the state, and the keys that they remember).
    pub fn adopt(&self, other: &Grammar, state: State) -> Option<State> {
        if !Arc::ptr_eq(&self.inner.lineage, &other.inner.lineage) {
            return None;
        }
        if self.ptr_eq(other) {
            return Some(state);
        }
        let machine = &self.inner.machine;
        let before = machine.bytes();
        let adopted = self.ask(|| machine.adopt(&other.inner.machine, state.0)).ok()?;
        let brought = machine.bytes().saturating_sub(before);
        self.inner.brought.fetch_add(brought, Ordering::Relaxed);
        Some(State(adopted))
    }

    fn has_outgrown(&self) -> bool {
        let brought = self.inner.brought.load(Ordering::Relaxed);
        self.inner.machine.bytes() > self.inner.shares.states.max(brought.saturating_mul(3))
    }
}
