//! The diagnostics of laws and searches that compute several texts for an answer.

use serde::Serialize;

/// How close a sample is to its law.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Diagnostics {
    /// The diagnostics of `smc` and `sir`.
    Particles {
        /// The number of texts drawn together.
        particles: usize,
        /// The effective sample size: the number of equally weighted texts that would be as informative.
        effective_size: f64,
        /// The number of times that the texts were resampled.
        resampled: usize,
    },
    /// The diagnostics of a search.
    Search {
        /// The number of prefixes followed at a time, if the search bounds it.
        #[serde(skip_serializing_if = "Option::is_none")]
        beam_width: Option<usize>,
        /// The log-probability of the text, divided by its length to the power of `length_penalty`; with
        /// `cntp`, divided by its length.
        score: f64,
        /// The number of prefixes evaluated by the model, for all answers together.
        rows: usize,
        /// The number of texts that the search found, which are the choices: at most `n`. Absent if texts are
        /// drawn.
        #[serde(skip_serializing_if = "Option::is_none")]
        found: Option<usize>,
        /// The bound that ended the search before it had found `n` texts, if one did.
        #[serde(skip_serializing_if = "Option::is_none")]
        met: Option<&'static str>,
    },
    /// The diagnostics of `mcmc`.
    Chain {
        /// The number of texts proposed after the first.
        steps: usize,
        /// The number of proposals that were accepted.
        moves: usize,
    },
}
