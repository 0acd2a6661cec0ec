//! The profiles that were found so far, within a bound of memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::DashMap;
use rustc_hash::FxBuildHasher;

use super::place::Place;
use super::profile::Profile;
use crate::pushdown::{ConfigId, Distances};

/// The profiles of configurations.
#[derive(Debug)]
pub(super) struct Profiles {
    known: DashMap<ConfigId, Arc<Profile>, FxBuildHasher>,
    bytes: AtomicUsize,
    /// The memory for them in bytes; beyond it all are dropped and found again.
    most: usize,
}

impl Profiles {
    /// Keeps what takes at most this many bytes.
    pub(super) fn new(most: usize) -> Profiles {
        Profiles {
            known: DashMap::default(),
            bytes: AtomicUsize::new(0),
            most,
        }
    }

    /// The memory that is taken, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// What the tokens of a configuration make necessary.
    pub(super) fn of(&self, shortest: &Distances, place: Place<'_>, config: ConfigId) -> Arc<Profile> {
        if let Some(known) = self.known.get(&config) {
            return known.clone();
        }
        let profile = Arc::new(Profile::new(shortest, place, config));
        let bytes = profile.bytes();
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > self.most {
            self.known.clear();
            self.bytes.store(bytes, Ordering::Relaxed);
        }
        self.known.insert(config, profile.clone());
        profile
    }
}
