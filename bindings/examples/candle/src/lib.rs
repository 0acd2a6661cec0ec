//! Constrains one sequence of a candle decode loop to a grammar.
//!
//! ```text
//!   model.forward ─► logits ─► Constrained::choose ─► mask ─► LogitsProcessor::sample ─► step ─► token
//! ```

use candle_core::{Error, Result, Tensor};
use candle_transformers::generation::LogitsProcessor;
use lexiform::{Grammar, State};

/// One sequence and its state in a grammar.
#[derive(Clone)]
pub struct Constrained {
    grammar: Grammar,
    state: State,
}

impl Constrained {
    /// Creates a sequence at its beginning.
    pub fn new(grammar: Grammar) -> Constrained {
        let state = grammar.start();
        Constrained { grammar, state }
    }

    /// Returns `true` if the token that ends the sequence was chosen.
    pub fn is_finished(&self) -> bool {
        self.grammar.is_finished(self.state)
    }

    /// Returns the row of logits with minus infinity for every token that may not come next, including all
    /// tokens beyond the vocabulary of the grammar.
    ///
    /// # Errors
    /// The row does not have one dimension, or the mask would cost more than the limits of its grammar allow.
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

    /// Lets the sampler choose among the tokens that may come next, and accepts its choice.
    ///
    /// # Errors
    /// The errors of [`masked`](Self::masked) and of the sampler; also if no token may come, after the end of
    /// the sequence.
    pub fn choose(&mut self, sampler: &mut LogitsProcessor, logits: &Tensor) -> Result<u32> {
        let token = sampler.sample(&self.masked(logits)?)?;
        let next = self.grammar.try_step(self.state, token).map_err(Error::wrap)?;
        self.state = next.ok_or_else(|| Error::Msg(format!("token {token} may not come next")))?;
        Ok(token)
    }
}
