//! The table of a regular language over bytes, without the bounds of its counts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use super::byte_set::ByteSet;
use super::counter::UnitGraph;
use super::language_id::LanguageId;

/// A table over classes of bytes. Each terminal has a copy, because steps look it up all the time; data that
/// is expensive to compute is shared.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) classes: Box<[u8; 256]>,
    pub(super) stride: usize,
    /// The transitions: `target * 2 + (1 if a unit ends)`, or `DEAD`.
    pub(super) next: Vec<u32>,
    pub(super) accepting: Vec<bool>,
    /// `true` if a complete word never continues, ignoring bounds.
    pub(super) prefix_code: bool,
    /// The same transitions as a graph, if units are counted.
    pub(super) units: Option<Arc<UnitGraph>>,
    pub(super) named: Arc<Named>,
    /// For each state, the bytes that must not follow a word that ends there; `None` if all may.
    pub(super) blocked: Option<Arc<[ByteSet]>>,
}

/// The data shared by all languages with the same table: its number, and the names of its states, computed on
/// first use.
#[derive(Debug)]
pub(super) struct Named {
    /// A number that no other table of this process has.
    pub(super) number: u64,
    /// The names of the states, ignoring units and including them.
    pub(super) names: [OnceLock<Box<[LanguageId]>>; 2],
    /// A state for each name that includes units.
    pub(super) states: OnceLock<FxHashMap<LanguageId, u32>>,
}

/// The number of the next table.
static NEXT: AtomicU64 = AtomicU64::new(0);

impl Default for Named {
    fn default() -> Named {
        Named {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            names: Default::default(),
            states: OnceLock::new(),
        }
    }
}

impl Table {
    /// Returns the bytes that the table takes.
    pub(super) fn bytes(&self) -> usize {
        512 + self.next.len() * 4 + self.accepting.len() * 2
    }
}
