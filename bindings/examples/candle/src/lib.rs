//! One sequence of a decode loop of candle, kept within a grammar.
//!
//! ```text
//!   model.forward ─► logits ─► Constrained::choose ─► mask ─► LogitsProcessor::sample ─► step ─► token
//! ```

use candle_core::{Error, Result, Tensor};
use candle_transformers::generation::LogitsProcessor;
use lexiform::{Grammar, State};

/// Where one sequence stands in its grammar.
#[derive(Clone)]
pub struct Constrained {
    grammar: Grammar,
    state: State,
}

impl Constrained {
    /// A sequence at its beginning.
    pub fn new(grammar: Grammar) -> Constrained {
        let state = grammar.start();
        Constrained { grammar, state }
    }

    /// Whether the token that ends the sequence was chosen.
    pub fn is_finished(&self) -> bool {
        self.grammar.is_finished(self.state)
    }

    /// The row of logits with minus infinity for every token that may not come next; tokens beyond the
    /// vocabulary of the grammar are among these.
    ///
    /// # Errors
    /// Where the row has not one dimension, and where the mask would cost more than the limits of its grammar
    /// allow.
    pub fn masked(&self, logits: &Tensor) -> Result<Tensor> {
        let mask = self.grammar.try_mask(self.state).map_err(Error::wrap)?;
        let row: Vec<f32> = (0..logits.dims1()?)
            .map(|token| {
                if mask.contains(token as u32) {
                    0.0
                } else {
                    f32::NEG_INFINITY
                }
            })
            .collect();
        let logits = logits.to_dtype(candle_core::DType::F32)?;
        &logits + Tensor::from_vec(row, logits.shape(), logits.device())?
    }

    /// Lets the sampler choose among the tokens that may come next, and takes the one that it chose.
    ///
    /// # Errors
    /// Those of [`masked`](Self::masked) and of the sampler, and where no token may come: after the end of
    /// the sequence.
    pub fn choose(&mut self, sampler: &mut LogitsProcessor, logits: &Tensor) -> Result<u32> {
        let token = sampler.sample(&self.masked(logits)?)?;
        let next = self.grammar.try_step(self.state, token).map_err(Error::wrap)?;
        self.state = next.ok_or_else(|| Error::Msg(format!("token {token} may not come next")))?;
        Ok(token)
    }
}
