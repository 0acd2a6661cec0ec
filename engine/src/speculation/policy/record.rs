//! Counts of confirmed drafts, by their source.

use crate::speculation::class::Standing;
use crate::speculation::draft::{Confidence, Draft, Source, path};
use crate::speculation::policy::bandit::{Arm, Play};
use lexiform_law::draft::Origin;

/// The weight that the earlier drafts of a sequence keep after one more of the kind.
const KEPT_SHARE: f64 = 0.95;
/// The weight that the earlier drafts of all sequences keep after one more of the kind.
const KEPT_OF_ALL: f64 = 0.999;
/// The number of drafts of a sequence that weigh as much as those of all others together.
const PRIOR: f64 = 4.0;

/// The stage of a draft, which begins or continues a run of its source: a copy whose last token was confirmed
/// is likelier to be right than a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Begins,
    GoesOn,
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

    /// Returns the share of confirmed drafts, with a prior of `number` drafts of which the share `before` was
    /// confirmed.
    fn share(&self, before: f64, number: f64) -> f64 {
        (self.confirmed + number * before) / (self.offered + number)
    }
}

/// The sources that do not report a confidence, and the prior for each stage before any draft was verified.
const PLAIN_RECORD: [(Source, [f64; 2]); 5] = [
    (Source::Forced, [0.9, 0.95]),
    (Source::Copied, [0.5, 0.8]),
    (Source::Predicted, [0.7, 0.9]),
    (Source::Model, [0.7, 0.7]),
    (Source::Guessed, [0.1, 0.1]),
];

/// The stores, whose drafts are counted by their confidence.
const LEARNED: [Origin; 8] = [
    Origin::Recycled,
    Origin::Trigram,
    Origin::NGram,
    Origin::Keyed,
    Origin::Suffix,
    Origin::Retrieved,
    Origin::Consensus,
    Origin::Phrase,
];

/// The number of kinds by which drafts are counted.
const KINDS: usize = PLAIN_RECORD.len() + LEARNED.len() * Confidence::COUNT;

/// Counts by kind and stage. They are in one allocation for all drafts of a sequence, most of which are of
/// few kinds.
#[derive(Clone, Debug)]
struct KindCounts(Vec<[Count; 2]>);

impl Default for KindCounts {
    fn default() -> Self {
        KindCounts(vec![[Count::default(); 2]; KINDS])
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

/// Returns `true` if drafts of both come from the same source.
fn is_like(one: Source, other: Source) -> bool {
    match (one, other) {
        (Source::Learned(one, _), Source::Learned(other, _)) => one == other,
        _ => one == other,
    }
}

/// The results of the drafts of one sequence.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    counts: KindCounts,
    /// The source of the last tokens, if they were as drafted.
    running: Option<Source>,
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
            self.counts.0[kind][stage as usize].add(is_confirmed, KEPT_SHARE);
            self.news.push((kind, stage, is_confirmed));
        }
    }

    /// Counts drafts that were verified, of which the path `accepted` was accepted. The drafts below a
    /// rejected one are not counted.
    pub(crate) fn verified(&mut self, drafts: &[Draft], accepted: &[usize]) {
        for (node, draft) in drafts.iter().enumerate() {
            if draft.parent.is_none_or(|parent| accepted.contains(&parent)) {
                self.note(draft.source, self.stage(drafts, node), accepted.contains(&node));
            }
        }
        if drafts.iter().all(Draft::is_guess) {
            // A pass without drafts does not end a copy that is watched.
            return;
        }
        let is_last = |&&node: &&usize| {
            let mut drafts = drafts.iter().filter(|draft| !draft.is_guess());
            drafts.all(|draft| draft.parent != Some(node))
        };
        self.running = accepted.last().filter(is_last).map(|&node| drafts[node].source);
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
        self.note(Source::Copied, self.first(Source::Copied), is_right);
        self.running = is_right.then_some(Source::Copied);
    }

    /// Returns whether a draft begins a run of its source or continues one.
    fn stage(&self, drafts: &[Draft], node: usize) -> Stage {
        let draft = &drafts[node];
        match draft.parent {
            Some(parent) if is_like(drafts[parent].source, draft.source) => Stage::GoesOn,
            Some(_) => Stage::Begins,
            None => self.first(draft.source),
        }
    }

    /// Returns the stage of the first draft after the text.
    fn first(&self, source: Source) -> Stage {
        match self.running.is_some_and(|running| is_like(running, source)) {
            true => Stage::GoesOn,
            false => Stage::Begins,
        }
    }
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
        for (node, draft) in drafts.iter().enumerate() {
            let before = draft.parent.map_or(1.0, |parent| chances[parent]);
            let chance = self.chance(record, draft.source, record.stage(drafts, node));
            let beside = drafts[..node]
                .iter()
                .filter(|other| other.parent == draft.parent)
                .count();
            // The confidence that a store gives to a token already accounts for its siblings.
            let beside = match draft.source {
                Source::Learned(..) => 0,
                _ => beside,
            };
            chances.push(before * chance * (1.0 - chance).powi(beside as i32));
        }
        chances
    }

    /// Returns the probability that each of `most` tokens of the draft model is confirmed after these drafts,
    /// if the draft model continues after the first of `beside` tokens at each place.
    pub(crate) fn chances_behind(
        &self,
        record: &Record,
        drafts: &[Draft],
        (most, beside): (usize, usize),
    ) -> Vec<f64> {
        let tip = drafts.len().checked_sub(1);
        let chances = self.chances(record, drafts);
        let mut before = path(drafts, tip).last().map_or(1.0, |&node| chances[node]);
        let mut stage = match tip.map(|tip| drafts[tip].source) {
            None => record.first(Source::Model),
            Some(_) => Stage::Begins,
        };
        let mut chances = Vec::with_capacity(most);
        while chances.len() < most {
            let chance = self.chance(record, Source::Model, stage);
            let here = (0..beside.max(1)).map(|others| before * chance * (1.0 - chance).powi(others as i32));
            chances.extend(here.take(most - chances.len()));
            (before, stage) = (before * chance, Stage::GoesOn);
        }
        chances
    }
}
