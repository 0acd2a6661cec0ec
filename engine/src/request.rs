//! What goes into the engine and what comes out of it: plain data.

pub(crate) mod driver;
pub(crate) mod law;

use crate::Grammar;
use crate::error::EngineError;
use crate::fairness::pool::Owner;
use crate::metrics::meters::Times;
use lexiform::law::{Cuts, Fallback, LawTag, Mirostat, Resampling};
use std::time::Instant;

/// One text to continue.
#[derive(Clone, Debug)]
pub struct Request {
    /// The tokens to continue; at least one.
    pub prompt: Vec<u32>,
    /// Whose request it is: owners share the batch, the queue and the mask threads equally.
    pub owner: Owner,
    /// Which of the requests of one owner goes first: the one with the higher priority, also in the place of one that runs.
    /// The requests of others are not affected.
    pub priority: i32,
    /// When the request ends with [`EngineError::Late`], unless it has ended by then. Of the requests of one owner with one
    /// priority the one with the earlier deadline is admitted first.
    pub deadline: Option<Instant>,
    /// What the continuation must match; `None` lets the model write freely.
    pub grammar: Option<Grammar>,
    /// How the model's law is warped and drawn from.
    pub sampling: Sampling,
    /// How many answers: independent samples of the one prompt, which is read once. Each draws from random numbers of its
    /// own, so that the answers of different seeds have nothing in common either.
    pub samples: usize,
    /// Draws so many candidates, and answers with those that the model finds likeliest for each token of theirs. Such an
    /// answer is of no simple law, and nothing of it is heard before all candidates have ended.
    pub best_of: Option<usize>,
    /// The most tokens to generate, the end token included.
    ///
    /// With a grammar this is part of the constraint, unless [`on_budget`](Self::on_budget) says otherwise: the answer is
    /// complete within so many tokens, and a number below the shortest answer is refused. All laws are about the texts
    /// of the grammar that are short enough.
    pub max_tokens: usize,
    /// What becomes of an answer for which `max_tokens` are few.
    pub on_budget: OnBudget,
    /// Which law the answer is drawn from. Without a grammar both are the model's own.
    pub law: LawChoice,
    /// Whether the attempts of the global law learn from those of other requests that agree in all but the seed and ask for
    /// this too. Later ones then need fewer attempts, from the same law, but which text a seed gives depends on what was
    /// asked before. The samples of one request learn from each other in any case.
    pub share_attempts: bool,
    /// Text that the answer is likely to repeat in whole or in part, as tokens: lookup copies from it, too. Empty for none.
    pub reference: Vec<u32>,
    /// What is drafted ahead. Never changes the law of the answer, only the time it takes;
    /// [`Speculation::verification`] says whether the text of a seed stays the same, too.
    pub speculation: Speculation,
    /// Asks for the model's `n` most likely tokens at every position (`Some(0)`: only the chosen token's own).
    pub logprobs: Option<u8>,
    /// Whose law the most likely tokens are of.
    pub logprobs_of: LogprobsOf,
    /// Asks at every position what else might have come ([`Event::Token::candidates`]): how many tokens were allowed, and up
    /// to this many each of the model's most likely tokens and of the most likely ones that may be drawn.
    pub candidates: Option<u8>,
    /// Tokens that end the answer beside the vocabulary's end tokens. They only apply without a grammar: with one,
    /// the grammar says where the text ends.
    pub stop_tokens: Vec<u32>,
    /// Goes on past end tokens, for measurements. Only without a grammar.
    pub ignore_eos: bool,
    /// When the grammar leaves only the end token, the engine finishes without asking the model for its probability,
    /// so that factor is missing from [`Outcome::log_weight`]. `true` spends the extra pass and includes it. The
    /// global law always does.
    pub weigh_end: bool,
}

impl Request {
    /// A greedy request without grammar.
    pub fn new(prompt: Vec<u32>, max_tokens: usize) -> Self {
        Request {
            prompt,
            owner: None,
            priority: 0,
            deadline: None,
            grammar: None,
            sampling: Sampling::default(),
            samples: 1,
            best_of: None,
            max_tokens,
            on_budget: OnBudget::Complete,
            law: LawChoice::Local,
            share_attempts: false,
            reference: Vec::new(),
            speculation: Speculation::none(),
            logprobs: None,
            logprobs_of: LogprobsOf::Model,
            candidates: None,
            stop_tokens: Vec::new(),
            ignore_eos: false,
            weigh_end: false,
        }
    }
}

/// How the model's probabilities are warped before the law sees them. Defaults to greedy decoding.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// 0 takes the most likely allowed token; 1 is the model's own law.
    pub temperature: f32,
    /// Keeps the smallest set of tokens with at least this probability; 1 keeps all.
    pub top_p: f32,
    /// Keeps this many most likely tokens.
    pub top_k: Option<u32>,
    /// Keeps tokens with at least this fraction of the most likely token's probability; 0 keeps all.
    pub min_p: f32,
    /// Keeps the smallest set of tokens of nearly the expected surprise with at least this probability; 1 keeps all.
    pub typical_p: f32,
    /// Keeps tokens whose logits are at most this many standard deviations below the largest.
    pub top_n_sigma: Option<f32>,
    /// Keeps tokens with at least this probability; 0 keeps all.
    pub epsilon_cutoff: f32,
    /// The same, with a bound that falls where the entropy is large; 0 keeps all.
    pub eta_cutoff: f32,
    /// Steers the surprise of the answer. Under the local law only.
    pub mirostat: Option<Mirostat>,
    /// The source of all chance: the same request with the same seed gives the same tokens.
    pub seed: u64,
    /// Which of the sequences of random numbers that a seed has is that of the first sample; the others follow. Requests
    /// with one seed that are to be independent take numbers that do not overlap.
    pub stream: u32,
    /// Divides the positive logits of the tokens of the prompt and the answer so far, and multiplies the negative ones;
    /// 1 changes nothing.
    pub repetition_penalty: f32,
    /// Subtracted from the logit of every token that the answer already contains.
    pub presence_penalty: f32,
    /// Subtracted from a token's logit once for every time the answer contains it.
    pub frequency_penalty: f32,
    /// Added to the logits of single tokens.
    pub logit_bias: Vec<(u32, f32)>,
}

impl Default for Sampling {
    fn default() -> Self {
        Sampling {
            temperature: 0.0,
            top_p: 1.0,
            top_k: None,
            min_p: 0.0,
            typical_p: 1.0,
            top_n_sigma: None,
            epsilon_cutoff: 0.0,
            eta_cutoff: 0.0,
            mirostat: None,
            seed: 0,
            stream: 0,
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            logit_bias: Vec::new(),
        }
    }
}

impl Sampling {
    /// Draws from the model's own law with this seed.
    pub fn seeded(seed: u64) -> Self {
        Sampling {
            temperature: 1.0,
            seed,
            ..Sampling::default()
        }
    }
}

/// What becomes of an answer for which the tokens are few.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnBudget {
    /// Under a grammar, masks leave only what can still be completed in time. Without one the answer is cut.
    #[default]
    Complete,
    /// Nothing is steered; what is not complete in time is cut. Not with the global law, whose texts are whole.
    Cut,
    /// Nothing is steered; what is not complete in time fails with [`EngineError::OutOfTokens`]. Not with the global law.
    Fail,
}

/// The law that an answer is drawn from, where `p` is the warped model and `L` the grammar's texts.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum LawChoice {
    /// Every token from `p` restricted to what the grammar allows there. One pass, and tokens stream as they are drawn.
    #[default]
    Local,
    /// The whole text from `p` restricted to `L`, exactly: attempts are drawn until one is accepted. What is learned
    /// from failures is kept and makes the next attempt likelier. Nothing streams before acceptance.
    Global {
        /// The most attempts; at least 1.
        max_attempts: usize,
        /// What becomes of an answer none of whose attempts is accepted: [`EngineError::AttemptsExhausted`], or one drawn as
        /// under the local law, which is tagged [`LawTag::GlobalWeighted`] and whose weight leads back to the global law, or a
        /// text of a Markov chain over what the attempts have learned, tagged [`LawTag::Mcmc`].
        fallback: Fallback,
    },
    /// Near the global law: like the local one, corrected by what the texts before have taught
    /// ([`Attempt::adaptive`](lexiform::law::Attempt::adaptive)). Answers of one request teach one another, and requests with
    /// [`Request::share_attempts`] as well.
    Asap,
    /// Near the global law: particles with weights, resampled on the way ([`Particles`](lexiform::law::Particles)). The
    /// answers are drawn from them by weight, so several of one request may be the same text.
    Smc {
        /// How many texts are under way; at least as many as answers.
        particles: usize,
        /// They are resampled when their effective size is below this share of their number; above 0, at most 1.
        threshold: f64,
        /// How.
        resampling: Resampling,
    },
    /// Near the global law: answers drawn by weight from so many texts of the local law.
    Sir {
        /// How many texts; at least as many as answers.
        candidates: usize,
    },
    /// No law: the likeliest texts that a beam search finds. What is drawn is not left to chance, so temperature and filters
    /// are part of what is likely.
    Beam {
        /// Prefixes followed at a time; at least as many as answers.
        width: usize,
        /// A text of `t` tokens has the score `ln P / t^length_penalty`; from 0 to 10.
        length_penalty: f64,
        /// The search ends once this many times the width texts are finished, if not before; above 0.
        patience: Option<f64>,
    },
    /// Near the global law: a Markov chain of texts for each answer ([`Chain`](lexiform::law::Chain)).
    Mcmc {
        /// How many texts are proposed after the first.
        steps: u32,
        /// Where a text is cut to propose another.
        cuts: Cuts,
    },
}

impl LawChoice {
    /// How many branches one request for so many answers has under way at most.
    pub(crate) fn branches(self, answers: usize) -> usize {
        match self {
            LawChoice::Local | LawChoice::Global { .. } | LawChoice::Asap => answers,
            LawChoice::Smc { particles, .. } => particles,
            LawChoice::Sir { candidates } => candidates,
            // Each beam may leave a text that has ended and is not told yet.
            LawChoice::Beam { width, .. } => 2 * width,
            LawChoice::Mcmc { .. } => answers + 1,
        }
    }
}

/// Where drafts come from, and how those of a draft model are verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speculation {
    /// Text that the grammar leaves no choice about.
    pub forced: bool,
    /// What followed the last few tokens when they occurred before, in the prompt, the answer or [`Request::reference`].
    pub lookup: bool,
    /// The draft model that the engine was started with, if there is one.
    pub model: bool,
    /// The most tokens drafted for one pass, over all branches of the draft.
    pub max_draft: usize,
    /// How many different continuations lookup may offer, where the last words have gone on in several ways. With more than
    /// one a draft is a tree, whose branches share [`max_draft`](Self::max_draft).
    pub branches: usize,
    /// How the tokens of the draft model are verified. Tokens that no model sampled are always verified by drawing once.
    pub verification: Verification,
}

/// How tokens that a draft model sampled are verified. Both ways are exact: the law of the answer is the one without
/// drafts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verification {
    /// The draft model draws with random numbers of its own, and a token with probability `p` under the request's law and
    /// `q` under the draft model's is accepted with probability `min(1, p/q)`. This accepts the most, `1 − TV(p, q)` of
    /// the tokens. The same seed gives a text of the same law, but not the same text as without drafts, nor the same in
    /// every company: which random number decides about a token depends on whether it was drafted.
    ///
    /// Where nothing is left to chance (at temperature 0) and under the global law, drafts are verified by drawing once. Under the
    /// global law and that of [`LawChoice::Asap`] the rows of all drafts teach what attempts would have to fail to find out, except
    /// for what a draft model drew: an answer takes fewer attempts, and its text depends on what was drafted.
    #[default]
    Residual,
    /// The request's own random numbers draw the token as if nothing were drafted, and the draft is accepted if it is this
    /// token. The draft model draws with the same numbers, to guess it. The same seed gives the same text, drafted or not;
    /// far fewer drafts are accepted where neither model is sure.
    DrawOnce,
}

impl Speculation {
    /// One token a pass.
    pub fn none() -> Self {
        Speculation {
            forced: false,
            lookup: false,
            model: false,
            max_draft: 0,
            branches: 1,
            verification: Verification::Residual,
        }
    }

    /// All sources, up to eight tokens.
    pub fn all() -> Self {
        Speculation {
            forced: true,
            lookup: true,
            model: true,
            max_draft: 8,
            branches: 1,
            verification: Verification::Residual,
        }
    }
}

/// What happened to a request. Events arrive on the engine's threads: a sink must not block.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// One more token. End tokens are not reported.
    Token {
        /// The token.
        token: u32,
        /// What it writes; empty for special tokens.
        bytes: Vec<u8>,
        /// `ln` of the probability that the model itself gave the token, before temperature, filters and mask; for those
        /// who asked by [`Request::logprobs`], because it takes a look at the whole row.
        logprob: Option<f32>,
        /// `ln` of the mass that the warped law put on the allowed tokens here (at temperature 0: as at temperature 1).
        log_mass: f32,
        /// `ln` of the probability of the token among those that are allowed here: under the warped law, after filters
        /// and mask (at temperature 0: as at temperature 1, and nothing is cut).
        log_share: f32,
        /// The most likely tokens under [`Request::logprobs_of`], if asked for.
        top: Vec<(u32, f32)>,
        /// What else might have come at this position, for those who asked by [`Request::candidates`].
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
    /// The model's most likely tokens and the most likely of those that may be drawn, by the model's own probability.
    pub likely: Vec<Candidate>,
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
    /// `ln` of its probability among the tokens that may be drawn, as [`Event::Token::log_share`] has it: minus infinity where
    /// the mask or a filter leaves the token out.
    pub log_share: f32,
}

/// Whose law log-probabilities are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LogprobsOf {
    /// The model's own, before temperature, filters and mask.
    #[default]
    Model,
    /// That of [`Event::Token::log_share`]: after all of them. Where fewer tokens are allowed than were asked for, there
    /// are fewer.
    Allowed,
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
    /// `ln P(w)` of the answer under the *warped* model: after penalties, bias, temperature and, where these cut before the
    /// mask, filters, but before the mask (at temperature 0: as at temperature 1). It is not the model's own, which
    /// [`Event::Token::logprob`] tells, and lacks the end where nobody asked for its probability
    /// ([`Request::weigh_end`]). The table of numbers in [`lexiform::law`] says what it is under which law.
    pub log_probability: f64,
    /// The log importance weight of the answer with respect to the global law, as the table of numbers in
    /// [`lexiform::law`] has it for each law. For a local sample the sum over positions of `ln` of the mass on allowed tokens;
    /// 0 for a [`LawTag::GlobalExact`] one, which is a sample of the normalised law already and is not to be mixed with
    /// weights of answers of other laws.
    ///
    /// `None` where there is none that leads to that law: for greedy answers and the best of several, for answers whose end
    /// was not weighed ([`Request::weigh_end`]), and for those that were cut.
    pub log_weight: Option<f64>,
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Those of them whose keys and values were already cached.
    pub cached_tokens: usize,
    /// Tokens generated, the end token included when one was drawn.
    pub completion_tokens: usize,
    /// Tokens drafted.
    pub drafted: usize,
    /// Drafted tokens confirmed.
    pub accepted: usize,
    /// Of those the tokens that were copied from [`Request::reference`].
    pub accepted_predictions: usize,
    /// Tokens that were drafted from there and not confirmed. What was not drafted counts neither way.
    pub rejected_predictions: usize,
    /// Attempts of the global law; 1 otherwise.
    pub attempts: usize,
    /// How long it took.
    pub times: Times,
    /// How [`Request::max_tokens`] narrowed what the grammar allows, if it did.
    pub steered: Option<Steered>,
    /// What a law that draws several texts for an answer says of them.
    pub diagnostics: Option<Diagnostics>,
}

/// How near an answer is to its law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Diagnostics {
    /// Of [`LawChoice::Smc`] and [`LawChoice::Sir`], whose [`Outcome::log_weight`] is the log of the estimate of `Z`.
    Particles {
        /// How many there were.
        particles: usize,
        /// How many of equal weight would have said as much, at the end.
        effective_size: f64,
        /// How often they were resampled.
        resampled: usize,
    },
    /// Of [`LawChoice::Mcmc`], and of [`Fallback::Chain`].
    Chain {
        /// Texts proposed after the first.
        steps: usize,
        /// Those of them that were accepted.
        moves: usize,
    },
    /// Of [`LawChoice::Beam`].
    Beam {
        /// Prefixes followed at a time.
        width: usize,
        /// The score of the text.
        score: f64,
    },
}

/// An answer that its tokens did not leave as it would have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steered {
    /// How many tokens stood before the first one whose choice was narrowed; the end counts as one.
    pub from: usize,
    /// The tokens that there were.
    pub max_tokens: usize,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// An end token, or the end of the grammar.
    Stop,
    /// `max_tokens` were generated. Not under a grammar with [`OnBudget::Complete`]: then the answer is complete by then.
    Length,
    /// The caller gave up.
    Cancelled,
}
