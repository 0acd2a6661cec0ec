//! The drafts of a pass: how many are fed, and for how many there is room.

use super::{OF_MODEL, PassPlan, Scheduler};
use crate::blocks::Blocks;
use crate::scheduler::pass::Work;
use crate::sequence::Sequence;
use crate::speculation::policy::{Base, CandidateDraft};

impl Scheduler {
    /// Feeds as many of the drafts of the sequences planned so far as [pay](crate::speculation::policy) and
    /// as there is room for.
    pub(super) fn plan_drafts(&mut self, plan: &mut PassPlan) {
        let drawing = || plan.works.iter().enumerate().filter(|(_, work)| work.rows > 0);
        let (mut candidates, mut has_drafts): (Vec<CandidateDraft>, bool) = (Vec::new(), false);
        for (number, work) in drawing() {
            let sequence = &mut self.running[work.index];
            sequence.consult(&mut self.policy);
            has_drafts |= !sequence.draft.drafts.is_empty();
            candidates.extend(
                self.policy
                    .candidates(number, &sequence.draft.drafts, &sequence.draft.record),
            );
        }
        if !has_drafts {
            return;
        }
        let base = Base {
            tokens: drawing().map(|(_, work)| work.feed).sum(),
            drawing: drawing().count(),
            prompts: plan.reserved,
        };
        let taken = self.policy.choose(base, &mut candidates);
        candidates.truncate(taken);
        let number_of_drafts = |work: &Work| self.running[work.index].draft.drafts.len();
        let mut is_kept: Vec<Vec<bool>> = plan
            .works
            .iter()
            .map(|work| vec![false; number_of_drafts(work)])
            .collect();
        candidates
            .iter()
            .for_each(|candidate| is_kept[candidate.of][candidate.node] = true);
        for (number, work) in drawing() {
            let sequence = &mut self.running[work.index];
            // A bandit feeds drafts by its own rules, so being left out says nothing about them.
            if sequence.draft.record.play.is_none() {
                sequence.hear_of_drafts(&is_kept[number]);
            }
        }
        let left_out = self.left_out(plan, &mut candidates);
        left_out
            .iter()
            .for_each(|candidate| is_kept[candidate.of][candidate.node] = false);
        let costs = candidates.iter().map(|candidate| self.cost(plan, candidate));
        plan.budget -= costs.sum::<usize>();
        candidates
            .iter()
            .for_each(|candidate| plan.works[candidate.of].rows += 1);
        for (work, is_kept) in plan.works.iter().zip(is_kept) {
            let sequence = &mut self.running[work.index];
            sequence.keep_drafts(&is_kept);
            self.policy
                .price(base, &sequence.draft.drafts, &mut sequence.draft.record);
        }
    }

    /// Removes the candidate drafts for which the pass has no room: the drafts of the most served owners, and
    /// within one owner those that are least likely to be confirmed.
    fn left_out(&self, plan: &PassPlan, candidates: &mut Vec<CandidateDraft>) -> Vec<CandidateDraft> {
        let room = plan.room();
        let cost = |candidate: &CandidateDraft| self.cost(plan, candidate);
        if candidates.iter().map(cost).sum::<usize>() <= room {
            return Vec::new();
        }
        let served = |candidate: &CandidateDraft| {
            let owner = &self.running[plan.works[candidate.of].index].request.limits.owner;
            self.share.of(owner)
        };
        // The sort is stable, and the chances of one sequence decrease, so its first drafts come first.
        candidates.sort_by(|one, other| {
            served(one)
                .cmp(&served(other))
                .then(other.chance.total_cmp(&one.chance))
        });
        let mut taken = 0;
        let fits = |candidate: &&CandidateDraft| {
            taken += cost(candidate);
            taken <= room
        };
        let fitting = candidates.iter().take_while(fits).count();
        candidates.split_off(fitting)
    }

    /// Returns the number of tokens that a draft takes in a pass.
    fn cost(&self, plan: &PassPlan, candidate: &CandidateDraft) -> usize {
        self.running[plan.works[candidate.of].index].draft_cost()
    }

    /// Sets how far the draft model may lengthen the drafts of the sequences that it drafts for: as far as it
    /// pays, by what is known before it draws.
    pub(crate) fn plan_model(&mut self, takes_part: impl Fn(&Sequence) -> bool) {
        let draws = |sequence: &Sequence| sequence.is_ready() && sequence.unfed() == 1;
        let drawing = self.running.iter().filter(|&sequence| draws(sequence)).count();
        let reads = |sequence: &&Sequence| sequence.is_ready() && sequence.unfed() > 1;
        let prompts = self.running.iter().filter(reads).map(Sequence::unfed).sum();
        let mut candidates: Vec<CandidateDraft> = Vec::new();
        for (index, sequence) in self.running.iter_mut().enumerate() {
            sequence.draft.reach = 0;
            if takes_part(sequence) {
                sequence.consult(&mut self.policy);
                let (drafts, record) = (&sequence.draft.drafts[..], &sequence.draft.record);
                let more = sequence.room().saturating_sub(drafts.len()).min(OF_MODEL);
                let behind = (more, sequence.request.speculation.candidates);
                let tip = self.policy.tip(drafts, record);
                candidates.extend(self.policy.candidates(index, drafts, record));
                candidates.extend(self.policy.bets_on_model(index, (drafts, tip, record), behind));
                sequence.draft.tip = tip;
            }
        }
        let base = Base {
            tokens: drawing,
            drawing,
            prompts,
        };
        let taken = self.policy.choose(base, &mut candidates);
        for candidate in candidates[..taken].iter().filter(|candidate| candidate.round > 0) {
            let reach = &mut self.running[candidate.of].draft.reach;
            *reach = (candidate.node + 1).max(*reach);
        }
    }

    /// Reserves the blocks of drafts, as far as there are free ones. The last drafts are dropped first: this
    /// way, whether a draft is verified does not depend on the drafts after it, which depend on its token.
    pub(super) fn reserve_drafts(&mut self, plan: &mut PassPlan, blocks: &mut Blocks) {
        for work in plan.works.iter_mut().filter(|work| work.rows > 1) {
            let sequence = &mut self.running[work.index];
            while !sequence.draft.drafts.is_empty()
                && !sequence.reserve((work.feed, sequence.draft.drafts.len()), 0, blocks)
            {
                sequence.draft.drafts.pop();
            }
            work.rows = 1 + sequence.draft.drafts.len();
        }
    }
}
