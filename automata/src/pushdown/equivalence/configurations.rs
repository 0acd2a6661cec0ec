//! Computes the representatives of configurations.

use super::classes::{Equivalence, MANY_PLACES};
use super::token_facts::TokenFacts;
use crate::pushdown::frame::{FrameId, RETURN};
use crate::pushdown::stack::ConfigId;
use crate::work::spend;

impl<F: TokenFacts> Equivalence<'_, F> {
    /// Returns the representative of a configuration: one that allows the same tokens, and is the same for
    /// many.
    pub(crate) fn representative(&self, config: ConfigId) -> ConfigId {
        let stacks = self.stacks;
        let mut open = vec![config];
        while let Some(&at) = open.last() {
            spend(1 + stacks.pairs(at).len());
            let callers = stacks.pairs(at).iter().map(|&(_, callers)| callers);
            let before = open.len();
            open.extend(callers.filter(|&callers| stacks.known_representative(callers).is_none()));
            if open.len() > before {
                continue;
            }
            open.pop();
            if stacks.known_representative(at).is_none() {
                stacks.set_representative(at, self.find(at));
            }
        }
        stacks.known_representative(config).unwrap_or(config)
    }

    /// Computes the representative of a configuration, given those of its callers.
    fn find(&self, config: ConfigId) -> ConfigId {
        let pairs = self.stacks.pairs(config);
        if pairs.len() > MANY_PLACES {
            return config;
        }
        let seen = self.without_covered(pairs).into_iter();
        let pairs: Option<Vec<_>> = seen.map(|pair| self.pair(pair)).collect();
        pairs.map_or(config, |pairs| self.stacks.intern(pairs))
    }

    /// Returns a frame and its callers as tokens see them.
    fn pair(&self, (frame, callers): (FrameId, ConfigId)) -> Option<(FrameId, ConfigId)> {
        let callers = self.stacks.known_representative(callers)?;
        let (called, callers) = match self.unfolded(frame) {
            None => (frame, callers),
            Some((called, RETURN)) => (called, callers),
            Some((called, then)) => {
                let then = self.of_frame(then);
                (called, self.stacks.intern_as_is(&[(then, callers)]))
            }
        };
        Some((self.of_frame(called), callers))
    }
}
