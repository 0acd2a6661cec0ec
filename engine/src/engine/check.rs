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
    let chooses = !matches!(
        request.law,
        LawChoice::Local | LawChoice::Global { .. } | LawChoice::Asap
    );
    if chooses && request.best_of.is_some() {
        return Err(invalid(
            "best_of",
            most,
            "absent: the law chooses among texts itself",
        ));
    }
    Ok(())
}

/// Whether the numbers that a law has are numbers that it can have, and its texts no more than may be under way.
pub(super) fn check_law(request: &Request, limit: usize) -> Result<(), Refusal> {
    let invalid = |name, value: &dyn ToString, expected| {
        let value = value.to_string();
        Err(Refusal::Invalid {
            name,
            value,
            expected,
        })
    };
    let texts = request.samples..=limit;
    match request.law {
        LawChoice::Global { max_attempts: 0, .. } => invalid("max_attempts", &0, "at least 1"),
        LawChoice::Smc { threshold, .. } if !(threshold > 0.0 && threshold <= 1.0) => {
            invalid("ess_threshold", &threshold, "above 0 and at most 1")
        }
        LawChoice::Smc { particles, .. }
        | LawChoice::Sir {
            candidates: particles,
        } if !texts.contains(&particles) => {
            let expected = "at least the number of answers, and at most the engine's max_branches";
            invalid("particles", &particles, expected)
        }
        LawChoice::Beam { width, .. } if width < request.samples || width > limit / 2 => {
            let expected = "at least the number of answers, and at most half of the engine's max_branches";
            invalid("beam_width", &width, expected)
        }
        LawChoice::Beam { length_penalty, .. } if !(0.0..=10.0).contains(&length_penalty) => {
            invalid("length_penalty", &length_penalty, "from 0 to 10")
        }
        LawChoice::Beam {
            patience: Some(patience),
            ..
        } if !(patience > 0.0 && patience.is_finite()) => invalid("patience", &patience, "above 0"),
        LawChoice::Mcmc { steps: 0, .. } => invalid("steps", &0, "at least 1"),
        LawChoice::Mcmc { .. } if request.samples >= limit => {
            let expected = "below the engine's max_branches: the prompt takes a branch of its own";
            invalid("samples", &request.samples, expected)
        }
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
