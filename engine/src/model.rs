//! The interface between the loop and a model: logits for the next tokens of many sequences at once, over a
//! paged cache.
//!
//! ```text
//!   sequence A   cached ████████ feed ░░░        rows wanted: the last  (prefill, then sample)
//!   sequence B   cached ███████████ feed ░       rows wanted: 1         (plain decoding)
//!   sequence C   cached █████ feed ░▒▒▒          rows wanted: 4         (a token and three drafts to verify)
//! ```
//!
//! The cache is an array of blocks of `block_size` slots; slot `i` of a sequence is in block `table[i /
//! block_size]`. The loop owns the tables, the model owns the memory. A model must write the keys and values
//! of all fed tokens into their slots before it attends, and lets a token attend only to itself and to the
//! tokens before it in its own text.
//!
//! Drafts may be a tree, of which at most one path becomes text: see [`Feed::parents`]. [`Model::move_slots`]
//! then moves the keys and values of that path to the slots of the text, and those of the other nodes are
//! discarded.

pub(crate) mod flight;
pub(crate) mod head;
pub(crate) mod logits;
pub(crate) mod scripted;
pub(crate) mod tree;

use crate::error::EngineError;
use crate::model::flight::{Drawing, Flight};
use crate::model::logits::Logits;
use std::ops::Range;

/// The tokens that one sequence feeds in one pass.
#[derive(Clone, Copy, Debug)]
pub struct Feed<'a> {
    /// The tokens, for the slots `start..start + tokens.len()`.
    pub tokens: &'a [u32],
    /// The number of slots that are cached before them, all of them text: the slot of a token of the text is
    /// its position.
    pub start: usize,
    /// The blocks of all slots up to the last fed one.
    pub table: &'a [u32],
    /// The number of last fed tokens that the caller needs logits for. In a tree, at most the last token of
    /// the text and every node.
    pub rows: usize,
    /// The parents of the last `parents.len()` tokens, which are nodes of a tree below the last token of the
    /// text; `None` for a chain, in which each token continues the previous one. At least one token of the
    /// text is fed.
    ///
    /// `0` is the last token of the text, `k` the `k`-th node, which must come before its child. The position
    /// of a node is one after its parent's, whatever its slot is. A node attends to the text, its ancestors
    /// and itself, so its row is the one that its path would have as a chain.
    pub parents: Option<&'a [u16]>,
    /// The factor by which the caller multiplies the logits of these rows before it exponentiates them, 1
    /// over the temperature: a model that measures its rows ([`Logits::measured`]) does so at this scale. The
    /// logits are not scaled.
    pub scale: f64,
}

/// Returns the scale of every row of a pass.
pub(crate) fn scales(feeds: &[Feed<'_>]) -> Vec<f64> {
    let rows = |feed: &Feed<'_>| std::iter::repeat_n(feed.scale, feed.rows);
    feeds.iter().flat_map(rows).collect()
}

/// The slots of one sequence that are to follow its text, after a path of a tree was accepted.
#[derive(Clone, Copy, Debug)]
pub struct SlotMoves<'a> {
    /// The blocks of all slots up to the last named one.
    pub table: &'a [u32],
    /// The first slot after the text. Slot `start + i` gets the keys and values of slot `slots[i]`.
    pub start: usize,
    /// The slots of the accepted nodes, in ascending order, none before `start`. The slots after the moved
    /// ones are unused afterwards.
    pub slots: &'a [usize],
}

/// A model that continues token sequences.
pub trait Model: Send {
    /// Returns the number of logits per row; it may exceed the vocabulary.
    fn vocab_size(&self) -> usize;

    /// Returns the maximum number of positions that a sequence may have.
    fn max_positions(&self) -> usize;

    /// Returns the reason why the rows of a text may depend, in their last digits, on how it was cut into
    /// passes or on what else was in them; `None` if they never do. Where they do not, the same seed gives
    /// the same text whatever other requests run
    /// ([`Request::batch_invariant`](crate::Request::batch_invariant)).
    fn variance(&self) -> Option<&'static str> {
        Some("the model does not say that its rows do not depend on what else is in a pass")
    }

    /// Returns the bytes of cache that one position takes, so that a cache can be sized by memory; 0 if it
    /// takes none.
    fn cache_bytes_per_token(&self) -> usize;

    /// Creates the cache; a second call replaces it. Called once before the first pass.
    fn create_cache(&mut self, blocks: usize, block_size: usize) -> Result<(), EngineError>;

    /// Returns how many numbers of hidden states are kept for each cached token, for a
    /// [head](crate::Head) that reads them; 0 if none are kept.
    fn states_width(&self) -> usize {
        0
    }

    /// Returns the hidden states that are kept for the tokens in these slots, one after another. They are
    /// kept where keys and values are: tokens that share these share the states, and
    /// [`move_slots`](Self::move_slots) and [`copy_blocks`](Self::copy_blocks) move both.
    ///
    /// # Errors
    /// Fails if the device fails.
    fn states(&self, _table: &[u32], _slots: Range<usize>) -> Result<Vec<f32>, EngineError> {
        Ok(Vec::new())
    }

    /// Names the columns that are not tokens, once before the first pass. A model that measures its rows or
    /// draws from them must exclude them from peaks, sums, draws and rows. Most models do neither.
    fn leave_out(&mut self, _columns: &[usize]) {}

    /// Starts a pass, and returns as soon as its results can be requested: before the pass is over, if the
    /// device works asynchronously. Passes take effect in the order in which they are submitted. A malformed
    /// feed is an [`EngineError::Malformed`], and then nothing was computed.
    fn submit(&mut self, feeds: &[Feed<'_>]) -> Result<Box<dyn Flight>, EngineError>;

    /// Starts a pass after draws that were started ([`Flight::start_draw`](crate::Flight::start_draw)) and
    /// that no caller has waited for. Feed `k` has one token, a placeholder for the one that ask number
    /// `asks[k]` will have drawn. If that draw turns out to need its row on the host, the feed has an
    /// arbitrary token of the vocabulary, and its row is of no use.
    ///
    /// Returns `None`, and starts nothing, if this model cannot do this: then the loop waits for the draws
    /// and submits the pass itself.
    ///
    /// # Errors
    /// Fails in the same cases as [`submit`](Self::submit).
    fn submit_after(
        &mut self,
        _drawing: &dyn Drawing,
        _asks: &[usize],
        _feeds: &[Feed<'_>],
    ) -> Result<Option<Box<dyn Flight>>, EngineError> {
        Ok(None)
    }

    /// Runs a pass, waits for it, and returns all its rows.
    fn forward(&mut self, feeds: &[Feed<'_>]) -> Result<Logits, EngineError> {
        let mut flight = self.submit(feeds)?;
        let rows: Vec<usize> = (0..flight.len()).collect();
        flight.rows(&rows)
    }

    /// Moves the keys and values of accepted nodes to the slots after their texts, each within its own table.
    /// No two sequences may share a block that is written to.
    fn move_slots(&mut self, moves: &[SlotMoves<'_>]) -> Result<(), EngineError>;

    /// Copies whole blocks of the cache, from the first of each pair to the second. A sequence that shares a
    /// block with another copies it before writing to it. No block that is written to is read by another
    /// copy, or written to twice.
    fn copy_blocks(&mut self, pairs: &[(u32, u32)]) -> Result<(), EngineError>;
}
