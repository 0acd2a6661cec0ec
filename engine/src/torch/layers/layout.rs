//! The shape of attention: how scores are made, where torch computes, and what a plan is made for.

use crate::torch::config::Heads;
use tch::{Device, Kind};

/// How a query's products with keys become scores.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scoring {
    /// What they are multiplied by, if that is not one over the root of the head size.
    pub(crate) scale: Option<f64>,
    /// Scaled products `x` become `cap · tanh(x / cap)`.
    pub(crate) cap: Option<f64>,
}

/// Where and in what torch computes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) device: Device,
    pub(crate) kind: Kind,
}

/// What a plan is made for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) block_size: usize,
    pub(crate) heads: Heads,
    pub(crate) window: Option<i64>,
    pub(crate) scoring: Scoring,
    pub(crate) place: Place,
    /// Sequences that feed at most so many tokens attend by the loops of [`look`](super::look); absent where
    /// those cannot be used.
    pub(crate) looks: Option<usize>,
}
