//! What requests and configurations are checked for before anything is queued or started.

use crate::Grammar;
use crate::config::EngineConfig;
use crate::error::{EngineError, Refusal};
use crate::request::law;
use crate::request::{LawChoice, Request};

/// Whether a request may have so many texts under way.
pub(super) fn check_samples(request: &Request, limit: usize) -> Result<(), Refusal> {
    let most = request.best_of.unwrap_or(request.samples);
    let invalid = |name, value: usize, expected| Refusal::Invalid {
        name,
        value: value.to_string(),
        expected,
    };
    if request.samples == 0 || request.samples > limit {
        return Err(invalid(
            "samples",
            request.samples,
            "from 1 to the engine's max_branches",
        ));
    }
    if most < request.samples || most > limit {
        return Err(invalid(
            "best_of",
            most,
            "from samples to the engine's max_branches",
        ));
    }
    Ok(())
}

/// Whether the global law has an attempt to make.
pub(super) fn check_attempts(request: &Request) -> Result<(), Refusal> {
    match request.law {
        LawChoice::Global { max_attempts: 0, .. } => Err(Refusal::Invalid {
            name: "max_attempts",
            value: "0".to_string(),
            expected: "at least 1",
        }),
        _ => Ok(()),
    }
}

/// Whether an answer can be completed within its tokens. From then on the masks see to it that it is.
pub(super) fn check_budget(request: &Request, grammar: &Grammar) -> Result<(), Refusal> {
    let max_tokens = request.max_tokens;
    let unasked = usize::from(law::ends_unasked(request));
    if grammar.completes_within(grammar.start(), max_tokens.saturating_add(unasked)) {
        return Ok(());
    }
    let least = grammar.min_completion(grammar.start()).map(|least| {
        if least == usize::MAX {
            least
        } else {
            least - unasked
        }
    });
    Err(Refusal::TooFew { max_tokens, least })
}

/// Whether all sizes are sizes.
pub(super) fn check_config(config: &EngineConfig) -> Result<(), EngineError> {
    let sizes = [
        ("block_size", config.block_size),
        ("blocks", config.blocks),
        ("max_running", config.max_running),
        ("max_branches", config.max_branches),
        ("max_waiting", config.max_waiting),
        ("max_step_tokens", config.max_step_tokens),
        ("prompt_piece", config.prompt_piece),
    ];
    match sizes.iter().find(|(_, size)| *size == 0) {
        Some((name, _)) => Err(EngineError::Config(format!(
            "{name} is 0, but must be at least 1"
        ))),
        None => Ok(()),
    }
}
