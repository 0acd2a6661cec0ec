//! The description of a decoder: everything that config.json says of it, in the terms of the decoder.

use super::family::Family;
use super::frequencies::Rope;
use super::kinds::{Activation, Heads};

/// The file that is read.
pub(super) const FILE: &str = "config.json";

/// Everything that the decoder needs to know.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    pub(crate) family: &'static Family,
    pub(crate) vocab: i64,
    pub(crate) hidden: i64,
    pub(crate) max_positions: usize,
    /// What embeddings are multiplied by.
    pub(crate) embedding_scale: Option<f64>,
    /// What is added in norms to what is divided by.
    pub(crate) eps: f64,
    pub(crate) attention: Attention,
    /// How far back attention looks in layers that do not look back all the way.
    pub(crate) window: Option<i64>,
    /// The ways to turn that layers have.
    pub(crate) ropes: Vec<Rope>,
    pub(crate) activation: Activation,
    pub(crate) mlp_bias: bool,
    pub(crate) layers: Vec<Block>,
    /// Logits `x` become `cap · tanh(x / cap)`.
    pub(crate) logit_cap: Option<f64>,
    /// Whether the head is the embedding.
    pub(crate) tied: bool,
    pub(crate) eos: Vec<u32>,
}

/// What attention is like in all layers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Attention {
    pub(crate) heads: i64,
    pub(crate) kv_heads: i64,
    pub(crate) head_dim: i64,
    pub(crate) qkv_bias: bool,
    pub(crate) out_bias: bool,
    /// What products of queries and keys are multiplied by, if that is not one over the root of the head
    /// size.
    pub(crate) scale: Option<f64>,
    /// Scaled products `x` become `cap · tanh(x / cap)`.
    pub(crate) cap: Option<f64>,
}

impl Attention {
    pub(in crate::torch) fn heads(&self) -> Heads {
        Heads {
            queries: self.heads,
            keys: self.kv_heads,
            size: self.head_dim,
        }
    }
}

/// One layer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Block {
    pub(crate) windowed: bool,
    /// Which of the ropes turns its queries and keys, if any.
    pub(crate) rope: Option<usize>,
    pub(crate) mlp: Mlp,
}

/// The second half of a layer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Mlp {
    /// One network of this width.
    Dense { width: i64 },
    /// So many networks of this width, of which a token uses `chosen`.
    Experts {
        count: i64,
        chosen: i64,
        width: i64,
        /// Whether the shares of the chosen ones are made to sum to one.
        normalised: bool,
    },
}
