//! How a sequence finds out what is allowed: by masks of its grammar, or by asking.

use super::Sequence;

use crate::request::law;
use lexiform_law::TokenProposal;

impl Sequence {
    /// Whether tokens are drawn from masks of its grammar.
    pub(crate) fn is_masked(&self) -> bool {
        self.request.constraints.grammar.is_some() && !self.is_asked()
    }

    /// Whether its grammar is asked about tokens, in place of masks.
    pub(crate) fn is_asked(&self) -> bool {
        law::proposal(&self.request) == Some(TokenProposal::Asked)
    }

    /// Whether it has monitors, which are asked before it draws.
    pub(crate) fn is_watched(&self) -> bool {
        !self.request.constraints.monitors.is_empty()
    }

    /// Whether it cannot draw before its monitors have answered.
    pub(crate) fn waits_for_monitors(&mut self) -> bool {
        let generated = self.generated().len();
        self.is_watched() && !self.draw.watch.has_drawn(generated, &self.draft.drafts)
    }
}
