//! Heads: small networks that were trained to draft for one model, from its hidden states.
//!
//! ```text
//!   text          t0   t1   t2   t3                    the model has read t0 … t2, and drawn t3
//!   states        h0   h1   h2
//!   read by head  t1h0 t2h1 t3h2 ─► row of t4, state g3 ─► t4g3 ─► row of t5, state g4 ─► …
//! ```
//!
//! A head reads each token together with the state of the token before it. After the text it reads drafts
//! with its own states.

use crate::error::EngineError;
use crate::model::Feed;
use crate::model::logits::Logits;

/// The tokens that one text feeds to a head in one pass.
#[derive(Clone, Copy, Debug)]
pub struct HeadFeed<'a> {
    /// The tokens, from the second of the text on, and their slots in the cache of the head. A tree hangs
    /// below the last token that is not one of its nodes.
    pub feed: Feed<'a>,
    /// The model's hidden states before the first tokens, one after another.
    pub kept: &'a [f32],
    /// The head's own states before the other tokens, one after another.
    pub own: &'a [f32],
}

/// The results of a pass of a head.
#[derive(Debug, Default)]
pub struct HeadRows {
    /// The rows over the tokens of the model, of all feeds in their order; [`Head::ahead`] rows for each that
    /// was wanted.
    pub logits: Logits,
    /// The head's own states after the same tokens, one after another; empty if it has none.
    pub own: Vec<f32>,
}

/// A network that drafts from the hidden states of a model.
pub trait Head: Send {
    /// Returns the name of its kind, for messages.
    fn kind(&self) -> &'static str;

    /// Returns how many numbers of hidden states it reads for each token:
    /// [`Model::states_width`](crate::Model::states_width) of its model.
    fn states_width(&self) -> usize;

    /// Returns the numbers of its own state after a token; 0 if it has none.
    fn own_width(&self) -> usize;

    /// Returns how many of the next tokens each row is for. A head that has a state of its own predicts one,
    /// and goes on from that; one that has none predicts all that it can at once, and reads no text.
    fn ahead(&self) -> usize {
        1
    }

    /// Returns the number of logits per row.
    fn vocab_size(&self) -> usize;

    /// Returns the maximum number of positions that a text may have.
    fn max_positions(&self) -> usize;

    /// Creates its cache of keys and values; a second call replaces it.
    ///
    /// # Errors
    /// Fails if there is no memory for it.
    fn create_cache(&mut self, blocks: usize, block_size: usize) -> Result<(), EngineError>;

    /// Runs a pass.
    ///
    /// # Errors
    /// Fails if a feed is malformed, or if the device fails.
    fn run(&mut self, feeds: &[HeadFeed<'_>]) -> Result<HeadRows, EngineError>;

    /// Copies whole blocks of its cache; see [`Model::copy_blocks`](crate::Model::copy_blocks).
    ///
    /// # Errors
    /// Fails if the device fails.
    fn copy_blocks(&mut self, pairs: &[(u32, u32)]) -> Result<(), EngineError>;
}
