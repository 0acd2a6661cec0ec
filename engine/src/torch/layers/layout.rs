//! The shape of attention: how scores are computed, where torch computes, and the layout that a plan is made
//! for.

use crate::torch::config::Heads;
use tch::{Device, Kind};

/// How a query's products with keys become scores.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scoring {
    /// The factor of the products, if it is not one over the root of the head size.
    pub(crate) scale: Option<f64>,
    /// Scaled products `x` become `cap · tanh(x / cap)`.
    pub(crate) cap: Option<f64>,
}

/// The device and the number type in which torch computes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) device: Device,
    pub(crate) kind: Kind,
}

/// The properties that a plan is made for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) block_size: usize,
    pub(crate) heads: Heads,
    pub(crate) window: Option<i64>,
    pub(crate) scoring: Scoring,
    pub(crate) place: Place,
    /// The most tokens that a sequence may feed to attend by the loops of [`look`](super::look); absent if
    /// those cannot be used.
    pub(crate) looks: Option<usize>,
}
