//! The input and output of the engine: plain data.
//!
//! ```text
//!   Request ─┬─ prompt        tokens, what healing removed, text that is likely to be repeated
//!            ├─ constraints   grammar, monitors, end tokens
//!            ├─ limits        tokens, deadline, owner, priority
//!            ├─ task          Draw (a law) │ Search │ Weigh (options)
//!            ├─ sampling      temperature, filters, penalties, seed
//!            ├─ speculation   what is drafted
//!            └─ reporting     log-probabilities, candidates
//! ```
//!
//! The three tasks exclude each other by type. One table ([`conflicts`]) lists which settings each task rules
//! out; the engine's refusals, the errors of services and the documentation are generated from it.

mod answer;
pub(crate) mod driver;
mod healing;
pub(crate) mod law;
pub(crate) mod options;
mod preamble;
mod sampling;
pub(crate) mod search;
pub(crate) mod searches;
mod speculation;
mod table;
mod task;
pub(crate) mod watched;

use crate::Grammar;
use crate::fairness::pool::Owner;
pub use answer::{
    Candidate, Candidates, Contrasted, Diagnostics, Drafted, Event, Fate, Finish, Origin, Outcome, Particle,
    Steered, SteeredPreamble,
};
pub use preamble::{Preamble, PreambleLimit, PreambleTokens};
pub(crate) use preamble::{PreambleBudget, PreambleReader};
pub use sampling::{AmateurRows, ContrastWith, PenaltyScope, Sampling};
pub use search::Search;
pub use speculation::{Speculation, Verification};
use std::sync::Arc;
use std::time::{Duration, Instant};
pub use table::{Feature, Method, conflicts, support};
pub use task::{Draw, Task, Weigh};
pub use watched::{Tilt, Watched};

/// A prompt and the task to perform on it.
///
/// # Examples
///
/// ```
/// use lexiform_engine::{Draw, Law, Request, Sampling, Search, Task};
///
/// // Three texts of the model itself, at most 64 tokens each.
/// let texts = Request::new(vec![1, 2, 3], 64)
///     .sampling(Sampling::seeded(7))
///     .task(Draw { answers: 3, ..Draw::default() });
/// // The two likeliest texts that a beam search finds.
/// let search = Search::Beam { width: 4, length_penalty: 1.0, patience: None };
/// let likely = Request::new(vec![1, 2, 3], 64).task(Task::Search { search, answers: 2 });
/// assert_eq!((texts.task.answers(), likely.task.answers()), (3, 2));
/// # let _ = Law::Local;
/// ```
#[derive(Clone, Debug)]
pub struct Request {
    /// The tokens to continue.
    pub prompt: Prompt,
    /// The constraints that the answers obey, and the tokens that end them.
    pub constraints: Constraints,
    /// The limits on tokens and time, and the owner and priority of the request.
    pub limits: AnswerLimits,
    /// The task: draw texts, search for them, or weigh them.
    pub task: Task,
    /// How the model's distribution is warped, and the seed.
    pub sampling: Sampling,
    /// The drafts to propose. Drafting never changes the law of the answer, only the time it takes, except
    /// under [`Law::Lossy`](lexiform_law::Law::Lossy); [`Speculation::verification`] determines whether the
    /// text of a seed stays the same, too.
    pub speculation: Speculation,
    /// The details to report about the tokens of the answers.
    pub reporting: Reporting,
    /// Accepts the request only if the same seed gives the same text whatever else the engine does, and
    /// otherwise refuses it with the reason. The model must compute this way
    /// ([`Model::variance`](crate::Model::variance)), and no text of the request may depend on which of
    /// several texts advances first.
    pub batch_invariant: bool,
}

/// The tokens that a request continues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    /// The tokens to continue; at least one.
    pub tokens: Vec<u32>,
    /// The bytes that were removed from the end of the prompt, so that the model spells them anew
    /// ([`Request::heal`]): the [`grammar`](Constraints::grammar) begins with these bytes, and
    /// [`Event::Token::bytes`] reports what comes after them. Tokens that write nothing else are reported
    /// with no bytes, and count. Cannot be combined with [`monitors`](Constraints::monitors) or
    /// [`Task::Weigh`].
    pub healed: Vec<u8>,
    /// The bytes of the answer with which the prompt ends: [the grammar](Constraints::grammar) is that of the
    /// texts after them ([`Grammar::after`]), and penalties find the text of JSON behind them.
    pub begun: Vec<u8>,
    /// Text that the answer is likely to repeat in whole or in part, as tokens: lookup copies from it, too.
    /// May be empty.
    pub reference: Vec<u32>,
    /// What separates the texts of an owner: the keys and values of a text, and the attempts that requests
    /// share, are found only by requests of the owner with the same salt. `None` is a salt like any other.
    pub cache_salt: Option<Arc<str>>,
}

/// The constraints that the answers of a request obey, and the tokens that end them.
#[derive(Clone, Debug)]
pub struct Constraints {
    /// The language of the answers; `None` lets the model write freely.
    pub grammar: Option<Grammar>,
    /// Programs that the text must satisfy besides the grammar, queried token by token: the law is the
    /// model's law restricted to all of them. Under a filter that cuts masked rows, the tokens drawn from are
    /// those that it keeps of the tokens not refused so far.
    pub monitors: Vec<Watched>,
    /// An energy by which texts weigh more or less; only under laws that have particles. It takes its time
    /// from [`monitor_time`](Self::monitor_time), too.
    pub tilt: Option<Tilt>,
    /// The time that all monitors together may take for the tokens of one pass before the request fails.
    pub monitor_time: Duration,
    /// Tokens that end the answer in addition to the vocabulary's end tokens. They apply only without a
    /// grammar: with one, the grammar determines where the text ends.
    pub stop_tokens: Vec<u32>,
    /// `true` to continue past the vocabulary's end tokens. Only without a grammar.
    pub ignore_eos: bool,
}

impl Constraints {
    /// Returns `true` if a program outside this one is asked.
    pub(crate) fn is_remote(&self) -> bool {
        let is_remote = self.monitors.iter().any(|monitor| monitor.is_remote);
        is_remote || self.tilt.as_ref().is_some_and(|tilt| tilt.is_remote)
    }
}

impl Default for Constraints {
    fn default() -> Self {
        Constraints {
            grammar: None,
            monitors: Vec::new(),
            tilt: None,
            monitor_time: Duration::from_secs(1),
            stop_tokens: Vec::new(),
            ignore_eos: false,
        }
    }
}

/// The limits of the answers of a request, and its place in the queue.
#[derive(Clone, Debug)]
pub struct AnswerLimits {
    /// The most tokens to generate, the end token included.
    ///
    /// With a grammar this is part of the constraint, unless [`on_budget`](Self::on_budget) says otherwise:
    /// the answer is complete within this number of tokens, and a number below the shortest answer is
    /// refused. All laws are then over the texts of the grammar that are short enough.
    pub max_tokens: usize,
    /// The fewest tokens to generate, the end token not counted: before them, no token ends the text where
    /// another one may come. Needs a grammar and a law that draws token by token; zero requires nothing.
    pub min_tokens: usize,
    /// The treatment of an answer that does not fit into `max_tokens`.
    pub on_budget: OnBudget,
    /// The most tokens of the free text before the answer; `None` limits them only by `max_tokens`. Part of
    /// the constraint whatever `on_budget` says, and all laws are over the texts that keep it. Needs the
    /// grammar that it was made for.
    pub preamble: Option<PreambleLimit>,
    /// The owner of the request: owners share the batch, the queue and the mask threads equally, and what is
    /// kept of a request (its keys and values, what is learned from its answers and attempts) is found by
    /// requests of the same owner only, unless [`EngineConfig`](crate::EngineConfig) says otherwise.
    pub owner: Owner,
    /// The rank of the request among those of its owner: higher priorities go first, and also preempt running
    /// requests. The requests of other owners are not affected.
    pub priority: i32,
    /// The time at which the request ends with [`EngineError::Late`](crate::EngineError::Late), unless it has
    /// ended by then. When a quarter of the time from its submission is left, attempts of the global law end
    /// and their [`Fallback`](lexiform_law::Fallback) takes over, if there is one. Of the requests of one
    /// owner with one priority, the one with the earlier deadline is admitted first.
    pub deadline: Option<Instant>,
}

/// The details to report about the tokens of the answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reporting {
    /// Requests the model's `n` most likely tokens at every position (`Some(0)`: only the chosen token's own
    /// log-probability).
    pub logprobs: Option<u8>,
    /// The law whose most likely tokens are reported.
    pub logprobs_of: LogprobsOf,
    /// Requests the alternatives at every position ([`Event::Token::candidates`]): how many tokens were
    /// allowed, and up to this many each of the model's most likely tokens and of the most likely ones that
    /// may be drawn.
    pub candidates: Option<u8>,
    /// `true` to spend an extra pass on the probability of a forced end token, and to include it in
    /// [`Outcome::log_weight`]. Otherwise, when the grammar leaves only the end token, the engine finishes
    /// without computing its probability, so that factor is missing. All laws over whole texts always include
    /// it.
    pub weigh_end: bool,
}

impl Request {
    /// A greedy request for one answer without a grammar.
    pub fn new(prompt: Vec<u32>, max_tokens: usize) -> Self {
        Request {
            prompt: Prompt {
                tokens: prompt,
                ..Prompt::default()
            },
            constraints: Constraints::default(),
            limits: AnswerLimits {
                max_tokens,
                min_tokens: 0,
                on_budget: OnBudget::Complete,
                preamble: None,
                owner: None,
                priority: 0,
                deadline: None,
            },
            task: Task::default(),
            sampling: Sampling::default(),
            speculation: Speculation::none(),
            reporting: Reporting::default(),
            batch_invariant: false,
        }
    }

    /// Sets the task to perform on the prompt.
    pub fn task(self, task: impl Into<Task>) -> Self {
        let task = task.into();
        Request { task, ..self }
    }

    /// Sets the language of the answers.
    pub fn grammar(mut self, grammar: impl Into<Option<Grammar>>) -> Self {
        self.constraints.grammar = grammar.into();
        self
    }

    /// Sets the monitors that the answers must satisfy besides the grammar.
    pub fn monitors(mut self, monitors: Vec<Watched>) -> Self {
        self.constraints.monitors = monitors;
        self
    }

    /// Sets the energy by which texts weigh more or less.
    pub fn tilt(mut self, tilt: Tilt) -> Self {
        self.constraints.tilt = Some(tilt);
        self
    }

    /// Sets how the model's distribution is warped, and the seed.
    pub fn sampling(self, sampling: Sampling) -> Self {
        Request { sampling, ..self }
    }

    /// Sets the drafts to propose.
    pub fn speculation(self, speculation: Speculation) -> Self {
        Request { speculation, ..self }
    }

    /// Sets the maximum number of tokens of an answer.
    pub fn max_tokens(mut self, max_tokens: usize) -> Self {
        self.limits.max_tokens = max_tokens;
        self
    }

    /// Sets the fewest tokens of an answer.
    pub fn min_tokens(mut self, min_tokens: usize) -> Self {
        self.limits.min_tokens = min_tokens;
        self
    }

    /// Sets the treatment of an answer that does not fit into its tokens.
    pub fn on_budget(mut self, on_budget: OnBudget) -> Self {
        self.limits.on_budget = on_budget;
        self
    }

    /// Sets the most tokens of the free text before the answer.
    pub fn preamble(mut self, limit: impl Into<Option<PreambleLimit>>) -> Self {
        self.limits.preamble = limit.into();
        self
    }

    /// Sets the owner of the request.
    pub fn owner(mut self, owner: Owner) -> Self {
        self.limits.owner = owner;
        self
    }

    /// Sets what separates the texts of the request from others of its owner.
    pub fn cache_salt(mut self, salt: Option<Arc<str>>) -> Self {
        self.prompt.cache_salt = salt;
        self
    }

    /// Sets the rank of the request among those of its owner.
    pub fn priority(mut self, priority: i32) -> Self {
        self.limits.priority = priority;
        self
    }

    /// Sets the time at which the request ends, unless it has ended by then.
    pub fn deadline(mut self, deadline: impl Into<Option<Instant>>) -> Self {
        self.limits.deadline = deadline.into();
        self
    }

    /// Sets the time that all monitors together may take for the tokens of one pass.
    pub fn monitor_time(mut self, time: Duration) -> Self {
        self.constraints.monitor_time = time;
        self
    }

    /// Sets the tokens that end an answer without a grammar.
    pub fn stop_tokens(mut self, tokens: Vec<u32>) -> Self {
        self.constraints.stop_tokens = tokens;
        self
    }

    /// Sets whether an answer without a grammar continues past the vocabulary's end tokens.
    pub fn ignore_eos(mut self, ignores: bool) -> Self {
        self.constraints.ignore_eos = ignores;
        self
    }

    /// Sets text that the answer is likely to repeat.
    pub fn reference(mut self, tokens: Vec<u32>) -> Self {
        self.prompt.reference = tokens;
        self
    }

    /// Sets whether the request is refused if its text may depend on other requests.
    pub fn batch_invariant(self, batch_invariant: bool) -> Self {
        Request {
            batch_invariant,
            ..self
        }
    }

    /// Sets the details to report about the tokens.
    pub fn reporting(self, reporting: Reporting) -> Self {
        Request { reporting, ..self }
    }
}

/// The treatment of an answer that does not fit into its tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnBudget {
    /// Under a grammar, masks allow only what can still be completed in time. Without one the answer is cut.
    #[default]
    Complete,
    /// Nothing is steered; an answer that is not complete in time is cut. Cannot be combined with the global
    /// law, whose texts are whole.
    Cut,
    /// Nothing is steered; an answer that is not complete in time fails with
    /// [`EngineError::OutOfTokens`](crate::EngineError::OutOfTokens). Cannot be combined with the global law.
    Fail,
}

/// The law that reported log-probabilities belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LogprobsOf {
    /// The model's own, before temperature, filters and mask.
    #[default]
    Model,
    /// The law of [`Event::Token::log_share`]: after temperature, filters and mask. If fewer tokens are
    /// allowed than were requested, fewer are reported.
    Allowed,
}
