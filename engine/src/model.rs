//! What the loop asks of a model: logits for the next tokens of many sequences at once, over a paged cache.
//!
//! ```text
//!   sequence A   cached ████████ feed ░░░        rows wanted: the last 1   (prefill, then sample)
//!   sequence B   cached ███████████ feed ░       rows wanted: 1            (plain decoding)
//!   sequence C   cached █████ feed ░▒▒▒          rows wanted: 4            (one token and three drafts to verify)
//! ```
//!
//! The cache is an array of blocks of `block_size` slots; slot `i` of a sequence lies in block
//! `table[i / block_size]`. The loop owns the tables, the model owns the memory. A model must write the keys
//! and values of all fed tokens into their slots before it attends, and lets a token look at itself and what
//! comes before it in its own text, no further.
//!
//! Drafts may be a tree, of which one path at most becomes text: see [`Feed::parents`]. Its keys and values
//! are then moved to where those of a text lie, by [`Model::move_slots`], and nothing of the others is left.

pub(crate) mod flight;
pub(crate) mod logits;
pub(crate) mod scripted;
pub(crate) mod tree;

use crate::error::EngineError;
use crate::model::flight::{Drawing, Flight};
use crate::model::logits::Logits;

/// The tokens that one sequence feeds in one pass.
#[derive(Clone, Copy, Debug)]
pub struct Feed<'a> {
    /// The tokens, in slots `start..start + tokens.len()`.
    pub tokens: &'a [u32],
    /// How many slots are cached before them, all of them text: the slot of a token of the text is its
    /// position.
    pub start: usize,
    /// The blocks of all slots up to the last fed one.
    pub table: &'a [u32],
    /// How many of the last fed tokens the caller wants logits for. With nodes, one more than there are nodes
    /// at most: of the last token of the text and of every node.
    pub rows: usize,
    /// The parents of the last `parents.len()` tokens, which are nodes of a tree below the last token of the
    /// text; `None` for a chain, in which each token continues the one before it. Of the text, at least one
    /// token is fed.
    ///
    /// `0` is the last token of the text, `k` the `k`-th node, which must come before its child. A node
    /// stands one position after its parent, wherever its slot is, and sees the text, its ancestors and
    /// itself: its row is the one that its path would have as a chain.
    pub parents: Option<&'a [u16]>,
    /// What the caller multiplies the logits of these rows with before it exponentiates them, 1 over the
    /// temperature: a model that measures its rows ([`Logits::measured`]) does so at this scale. The logits
    /// are not scaled.
    pub scale: f64,
}

/// The scale of every row of a pass.
pub(crate) fn scales(feeds: &[Feed<'_>]) -> Vec<f64> {
    let rows = |feed: &Feed<'_>| std::iter::repeat_n(feed.scale, feed.rows);
    feeds.iter().flat_map(rows).collect()
}

/// Which slots of one sequence are to follow its text, once a path of a tree was accepted.
#[derive(Clone, Copy, Debug)]
pub struct SlotMoves<'a> {
    /// The blocks of all slots up to the last named one.
    pub table: &'a [u32],
    /// The first slot behind the text. Slot `start + i` gets the keys and values of slot `slots[i]`.
    pub start: usize,
    /// Where the accepted nodes lie, in ascending order, none before `start`. What lies behind the moved ones
    /// afterwards is nobody's.
    pub slots: &'a [usize],
}

/// A model that continues token sequences.
pub trait Model: Send {
    /// Logits per row; may exceed the vocabulary.
    fn vocab_size(&self) -> usize;

    /// The most positions that a sequence may have.
    fn max_positions(&self) -> usize;

    /// Why the rows of a text may depend, in their last digits, on how it was cut into passes or on what else
    /// was in them; `None` if they never do. Where they do not, the same seed gives the same text in any
    /// company ([`Request::batch_invariant`](crate::Request::batch_invariant)).
    fn variance(&self) -> Option<&'static str> {
        Some("the model does not say that its rows do not depend on what else is in a pass")
    }

    /// Bytes of cache that one position takes, so that a cache can be sized by memory. 0 if it takes none.
    fn cache_bytes_per_token(&self) -> usize;

    /// Makes the cache; a second call replaces it. Called once before the first pass.
    fn create_cache(&mut self, blocks: usize, block_size: usize) -> Result<(), EngineError>;

    /// Tells which columns are no tokens, once before the first pass: a model that measures its rows or draws
    /// from them must leave them out of peaks, sums and draws, and of the rows as well. Most models do
    /// neither.
    fn leave_out(&mut self, _columns: &[usize]) {}

    /// Starts a pass, and returns when it can be asked for what it computes: before it is over where the
    /// device works by itself. Passes take effect in the order in which they are submitted. A feed that makes
    /// no sense is an [`EngineError::Malformed`], and then nothing was computed.
    fn submit(&mut self, feeds: &[Feed<'_>]) -> Result<Box<dyn Flight>, EngineError>;

    /// Starts a pass behind draws that were started ([`Flight::start_draw`](crate::Flight::start_draw)) and
    /// that nobody has waited for. Feed `k` has one token, which is the one that the ask of number `asks[k]`
    /// will have drawn: what stands in the feed in its place says nothing. Where that row turns out to have
    /// to be looked at, the feed has any token of the vocabulary, and its row is of no use.
    ///
    /// `None`, and nothing started, if this model cannot: then the loop waits for the draws and submits the
    /// pass itself.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    fn submit_after(
        &mut self,
        _drawing: &dyn Drawing,
        _asks: &[usize],
        _feeds: &[Feed<'_>],
    ) -> Result<Option<Box<dyn Flight>>, EngineError> {
        Ok(None)
    }

    /// A pass that is waited for, and all its rows.
    fn forward(&mut self, feeds: &[Feed<'_>]) -> Result<Logits, EngineError> {
        let mut flight = self.submit(feeds)?;
        let rows: Vec<usize> = (0..flight.len()).collect();
        flight.rows(&rows)
    }

    /// Moves the keys and values of accepted nodes behind their texts, each within its own table. No two
    /// sequences may share a block that is written to.
    fn move_slots(&mut self, moves: &[SlotMoves<'_>]) -> Result<(), EngineError>;

    /// Copies whole blocks of the cache, from the first of each pair to the second: what a sequence does that
    /// shares a block with another and is about to write to it. No block that is written to is read by, or
    /// written to twice.
    fn copy_blocks(&mut self, pairs: &[(u32, u32)]) -> Result<(), EngineError>;
}
