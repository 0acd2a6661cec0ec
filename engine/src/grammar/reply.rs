//! A grammar task in progress for a sequence, and its reply.

use crate::error::EngineError;
use crate::grammar::masks::Bounds;
use crate::grammar::outlook::Reading;
use lexiform_law::Walk;
use lexiform_law::monitor::ProductState;
use lexiform_law::verify::Verified;
use std::sync::Arc;
use std::time::Duration;

/// A grammar task in progress. Its work ends at the next mask when this is dropped.
pub(crate) struct GrammarTask {
    pub(crate) number: u64,
    /// `true` if a pass waits for it.
    pub(crate) awaited: bool,
    pub(crate) _alive: Arc<()>,
}

/// The reply to a grammar task.
pub(crate) struct Reply {
    pub(crate) sequence: u64,
    pub(crate) number: u64,
    /// The processor time that the work took.
    pub(crate) took: Duration,
    pub(crate) outcome: Result<Brought, EngineError>,
}

/// The results of a grammar task.
#[derive(Default)]
pub(crate) struct Brought {
    pub(crate) reading: Option<Reading>,
    pub(crate) masks: Option<Vec<Bounds>>,
    pub(crate) inquired: Option<Inquired>,
}

/// The result of a draw that involves the sequence's monitors.
pub(crate) struct Inquired {
    /// The walk after the draw.
    pub(crate) walk: Walk,
    pub(crate) verified: Verified,
    /// The score of the text with the drawn tokens, if it was asked for.
    pub(crate) score: Option<f64>,
    /// The tokens of the accepted drafts.
    pub(crate) path: Vec<u32>,
    /// The first of the drawn tokens whose bounds were steered by the number of tokens left.
    pub(crate) steered: Option<(usize, bool)>,
    /// The state of the monitors before the draw, after `read` tokens of the answer.
    pub(crate) joint: Option<ProductState>,
    pub(crate) read: usize,
}

impl GrammarTask {
    /// Returns `true` if `reply` answers this grammar task.
    pub(crate) fn is(&self, reply: &Reply) -> bool {
        self.number == reply.number
    }
}
