//! The description of a decoder: everything that config.json says about it, in the terms of the decoder.

use super::family::Family;
use super::frequencies::Rope;
use super::kinds::{Activation, Heads};

/// The file that is read.
pub(super) const FILE: &str = "config.json";

/// The configuration of a decoder.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    pub(crate) family: &'static Family,
    pub(crate) vocab: i64,
    pub(crate) hidden: i64,
    pub(crate) max_positions: usize,
    /// The factor of the embeddings.
    pub(crate) embedding_scale: Option<f64>,
    /// The constant added to the denominator in norms.
    pub(crate) eps: f64,
    pub(crate) attention: Attention,
    /// The number of positions that windowed layers attend back to.
    pub(crate) window: Option<i64>,
    /// The rotary encodings that layers use.
    pub(crate) ropes: Vec<Rope>,
    pub(crate) activation: Activation,
    pub(crate) mlp_bias: bool,
    pub(crate) layers: Vec<Block>,
    /// Logits `x` become `cap · tanh(x / cap)`.
    pub(crate) logit_cap: Option<f64>,
    /// `true` if the head uses the embedding matrix.
    pub(crate) tied: bool,
    pub(crate) eos: Vec<u32>,
}

/// The attention of all layers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Attention {
    pub(crate) heads: i64,
    pub(crate) kv_heads: i64,
    pub(crate) head_dim: i64,
    pub(crate) qkv_bias: bool,
    pub(crate) out_bias: bool,
    /// The factor of the products of queries and keys, if it is not one over the root of the head size.
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
    /// The index of the rope that rotates its queries and keys, if any.
    pub(crate) rope: Option<usize>,
    pub(crate) mlp: Mlp,
}

/// The second half of a layer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Mlp {
    /// One network of this width.
    Dense { width: i64 },
    /// `count` networks of this width, of which a token uses `chosen`.
    Experts {
        count: i64,
        chosen: i64,
        width: i64,
        /// `true` if the shares of the chosen ones are normalised to sum to one.
        normalised: bool,
    },
}
