//! A logits processor for mistral.rs that constrains the sequences of one request to a grammar.
//!
//! ```text
//!   apply(logits, prompt + answer) ─► state after the answer ─► mask ─► logits, minus infinity where a token may not come
//! ```

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use candle_core::{DType, Error, Result, Tensor};
use lexiform::{Grammar, State};
use mistralrs_core::CustomLogitsProcessor;

/// Masks the logits of the sequences of one request.
///
/// The first call is for the first token of an answer, so its context is the prompt. Sequences of the same
/// request share the processor, whether they are drawn side by side or one after the other.
pub struct GrammarProcessor {
    grammar: Grammar,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// The number of tokens of the prompt, after the first call.
    prompt: Option<usize>,
    /// The states after the answers that were seen.
    states: HashMap<Vec<u32>, State>,
}

impl GrammarProcessor {
    /// Creates a processor for one request.
    pub fn new(grammar: Grammar) -> GrammarProcessor {
        GrammarProcessor {
            grammar,
            seen: Mutex::default(),
        }
    }

    /// Returns the state after the answer, computed from the longest known prefix. In a loop that writes
    /// token by token, the prefix is all but the last token.
    fn state(&self, context: &[u32]) -> Result<State> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let prompt = *seen.prompt.get_or_insert(context.len());
        let Some(answer) = context.get(prompt..) else {
            return Err(Error::Msg(format!(
                "{} tokens are fewer than the prompt has: a processor serves one request",
                context.len()
            )));
        };
        let known = (0..=answer.len())
            .rev()
            .find_map(|length| Some((length, *seen.states.get(&answer[..length])?)));
        let (length, mut state) = known.unwrap_or((0, self.grammar.start()));
        for (at, &token) in answer.iter().enumerate().skip(length) {
            let next = self.grammar.try_step(state, token).map_err(Error::wrap)?;
            state =
                next.ok_or_else(|| Error::Msg(format!("token {token} may not come at {at} of the answer")))?;
        }
        seen.states.insert(answer.to_vec(), state);
        if let Some((_, before)) = answer.split_last() {
            // Sequences that diverge here reach this prefix again only if they are drawn one after the other;
            // then they step once more.
            seen.states.remove(before);
        }
        Ok(state)
    }
}

impl CustomLogitsProcessor for GrammarProcessor {
    fn apply(&self, logits: &Tensor, context: &[u32]) -> Result<Tensor> {
        let mask = self.grammar.try_mask(self.state(context)?).map_err(Error::wrap)?;
        let row: Vec<f32> = (0..logits.dims1()?)
            .map(|token| {
                if mask.contains(token as u32) {
                    0.0
                } else {
                    f32::NEG_INFINITY
                }
            })
            .collect();
        logits.to_dtype(DType::F32)? + Tensor::from_vec(row, logits.shape(), logits.device())?
    }
}
