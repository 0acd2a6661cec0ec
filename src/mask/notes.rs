//! What those who walk a terminal keep about it, as long as the terminal lives.

use std::sync::{Arc, Mutex, MutexGuard};

use rustc_hash::FxHashMap;

use super::factor::Entry;
use super::lasting::Kept;
use super::near::Walked;

/// The notes of one terminal; all of it is found again if it is missing.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) lasting: Kept,
    /// What narrow states allow.
    pub(super) narrow: Mutex<FxHashMap<u32, Arc<Entry>>>,
    /// How often states were asked for what was missing beside others.
    beside: Mutex<FxHashMap<u32, u32>>,
    pub(super) walked: Walked,
}

impl Notes {
    /// How often a state was asked for what was missing beside others, with this time.
    pub(super) fn come_beside(&self, state: u32) -> u32 {
        let count = |mut known: MutexGuard<'_, FxHashMap<u32, u32>>| {
            let count = known.entry(state).or_default();
            *count += 1;
            *count
        };
        self.beside.lock().map_or(u32::MAX, count)
    }
}
