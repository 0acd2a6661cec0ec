//! One branch of a request on its way: plain data, moved between the scheduler's queues.

mod allowed;
mod drafts;
pub(crate) mod job;
mod outcome;
pub(crate) mod replay;
mod rests;
pub(crate) mod steering;
pub(crate) mod tries;
pub(crate) mod watch;

use crate::blocks::{Blocks, Table};
use crate::error::EngineError;
use crate::fairness::room::Place;
use crate::grammar::drafters;
use crate::grammar::masks::Bounds;
use crate::grammar::outlook::Reading;
use crate::grammar::reply::{Brought, Errand, Reply};
use crate::metrics::meters::Moments;
use crate::request::driver::{Branch, Latest, Look, Ranked, Weight};
use crate::request::law;
use crate::request::{Event, Finish, OnBudget, Request};
use crate::sequence::replay::Replay;
use crate::sequence::rests::Rests;
use crate::sequence::steering::{Narrowing, Steering};
use crate::sequence::tries::SharedTrie;
use crate::sequence::watch::Watch;
use crate::speculation::draft::Draft;
use crate::speculation::policy::Record;
use crate::speculation::store::Store;
use crate::{Grammar, State};
use lexiform_law::draft::{JacobiWindow, Lookup, Text};
use lexiform_law::{Walk, Warper};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// An errand that took longer than this makes its sequence one that nobody waits for.
const SLOW_ERRAND: Duration = Duration::from_millis(2);
/// Quick errands in a row after which a slow one is forgiven.
const PAROLE: u8 = 16;

/// What a branch does in the next pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    /// Nothing: its driver has not said what comes next.
    Waiting,
    /// It is read into the cache up to its last token.
    Reading,
    /// It draws.
    Drawing,
    /// It goes on with tokens that it was given.
    Scoring,
    /// Its row is looked at, and none of its tokens is drawn.
    Ranking,
    /// Options are fed below it, and weighed.
    Weighing,
}

/// How a branch ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ending {
    Finished(Finish),
    Failed(EngineError),
}

/// A branch of a request with everything that has become of it so far.
pub(crate) struct Sequence {
    /// Differs from that of all other branches of all requests.
    pub(crate) id: u64,
    /// The request that it is a branch of, and its number there.
    pub(crate) job: u64,
    pub(crate) branch: Branch,
    pub(crate) request: Request,
    pub(crate) doing: Doing,
    /// The prompt and what was generated.
    pub(crate) tokens: Arc<Vec<u32>>,
    /// How many of the tokens are still those that they were when the draft model last looked.
    pub(crate) unchanged: usize,
    /// Where the tokens stood before, if they are looked up.
    pub(crate) lookup: Option<Arc<Lookup>>,
    /// Guesses that it feeds beside its drafts.
    pub(crate) window: Option<JacobiWindow>,
    /// What was learned from earlier answers to its owner, and learns from this one.
    pub(crate) store: Option<Arc<Store>>,
    /// What the samples of its request have written, where there are several; they learn from each other.
    pub(crate) siblings: Option<Arc<Store>>,
    /// How many of the tokens have their keys and values in the cache.
    pub(crate) computed: usize,
    pub(crate) table: Table,
    /// Where the grammar is after the tokens that it has read.
    pub(crate) state: Option<State>,
    /// How many of the tokens its grammar has read, those of the prompt included, which it does not look at.
    pub(crate) read: usize,
    /// Whether its grammar has not been asked yet what follows the last draw.
    pub(crate) is_due: bool,
    /// What its grammar is being asked; meanwhile it is not scheduled.
    pub(crate) errand: Option<Errand>,
    /// The masks of the next rows, if they were there too late for the last pass or are wanted before the
    /// next.
    pub(crate) masks: Option<Vec<Bounds>>,
    /// The pass that it went along with last.
    pub(crate) last_pass: u64,
    /// Errands that nobody waits for, after a slow one.
    pub(crate) parole: u8,
    /// What is fed beyond the tokens in the next pass.
    pub(crate) drafts: Vec<Draft>,
    /// Tokens that it is to go on with.
    pub(crate) given: Vec<u32>,
    /// What is wanted where it is ranked.
    pub(crate) look: Look,
    /// What was found there, until its driver knows.
    pub(crate) ranked: Vec<Ranked>,
    /// The node of the options where it stands, and those that are to be fed below it.
    pub(crate) piece: (usize, Vec<usize>),
    /// What was found about options, until its driver knows.
    pub(crate) weighed: Vec<Weight>,
    /// The fewest tokens that complete the text, if that was asked for when the grammar read it.
    pub(crate) distance: Option<usize>,
    /// The token drawn last, and the entropy of its row, for a request that wants to know.
    pub(crate) latest: Option<Latest>,
    /// How long its drafts may become by what the draft model adds to them.
    pub(crate) reach: usize,
    /// What became of its drafts.
    pub(crate) record: Record,
    /// For how many draws it drafts nothing.
    rests: Rests,
    pub(crate) warper: Warper,
    pub(crate) walk: Walk,
    /// What the walk's attempts have learned, under the global law.
    pub(crate) trie: Option<SharedTrie>,
    pub(crate) replay: Replay,
    pub(crate) watch: Watch,
    /// Tokens that no answer has heard of yet.
    events: Vec<Event>,
    /// How many were told before these.
    emitted: usize,
    pub(crate) cached: usize,
    pub(crate) drafted: usize,
    pub(crate) accepted: usize,
    /// Those of both that were copied from the reference.
    pub(crate) predictions: usize,
    pub(crate) accepted_predictions: usize,
    pub(crate) steering: Steering,
    /// Held until it runs for the first time; a preempted sequence does not count as waiting, nor its text as
    /// cached.
    pub(crate) place: Option<Place>,
    /// Whether it has run, for whoever waits for that.
    pub(crate) begun: Arc<AtomicBool>,
    pub(crate) moments: Moments,
    /// Whether its grammar left nothing but the end, whose probability nobody asked for.
    ended_unasked: bool,
    /// How it ended, once it has.
    ending: Option<Ending>,
    /// Whether its driver knows of that.
    is_ending_told: bool,
    /// Nothing more is done for it.
    pub(crate) closed: bool,
    /// No driver asks for it any more.
    pub(crate) dropped: bool,
}

impl Sequence {
    /// The first branch of a request.
    pub(crate) fn new(job: u64, mut request: Request, (warper, walk): (Warper, Walk), place: Place) -> Self {
        Sequence {
            lookup: drafters::lookup(&mut request).map(Arc::new),
            window: None,
            store: None,
            siblings: None,
            id: 0,
            job,
            branch: 0,
            doing: Doing::Waiting,
            tokens: Arc::new(request.prompt.tokens.clone()),
            state: request.constraints.grammar.as_ref().map(Grammar::start),
            read: request.prompt.tokens.len(),
            unchanged: 0,
            reach: 0,
            record: Record::default(),
            rests: Rests::default(),
            request,
            is_due: true,
            errand: None,
            masks: None,
            parole: 0,
            last_pass: 0,
            computed: 0,
            table: Table::default(),
            drafts: Vec::new(),
            given: Vec::new(),
            look: Look::default(),
            ranked: Vec::new(),
            piece: (0, Vec::new()),
            weighed: Vec::new(),
            distance: None,
            latest: None,
            warper,
            walk,
            trie: None,
            replay: Replay::default(),
            watch: Watch::default(),
            events: Vec::new(),
            emitted: 0,
            cached: 0,
            drafted: 0,
            accepted: 0,
            predictions: 0,
            accepted_predictions: 0,
            steering: Steering::default(),
            place: Some(place),
            begun: Arc::default(),
            moments: Moments::now(),
            ended_unasked: false,
            ending: None,
            is_ending_told: false,
            closed: false,
            dropped: false,
        }
    }

    /// Another branch of the same request that begins with the first `at` tokens of this one's answer, and
    /// reads them from the same blocks.
    ///
    /// # Errors
    /// This one has not so many tokens, or is in the middle of an attempt.
    pub(crate) fn fork(&self, branch: Branch, at: usize, blocks: &mut Blocks) -> Result<Self, EngineError> {
        let mut fork = Sequence {
            branch,
            request: self.request.clone(),
            doing: Doing::Waiting,
            tokens: self.tokens.clone(),
            lookup: self.lookup.clone(),
            window: self.window.clone(),
            store: self.store.clone(),
            siblings: self.siblings.clone(),
            record: self.record.clone(),
            is_due: true,
            errand: None,
            masks: None,
            table: Table::default(),
            drafts: Vec::new(),
            given: Vec::new(),
            look: Look::default(),
            ranked: Vec::new(),
            piece: (0, Vec::new()),
            weighed: Vec::new(),
            warper: self.warper.clone(),
            walk: self.walk.fork(),
            trie: self.trie.clone(),
            replay: Replay::default(),
            watch: Watch::default(),
            events: self.events.clone(),
            place: None,
            begun: self.begun.clone(),
            ending: None,
            // One that has ended can be forked until it is collected.
            ended_unasked: false,
            is_ending_told: false,
            closed: false,
            ..*self
        };
        if at != self.generated().len() {
            fork.go_back(at)?;
        }
        fork.computed = self.computed.min(fork.tokens.len() - 1);
        fork.table = blocks.fork(&self.table, fork.computed);
        Ok(fork)
    }

    /// Goes back to the first `to` tokens of the answer and gives the blocks of the others back. What is
    /// drawn from then on is drawn from new random numbers.
    ///
    /// # Errors
    /// It has not so many tokens, or is in the middle of an attempt.
    pub(crate) fn rewind(&mut self, to: usize, blocks: &mut Blocks) -> Result<(), EngineError> {
        self.go_back(to)?;
        self.computed = self.computed.min(self.tokens.len() - 1);
        blocks.rewind(&mut self.table, self.computed);
        Ok(())
    }

    fn go_back(&mut self, to: usize) -> Result<(), EngineError> {
        let (tokens, place) = (self.generated().len(), u32::try_from(to).unwrap_or(u32::MAX));
        if to > tokens || to < self.emitted || !self.walk.rewind(place) {
            return Err(EngineError::NoSuchPlace {
                place: to,
                tokens,
                told: self.emitted,
            });
        }
        self.truncate(to);
        Ok(())
    }

    /// Goes on with these tokens as if it drew them.
    ///
    /// # Errors
    /// It is in the middle of an attempt of the global law.
    pub(crate) fn give(&mut self, tokens: Vec<u32>) -> Result<(), EngineError> {
        if !self.walk.is_certain() {
            let place = self.generated().len();
            return Err(EngineError::NoSuchPlace {
                place,
                tokens: place,
                told: self.emitted,
            });
        }
        if !self.closed {
            (self.given, self.doing, self.is_due, self.masks) = (tokens, Doing::Scoring, true, None);
        }
        Ok(())
    }

    /// Whether a drawn token waits for its grammar to read it.
    pub(crate) fn has_unread(&self) -> bool {
        self.request.constraints.grammar.is_some() && self.read < self.tokens.len()
    }

    /// Tokens generated so far.
    pub(crate) fn generated(&self) -> &[u32] {
        &self.tokens[self.request.prompt.tokens.len()..]
    }

    /// Which of the seed's sequences of random numbers it draws from.
    pub(crate) fn stream(&self) -> u32 {
        self.request.sampling.stream.wrapping_add(self.branch)
    }

    /// Tokens that may still be generated.
    pub(crate) fn remaining(&self) -> usize {
        self.request
            .limits
            .max_tokens
            .saturating_sub(self.generated().len())
    }

    /// What the masks may spend: the tokens left, and one for the end where nobody asks for it. `None` where
    /// the masks do not count them.
    pub(crate) fn budget(&self) -> Option<usize> {
        let left = self.remaining() + usize::from(self.ends_early());
        let counts =
            self.request.limits.on_budget == OnBudget::Complete && self.request.task.options().is_none();
        counts.then_some(left)
    }

    /// Whether it can be scheduled: all that its grammar has to say about the last draw is known.
    pub(crate) fn is_ready(&self) -> bool {
        let is_known = !self.is_due && self.errand.is_none();
        match self.doing {
            Doing::Waiting => false,
            Doing::Reading => self.unfed() > 0 && !self.closed,
            Doing::Drawing | Doing::Scoring | Doing::Ranking | Doing::Weighing => is_known && !self.closed,
        }
    }

    /// Whether it waits for its driver to say what comes next.
    pub(crate) fn is_idle(&self) -> bool {
        self.doing == Doing::Waiting && !self.closed
    }

    /// Whether its grammar has to be asked what follows the last draw.
    pub(crate) fn asks(&self) -> bool {
        !matches!(self.doing, Doing::Waiting | Doing::Reading)
            && self.is_due
            && self.errand.is_none()
            && !self.closed
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
        self.parole = match reply.took > SLOW_ERRAND {
            true => PAROLE,
            false => self.parole.saturating_sub(1),
        };
        match reply.outcome {
            Err(error) => self.fail(error),
            Ok(Brought {
                inquired: Some(inquired),
                ..
            }) => self.watch.hear(inquired),
            Ok(brought) => {
                self.masks = brought.masks;
                if let Some(reading) = brought.reading {
                    self.go_on(reading);
                }
            }
        }
    }

    /// Goes on from what the grammar says about the last draw: ends the answer where nothing but its end is
    /// left, or no token for it.
    pub(crate) fn go_on(&mut self, reading: Reading) {
        if reading.renewed {
            self.replay.forget();
        }
        if let Some((grammar, state)) = reading.grammar {
            self.request.constraints.grammar = Some(grammar);
            self.state = Some(state);
        }
        (self.read, self.is_due) = (self.tokens.len(), false);
        self.distance = reading.distance;
        if let Some(is_cut_short) = reading.end {
            if is_cut_short {
                self.steering.note(self.generated().len(), Narrowing::Ended);
            }
            self.ended_unasked = true;
            return self.finish(Finish::Stop);
        }
        self.drafts = reading.drafts;
        self.rests.go_on();
        if self.doing == Doing::Scoring && self.drafts.is_empty() {
            // The grammar does not allow the next of them.
            self.given.clear();
        }
        if self.remaining() == 0 {
            match self.request.limits.on_budget {
                OnBudget::Complete | OnBudget::Cut => self.finish(Finish::Length),
                OnBudget::Fail => self.fail(EngineError::OutOfTokens {
                    max_tokens: self.request.limits.max_tokens,
                }),
            }
        }
    }

    /// Tokens that must be fed before the next one can be drawn, or before it is read.
    pub(crate) fn unfed(&self) -> usize {
        let wanted = self.tokens.len() - usize::from(self.doing == Doing::Reading);
        wanted.saturating_sub(self.computed)
    }

    /// Whether the text is complete as soon as only its end is left: then nobody asks for the end's
    /// probability.
    pub(crate) fn ends_early(&self) -> bool {
        law::ends_unasked(&self.request) && self.walk.is_certain()
    }

    /// Goes on with the grammar that takes the place of one which has outgrown its memory, if it has not
    /// begun. One that runs does so when it reads.
    pub(crate) fn renew_grammar(&mut self) {
        if self.place.is_none() || self.errand.is_some() {
            return;
        }
        if let Some((grammar, state)) = self.request.constraints.grammar.as_mut().zip(self.state.as_mut()) {
            grammar.compact(std::slice::from_mut(state));
        }
    }

    /// Goes back as far as its walk did: to the prompt where an attempt failed.
    pub(crate) fn restart(&mut self) {
        self.truncate(self.walk.position() as usize);
        if self.walk.is_certain() {
            // What stands in for an attempt is not compared with the rows of attempts, token by token, so it
            // takes none.
            self.replay.forget();
        }
    }

    /// The tokens as the prompt and the answer.
    pub(crate) fn text(&self) -> Text<'_> {
        let (prompt, answer) = self.tokens.split_at(self.request.prompt.tokens.len());
        Text { prompt, answer }
    }

    /// Appends a token to the answer.
    pub(crate) fn push(&mut self, token: u32) {
        Arc::make_mut(&mut self.tokens).push(token);
        if let Some(mut lookup) = self.lookup.take() {
            Arc::make_mut(&mut lookup).grow(self.text());
            self.lookup = Some(lookup);
        }
    }

    /// Forgets all but the first `to` tokens of the answer. The grammar reads those again.
    pub(crate) fn truncate(&mut self, to: usize) {
        let prompt = self.request.prompt.tokens.len();
        if let Some(mut lookup) = self.lookup.take() {
            Arc::make_mut(&mut lookup).rewind(self.text(), prompt + to);
            self.lookup = Some(lookup);
        }
        Arc::make_mut(&mut self.tokens).truncate(prompt + to);
        self.unchanged = self.unchanged.min(prompt + to);
        self.state = self.request.constraints.grammar.as_ref().map(Grammar::start);
        (self.read, self.is_due, self.masks, self.errand) = (prompt, true, None, None);
        self.drafts.clear();
        self.watch.forget();
        self.events.truncate(to.saturating_sub(self.emitted));
        self.steering.truncate(to);
    }

    /// Remembers a token for whoever will hear of it.
    pub(crate) fn report(&mut self, token: Event) {
        self.events.push(token);
    }

    /// The tokens that were not told yet, for an answer that has heard of so many.
    ///
    /// # Errors
    /// Others than those are left.
    pub(crate) fn take_events(&mut self, heard: usize) -> Result<Vec<Event>, EngineError> {
        if heard != self.emitted {
            return Err(EngineError::NoSuchPlace {
                place: heard,
                tokens: self.generated().len(),
                told: self.emitted,
            });
        }
        self.emitted += self.events.len();
        Ok(std::mem::take(&mut self.events))
    }

    /// The tokens that were not told yet.
    pub(crate) fn events(&self) -> &[Event] {
        &self.events
    }

    /// These tokens, the first of the text, are told to another answer, too.
    pub(crate) fn untell(&mut self, events: Vec<Event>) {
        (self.events, self.emitted) = (events, 0);
    }

    /// The text is complete, or as long as it may be.
    pub(crate) fn finish(&mut self, finish: Finish) {
        self.end(Ending::Finished(finish));
    }

    pub(crate) fn fail(&mut self, error: EngineError) {
        self.end(Ending::Failed(error));
    }

    fn end(&mut self, ending: Ending) {
        self.closed = true;
        self.ending.get_or_insert(ending);
    }

    /// Nobody asks for it any more.
    pub(crate) fn give_up(&mut self) {
        (self.closed, self.dropped, self.is_ending_told) = (true, true, true);
    }

    /// How it ended, if its driver does not know of that yet.
    pub(crate) fn news_of_ending(&mut self) -> Option<Ending> {
        if self.is_ending_told {
            return None;
        }
        self.is_ending_told = self.ending.is_some();
        self.ending.clone()
    }

    /// Whether it has ended and its driver does not know of that yet.
    pub(crate) fn has_news(&self) -> bool {
        self.ending.is_some() && !self.is_ending_told
    }

    /// Why its text ended; while it goes on, that it was cut off.
    pub(crate) fn finished(&self) -> Finish {
        match self.ending {
            Some(Ending::Finished(finish)) => finish,
            _ => Finish::Cancelled,
        }
    }
}
