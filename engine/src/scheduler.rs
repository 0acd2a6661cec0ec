//! Who runs in the next pass, and with how many tokens.
//!
//! Sequences that decode come first, with a token each and their drafts; what is left of the pass goes to prompts, in
//! pieces if need be. So a long prompt delays nobody by more than one pass. When the cache is full a sequence gives its
//! blocks back and waits at the head of the queue; it will be computed anew. Its draws are seeded by position, so nobody
//! can tell.
//!
//! Owners share all of this equally, however many sequences each brings ([`Share`]):
//!
//! * of those who wait, the one with the fewest sequences running is next, and then the one that was served least;
//! * where the batch is full, an owner with fewer sequences than another takes a place from it;
//! * a pass has a sequence of each owner that decodes, and the rest of it, drafts first, is for those who were served
//!   least; where several wait for it, it is kept short;
//! * where the cache is full, who holds the most of it gives way.
//!
//! Of one owner the branches of its requests take turns in the same way, so that a request is not served the better the
//! more branches it has. What is scheduled are branches that have something to feed, whatever request they are of.
//!
//! A prompt that begins like one which is computed in this pass waits for the next: then it takes those blocks over.

use crate::blocks::{Beginning, Blocks};
use crate::driver::Branch;
use crate::engine::EngineConfig;
use crate::pool::Owner;
use crate::sequence::{Doing, Sequence};
use std::collections::{HashMap, HashSet, VecDeque};

/// Tokens of a pass that are left to prompts, whoever decodes.
const PROMPTS: usize = 8;

/// One sequence's part of a pass: an index into the running sequences and how many of its tokens are fed. Its drafts
/// are fed too if this reaches the end of its tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) index: usize,
    pub(crate) feed: usize,
    /// Logits wanted: none inside a prompt, else one and one for each draft.
    pub(crate) rows: usize,
}

/// The two queues.
#[derive(Default)]
pub(crate) struct Scheduler {
    /// In the order of admission.
    pub(crate) running: Vec<Sequence>,
    pub(crate) waiting: VecDeque<Sequence>,
    /// How often a sequence lost its blocks.
    pub(crate) preemptions: u64,
    share: Share,
    passes: u64,
}

/// How many tokens of prompts and answers were fed for each owner that runs or waits.
#[derive(Default)]
struct Share(HashMap<Owner, u64>);

impl Share {
    /// Knows these owners and no others. One that is new has been served as little as the least of the others.
    fn keep(&mut self, owners: impl Iterator<Item = Owner>) {
        let least = self.0.values().min().copied().unwrap_or_default();
        let before = std::mem::take(&mut self.0);
        let served = |owner: Owner| {
            let served = before.get(&owner).copied().unwrap_or(least);
            (owner, served)
        };
        self.0 = owners.map(served).collect();
    }

    fn serve(&mut self, owner: &Owner, tokens: usize) {
        if let Some(served) = self.0.get_mut(owner) {
            *served += tokens as u64;
        }
    }

    fn of(&self, owner: &Owner) -> u64 {
        self.0.get(owner).copied().unwrap_or_default()
    }
}

impl Scheduler {
    /// Lets waiting sequences run, as many as there are places for and a pass can begin with.
    pub(crate) fn admit(&mut self, blocks: &mut Blocks, config: &EngineConfig) {
        let owners = self.running.iter().chain(&self.waiting);
        self.share
            .keep(owners.map(|sequence| sequence.request.owner.clone()));
        let mut unfed: usize = self.running.iter().map(Sequence::unfed).sum();
        while let Some(index) = self.next_in_line() {
            let Some(sequence) = self.waiting.remove(index) else {
                return;
            };
            let owner = &sequence.request.owner;
            // Who has nothing running does not wait for the prompts of others.
            let too_early = unfed >= config.max_step_tokens && self.running_of(owner) > 0;
            let has_place = self.running.len() < config.max_running;
            if too_early || !has_place && !self.make_way(owner, blocks) {
                return self.waiting.push_front(sequence);
            }
            match self.admit_one(sequence, blocks) {
                Some(tokens) => unfed += tokens,
                None => return,
            }
        }
    }

    /// Plans a pass and reserves the blocks for it. Prompts beside sequences that decode get no more than `shared` tokens,
    /// and so does all of a pass that several owners share.
    pub(crate) fn schedule(
        &mut self,
        blocks: &mut Blocks,
        config: &EngineConfig,
        shared: usize,
    ) -> Vec<Work> {
        self.passes += 1;
        let ready = (0..self.running.len()).filter(|&index| self.running[index].is_ready());
        let (decoding, prompts): (Vec<usize>, Vec<usize>) =
            ready.partition(|&index| self.running[index].unfed() == 1);
        let several = self.share.0.len() > 1;
        let is_shared = several || !decoding.is_empty() && !prompts.is_empty();
        let for_prompts = if prompts.is_empty() { 0 } else { PROMPTS };
        let (mut first, others) = self.in_turn(decoding, several);
        let (first_prompts, other_prompts) = self.in_turn(prompts, several);
        // What a short pass has room for beside a token of each is for the drafts of those who were served least.
        first.sort_by_key(|&index| self.share.of(&self.running[index].request.owner));
        let mut others = [first_prompts, others, other_prompts].concat();
        others.sort_by_key(|&index| self.share.of(&self.running[index].request.owner));
        let least = first.len() + for_prompts;
        let mut plan = Plan {
            budget: config.max_step_tokens,
            reserved: 0,
            works: Vec::new(),
            preempted: Vec::new(),
            beginnings: HashSet::new(),
        };
        if is_shared {
            plan.budget = plan.budget.min(shared.max(least));
        }
        for (number, &index) in first.iter().enumerate() {
            plan.reserved = least - number - 1;
            self.plan_one(index, &mut plan, blocks);
        }
        plan.reserved = 0;
        for index in others {
            self.plan_one(index, &mut plan, blocks);
        }
        self.end(plan)
    }

    /// One sequence of each owner, and then the others: the second of each, the third, and so on. Of one owner those come
    /// first that have sat out for the longest. Where there are not several owners, all are the first.
    fn in_turn(&self, mut indices: Vec<usize>, several: bool) -> (Vec<usize>, Vec<usize>) {
        indices.sort_by_key(|&index| self.running[index].last_pass);
        let mut branches: HashMap<u64, usize> = HashMap::new();
        let mut turn_of_branch = |&index: &usize| {
            let before = branches.entry(self.running[index].job).or_default();
            *before += 1;
            *before
        };
        // Stable, so that those that have sat out for longer stay before others.
        let mut indices: Vec<(usize, usize)> = indices
            .into_iter()
            .map(|index| (turn_of_branch(&index), index))
            .collect();
        indices.sort_by_key(|&(turn, _)| turn);
        let indices = indices.into_iter().map(|(_, index)| index);
        let mut met: HashMap<&Owner, usize> = HashMap::new();
        let mut turns: Vec<(usize, usize)> = Vec::with_capacity(indices.len());
        for index in indices {
            let before = met.entry(&self.running[index].request.owner).or_default();
            turns.push((*before, index));
            *before += usize::from(several);
        }
        turns.sort_by_key(|&(before, _)| before);
        let first = turns.partition_point(|&(before, _)| before == 0);
        let indices: Vec<usize> = turns.into_iter().map(|(_, index)| index).collect();
        let (first, others) = indices.split_at(first);
        (first.to_vec(), others.to_vec())
    }

    /// Sends the preempted sequences back to the queue; what the others do.
    fn end(&mut self, mut plan: Plan) -> Vec<Work> {
        plan.preempted.sort_unstable();
        for &index in plan.preempted.iter().rev() {
            let sequence = self.running.remove(index);
            self.waiting.push_front(sequence);
        }
        for work in &mut plan.works {
            let sequence_before = plan.preempted.partition_point(|&index| index < work.index);
            work.index -= sequence_before;
            let sequence = &mut self.running[work.index];
            sequence.last_pass = self.passes;
            let drafts = work.rows.saturating_sub(1);
            self.share.serve(&sequence.request.owner, work.feed + drafts);
        }
        plan.works.sort_by_key(|work| work.index);
        plan.works
    }

    fn plan_one(&mut self, index: usize, plan: &mut Plan, blocks: &mut Blocks) {
        if plan.budget == 0 || plan.preempted.contains(&index) {
            return;
        }
        let sequence = &mut self.running[index];
        // Others may have computed what comes next since it was admitted or sat out.
        sequence.computed = sequence
            .computed
            .max(blocks.extend(&mut sequence.table, &sequence.tokens));
        let feed = sequence.unfed().min(plan.budget);
        let end = sequence.computed + feed;
        let beginning = (feed > 1)
            .then(|| blocks.beginning(&sequence.table, &sequence.tokens, end))
            .flatten();
        if beginning
            .as_ref()
            .is_some_and(|beginning| plan.beginnings.contains(beginning))
        {
            return;
        }
        let draws = sequence.doing != Doing::Reading && feed == sequence.unfed();
        let room = match draws {
            true => plan.budget.saturating_sub(feed + plan.reserved),
            false => 0,
        };
        sequence.drafts.truncate(room);
        loop {
            let sequence = &mut self.running[index];
            let end = sequence.computed + feed + sequence.drafts.len();
            if blocks.reserve(&mut sequence.table, sequence.computed, end) {
                break;
            }
            // Drafts are a bet: nobody else pays for one. The last go first, so that whether one is verified does not
            // depend on what is behind it, which depends on its token.
            if sequence.drafts.pop().is_some() {
                continue;
            }
            if self.give_way(index, plan, blocks) == index {
                return;
            }
        }
        let sequence = &self.running[index];
        let rows = if draws { 1 + sequence.drafts.len() } else { 0 };
        plan.beginnings.extend(beginning);
        plan.budget -= feed + sequence.drafts.len();
        plan.works.push(Work { index, feed, rows });
    }

    /// Takes the blocks of the sequence that its owner, who holds the most of them, had admitted last; says which it was.
    fn give_way(&mut self, index: usize, plan: &mut Plan, blocks: &mut Blocks) -> usize {
        let holding = |&other: &usize| {
            !plan.preempted.contains(&other)
                && (other == index || !self.running[other].table.blocks().is_empty())
        };
        let candidates = (0..self.running.len()).filter(holding);
        let most = |&other: &usize| (self.blocks_of(&self.running[other].request.owner), other);
        let victim = candidates.max_by_key(most).unwrap_or(index);
        forget_cache(&mut self.running[victim], blocks);
        self.preemptions += 1;
        plan.works.retain(|work| work.index != victim);
        plan.preempted.push(victim);
        victim
    }

    /// The waiting sequence whose turn it is.
    fn next_in_line(&self) -> Option<usize> {
        let mut places: HashMap<&Owner, usize> = HashMap::new();
        for sequence in &self.running {
            *places.entry(&sequence.request.owner).or_default() += 1;
        }
        let turn = |&index: &usize| {
            let owner = &self.waiting[index].request.owner;
            let places = places.get(owner).copied().unwrap_or_default();
            (places, self.share.of(owner), index)
        };
        (0..self.waiting.len()).min_by_key(turn)
    }

    fn running_of(&self, owner: &Owner) -> usize {
        let theirs = |sequence: &&Sequence| sequence.request.owner == *owner;
        self.running.iter().filter(theirs).count()
    }

    fn blocks_of(&self, owner: &Owner) -> usize {
        let theirs = self
            .running
            .iter()
            .filter(|sequence| sequence.request.owner == *owner);
        theirs.map(|sequence| sequence.table.blocks().len()).sum()
    }

    /// Takes a place in the batch from the owner that has the most, if this one has at least two fewer; whether it did.
    fn make_way(&mut self, owner: &Owner, blocks: &mut Blocks) -> bool {
        let places = |index: usize| self.running_of(&self.running[index].request.owner);
        let last_of_most = (0..self.running.len()).max_by_key(|&index| (places(index), index));
        let Some(victim) = last_of_most.filter(|&index| places(index) > self.running_of(owner) + 1) else {
            return false;
        };
        self.preempt(victim, blocks);
        true
    }

    fn preempt(&mut self, index: usize, blocks: &mut Blocks) {
        let mut sequence = self.running.remove(index);
        forget_cache(&mut sequence, blocks);
        self.waiting.push_front(sequence);
        self.preemptions += 1;
    }

    /// Lets a sequence run if its tokens fit beside what runs already; how many must be fed. An owner that holds twice as
    /// much of the cache as this one would gives way to it: the factor keeps the two from taking turns.
    fn admit_one(&mut self, mut sequence: Sequence, blocks: &mut Blocks) -> Option<usize> {
        let (table, covered) = blocks.take_over(&sequence.tokens);
        let missing = blocks.missing(&table, sequence.tokens.len());
        // One block more, so that it does not have to give way at its first token.
        while missing >= blocks.free() && !self.running.is_empty() {
            let owner = &sequence.request.owner;
            let fair = 2 * (self.blocks_of(owner) + missing + 1);
            let held = |index: usize| self.blocks_of(&self.running[index].request.owner);
            let last_of_most = (0..self.running.len()).max_by_key(|&index| (held(index), index));
            let victim = last_of_most
                .filter(|&index| held(index) >= fair && self.running[index].request.owner != *owner);
            let Some(victim) = victim else {
                blocks.release(table);
                self.waiting.push_front(sequence);
                return None;
            };
            self.preempt(victim, blocks);
        }
        sequence.table = table;
        sequence.computed = covered;
        if sequence.place.take().is_some() {
            sequence.cached = covered;
            sequence.moments.admitted();
        }
        let unfed = sequence.unfed();
        self.running.push(sequence);
        Some(unfed)
    }

    /// Takes out the sequences that are done and gives their blocks back.
    pub(crate) fn collect(&mut self, blocks: &mut Blocks) -> Vec<Sequence> {
        let running = self.running.extract_if(.., |sequence| sequence.closed);
        let mut done: Vec<Sequence> = running.collect();
        for sequence in &mut done {
            forget_cache(sequence, blocks);
        }
        let (closed, open): (VecDeque<Sequence>, VecDeque<Sequence>) =
            self.waiting.drain(..).partition(|sequence| sequence.closed);
        self.waiting = open;
        done.extend(closed);
        done
    }

    /// Takes a branch in that was forked from one that runs. Where there is no place for it, it waits, and takes over later
    /// what is then still in the cache.
    pub(crate) fn take_fork(&mut self, mut fork: Sequence, blocks: &mut Blocks, config: &EngineConfig) {
        if self.running.len() < config.max_running {
            return self.running.push(fork);
        }
        forget_cache(&mut fork, blocks);
        self.waiting.push_back(fork);
    }

    /// A branch of a request.
    pub(crate) fn find(&mut self, job: u64, branch: Branch) -> Option<&mut Sequence> {
        self.all()
            .find(|sequence| sequence.job == job && sequence.branch == branch && !sequence.dropped)
    }

    /// Some branch of a request.
    pub(crate) fn any_of(&mut self, job: u64) -> Option<&mut Sequence> {
        self.all().find(|sequence| sequence.job == job)
    }

    /// Whether a branch of a request has something to do, or to tell.
    pub(crate) fn goes_on(&mut self, job: u64) -> bool {
        let goes_on =
            |sequence: &Sequence| sequence.doing != Doing::Waiting && !sequence.closed || sequence.has_news();
        self.all()
            .any(|sequence| sequence.job == job && goes_on(sequence))
    }

    /// Gives up all branches of a request.
    pub(crate) fn give_up(&mut self, job: u64) {
        self.all()
            .filter(|sequence| sequence.job == job)
            .for_each(Sequence::give_up);
    }

    /// All sequences, running or waiting.
    pub(crate) fn all(&mut self) -> impl Iterator<Item = &mut Sequence> {
        self.running.iter_mut().chain(self.waiting.iter_mut())
    }
}

struct Plan {
    budget: usize,
    /// Tokens of the budget that are for those who come later.
    reserved: usize,
    works: Vec<Work>,
    preempted: Vec<usize>,
    /// The blocks of prompts that this pass computes and that others may want.
    beginnings: HashSet<Beginning>,
}

/// Gives a sequence's blocks back; what was committed may still be there when it runs again.
pub(crate) fn forget_cache(sequence: &mut Sequence, blocks: &mut Blocks) {
    blocks.release(std::mem::take(&mut sequence.table));
    sequence.computed = 0;
    sequence.drafts.clear();
}
