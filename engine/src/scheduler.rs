//! Which sequences run in the next pass, and with how many tokens.
//!
//! ```text
//!   waiting ── admission ──► running ── pass ──► works: how many tokens each is fed
//!      ▲   places, cache        │    1. a token for each that decodes
//!      └────── preempted ◄──────┘    2. drafts, as far as they pay        3. prompts, in pieces
//! ```
//!
//! Sequences that decode come first, with a token each; so none of them waits for the drafts of another, and
//! a long prompt delays no sequence by more than one pass. When the cache is full, a sequence releases its
//! blocks and waits at the head of the queue; it will be computed anew. Its draws are seeded by position, so
//! the result is the same.
//!
//! Owners share all of this equally, however many sequences each brings ([`Share`]):
//!
//! * of the waiting sequences, the next one is of the owner with the fewest sequences running, and among
//!   these of the owner that was served least;
//! * where the batch is full, an owner with fewer sequences than another takes a place from it;
//! * a pass has a token for every sequence that decodes; if it is too small for that, it serves one of each
//!   owner first. The rest of it goes to the owners that were served least. Where several owners wait for
//!   it, it is kept short;
//! * where the cache is full, the owner that holds the most of it gives way.
//!
//! Priorities and deadlines order the requests of one owner only: the request with the highest priority runs
//! first and takes the place of one with a lower priority of the same owner, and the one with the lowest
//! gives way first. Among requests with the same priority, the one with the earlier deadline is admitted
//! first.
//!
//! The branches of one owner's requests take turns in the same way, so that a request is not served better
//! the more branches it has. The scheduler schedules branches that have something to feed, whatever request
//! they belong to.
//!
//! Where passes take longer the more they feed, requests of one text have [separate passes](turns) between
//! those of all requests.
//!
//! A prompt whose beginning is computed in this pass for another sequence waits for the next pass, in which
//! it takes over those blocks.
//!
//! Tests: `engine/tests/engine/fairness.rs` and `priorities.rs` count the passes that each owner and each
//! request gets.

mod admission;
pub(crate) mod pace;
pub(crate) mod pass;
mod turns;

use crate::blocks::Blocks;
use crate::config::EngineConfig;
use crate::fairness::pool::Owner;
use crate::request::driver::Branch;
use crate::scheduler::turns::Turns;
use crate::sequence::{Phase, Sequence};
use crate::speculation::policy::Policy;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

/// The queue of running and the queue of waiting sequences.
#[derive(Default)]
pub(crate) struct Scheduler {
    /// The running sequences, in the order of admission.
    pub(crate) running: Vec<Sequence>,
    pub(crate) waiting: VecDeque<Sequence>,
    /// The number of times that a sequence lost its blocks.
    pub(crate) preemptions: u64,
    share: Share,
    turns: Turns,
    passes: u64,
    pub(crate) policy: Policy,
}

/// The tokens of prompts and answers that were fed for each owner with a running or waiting sequence, in
/// [parts](PART) of a token.
///
/// A clock advances with each pass by the tokens that each owner with something to feed would have had of it
/// if all had the same (the virtual time of generalised processor sharing, Parekh and Gallager 1993). A new
/// owner begins at the clock. If it began at the least of the others, an endless row of new owners would keep
/// all that have had anything from ever having more.
#[derive(Default)]
struct Share {
    served: HashMap<Owner, u64>,
    clock: u64,
    /// The number of owners with something to feed.
    waiting: usize,
}

/// The parts of a token, so that the clock can advance by less than one.
const PART: u64 = 1 << 20;

impl Share {
    /// Keeps these owners and forgets all others.
    fn keep(&mut self, owners: impl Iterator<Item = Owner>) {
        let before = std::mem::take(&mut self.served);
        let served = |owner: Owner| {
            let served = before.get(&owner).copied().unwrap_or(self.clock);
            (owner, served)
        };
        self.served = owners.map(served).collect();
    }

    /// Notes which owners have something to feed. The others are owed nothing for the passes that they do not
    /// need.
    fn note_waiting(&mut self, waiting: &HashSet<&Owner>) {
        self.waiting = waiting.len();
        for (owner, served) in &mut self.served {
            if !waiting.contains(owner) {
                *served = self.clock.max(*served);
            }
        }
    }

    fn serve(&mut self, owner: &Owner, tokens: usize) {
        if let Some(served) = self.served.get_mut(owner) {
            *served += tokens as u64 * PART;
        }
    }

    /// Advances the clock by a pass of so many tokens.
    fn advance(&mut self, tokens: usize) {
        self.clock += tokens as u64 * PART / self.waiting.max(1) as u64;
    }

    fn of(&self, owner: &Owner) -> u64 {
        self.served.get(owner).copied().unwrap_or(self.clock)
    }

    /// Returns the number of owners.
    fn owners(&self) -> usize {
        self.served.len()
    }
}

impl Scheduler {
    pub(crate) fn new(policy: Policy) -> Self {
        Scheduler {
            policy,
            ..Scheduler::default()
        }
    }

    /// Returns the running sequence that gives way first, among some: one that waits for its driver before
    /// all others, then the one with the lowest priority, and of several the last one admitted.
    fn least_urgent(&self, among: impl Fn(usize) -> bool) -> Option<usize> {
        let indices = (0..self.running.len()).filter(|&index| among(index));
        indices.min_by_key(|&index| {
            let sequence = &self.running[index];
            (
                !sequence.is_idle(),
                sequence.request.limits.priority,
                Reverse(index),
            )
        })
    }

    /// Returns the last admitted of the running sequences that wait for their driver.
    fn last_idle(&self, among: impl Fn(usize) -> bool) -> Option<usize> {
        let mut indices = (0..self.running.len()).rev();
        indices.find(|&index| self.running[index].is_idle() && among(index))
    }

    fn owner_of(&self, index: usize) -> &Owner {
        &self.running[index].request.limits.owner
    }

    fn blocks_of(&self, owner: &Owner) -> usize {
        let theirs = self.running.iter().filter(|it| it.request.limits.owner == *owner);
        theirs.map(Sequence::blocks).sum()
    }

    /// Returns a request that has branches here and did not end by its deadline, and the time that it had.
    pub(crate) fn late(&mut self) -> Option<(u64, Duration)> {
        let open = self.all().filter(|sequence| !sequence.report.closed);
        let deadline = |it: &mut Sequence| Some((it.request.limits.deadline?, it.id.job, it.report.moments));
        let (deadline, job, moments) = open.filter_map(deadline).min_by_key(|&(deadline, ..)| deadline)?;
        (deadline <= Instant::now()).then(|| (job, moments.until(deadline)))
    }

    /// Removes the sequences that are done and releases their blocks.
    pub(crate) fn collect(&mut self, blocks: &mut Blocks) -> Vec<Sequence> {
        let running = self.running.extract_if(.., |sequence| sequence.report.closed);
        let mut done: Vec<Sequence> = running.collect();
        for sequence in &mut done {
            forget_cache(sequence, blocks);
        }
        let (closed, open): (VecDeque<Sequence>, VecDeque<Sequence>) = self
            .waiting
            .drain(..)
            .partition(|sequence| sequence.report.closed);
        self.waiting = open;
        done.extend(closed);
        done
    }

    /// Takes in a branch that was forked from a running one. If there is no place for it, it waits, and takes
    /// over later whatever is still in the cache then.
    pub(crate) fn take_fork(&mut self, mut fork: Sequence, blocks: &mut Blocks, config: &EngineConfig) {
        if self.running.len() < config.max_running {
            return self.running.push(fork);
        }
        forget_cache(&mut fork, blocks);
        self.waiting.push_back(fork);
    }

    /// Returns a branch of a request.
    pub(crate) fn find(&mut self, job: u64, branch: Branch) -> Option<&mut Sequence> {
        self.all().find(|sequence| {
            sequence.id.job == job && sequence.id.branch == branch && !sequence.report.dropped
        })
    }

    /// Returns any one branch of a request.
    pub(crate) fn any_of(&mut self, job: u64) -> Option<&mut Sequence> {
        self.all().find(|sequence| sequence.id.job == job)
    }

    /// Returns `true` if a branch of a request has something to do, or to report.
    pub(crate) fn goes_on(&mut self, job: u64) -> bool {
        let goes_on = |sequence: &Sequence| {
            sequence.phase != Phase::Waiting && !sequence.report.closed
                || sequence.report.has_unreported_ending()
        };
        self.all()
            .any(|sequence| sequence.id.job == job && goes_on(sequence))
    }

    /// Gives up all branches of a request.
    pub(crate) fn give_up(&mut self, job: u64) {
        self.all()
            .filter(|sequence| sequence.id.job == job)
            .for_each(|sequence| sequence.report.give_up());
    }

    /// Returns all sequences, running or waiting.
    pub(crate) fn all(&mut self) -> impl Iterator<Item = &mut Sequence> {
        self.running.iter_mut().chain(self.waiting.iter_mut())
    }
}

/// Releases a sequence's blocks; committed content may still be there when it runs again.
pub(crate) fn forget_cache(sequence: &mut Sequence, blocks: &mut Blocks) {
    blocks.release(sequence.text.table.take());
    sequence.text.computed = 0;
    if let Some(amateur) = &mut sequence.amateur {
        amateur.forget(blocks);
    }
    sequence.draft.drafts.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In each pass, the owner with the least is fed; one who has had ten tokens meets a new owner in each.
    #[test]
    fn an_endless_row_of_new_owners_keeps_nobody_waiting() {
        let (old, mut share) = (Owner::from(Some("old".into())), Share::default());
        share.keep([old.clone()].into_iter());
        share.serve(&old, 10);
        let turn = |share: &mut Share, number: usize| {
            let new = Owner::from(Some(format!("new {number}").into()));
            share.keep([old.clone(), new.clone()].into_iter());
            share.note_waiting(&HashSet::from([&old, &new]));
            let is_old = share.of(&old) < share.of(&new);
            share.serve(if is_old { &old } else { &new }, 1);
            share.advance(1);
            is_old
        };
        let turns: Vec<bool> = (0..100).map(|number| turn(&mut share, number)).collect();
        let fed = turns.iter().filter(|is_old| **is_old).count();
        assert!((35..=50).contains(&fed), "{fed} of 100 passes");
        assert!(
            turns[..25].contains(&true),
            "it waits for what it has had too much"
        );
    }

    #[test]
    fn nobody_saves_up_for_passes_that_he_did_not_need() {
        let (a, b) = (Owner::from(Some("a".into())), Owner::from(Some("b".into())));
        let mut share = Share::default();
        share.keep([a.clone(), b.clone()].into_iter());
        share.note_waiting(&HashSet::from([&a]));
        share.serve(&a, 100);
        share.advance(100);
        share.note_waiting(&HashSet::from([&a]));
        assert_eq!(share.of(&a), share.of(&b));
    }
}
