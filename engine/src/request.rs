//! What goes into the engine and what comes out of it: plain data.

pub(crate) mod driver;
mod healing;
pub(crate) mod law;
pub(crate) mod options;
pub(crate) mod search;
pub(crate) mod searches;
mod speculation;
pub(crate) mod watched;

use crate::Grammar;
use crate::error::EngineError;
use crate::fairness::pool::Owner;
use crate::metrics::meters::Times;
use crate::request::options::{Options, Weighed};
use lexiform_law::{Cuts, Fallback, LawTag, Mirostat, Resampling, TypicalAcceptance};
pub use search::Search;
pub use speculation::{Speculation, Verification};
use std::sync::Arc;
use std::time::{Duration, Instant};
pub use watched::Watched;

/// One text to continue.
#[derive(Clone, Debug)]
pub struct Request {
    /// The tokens to continue; at least one.
    pub prompt: Vec<u32>,
    /// What was removed from the end of the prompt, so that the model spells it anew ([`heal`](Self::heal)):
    /// the [`grammar`](Self::grammar) begins with these bytes, and [`Event::Token::bytes`] tells what comes
    /// after them. Tokens that write nothing else are told with no bytes, and count. Not with
    /// [`monitors`](Self::monitors) or [`options`](Self::options).
    pub healed: Vec<u8>,
    /// Whose request it is: owners share the batch, the queue and the mask threads equally.
    pub owner: Owner,
    /// Which of the requests of one owner goes first: the one with the higher priority, also in the place of
    /// one that runs. The requests of others are not affected.
    pub priority: i32,
    /// When the request ends with [`EngineError::Late`], unless it has ended by then. Of the requests of one
    /// owner with one priority the one with the earlier deadline is admitted first.
    pub deadline: Option<Instant>,
    /// What the continuation must match; `None` lets the model write freely.
    pub grammar: Option<Grammar>,
    /// Texts that are weighed: nothing is drawn, and [`Outcome::options`] says how likely each is to follow
    /// the prompt. Under the local law, as one sample, without [`best_of`](Self::best_of), and `max_tokens`
    /// must be enough for the longest of them.
    pub options: Option<Arc<Options>>,
    /// Of [`options`](Self::options), only so many of the likeliest are wanted. They are found without
    /// weighing those that begin with what is less likely than they are. Each option must be one token
    /// sequence.
    pub likeliest_options: Option<usize>,
    /// What the text must obey beside the grammar, asked about token by token: the law is that of the model
    /// inside all of them. The local law, and particles whose proposal is not [`Proposing::Twisted`], can
    /// have monitors. Under a filter that cuts masked rows, the tokens drawn from are those that it keeps of
    /// what has not been refused yet.
    pub monitors: Vec<Watched>,
    /// How long all monitors may take for the tokens of one pass before the request fails.
    pub monitor_time: Duration,
    /// How the model's law is warped and drawn from.
    pub sampling: Sampling,
    /// How many answers: independent samples of the one prompt, which is read once. Each draws from random
    /// numbers of its own, so that the answers of different seeds have nothing in common either.
    pub samples: usize,
    /// Draws so many candidates, and answers with those that the model finds likeliest for each token of
    /// theirs. Such an answer is of no simple law, and nothing of it is heard before all candidates have
    /// ended.
    pub best_of: Option<usize>,
    /// The most tokens to generate, the end token included.
    ///
    /// With a grammar this is part of the constraint, unless [`on_budget`](Self::on_budget) says otherwise:
    /// the answer is complete within so many tokens, and a number below the shortest answer is refused. All
    /// laws are about the texts of the grammar that are short enough.
    pub max_tokens: usize,
    /// What becomes of an answer for which `max_tokens` are few.
    pub on_budget: OnBudget,
    /// Which law the answer is drawn from. Without a grammar both are the model's own.
    pub law: LawChoice,
    /// Searches for likely texts instead of drawing some. Then [`law`](Self::law) is [`LawChoice::Local`],
    /// and says nothing.
    pub search: Option<Search>,
    /// Accepts drafts that are likely enough, in place of verifying them by the law: faster, and of no law
    /// that can be written down. The answer is tagged [`LawTag::Lossy`], has no weight, and depends on what
    /// was drafted, so that a seed does not name its text. At temperature 0 nothing is given up: the draft
    /// that is accepted is the most likely token, and the tag is [`LawTag::Greedy`]. Under the local law,
    /// without [`search`](Self::search), [`monitors`](Self::monitors), [`options`](Self::options) and
    /// [`best_of`](Self::best_of).
    pub lossy: Option<TypicalAcceptance>,
    /// Whether the attempts of the global law learn from those of other requests that agree in all but the
    /// seed and ask for this too. Later ones then need fewer attempts, from the same law, but which text a
    /// seed gives depends on what was asked before. The samples of one request learn from each other in any
    /// case.
    pub share_attempts: bool,
    /// Takes the request only if the same seed gives the same text whatever else the engine does, and refuses
    /// it otherwise with the reason. The model must compute so ([`Model::variance`](crate::Model::variance)),
    /// and no text of the request may depend on which of several is ahead.
    pub batch_invariant: bool,
    /// Text that the answer is likely to repeat in whole or in part, as tokens: lookup copies from it, too.
    /// Empty for none.
    pub reference: Vec<u32>,
    /// What is drafted ahead. Never changes the law of the answer, only the time it takes, but for those who
    /// ask for that by [`lossy`](Self::lossy); [`Speculation::verification`] says whether the text of a seed
    /// stays the same, too.
    pub speculation: Speculation,
    /// Asks for the model's `n` most likely tokens at every position (`Some(0)`: only the chosen token's
    /// own).
    pub logprobs: Option<u8>,
    /// Whose law the most likely tokens are of.
    pub logprobs_of: LogprobsOf,
    /// Asks at every position what else might have come ([`Event::Token::candidates`]): how many tokens were
    /// allowed, and up to this many each of the model's most likely tokens and of the most likely ones that
    /// may be drawn.
    pub candidates: Option<u8>,
    /// Tokens that end the answer beside the vocabulary's end tokens. They only apply without a grammar: with
    /// one, the grammar says where the text ends.
    pub stop_tokens: Vec<u32>,
    /// Goes on past end tokens, for measurements. Only without a grammar.
    pub ignore_eos: bool,
    /// When the grammar leaves only the end token, the engine finishes without asking the model for its
    /// probability, so that factor is missing from [`Outcome::log_weight`]. `true` spends the extra pass and
    /// includes it. The global law always does.
    pub weigh_end: bool,
}

impl Request {
    /// A greedy request without grammar.
    pub fn new(prompt: Vec<u32>, max_tokens: usize) -> Self {
        Request {
            prompt,
            healed: Vec::new(),
            owner: None,
            priority: 0,
            deadline: None,
            grammar: None,
            options: None,
            likeliest_options: None,
            monitors: Vec::new(),
            monitor_time: Duration::from_secs(1),
            sampling: Sampling::default(),
            samples: 1,
            best_of: None,
            max_tokens,
            on_budget: OnBudget::Complete,
            law: LawChoice::Local,
            search: None,
            lossy: None,
            share_attempts: false,
            batch_invariant: false,
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
    /// Keeps the smallest set of tokens of nearly the expected surprise with at least this probability; 1
    /// keeps all.
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
    /// Which of the sequences of random numbers that a seed has is that of the first sample; the others
    /// follow. Requests with one seed that are to be independent take numbers that do not overlap.
    pub stream: u32,
    /// Divides the positive logits of the tokens of the prompt and the answer so far, and multiplies the
    /// negative ones; 1 changes nothing.
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
    /// Nothing is steered; what is not complete in time is cut. Not with the global law, whose texts are
    /// whole.
    Cut,
    /// Nothing is steered; what is not complete in time fails with [`EngineError::OutOfTokens`]. Not with the
    /// global law.
    Fail,
}

/// The law that an answer is drawn from, where `p` is the warped model and `L` the grammar's texts.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum LawChoice {
    /// Every token from `p` restricted to what the grammar allows there. One pass, and tokens stream as they
    /// are drawn.
    #[default]
    Local,
    /// The whole text from `p` restricted to `L`, exactly: attempts are drawn until one is accepted. What is
    /// learned from failures is kept and makes the next attempt likelier. Nothing streams before acceptance.
    Global {
        /// The most attempts; at least 1.
        max_attempts: usize,
        /// What becomes of an answer none of whose attempts is accepted: [`EngineError::AttemptsExhausted`],
        /// or one drawn as under the local law, which is tagged [`LawTag::GlobalWeighted`] and whose weight
        /// leads back to the global law, or a text of a Markov chain over what the attempts have learned,
        /// tagged [`LawTag::Mcmc`].
        fallback: Fallback,
    },
    /// Near the global law: like the local one, corrected by what the texts before have taught
    /// ([`Attempt::adaptive`](lexiform_law::Attempt::adaptive)). Answers of one request teach one another,
    /// and requests with [`Request::share_attempts`] as well.
    Asap,
    /// Approximately the global law: each token from `p` without what is known to end in errors, and after an
    /// error back as far as the error weighs ([`Aprad`](lexiform_law::Aprad)). Nothing streams before the
    /// end.
    Aprad {
        /// How readily a text goes back: 0 redraws the last token alone, 1 is the method of the paper; at
        /// most 16.
        exponent: u32,
        /// The most times a text goes back, at least 1; then the answer fails with
        /// [`EngineError::AttemptsExhausted`].
        max_errors: usize,
    },
    /// Near the global law: particles with weights, resampled on the way
    /// ([`Particles`](lexiform_law::Particles)). The answers are drawn from them by weight, so several of one
    /// request may be the same text.
    Smc {
        /// How many texts are under way; at least as many as answers.
        particles: usize,
        /// They are resampled when their effective size is below this share of their number; above 0, at most
        /// 1.
        threshold: f64,
        /// How.
        resampling: Resampling,
        /// How they go on by a token.
        proposal: Proposing,
    },
    /// Near the global law: answers drawn by weight from so many texts of the local law.
    Sir {
        /// How many texts; at least as many as answers.
        candidates: usize,
        /// How they go on by a token.
        proposal: Proposing,
    },
    /// Near the global law: a Markov chain of texts for each answer ([`Chain`](lexiform_law::Chain)).
    Mcmc {
        /// How many texts are proposed after the first.
        steps: u32,
        /// Where a text is cut to propose another.
        cuts: Cuts,
    },
}

/// How particles go on by a token. All are properly weighted: the estimate of `Z` is unbiased with each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Proposing {
    /// From the masked row; the weight takes the mass of the mask as a factor.
    #[default]
    Masked,
    /// By asking the grammar about one token after the other ([`asked`](lexiform_law::asked)), so that no
    /// mask is computed unless many tokens in a row are not allowed; the factor is an estimate of that mass.
    Asked,
    /// In proportion to what the texts of this request have found out about how probable a valid end is
    /// ([`Twisted`](lexiform_law::Twisted)). Weights vary less than with masks where the texts have prefixes
    /// in common.
    Twisted,
}

impl LawChoice {
    /// How many branches one request for so many answers has under way at most.
    pub(crate) fn branches(self, answers: usize) -> usize {
        match self {
            LawChoice::Local | LawChoice::Global { .. } | LawChoice::Asap | LawChoice::Aprad { .. } => {
                answers
            }
            LawChoice::Smc { particles, .. } => particles,
            LawChoice::Sir { candidates, .. } => candidates,
            LawChoice::Mcmc { .. } => answers + 1,
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
        /// What it writes; empty for special tokens. Where the prompt was healed, without the bytes of
        /// [`Request::healed`].
        bytes: Vec<u8>,
        /// `ln` of the probability that the model itself gave the token, before temperature, filters and
        /// mask; for those who asked by [`Request::logprobs`], because it takes a look at the whole row.
        logprob: Option<f32>,
        /// `ln` of the mass that the warped law put on the allowed tokens here (at temperature 0: as at
        /// temperature 1).
        log_mass: f32,
        /// `ln` of the probability of the token among those that are allowed here: under the warped law,
        /// after filters and mask (at temperature 0: as at temperature 1, and nothing is cut).
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

/// Whose law log-probabilities are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LogprobsOf {
    /// The model's own, before temperature, filters and mask.
    #[default]
    Model,
    /// That of [`Event::Token::log_share`]: after all of them. Where fewer tokens are allowed than were asked
    /// for, there are fewer.
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
    /// `ln P(w)` of the answer under the *warped* model: after penalties, bias, temperature and, where these
    /// cut before the mask, filters, but before the mask (at temperature 0: as at temperature 1). It is not
    /// the model's own, which [`Event::Token::logprob`] tells, and lacks the end where nobody asked for its
    /// probability ([`Request::weigh_end`]). The table of numbers in [`lexiform_law`] says what it is under
    /// which law.
    pub log_probability: f64,
    /// The log importance weight of the answer with respect to the global law, as the table of numbers in
    /// [`lexiform_law`] has it for each law. For a local sample the sum over positions of `ln` of the mass on
    /// allowed tokens; 0 for a [`LawTag::GlobalExact`] one, which is a sample of the normalised law already
    /// and is not to be mixed with weights of answers of other laws.
    ///
    /// `None` where there is none that leads to that law: for greedy answers and the best of several, for
    /// answers whose end was not weighed ([`Request::weigh_end`]), and for those that were cut.
    pub log_weight: Option<f64>,
    /// Tokens of the prompt, without those that healing removed.
    pub prompt_tokens: usize,
    /// Those of them whose keys and values were already cached.
    pub cached_tokens: usize,
    /// Tokens generated, the end token included when one was drawn. Those that spell [`Request::healed`]
    /// count, too.
    pub completion_tokens: usize,
    /// Tokens drafted.
    pub drafted: usize,
    /// Drafted tokens confirmed.
    pub accepted: usize,
    /// Of those the tokens that were copied from [`Request::reference`].
    pub accepted_predictions: usize,
    /// Tokens that were drafted from there and not confirmed. What was not drafted counts neither way.
    pub rejected_predictions: usize,
    /// Attempts of the global law; under [`LawChoice::Aprad`] one more than the times the text went back; 1
    /// otherwise.
    pub attempts: usize,
    /// How long it took.
    pub times: Times,
    /// How [`Request::max_tokens`] narrowed what the grammar allows, if it did.
    pub steered: Option<Steered>,
    /// What a law that draws several texts for an answer says of them.
    pub diagnostics: Option<Diagnostics>,
    /// How likely each of [`Request::options`] is, in their order; of [`Request::likeliest_options`] those,
    /// the likeliest first. The tokens of such an answer are those of the tree of options whose probability
    /// was found out.
    pub options: Option<Vec<Weighed>>,
    /// The texts of [`LawChoice::Smc`] and [`LawChoice::Sir`] at the end, by one of which the answer was
    /// drawn; empty otherwise.
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
    /// Of [`LawChoice::Smc`] and [`LawChoice::Sir`], whose [`Outcome::log_weight`] is the log of the estimate
    /// of `Z`.
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
    /// Of [`Request::search`].
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
