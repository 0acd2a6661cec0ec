//! The law of a request: how its rows are warped, which law draws from them, and when its text may end.

use crate::error::Refusal;
use crate::request::driver::Branch;
use crate::request::{Request, Sampling, Search, Speculation, Task, Verification};
use lexiform::vocab::Vocabulary;
use lexiform_law::{Aprad, Fallback, Law, LawError, TokenProposal, Trie, Walk, Warper, Warping};
use std::sync::{Arc, Mutex};

/// The number of prefixes and edges of one trie: about 10 MB.
pub(crate) const CAPACITY: usize = 1 << 17;

/// Checks the sampling settings of a request, and determines the order of warping and mask.
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
        bregman_lambda,
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
        bregman_lambda,
        mirostat,
        repetition_penalty,
        presence_penalty,
        frequency_penalty,
        bias: request.sampling.logit_bias.clone(),
    };
    Warper::new(warping, order(request)).map_err(|error| refusal(&error, temperature))
}

pub(crate) fn refusal(error: &LawError, temperature: f32) -> Refusal {
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

/// Returns the law that is drawn from, or `None` if nothing is drawn from a law. Without a grammar there is
/// nothing to condition on, and all laws over whole texts are the model's own.
pub(crate) fn drawn(request: &Request) -> Option<Law> {
    let Task::Draw(draw) = &request.task else {
        return None;
    };
    match request.constraints.grammar {
        None if !draw.law.is_local() => Some(Law::Local),
        _ => Some(draw.law),
    }
}

/// Returns `true` if the best of several candidates is requested.
pub(crate) fn has_best_of(request: &Request) -> bool {
    matches!(&request.task, Task::Draw(draw) if draw.best_of.is_some())
}

/// Returns the maximum number of texts that a request has in progress.
pub(crate) fn branches(request: &Request) -> usize {
    match &request.task {
        Task::Weigh(_) => 1,
        Task::Search { search, answers } => search.branches(*answers),
        Task::Draw(draw) => match drawn(request) {
            Some(Law::Smc { particles, .. }) => particles,
            Some(Law::Sir { candidates, .. }) => candidates,
            Some(Law::Mcmc { .. }) => draw.answers + 1,
            _ => draw.best_of.unwrap_or(draw.answers),
        },
    }
}

/// Returns the law that determines where filters cut: before the mask for searches that rank, which search
/// the model after the filters.
fn order(request: &Request) -> Law {
    match &request.task {
        // Any law that cuts before the mask; this parameter has no effect here.
        Task::Search { search, .. } if !search.draws() => Law::Asap {
            share_attempts: false,
        },
        _ => drawn(request).unwrap_or_default(),
    }
}

/// Returns `true` if the law of a request is defined by its masks, token by token.
pub(crate) fn masks_before_filters(request: &Request) -> bool {
    !order(request).cuts_before_mask()
}

/// Returns how the particles of a request are extended by a token, or `None` if there are none.
pub(crate) fn proposal(request: &Request) -> Option<TokenProposal> {
    drawn(request).and_then(Law::proposal)
}

/// Returns whose texts learn from those of a request through a trie, or `None` if no text does.
pub(crate) fn teaches(request: &Request) -> Option<Taught> {
    match drawn(request)? {
        law @ (Law::Global { .. } | Law::Asap { .. }) => Some(match law.shares_attempts() {
            true => Taught::Requests,
            false => Taught::Own,
        }),
        law => (law.proposal() == Some(TokenProposal::Twisted)).then_some(Taught::Own),
    }
}

/// Returns `true` if the answers of a request learn from each other in a fixed order, so that the text of a
/// seed does not depend on which of them is ahead.
///
/// Each answer has a trie of its own, which begins as a copy of the one that answer [`teacher`] has left. The
/// law is exact for every trie that was filled without the answer's own random numbers, and each answer has a
/// stream of its own.
pub(crate) fn learns_in_turn(request: &Request) -> bool {
    let learns_alike = matches!(drawn(request), Some(Law::Global { .. } | Law::Asap { .. }));
    let is_seeded = request.speculation.verification == Verification::DrawOnce;
    learns_alike && is_seeded && teaches(request) == Some(Taught::Own)
}

/// Returns the branch whose trie another one begins with, where branches learn in turn. A binary tree: all
/// but the first learn from texts that have ended, while half of them are drawn at the same time.
///
/// ```text
///   0 ─┬─ 1 ─┬─ 3 ─ 7, 8         16 texts: the first alone, then 2, 4, 8 and 1 together
///      │     └─ 4 ─ 9, 10
///      └─ 2 ─ 5, 6 …
/// ```
pub(crate) fn teacher(branch: Branch) -> Option<Branch> {
    branch.checked_sub(1).map(|before| before / 2)
}

/// Returns the capacity of each trie of a request: all of them together are bounded.
pub(crate) fn capacity(request: &Request) -> usize {
    match learns_in_turn(request) {
        true => CAPACITY / branches(request).max(1),
        false => CAPACITY,
    }
}

/// Returns why the text of a seed may depend on what else is computed even though no row does, or `None` if
/// it does not.
pub(crate) fn depends_on_others(request: &Request) -> Option<&'static str> {
    let drafts = &request.speculation;
    let teaching = teaches(request).is_some() && *drafts != Speculation::none();
    if drafts.verification == Verification::Residual && (drafts.model || teaching) {
        return Some(
            "which random number decides about a token depends on whether it was drafted; see verification",
        );
    }
    if request.task.search().is_some() || drawn(request).is_some_and(Law::chooses) {
        return Some(
            "it is promised for texts that are drawn one by one, not for searches, smc, sir and mcmc",
        );
    }
    match teaches(request) {
        Some(Taught::Requests) => Some("the attempts learn from those of other requests; see share_attempts"),
        Some(Taught::Own) if branches(request) > 1 && !learns_in_turn(request) => Some(
            "the answers of the request learn from each other, and which is ahead depends on other requests; ask for one, or see verification",
        ),
        _ => None,
    }
}

/// The texts that learn from those of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taught {
    /// Texts of the same request.
    Own,
    /// Texts of other requests as well.
    Requests,
}

/// Returns `true` if a request has a way out where no attempt at its law succeeds.
pub(crate) fn has_fallback(request: &Request) -> bool {
    match drawn(request) {
        Some(Law::Global { fallback, .. }) => fallback != Fallback::Fail,
        _ => false,
    }
}

/// Returns the walk of each branch of a request whose texts are recorded in a trie.
pub(crate) fn learning_walk(request: &Request, warper: &Warper, trie: Arc<Mutex<Trie>>) -> Walk {
    let walk = match drawn(request) {
        Some(Law::Global {
            max_attempts,
            fallback,
            ..
        }) => Walk::global(trie, max_attempts, fallback),
        Some(Law::Asap { .. }) => Walk::adaptive(trie),
        _ => Walk::twisted(trie),
    };
    walk.filtered(warper)
}

/// Returns `true` if the driver of a request inspects the entropy of its rows.
pub(crate) fn wants_entropy(request: &Request) -> bool {
    request.task.search().is_some_and(Search::draws)
}

/// Returns `true` if the end token is not requested once nothing else is left, so that it takes none of the
/// answer's tokens.
pub(crate) fn ends_unasked(request: &Request) -> bool {
    let is_drawn_by_token = match &request.task {
        Task::Draw(_) => drawn(request).is_some_and(Law::is_local),
        // The score of a search is that of the text with its end.
        Task::Search { .. } => false,
        Task::Weigh(_) => true,
    };
    is_drawn_by_token && !request.reporting.weigh_end && request.constraints.monitors.is_empty()
}

/// Returns the walk of a request whose texts are recorded in no trie.
pub(crate) fn local_walk(request: &Request, warper: &Warper, vocabulary: &Vocabulary) -> Walk {
    let mut ends = vocabulary.eos().to_vec();
    if let Some(Law::Aprad { exponent, max_errors }) = drawn(request) {
        return Walk::aligned(Aprad::new(exponent, CAPACITY), max_errors, &ends).filtered(warper);
    }
    let constraints = &request.constraints;
    if constraints.grammar.is_none() {
        if constraints.ignore_eos {
            ends.clear();
        }
        ends.extend(&constraints.stop_tokens);
    }
    let is_constrained = constraints.grammar.is_some() || !constraints.monitors.is_empty();
    let walk = Walk::local(warper, is_constrained, &ends);
    match drawn(request) {
        Some(Law::Lossy(accepts)) => walk.lossy(accepts),
        _ => walk,
    }
}
