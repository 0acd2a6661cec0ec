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
    /// Creates the guard of a request by this owner, who is also the one with whom it takes turns.
    pub fn by(owner: Owner) -> Self {
        Self::asked(Requester {
            share: owner.clone(),
            owner,
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

/// The origin of a request: the owner to charge, and the owner with whom it takes turns.
#[derive(Clone, Debug, Default)]
pub struct Requester {
    /// The owner who is charged for what a request leaves in caches: the owner of its key.
    pub owner: Owner,
    /// The owner with whom the request takes turns: the owner of its key or, without keys, its connection.
    pub share: Owner,
    /// What its key may ask for.
    pub rights: Arc<Rights>,
}

impl Interest {
    /// Returns `true` if the request no longer waits.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Returns the owner who is charged for the results of the work.
    pub fn owner(&self) -> &Owner {
        &self.requester.owner
    }

    /// Returns the owner with whom the request takes turns at threads and the model.
    pub fn share(&self) -> &Owner {
        &self.requester.share
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
