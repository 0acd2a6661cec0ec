//! How many drafted tokens a pass feeds: as many as bring the most expected tokens a second.
//!
//! ```text
//!   drafts offered ─► bets: how likely is each to be confirmed ─┐                         ┌─► the likeliest m of them
//!   passes so far ──► what does a pass of n + m tokens cost ────┴─► max (E + Σp) / cost ──┘
//! ```
//!
//! This is the goodput of SmartSpec: of `n` tokens in any case, `E` of them drawn, and bets with chances `p`,
//! those are taken that maximise `(E + Σp) / cost(n + m)` over the whole pass. Every number of bets is tried,
//! not only the next one more: where the second token of a pass costs three times what the first does, one
//! draft never pays and eight may. Tokens of the draft model cost its passes besides, and are bet on before
//! they are drawn.
//!
//! Prompts that a pass reads beside are read in any case, so what they take is on neither side of the choice:
//! a pass with prompts costs what its other tokens cost there ([`PassCosts`](cost)), which is measured apart
//! from what they cost alone. So drafts are chosen in traffic of which every pass reads a prompt, by what
//! they cost in it.
//!
//! Bets of all sequences stand in one order, and the likeliest are taken wherever they are, a beginning of
//! each draft: the selection of TETRIS ([Wu et al. 2025](https://arxiv.org/abs/2502.15197)), whose capacity
//! here is what the costs say. TETRIS scores a token by the probability that the draft model gave to it,
//! which is biased where the token was sampled; the chances here come from earlier drafts.
//!
//! What is not worth its cost is not even looked for ([`Policy::least_chance`]): to find drafts takes time of
//! the decode thread, whether they are fed or not. For the same reason what was turned down
//! [rests](crate::sequence).
//!
//! What is decided depends on what was confirmed and measured before, on how many drafts there are and where
//! they came from, never on the tokens themselves: of a sampled draft
//! ([`Proposal::Sampled`](lexiform_law::draft::Proposal)) every token that was drawn must be judged. So those
//! are fed in any case, with all that stands before them.
//!
//! **Exploration.** What is not done is not measured. Of the time of all passes one part in 200 is saved up,
//! and paid for passes that feed another number of drafts than the best, those first that were not tried for
//! longest. What such a pass costs beyond what the best would have cost for as many tokens is taken off; so
//! drafts that lose cost 0.5 %, beside a start of some passes. Passes with prompts save up and try for
//! themselves. Copies are watched for nothing: what lookup would have offered is compared with what is drawn.
//!
//! Other policies are there to be compared with this one ([`Drafting`]): [SVIP](svip), and [bandits](bandit)
//! that choose the sources of drafts. They feed all that they have chosen.
//!
//! `lexiform eval drafts` compares the policies with each other.

pub(crate) mod bandit;
mod cost;
mod exp3;
mod prompts;
mod record;
mod rule;
pub(crate) mod svip;
mod ucb1;

pub(crate) use self::record::Record;

use self::bandit::Bandit;
use self::cost::{PassCosts, Tokens};
use self::record::Records;
use crate::config::Drafting;
use crate::speculation::class::StateClass;
use crate::speculation::draft::{Draft, Source};
use std::time::Duration;

/// By how much drafts must be better than none. What they cost is not all in their pass: on a processor, the
/// passes after one of several tokens are slower for a while.
const MARGIN: f64 = 1.05;
/// The part of all time that may be spent on exploration.
const EXPLORED: f64 = 0.005;
/// How many passes may be spent on it at first, and saved up later.
const SAVED: f64 = 4.0;
/// Passes after which a number of drafts is worth another try.
const FORGOTTEN: u64 = 64;
/// The most drafts of which it is asked whether they could pay.
const MOST_ASKED: usize = 64;
/// The part of what a draft must be likely by to pay from which on it is worth finding: what is thought of
/// drafts may be wrong.
const WORTH_FINDING: f64 = 0.5;
/// A pass that took longer than so many times what was expected was held up by something else.
const STRANGE: f64 = 2.0;
/// How fast the cost of a pass of the draft model follows.
const ROUNDS: f64 = 1.0 / 16.0;
/// How fast the cost of reading a text follows.
const READINGS: f64 = 1.0 / 4.0;
/// The passes that pay for the reading of a text by the draft model. How many follow nobody knows; a long
/// prompt and a short answer must not make drafts dear without anybody noticing.
const PAYING: f64 = 16.0;

/// What took time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worked {
    /// A pass of the model, with all that is done beside it.
    Pass {
        /// A token for each sequence that draws, and drafts.
        decoded: usize,
        /// Tokens of prompts.
        prompts: usize,
    },
    /// A pass of the draft model for so many sequences.
    DraftPass(usize),
}

/// Says how long something took, in the place of a clock.
pub type CountedTime = Box<dyn Fn(Worked) -> Duration + Send>;

/// A draft that may be fed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bet {
    /// How likely it is to be confirmed.
    pub(crate) chance: f64,
    /// Which pass of the draft model has yet to draw it; 0 for what is there.
    pub(crate) round: usize,
    /// The draft model has yet to read the text before it.
    pub(crate) begins: bool,
    /// It is fed whatever it brings.
    pub(crate) is_due: bool,
    /// The number of its sequence among those that are planned.
    pub(crate) of: usize,
    /// Its number among the drafts of its sequence.
    pub(crate) node: usize,
}

/// What a pass is, or what it is without bets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Base {
    /// Its tokens, without those of prompts.
    pub(crate) tokens: usize,
    /// The sequences that draw at least one.
    pub(crate) drawing: usize,
    /// Tokens of prompts that are read beside; before that is settled, about how many.
    pub(crate) prompts: usize,
}

impl Base {
    /// Whether it reads prompts beside.
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

/// One thing for passes without prompts, and one for passes that read some beside.
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

/// What is tried in passes of a kind, and when.
#[derive(Debug, Default)]
struct Trials {
    /// The passes that last fed 0, 1, 2 to 3, 4 to 7, … drafts, those of the draft model apart.
    tried: [Vec<Option<u64>>; 2],
    /// Seconds that may be spent on trials; `None` before the first pass.
    saved: Option<f64>,
}

/// A pass that tries something: what its tokens would have cost otherwise.
#[derive(Clone, Copy, Debug)]
struct Trial {
    fair: f64,
}

/// Decides by what it has measured.
#[derive(Debug, Default)]
pub(crate) struct Policy {
    drafting: Drafting,
    records: Records,
    bandit: Option<Bandit>,
    costs: Apart<PassCosts>,
    /// The seconds of a pass of the draft model, once there was one.
    round: Option<f64>,
    /// The seconds that it takes to read a text that it has not read yet, once it has.
    reading: Option<f64>,
    passes: u64,
    /// The last pass in which sequences drew, and what it read beside.
    last: Base,
    trials: Apart<Trials>,
    trial: Option<Trial>,
    /// The tokens and seconds of the last pass, if it had drafts and no prompts, and none came after it.
    with_drafts: Option<(usize, f64)>,
}

/// Numbers of bets that are tried as one.
fn kind(bets: usize) -> usize {
    bets.checked_ilog2().map_or(0, |octave| octave as usize + 1)
}

/// What each number of bets would bring.
struct Prospects {
    /// The fewest that can be taken.
    least: usize,
    /// Expected tokens and seconds of taking so many, and so on.
    each: Vec<(f64, f64)>,
    /// Whether the draft model has yet to draw some of them.
    needs_draft_model: bool,
}

impl Prospects {
    fn rate(&self, bets: usize) -> f64 {
        let (tokens, seconds) = self.each[bets - self.least];
        tokens / seconds
    }

    fn numbers(&self) -> std::ops::Range<usize> {
        self.least..self.least + self.each.len()
    }

    /// The number that brings the most, unless the least brings nearly as much.
    fn best(&self) -> usize {
        let best = self.numbers().max_by(|&one, &other| {
            // Of equal ones the fewest.
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

    /// Takes over what became of the drafts of a sequence.
    pub(crate) fn hear(&mut self, record: &mut Record) {
        self.records.hear(record);
        if let (Some(bandit), Some(play)) = (&mut self.bandit, &record.play)
            && bandit.hear(play)
        {
            record.play = None;
        }
    }

    /// Whether it has yet to choose what a sequence feeds in its next pass.
    pub(crate) fn is_to_play(&self, record: &Record) -> bool {
        self.bandit.is_some() && record.play.is_none()
    }

    /// Chooses what a sequence feeds that stands at a place of this class.
    pub(crate) fn play(&mut self, class: StateClass, record: &mut Record) {
        record.play = self.bandit.as_mut().map(|bandit| bandit.play(class));
    }

    /// Says what a pass will cost because it feeds these drafts of a sequence, where that is to be judged.
    pub(crate) fn price(&self, base: Base, drafts: &[Draft], record: &mut Record) {
        let without = self.cost(base, 0).filter(|&seconds| seconds > 0.0);
        let (Some(play), Some(without)) = (&mut record.play, without) else {
            return;
        };
        let with = self.cost(base, drafts.len()).unwrap_or(without);
        // Those of one pass of the draft model stand side by side.
        let is_next = |one: &Draft, other: &Draft| one.parent == other.parent;
        let rounds = drafts
            .chunk_by(is_next)
            .filter(|beside| beside[0].source == Source::Model)
            .count();
        let drafting = rounds as f64 * self.round.unwrap_or(0.0);
        play.costs((with + drafting) / without);
    }

    /// How likely a draft must be to be worth finding: what is less likely would not pay in a pass like the
    /// last one, however many of its kind were fed. At times everything is worth finding, so that passes of
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
        let each = |bets: usize| {
            let with = self.cost(base, bets).unwrap_or(without);
            (with - without) / bets as f64
        };
        let counts =
            std::iter::successors(Some(1), |bets| Some(2 * bets)).take_while(|&bets| bets <= MOST_ASKED);
        let cheapest = counts.map(each).fold(f64::INFINITY, f64::min);
        (WORTH_FINDING * base.drawing as f64 * cheapest / without).clamp(0.0, 1.0)
    }

    /// The seconds that a pass and so many drafts are taken to cost, without what prompts take beside them;
    /// `None` before the first pass. Where none of its kind was seen yet, those of the other kind say it.
    fn cost(&self, base: Base, drafts: usize) -> Option<f64> {
        let tokens = base.tokens + drafts;
        let Apart { alone, beside } = &self.costs;
        let known = self.costs.of(base).of(tokens);
        known.or_else(|| alone.of(tokens)).or_else(|| beside.of(tokens))
    }

    /// Whether anything is decided here.
    pub(crate) fn is_measured(&self) -> bool {
        self.drafting == Drafting::Measured
    }

    /// Sorts bets, those that are due first and then the likeliest, and says how many of the first to take.
    /// Bets of one sequence come in the order of its tree, and none may be likelier than what it stands
    /// below.
    pub(crate) fn choose(&mut self, base: Base, bets: &mut [Bet]) -> usize {
        // Stable, so that what stands below another comes after it.
        bets.sort_by(|one, other| {
            let by_chance = other.chance.total_cmp(&one.chance);
            other.is_due.cmp(&one.is_due).then(by_chance)
        });
        if !self.is_measured() {
            return bets.len();
        }
        let least = bets.iter().take_while(|bet| bet.is_due).count();
        let Some(prospects) = self.prospects(base, bets, least).filter(|_| bets.len() > least) else {
            return least;
        };
        let best = prospects.best();
        let chosen = self.explore(base, &prospects, best).unwrap_or(best);
        self.try_out(base, &prospects, chosen);
        chosen
    }

    /// What each number of bets would bring; `None` where nothing was measured yet.
    fn prospects(&self, base: Base, bets: &[Bet], least: usize) -> Option<Prospects> {
        let due = bets[..least].iter();
        let mut tokens = base.drawing as f64 + due.clone().map(|bet| bet.chance).sum::<f64>();
        let mut readings = due.clone().filter(|bet| bet.begins).count();
        let mut round = due.map(|bet| bet.round).max().unwrap_or(0);
        let mut each = Vec::with_capacity(bets.len() - least + 1);
        for taken in least..=bets.len() {
            if let Some(bet) = taken
                .checked_sub(1)
                .filter(|_| taken > least)
                .map(|last| bets[last])
            {
                tokens += bet.chance;
                round = round.max(bet.round);
                readings += usize::from(bet.begins);
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

    /// Another number of bets than the best, if one was not tried for long and the time for it is saved up.
    fn explore(&mut self, base: Base, prospects: &Prospects, best: usize) -> Option<usize> {
        if self.trial.is_some() {
            return None;
        }
        let trials = self.trials.of(base);
        let tried = &trials.tried[usize::from(prospects.needs_draft_model)];
        let last = |bets: usize| tried.get(kind(bets)).copied().flatten();
        let most = prospects.numbers().end - 1;
        let others = prospects.numbers().filter(|&bets| {
            // Of each kind the fewest, and all that there are.
            let is_one = bets == prospects.least || bets.is_power_of_two() || bets == most;
            let is_due = last(bets).is_none_or(|last| self.passes >= last + FORGOTTEN);
            is_one && kind(bets) != kind(best) && is_due
        });
        let other = others.min_by_key(|&bets| (last(bets), bets))?;
        let (tokens, seconds) = prospects.each[other - prospects.least];
        let fair = tokens / prospects.rate(best);
        if seconds - fair > trials.saved.unwrap_or(0.0) {
            return None;
        }
        self.trial = Some(Trial { fair });
        Some(other)
    }

    fn try_out(&mut self, base: Base, prospects: &Prospects, bets: usize) {
        let tried = &mut self.trials.of_mut(base).tried[usize::from(prospects.needs_draft_model)];
        if tried.len() <= kind(bets) {
            tried.resize(kind(bets) + 1, None);
        }
        tried[kind(bets)] = Some(self.passes);
    }

    /// Learns from a pass, of whose tokens those beyond one for each sequence were drafts. One in which
    /// nobody drew says nothing.
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

    /// Learns what a pass costs; the seconds that its tokens beside prompts are taken to have cost. A pass
    /// with drafts costs what the one after it takes longer, too, if that has none: a processor that has
    /// multiplied several rows does not go back to one at once. One with prompts has several rows in any
    /// case.
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

    /// Learns what a pass with drafts has cost, with what came after it.
    fn settle(&mut self, pass: Option<(usize, f64)>, after: f64) {
        if let Some((decoded, seconds)) = pass {
            let fed = Tokens { decoded, prompts: 0 };
            self.costs.alone.observe(fed, (seconds + after).max(0.0));
        }
    }

    /// Learns from so many passes of the draft model, in which it began to read so many texts.
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

    /// The bets on the drafts of a sequence.
    pub(crate) fn bets(&self, of: usize, drafts: &[Draft], record: &Record) -> Vec<Bet> {
        let mut is_due: Vec<bool> = drafts.iter().map(Draft::is_due).collect();
        for (node, draft) in drafts.iter().enumerate().rev() {
            if let Some(parent) = draft.parent.filter(|_| is_due[node]) {
                is_due[parent] = true;
            }
        }
        let is_taken = record.arm().map(|arm| arm.taken(drafts));
        let is_fed = move |bet: &Bet| bet.is_due || is_taken.as_ref().is_none_or(|taken| taken[bet.node]);
        let mut least = 1.0_f64;
        let chances = self.records.chances(record, drafts).into_iter().zip(drafts);
        // Where there is not room for all that was sampled, the last ones go: which of them are fed must not
        // depend on the tokens.
        let chances = chances.map(move |(chance, draft)| match draft.proposal.is_sampled() {
            true => {
                least = least.min(chance);
                least
            }
            false => chance,
        });
        let bet = |(node, (chance, is_due))| Bet {
            chance,
            round: 0,
            begins: false,
            is_due,
            of,
            node,
        };
        chances.zip(is_due).enumerate().map(bet).filter(is_fed).collect()
    }

    /// The bets on what the draft model may draw behind those drafts, at most so many tokens, with so many of
    /// them at each place.
    pub(crate) fn bets_on_model(
        &self,
        of: usize,
        (drafts, record): (&[Draft], &Record),
        (most, beside): (usize, usize),
    ) -> impl Iterator<Item = Bet> {
        let is_taken = record.arm().is_none_or(|arm| arm.takes(Source::Model));
        let most = if is_taken { most } else { 0 };
        let chances = self.records.chances_behind(record, drafts, (most, beside));
        let (first, is_read) = (drafts.len(), record.is_read);
        chances.into_iter().enumerate().map(move |(number, chance)| Bet {
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
