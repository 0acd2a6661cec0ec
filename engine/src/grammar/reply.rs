//! An errand that is under way for a sequence, and the reply that it brings.

use crate::error::EngineError;
use crate::grammar::masks::Bounds;
use crate::grammar::outlook::Reading;
use lexiform_law::Walk;
use lexiform_law::monitor::ProductState;
use lexiform_law::verify::Verified;
use std::sync::Arc;
use std::time::Duration;

/// An errand that is under way. Its work ends at the next mask when this is dropped.
pub(crate) struct Errand {
    pub(crate) number: u64,
    /// Whether a pass waits for it.
    pub(crate) awaited: bool,
    pub(crate) _alive: Arc<()>,
}

/// What an errand brings.
pub(crate) struct Reply {
    pub(crate) sequence: u64,
    pub(crate) number: u64,
    /// How much of a processor's time the work took.
    pub(crate) took: Duration,
    pub(crate) outcome: Result<Brought, EngineError>,
}

/// What was found out.
#[derive(Default)]
pub(crate) struct Brought {
    pub(crate) reading: Option<Reading>,
    pub(crate) masks: Option<Vec<Bounds>>,
    pub(crate) inquired: Option<Inquired>,
}

/// What was drawn for a sequence by asking its monitors.
pub(crate) struct Inquired {
    /// The walk after the draw.
    pub(crate) walk: Walk,
    pub(crate) verified: Verified,
    /// The tokens of the accepted drafts.
    pub(crate) path: Vec<u32>,
    /// The first of the drawn tokens that the tokens left have steered.
    pub(crate) steered: Option<usize>,
    /// The monitors before the draw, after so many tokens of the answer.
    pub(crate) joint: Option<ProductState>,
    pub(crate) read: usize,
}

impl Errand {
    /// Whether this is what the reply answers.
    pub(crate) fn is(&self, reply: &Reply) -> bool {
        self.number == reply.number
    }
}
