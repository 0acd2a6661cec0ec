//! The law that a request asks for: how its rows are warped, which law draws from them, and when its text may
//! end.

use crate::error::Refusal;
use crate::request::{LawChoice, Proposing, Request, Sampling, Search, Speculation, Verification};
use lexiform::vocab::Vocabulary;
use lexiform_law::{Aprad, Law, LawError, Trie, Walk, Warper, Warping};
use std::sync::{Arc, Mutex};

/// Prefixes and edges of one trie: about 10 MB.
pub(crate) const CAPACITY: usize = 1 << 17;

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

/// The law that is drawn from: without a grammar there is nothing to condition on, and all laws are the
/// model's own.
pub(crate) fn choice(request: &Request) -> LawChoice {
    match request.grammar {
        Some(_) => request.law,
        None => LawChoice::Local,
    }
}

/// How many texts a request has under way at most.
pub(crate) fn branches(request: &Request) -> usize {
    let texts = request.best_of.unwrap_or(request.samples);
    match &request.search {
        Some(search) => search.branches(texts),
        None => choice(request).branches(texts),
    }
}

/// The law that settles where filters cut. All laws but the local one are about the model after the filters,
/// and so are searches but for the one that draws.
fn order(request: &Request) -> Law {
    match choice(request) {
        LawChoice::Local if request.search.is_none() || wants_entropy(request) => Law::Local,
        // Of the laws that cut before the mask, the one without parameters.
        _ => Law::Adaptive,
    }
}

/// How the particles of a request go on; `None` where there are none.
pub(crate) fn proposing(request: &Request) -> Option<Proposing> {
    match choice(request) {
        LawChoice::Smc { proposal, .. } | LawChoice::Sir { proposal, .. } => Some(proposal),
        _ => None,
    }
}

/// Whom the texts of a request teach, through a trie; `None` where they teach nobody.
pub(crate) fn teaches(request: &Request) -> Option<Taught> {
    match (choice(request), proposing(request)) {
        (LawChoice::Global { .. } | LawChoice::Asap, _) if request.share_attempts => Some(Taught::Requests),
        (LawChoice::Global { .. } | LawChoice::Asap, _) | (_, Some(Proposing::Twisted)) => Some(Taught::Own),
        _ => None,
    }
}

/// Why the text of a seed may depend on what else is computed, though no row does; `None` if it does not.
pub(crate) fn depends_on_others(request: &Request) -> Option<&'static str> {
    let is_drawn_alone = matches!(
        choice(request),
        LawChoice::Local | LawChoice::Global { .. } | LawChoice::Asap | LawChoice::Aprad { .. }
    );
    let drafts = &request.speculation;
    let teaching = teaches(request).is_some() && *drafts != Speculation::none();
    if drafts.verification == Verification::Residual && (drafts.model || teaching) {
        return Some(
            "which random number decides about a token depends on whether it was drafted; see verification",
        );
    }
    if !is_drawn_alone || request.search.is_some() {
        return Some(
            "it is promised for texts that are drawn one by one, not for searches, smc, sir and mcmc",
        );
    }
    match teaches(request) {
        Some(Taught::Requests) => Some("the attempts learn from those of other requests; see share_attempts"),
        Some(Taught::Own) if branches(request) > 1 => Some(
            "the answers of the request learn from each other, and which is ahead depends on other requests; ask for one",
        ),
        _ => None,
    }
}

/// Whose texts learn from those of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taught {
    /// Those of the same request.
    Own,
    /// Those of other requests as well.
    Requests,
}

/// The walk of each branch of a request whose texts teach a trie.
pub(crate) fn learning_walk(request: &Request, trie: Arc<Mutex<Trie>>) -> Walk {
    match choice(request) {
        LawChoice::Global {
            max_attempts,
            fallback,
        } => Walk::global(trie, u32::try_from(max_attempts).unwrap_or(u32::MAX), fallback),
        LawChoice::Asap => Walk::adaptive(trie),
        _ => Walk::twisted(trie),
    }
}

/// Whether the driver of a request looks at how sure its rows were.
pub(crate) fn wants_entropy(request: &Request) -> bool {
    matches!(request.search, Some(Search::Cntp { .. }))
}

/// Whether the end token is not asked for once nothing else is left, so that it takes none of the answer's
/// tokens.
pub(crate) fn ends_unasked(request: &Request) -> bool {
    !request.weigh_end
        && request.monitors.is_empty()
        && choice(request) == LawChoice::Local
        && (request.search.is_none() || wants_entropy(request))
}

/// The walk of a request whose texts teach nobody.
pub(crate) fn local_walk(request: &Request, warper: &Warper, vocabulary: &Vocabulary) -> Walk {
    let mut ends = vocabulary.eos().to_vec();
    if let LawChoice::Aprad { exponent, max_errors } = choice(request) {
        let errors = u32::try_from(max_errors).unwrap_or(u32::MAX);
        return Walk::aligned(Aprad::new(exponent, CAPACITY), errors, &ends);
    }
    match &request.grammar {
        Some(_) => (),
        None if request.ignore_eos => ends.clear(),
        None => ends.extend(&request.stop_tokens),
    }
    let is_constrained = request.grammar.is_some() || !request.monitors.is_empty();
    let walk = Walk::local(warper, is_constrained, &ends);
    match request.lossy {
        Some(accepts) => walk.lossy(accepts),
        None => walk,
    }
}
