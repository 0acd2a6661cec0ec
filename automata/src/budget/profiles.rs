//! A cache of profiles, within a bound on its bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::DashMap;
use rustc_hash::FxBuildHasher;

use super::place::Place;
use super::profile::Profile;
use crate::pushdown::{ConfigId, Distances};

/// The profiles of configurations, computed on demand.
#[derive(Debug)]
pub(super) struct Profiles {
    known: DashMap<ConfigId, Arc<Profile>, FxBuildHasher>,
    bytes: AtomicUsize,
    /// The maximum number of bytes. Beyond it, all profiles are dropped and recomputed.
    most: usize,
}

impl Profiles {
    /// Creates a cache of at most `most` bytes.
    pub(super) fn new(most: usize) -> Profiles {
        Profiles {
            known: DashMap::default(),
            bytes: AtomicUsize::new(0),
            most,
        }
    }

    /// Returns the bytes that the profiles take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns the profile of a configuration.
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
