//! Passes that kernels run in place of libtorch, as all other rooms know them.
//!
//! ```text
//!   load ─► planner ─ plan, of what a decoder holds ─► passes ─┬─ run, run_after ─► rows of a pass ─► flight
//!                                                              ├─ copy: stretches of the caches        ▲
//!                                                              └─ drawer: tokens drawn from rows ──────┘
//! ```
//!
//! The room `kernels` implements all of this, in an engine that is built with the feature of that name.
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

/// Who plans the passes of a decoder.
pub(super) trait Planner: Send {
    /// What runs the passes, for people.
    fn name(&self) -> String;

    /// The passes of what a decoder holds, or why they cannot be run.
    fn plan(&self, held: &Held<'_>) -> std::result::Result<Box<dyn Passes>, String>;
}

/// The passes of a decoder, with its weights and caches.
pub(super) trait Passes: Send {
    /// Runs the pass of these feeds, and says where its rows are: all that it was asked for, and padding
    /// behind them. `None` if it is not one for the kernels or there is no memory for it, and then nothing
    /// was run.
    fn run(&mut self, feeds: &[Feed<'_>]) -> Result<Option<PassRows>>;

    /// The same for feeds of one token each, that of ask `asks[k]` of these draws, which nobody has waited
    /// for. `None` also if they are not draws of the kernels.
    fn run_after(
        &mut self,
        drawing: &dyn Drawing,
        asks: &[usize],
        feeds: &[Feed<'_>],
    ) -> Result<Option<PassRows>>;

    /// Copies stretches of `size` slots in the caches of all layers, from the first of each pair to the
    /// second. Each run is made in its order, and none reads or writes what another writes.
    fn copy(&mut self, caches: &[Cache], size: usize, runs: &[Vec<(usize, usize)>]) -> Result<()>;

    /// Who draws from the rows of these passes.
    fn drawer(&self) -> SharedDrawer;
}

/// Draws tokens from rows `[rows, width]` in `f32`, whose columns that are no tokens hold minus infinity.
pub(super) trait Drawer: Send + Sync {
    /// Whether this draw, from a row of so many logits, is one for the kernels.
    fn serves(&self, ask: &Ask<'_>, width: usize) -> bool;

    /// One draw for each of these asks, all of which are served. `None` where a row has to be looked at; see
    /// [`Flight::draw`](crate::Flight::draw).
    fn draw(&self, logits: &Tensor, asks: &[Ask<'_>]) -> Result<Vec<Option<Drawn>>>;

    /// Starts the same draws, of at least one row, and waits for nothing.
    fn start(&self, logits: &Tensor, asks: &[Ask<'_>]) -> Result<Box<dyn Drawing>>;
}

/// A drawer that flights share.
pub(super) type SharedDrawer = Arc<dyn Drawer>;

/// What a decoder holds, and passes read and write.
pub(super) struct Held<'a> {
    pub(super) config: &'a Config,
    /// The numbers that it computes with.
    pub(super) kind: Kind,
    /// Slots of a block of the cache.
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

/// The rows that a pass leaves.
pub(super) struct PassRows {
    /// `[rows, vocabulary]`, `f32`.
    pub(super) logits: Tensor,
    /// `[rows, hidden]`, bf16.
    pub(super) hidden: Tensor,
    /// Held by who still reads them.
    pub(super) lease: Lease,
}

/// Held by those who read memory that passes take turns in using.
#[derive(Clone, Default)]
pub(super) struct Lease(Arc<()>);

impl Lease {
    /// Whether somebody else holds it.
    pub(super) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}
