//! The interest of a request in the work that is done for it, and the owner who is charged for that work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lexiform::limits::Cancel;
use lexiform_engine::Owner;

use crate::operate::keys::Rights;

/// The guard that a request holds as long as it waits for work: dropping it loses the interest.
#[derive(Default)]
pub struct InterestGuard(Interest);

impl InterestGuard {
    /// Creates the guard of a request with the key of this name, or without one.
    pub fn by(key: Owner) -> Self {
        Self::asked(Requester {
            owner: key.clone(),
            key,
            ..Requester::default()
        })
    }

    /// Creates the guard of a request by this requester.
    pub fn asked(requester: Requester) -> Self {
        Self(Interest {
            requester,
            ..Interest::default()
        })
    }

    /// Returns the interest that the work checks.
    pub fn interest(&self) -> Interest {
        self.0.clone()
    }
}

impl Drop for InterestGuard {
    fn drop(&mut self) {
        self.0.lost.store(true, Ordering::Release);
    }
}

/// The interest of a request in some work. Without an [`InterestGuard`] it is never lost.
#[derive(Clone, Debug, Default)]
pub struct Interest {
    lost: Arc<AtomicBool>,
    requester: Requester,
}

/// The origin of a request.
#[derive(Clone, Debug, Default)]
pub struct Requester {
    /// The name of the key or, without keys, the address of the client: requests of one owner take turns, and
    /// what a request leaves in caches is charged to its owner.
    pub owner: Owner,
    /// The name of the key, whose grammars the request may use; `None` without keys.
    pub key: Owner,
    /// What its key may ask for.
    pub rights: Arc<Rights>,
}

impl Interest {
    /// Returns `true` if the request no longer waits.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Returns the origin of the request.
    pub fn requester(&self) -> &Requester {
        &self.requester
    }

    /// Returns the owner of the request.
    pub fn owner(&self) -> &Owner {
        &self.requester.owner
    }

    /// Returns what the request may ask for.
    pub fn rights(&self) -> &Rights {
        &self.requester.rights
    }

    /// Returns a cancellation of work for this request alone.
    pub fn cancel(&self) -> Cancel {
        let interest = self.clone();
        Cancel::when(move || interest.is_lost())
    }
}
