//! What a sequence knows of its monitors, between the passes.

use crate::grammar::reply::Inquired;
use crate::request::watched::Turn;
use crate::speculation::draft::Draft;
use lexiform_law::monitor::ProductState;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The monitors of a sequence.
#[derive(Default)]
pub(crate) struct Watch {
    /// Where they are, after so many tokens of the answer. To begin anew is always right: a fork does.
    joint: Option<(ProductState, usize)>,
    /// What was drawn by asking them, and is not yet written.
    inquired: Option<Inquired>,
    /// Since when they are being asked.
    asked: Option<Instant>,
    /// Which of them is. Their states hold this, so it stays as long as they do.
    turn: Turn,
}

impl Watch {
    /// The monitors where they are, for who leads them on.
    pub(crate) fn take_joint(&mut self) -> Option<(ProductState, usize)> {
        self.joint.take()
    }

    /// They are asked from now on; where they tell whose turn it is.
    pub(crate) fn begin(&mut self) -> Turn {
        self.asked = Some(Instant::now());
        self.turn.clone()
    }

    /// What was drawn by asking them.
    pub(crate) fn hear(&mut self, inquired: Inquired) {
        (self.inquired, self.asked) = (Some(inquired), None);
    }

    /// Takes what was drawn.
    pub(crate) fn take(&mut self) -> Option<Inquired> {
        let mut inquired = self.inquired.take()?;
        let read = inquired.read;
        self.joint = inquired.joint.take().map(|joint| (joint, read));
        Some(inquired)
    }

    /// Whether what was drawn is there and can be written after an answer of so many tokens. What was drawn
    /// for drafts that are others by now is of no use.
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

    /// The text is another now.
    pub(crate) fn forget(&mut self) {
        *self = Watch::default();
    }

    /// The number of the monitor that is being asked, if all of them together have taken longer than this.
    pub(crate) fn slow(&self, limit: Duration) -> Option<usize> {
        let since = self.asked?;
        (since.elapsed() > limit).then(|| self.turn.load(Ordering::Relaxed))
    }
}
