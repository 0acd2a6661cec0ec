//! Counts of confirmed drafts, by their source.

use crate::speculation::class::Standing;
use crate::speculation::draft::{Confidence, Draft, Source};
use crate::speculation::policy::bandit::{Arm, Play};
use lexiform_law::draft::{NodeId, Origin};
use std::collections::HashMap;

/// The weight that the earlier drafts of a sequence keep after one more of the kind.
const KEPT_SHARE: f64 = 0.95;
/// The weight that the earlier drafts of all sequences keep after one more of the kind.
const KEPT_OF_ALL: f64 = 0.999;
/// The number of drafts of a sequence that weigh as much as those of all others together.
const PRIOR: f64 = 4.0;

/// The weight that the earlier drafts of a sequence in [long runs](Stage::Runs) keep after one more. A
/// passage that is copied word for word breaks off once in some hundred tokens.
const KEPT_IN_RUNS: f64 = 0.99;
/// The number of tokens after which a run is long.
const LONG_RUN: usize = 16;

/// The stage of a draft, which begins or continues a run of its source: a copy whose last token was
/// confirmed is likelier to be right than a new one, and one that was right for a whole line is nearly
/// certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Begins,
    GoesOn,
    Runs,
}

impl Stage {
    const COUNT: usize = 3;

    /// Returns the stage of a draft after a run of this many tokens of its source.
    fn after(run: usize) -> Self {
        match run {
            0 => Stage::Begins,
            1..LONG_RUN => Stage::GoesOn,
            _ => Stage::Runs,
        }
    }

    /// Returns the weight that the earlier drafts of a sequence keep.
    fn kept(self) -> f64 {
        match self {
            Stage::Begins | Stage::GoesOn => KEPT_SHARE,
            Stage::Runs => KEPT_IN_RUNS,
        }
    }
}

/// The numbers of verified and of confirmed drafts, with older ones counting less.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    offered: f64,
    confirmed: f64,
}

impl Count {
    fn add(&mut self, is_confirmed: bool, kept: f64) {
        self.offered = kept * self.offered + 1.0;
        self.confirmed = kept * self.confirmed + f64::from(u8::from(is_confirmed));
    }

    /// Returns the share of confirmed drafts, with a prior of `number` drafts of which the share `before`
    /// was confirmed.
    fn share(&self, before: f64, number: f64) -> f64 {
        (self.confirmed + number * before) / (self.offered + number)
    }
}

/// The sources that do not report a confidence, and the prior for each stage before any draft was verified.
const PLAIN_RECORD: [(Source, [f64; Stage::COUNT]); 5] = [
    (Source::Forced, [0.9, 0.95, 0.98]),
    (Source::Copied, [0.5, 0.8, 0.95]),
    (Source::Predicted, [0.7, 0.9, 0.98]),
    (Source::Model, [0.7, 0.7, 0.7]),
    (Source::Guessed, [0.1, 0.1, 0.1]),
];

/// The stores, whose drafts are counted by their confidence.
pub(crate) const LEARNED: [Origin; 8] = [
    Origin::Recycled,
    Origin::Trigram,
    Origin::NGram,
    Origin::Keyed,
    Origin::Suffix,
    Origin::Retrieved,
    Origin::Consensus,
    Origin::Phrase,
];

/// The first of the kinds of tokens that were drawn from stores, and their number.
const DRAWN: (usize, usize) = (
    PLAIN_RECORD.len() + (LEARNED.len() + 1) * Confidence::COUNT,
    LEARNED.len() * Confidence::COUNT,
);

/// The number of kinds by which drafts are counted: those without a confidence, those of stores, those of
/// trees of a draft model, and those that were drawn from stores.
const KINDS: usize = DRAWN.0 + DRAWN.1;

/// Counts by kind and stage. They are in one allocation for all drafts of a sequence, most of which are of
/// few kinds.
#[derive(Clone, Debug)]
struct KindCounts(Vec<[Count; Stage::COUNT]>);

impl Default for KindCounts {
    fn default() -> Self {
        KindCounts(vec![[Count::default(); Stage::COUNT]; KINDS])
    }
}

/// Returns the kind of a source; `None` for tokens that are certain.
fn kind(source: Source) -> Option<usize> {
    match source {
        Source::Given => None,
        Source::Learned(origin, confidence) => {
            let store = LEARNED.iter().position(|known| *known == origin)?;
            Some(PLAIN_RECORD.len() + store * Confidence::COUNT + confidence.step())
        }
        Source::Branch(confidence) => {
            Some(PLAIN_RECORD.len() + LEARNED.len() * Confidence::COUNT + confidence.step())
        }
        Source::Drawn(origin, confidence) => {
            let store = LEARNED.iter().position(|known| *known == origin)?;
            Some(DRAWN.0 + store * Confidence::COUNT + confidence.step())
        }
        source => PLAIN_RECORD.iter().position(|(known, _)| *known == source),
    }
}

/// Returns the assumed chance of drafts of a kind before any was verified.
fn prior(kind: usize, stage: Stage) -> f64 {
    match PLAIN_RECORD.get(kind) {
        Some((_, priors)) => priors[stage as usize],
        None => {
            let step = (kind - PLAIN_RECORD.len()) % Confidence::COUNT;
            Confidence::all().nth(step).map_or(0.5, |(_, middle)| middle)
        }
    }
}

/// Returns `true` if drafts of a source have a confidence, which accounts for their siblings.
fn is_confident(source: Source) -> bool {
    matches!(source, Source::Learned(..) | Source::Branch(_))
}

/// Returns `true` if a draft with a confidence stands beside one without that was accepted. That it was
/// refused says nothing: beside copies that are nearly certain, others hardly ever have a chance, and their
/// confidence is about the other places.
fn is_forestalled(draft: &Draft, drafts: &[Draft], accepted: &[NodeId]) -> bool {
    let is_other = |&node: &NodeId| {
        let other = &drafts[node];
        other.parent == draft.parent && !is_confident(other.source)
    };
    is_confident(draft.source) && accepted.iter().any(is_other)
}

/// The siblings of a draft before it.
#[derive(Default)]
struct Beside {
    count: i32,
    /// The probability that one of those without a confidence is confirmed, if their parent is.
    others: f64,
}

/// Returns `true` if drafts of both come from the same source.
fn is_like(one: Source, other: Source) -> bool {
    match (one, other) {
        (Source::Learned(one, _), Source::Learned(other, _)) => one == other,
        (Source::Model | Source::Branch(_), Source::Model | Source::Branch(_)) => true,
        // The confidence of a row says all that is known of a token that is drawn from it.
        (Source::Drawn(..), Source::Drawn(..)) => false,
        _ => one == other,
    }
}

/// The results of the drafts of one sequence.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    counts: KindCounts,
    /// The source of the last tokens, if they were as drafted.
    running: Option<Source>,
    /// The number of the last tokens that came from that source one after another.
    run: usize,
    /// The results that are not yet added to those of all sequences.
    news: Vec<(usize, Stage, bool)>,
    /// The choice of a bandit for the next pass.
    pub(crate) play: Option<Play>,
    /// The place that the text has reached.
    pub(crate) standing: Standing,
    /// `true` if the draft model has read the text.
    pub(crate) is_read: bool,
}

impl Record {
    /// Counts a draft that was confirmed, or replaced by another token.
    pub(crate) fn note(&mut self, source: Source, stage: Stage, is_confirmed: bool) {
        if let Some(kind) = kind(source) {
            self.counts.0[kind][stage as usize].add(is_confirmed, stage.kept());
            self.news.push((kind, stage, is_confirmed));
        }
    }

    /// Counts drafts that were verified, of which the path `accepted` was accepted. The drafts below a
    /// rejected one are not counted.
    pub(crate) fn verified(&mut self, drafts: &[Draft], accepted: &[usize]) {
        let runs = self.runs(drafts);
        for (node, draft) in drafts.iter().enumerate() {
            let is_judged = draft.parent.is_none_or(|parent| accepted.contains(&parent));
            if is_judged && !is_forestalled(draft, drafts, accepted) {
                self.note(draft.source, Stage::after(runs[node]), accepted.contains(&node));
            }
        }
        self.note_layers(drafts, &runs, accepted);
        if drafts.iter().all(Draft::is_guess) {
            // A pass without drafts does not end a copy that is watched.
            return;
        }
        (self.running, self.run) = match run_at_the_end(drafts, accepted) {
            Some((node, more)) => (Some(drafts[node].source), runs[node] + 1 + more),
            None => (None, 0),
        };
    }

    /// Counts each layer of a tree of the draft model as one of its drafts, confirmed if one of the layer is:
    /// the chance that another layer pays does not depend on how many tokens stand beside each other.
    fn note_layers(&mut self, drafts: &[Draft], runs: &[usize], accepted: &[usize]) {
        let mut noted: Vec<Option<NodeId>> = Vec::new();
        for (node, draft) in drafts.iter().enumerate() {
            let is_verified = draft.parent.is_none_or(|parent| accepted.contains(&parent));
            let is_branch = matches!(draft.source, Source::Branch(_));
            if !is_branch || !is_verified || noted.contains(&draft.parent) {
                continue;
            }
            noted.push(draft.parent);
            let beside = drafts.iter().enumerate();
            let mut beside = beside.filter(|(_, other)| other.parent == draft.parent);
            let is_confirmed = beside.any(|(other, _)| accepted.contains(&other));
            self.note(Source::Model, Stage::after(runs[node]), is_confirmed);
        }
    }

    /// Returns the number of the last tokens that were copied, one after another as drafted.
    pub(crate) fn copied(&self) -> usize {
        match self.running {
            Some(Source::Copied | Source::Predicted) => self.run,
            _ => 0,
        }
    }

    /// Records that a pass gave `tokens` tokens.
    pub(crate) fn drew(&mut self, tokens: usize) {
        if let Some(play) = &mut self.play {
            play.brought(tokens);
        }
    }

    /// Returns the sources whose drafts are fed; `None` if no bandit chooses.
    pub(crate) fn arm(&self) -> Option<Arm> {
        self.play.as_ref().map(Play::arm)
    }

    /// Counts a token that was looked up and not fed; `is_right` if it was drawn.
    pub(crate) fn guessed(&mut self, is_right: bool) {
        let run = self.run_of(Source::Copied);
        self.note(Source::Copied, Stage::after(run), is_right);
        self.running = is_right.then_some(Source::Copied);
        self.run = if is_right { run + 1 } else { 0 };
    }

    /// Returns the probabilities that tokens drawn from stores are confirmed, by their kind, and that a copy
    /// is, given those of all sequences: of drawn tokens by their kind, and of copies by their stage.
    pub(crate) fn odds(&self, all_drawn: &[f64], all_copied: &[f64]) -> (Vec<f64>, f64) {
        let counts = self.counts.0[DRAWN.0..].iter().zip(all_drawn);
        let drawn = counts.map(|(counts, of_all)| counts[Stage::Begins as usize].share(*of_all, PRIOR));
        let stage = Stage::after(self.run_of(Source::Copied)) as usize;
        let copied = kind(Source::Copied).zip(all_copied.get(stage));
        let copied = copied.map_or(0.0, |(kind, of_all)| {
            self.counts.0[kind][stage].share(*of_all, PRIOR)
        });
        (drawn.collect(), copied)
    }

    /// Returns the length of the run that each draft continues, and 0 for one that begins a run.
    fn runs(&self, drafts: &[Draft]) -> Vec<usize> {
        let mut runs: Vec<usize> = Vec::with_capacity(drafts.len());
        for draft in drafts {
            runs.push(match draft.parent {
                Some(parent) if is_like(drafts[parent].source, draft.source) => runs[parent] + 1,
                Some(_) => 0,
                None => self.run_of(draft.source),
            });
        }
        runs
    }

    /// Returns the length of the run that a draft of a source continues after the text.
    fn run_of(&self, source: Source) -> usize {
        match self.running {
            Some(running) if is_like(running, source) => self.run,
            _ => 0,
        }
    }
}

/// Returns the last accepted draft of the run that the text ends with, and the number of tokens after it that
/// agree with it; `None` if a draft that would have continued the run was refused.
///
/// Stores extend copies by tokens of their own. Whether these are accepted says nothing about the copy, which
/// would have gone on if it had been longer.
fn run_at_the_end(drafts: &[Draft], accepted: &[usize]) -> Option<(usize, usize)> {
    let is_learned = |node: &usize| matches!(drafts[*node].source, Source::Learned(..));
    let learned = accepted.iter().rev().take_while(|node| is_learned(node)).count();
    let before = accepted[..accepted.len() - learned].last();
    let copy = before.filter(|&&node| matches!(drafts[node].source, Source::Copied | Source::Predicted));
    let (&last, more) = match copy {
        Some(copy) => (copy, learned),
        None => (accepted.last()?, 0),
    };
    let goes_on = |draft: &Draft| draft.parent == Some(last) && is_like(draft.source, drafts[last].source);
    (!drafts.iter().any(goes_on)).then_some((last, more))
}

/// The results of the drafts of all sequences.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records(KindCounts);

impl Records {
    /// Adds the new results of a sequence.
    pub(crate) fn hear(&mut self, record: &mut Record) {
        for (kind, stage, is_confirmed) in record.news.drain(..) {
            self.0.0[kind][stage as usize].add(is_confirmed, KEPT_OF_ALL);
        }
    }

    /// Returns the shares of drafts that were confirmed: of each kind of tokens drawn from stores, and of
    /// copies at each stage.
    pub(crate) fn of_all(&self) -> (Vec<f64>, Vec<f64>) {
        let share =
            |kind: usize, stage: Stage| self.0.0[kind][stage as usize].share(prior(kind, stage), PRIOR);
        let drawn = (DRAWN.0..KINDS).map(|kind| share(kind, Stage::Begins));
        let stages = [Stage::Begins, Stage::GoesOn, Stage::Runs].into_iter();
        let copied = stages.filter_map(|stage| Some(share(kind(Source::Copied)?, stage)));
        (drawn.collect(), copied.collect())
    }

    /// Returns the probability that a draft of a sequence is confirmed if the previous one was.
    pub(crate) fn chance(&self, record: &Record, source: Source, stage: Stage) -> f64 {
        let Some(kind) = kind(source) else { return 1.0 };
        let of_all = self.0.0[kind][stage as usize].share(prior(kind, stage), PRIOR);
        record.counts.0[kind][stage as usize].share(of_all, PRIOR)
    }

    /// Returns the probability that each draft of a sequence is confirmed: its ancestors must be confirmed
    /// too, and at most one of several siblings is.
    pub(crate) fn chances(&self, record: &Record, drafts: &[Draft]) -> Vec<f64> {
        let mut chances: Vec<f64> = Vec::with_capacity(drafts.len());
        let runs = record.runs(drafts);
        let mut beside: HashMap<Option<NodeId>, Beside> = HashMap::default();
        for (node, draft) in drafts.iter().enumerate() {
            let before = draft.parent.map_or(1.0, |parent| chances[parent]);
            let chance = self.chance(record, draft.source, Stage::after(runs[node]));
            let siblings = beside.entry(draft.parent).or_default();
            let own = match is_confident(draft.source) {
                // The confidence accounts for the siblings of the same source, and is that of the places
                // where no other was right.
                true => chance * (1.0 - siblings.others).max(0.0),
                false => chance * (1.0 - chance).powi(siblings.count),
            };
            siblings.count += 1;
            if !is_confident(draft.source) {
                siblings.others += own;
            }
            chances.push(before * own);
        }
        chances
    }

    /// Returns the draft after which the draft model continues: down the likeliest path, as far as each
    /// token is likelier than one of the draft model in its place. `None` for the text itself.
    pub(crate) fn tip(&self, record: &Record, drafts: &[Draft]) -> Option<NodeId> {
        let (chances, runs) = (self.chances(record, drafts), record.runs(drafts));
        let likeliest = |below: Option<NodeId>| {
            let nodes = (0..drafts.len()).filter(|&node| drafts[node].parent == below);
            nodes.max_by(|&one, &other| chances[one].total_cmp(&chances[other]).then(other.cmp(&one)))
        };
        let mut tip = None;
        while let Some(next) = likeliest(tip) {
            let run = if tip.is_none() {
                record.run_of(Source::Model)
            } else {
                0
            };
            let own = self.chance(record, Source::Model, Stage::after(run));
            if self.chance(record, drafts[next].source, Stage::after(runs[next])) < own {
                break;
            }
            tip = Some(next);
        }
        tip
    }

    /// Returns the probability that each of `most` tokens of the draft model is confirmed after a draft, if
    /// the draft model continues after the first of `beside` tokens at each place.
    pub(crate) fn chances_behind(
        &self,
        record: &Record,
        (drafts, tip): (&[Draft], Option<NodeId>),
        (most, beside): (usize, usize),
    ) -> Vec<f64> {
        let chances = self.chances(record, drafts);
        let mut before = tip.map_or(1.0, |tip| chances[tip]);
        let mut run = match tip {
            None => record.run_of(Source::Model),
            Some(_) => 0,
        };
        let mut chances = Vec::with_capacity(most);
        while chances.len() < most {
            let chance = self.chance(record, Source::Model, Stage::after(run));
            let here = (0..beside.max(1)).map(|others| before * chance * (1.0 - chance).powi(others as i32));
            chances.extend(here.take(most - chances.len()));
            (before, run) = (before * chance, run + 1);
        }
        chances
    }
}
