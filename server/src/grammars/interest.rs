//! Whether a request still waits for the work that is done for it, and who is charged for that work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lexiform::limits::Cancel;
use lexiform_engine::Owner;

/// The guard that a request holds as long as it waits for work: dropping it loses the interest.
#[derive(Default)]
pub struct InterestGuard(Interest);

impl InterestGuard {
    /// By a request of this owner, who is also the one with whom it shares the machine.
    pub fn by(owner: Owner) -> Self {
        Self::asked(Requester {
            share: owner.clone(),
            owner,
        })
    }

    /// By a request of these.
    pub fn asked(requester: Requester) -> Self {
        Self(Interest {
            requester,
            ..Interest::default()
        })
    }

    /// What the work looks at.
    pub fn interest(&self) -> Interest {
        self.0.clone()
    }
}

impl Drop for InterestGuard {
    fn drop(&mut self) {
        self.0.lost.store(true, Ordering::Release);
    }
}

/// Whether somebody still waits for some work. Without an [`InterestGuard`] it is never lost.
#[derive(Clone, Debug, Default)]
pub struct Interest {
    lost: Arc<AtomicBool>,
    requester: Requester,
}

/// Who asks: whom to charge, and with whom to take turns.
#[derive(Clone, Debug, Default)]
pub struct Requester {
    /// Who is charged for what a request leaves behind: the owner of its key.
    pub owner: Owner,
    /// With whom it takes turns: the owner of its key or, without keys, its connection.
    pub share: Owner,
}

impl Interest {
    /// Whether nobody waits any more.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Who is charged for what comes of the work.
    pub fn owner(&self) -> &Owner {
        &self.requester.owner
    }

    /// With whom the request takes turns at threads and the model.
    pub fn share(&self) -> &Owner {
        &self.requester.share
    }

    /// Calls off work of this request alone.
    pub fn cancel(&self) -> Cancel {
        let interest = self.clone();
        Cancel::when(move || interest.is_lost())
    }
}
