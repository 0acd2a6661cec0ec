//! Which of the waiting sequences run next, and which give way to them.

use super::{Scheduler, forget_cache};
use crate::blocks::Blocks;
use crate::config::EngineConfig;
use crate::fairness::pool::Owner;
use crate::sequence::Sequence;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// The order in which requests of one owner are admitted, the least first: by priority, and then by deadline,
/// which is optional.
type Rank = (Reverse<i32>, bool, Option<Instant>);

fn rank(sequence: &Sequence) -> Rank {
    let deadline = sequence.request.limits.deadline;
    (
        Reverse(sequence.request.limits.priority),
        deadline.is_none(),
        deadline,
    )
}

impl Scheduler {
    /// Admits waiting sequences, as many as there are places for and as one pass can begin.
    pub(crate) fn admit(&mut self, blocks: &mut Blocks, config: &EngineConfig) {
        let owners = self.running.iter().chain(&self.waiting);
        self.share
            .keep(owners.map(|sequence| sequence.request.limits.owner.clone()));
        // Only prompts are counted: a sequence that decodes does not wait for prompts, and no sequence waits
        // for it to end.
        let prompts = self
            .running
            .iter()
            .map(Sequence::unfed)
            .filter(|&unfed| unfed > 1);
        let mut unfed: usize = prompts.sum();
        // Each waiting sequence gets one chance, whichever gives way to which.
        for _ in 0..self.waiting.len() {
            let Some(sequence) = self.next_in_line().and_then(|index| self.waiting.remove(index)) else {
                return;
            };
            if unfed >= config.max_step_tokens && self.can_wait(&sequence) {
                return self.waiting.push_front(sequence);
            }
            let has_place = self.running.len() < config.max_running || self.set_aside(blocks);
            let admitted = if has_place || self.make_way(&sequence.request.limits.owner, blocks) {
                self.admit_one(sequence, blocks)
            } else {
                self.waiting.push_front(sequence);
                None
            };
            match admitted {
                Some(tokens) => unfed += tokens,
                None => return self.overtake(blocks),
            }
        }
    }

    /// Returns `true` if a sequence can wait until the running prompts are read: its owner has others
    /// running, and none of lower priority.
    fn can_wait(&self, sequence: &Sequence) -> bool {
        let (owner, priority) = (&sequence.request.limits.owner, sequence.request.limits.priority);
        let mut theirs = self
            .running
            .iter()
            .filter(|it| it.request.limits.owner == *owner)
            .peekable();
        theirs.peek().is_some() && theirs.all(|it| it.request.limits.priority >= priority)
    }

    /// Returns the waiting sequence whose turn it is: the first one of the owner whose turn it is. A sequence
    /// whose driver has not decided what comes next needs no place.
    fn next_in_line(&self) -> Option<usize> {
        let mut places: HashMap<&Owner, usize> = HashMap::new();
        for sequence in &self.running {
            *places.entry(&sequence.request.limits.owner).or_default() += 1;
        }
        let turn = |&index: &usize| {
            let owner = &self.waiting[index].request.limits.owner;
            let places = places.get(owner).copied().unwrap_or_default();
            (places, self.share.of(owner), index)
        };
        let in_line = || (0..self.waiting.len()).filter(|&index| !self.waiting[index].is_idle());
        let next = in_line().min_by_key(turn)?;
        let owner = &self.waiting[next].request.limits.owner;
        let theirs = in_line().filter(|&index| self.waiting[index].request.limits.owner == *owner);
        theirs.min_by_key(|&index| (rank(&self.waiting[index]), index))
    }

    fn running_of(&self, owner: &Owner) -> usize {
        let theirs = |sequence: &&Sequence| sequence.request.limits.owner == *owner;
        self.running.iter().filter(theirs).count()
    }

    /// Preempts a sequence that waits for its driver, which may in turn wait for the sequence that needs the
    /// place. Returns `true` if there was one.
    fn set_aside(&mut self, blocks: &mut Blocks) -> bool {
        let idle = self.last_idle(|_| true);
        idle.inspect(|&index| self.preempt(index, blocks)).is_some()
    }

    /// Preempts a sequence of the owner that has the most in the batch, if `owner` has at least two fewer.
    /// Returns `true` if it did.
    fn make_way(&mut self, owner: &Owner, blocks: &mut Blocks) -> bool {
        let places = |index: usize| self.running_of(self.owner_of(index));
        let last_of_most = (0..self.running.len()).max_by_key(|&index| (places(index), index));
        let Some(most) = last_of_most.filter(|&index| places(index) > self.running_of(owner) + 1) else {
            return false;
        };
        let Some(victim) = self.least_urgent(|index| self.owner_of(index) == self.owner_of(most)) else {
            return false;
        };
        self.preempt(victim, blocks);
        true
    }

    /// Lets waiting sequences take the places of others of the same owner with a lower priority, if no more
    /// fit.
    fn overtake(&mut self, blocks: &mut Blocks) {
        for _ in 0..self.waiting.len() {
            let Some((index, victim)) = self.overtaking() else {
                return;
            };
            let Some(sequence) = self.waiting.remove(index) else {
                return;
            };
            self.preempt(victim, blocks);
            if self.admit_one(sequence, blocks).is_none() {
                return;
            }
        }
    }

    /// Returns a waiting sequence, and a running one of the same owner whose place it takes.
    fn overtaking(&self) -> Option<(usize, usize)> {
        let mut least: HashMap<&Owner, usize> = HashMap::new();
        for (index, sequence) in self.running.iter().enumerate() {
            let least = least.entry(&sequence.request.limits.owner).or_insert(index);
            if sequence.request.limits.priority <= self.running[*least].request.limits.priority {
                *least = index;
            }
        }
        let overtakes = |index: usize| {
            let Self { waiting, running, .. } = self;
            let victim = *least.get(&waiting[index].request.limits.owner)?;
            let is_before = waiting[index].request.limits.priority > running[victim].request.limits.priority;
            is_before.then_some((index, victim))
        };
        let in_line = (0..self.waiting.len()).filter(|&index| !self.waiting[index].is_idle());
        let pairs = in_line.filter_map(overtakes);
        pairs.min_by_key(|&(index, _)| (rank(&self.waiting[index]), index))
    }

    fn preempt(&mut self, index: usize, blocks: &mut Blocks) {
        let mut sequence = self.running.remove(index);
        forget_cache(&mut sequence, blocks);
        self.waiting.push_front(sequence);
        self.preemptions += 1;
    }

    /// Admits a sequence if its tokens fit beside those of the running ones. Returns how many tokens must be
    /// fed.
    fn admit_one(&mut self, mut sequence: Sequence, blocks: &mut Blocks) -> Option<usize> {
        sequence.extend(blocks);
        let missing = sequence.missing_blocks(blocks);
        // One block more, so that the sequence does not have to give way at its first token.
        while missing >= blocks.free() && !self.running.is_empty() {
            let Some(victim) = self.in_the_way_of(&sequence, sequence.blocks() + missing) else {
                forget_cache(&mut sequence, blocks);
                self.waiting.push_front(sequence);
                return None;
            };
            self.preempt(victim, blocks);
        }
        if sequence.report.place.take().is_some() {
            sequence.report.begun.store(true, Ordering::Relaxed);
            sequence.text.cached = sequence.text.computed;
            sequence.report.moments.admitted();
        }
        let unfed = sequence.unfed();
        self.running.push(sequence);
        Some(unfed)
    }

    /// Returns the sequence that gives its blocks to another, which will hold `needed` blocks. These include
    /// the blocks that it finds in the cache: a sequence that gives way leaves its computed blocks there, and
    /// would be back for them at once. An owner gives way if it holds twice as much of the cache as the
    /// other's owner would: the factor keeps the two from taking turns. Within one owner, a lower priority
    /// gives way to a higher one. Before all of these, a sequence gives way that waits for its driver, which
    /// may wait for this one.
    fn in_the_way_of(&self, sequence: &Sequence, needed: usize) -> Option<usize> {
        let (owner, priority) = (&sequence.request.limits.owner, sequence.request.limits.priority);
        let fair = 2 * (self.blocks_of(owner) + needed + 1);
        let held = |index: usize| self.blocks_of(self.owner_of(index));
        let holds = |index: usize| self.running[index].blocks() > 0;
        if let Some(idle) = self.last_idle(holds) {
            return Some(idle);
        }
        let last_of_most = (0..self.running.len()).max_by_key(|&index| (held(index), index));
        let most = last_of_most.filter(|&index| held(index) >= fair && self.owner_of(index) != owner);
        let other = most.and_then(|most| {
            self.least_urgent(|index| self.owner_of(index) == self.owner_of(most) && holds(index))
        });
        let is_lower = |index: usize| self.running[index].request.limits.priority < priority;
        other.or_else(|| {
            self.least_urgent(|index| self.owner_of(index) == owner && is_lower(index) && holds(index))
        })
    }
}
