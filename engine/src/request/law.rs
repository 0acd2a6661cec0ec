//! The law that a request asks for: how its rows are warped, which law draws from them, and when its text may end.

use crate::error::Refusal;
use crate::request::{LawChoice, Request, Sampling};
use lexiform::law::{Law, LawError, Walk, Warper, Warping};
use lexiform::vocab::Vocabulary;

/// Checks what a request says about sampling, and settles the order of warping and mask.
pub(crate) fn warper(request: &Request) -> Result<Warper, Refusal> {
    let Sampling {
        temperature,
        top_p,
        top_k,
        min_p,
        typical_p,
        top_n_sigma,
        epsilon_cutoff,
        eta_cutoff,
        mirostat,
        repetition_penalty,
        presence_penalty,
        frequency_penalty,
        ..
    } = request.sampling;
    let warping = Warping {
        temperature,
        top_k,
        top_p,
        min_p,
        typical_p,
        top_n_sigma,
        epsilon_cutoff,
        eta_cutoff,
        mirostat,
        repetition_penalty,
        presence_penalty,
        frequency_penalty,
        bias: request.sampling.logit_bias.clone(),
        ..Warping::default()
    };
    Warper::new(warping, order(request)).map_err(|error| refusal(&error, temperature))
}

fn refusal(error: &LawError, temperature: f32) -> Refusal {
    match *error {
        LawError::OutOfRange {
            name,
            value,
            expected,
        } => Refusal::Invalid {
            name: if name == "bias" { "logit_bias" } else { name },
            value: value.to_string(),
            expected,
        },
        LawError::MirostatGlobal => Refusal::Invalid {
            name: "mirostat_mode",
            value: "on".to_owned(),
            expected: "off under the global law",
        },
        _ => Refusal::Invalid {
            name: "temperature",
            value: temperature.to_string(),
            expected: "above 0 under any law but the local one",
        },
    }
}

/// The law that is drawn from: without a grammar there is nothing to condition on, and all laws are the model's own, but a
/// search is one.
pub(crate) fn choice(request: &Request) -> LawChoice {
    match (&request.grammar, request.law) {
        (None, LawChoice::Beam { .. }) | (Some(_), _) => request.law,
        (None, _) => LawChoice::Local,
    }
}

/// The law that settles where filters cut. All laws but the local one are about the model after the filters.
fn order(request: &Request) -> Law {
    match choice(request) {
        LawChoice::Local => Law::Local,
        // Of the laws that cut before the mask, the one without parameters.
        _ => Law::Adaptive,
    }
}

/// How each branch is drawn. Those that particles and chains are made of are drawn under the local law.
pub(crate) fn law(request: &Request) -> Law {
    match choice(request) {
        LawChoice::Global {
            max_attempts,
            fallback,
        } => Law::Global {
            attempts: u32::try_from(max_attempts).unwrap_or(u32::MAX),
            fallback,
        },
        LawChoice::Asap => Law::Adaptive,
        _ => Law::Local,
    }
}

/// Whether the end token is not asked for once nothing else is left, so that it takes none of the answer's tokens.
pub(crate) fn ends_unasked(request: &Request) -> bool {
    !request.weigh_end && choice(request) == LawChoice::Local
}

/// The walk of a request that is not under the global law.
pub(crate) fn local_walk(request: &Request, warper: &Warper, vocabulary: &Vocabulary) -> Walk {
    let mut ends = vocabulary.eos().to_vec();
    match &request.grammar {
        Some(_) => (),
        None if request.ignore_eos => ends.clear(),
        None => ends.extend(&request.stop_tokens),
    }
    Walk::local(warper, request.grammar.is_some(), &ends)
}
