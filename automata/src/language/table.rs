//! The table of a regular language over bytes, without the bounds of its counts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use super::counter::UnitGraph;
use super::identity::LanguageId;

/// A table over classes of bytes. Whoever has it has a copy, because steps are looked up in it all the time;
/// what takes long to find is shared.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) classes: Box<[u8; 256]>,
    pub(super) stride: usize,
    /// `target * 2 + (1 if a unit ends)`, or `DEAD`.
    pub(super) next: Vec<u32>,
    pub(super) accepting: Vec<bool>,
    /// Whether a complete word never goes on, bounds left aside.
    pub(super) prefix_code: bool,
    /// The same as a graph, where units are counted.
    pub(super) units: Option<Arc<UnitGraph>>,
    pub(super) named: Arc<Named>,
}

/// What all languages share that have the same table: its number, and the names of its states, found when
/// they are first asked for.
#[derive(Debug)]
pub(super) struct Named {
    /// No other table of this process has it.
    pub(super) number: u64,
    /// Where units do not matter, and where they do.
    pub(super) names: [OnceLock<Box<[LanguageId]>>; 2],
    /// A state of each name, where units matter.
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
    /// The memory that the table takes.
    pub(super) fn bytes(&self) -> usize {
        512 + self.next.len() * 4 + self.accepting.len() * 2
    }
}
