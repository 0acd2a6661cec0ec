//! One request on its way: plain data, moved between the scheduler's queues.

use crate::blocks::Table;
use crate::engine::{QueuePlace, Sink};
use crate::error::EngineError;
use crate::masks::{self, Bounds, Wanted};
use crate::meters::Moments;
use crate::replay::Replay;
use crate::request::{Event, Finish, OnBudget, Origin, Outcome, Request, Steered};
use crate::sample::SharedTrie;
use crate::{Grammar, State};
use lexiform::law::{Walk, Warper};
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
    /// How many guessed tokens are worth feeding.
    pub(crate) reach: usize,
    pub(crate) warper: Warper,
    pub(crate) walk: Walk,
    /// What the walk's attempts have learned, under the global law.
    pub(crate) trie: Option<SharedTrie>,
    pub(crate) replay: Replay,
    /// Tokens that the client hears of once they are certain.
    held: Vec<Event>,
    pub(crate) cached: usize,
    pub(crate) drafted: usize,
    pub(crate) accepted: usize,
    /// The first token whose choice the tokens left narrowed.
    steered_from: Option<usize>,
    /// Held until it runs for the first time; a preempted sequence does not count as waiting, nor its text as cached.
    pub(crate) place: Option<QueuePlace>,
    pub(crate) moments: Moments,
    sink: Sink,
    /// The client has gone, or heard the last event.
    pub(crate) closed: bool,
    /// It did not end as it should.
    pub(crate) failed: bool,
}

impl Sequence {
    pub(crate) fn new(
        id: u64,
        request: Request,
        (warper, walk): (Warper, Walk),
        sink: Sink,
        place: QueuePlace,
    ) -> Self {
        Sequence {
            id,
            tokens: request.prompt.clone(),
            state: request.grammar.as_ref().map(Grammar::start),
            reach: request.speculation.max_draft,
            request,
            computed: 0,
            table: Table::default(),
            drafts: Vec::new(),
            warper,
            walk,
            trie: None,
            replay: Replay::default(),
            held: Vec::new(),
            cached: 0,
            drafted: 0,
            accepted: 0,
            steered_from: None,
            place: Some(place),
            moments: Moments::now(),
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

    /// What the masks may spend after so many tokens that are not yet drawn: the tokens left, and one for the end where
    /// nobody asks for it. `None` where the masks do not count them.
    pub(crate) fn budget(&self, ahead: usize) -> Option<usize> {
        let left = self.remaining() + usize::from(self.ends_early());
        (self.request.on_budget == OnBudget::Complete).then(|| left.saturating_sub(ahead))
    }

    /// What may come in a state, after so many tokens that are not yet drawn.
    pub(crate) fn bounds(&self, grammar: &Grammar, state: State, ahead: usize) -> Bounds {
        masks::bounds(grammar, state, self.budget(ahead))
    }

    /// Remembers that the tokens left narrowed the choice of the token with this number.
    pub(crate) fn steer(&mut self, number: usize) {
        self.steered_from.get_or_insert(number);
    }

    /// Tokens that must be fed before the next one can be drawn.
    pub(crate) fn unfed(&self) -> usize {
        self.tokens.len() - self.computed
    }

    /// The states before each of the next pass's rows, now and after each draft, with what their masks may spend.
    pub(crate) fn states_along_drafts(&self) -> Option<Wanted> {
        let grammar = self.request.grammar.as_ref()?;
        let mut state = self.state?;
        let mut states = vec![(state, self.budget(0))];
        for (index, draft) in self.drafts.iter().enumerate() {
            state = grammar.step(state, draft.token)?;
            states.push((state, self.budget(index + 1)));
        }
        Some((grammar.clone(), states))
    }

    /// Whether the text is complete as soon as only its end is left: then nobody asks for the end's probability.
    pub(crate) fn ends_early(&self) -> bool {
        !self.request.weigh_end && self.walk.is_certain()
    }

    /// Goes on with the grammar that takes the place of one which has outgrown its memory. Not while a pass is under way,
    /// whose states are those of the old one.
    pub(crate) fn renew_grammar(&mut self) {
        if let Some((grammar, state)) = self.request.grammar.as_mut().zip(self.state.as_mut()) {
            grammar.renew(std::slice::from_mut(state));
        }
    }

    /// Goes back to the prompt: the attempt failed.
    pub(crate) fn restart(&mut self) {
        self.tokens.truncate(self.request.prompt.len());
        self.state = self.request.grammar.as_ref().map(Grammar::start);
        self.drafts.clear();
        self.held.clear();
        self.steered_from = None;
    }

    /// Tells the client of a token, now or when it is certain.
    pub(crate) fn report(&mut self, token: Event) {
        self.held.push(token);
        if self.walk.is_certain() {
            self.release();
        }
    }

    fn release(&mut self) {
        for event in std::mem::take(&mut self.held) {
            self.send(event);
        }
    }

    /// Tells the client. A client that says no, or whose sink panics, is gone.
    fn send(&mut self, event: Event) {
        if self.closed {
            return;
        }
        let last = !matches!(event, Event::Token { .. });
        let wants_more = catch_unwind(AssertUnwindSafe(|| (self.sink)(event))).unwrap_or(false);
        self.closed = last || !wants_more;
        self.failed |= !last && !wants_more;
    }

    /// The last event of an answer, after all its tokens.
    pub(crate) fn finish(&mut self, finish: Finish) {
        match finish {
            // Tokens of an attempt that was never accepted are of no law.
            Finish::Cancelled => self.held.clear(),
            Finish::Stop | Finish::Length => self.release(),
        }
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
            law: self.walk.tag(),
            log_probability: self.walk.log_probability(),
            log_weight: self.walk.log_weight(),
            prompt_tokens: self.request.prompt.len(),
            cached_tokens: self.cached,
            completion_tokens: self.generated().len(),
            drafted: self.drafted,
            accepted: self.accepted,
            steered: self.steered_from.map(|from| Steered {
                from,
                max_tokens: self.request.max_tokens,
            }),
            times: self.moments.times(),
            attempts: self.walk.failed_attempts() as usize + 1,
        }
    }
}

/// Whatever happens to a sequence, its client hears a last event.
impl Drop for Sequence {
    fn drop(&mut self) {
        self.fail(EngineError::Stopped);
    }
}
