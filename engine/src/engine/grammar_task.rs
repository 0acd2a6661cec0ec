//! Grammar tasks: the grammar work of sequences, done by other threads while the model computes.
//!
//! ```text
//!   decode  read? ──┬─ wait ─ schedule ─┬─ forward pass ─┬─ wait ─ draw from the rows whose masks are there
//!   masks           └─ state, drafts ┘  └─ masks ────────┘    ╲ a sequence without masks sits out, and is
//!                                                               not scheduled before its reply is there
//! ```
//!
//! A sequence has at most one grammar task at a time. The loop waits for a task no longer than the grace
//! period: a sequence whose task is late sits out the pass, and its next draw is the same later, because a
//! draw depends only on the seed and its place. A sequence whose grammar was slow recently is *cooling down*:
//! the loop does not wait for its grammar tasks at all, and they include the masks before the sequence is
//! scheduled, so that it costs no pass whose rows are dropped.
//!
//! The decode thread itself does grammar work that takes only a few rounds of counted work
//! (`lexiform::briefly`), because handing it to another thread would take longer.

use crate::error::{EngineError, MonitorProblem};
use crate::fairness::pool::{Length, Owner, Pool, Work, cpu_time};
use crate::grammar::drafters::Drafters;
use crate::grammar::masks::Finder;
use crate::grammar::outlook::Outlook;
use crate::grammar::reply::{Brought, GrammarTask, Reply};
use crate::metrics::meters::Meters;
use crate::request::watched::monitor_error;
use crate::sampling::inquiry::Inquiry;
use crate::scheduler::Scheduler;
use crate::sequence::Sequence;
use crate::speculation::policy::stakes::Odds;
use lexiform::limits::Cancel;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// The time for which one task may keep a thread from the tasks queued after it.
const SLICE: Duration = Duration::from_millis(1);

/// The number of work rounds that the decode thread may spend on reading one token: some ten microseconds.
const BRIEF: usize = 1 << 12;

/// The number of work rounds for the masks of a pass of few rows: enough if the grammar has met their states
/// before.
const KNOWN_ROUNDS: usize = 1 << 11;

/// The result that a sequence needs from a grammar task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    /// The state after the token that was drawn, and what to draft.
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
    /// The minimum probability of a draft offered by a store.
    pub(crate) least: f32,
    /// The odds of tokens that are drawn from stores.
    pub(crate) odds: Odds,
}

impl GrammarTasks {
    /// Creates the tasks with `threads` threads, and at most `most_relieved` more to replace threads that
    /// masks hold up.
    ///
    /// # Errors
    /// Fails if there is no thread left.
    pub(crate) fn new(
        (threads, most_relieved): (usize, usize),
        finder: Finder,
        drafters: Drafters,
        meters: Arc<Meters>,
    ) -> Result<Self, EngineError> {
        let (sender, replies) = channel();
        let pool = Pool::new(threads, most_relieved);
        Ok(GrammarTasks {
            pool: pool.map_err(EngineError::no_thread("masks"))?,
            finder,
            drafters: Arc::new(drafters),
            meters,
            sender,
            replies,
            started: 0,
            least: 0.0,
            odds: Odds::default(),
        })
    }

    /// Returns what grammar work needs to know about a sequence.
    pub(crate) fn outlook(&self, sequence: &Sequence) -> Outlook {
        sequence.outlook(self.finder.clone(), (self.least, &self.odds))
    }

    /// Starts a grammar task for a sequence.
    pub(crate) fn start(&mut self, sequence: &mut Sequence, goal: Goal) {
        let outlook = self.outlook(sequence);
        let (drafters, meters) = (self.drafters.clone(), self.meters.clone());
        self.send(sequence, move |is_wanted| {
            run(outlook, goal, &drafters, &meters, is_wanted)
        });
    }

    /// Starts an inquiry of the monitors of a sequence about its next tokens. One that waits for another
    /// program has a thread of its own: those of the pool are for work. Passes do not wait for a program that
    /// was late.
    pub(crate) fn ask(&mut self, sequence: &mut Sequence, inquiry: Inquiry) {
        let run = move |_: &dyn Fn() -> bool| {
            Ok(Brought {
                inquired: Some(inquiry.run()?),
                ..Brought::default()
            })
        };
        if !sequence.request.constraints.is_remote() {
            return self.send(sequence, run);
        }
        let work = self.task(sequence, run);
        if let Some(task) = &mut sequence.grammar.grammar_task {
            task.awaited &= !sequence.draw.watch.is_late();
        }
        let thread = std::thread::Builder::new().name("lexiform-ask".to_owned());
        if let Err(error) = thread.spawn(work) {
            let constraints = &sequence.request.constraints;
            let problem = MonitorProblem::Failed(format!("no thread to ask it: {error}"));
            let error = monitor_error(&constraints.monitors, constraints.tilt.as_ref(), Some(0), problem);
            sequence.grammar.grammar_task = None;
            sequence.fail(error);
        }
    }

    /// Starts a grammar task on a thread of the pool.
    fn send(
        &mut self,
        sequence: &mut Sequence,
        run: impl FnOnce(&dyn Fn() -> bool) -> Result<Brought, EngineError> + Send + 'static,
    ) {
        let work = self.task(sequence, run);
        let owner = sequence.request.limits.owner.clone();
        // Applies to sequences that cool down, too: if one is slow again, its thread is replaced, and if not,
        // it does not wait for slow ones.
        self.pool.start(owner, Length::Short, work);
    }

    /// Notes a grammar task of a sequence; returns its work.
    fn task(
        &mut self,
        sequence: &mut Sequence,
        run: impl FnOnce(&dyn Fn() -> bool) -> Result<Brought, EngineError> + Send + 'static,
    ) -> Work {
        self.started += 1;
        let alive = Arc::new(());
        let (number, wanted) = (self.started, Arc::downgrade(&alive));
        let sender = self.sender.clone();
        let id = sequence.id.number;
        let work = move || {
            let begun = cpu_time();
            let is_wanted = move || wanted.strong_count() > 0;
            let cancel = Cancel::when({
                let is_wanted = is_wanted.clone();
                move || !is_wanted()
            });
            let run = || lexiform::unless_cancelled(&cancel, || run(&is_wanted));
            // The reply to a sequence that is gone is discarded.
            let run = || run().unwrap_or_else(|| Ok(Brought::default()));
            let outcome = catch_unwind(AssertUnwindSafe(run));
            let panicked = |_| Err(EngineError::Panicked("while computing a mask".to_string()));
            let reply = Reply {
                sequence: id,
                number,
                took: cpu_time().saturating_sub(begun),
                outcome: outcome.unwrap_or_else(panicked),
            };
            // There is no receiver when the engine has stopped.
            let _ = sender.send(reply);
        };
        sequence.grammar.grammar_task = Some(GrammarTask {
            number,
            awaited: sequence.grammar.cooldown == 0,
            _alive: alive,
        });
        Box::new(work)
    }

    /// Drops sequences that are done on another thread: freeing a large grammar with its last user takes a
    /// while.
    pub(crate) fn forget(&self, done: Vec<Sequence>) {
        for sequence in done {
            let owner = sequence.request.limits.owner.clone();
            self.pool
                .start(owner, Length::Short, Box::new(move || drop(sequence)));
        }
    }

    /// Reads the last draw at once, if the grammar needs little time for it, as most do: handing it to
    /// another thread and back takes longer. Returns `true` if it was read, and sets `is_brief` to `false` if
    /// it took too long.
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

    /// Finds the masks of the next rows at once, if they are known or nearly so: waking a thread for them
    /// would take a core from the model for longer. Returns `true` if they were found.
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

    /// Computes the result of a grammar task at once: for a sequence without a grammar.
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

    /// Takes the replies that have arrived, and waits for those of sequences that are not cooling down, for
    /// at most `grace`. Returns `true` if one came.
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

    /// Waits for one reply, for at most `most`. Returns `true` if it came.
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

    /// Runs work for several sequences at once, and waits for it at most this long; returns `None` for work
    /// that was not done by then or failed.
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

/// Delivers a reply to its sequence. A reply to a sequence that is gone, or that an attempt has moved
/// meanwhile, is discarded.
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
