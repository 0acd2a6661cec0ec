//! What a decoder gives to a head: parts that both share, and hidden states.

use super::Decoder;
use super::lent::{Lent, layout, looks};
use super::states::{States, StatesRead};
use crate::torch::layers::layout::Layout;

impl Decoder {
    pub(in crate::torch) fn lend(&self) -> Lent {
        Lent {
            config: self.config.clone(),
            place: self.place,
            crew: self.crew.clone(),
            embedding: self.embedding.share(),
            output: self.head.share(),
            threads: self.threads,
            batch_invariant: self.batch_invariant,
        }
    }

    pub(super) fn layout(&self) -> Layout {
        layout(&self.config, self.block_size, self.place, self.looks())
    }

    fn looks(&self) -> Option<usize> {
        self.crew.as_ref().map(|_| looks(self.batch_invariant))
    }

    /// Keeps the states that a head reads of each token. The layers must exist.
    pub(in crate::torch) fn keeping(self, read: StatesRead) -> Self {
        let states = Some(States::new(read, self.config.hidden));
        Decoder { states, ..self }
    }
}
