//! The state of a sequence's monitors between the passes.

use crate::grammar::reply::Inquired;
use crate::request::watched::Turn;
use crate::speculation::draft::Draft;
use lexiform_law::monitor::ProductState;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The monitors of a sequence.
#[derive(Default)]
pub(crate) struct Watch {
    /// The joint state of the monitors, and the number of answer tokens that it has read. Starting anew is
    /// always correct: a fork does.
    joint: Option<(ProductState, usize)>,
    /// The result of the inquiry, which is not yet written.
    inquired: Option<Inquired>,
    /// The time since which the monitors are being queried.
    asked: Option<Instant>,
    /// The number of the monitor that is running. The monitors' states share this, so it stays as long as
    /// they do.
    turn: Turn,
    /// `true` if the last result came so late that no pass should wait for the next one.
    is_late: bool,
}

/// The time after which a result is late.
const LATE: Duration = Duration::from_millis(2);

impl Watch {
    /// Takes the monitors' joint state, to be advanced by the caller.
    pub(crate) fn take_joint(&mut self) -> Option<(ProductState, usize)> {
        self.joint.take()
    }

    /// Starts the clock of an inquiry; returns the place where the monitors record which of them is running.
    pub(crate) fn begin(&mut self) -> Turn {
        self.asked = Some(Instant::now());
        self.turn.clone()
    }

    /// Returns `true` if the last result came so late that no pass should wait for the next one.
    pub(crate) fn is_late(&self) -> bool {
        self.is_late
    }

    /// Stores the result of an inquiry.
    pub(crate) fn hear(&mut self, inquired: Inquired) {
        self.is_late = self.asked.is_some_and(|asked| asked.elapsed() > LATE);
        (self.inquired, self.asked) = (Some(inquired), None);
    }

    /// Takes the result of an inquiry.
    pub(crate) fn take(&mut self) -> Option<Inquired> {
        let mut inquired = self.inquired.take()?;
        let read = inquired.read;
        self.joint = inquired.joint.take().map(|joint| (joint, read));
        Some(inquired)
    }

    /// Returns `true` if a result is present that can be written after an answer of `generated` tokens. A
    /// result for drafts that have changed since is discarded.
    pub(crate) fn has_drawn(&mut self, generated: usize, drafts: &[Draft]) -> bool {
        let fits = |inquired: &mut Inquired| {
            let mut path = inquired.verified.path.iter().zip(&inquired.path);
            let is_there =
                path.all(|(&node, &token)| drafts.get(node).is_some_and(|draft| draft.token == token));
            is_there && inquired.read == generated
        };
        self.inquired.take_if(|inquired| !fits(inquired));
        self.inquired.is_some()
    }

    /// Discards everything, because the text has changed.
    pub(crate) fn forget(&mut self) {
        *self = Watch::default();
    }

    /// Returns the number of the monitor that is running, if all of them together have taken longer than
    /// `limit`.
    pub(crate) fn slow(&self, limit: Duration) -> Option<usize> {
        let since = self.asked?;
        (since.elapsed() > limit).then(|| self.turn.load(Ordering::Relaxed))
    }
}
