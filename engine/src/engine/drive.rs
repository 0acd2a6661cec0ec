//! Running drivers: reports the events of branches to them, and carries out their orders.
//!
//! ```text
//!   after a pass ─► events of branches ─► driver ─► orders ─┬─► scheduler: fork, rewind, read, draw, …
//!                           ▲                               └─► answers: emit, finish, fail
//!                           └── events that orders cause ───┘
//! ```

use crate::engine::step::Core;
use crate::error::{EngineError, MonitorProblem};
use crate::request::driver::{
    BestOf, Branch, BranchEvent, Chains, Driver, Order, Orders, Plan, Population, Ranking, Report, Samples,
};
use crate::request::watched::monitor_error;
use crate::request::{Event, Finish, Outcome, Request, Task, law, searches};
use crate::sampling;
use crate::sampling::observed::Turn;
use crate::sampling::write::Writer;
use crate::sequence::job::Job;
use crate::sequence::report::Ending;
use crate::sequence::{Phase, Sequence};
use lexiform::vocab::Vocabulary;
use lexiform_law::{Law, Resampling, Seeded};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// Events that have not been reported yet: the request, the branch, and the event.
type PendingEvents = VecDeque<(u64, Branch, BranchEvent)>;

/// Returns the driver of a request, in an engine that weighs at most `most_options` tokens of options in a
/// pass.
pub(crate) fn driver(
    request: &Request,
    most_options: usize,
    vocabulary: &Arc<Vocabulary>,
) -> Box<dyn Driver> {
    let draw = match &request.task {
        Task::Draw(draw) => draw,
        Task::Search { search, answers } => {
            return searches::driver(search, (*answers, request.limits.max_tokens), vocabulary);
        }
        Task::Weigh(weigh) => {
            let with_ends = request.reporting.weigh_end;
            let options = weigh.options.clone();
            return Box::new(Ranking::new(options, most_options, with_ends, weigh.likeliest));
        }
    };
    let chooser = |stream: usize| {
        let first = request.sampling.stream;
        Seeded::new(request.sampling.seed, first.wrapping_add(stream as u32))
    };
    let answers = draw.answers;
    let population = |particles, threshold, resampling| {
        let plan = Plan {
            particles,
            threshold,
            resampling,
        };
        Box::new(Population::new(plan, answers, chooser(0)))
    };
    match law::drawn(request).unwrap_or_default() {
        Law::Smc {
            particles,
            threshold,
            resampling,
            ..
        } => population(particles, threshold, resampling),
        Law::Sir { candidates, .. } => population(candidates, 0.0, Resampling::default()),
        Law::Mcmc { steps, cuts } => Box::new(Chains::new(steps, cuts, (0..answers).map(chooser))),
        _ => {
            let samples = Samples::new(draw.best_of.unwrap_or(answers), law::learns_in_turn(request));
            match draw.best_of {
                Some(_) => Box::new(BestOf::new(answers, samples)),
                None => Box::new(samples),
            }
        }
    }
}

impl Core {
    /// Reports an event of a branch to its driver, and carries out the resulting orders.
    pub(crate) fn tell(&mut self, job: u64, branch: Branch, event: BranchEvent) {
        let mut pending = VecDeque::from([(job, branch, event)]);
        while let Some((job, branch, event)) = pending.pop_front() {
            self.tell_one(job, branch, event, &mut pending);
        }
    }

    fn tell_one(&mut self, id: u64, branch: Branch, event: BranchEvent, pending: &mut PendingEvents) {
        let Some(mut job) = self.jobs.remove(&id) else {
            return;
        };
        if let Some(sequence) = self.scheduler.find(id, branch) {
            sequence.phase = Phase::Waiting;
            let is_over = matches!(event, BranchEvent::Ended(_) | BranchEvent::Failed(_));
            job.live -= usize::from(is_over);
            let report = Report {
                branch,
                event,
                tokens: sequence.generated().len(),
                log_probability: sequence.draw.walk.log_probability(),
                log_weight: sequence.draw.walk.log_weight() + sequence.draw.tilt,
                is_certain: sequence.draw.walk.is_certain() && !sampling::may_begin_anew(sequence),
                text: if is_over {
                    Arc::new(sequence.generated().to_vec())
                } else {
                    Arc::default()
                },
                ranked: std::mem::take(&mut sequence.draw.ranked),
                weighed: std::mem::take(&mut sequence.draw.weighed),
                distance: sequence.grammar.distance,
                latest: sequence.draw.latest,
                rows: if is_over {
                    sequence.draw.walk.rows()
                } else {
                    Vec::new()
                },
            };
            let mut orders = std::mem::take(&mut self.orders);
            job.driver.next(&report, &mut orders);
            let is_waiting = orders.is_empty();
            self.carry_out((id, &mut job), &mut orders, pending);
            self.orders = orders;
            if job.live == 0 || is_waiting && pending.is_empty() && !self.scheduler.goes_on(id) {
                job.fail_all(&EngineError::Unanswered);
            }
        }
        self.put_back(id, job);
    }

    /// Carries out orders in sequence.
    fn carry_out(&mut self, (id, job): (u64, &mut Job), orders: &mut Orders, pending: &mut PendingEvents) {
        while let Some(order) = orders.pop_front() {
            if let Err(error) = self.carry_out_one((id, job), order, orders, pending) {
                // A driver whose order cannot be carried out would wait for it forever.
                job.fail_all(&error);
            }
        }
    }

    fn carry_out_one(
        &mut self,
        (id, job): (u64, &mut Job),
        order: Order,
        orders: &mut Orders,
        pending: &mut PendingEvents,
    ) -> Result<(), EngineError> {
        match order {
            Order::Fork { of, to, at } => self.fork((id, job), of, to, at),
            Order::Rewind { branch, to } => match self.scheduler.find(id, branch) {
                Some(sequence) => sequence.rewind(to, &mut self.blocks),
                None => Ok(()),
            },
            Order::Read(branch) => {
                self.order(id, branch, Phase::Reading);
                let read = self.scheduler.find(id, branch).filter(|it| it.unfed() == 0);
                if read.is_some() {
                    pending.push_back((id, branch, BranchEvent::Read));
                }
                Ok(())
            }
            Order::Draw(branch) => {
                self.order(id, branch, Phase::Drawing);
                Ok(())
            }
            Order::Rank { branch, look } => {
                self.order(id, branch, Phase::Ranking(look));
                Ok(())
            }
            Order::Take { branch, ranked } => match self.scheduler.find(id, branch) {
                Some(sequence) => {
                    let writer = Writer {
                        vocabulary: &self.vocabulary,
                        turn: Turn::new(self.stats.steps, 0),
                    };
                    writer.take_ranked(sequence, &ranked)
                }
                None => Ok(()),
            },
            Order::Score { branch, tokens } => match self.scheduler.find(id, branch) {
                Some(sequence) => sequence.give(tokens),
                None => Ok(()),
            },
            Order::Weigh { branch, root, nodes } => {
                if let Some(sequence) = self.scheduler.find(id, branch) {
                    sequence.weigh(root, nodes);
                }
                Ok(())
            }
            Order::Learn { branch, from } => self.learn((id, job), branch, from),
            Order::End(branch) => {
                if let Some(sequence) = self.scheduler.find(id, branch) {
                    sequence.finish(Finish::Stop);
                }
                Ok(())
            }
            Order::Drop(branch) => {
                self.drop_branch((id, job), branch);
                Ok(())
            }
            Order::Emit { branch, answer } => self.with_branch((id, job), branch, |job, sequence| {
                job.emit(answer, sequence, orders)
            }),
            Order::Finish { branch, answer } => {
                self.with_branch((id, job), branch, |job, sequence| {
                    job.emit(answer, sequence, orders)?;
                    job.close(answer, sequence, orders);
                    Ok(())
                })?;
                self.drop_branch((id, job), branch);
                Ok(())
            }
            Order::Tell { branch, answer } => self.with_branch((id, job), branch, |job, sequence| {
                let events = sequence.report.events().to_vec();
                job.emit(answer, sequence, orders)?;
                job.close(answer, sequence, orders);
                sequence.report.untell(events);
                Ok(())
            }),
            Order::Fail { answer, error } => {
                job.send(answer, Event::Failed(error), orders);
                Ok(())
            }
        }
    }

    /// Lets a branch begin with what the attempts of another one have found, whether that one runs or has
    /// ended.
    fn learn(&mut self, (id, job): (u64, &mut Job), branch: Branch, from: Branch) -> Result<(), EngineError> {
        let mut trie = None;
        self.with_branch((id, job), from, |_, sequence| {
            trie = sequence.draw.trie.clone();
            Ok(())
        })?;
        if let (Some(trie), Some(sequence)) = (trie, self.scheduler.find(id, branch)) {
            sequence.learn(&trie);
        }
        Ok(())
    }

    fn order(&mut self, job: u64, branch: Branch, phase: Phase) {
        if let Some(sequence) = self.scheduler.find(job, branch).filter(|it| !it.report.closed) {
            sequence.phase = phase;
        }
    }

    /// Applies a function to a branch, whether it runs or has ended.
    fn with_branch(
        &mut self,
        (id, job): (u64, &mut Job),
        branch: Branch,
        run: impl FnOnce(&mut Job, &mut Sequence) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        if let Some(sequence) = self.scheduler.find(id, branch) {
            return run(job, sequence);
        }
        let mut ended = job.take_ended(|sequence| sequence.id.branch == branch);
        let done = match ended.first_mut() {
            Some(sequence) => run(job, sequence),
            None => Ok(()),
        };
        ended.into_iter().for_each(|sequence| job.keep(sequence));
        done
    }

    fn drop_branch(&mut self, (id, job): (u64, &mut Job), branch: Branch) {
        if let Some(sequence) = self.scheduler.find(id, branch) {
            // A branch that has ended counts as live until its driver knows.
            job.live -= usize::from(!sequence.report.closed || sequence.report.has_unreported_ending());
            sequence.report.give_up();
        } else {
            job.drop_ended(branch);
        }
    }

    fn fork(
        &mut self,
        (id, job): (u64, &mut Job),
        of: Branch,
        to: Branch,
        at: usize,
    ) -> Result<(), EngineError> {
        let limit = self.config.max_branches;
        if job.live >= limit {
            return Err(EngineError::Branches { limit });
        }
        let Some(sequence) = self.scheduler.find(id, of) else {
            return Ok(());
        };
        let mut fork = sequence.fork(to, at, &mut self.blocks)?;
        fork.id.number = self.next_sequence;
        self.next_sequence += 1;
        job.live += 1;
        self.stats.forks += 1;
        self.scheduler.take_fork(fork, &mut self.blocks, &self.config);
        Ok(())
    }

    /// Continues with a request, or ends it if all its answers are reported.
    fn put_back(&mut self, id: u64, mut job: Job) {
        let over = job.is_over();
        if over {
            self.scheduler.give_up(id);
            self.stats.failed += job.failed;
        }
        let dropped = job.take_ended(|sequence| over || sequence.report.dropped);
        if !dropped.is_empty() {
            self.grammar_tasks.forget(dropped);
        }
        if !over {
            self.jobs.insert(id, job);
        }
    }

    /// Ends the requests whose deadline has passed, and the attempts and proposals of those that have little
    /// time left: a text that takes the place of an accepted one must have time to end.
    pub(crate) fn end_late(&mut self) {
        let now = Instant::now();
        for sequence in self.scheduler.all().filter(|it| !it.report.closed) {
            let deadline = sequence.request.limits.deadline;
            if deadline.is_some_and(|deadline| sequence.report.moments.is_nearly(deadline, now)) {
                sequence.draw.walk.hurry();
                if let Some(job) = self.jobs.get_mut(&sequence.id.job) {
                    job.driver.hurry();
                }
            }
        }
        while let Some((id, allowed)) = self.scheduler.late() {
            let attempts = self.attempts_of(id);
            let Some(mut job) = self.jobs.remove(&id) else {
                return self.scheduler.give_up(id);
            };
            job.fail_all(&EngineError::Late { allowed, attempts });
            self.put_back(id, job);
        }
        self.collect();
    }

    /// Returns the number of failed attempts of the branches of a request that have not ended.
    fn attempts_of(&mut self, job: u64) -> usize {
        let branches = self.scheduler.all();
        let open = branches.filter(|it| it.id.job == job && !it.report.closed);
        let attempts = |it: &mut Sequence| match law::drawn(&it.request) {
            Some(Law::Global { .. }) => it.draw.walk.failed_attempts() as usize,
            _ => 0,
        };
        open.map(attempts).sum()
    }

    /// Fails the branches whose monitors take too long.
    pub(crate) fn end_watched(&mut self) {
        for sequence in self.scheduler.running.iter_mut().filter(|it| it.is_watched()) {
            let constraints = &sequence.request.constraints;
            let allowed = constraints.monitor_time;
            if let Some(number) = sequence.draw.watch.slow(allowed) {
                let problem = MonitorProblem::Slow { allowed };
                let tilt = constraints.tilt.as_ref();
                let error = monitor_error(&constraints.monitors, tilt, Some(number), problem);
                sequence.draw.watch.forget();
                sequence.grammar.grammar_task = None;
                sequence.fail(error);
            }
        }
    }

    /// Reports to drivers the branches that have ended since the last call.
    pub(crate) fn tell_endings(&mut self) {
        let ended = |sequence: &mut Sequence| {
            let ending = sequence.report.unreported_ending()?;
            Some((sequence.id.job, sequence.id.branch, ending))
        };
        // One at a time: an ended branch counts as live until its driver is informed, so that the other
        // branches are not taken to wait in vain.
        loop {
            let next = self.scheduler.all().find_map(ended);
            let Some((job, branch, ending)) = next else {
                return;
            };
            let event = match ending {
                Ending::Finished(finish) => BranchEvent::Ended(finish),
                Ending::Failed(error) => BranchEvent::Failed(error),
            };
            self.tell(job, branch, event);
        }
    }

    /// Ends an answer whose client has cancelled it.
    pub(crate) fn cancel(&mut self, id: u64, answer: usize) {
        let Some(mut job) = self.jobs.remove(&id) else {
            return;
        };
        let mut orders = std::mem::take(&mut self.orders);
        if job.is_open(answer) {
            let last = match self.cancelled((id, &mut job), answer) {
                Some(outcome) => Event::Done(outcome),
                None => Event::Failed(EngineError::Unanswered),
            };
            job.send(answer, last, &mut orders);
            job.driver.leave(answer, &mut orders);
        }
        let mut pending = PendingEvents::new();
        self.carry_out((id, &mut job), &mut orders, &mut pending);
        self.orders = orders;
        self.put_back(id, job);
        for (job, branch, event) in pending {
            self.tell(job, branch, event);
        }
    }

    /// Returns the outcome of a cancelled answer: that of its branch, or one without tokens if it has no
    /// branch.
    fn cancelled(&mut self, (id, job): (u64, &mut Job), answer: usize) -> Option<Outcome> {
        let own = job.driver.branch_of(answer);
        if let Some(sequence) = own.and_then(|branch| self.scheduler.find(id, branch)) {
            return Some(sequence.outcome(Finish::Cancelled));
        }
        let outcome = match self.scheduler.any_of(id) {
            Some(sequence) => sequence.outcome(Finish::Cancelled),
            None => job.any_ended()?.outcome(Finish::Cancelled),
        };
        Some(Outcome {
            log_probability: 0.0,
            log_weight: None,
            completion_tokens: 0,
            drafted: 0,
            accepted: 0,
            attempts: 1,
            steered: None,
            diagnostics: None,
            ..outcome
        })
    }
}

#[cfg(test)]
mod tests;
