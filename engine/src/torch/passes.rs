//! Passes that kernels run in place of libtorch: the interface that the other modules use.
//!
//! ```text
//!   load ─► planner ─ plan, for a decoder's tensors ─► passes ─┬─ run, run_after ─► rows of a pass ─► flight
//!                                                              ├─ copy: stretches of the caches        ▲
//!                                                              └─ drawer: tokens drawn from rows ──────┘
//! ```
//!
//! The module `kernels` implements all of this, in an engine that is built with the feature of that name.
//! Without it there is no planner, and libtorch runs all passes.

use crate::model::Feed;
use crate::model::flight::{Ask, Drawing};
use crate::torch::config::Config;
use crate::torch::layers::cache::Cache;
use crate::torch::layers::layer::Layer;
use crate::torch::layers::linear::Linear;
use crate::torch::loops::matrix::Matrix;
use lexiform_law::Drawn;
use std::sync::Arc;
use tch::{Kind, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// Plans the passes of a decoder.
pub(super) trait Planner: Send + Sync {
    /// Returns the name of what runs the passes, for messages.
    fn name(&self) -> String;

    /// Returns the passes of a decoder with these tensors, or the reason why they cannot be run.
    fn plan(&self, held: &Held<'_>) -> std::result::Result<Box<dyn Passes>, String>;
}

/// The passes of a decoder, with its weights and caches.
pub(super) trait Passes: Send {
    /// Runs the pass of these feeds, and returns its rows: all that were requested, followed by padding.
    /// Returns `None`, and runs nothing, if the kernels do not support the pass or there is no memory for it.
    fn run(&mut self, feeds: &[Feed<'_>]) -> Result<Option<PassRows>>;

    /// Runs a pass of feeds with one token each, the one that ask `asks[k]` of these draws, which no caller
    /// has waited for, will have drawn. Returns `None` also if they are not draws of the kernels.
    fn run_after(
        &mut self,
        drawing: &dyn Drawing,
        asks: &[usize],
        feeds: &[Feed<'_>],
    ) -> Result<Option<PassRows>>;

    /// Copies stretches of `size` slots in the caches of all layers, from the first of each pair to the
    /// second. The copies of a run are made in order, and no run reads or writes what another writes.
    fn copy(&mut self, caches: &[Cache], size: usize, runs: &[Vec<(usize, usize)>]) -> Result<()>;

    /// Returns the drawer for the rows of these passes.
    fn drawer(&self) -> SharedDrawer;
}

/// Draws tokens from rows `[rows, width]` in `f32`, whose columns that are not tokens hold minus infinity.
pub(super) trait Drawer: Send + Sync {
    /// Returns `true` if the kernels support this draw from a row of `width` logits.
    fn serves(&self, ask: &Ask<'_>, width: usize) -> bool;

    /// Draws once for each of these asks, all of which are supported. `None` if a row is needed on the host;
    /// see [`Flight::draw`](crate::Flight::draw).
    fn draw(&self, logits: &Tensor, asks: &[Ask<'_>]) -> Result<Vec<Option<Drawn>>>;

    /// Starts the same draws, of at least one row, without waiting.
    fn start(&self, logits: &Tensor, asks: &[Ask<'_>]) -> Result<Box<dyn Drawing>>;
}

/// A drawer that flights share.
pub(super) type SharedDrawer = Arc<dyn Drawer>;

/// The tensors of a decoder that passes read and write.
pub(super) struct Held<'a> {
    pub(super) config: &'a Config,
    /// The numbers that it computes with.
    pub(super) kind: Kind,
    /// The number of slots of a block of the cache.
    pub(super) block_size: usize,
    /// `[vocabulary, hidden]`.
    pub(super) embedding: &'a Matrix,
    /// `[vocabulary, hidden]`.
    pub(super) head: &'a Linear,
    /// The scale of the last norm.
    pub(super) norm: &'a Tensor,
    pub(super) layers: &'a [Layer],
    pub(super) caches: &'a [Cache],
    pub(super) tell: fn(&str),
}

/// The rows that a pass has computed.
pub(super) struct PassRows {
    /// The logits, `[rows, vocabulary]`, in `f32`.
    pub(super) logits: Tensor,
    /// The hidden states, `[rows, hidden]`, in bf16.
    pub(super) hidden: Tensor,
    /// Held by the readers of the rows.
    pub(super) lease: Lease,
}

/// Held by the readers of memory that passes use in turn.
#[derive(Clone, Default)]
pub(super) struct Lease(Arc<()>);

impl Lease {
    /// Returns `true` if there is another holder.
    pub(super) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}
