//! An errand that is under way for a sequence, and the reply that it brings.

use crate::error::EngineError;
use crate::grammar::masks::Bounds;
use crate::grammar::outlook::Reading;
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
}

impl Errand {
    /// Whether this is what the reply answers.
    pub(crate) fn is(&self, reply: &Reply) -> bool {
        self.number == reply.number
    }
}
