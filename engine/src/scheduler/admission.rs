//! Who of those that wait runs, and who gives way to them.

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
/// which most may not have.
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
    /// Lets waiting sequences run, as many as there are places for and a pass can begin with.
    pub(crate) fn admit(&mut self, blocks: &mut Blocks, config: &EngineConfig) {
        let owners = self.running.iter().chain(&self.waiting);
        self.share
            .keep(owners.map(|sequence| sequence.request.limits.owner.clone()));
        // Those that decode wait for nobody's prompt, and nobody waits until they are done.
        let prompts = self
            .running
            .iter()
            .map(Sequence::unfed)
            .filter(|&unfed| unfed > 1);
        let mut unfed: usize = prompts.sum();
        // Each once, whoever gives way to whom.
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

    /// Whether a sequence may wait until the prompts that run are read: its owner has others running, and
    /// none that it goes before.
    fn can_wait(&self, sequence: &Sequence) -> bool {
        let (owner, priority) = (&sequence.request.limits.owner, sequence.request.limits.priority);
        let mut theirs = self
            .running
            .iter()
            .filter(|it| it.request.limits.owner == *owner)
            .peekable();
        theirs.peek().is_some() && theirs.all(|it| it.request.limits.priority >= priority)
    }

    /// The waiting sequence whose turn it is: the first of the owner whose turn it is. One whose driver has
    /// not said what comes next needs no place.
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

    /// Takes the place of a sequence that waits for its driver, which may wait for the one that needs the
    /// place; whether there was any.
    fn set_aside(&mut self, blocks: &mut Blocks) -> bool {
        let idle = self.last_idle(|_| true);
        idle.inspect(|&index| self.preempt(index, blocks)).is_some()
    }

    /// Takes a place in the batch from the owner that has the most, if this one has at least two fewer;
    /// whether it did.
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

    /// Where nothing more fits, lets sequences take the places of others of the same owner with a lower
    /// priority.
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

    /// A waiting sequence, and a running one of the same owner whose place it takes.
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

    /// Lets a sequence run if its tokens fit beside what runs already; how many must be fed.
    fn admit_one(&mut self, mut sequence: Sequence, blocks: &mut Blocks) -> Option<usize> {
        let (table, covered) = blocks.take_over(&sequence.tokens);
        let missing = blocks.missing(&table, sequence.tokens.len());
        // One block more, so that it does not have to give way at its first token.
        while missing >= blocks.free() && !self.running.is_empty() {
            let Some(victim) = self.in_the_way_of(&sequence, table.blocks().len() + missing) else {
                blocks.release(table);
                self.waiting.push_front(sequence);
                return None;
            };
            self.preempt(victim, blocks);
        }
        sequence.table = table;
        sequence.computed = covered;
        if sequence.place.take().is_some() {
            sequence.begun.store(true, Ordering::Relaxed);
            sequence.cached = covered;
            sequence.moments.admitted();
        }
        let unfed = sequence.unfed();
        self.running.push(sequence);
        Some(unfed)
    }

    /// The sequence that gives its blocks to another which will hold so many, those that it finds in the
    /// cache included: whoever gives way leaves what it computed there, and would be back for it at once. An
    /// owner that holds twice as much of the cache as the other's would gives way to it: the factor keeps the
    /// two from taking turns. Of the same owner a lower priority gives way to a higher one. Before all of
    /// these goes one that waits for its driver, which may wait for this one.
    fn in_the_way_of(&self, sequence: &Sequence, needed: usize) -> Option<usize> {
        let (owner, priority) = (&sequence.request.limits.owner, sequence.request.limits.priority);
        let fair = 2 * (self.blocks_of(owner) + needed + 1);
        let held = |index: usize| self.blocks_of(self.owner_of(index));
        let holds = |index: usize| !self.running[index].table.blocks().is_empty();
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
