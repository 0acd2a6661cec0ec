//! The reports of the engine about a request: events, outcomes and their parts.

use crate::error::EngineError;
use crate::metrics::meters::Times;
use crate::request::options::Weighed;
use lexiform_law::{Contrast, LawTag};
use std::sync::Arc;

/// An event of a request. Events arrive on the engine's threads: a sink must not block.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// One more token. End tokens are not reported.
    Token {
        /// The token.
        token: u32,
        /// The bytes that the token writes; empty for special tokens. If the prompt was healed, without the
        /// bytes of [`Prompt::healed`](super::Prompt::healed).
        bytes: Vec<u8>,
        /// `ln` of the probability that the model itself gave the token, before temperature, filters and
        /// mask. Reported only if requested by [`Reporting::logprobs`](super::Reporting::logprobs), because
        /// it requires reading the whole row.
        logprob: Option<f32>,
        /// `ln` of the mass that the warped law puts on the allowed tokens here (at temperature 0: as at
        /// temperature 1).
        log_mass: f32,
        /// `ln` of the probability of the token among those that are allowed here: under the warped law,
        /// after filters and mask (at temperature 0: as at temperature 1, and nothing is cut).
        log_share: f32,
        /// The most likely tokens under [`Reporting::logprobs_of`](super::Reporting::logprobs_of), if
        /// requested.
        top: Vec<(u32, f32)>,
        /// The alternatives at this position, if requested by
        /// [`Reporting::candidates`](super::Reporting::candidates).
        candidates: Option<Candidates>,
        /// How the token was produced.
        origin: Origin,
    },
    /// The request ended normally. The last event.
    Done(Outcome),
    /// The request could not be finished. The last event.
    Failed(EngineError),
}

/// The tokens that could have come at a position.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidates {
    /// The number of tokens that the grammar and the remaining token budget allowed.
    pub allowed: usize,
    /// `true` if the remaining token budget excluded something that the grammar allows.
    pub is_steered: bool,
    /// The model's most likely tokens, and the most likely of those that may be drawn, both by the model's
    /// own probability.
    pub likely: Vec<Candidate>,
    /// The tree of tokens that were drafted for the pass of which this token is the first; empty for its
    /// other tokens.
    pub drafted: Vec<Drafted>,
}

/// A token that was drafted for a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drafted {
    /// The token.
    pub token: u32,
    /// The index of the draft that it follows, which comes before this one; `None` if it follows the text.
    pub parent: Option<usize>,
    /// The drafter: `forced`, `copied`, `predicted` or `model`, named as in
    /// [`Speculation`](super::Speculation), or the store, such as `suffix` or `state`.
    pub drafter: &'static str,
    /// The outcome for the draft.
    pub fate: Fate,
}

/// The outcome for a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The draft is part of the answer.
    Kept,
    /// Another token was drawn in its place.
    Refused,
    /// The draft follows a refused one, so it was never judged.
    Unjudged,
}

/// A token that could have come at a position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// The token.
    pub token: u32,
    /// `ln` of the model's own probability, before temperature, filters and mask.
    pub logprob: f32,
    /// `true` if the grammar and the remaining token budget allow the token.
    pub is_allowed: bool,
    /// `ln` of its probability among the tokens that may be drawn, like [`Event::Token::log_share`]: minus
    /// infinity if the mask or a filter excludes the token.
    pub log_share: f32,
}

/// How a token was produced. All tokens follow the same law; this records which passes were saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Drawn in its own pass, or in place of a draft.
    Sampled,
    /// A draft by lookup or by the draft model, confirmed by the draw.
    Drafted,
    /// A draft of forced text, confirmed by the draw.
    Forced,
    /// Not drawn: the driver of the request continued with it.
    Given,
}

/// The contrast that an answer was drawn with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contrasted {
    /// How the rows were combined.
    pub contrast: Contrast,
    /// The number of tokens of the other prompt; `None` if the other rows are those of the draft model.
    pub prompt_tokens: Option<usize>,
}

/// The result of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The reason why it ended.
    pub finish: Finish,
    /// The law that the answer was drawn from.
    pub law: LawTag,
    /// The contrast by which the rows of the model were combined with others.
    pub contrast: Option<Contrasted>,
    /// `ln P(w)` of the answer under the *warped* model: after penalties, bias, temperature and, where these
    /// cut before the mask, filters, but before the mask (at temperature 0: as at temperature 1). It is not
    /// the model's own probability, which [`Event::Token::logprob`] reports, and lacks the end token if its
    /// probability was not requested ([`Reporting::weigh_end`](super::Reporting::weigh_end)). The table of
    /// numbers in [`lexiform_law`] lists its meaning under each law.
    pub log_probability: f64,
    /// The log importance weight of the answer with respect to the global law, as listed for each law in the
    /// table of numbers in [`lexiform_law`]. For a local sample it is the sum over positions of `ln` of the
    /// mass on allowed tokens; for a [`LawTag::GlobalExact`] answer it is 0, since such an answer is already
    /// a sample of the normalised law and must not be mixed with weights of answers of other laws.
    ///
    /// `None` if no weight leads to that law: for greedy answers and the best of several, for answers whose
    /// end was not weighed ([`Reporting::weigh_end`](super::Reporting::weigh_end)), and for those that were
    /// cut.
    pub log_weight: Option<f64>,
    /// The number of tokens of the prompt, without those that healing removed.
    pub prompt_tokens: usize,
    /// The number of prompt tokens whose keys and values were already cached.
    pub cached_tokens: usize,
    /// The number of tokens generated, including the end token if one was drawn, and the tokens that spell
    /// [`Prompt::healed`](super::Prompt::healed).
    pub completion_tokens: usize,
    /// The number of tokens drafted.
    pub drafted: usize,
    /// The number of drafted tokens confirmed.
    pub accepted: usize,
    /// The number of confirmed tokens that were copied from [`Prompt::reference`](super::Prompt::reference).
    pub accepted_predictions: usize,
    /// The number of tokens that were drafted from the reference and not confirmed. Tokens that were not
    /// drafted are in neither count.
    pub rejected_predictions: usize,
    /// The number of attempts of the global law; under [`Law::Aprad`](lexiform_law::Law::Aprad), one more
    /// than the number of times the text was rewound; 1 otherwise.
    pub attempts: usize,
    /// The time that the answer took.
    pub times: Times,
    /// How [`AnswerLimits::max_tokens`](super::AnswerLimits::max_tokens) narrowed what the grammar allows, if
    /// it did.
    pub steered: Option<Steered>,
    /// Diagnostics of a law that draws several texts for an answer.
    pub diagnostics: Option<Diagnostics>,
    /// The probability of each option of [`Task::Weigh`](super::Task::Weigh), in the order of the options;
    /// with [`Weigh::likeliest`](super::Weigh::likeliest), only of that many, the likeliest first. The tokens
    /// of such an answer are the nodes of the option tree whose probability was computed.
    pub options: Option<Vec<Weighed>>,
    /// The final texts of [`Law::Smc`](lexiform_law::Law::Smc) and [`Law::Sir`](lexiform_law::Law::Sir), from
    /// which the answer was drawn; empty otherwise.
    pub particles: Vec<Particle>,
}

/// A text of a population, with its weight. The mean of `exp(log_weight) · f(text)` over all particles,
/// including those without a text, is an unbiased estimate of `Z` times the mean of `f` under the global law.
#[derive(Clone, Debug, PartialEq)]
pub struct Particle {
    /// The tokens of the text, including the end token; `None` if the text cannot be whole.
    pub tokens: Option<Arc<Vec<u32>>>,
    /// The log of its weight; minus infinity if there is no text.
    pub log_weight: f64,
}

/// How close an answer is to its law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Diagnostics {
    /// For [`Law::Smc`](lexiform_law::Law::Smc) and [`Law::Sir`](lexiform_law::Law::Sir), whose
    /// [`Outcome::log_weight`] is the log of the estimate of `Z`.
    Particles {
        /// The number of particles.
        particles: usize,
        /// The effective sample size at the end: the number of equally weighted particles that would carry as
        /// much information.
        effective_size: f64,
        /// The number of times they were resampled.
        resampled: usize,
    },
    /// For [`Law::Mcmc`](lexiform_law::Law::Mcmc), and for
    /// [`Fallback::Chain`](lexiform_law::Fallback::Chain).
    Chain {
        /// The number of texts proposed after the first.
        steps: usize,
        /// The number of proposals that were accepted.
        moves: usize,
    },
    /// For [`Task::Search`](super::Task::Search).
    Search {
        /// The number of prefixes followed at a time, if the search bounds it.
        width: Option<usize>,
        /// The score of the text.
        score: f64,
        /// The number of prefixes whose next tokens the model computed, for all answers together.
        rows: usize,
        /// The number of answers for which a text was found; the others failed. `None` if texts are drawn.
        found: Option<usize>,
        /// The bound of the search that ended it before it had found all answers, if one did.
        met: Option<&'static str>,
    },
}

/// How the token limit changed an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steered {
    /// The number of tokens before the first one whose choice was narrowed; `None` if only the end of the
    /// text was affected, so that every token was chosen as if the limit were higher.
    pub from: Option<usize>,
    /// The token limit.
    pub max_tokens: usize,
    /// `true` if the likeliest token that the grammar allows was excluded somewhere. If `false`, a greedy
    /// text is the same as far as it goes.
    pub is_diverted: bool,
    /// `true` if the text ends because the remaining token budget allowed nothing but the end, where the
    /// grammar would have allowed more.
    pub is_ended: bool,
    /// The effect of [`AnswerLimits::preamble`](super::AnswerLimits::preamble), if it narrowed a choice; a
    /// token that it excluded counts in `from`, and in nothing else here.
    pub preamble: Option<SteeredPreamble>,
}

/// How the limit of a preamble changed an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteeredPreamble {
    /// The number of tokens before the first one whose choice was narrowed.
    pub from: u32,
    /// The limit; the greatest number if it is greater.
    pub max_tokens: u32,
}

/// The reason why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// An end token, or the end of the grammar.
    Stop,
    /// `max_tokens` were generated. Does not occur under a grammar with
    /// [`OnBudget::Complete`](super::OnBudget::Complete): the answer is then complete in time.
    Length,
    /// The caller cancelled the request.
    Cancelled,
}
