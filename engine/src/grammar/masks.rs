//! What may come in a state of a grammar, and what it means that this costs too much.
//!
//! A mask depends on the state alone, so it is found by any thread, while the model computes
//! ([`errand`](crate::engine::errand) says when). The grammar counts the work of each; one that would take
//! more than its limits allow is refused, and the request that needs it fails. Nothing is ever drawn without
//! its mask.

use crate::error::EngineError;
use crate::{Grammar, Mask, State};
use lexiform::MaskRequest;
use std::sync::Arc;

/// What may come at a position.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    pub(crate) mask: Arc<Mask>,
    /// What the grammar allows, where the tokens left took something of it away.
    pub(crate) whole: Option<Arc<Mask>>,
}

impl Bounds {
    /// Nothing may come, in a vocabulary of so many tokens.
    pub(crate) fn nothing(tokens: usize) -> Self {
        Bounds {
            mask: Arc::new(Mask::empty(tokens)),
            whole: None,
        }
    }

    /// Whether the tokens left took something away that the grammar allows.
    pub(crate) fn is_steered(&self) -> bool {
        self.whole.is_some()
    }

    /// Whether the tokens left took away what this row makes the likeliest of the tokens that the grammar
    /// allows.
    pub(crate) fn is_diverted(&self, row: &[f32]) -> bool {
        let logit = |token: u32| row.get(token as usize).copied().unwrap_or(f32::NEG_INFINITY);
        let best = |mask: &Mask| mask.iter().map(logit).fold(f32::NEG_INFINITY, f32::max);
        let whole = self.whole.as_deref();
        whole.is_some_and(|whole| best(whole) > best(&self.mask))
    }
}

/// Called before every mask, on the thread that finds it: may take its time, or refuse. For tests of slow
/// grammars.
pub type MaskHook = Arc<dyn Fn(&Grammar) -> Result<(), EngineError> + Send + Sync>;

/// How masks are found: by the grammar, after the hook, if there is one.
#[derive(Clone, Default)]
pub(crate) struct Finder {
    pub(crate) hook: Option<MaskHook>,
}

impl Finder {
    /// What may come in a state, with so many tokens left or, if the answer may be cut, with any number.
    ///
    /// # Errors
    /// It would cost more than the grammar's limits allow.
    pub(crate) fn bounds(
        &self,
        grammar: &Grammar,
        state: State,
        budget: Option<usize>,
    ) -> Result<Bounds, EngineError> {
        if let Some(hook) = &self.hook {
            hook(grammar)?;
        }
        let (mask, is_steered) = grammar.steered_mask(MaskRequest::from(state).within(budget))?;
        // It was found a moment ago, so this looks it up.
        let whole = is_steered.then(|| grammar.try_mask(state)).transpose()?;
        Ok(Bounds { mask, whole })
    }

    /// The state after one more token, which the mask allowed.
    ///
    /// # Errors
    /// It would cost more than the grammar's limits allow, or the grammar is at odds with its own mask.
    pub(crate) fn step(grammar: &Grammar, state: State, token: u32) -> Result<State, EngineError> {
        let disagreement = || {
            let message = format!("token {token} is in the mask, but the grammar does not step over it");
            EngineError::Model(message)
        };
        grammar.try_step(state, token)?.ok_or_else(disagreement)
    }
}
