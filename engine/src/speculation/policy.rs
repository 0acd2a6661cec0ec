//! The number of drafted tokens that a pass feeds: as many as give the most expected tokens per second.
//!
//! ```text
//!   drafts offered ─► how likely is each to be confirmed ───────┐                        ┌─► the likeliest m
//!   passes so far ──► what does a pass of n + m tokens cost ────┴─► max (E + Σp) / cost ─┘
//! ```
//!
//! This is the goodput of SmartSpec: given `n` tokens that are fed in any case, `E` of them drawn, and
//! candidate drafts with chances `p`, it takes the candidate drafts that maximise `(E + Σp) / cost(n + m)`
//! over the whole pass. Every number of candidate drafts is tried, not only one more each time: where the
//! second token of a pass costs three times as much as the first, one draft never pays but eight may. Tokens
//! of the draft model also cost its passes, and are chosen before they are drawn.
//!
//! The prompts that a pass reads are read in any case, so their cost is on neither side of the choice: the
//! cost of a pass with prompts is that of its other tokens ([`PassCosts`](cost)), measured separately from
//! their cost without prompts. So where every pass reads a prompt, drafts are chosen by their cost in such
//! passes.
//!
//! The candidate drafts of all sequences are sorted together, and the likeliest are taken whichever sequence
//! they belong to, always a prefix of each draft: the selection of TETRIS ([Wu et al.
//! 2025](https://arxiv.org/abs/2502.15197)), whose capacity is given here by the costs. TETRIS scores a
//! token by the probability that the draft model gave it, which is biased where the token was sampled; the
//! chances here come from earlier drafts.
//!
//! Drafts that cannot be worth their cost are not even searched for ([`Policy::least_chance`]): finding
//! drafts takes time of the decode thread, whether they are fed or not. For the same reason the search for
//! drafts that were turned down [rests](crate::sequence).
//!
//! A decision depends on earlier confirmations and measurements, and on the number and the sources of the
//! drafts, never on the tokens themselves: every drawn token of a sampled draft
//! ([`Proposal::Sampled`](lexiform_law::draft::Proposal)) must be judged. So sampled drafts are always fed,
//! with all drafts before them.
//!
//! **Exploration.** A choice that is never made is never measured. One part in 200 of the time of all passes
//! is saved up, and spent on passes that feed another number of drafts than the best, the numbers that were
//! not tried for longest first. Such a pass is charged for its cost beyond what the best choice would have
//! cost for as many tokens; so drafts that do not pay cost 0.5 %, plus some passes at the start. Passes with
//! prompts save and explore separately. Copies are watched at no cost: the tokens that lookup would have
//! offered are compared with those that are drawn.
//!
//! The other policies serve for comparison ([`Drafting`]): [SVIP](svip), and [bandits](bandit) that choose
//! the sources of drafts. They feed all drafts that they have chosen.
//!
//! `lexiform eval drafts` compares the policies with each other.

pub(crate) mod bandit;
mod cost;
mod exp3;
mod prompts;
pub(crate) mod record;
mod rule;
pub(crate) mod stakes;
pub(crate) mod svip;
mod ucb1;

pub(crate) use self::record::Record;

use self::bandit::Bandit;
use self::cost::{PassCosts, Tokens};
use self::record::Records;
use crate::config::Drafting;
use crate::speculation::class::StateClass;
use crate::speculation::draft::{Draft, Source};
use lexiform_law::draft::NodeId;
use std::time::Duration;

/// How many times better than none drafts must be. Their cost is not all in their own pass: on a CPU, the
/// passes after one of several tokens are slower for a while.
const MARGIN: f64 = 1.05;
/// The part of all time that may be spent on exploration.
const EXPLORED: f64 = 0.005;
/// The time that may be spent on exploration at first, and saved up later, in passes.
const SAVED: f64 = 4.0;
/// The number of passes after which a number of drafts is tried again.
const FORGOTTEN: u64 = 64;
/// The most drafts that are considered when looking for the cheapest cost per draft.
const MOST_ASKED: usize = 256;
/// A draft is searched for if it is at least this fraction as likely as it must be to pay: the estimates may
/// be wrong.
const WORTH_FINDING: f64 = 0.5;
/// A pass that took this many times longer than expected was held up by something else.
const STRANGE: f64 = 2.0;
/// The learning rate for the cost of a pass of the draft model.
const ROUNDS: f64 = 1.0 / 16.0;
/// The learning rate for the cost of reading a text.
const READINGS: f64 = 1.0 / 4.0;
/// The number of passes that pay for the reading of a text by the draft model. How many passes will follow
/// is unknown; a long prompt with a short answer must not make drafts look expensive for good.
const PAYING: f64 = 16.0;

/// The work that took time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worked {
    /// A pass of the model, with all work that is done beside it.
    Pass {
        /// The number of decoded tokens: one for each sequence that draws, and the drafts.
        decoded: usize,
        /// The number of prompt tokens.
        prompts: usize,
    },
    /// A pass of the draft model for this many sequences.
    DraftPass(usize),
}

/// A function that returns how long some work took, in place of a clock.
pub type CountedTime = Box<dyn Fn(Worked) -> Duration + Send>;

/// A draft that may be fed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CandidateDraft {
    /// The probability that it is confirmed.
    pub(crate) chance: f64,
    /// The number of the pass of the draft model that has yet to draw it; 0 if it is drawn already.
    pub(crate) round: usize,
    /// `true` if the draft model has yet to read the text before it.
    pub(crate) begins: bool,
    /// `true` if it is fed however likely it is.
    pub(crate) is_due: bool,
    /// The index of its sequence among those that are planned.
    pub(crate) of: usize,
    /// Its index among the drafts of its sequence.
    pub(crate) node: usize,
}

/// The size of a pass, or its size without candidate drafts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Base {
    /// The number of its tokens, without those of prompts.
    pub(crate) tokens: usize,
    /// The number of sequences that draw at least one token.
    pub(crate) drawing: usize,
    /// The number of prompt tokens that the pass also reads; an estimate before that is settled.
    pub(crate) prompts: usize,
}

impl Base {
    /// Returns `true` if the pass also reads prompts.
    fn has_prompts(self) -> bool {
        self.prompts > 0
    }

    fn fed(self) -> Tokens {
        Tokens {
            decoded: self.tokens,
            prompts: self.prompts,
        }
    }
}

/// A value for passes without prompts, and one for passes with prompts.
#[derive(Debug, Default)]
struct Apart<T> {
    alone: T,
    beside: T,
}

impl<T> Apart<T> {
    fn of(&self, pass: Base) -> &T {
        match pass.has_prompts() {
            false => &self.alone,
            true => &self.beside,
        }
    }

    fn of_mut(&mut self, pass: Base) -> &mut T {
        match pass.has_prompts() {
            false => &mut self.alone,
            true => &mut self.beside,
        }
    }
}

/// The trials in passes of a kind, and the time for them.
#[derive(Debug, Default)]
struct Trials {
    /// The number of the pass that last fed 0, 1, 2 to 3, 4 to 7, … drafts, separately with and without
    /// those of the draft model.
    tried: [Vec<Option<u64>>; 2],
    /// The seconds that may be spent on trials; `None` before the first pass.
    saved: Option<f64>,
}

/// A pass that tries another number of drafts, with the seconds that its tokens would have cost otherwise.
#[derive(Clone, Copy, Debug)]
struct Trial {
    fair: f64,
}

/// Decides, from measurements, how many drafts to feed.
#[derive(Debug, Default)]
pub(crate) struct Policy {
    drafting: Drafting,
    records: Records,
    bandit: Option<Bandit>,
    costs: Apart<PassCosts>,
    /// The seconds of a pass of the draft model, once there was one.
    round: Option<f64>,
    /// The seconds that the draft model takes to read a new text, once it has read one.
    reading: Option<f64>,
    passes: u64,
    /// The last pass in which sequences drew.
    last: Base,
    trials: Apart<Trials>,
    trial: Option<Trial>,
    /// The tokens and seconds of the last pass, if it had drafts and no prompts, and no pass came after it.
    with_drafts: Option<(usize, f64)>,
}

/// Returns the class of a number of candidate drafts; the numbers of a class are tried as one.
fn kind(candidates: usize) -> usize {
    candidates.checked_ilog2().map_or(0, |octave| octave as usize + 1)
}

/// The expected result of each number of candidate drafts.
struct Prospects {
    /// The fewest candidate drafts that can be taken.
    least: usize,
    /// The expected tokens and seconds of taking `least` candidate drafts, one more, and so on.
    each: Vec<(f64, f64)>,
    /// `true` if the draft model has yet to draw some of the candidate drafts.
    needs_draft_model: bool,
}

impl Prospects {
    fn rate(&self, candidates: usize) -> f64 {
        let (tokens, seconds) = self.each[candidates - self.least];
        tokens / seconds
    }

    fn numbers(&self) -> std::ops::Range<usize> {
        self.least..self.least + self.each.len()
    }

    /// Returns the best number of candidate drafts, or the least number if that is nearly as good.
    fn best(&self) -> usize {
        let best = self.numbers().max_by(|&one, &other| {
            // Of equal rates, the fewest candidate drafts.
            self.rate(one).total_cmp(&self.rate(other)).then(other.cmp(&one))
        });
        best.filter(|&best| self.rate(best) > MARGIN * self.rate(self.least))
            .unwrap_or(self.least)
    }
}

impl Policy {
    pub(crate) fn new(drafting: Drafting) -> Self {
        Policy {
            drafting,
            bandit: Bandit::of(drafting),
            ..Policy::default()
        }
    }

    /// Updates the records with the verified drafts of a sequence.
    pub(crate) fn hear(&mut self, record: &mut Record) {
        self.records.hear(record);
        if let (Some(bandit), Some(play)) = (&mut self.bandit, &record.play)
            && bandit.hear(play)
        {
            record.play = None;
        }
    }

    /// Returns `true` if the bandit has yet to choose an arm for the sequence's next pass.
    pub(crate) fn is_to_play(&self, record: &Record) -> bool {
        self.bandit.is_some() && record.play.is_none()
    }

    /// Chooses an arm for a sequence at a place of this class.
    pub(crate) fn play(&mut self, class: StateClass, record: &mut Record) {
        record.play = self.bandit.as_mut().map(|bandit| bandit.play(class));
    }

    /// Records what a pass will cost because it feeds these drafts of a sequence, if a bandit needs it.
    pub(crate) fn price(&self, base: Base, drafts: &[Draft], record: &mut Record) {
        let without = self.cost(base, 0).filter(|&seconds| seconds > 0.0);
        let (Some(play), Some(without)) = (&mut record.play, without) else {
            return;
        };
        let with = self.cost(base, drafts.len()).unwrap_or(without);
        // The drafts of one pass of the draft model are siblings.
        let is_next = |one: &Draft, other: &Draft| one.parent == other.parent;
        let rounds = drafts
            .chunk_by(is_next)
            .filter(|beside| beside[0].source == Source::Model)
            .count();
        let drafting = rounds as f64 * self.round.unwrap_or(0.0);
        play.costs((with + drafting) / without);
    }

    /// Returns how likely a draft must be to be worth finding: less likely drafts would not pay in a pass
    /// like the last one, however many of their kind were fed. Now and then this is 0, so that passes of
    /// many tokens are tried again.
    pub(crate) fn least_chance(&self) -> f64 {
        let base = Base {
            tokens: self.last.drawing,
            ..self.last
        };
        let without = self.cost(base, 0).filter(|&seconds| seconds > 0.0);
        let is_asked = self.is_measured() && !self.passes.is_multiple_of(FORGOTTEN);
        let Some(without) = without.filter(|_| is_asked) else {
            return 0.0;
        };
        let each = |candidates: usize| {
            let with = self.cost(base, candidates).unwrap_or(without);
            (with - without) / candidates as f64
        };
        let counts = std::iter::successors(Some(1), |candidates| Some(2 * candidates))
            .take_while(|&candidates| candidates <= MOST_ASKED);
        let cheapest = counts.map(each).fold(f64::INFINITY, f64::min);
        (WORTH_FINDING * base.drawing as f64 * cheapest / without).clamp(0.0, 1.0)
    }

    /// Returns the expected seconds of a pass with this many drafts, without its prompts; `None` before the
    /// first pass. If no pass of the same kind was seen yet, the costs of the other kind are used.
    fn cost(&self, base: Base, drafts: usize) -> Option<f64> {
        let tokens = base.tokens + drafts;
        let Apart { alone, beside } = &self.costs;
        let known = self.costs.of(base).of(tokens);
        known.or_else(|| alone.of(tokens)).or_else(|| beside.of(tokens))
    }

    /// Returns `true` if this policy decides by measured costs.
    pub(crate) fn is_measured(&self) -> bool {
        self.drafting == Drafting::Measured
    }

    /// Sorts candidate drafts, those that are due first and then the likeliest, and returns how many of the
    /// first to take. The candidate drafts of one sequence come in the order of its tree, and none may be
    /// likelier than its parent.
    pub(crate) fn choose(&mut self, base: Base, candidates: &mut [CandidateDraft]) -> usize {
        // The sort is stable, so children come after their parents.
        candidates.sort_by(|one, other| {
            let by_chance = other.chance.total_cmp(&one.chance);
            other.is_due.cmp(&one.is_due).then(by_chance)
        });
        if !self.is_measured() {
            return candidates.len();
        }
        let least = candidates.iter().take_while(|candidate| candidate.is_due).count();
        let Some(prospects) = self
            .prospects(base, candidates, least)
            .filter(|_| candidates.len() > least)
        else {
            return least;
        };
        let best = prospects.best();
        let chosen = self.explore(base, &prospects, best).unwrap_or(best);
        self.try_out(base, &prospects, chosen);
        chosen
    }

    /// Returns the expected result of each number of candidate drafts; `None` if nothing was measured yet.
    fn prospects(&self, base: Base, candidates: &[CandidateDraft], least: usize) -> Option<Prospects> {
        let due = candidates[..least].iter();
        let mut tokens = base.drawing as f64 + due.clone().map(|candidate| candidate.chance).sum::<f64>();
        let mut readings = due.clone().filter(|candidate| candidate.begins).count();
        let mut round = due.map(|candidate| candidate.round).max().unwrap_or(0);
        let mut each = Vec::with_capacity(candidates.len() - least + 1);
        for taken in least..=candidates.len() {
            if let Some(candidate) = taken
                .checked_sub(1)
                .filter(|_| taken > least)
                .map(|last| candidates[last])
            {
                tokens += candidate.chance;
                round = round.max(candidate.round);
                readings += usize::from(candidate.begins);
            }
            let reading = readings as f64 * self.reading.unwrap_or(0.0) / PAYING;
            let rounds = round as f64 * self.round.unwrap_or(0.0) + reading;
            each.push((tokens, self.cost(base, taken)? + rounds));
        }
        (base.drawing > 0).then_some(Prospects {
            least,
            each,
            needs_draft_model: round > 0,
        })
    }

    /// Returns another number of candidate drafts than the best, if one was not tried for long and the time
    /// for it is saved up.
    fn explore(&mut self, base: Base, prospects: &Prospects, best: usize) -> Option<usize> {
        if self.trial.is_some() {
            return None;
        }
        let trials = self.trials.of(base);
        let tried = &trials.tried[usize::from(prospects.needs_draft_model)];
        let last = |candidates: usize| tried.get(kind(candidates)).copied().flatten();
        let most = prospects.numbers().end - 1;
        let others = prospects.numbers().filter(|&candidates| {
            // Of each class the smallest number, and the number of all candidate drafts.
            let is_one = candidates == prospects.least || candidates.is_power_of_two() || candidates == most;
            let is_due = last(candidates).is_none_or(|last| self.passes >= last + FORGOTTEN);
            is_one && kind(candidates) != kind(best) && is_due
        });
        let other = others.min_by_key(|&candidates| (last(candidates), candidates))?;
        let (tokens, seconds) = prospects.each[other - prospects.least];
        let fair = tokens / prospects.rate(best);
        if seconds - fair > trials.saved.unwrap_or(0.0) {
            return None;
        }
        self.trial = Some(Trial { fair });
        Some(other)
    }

    fn try_out(&mut self, base: Base, prospects: &Prospects, candidates: usize) {
        let tried = &mut self.trials.of_mut(base).tried[usize::from(prospects.needs_draft_model)];
        if tried.len() <= kind(candidates) {
            tried.resize(kind(candidates) + 1, None);
        }
        tried[kind(candidates)] = Some(self.passes);
    }

    /// Learns from a pass. The tokens beyond one for each sequence were drafts. A pass in which no sequence
    /// drew is ignored.
    pub(crate) fn passed(&mut self, pass: Base, took: Duration) {
        self.passes += 1;
        let trial = self.trial.take();
        let before = self.with_drafts.take();
        if pass.drawing == 0 {
            self.settle(before, 0.0);
            return;
        }
        self.last = pass;
        let seconds = self.observe(pass, took.as_secs_f64(), before);
        let spent = trial.map_or(0.0, |trial| (seconds - trial.fair).max(0.0));
        let saved = &mut self.trials.of_mut(pass).saved;
        let left = saved.unwrap_or(SAVED * seconds) - spent + EXPLORED * seconds;
        *saved = Some(left.min(SAVED * seconds));
    }

    /// Learns the cost of a pass, and returns the seconds that its tokens are taken to have cost without its
    /// prompts. A pass with drafts is also charged for the time that the next one takes longer, if that has
    /// no drafts: a CPU that has multiplied several rows does not return to a single row at once. A pass
    /// with prompts has several rows in any case.
    fn observe(&mut self, pass: Base, seconds: f64, before: Option<(usize, f64)>) -> f64 {
        if pass.has_prompts() {
            self.settle(before, 0.0);
            return self.costs.beside.observe(pass.fed(), seconds);
        }
        let expected = self.costs.alone.expected(pass.fed());
        let seconds = expected.map_or(seconds, |expected| seconds.min(STRANGE * expected));
        if pass.tokens > pass.drawing {
            self.settle(before, 0.0);
            self.with_drafts = Some((pass.tokens, seconds));
            return seconds;
        }
        match (before, expected) {
            (Some(_), Some(expected)) => {
                self.settle(before, seconds - expected);
                seconds
            }
            _ => self.costs.alone.observe(pass.fed(), seconds),
        }
    }

    /// Learns the cost of a pass with drafts, including its effect on the next pass.
    fn settle(&mut self, pass: Option<(usize, f64)>, after: f64) {
        if let Some((decoded, seconds)) = pass {
            let fed = Tokens { decoded, prompts: 0 };
            self.costs.alone.observe(fed, (seconds + after).max(0.0));
        }
    }

    /// Learns from `rounds` passes of the draft model, in which it began to read `readings` texts.
    pub(crate) fn drafted(&mut self, (rounds, readings): (usize, usize), took: Duration) {
        let took = took.as_secs_f64();
        if let Some(trial) = &mut self.trial {
            trial.fair -= took;
        }
        let (known, each, part) = match (rounds, readings) {
            (0, _) => return,
            (_, 0) => (&mut self.round, took / rounds as f64, ROUNDS),
            _ => (&mut self.reading, took / readings as f64, READINGS),
        };
        let known = known.get_or_insert(each);
        *known += part * (each - *known);
    }

    /// Returns the candidate drafts on the drafts of a sequence.
    pub(crate) fn candidates(&self, of: usize, drafts: &[Draft], record: &Record) -> Vec<CandidateDraft> {
        let mut is_due: Vec<bool> = drafts.iter().map(Draft::is_due).collect();
        for (node, draft) in drafts.iter().enumerate().rev() {
            if let Some(parent) = draft.parent.filter(|_| is_due[node]) {
                is_due[parent] = true;
            }
        }
        let is_taken = record.arm().map(|arm| arm.taken(drafts));
        let is_fed = move |candidate: &CandidateDraft| {
            candidate.is_due || is_taken.as_ref().is_none_or(|taken| taken[candidate.node])
        };
        let mut least = 1.0_f64;
        let chances = self.records.chances(record, drafts).into_iter().zip(drafts);
        // If there is no room for all sampled drafts, the last ones are dropped: which of them are fed must
        // not depend on the tokens.
        let chances = chances.map(move |(chance, draft)| match draft.proposal.is_sampled() {
            true => {
                least = least.min(chance);
                least
            }
            false => chance,
        });
        let candidate = |(node, (chance, is_due))| CandidateDraft {
            chance,
            round: 0,
            begins: false,
            is_due,
            of,
            node,
        };
        chances
            .zip(is_due)
            .enumerate()
            .map(candidate)
            .filter(is_fed)
            .collect()
    }

    /// Returns the draft after which the draft model continues; `None` for the text.
    pub(crate) fn tip(&self, drafts: &[Draft], record: &Record) -> Option<NodeId> {
        self.records.tip(record, drafts)
    }

    /// Returns the candidate drafts on the tokens that the draft model may draw after one of these drafts:
    /// at most `most` tokens, with `beside` tokens at each place.
    pub(crate) fn bets_on_model(
        &self,
        of: usize,
        (drafts, tip, record): (&[Draft], Option<NodeId>, &Record),
        (most, beside): (usize, usize),
    ) -> impl Iterator<Item = CandidateDraft> {
        let is_taken = record.arm().is_none_or(|arm| arm.takes(Source::Model));
        let most = if is_taken { most } else { 0 };
        let chances = self.records.chances_behind(record, (drafts, tip), (most, beside));
        let (first, is_read) = (drafts.len(), record.is_read);
        chances
            .into_iter()
            .enumerate()
            .map(move |(number, chance)| CandidateDraft {
                chance,
                round: number / beside.max(1) + 1,
                begins: number == 0 && !is_read,
                is_due: false,
                of,
                node: first + number,
            })
    }
}

#[cfg(test)]
mod tests;
