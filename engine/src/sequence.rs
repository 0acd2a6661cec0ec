//! One request on its way: plain data, moved between the scheduler's queues.

use crate::blocks::Table;
use crate::engine::Sink;
use crate::errand::{Errand, Reply};
use crate::error::EngineError;
use crate::masks::{Bounds, Finder};
use crate::meters::Moments;
use crate::outlook::{Outlook, Reading, draft_room};
use crate::replay::Replay;
use crate::request::{Event, Finish, OnBudget, Origin, Outcome, Request, Steered};
use crate::room::Place;
use crate::sample::SharedTrie;
use crate::{Grammar, State};
use lexiform::draft::Proposal;
use lexiform::law::{Walk, Warper};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// An errand that took longer than this makes its sequence one that nobody waits for.
const SLOW: Duration = Duration::from_millis(2);
/// Quick errands in a row after which a slow one is forgiven.
const PAROLE: u8 = 16;
/// Draws between two looks at the memory of a grammar: to look is cheap and not free.
const RENEWED_EVERY: usize = 16;

/// A token that may come next, to be verified.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) token: u32,
    pub(crate) origin: Origin,
    /// Where the grammar is after it; `None` without a grammar, and where nobody has asked.
    pub(crate) state: Option<State>,
    /// How it was chosen.
    pub(crate) proposal: Proposal,
    /// What follows it is not known, so it is verified and nothing is drawn from the row behind it.
    pub(crate) is_last: bool,
}

/// A request with everything that has become of it so far.
pub(crate) struct Sequence {
    pub(crate) id: u64,
    pub(crate) request: Request,
    /// The prompt and what was generated.
    pub(crate) tokens: Arc<Vec<u32>>,
    /// How many of the tokens have their keys and values in the cache.
    pub(crate) computed: usize,
    pub(crate) table: Table,
    /// Where the grammar is after all tokens but the unread one.
    pub(crate) state: Option<State>,
    /// The last token drawn, until the grammar has read it.
    pub(crate) unread: Option<u32>,
    /// Whether its grammar has not been asked yet what follows the last draw.
    pub(crate) is_due: bool,
    /// What its grammar is being asked; meanwhile it is not scheduled.
    pub(crate) errand: Option<Errand>,
    /// The masks of the next rows, if they were there too late for the last pass or are wanted before the next.
    pub(crate) masks: Option<Vec<Bounds>>,
    /// The pass that it went along with last.
    pub(crate) last_pass: u64,
    /// Errands that nobody waits for, after a slow one.
    pub(crate) parole: u8,
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
    pub(crate) place: Option<Place>,
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
        place: Place,
    ) -> Self {
        Sequence {
            id,
            tokens: Arc::new(request.prompt.clone()),
            state: request.grammar.as_ref().map(Grammar::start),
            reach: request.speculation.max_draft,
            request,
            unread: None,
            is_due: true,
            errand: None,
            masks: None,
            parole: 0,
            last_pass: 0,
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

    /// What the masks may spend: the tokens left, and one for the end where nobody asks for it. `None` where the masks do
    /// not count them.
    fn budget(&self) -> Option<usize> {
        let left = self.remaining() + usize::from(self.ends_early());
        (self.request.on_budget == OnBudget::Complete).then_some(left)
    }

    /// What its grammar's work needs to know.
    pub(crate) fn outlook(&self, finder: Finder) -> Outlook {
        Outlook {
            grammar: self.request.grammar.clone().zip(self.state),
            renews: self.generated().len().is_multiple_of(RENEWED_EVERY),
            unread: self.unread,
            tokens: self.tokens.clone(),
            prompt: self.request.prompt.len(),
            remaining: self.remaining(),
            budget: self.budget(),
            ends_early: self.ends_early(),
            speculation: self.request.speculation,
            reach: self.reach,
            drafts: self.drafts.clone(),
            finder,
        }
    }

    /// Whether it can be scheduled: all that its grammar has to say about the last draw is known.
    pub(crate) fn is_ready(&self) -> bool {
        !self.is_due && self.errand.is_none() && !self.closed
    }

    /// How many tokens may be drafted.
    pub(crate) fn room(&self) -> usize {
        draft_room(&self.request.speculation, self.remaining())
    }

    /// Its grammar was slow: nobody waits for its next errands.
    pub(crate) fn put_on_parole(&mut self) {
        self.parole = PAROLE;
    }

    /// Takes what an errand brought, unless it is one that nobody is interested in any more.
    pub(crate) fn hear(&mut self, reply: Reply) {
        if !self.errand.as_ref().is_some_and(|errand| errand.is(&reply)) {
            return;
        }
        self.errand = None;
        self.parole = match reply.took > SLOW {
            true => PAROLE,
            false => self.parole.saturating_sub(1),
        };
        match reply.outcome {
            Err(error) => self.fail(error),
            Ok(brought) => {
                self.masks = brought.masks;
                if let Some(reading) = brought.reading {
                    self.go_on(reading);
                }
            }
        }
    }

    /// Goes on from what the grammar says about the last draw: ends the answer where nothing but its end is left, or no
    /// token for it.
    pub(crate) fn go_on(&mut self, reading: Reading) {
        if reading.renewed {
            self.replay.forget();
        }
        if let Some((grammar, state)) = reading.grammar {
            self.request.grammar = Some(grammar);
            self.state = Some(state);
        }
        (self.unread, self.is_due) = (None, false);
        if let Some(is_cut_short) = reading.end {
            if is_cut_short {
                self.steer(self.generated().len());
            }
            return self.finish(Finish::Stop);
        }
        self.drafts = reading.drafts;
        if self.remaining() == 0 {
            match self.request.on_budget {
                OnBudget::Complete | OnBudget::Cut => self.finish(Finish::Length),
                OnBudget::Fail => self.fail(EngineError::OutOfTokens {
                    max_tokens: self.request.max_tokens,
                }),
            }
        }
    }

    /// Remembers that the tokens left narrowed the choice of the token with this number.
    pub(crate) fn steer(&mut self, number: usize) {
        self.steered_from.get_or_insert(number);
    }

    /// Tokens that must be fed before the next one can be drawn.
    pub(crate) fn unfed(&self) -> usize {
        self.tokens.len() - self.computed
    }

    /// Whether the text is complete as soon as only its end is left: then nobody asks for the end's probability.
    pub(crate) fn ends_early(&self) -> bool {
        !self.request.weigh_end && self.walk.is_certain()
    }

    /// Goes on with the grammar that takes the place of one which has outgrown its memory, if it has not begun. One that
    /// runs does so when it reads.
    pub(crate) fn renew_grammar(&mut self) {
        if self.place.is_none() || self.errand.is_some() {
            return;
        }
        if let Some((grammar, state)) = self.request.grammar.as_mut().zip(self.state.as_mut()) {
            grammar.renew(std::slice::from_mut(state));
        }
    }

    /// Goes back to the prompt: the attempt failed.
    pub(crate) fn restart(&mut self) {
        Arc::make_mut(&mut self.tokens).truncate(self.request.prompt.len());
        self.state = self.request.grammar.as_ref().map(Grammar::start);
        (self.unread, self.is_due, self.masks) = (None, true, None);
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
