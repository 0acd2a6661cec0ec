//! How a sequence determines the allowed tokens: by masks of its grammar, or by queries.

use super::Sequence;

use crate::request::law;
use lexiform_law::TokenProposal;

impl Sequence {
    /// Returns `true` if tokens are drawn from masks of its grammar.
    pub(crate) fn is_masked(&self) -> bool {
        self.request.constraints.grammar.is_some() && !self.is_asked()
    }

    /// Returns `true` if its grammar is queried about tokens, in place of masks.
    pub(crate) fn is_asked(&self) -> bool {
        law::proposal(&self.request) == Some(TokenProposal::Asked)
    }

    /// Returns `true` if it has monitors or a score, which are queried before its draws are written.
    pub(crate) fn is_watched(&self) -> bool {
        let constraints = &self.request.constraints;
        !constraints.monitors.is_empty() || constraints.tilt.is_some()
    }

    /// Returns `true` if it cannot draw before its monitors have answered.
    pub(crate) fn waits_for_monitors(&mut self) -> bool {
        let generated = self.generated().len();
        self.is_watched() && !self.draw.watch.has_drawn(generated, &self.draft.drafts)
    }
}
