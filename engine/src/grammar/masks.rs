//! The tokens that may come in a state of a grammar, and the error if finding them costs too much.
//!
//! A mask depends only on the state, so any thread can find it while the model computes
//! ([`grammar task`](crate::engine::grammar task) describes when). The grammar counts the work for each
//! mask; a mask that would take more than the grammar's limits allow is refused, and the request that needs
//! it fails. No token is ever drawn without its mask.

use crate::error::EngineError;
use crate::grammar::left::Left;
use crate::{Grammar, Mask, State};
use lexiform::error::Exhausted;
use lexiform::{Ends, MaskRequest};
use std::sync::Arc;

/// The tokens that may come at a position.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    pub(crate) mask: Arc<Mask>,
    /// The tokens that the grammar allows, if the number of tokens left excludes some of them.
    pub(crate) whole: Option<Arc<Mask>>,
    /// `true` if that number is the limit of the preamble.
    pub(crate) is_preamble: bool,
}

impl Bounds {
    /// Returns bounds that allow no token, in a vocabulary of `tokens` tokens.
    pub(crate) fn nothing(tokens: usize) -> Self {
        Bounds {
            mask: Arc::new(Mask::empty(tokens)),
            whole: None,
            is_preamble: false,
        }
    }

    /// Sets what bounds the number of tokens left.
    fn of(self, left: Left) -> Self {
        Bounds {
            is_preamble: left.is_preamble(),
            ..self
        }
    }

    /// Returns `true` if the number of tokens left excludes tokens that the grammar allows.
    pub(crate) fn is_steered(&self) -> bool {
        self.whole.is_some()
    }

    /// Returns `true` if the number of tokens left excludes the token that `row` makes the likeliest of
    /// those that the grammar allows.
    pub(crate) fn is_diverted(&self, row: &[f32]) -> bool {
        let logit = |token: u32| row.get(token as usize).copied().unwrap_or(f32::NEG_INFINITY);
        let best = |mask: &Mask| mask.iter().map(logit).fold(f32::NEG_INFINITY, f32::max);
        let whole = self.whole.as_deref();
        whole.is_some_and(|whole| best(whole) > best(&self.mask))
    }
}

/// A hook that is called before every mask, on the thread that finds it. It may take its time, or refuse.
/// For tests of slow grammars.
pub type MaskHook = Arc<dyn Fn(&Grammar) -> Result<(), EngineError> + Send + Sync>;

/// Finds masks: calls the hook, if there is one, and then the grammar.
#[derive(Clone, Default)]
pub(crate) struct Finder {
    pub(crate) hook: Option<MaskHook>,
}

impl Finder {
    /// Returns the tokens that may come in a state, with the tokens that are left. If the text `goes_on`, no
    /// token ends it where another one may come.
    ///
    /// # Errors
    /// The mask would cost more than the grammar's limits allow.
    pub(crate) fn bounds(
        &self,
        grammar: &Grammar,
        state: State,
        (left, goes_on): (Left, bool),
    ) -> Result<Bounds, EngineError> {
        if let Some(hook) = &self.hook {
            hook(grammar)?;
        }
        let budget = left.at(grammar, state)?;
        let never = goes_on.then(|| Ends::new([], grammar.vocabulary())).transpose();
        if let Ok(Some(never)) = never {
            let bounds = Finder::masks(grammar, MaskRequest::from(state).within(budget).ending(&never))?;
            if !bounds.mask.is_empty() {
                return Ok(bounds.of(left));
            }
        }
        let bounds = Finder::masks(grammar, MaskRequest::from(state).within(budget))?;
        Ok(bounds.of(left))
    }

    fn masks(grammar: &Grammar, request: MaskRequest<'_>) -> Result<Bounds, Exhausted> {
        let (mask, is_steered) = grammar.steered_mask(request)?;
        // This mask was found a moment ago, so the call only looks it up.
        let whole = is_steered.then(|| grammar.try_mask(request.within(None::<usize>)));
        Ok(Bounds {
            mask,
            whole: whole.transpose()?,
            is_preamble: false,
        })
    }

    /// Returns the state after one more token, which the mask allowed.
    ///
    /// # Errors
    /// The step would cost more than the grammar's limits allow, or the grammar contradicts its own mask.
    pub(crate) fn step(grammar: &Grammar, state: State, token: u32) -> Result<State, EngineError> {
        let disagreement = || {
            let message = format!("token {token} is in the mask, but the grammar does not step over it");
            EngineError::Model(message)
        };
        grammar.try_step(state, token)?.ok_or_else(disagreement)
    }
}
