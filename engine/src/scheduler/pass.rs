//! The tokens that a pass feeds: one for each sequence that decodes, then drafts, then pieces of prompts.
//!
//! ```text
//!   |◄────────────────── tokens of the pass ──────────────────►|
//!   | a token each | drafts that pay, likely ones first | prompts     |
//!                  |            ... and no more ►|◄ their floor|
//! ```
//!
//! Blocks are reserved in another order, tokens of texts before drafts: a draft is a wager for
//! which no other sequence pays.

mod drafts;

use super::pace::Pace;
use super::turns::Turns;
use super::{Scheduler, forget_cache};
use crate::blocks::{Beginning, Blocks};
use crate::config::EngineConfig;
use crate::fairness::pool::Owner;
use crate::sequence::Phase;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// The tokens of a pass that are reserved for prompts, however many sequences decode, unless the whole pass
/// is hardly longer.
const PROMPTS: usize = 8;
/// How many times the tokens of a pass that several owners share may be in a pass of prompts alone.
const PROMPTS_ALONE: usize = 4;
/// The divisor that gives the part of a pass that drafts leave to prompts.
const PART_OF_PROMPTS: usize = 4;
/// The most tokens of the draft model in a draft: each takes a pass of it.
const OF_MODEL: usize = 32;
/// After this many passes without it, a branch comes before further branches of other requests.
const PASSES_OF_A_TURN: u64 = 8;

/// One sequence's part of a pass: an index into the running sequences, and how many of its tokens are fed.
/// Its drafts are fed too if this reaches the end of its tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) index: usize,
    pub(crate) feed: usize,
    /// The number of logit rows wanted: none inside a prompt, otherwise one and one for each draft.
    pub(crate) rows: usize,
    /// The number of its first row in the pass.
    pub(crate) first_row: usize,
    /// How many tokens of the second text of a [contrast](crate::sequence::amateur) are fed: a piece of its
    /// prompt, and then nothing else is; or its last one, beside the rows, and the drafts after it.
    pub(crate) amateur: usize,
    /// The number of the first of the second text's rows in the pass, of which there are as many.
    pub(crate) amateur_row: usize,
}

impl Work {
    /// Returns how many of its tokens are fed without a row: all of a piece of a prompt, except for the last
    /// one if a token is drawn after it.
    pub(crate) fn of_prompt(&self) -> usize {
        (self.feed + self.amateur).saturating_sub(self.rows.min(1) + self.amateur_rows().min(1))
    }

    /// Returns the number of tokens fed, with the drafts.
    pub(crate) fn tokens(&self) -> usize {
        let drafts = self.rows.saturating_sub(1) + self.amateur_rows().saturating_sub(1);
        self.feed + self.amateur + drafts
    }

    /// Returns the number of rows of the second text.
    pub(crate) fn amateur_rows(&self) -> usize {
        if self.amateur > 0 { self.rows } else { 0 }
    }

    /// Returns the numbers of the second text's rows in the pass.
    pub(crate) fn all_amateur_rows(&self) -> Range<usize> {
        self.amateur_row..self.amateur_row + self.amateur_rows()
    }

    /// Returns the numbers of its rows in the pass.
    pub(crate) fn all_rows(&self) -> Range<usize> {
        self.first_row..self.first_row + self.rows
    }
}

/// A plan of a pass.
struct PassPlan {
    /// The number of tokens that may still be fed.
    budget: usize,
    /// The number of these tokens that are reserved for prompts.
    reserved: usize,
    works: Vec<Work>,
    preempted: Vec<usize>,
    /// The blocks of prompts that this pass computes and that other sequences could take over.
    beginnings: HashSet<Beginning>,
}

impl PassPlan {
    fn new(budget: usize) -> Self {
        PassPlan {
            budget,
            reserved: 0,
            works: Vec::new(),
            preempted: Vec::new(),
            beginnings: HashSet::new(),
        }
    }

    /// Returns the number of tokens that are not reserved.
    fn room(&self) -> usize {
        self.budget.saturating_sub(self.reserved)
    }
}

impl Scheduler {
    /// Plans a pass and reserves the blocks for it. A pass that several owners share, or that has prompts
    /// beside sequences that decode, is bounded by [`Pace::tokens`], but always has a token for each sequence
    /// that decodes.
    pub(crate) fn schedule(&mut self, blocks: &mut Blocks, config: &EngineConfig, pace: Pace) -> Vec<Work> {
        self.passes += 1;
        self.note_waiting();
        let shared = pace.tokens(config);
        let taking_part = self.taking_part(config, pace).into_iter();
        let (decoding, prompts): (Vec<usize>, Vec<usize>) =
            taking_part.partition(|&index| self.running[index].unfed() == 1);
        let several = self.share.owners() > 1;
        let is_mixed = !decoding.is_empty() && !prompts.is_empty();
        let wanted: usize = prompts.iter().map(|&index| self.running[index].unfed()).sum();
        let wanted = wanted.min(config.prompt_piece);
        let mut plan = PassPlan::new(config.max_step_tokens);
        let least = decoding.len() + PROMPTS.min(wanted);
        if is_mixed {
            plan.budget = plan.budget.min(shared.max(least));
        } else if several {
            // Short passes cost much for each of their tokens, and nobody waits for the next one to draw.
            let longer = if decoding.is_empty() { PROMPTS_ALONE } else { 1 };
            plan.budget = plan.budget.min((longer * shared).max(least));
        }
        let part = plan.budget / PART_OF_PROMPTS;
        plan.reserved = part.min(PROMPTS).min(wanted);
        for index in self.in_turn(decoding) {
            self.plan_one(index, &mut plan, blocks);
        }
        plan.reserved = part.max(plan.reserved).min(wanted);
        self.plan_drafts(&mut plan);
        plan.reserved = 0;
        if is_mixed {
            plan.budget = plan.budget.min(config.prompt_piece);
        }
        for index in self.in_turn(prompts) {
            self.plan_one(index, &mut plan, blocks);
        }
        self.reserve_drafts(&mut plan, blocks);
        self.end(plan)
    }

    /// Returns the running sequences that are ready and whose [turn](super::turns) it is.
    fn taking_part(&mut self, config: &EngineConfig, pace: Pace) -> Vec<usize> {
        let is_ready = |&index: &usize| self.running[index].is_ready();
        let ready: Vec<usize> = (0..self.running.len()).filter(is_ready).collect();
        let tokens = |of: &[usize]| {
            let unfed = of.iter().map(|&index| self.running[index].unfed());
            unfed.sum::<usize>().min(config.max_step_tokens)
        };
        let whole = tokens(&ready);
        if !Turns::are_worth(whole, pace) {
            return ready;
        }
        let mut branches: HashMap<u64, usize> = HashMap::new();
        for sequence in self.running.iter().chain(&self.waiting) {
            *branches.entry(sequence.id.job).or_default() += 1;
        }
        let is_single = |&index: &usize| branches.get(&self.running[index].id.job) == Some(&1);
        let singles: Vec<usize> = ready.iter().copied().filter(is_single).collect();
        let all_are = singles.len() == ready.len();
        match !all_are && self.turns.are_single(tokens(&singles), whole, pace) {
            true => singles,
            false => ready,
        }
    }

    /// Orders the sequences of a pass: one of each owner, the least served owners first, and then the others
    /// of each. Within one owner, the highest priority comes first, then the requests take turns, and then
    /// the sequence that has sat out for the longest comes first.
    fn in_turn(&self, mut indices: Vec<usize>) -> Vec<usize> {
        let last_pass = |index: usize| self.running[index].text.last_pass;
        indices.sort_by_key(|&index| last_pass(index));
        let mut branches: HashMap<u64, u64> = HashMap::new();
        let turn = |index: usize| {
            let before = branches.entry(self.running[index].id.job).or_default();
            *before += 1;
            let sat_out = self.passes - last_pass(index);
            let turn = before.saturating_sub(sat_out / PASSES_OF_A_TURN);
            (Reverse(self.running[index].request.limits.priority), turn)
        };
        let turns = indices.iter().copied().map(turn);
        let mut turns: Vec<_> = turns.zip(indices.iter().copied()).collect();
        // The sort is stable, so sequences that have sat out for longer stay before others.
        turns.sort_by_key(|&(turn, _)| turn);
        let mut numbers: HashMap<&Owner, usize> = HashMap::new();
        let mut owners: Vec<Vec<usize>> = Vec::new();
        for (_, index) in turns {
            let number = *numbers.entry(self.owner_of(index)).or_insert(owners.len());
            if number == owners.len() {
                owners.push(Vec::new());
            }
            owners[number].push(index);
        }
        owners.sort_by_cached_key(|theirs| {
            let longest = theirs.iter().map(|&index| last_pass(index)).min();
            (self.share.of(self.owner_of(theirs[0])), longest)
        });
        let first = owners.iter().map(|theirs| theirs[0]);
        let others = owners.iter().flat_map(|theirs| &theirs[1..]).copied();
        first.chain(others).collect()
    }

    /// Moves the preempted sequences back to the queue, and returns the work of the others.
    fn end(&mut self, mut plan: PassPlan) -> Vec<Work> {
        plan.preempted.sort_unstable();
        for &index in plan.preempted.iter().rev() {
            let sequence = self.running.remove(index);
            self.waiting.push_front(sequence);
        }
        for work in &mut plan.works {
            let sequence_before = plan.preempted.partition_point(|&index| index < work.index);
            work.index -= sequence_before;
        }
        plan.works.sort_by_key(|work| work.index);
        let mut rows = 0;
        for work in &mut plan.works {
            work.first_row = rows;
            rows += work.rows;
        }
        for work in &mut plan.works {
            work.amateur_row = rows;
            rows += work.amateur_rows();
        }
        self.count(&plan.works);
        plan.works
    }

    /// Counts the tokens that a pass feeds for each sequence and its owner.
    fn count(&mut self, works: &[Work]) {
        for work in works {
            let sequence = &mut self.running[work.index];
            sequence.text.last_pass = self.passes;
            sequence.feeds_drafts(work.rows.saturating_sub(1));
            self.share.serve(&sequence.request.limits.owner, work.tokens());
        }
        self.share.advance(works.iter().map(Work::tokens).sum());
    }

    /// Notes the owners of sequences that have something to feed or wait for a place.
    fn note_waiting(&mut self) {
        let ready = self.running.iter().filter(|sequence| sequence.is_ready());
        let waiting = self.waiting.iter().filter(|sequence| !sequence.is_idle());
        let owners = ready
            .chain(waiting)
            .map(|sequence| &sequence.request.limits.owner);
        self.share.note_waiting(&owners.collect());
    }

    /// Counts a pass of these sequences that began without being planned.
    pub(crate) fn go_along(&mut self, works: &[Work]) {
        self.passes += 1;
        self.count(works);
    }

    /// Plans the tokens of a sequence's text, as many as there is room for, and reserves their blocks. Drafts
    /// that follow a prompt get the tokens that are left; the drafts of decoding sequences are planned later.
    fn plan_one(&mut self, index: usize, plan: &mut PassPlan, blocks: &mut Blocks) {
        if plan.room() == 0 || plan.preempted.contains(&index) {
            return;
        }
        let sequence = &mut self.running[index];
        let is_prompt = sequence.unfed() > 1;
        sequence.extend(blocks);
        if sequence.amateur_behind() > 0 {
            return self.plan_amateur(index, plan, blocks);
        }
        let feed = sequence.unfed().min(plan.room());
        let end = sequence.text.computed + feed;
        let beginning = (feed > 1)
            .then(|| blocks.beginning(&sequence.text.table, &sequence.text.tokens, end))
            .flatten();
        if beginning
            .as_ref()
            .is_some_and(|beginning| plan.beginnings.contains(beginning))
        {
            return;
        }
        let draws = sequence.phase != Phase::Reading && feed == sequence.unfed();
        match (draws, is_prompt) {
            (false, _) => sequence.draft.drafts.clear(),
            (true, true) => {
                let room = (plan.room() - feed) / sequence.draft_cost();
                sequence.draft.drafts.truncate(room);
            }
            (true, false) => {}
        }
        let drafts = if is_prompt { sequence.draft.drafts.len() } else { 0 };
        let amateur = usize::from(draws && sequence.amateur.is_some());
        if !self.reserve(index, feed, plan, blocks) {
            return;
        }
        plan.beginnings.extend(beginning);
        let rows = if draws { 1 + drafts } else { 0 };
        let work = Work {
            index,
            feed,
            rows,
            amateur,
            ..Work::default()
        };
        // The last token of a second text may be one more than there is room for.
        plan.budget = plan.budget.saturating_sub(work.tokens());
        plan.works.push(work);
    }

    /// Plans a piece of the second text of a sequence, before whose last token nothing else of the sequence
    /// is fed.
    fn plan_amateur(&mut self, index: usize, plan: &mut PassPlan, blocks: &mut Blocks) {
        let sequence = &mut self.running[index];
        sequence.draft.drafts.clear();
        let amateur = sequence.amateur_behind().min(plan.room());
        if !self.reserve(index, 0, plan, blocks) {
            return;
        }
        plan.budget -= amateur;
        plan.works.push(Work {
            index,
            amateur,
            ..Work::default()
        });
    }

    /// Reserves the blocks of a sequence for this many of its tokens, or of its second text if none of them
    /// are fed. Others may have to give way; returns `false` if it is this one.
    fn reserve(&mut self, index: usize, feed: usize, plan: &mut PassPlan, blocks: &mut Blocks) -> bool {
        let room = plan.room();
        while !self.running[index].reserve((feed, 0), room, blocks) {
            if self.give_way(index, plan, blocks) == index {
                return false;
            }
        }
        true
    }

    /// Takes the blocks of a sequence of the owner that holds the most of them: the last admitted one among
    /// those with the owner's lowest priority. Returns its index.
    fn give_way(&mut self, index: usize, plan: &mut PassPlan, blocks: &mut Blocks) -> usize {
        let holding = |other: usize| {
            !plan.preempted.contains(&other) && (other == index || self.running[other].blocks() > 0)
        };
        let candidates = (0..self.running.len()).filter(|&other| holding(other));
        let most = |&other: &usize| (self.blocks_of(self.owner_of(other)), other);
        let most = candidates.max_by_key(most).unwrap_or(index);
        let victim = self.least_urgent(|other| holding(other) && self.owner_of(other) == self.owner_of(most));
        let victim = victim.unwrap_or(index);
        forget_cache(&mut self.running[victim], blocks);
        self.preemptions += 1;
        plan.works.retain(|work| work.index != victim);
        plan.preempted.push(victim);
        victim
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Drafting;
    use crate::fairness::room::Room;
    use crate::request::Request;
    use crate::request::law;
    use crate::sequence::Sequence;
    use crate::speculation::draft::{Draft, Source};
    use crate::speculation::policy::Policy;
    use lexiform::vocab::{TokenKind, Vocabulary};
    use lexiform_law::draft::Proposal;
    use std::sync::Arc;
    use std::time::Duration;

    /// Creates a scheduler of sequences that decode: the owner of each, how many of ten guesses were
    /// confirmed, and its drafts.
    fn decoding(sequences: &[(&str, usize, &[Source])]) -> Scheduler {
        let vocabulary = Vocabulary::new(&[(TokenKind::Text, "a"), (TokenKind::Special, "$")], &[1]);
        let vocabulary = vocabulary.expect("two tokens");
        let mut scheduler = Scheduler::new(Policy::new(Drafting::Always));
        for (job, (owner, accepted, drafts)) in (0..).zip(sequences) {
            let request = Request::new(vec![0], 99).owner(Some((*owner).into()));
            let warper = law::warper(&request).expect("it is plain");
            let walk = law::local_walk(&request, &warper, &vocabulary);
            let place = Arc::new(Room::new(99)).take(&None, 1).expect("an empty room");
            let mut sequence = Sequence::new(job, request, (warper, walk), place);
            (sequence.phase, sequence.grammar.is_due) = (Phase::Drawing, false);
            (0..10).for_each(|number| sequence.draft.record.guessed(number < *accepted));
            sequence.draft.drafts = drafts.iter().enumerate().map(draft).collect();
            scheduler.running.push(sequence);
        }
        let owners = scheduler.running.iter().map(|it| it.request.limits.owner.clone());
        let mut share = std::mem::take(&mut scheduler.share);
        share.keep(owners);
        scheduler.share = share;
        scheduler
    }

    fn draft((number, &source): (usize, &Source)) -> Draft {
        Draft {
            parent: number.checked_sub(1),
            token: 0,
            source,
            state: None,
            proposal: Proposal::Point,
            is_last: false,
        }
    }

    /// Returns how many drafts of each sequence are in a pass of `tokens` tokens.
    fn drafts_of(scheduler: &mut Scheduler, tokens: usize) -> Vec<usize> {
        let config = EngineConfig {
            max_step_tokens: tokens,
            ..EngineConfig::default()
        };
        let works = scheduler.schedule(&mut Blocks::new(99, 4), &config, Pace::default());
        let indices: Vec<usize> = works.iter().map(|work| work.index).collect();
        assert_eq!(indices, (0..scheduler.running.len()).collect::<Vec<_>>());
        works.iter().map(|work| work.rows - 1).collect()
    }

    #[test]
    fn drafts_that_are_likelier_to_be_confirmed_come_first() {
        use Source::{Copied as Drafted, Forced};
        let sequences: [(&str, usize, &[Source]); 4] = [
            ("a", 1, &[Drafted; 8]),
            ("a", 9, &[Drafted; 4]),
            ("a", 0, &[Forced, Forced, Drafted]),
            ("a", 5, &[]),
        ];
        for (tokens, expected) in [
            (4, [0, 0, 0, 0]),
            (6, [0, 0, 2, 0]),
            (8, [0, 2, 2, 0]),
            // Four successive guesses, each of which comes true 10 times in 12, have a probability of 0.48.
            (10, [0, 4, 2, 0]),
            (11, [1, 4, 2, 0]),
            (12, [2, 4, 2, 0]),
            (99, [8, 4, 3, 0]),
        ] {
            assert_eq!(drafts_of(&mut decoding(&sequences), tokens), expected, "{tokens}");
        }
    }

    /// One text beside two requests of several branches, on a machine that computes a token in a millisecond:
    /// one pass in five is of all sequences.
    #[test]
    fn a_single_text_has_passes_of_its_own_beside_many_branches() {
        let mut pace = Pace::default();
        for tokens in (1..20).cycle().take(200) {
            pace.observe(tokens, Duration::from_millis(tokens as u64));
        }
        let branches: [(&str, usize, &[Source]); 4] = [("a", 0, &[]); 4];
        let mut scheduler = decoding(&branches);
        scheduler.running[1..]
            .iter_mut()
            .for_each(|branch| branch.id.job = 7);
        let passes = |scheduler: &mut Scheduler| -> Vec<Vec<usize>> {
            let pass = |_| {
                let works = scheduler.schedule(&mut Blocks::new(99, 4), &EngineConfig::default(), pace);
                works.iter().map(|work| work.index).collect()
            };
            (0..10).map(pass).collect()
        };
        let (single, all) = (vec![0], vec![0, 1, 2, 3]);
        let turn = [[&single; 4].as_slice(), &[&all]].concat();
        assert_eq!(passes(&mut scheduler).iter().collect::<Vec<_>>(), turn.repeat(2));
        scheduler.running.remove(0);
        assert_eq!(
            passes(&mut scheduler),
            vec![vec![0, 1, 2]; 10],
            "nobody is waited for"
        );
    }

    /// The drafts of the second owner do not count less because they are less likely.
    #[test]
    fn drafts_of_the_owner_who_was_served_least_come_before_better_ones() {
        let drafts = &[Source::Copied; 4][..];
        let mut scheduler = decoding(&[("a", 9, drafts), ("b", 1, drafts)]);
        scheduler.share.serve(&Some("a".into()), 100);
        assert_eq!(drafts_of(&mut scheduler, 7), [1, 4]);
    }
}
