//! Who runs in the next pass, and with how many tokens.
//!
//! Sequences that decode come first, one token and their drafts each; what is left of the step's token budget goes to
//! prompts, in pieces if need be, and then to waiting requests. So a long prompt delays nobody by more than one
//! budget's worth of computing. When the cache is full the sequence admitted last gives its blocks back and waits at
//! the head of the queue; it will be computed anew. Its draws are seeded by position, so nobody can tell.

use crate::blocks::Blocks;
use crate::engine::EngineConfig;
use crate::sequence::Sequence;
use std::collections::VecDeque;

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
}

impl Scheduler {
    /// Plans a pass and reserves the blocks for it.
    pub(crate) fn schedule(&mut self, blocks: &mut Blocks, config: &EngineConfig) -> Vec<Work> {
        let mut plan = Plan {
            budget: config.max_step_tokens,
            works: Vec::new(),
        };
        let (decoding, prompts): (Vec<usize>, Vec<usize>) =
            (0..self.running.len()).partition(|&index| self.running[index].unfed() == 1);
        for index in decoding.into_iter().chain(prompts) {
            // Preemption may have taken the tail of the list away meanwhile.
            if index < self.running.len() && plan.budget > 0 {
                self.plan_one(index, &mut plan, blocks);
            }
        }
        while plan.budget > 0 && self.running.len() < config.max_running && self.admit(blocks) {
            self.plan_one(self.running.len() - 1, &mut plan, blocks);
        }
        plan.works.sort_by_key(|work| work.index);
        plan.works
    }

    fn plan_one(&mut self, index: usize, plan: &mut Plan, blocks: &mut Blocks) {
        let sequence = &mut self.running[index];
        if sequence.table.blocks().is_empty() {
            // It begins another attempt; the cache remembers the prompt.
            (sequence.table, sequence.computed) = blocks.take_over(&sequence.tokens);
        }
        let feed = sequence.unfed().min(plan.budget);
        let room = if feed == sequence.unfed() {
            plan.budget - feed
        } else {
            0
        };
        sequence.drafts.truncate(room);
        loop {
            let sequence = &mut self.running[index];
            let end = sequence.computed + feed + sequence.drafts.len();
            if blocks.grow(&mut sequence.table, end) {
                break;
            }
            // Drafts are a bet: nobody else pays for one.
            if !sequence.drafts.is_empty() {
                sequence.drafts.clear();
            } else if self.preempt_last(plan, blocks) == index {
                return;
            }
        }
        let sequence = &self.running[index];
        let rows = if feed == sequence.unfed() {
            1 + sequence.drafts.len()
        } else {
            0
        };
        plan.budget -= feed + sequence.drafts.len();
        plan.works.push(Work { index, feed, rows });
    }

    /// Sends the sequence admitted last back to the queue; says which it was.
    fn preempt_last(&mut self, plan: &mut Plan, blocks: &mut Blocks) -> usize {
        let index = self.running.len() - 1;
        if let Some(mut sequence) = self.running.pop() {
            forget_cache(&mut sequence, blocks);
            self.waiting.push_front(sequence);
            self.preemptions += 1;
        }
        plan.works.retain(|work| work.index != index);
        index
    }

    /// Lets the first waiting sequence run if its tokens fit beside what runs already.
    fn admit(&mut self, blocks: &mut Blocks) -> bool {
        let Some(mut sequence) = self.waiting.pop_front() else {
            return false;
        };
        let (table, covered) = blocks.take_over(&sequence.tokens);
        // One block more, so that it does not have to give way at its first token.
        let fits = blocks.missing(&table, sequence.tokens.len()) < blocks.free();
        if !fits && !self.running.is_empty() {
            blocks.release(table);
            self.waiting.push_front(sequence);
            return false;
        }
        sequence.table = table;
        sequence.computed = covered;
        if sequence.place.take().is_some() {
            sequence.cached = covered;
            sequence.moments.admitted();
        }
        self.running.push(sequence);
        true
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

    /// All sequences, running or waiting.
    pub(crate) fn all(&mut self) -> impl Iterator<Item = &mut Sequence> {
        self.running.iter_mut().chain(self.waiting.iter_mut())
    }
}

struct Plan {
    budget: usize,
    works: Vec<Work>,
}

/// Gives a sequence's blocks back; what was committed may still be there when it runs again.
pub(crate) fn forget_cache(sequence: &mut Sequence, blocks: &mut Blocks) {
    blocks.release(std::mem::take(&mut sequence.table));
    sequence.computed = 0;
    sequence.drafts.clear();
}
