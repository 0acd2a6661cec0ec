//! What becomes of a sequence's drafts before the pass, and what it remembers of that.

use super::Sequence;
use crate::speculation::draft::Draft;

/// Draws without drafts after drafts that were turned down.
const MOST_RESTS: u8 = 3;

impl Sequence {
    /// Keeps some of its drafts, each with the one before it.
    pub(crate) fn keep_drafts(&mut self, is_kept: &[bool]) {
        if is_kept.iter().all(|is_kept| *is_kept) {
            return;
        }
        let mut places = Vec::with_capacity(is_kept.len());
        let mut kept = Vec::new();
        for (draft, is_kept) in std::mem::take(&mut self.drafts).into_iter().zip(is_kept) {
            places.push(kept.len());
            if *is_kept {
                let parent = draft.parent.map(|parent| places[parent]);
                kept.push(Draft { parent, ..draft });
            }
        }
        self.drafts = kept;
        if let Some(masks) = &mut self.masks {
            let mut rows = std::iter::once(true).chain(is_kept.iter().copied());
            masks.retain(|_| rows.next().unwrap_or(true));
        }
    }

    /// Hears whether some of the drafts that it offered were worth feeding. Where none were, drafting was for nothing, so that
    /// is done less often for a while.
    pub(crate) fn hear_of_drafts(&mut self, were_fed: bool) {
        self.turned_down = match were_fed {
            true => 0,
            false => (2 * self.turned_down + 1).min(MOST_RESTS),
        };
        self.rests = self.turned_down;
    }

    /// The token that lookup would have drafted next, where nothing was.
    pub(crate) fn guess(&self) -> Option<u32> {
        let lookup = self.lookup.as_ref().filter(|_| self.drafts.is_empty())?;
        lookup.guess(self.text())
    }
}
