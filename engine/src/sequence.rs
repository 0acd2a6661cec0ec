//! One request on its way: plain data, moved between the scheduler's queues.

use crate::blocks::Table;
use crate::engine::{QueuePlace, Sink};
use crate::error::EngineError;
use crate::request::{Event, Finish, LawTag, Origin, Outcome, Request};
use crate::{Grammar, State};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A token that may come next, to be verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Draft {
    pub(crate) token: u32,
    pub(crate) origin: Origin,
}

/// A request with everything that has become of it so far.
pub(crate) struct Sequence {
    pub(crate) id: u64,
    pub(crate) request: Request,
    /// The prompt and what was generated.
    pub(crate) tokens: Vec<u32>,
    /// How many of the tokens have their keys and values in the cache.
    pub(crate) computed: usize,
    pub(crate) table: Table,
    /// Where the grammar is after all tokens.
    pub(crate) state: Option<State>,
    /// What is fed beyond the tokens in the next pass.
    pub(crate) drafts: Vec<Draft>,
    pub(crate) log_probability: f64,
    pub(crate) log_weight: f64,
    pub(crate) cached: usize,
    pub(crate) drafted: usize,
    pub(crate) accepted: usize,
    pub(crate) attempts: usize,
    /// Held until it runs for the first time; a preempted sequence does not count as waiting, nor its text as cached.
    pub(crate) place: Option<QueuePlace>,
    sink: Sink,
    /// The client has gone, or heard the last event.
    pub(crate) closed: bool,
    /// It did not end as it should.
    pub(crate) failed: bool,
}

impl Sequence {
    pub(crate) fn new(id: u64, request: Request, sink: Sink, place: QueuePlace) -> Self {
        Sequence {
            id,
            tokens: request.prompt.clone(),
            state: request.grammar.as_ref().map(Grammar::start),
            request,
            computed: 0,
            table: Table::default(),
            drafts: Vec::new(),
            log_probability: 0.0,
            log_weight: 0.0,
            cached: 0,
            drafted: 0,
            accepted: 0,
            attempts: 1,
            place: Some(place),
            sink,
            closed: false,
            failed: false,
        }
    }

    /// Tokens generated so far.
    pub(crate) fn generated(&self) -> &[u32] {
        &self.tokens[self.request.prompt.len()..]
    }

    /// Tokens that may still be generated.
    pub(crate) fn remaining(&self) -> usize {
        self.request.max_tokens.saturating_sub(self.generated().len())
    }

    /// Tokens that must be fed before the next one can be drawn.
    pub(crate) fn unfed(&self) -> usize {
        self.tokens.len() - self.computed
    }

    /// The states before each of the next pass's rows: now, and after each draft.
    pub(crate) fn states_along_drafts(&self) -> Option<(Grammar, Vec<State>)> {
        let grammar = self.request.grammar.as_ref()?;
        let mut states = vec![self.state?];
        for draft in &self.drafts {
            states.push(grammar.step(*states.last()?, draft.token)?);
        }
        Some((grammar.clone(), states))
    }

    /// Tells the client. A client that says no, or whose sink panics, is gone.
    pub(crate) fn send(&mut self, event: Event) {
        if self.closed {
            return;
        }
        let last = !matches!(event, Event::Token { .. });
        let wants_more = catch_unwind(AssertUnwindSafe(|| (self.sink)(event))).unwrap_or(false);
        self.closed = last || !wants_more;
        self.failed |= !last && !wants_more;
    }

    pub(crate) fn finish(&mut self, finish: Finish) {
        let outcome = self.outcome(finish);
        self.send(Event::Done(outcome));
    }

    pub(crate) fn fail(&mut self, error: EngineError) {
        self.failed |= !self.closed;
        self.send(Event::Failed(error));
    }

    fn outcome(&self, finish: Finish) -> Outcome {
        Outcome {
            finish,
            law: self.law_tag(),
            log_probability: self.log_probability,
            log_weight: self.log_weight,
            prompt_tokens: self.request.prompt.len(),
            cached_tokens: self.cached,
            completion_tokens: self.generated().len(),
            drafted: self.drafted,
            accepted: self.accepted,
            attempts: self.attempts,
        }
    }

    fn law_tag(&self) -> LawTag {
        match &self.request {
            request if request.sampling.temperature == 0.0 => LawTag::Greedy,
            Request { grammar: None, .. } => LawTag::Raw,
            Request { .. } => LawTag::Local,
        }
    }
}

/// Whatever happens to a sequence, its client hears a last event.
impl Drop for Sequence {
    fn drop(&mut self) {
        self.fail(EngineError::Stopped);
    }
}
