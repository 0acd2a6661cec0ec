//! Grammar tasks: the grammar work of sequences, done by other threads while the model computes.
//!
//! ```text
//! decode thread read? ──┬─ wait ─ schedule ─┬─ forward pass ─┬─ wait ─ draw from the rows whose masks are
//! there
//! mask threads └─ state, drafts ┘ └─ masks ─────────┘ ╲ who has none sits out, and is not scheduled
//!                                                                        again before its reply is there
//! ```
//!
//! A sequence has one grammar task at a time. Nobody waits for one longer than the grace: its sequence sits
//! out the pass, and what it drew next is the same later, because a draw depends on the seed and its place
//! alone. A sequence whose grammar was slow lately is *cooling down*: nobody waits for its grammar tasks at
//! all, which bring the masks along before it is scheduled, so that it costs no pass whose rows are dropped.
//!
//! The decode thread itself does the grammar work that takes a few rounds of counted work
//! (`lexiform::briefly`), because handing it to another thread would take longer.

use crate::error::EngineError;
use crate::fairness::pool::{Length, Owner, Pool, cpu_time};
use crate::grammar::drafters::Drafters;
use crate::grammar::masks::Finder;
use crate::grammar::outlook::Outlook;
use crate::grammar::reply::{Brought, GrammarTask, Reply};
use crate::metrics::meters::Meters;
use crate::sampling::inquiry::Inquiry;
use crate::scheduler::Scheduler;
use crate::sequence::Sequence;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// How long one task may keep a thread from those behind it.
const SLICE: Duration = Duration::from_millis(1);

/// Rounds of work that the decode thread may spend on reading one token: some ten microseconds.
const BRIEF: usize = 1 << 12;

/// Rounds of work for the masks of a pass of few rows: enough where the grammar has met their states before.
const KNOWN_ROUNDS: usize = 1 << 11;

/// What a sequence wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    /// Where it is after the token that was drawn, and what to draft.
    Reading,
    /// The masks of the rows of a pass.
    Masks,
    /// Both, one after the other.
    All,
}

/// All grammar tasks, and the threads that run them.
pub(crate) struct GrammarTasks {
    pool: Pool,
    finder: Finder,
    drafters: Arc<Drafters>,
    meters: Arc<Meters>,
    sender: Sender<Reply>,
    replies: Receiver<Reply>,
    started: u64,
    /// How likely what stores offer must be.
    pub(crate) least: f32,
}

impl GrammarTasks {
    /// With so many threads, and at most so many more that masks have held up.
    pub(crate) fn new(
        (threads, most_relieved): (usize, usize),
        finder: Finder,
        drafters: Drafters,
        meters: Arc<Meters>,
    ) -> Self {
        let (sender, replies) = channel();
        GrammarTasks {
            pool: Pool::new(threads, most_relieved),
            finder,
            drafters: Arc::new(drafters),
            meters,
            sender,
            replies,
            started: 0,
            least: 0.0,
        }
    }

    /// What grammar work needs to know of a sequence.
    pub(crate) fn outlook(&self, sequence: &Sequence) -> Outlook {
        sequence.outlook(self.finder.clone(), self.least)
    }

    /// Sends a sequence on a grammar task.
    pub(crate) fn start(&mut self, sequence: &mut Sequence, goal: Goal) {
        let outlook = self.outlook(sequence);
        let (drafters, meters) = (self.drafters.clone(), self.meters.clone());
        self.send(sequence, move |is_wanted| {
            run(outlook, goal, &drafters, &meters, is_wanted)
        });
    }

    /// Has the monitors of a sequence asked for its next tokens.
    pub(crate) fn ask(&mut self, sequence: &mut Sequence, inquiry: Inquiry) {
        self.send(sequence, move |_| {
            Ok(Brought {
                inquired: Some(inquiry.run()?),
                ..Brought::default()
            })
        });
    }

    fn send(
        &mut self,
        sequence: &mut Sequence,
        run: impl FnOnce(&dyn Fn() -> bool) -> Result<Brought, EngineError> + Send + 'static,
    ) {
        self.started += 1;
        let alive = Arc::new(());
        let (number, wanted) = (self.started, Arc::downgrade(&alive));
        let sender = self.sender.clone();
        let id = sequence.id.number;
        let work = move || {
            let begun = cpu_time();
            let is_wanted = || wanted.strong_count() > 0;
            let outcome = catch_unwind(AssertUnwindSafe(|| run(&is_wanted)));
            let panicked = |_| Err(EngineError::Panicked("while computing a mask".to_string()));
            let reply = Reply {
                sequence: id,
                number,
                took: cpu_time().saturating_sub(begun),
                outcome: outcome.unwrap_or_else(panicked),
            };
            // Nobody listens when the engine has stopped.
            let _ = sender.send(reply);
        };
        sequence.grammar.grammar_task = Some(GrammarTask {
            number,
            awaited: sequence.grammar.cooldown == 0,
            _alive: alive,
        });
        let owner = sequence.request.limits.owner.clone();
        // Also of one that cools down: where it is slow again, its thread is relieved, and where it is not,
        // it does not wait for those that are.
        self.pool.start(owner, Length::Short, Box::new(work));
    }

    /// Drops sequences that are done: the last who uses a large grammar takes a while to free it.
    pub(crate) fn forget(&self, done: Vec<Sequence>) {
        for sequence in done {
            let owner = sequence.request.limits.owner.clone();
            self.pool
                .start(owner, Length::Short, Box::new(move || drop(sequence)));
        }
    }

    /// Reads at once what was drawn last, if the grammar does not take long for it, which most never do: to
    /// hand it to another thread and back takes longer. Whether it was read; where it took too long, that it
    /// is not brief.
    pub(crate) fn read_briefly(&self, sequence: &mut Sequence, is_brief: &mut bool) -> bool {
        let outlook = self.outlook(sequence);
        if outlook.renews || self.finder.hook.is_some() {
            return false;
        }
        let read = || run(outlook, Goal::Reading, &self.drafters, &self.meters, &|| true);
        match lexiform::briefly(BRIEF, read) {
            None => {
                *is_brief = false;
                return false;
            }
            Some(Err(error)) => sequence.fail(error),
            Some(Ok(brought)) => brought
                .reading
                .into_iter()
                .for_each(|reading| sequence.go_on(reading)),
        }
        true
    }

    /// Finds at once the masks of the next rows, if they are known or as good as known: a thread that is
    /// woken for them takes a core from the model for longer. Whether they were found.
    pub(crate) fn find_briefly(&self, sequence: &mut Sequence) -> bool {
        if self.finder.hook.is_some() || sequence.grammar.cooldown > 0 {
            return false;
        }
        let outlook = self.outlook(sequence);
        let find = || run(outlook, Goal::Masks, &self.drafters, &self.meters, &|| true);
        let Some(Ok(Brought {
            masks: Some(masks), ..
        })) = lexiform::briefly(KNOWN_ROUNDS, find)
        else {
            return false;
        };
        sequence.grammar.masks = Some(masks);
        true
    }

    /// What a grammar task would bring, at once: for a sequence without a grammar.
    pub(crate) fn read_now(&self, sequence: &mut Sequence) {
        let run = run(
            self.outlook(sequence),
            Goal::Reading,
            &self.drafters,
            &self.meters,
            &|| true,
        );
        if let Ok(Brought {
            reading: Some(reading),
            ..
        }) = run
        {
            sequence.go_on(reading);
        }
    }

    /// Takes the replies that are there, and waits for those of sequences that do not cool down, at most
    /// this long. Whether one came.
    pub(crate) fn gather(&self, scheduler: &mut Scheduler, grace: Duration) -> bool {
        let until = Instant::now() + grace;
        let mut came = false;
        loop {
            while let Ok(reply) = self.replies.try_recv() {
                hand_over(reply, scheduler);
                came = true;
            }
            let grammar_tasks = scheduler
                .all()
                .filter_map(|sequence| sequence.grammar.grammar_task.as_mut());
            let awaited: Vec<&mut GrammarTask> = grammar_tasks
                .filter(|grammar_task| grammar_task.awaited)
                .collect();
            if awaited.is_empty() {
                return came;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                awaited
                    .into_iter()
                    .for_each(|grammar_task| grammar_task.awaited = false);
                return came;
            }
            came |= self.wait(scheduler, left.min(SLICE));
        }
    }

    /// Waits for one reply, at most this long. Whether it came.
    pub(crate) fn wait(&self, scheduler: &mut Scheduler, most: Duration) -> bool {
        match self.replies.recv_timeout(most) {
            Ok(reply) => {
                hand_over(reply, scheduler);
                true
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                self.pool.relieve(SLICE);
                false
            }
        }
    }

    /// Runs work for several sequences at once, and waits for it at most this long; `None` for what was not
    /// done by then or failed.
    pub(crate) fn together<T: Send + 'static>(
        &self,
        works: Vec<(Owner, impl FnOnce() -> Result<T, EngineError> + Send + 'static)>,
        grace: Duration,
    ) -> Vec<Option<T>> {
        let until = Instant::now() + grace;
        let (sender, replies) = channel();
        let mut results: Vec<Option<T>> = works.iter().map(|_| None).collect();
        for (number, (owner, work)) in works.into_iter().enumerate() {
            let sender = sender.clone();
            let work = move || drop(sender.send((number, work().ok())));
            self.pool.start(owner, Length::Short, Box::new(work));
        }
        drop(sender);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match replies.recv_timeout(left.min(SLICE)) {
                Ok((number, result)) => results[number] = result,
                Err(RecvTimeoutError::Timeout) if !left.is_zero() => self.pool.relieve(SLICE),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return results,
            }
        }
    }
}

/// A reply to a sequence that has gone, or that an attempt took elsewhere meanwhile, is of no use to anybody.
fn hand_over(reply: Reply, scheduler: &mut Scheduler) {
    if let Some(sequence) = scheduler
        .all()
        .find(|sequence| sequence.id.number == reply.sequence)
    {
        sequence.hear(reply);
    }
}

fn run(
    mut outlook: Outlook,
    goal: Goal,
    drafters: &Drafters,
    meters: &Meters,
    is_wanted: &dyn Fn() -> bool,
) -> Result<Brought, EngineError> {
    let mut brought = Brought::default();
    if !is_wanted() {
        return Ok(brought);
    }
    if goal != Goal::Masks {
        let mut reading = outlook.read()?;
        if reading.end.is_none() && outlook.remaining > 0 {
            outlook.drafts.clear();
            match (&outlook.options, outlook.given.is_empty()) {
                (Some(_), _) => outlook.take_options()?,
                (None, true) => drafters.propose(&mut outlook)?,
                (None, false) => outlook.take_given()?,
            }
            reading.drafts.clone_from(&outlook.drafts);
        }
        let is_over = reading.end.is_some() || outlook.remaining == 0;
        brought.reading = Some(reading);
        if is_over {
            return Ok(brought);
        }
    }
    if goal != Goal::Reading {
        let mut masks = Vec::with_capacity(outlook.drafts.len() + 1);
        for drafts in 0..=outlook.drafts.len() {
            if !is_wanted() {
                return Ok(Brought::default());
            }
            let begun = Instant::now();
            let bounds = match outlook.is_guess(drafts) {
                // Nothing is drawn there.
                true => outlook.bounds(drafts).unwrap_or(None),
                false => outlook.bounds(drafts)?,
            };
            masks.extend(bounds.or_else(|| outlook.nothing()));
            meters.masks.observe_time(begun.elapsed());
        }
        brought.masks = Some(masks);
    }
    Ok(brought)
}
