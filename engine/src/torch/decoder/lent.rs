//! The parts of a decoder that a head uses: both share them.

use crate::torch::config::Config;
use crate::torch::crew::Crew;
use crate::torch::layers::attention;
use crate::torch::layers::layout::{Layout, Place, Scoring};
use crate::torch::layers::linear::Linear;
use crate::torch::loops::fused::{self, floats_mut};
use crate::torch::loops::matrix::Matrix;
use std::sync::Arc;
use tch::{TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// The parts of a model that its head uses.
pub(in crate::torch) struct Lent {
    pub(in crate::torch) config: Config,
    pub(in crate::torch) place: Place,
    pub(in crate::torch) crew: Option<Arc<Crew>>,
    pub(in crate::torch) embedding: Matrix,
    pub(in crate::torch) output: Linear,
    pub(super) threads: usize,
    pub(super) batch_invariant: bool,
}

impl Lent {
    /// Returns the layout of the attention of a head with this configuration.
    pub(in crate::torch) fn layout(&self, config: &Config, block_size: usize) -> Layout {
        let looks = self.crew.as_ref().map(|_| looks(self.batch_invariant));
        layout(config, block_size, self.place, looks)
    }

    /// Sets the threads of torch, which apply only to the calling thread.
    pub(in crate::torch) fn set_threads(&self) {
        if tch::get_num_threads() != self.threads as i32 {
            tch::set_num_threads(self.threads as i32);
        }
    }

    /// Returns logits as the model limits them.
    pub(in crate::torch) fn capped(&self, mut logits: Tensor) -> Result<Tensor> {
        limit(&mut logits, self.config.logit_cap, self.crew.is_some())?;
        Ok(logits)
    }
}

/// Returns the most tokens that a sequence may feed to attend by the loops.
pub(super) fn looks(batch_invariant: bool) -> usize {
    match batch_invariant {
        true => usize::MAX,
        false => attention::FEW_QUERIES,
    }
}

/// Returns the layout of the attention of a model or head with this configuration.
pub(super) fn layout(config: &Config, block_size: usize, place: Place, looks: Option<usize>) -> Layout {
    let attention = &config.attention;
    Layout {
        block_size,
        heads: attention.heads(),
        window: config.window,
        scoring: Scoring {
            scale: attention.scale,
            cap: attention.cap,
        },
        place,
        looks,
    }
}

/// Makes logits `x` into `cap · tanh(x / cap)`, by the loops or by torch.
pub(super) fn limit(logits: &mut Tensor, cap: Option<f64>, by_loops: bool) -> Result<()> {
    match cap {
        None => {}
        Some(cap) if by_loops => fused::limit(floats_mut(logits), cap as f32),
        Some(cap) => drop(logits.f_div_scalar_(cap)?.f_tanh_()?.f_mul_scalar_(cap)?),
    }
    Ok(())
}
