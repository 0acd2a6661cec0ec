//! Walks whose filters cut the rows before the mask, and the way out where they leave no text.

use super::{Walk, WalkStage, begin, lock};
use crate::law::{LawTag, Warper, Weight};

impl<W: Weight> Walk<W> {
    /// Returns this walk with the knowledge of whether its rows are cut before the mask: then its law is that
    /// of the model as the filters leave it, and its tag says so.
    #[must_use]
    pub fn filtered(self, warper: &Warper) -> Self {
        Walk {
            is_filtered: warper.cuts_before_mask(),
            ..self
        }
    }

    /// Returns `true` if it is known that no text has any probability under the law.
    pub fn is_hopeless(&self) -> bool {
        match &self.stage {
            WalkStage::Attempt { trie, .. }
            | WalkStage::Adaptive { trie, .. }
            | WalkStage::Chain { trie, .. } => lock(trie).is_hopeless(),
            WalkStage::Aligned { sampler, .. } => sampler.is_hopeless(),
            WalkStage::Local => false,
        }
    }

    /// Begins anew under the local law with filters that cut after the mask: the way out where filters that
    /// cut before it leave no text. From now on the rows must be those of [`Warper::after_mask`].
    pub fn filter_locally(&mut self) {
        self.number = match &self.stage {
            WalkStage::Attempt { trie, .. }
            | WalkStage::Adaptive { trie, .. }
            | WalkStage::Chain { trie, .. } => begin(&mut lock(trie)).0,
            WalkStage::Aligned { .. } | WalkStage::Local => self.number.wrapping_add(1),
        };
        (self.stage, self.local, self.is_filtered) = (WalkStage::Local, LawTag::LocalFiltered, false);
        self.keep(0);
    }
}
