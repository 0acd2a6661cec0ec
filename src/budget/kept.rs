//! What is remembered of the tokens of a configuration: profiles and end states, within a bound of memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::DashMap;
use rustc_hash::FxBuildHasher;

use super::place::Place;
use super::profile::Profile;
use crate::language::{Cursor, Terminal};
use crate::mask::EndStates;
use crate::pushdown::{ConfigId, Distances};

/// The profiles and end states that were found so far.
#[derive(Debug)]
pub(super) struct Kept {
    profiles: DashMap<ConfigId, Arc<Profile>, FxBuildHasher>,
    /// By the number of the terminal and the state in it.
    end_states: DashMap<(u64, u32), Arc<EndStates>, FxBuildHasher>,
    bytes: AtomicUsize,
    /// The memory for them in bytes; beyond it all are dropped and found again.
    most: usize,
}

impl Kept {
    /// Keeps what takes at most this many bytes.
    pub(super) fn new(most: usize) -> Kept {
        Kept {
            profiles: DashMap::default(),
            end_states: DashMap::default(),
            bytes: AtomicUsize::new(0),
            most,
        }
    }

    /// The memory that is taken, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// What the tokens of a configuration make necessary.
    pub(super) fn profile(&self, shortest: &Distances, place: Place<'_>, config: ConfigId) -> Arc<Profile> {
        if let Some(known) = self.profiles.get(&config) {
            return known.clone();
        }
        let profile = Arc::new(Profile::new(shortest, place, config));
        self.grow(profile.bytes());
        self.profiles.insert(config, profile.clone());
        profile
    }

    /// Where the tokens lead that stay within a language; kept where nothing is counted, since a text comes by the same
    /// places then.
    pub(super) fn end_states(&self, place: Place<'_>, terminal: &Terminal, cursor: Cursor) -> Arc<EndStates> {
        let find = || Arc::new(EndStates::new(terminal, cursor, place.vocabulary()));
        if terminal.is_counted() {
            return find();
        }
        let key = (terminal.number(), cursor.state);
        if let Some(known) = self.end_states.get(&key) {
            return known.clone();
        }
        let found = find();
        self.grow(found.bytes());
        self.end_states.insert(key, found.clone());
        found
    }

    fn grow(&self, bytes: usize) {
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > self.most {
            self.profiles.clear();
            self.end_states.clear();
            self.bytes.store(bytes, Ordering::Relaxed);
        }
    }
}
