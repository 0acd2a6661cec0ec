//! What the engine reports about a request: events, outcomes and their parts.

use crate::error::EngineError;
use crate::metrics::meters::Times;
use crate::request::options::Weighed;
use lexiform_law::LawTag;
use std::sync::Arc;

/// What happened to a request. Events arrive on the engine's threads: a sink must not block.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// One more token. End tokens are not reported.
    Token {
        /// The token.
        token: u32,
        /// What it writes; empty for special tokens. Where the prompt was healed, without the bytes of
        /// [`Prompt::healed`](super::Prompt::healed).
        bytes: Vec<u8>,
        /// `ln` of the probability that the model itself gave the token, before temperature, filters and
        /// mask; for those who asked by [`Reporting::logprobs`](super::Reporting::logprobs), because it takes
        /// a look at the whole row.
        logprob: Option<f32>,
        /// `ln` of the mass that the warped law put on the allowed tokens here (at temperature 0: as at
        /// temperature 1).
        log_mass: f32,
        /// `ln` of the probability of the token among those that are allowed here: under the warped law,
        /// after filters and mask (at temperature 0: as at temperature 1, and nothing is cut).
        log_share: f32,
        /// The most likely tokens under [`Reporting::logprobs_of`](super::Reporting::logprobs_of), if asked
        /// for.
        top: Vec<(u32, f32)>,
        /// What else might have come at this position, for those who asked by
        /// [`Reporting::candidates`](super::Reporting::candidates).
        candidates: Option<Candidates>,
        /// How the token came about.
        origin: Origin,
    },
    /// The request ended as it should. The last event.
    Done(Outcome),
    /// The request could not be finished. The last event.
    Failed(EngineError),
}

/// What might have come at a position.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidates {
    /// How many tokens the grammar and the tokens left allowed.
    pub allowed: usize,
    /// Whether the tokens left took something away that the grammar allows.
    pub is_steered: bool,
    /// The model's most likely tokens and the most likely of those that may be drawn, by the model's own
    /// probability.
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
    /// The number of the draft that it follows; `None` for one that follows the text. It stands before this
    /// one.
    pub parent: Option<usize>,
    /// Who drafted it: `forced`, `copied`, `predicted` and `model` as [`Speculation`] has them, or the store,
    /// such as `suffix` or `state`.
    pub drafter: &'static str,
    /// What became of it.
    pub fate: Fate,
}

/// What became of a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is part of the answer.
    Kept,
    /// Another token was drawn in its place.
    Refused,
    /// It follows one that was refused, so that nobody has judged it.
    Unjudged,
}

/// A token that might have come at a position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// The token.
    pub token: u32,
    /// `ln` of the model's own probability, before temperature, filters and mask.
    pub logprob: f32,
    /// Whether the grammar and the tokens left allow it.
    pub is_allowed: bool,
    /// `ln` of its probability among the tokens that may be drawn, as [`Event::Token::log_share`] has it:
    /// minus infinity where the mask or a filter leaves the token out.
    pub log_share: f32,
}

/// How a token came about. All are drawn by the same law; this tells which passes were saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Drawn in a pass of its own, or in place of a draft.
    Sampled,
    /// A draft by lookup or by the draft model that the draw confirmed.
    Drafted,
    /// A draft of forced text that the draw confirmed.
    Forced,
    /// Not drawn: whoever drives the request went on with it.
    Given,
}

/// How an answer came out.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Why it ended.
    pub finish: Finish,
    /// The law it was drawn from.
    pub law: LawTag,
    /// `ln P(w)` of the answer under the *warped* model: after penalties, bias, temperature and, where these
    /// cut before the mask, filters, but before the mask (at temperature 0: as at temperature 1). It is not
    /// the model's own, which [`Event::Token::logprob`] tells, and lacks the end where nobody asked for its
    /// probability ([`Reporting::weigh_end`](super::Reporting::weigh_end)). The table of numbers in
    /// [`lexiform_law`] says what it is under which law.
    pub log_probability: f64,
    /// The log importance weight of the answer with respect to the global law, as the table of numbers in
    /// [`lexiform_law`] has it for each law. For a local sample the sum over positions of `ln` of the mass on
    /// allowed tokens; 0 for a [`LawTag::GlobalExact`] one, which is a sample of the normalised law already
    /// and is not to be mixed with weights of answers of other laws.
    ///
    /// `None` where there is none that leads to that law: for greedy answers and the best of several, for
    /// answers whose end was not weighed ([`Reporting::weigh_end`](super::Reporting::weigh_end)), and for
    /// those that were cut.
    pub log_weight: Option<f64>,
    /// Tokens of the prompt, without those that healing removed.
    pub prompt_tokens: usize,
    /// Those of them whose keys and values were already cached.
    pub cached_tokens: usize,
    /// Tokens generated, the end token included when one was drawn. Those that spell
    /// [`Prompt::healed`](super::Prompt::healed) count, too.
    pub completion_tokens: usize,
    /// Tokens drafted.
    pub drafted: usize,
    /// Drafted tokens confirmed.
    pub accepted: usize,
    /// Of those the tokens that were copied from [`Prompt::reference`](super::Prompt::reference).
    pub accepted_predictions: usize,
    /// Tokens that were drafted from there and not confirmed. What was not drafted counts neither way.
    pub rejected_predictions: usize,
    /// Attempts of the global law; under [`Law::Aprad`](lexiform_law::Law::Aprad) one more than the times the
    /// text went back; 1 otherwise.
    pub attempts: usize,
    /// How long it took.
    pub times: Times,
    /// How [`AnswerLimits::max_tokens`](super::AnswerLimits::max_tokens) narrowed what the grammar allows, if
    /// it did.
    pub steered: Option<Steered>,
    /// What a law that draws several texts for an answer says of them.
    pub diagnostics: Option<Diagnostics>,
    /// How likely each of [`Task::Weigh`](super::Task::Weigh) is, in their order; of
    /// [`Request::likeliest_options`] those, the likeliest first. The tokens of such an answer are those of
    /// the tree of options whose probability was found out.
    pub options: Option<Vec<Weighed>>,
    /// The texts of [`Law::Smc`](lexiform_law::Law::Smc) and [`Law::Sir`](lexiform_law::Law::Sir) at the end,
    /// by one of which the answer was drawn; empty otherwise.
    pub particles: Vec<Particle>,
}

/// A text of a population, with its weight. The mean of `exp(log_weight) · f(text)` over all of them, those
/// without a text included, is an unbiased estimate of `Z` times the mean of `f` under the global law.
#[derive(Clone, Debug, PartialEq)]
pub struct Particle {
    /// Its tokens, the end token included; `None` where the text cannot be whole.
    pub tokens: Option<Arc<Vec<u32>>>,
    /// The log of its weight; minus infinity without a text.
    pub log_weight: f64,
}

/// How near an answer is to its law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Diagnostics {
    /// Of [`Law::Smc`](lexiform_law::Law::Smc) and [`Law::Sir`](lexiform_law::Law::Sir), whose
    /// [`Outcome::log_weight`] is the log of the estimate of `Z`.
    Particles {
        /// How many there were.
        particles: usize,
        /// How many of equal weight would have said as much, at the end.
        effective_size: f64,
        /// How often they were resampled.
        resampled: usize,
    },
    /// Of [`Law::Mcmc`](lexiform_law::Law::Mcmc), and of [`Fallback::Chain`](lexiform_law::Fallback::Chain).
    Chain {
        /// Texts proposed after the first.
        steps: usize,
        /// Those of them that were accepted.
        moves: usize,
    },
    /// Of [`Task::Search`](super::Task::Search).
    Search {
        /// Prefixes followed at a time, where the search bounds them.
        width: Option<usize>,
        /// The score of the text.
        score: f64,
        /// Prefixes of which the model was asked what follows, for all answers together.
        rows: usize,
    },
}

/// An answer that its tokens did not leave as it would have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steered {
    /// How many tokens stood before the first one whose choice was narrowed; `None` where that was the end of
    /// the text alone, so that every token of it was chosen as if there were more to spend.
    pub from: Option<usize>,
    /// The tokens that there were.
    pub max_tokens: usize,
    /// Whether the likeliest token that the grammar allows was taken away somewhere: without that, a greedy
    /// text is the same as far as it goes.
    pub is_diverted: bool,
    /// Whether the text ends because the tokens left allowed nothing but the end, where the grammar would
    /// have gone on.
    pub is_ended: bool,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// An end token, or the end of the grammar.
    Stop,
    /// `max_tokens` were generated. Not under a grammar with [`OnBudget::Complete`]: then the answer is
    /// complete by then.
    Length,
    /// The caller gave up.
    Cancelled,
}
