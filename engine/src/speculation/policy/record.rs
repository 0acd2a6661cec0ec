//! How many drafts were confirmed, by where they came from.

use crate::speculation::draft::{Draft, Source, path};
use lexiform::draft::Origin;

/// How much of what a sequence's drafts showed is left after one more of the kind.
const KEPT: f64 = 0.95;
/// The same for those of all sequences.
const KEPT_OF_ALL: f64 = 0.999;
/// How many drafts of a sequence say as much as all that others have shown.
const PRIOR: f64 = 4.0;

/// Whether a draft begins or goes on: a copy whose last token was confirmed is likelier to be right than a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Begins,
    GoesOn,
}

/// Drafts that were verified and those of them that were confirmed, older ones counting less.
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

    /// The share of confirmed ones, where so many of another share were seen before.
    fn share(&self, before: f64, number: f64) -> f64 {
        (self.confirmed + number * before) / (self.offered + number)
    }
}

/// The sources whose drafts are guesses, and what is thought of them before any was verified.
const SOURCES: [(Source, [f64; 2]); 12] = [
    (Source::Forced, [0.9, 0.95]),
    (Source::Copied, [0.5, 0.8]),
    (Source::Predicted, [0.7, 0.9]),
    (Source::Model, [0.7, 0.7]),
    (Source::Learned(Origin::Recycled), [0.4, 0.4]),
    (Source::Learned(Origin::Trigram), [0.4, 0.4]),
    (Source::Learned(Origin::NGram), [0.4, 0.4]),
    (Source::Learned(Origin::Keyed), [0.5, 0.5]),
    (Source::Learned(Origin::Suffix), [0.5, 0.8]),
    (Source::Learned(Origin::Retrieved), [0.4, 0.6]),
    (Source::Learned(Origin::Consensus), [0.5, 0.6]),
    (Source::Learned(Origin::Phrase), [0.3, 0.6]),
];

type Counts = [[Count; 2]; SOURCES.len()];

/// The number of a source; `None` for what is certain.
fn number(source: Source) -> Option<usize> {
    SOURCES.iter().position(|(known, _)| *known == source)
}

/// What the drafts of one sequence showed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    counts: Counts,
    /// Where the last tokens came from, if they were as drafted.
    running: Option<Source>,
    /// What nobody has added to that of all sequences.
    news: Vec<(usize, Stage, bool)>,
}

impl Record {
    /// A draft was confirmed, or another token was drawn in its place.
    pub(crate) fn note(&mut self, source: Source, stage: Stage, is_confirmed: bool) {
        if let Some(number) = number(source) {
            self.counts[number][stage as usize].add(is_confirmed, KEPT);
            self.news.push((number, stage, is_confirmed));
        }
    }

    /// Drafts were verified, of which this path was accepted. What stands below a rejected one says nothing.
    pub(crate) fn verified(&mut self, drafts: &[Draft], accepted: &[usize]) {
        if drafts.is_empty() {
            // A pass without drafts does not end a copy that is watched.
            return;
        }
        for (node, draft) in drafts.iter().enumerate() {
            if draft.parent.is_none_or(|parent| accepted.contains(&parent)) {
                self.note(draft.source, self.stage(drafts, node), accepted.contains(&node));
            }
        }
        let is_last = |&&node: &&usize| drafts.iter().all(|draft| draft.parent != Some(node));
        self.running = accepted.last().filter(is_last).map(|&node| drafts[node].source);
    }

    /// A token that was looked up and not fed, and whether it was drawn.
    pub(crate) fn guessed(&mut self, is_right: bool) {
        self.note(Source::Copied, self.first(Source::Copied), is_right);
        self.running = is_right.then_some(Source::Copied);
    }

    /// Whether a draft goes on with one of the same source.
    fn stage(&self, drafts: &[Draft], node: usize) -> Stage {
        let draft = &drafts[node];
        match draft.parent {
            Some(parent) if drafts[parent].source == draft.source => Stage::GoesOn,
            Some(_) => Stage::Begins,
            None => self.first(draft.source),
        }
    }

    /// The stage of the first draft after the text.
    fn first(&self, source: Source) -> Stage {
        match self.running == Some(source) {
            true => Stage::GoesOn,
            false => Stage::Begins,
        }
    }
}

/// What the drafts of all sequences showed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records(Counts);

impl Records {
    /// Takes over what is new.
    pub(crate) fn hear(&mut self, record: &mut Record) {
        for (number, stage, is_confirmed) in record.news.drain(..) {
            self.0[number][stage as usize].add(is_confirmed, KEPT_OF_ALL);
        }
    }

    /// How likely a draft of a sequence is to be confirmed if the one before it was.
    pub(crate) fn chance(&self, record: &Record, source: Source, stage: Stage) -> f64 {
        let Some(number) = number(source) else { return 1.0 };
        let of_all = self.0[number][stage as usize].share(SOURCES[number].1[stage as usize], PRIOR);
        record.counts[number][stage as usize].share(of_all, PRIOR)
    }

    /// How likely each draft of a sequence is to be confirmed: what is before it must be, too, and of those that stand side by
    /// side one at most is.
    pub(crate) fn chances(&self, record: &Record, drafts: &[Draft]) -> Vec<f64> {
        let mut chances: Vec<f64> = Vec::with_capacity(drafts.len());
        for (node, draft) in drafts.iter().enumerate() {
            let before = draft.parent.map_or(1.0, |parent| chances[parent]);
            let chance = self.chance(record, draft.source, record.stage(drafts, node));
            let beside = drafts[..node]
                .iter()
                .filter(|other| other.parent == draft.parent)
                .count();
            chances.push(before * chance * (1.0 - chance).powi(beside as i32));
        }
        chances
    }

    /// How likely so many tokens of the draft model are to be confirmed after these drafts.
    pub(crate) fn chances_behind(&self, record: &Record, drafts: &[Draft], most: usize) -> Vec<f64> {
        let tip = drafts.len().checked_sub(1);
        let chances = self.chances(record, drafts);
        let mut before = path(drafts, tip).last().map_or(1.0, |&node| chances[node]);
        let mut stage = match tip.map(|tip| drafts[tip].source) {
            None => record.first(Source::Model),
            Some(_) => Stage::Begins,
        };
        let chance = |_| {
            before *= self.chance(record, Source::Model, stage);
            stage = Stage::GoesOn;
            before
        };
        (0..most).map(chance).collect()
    }
}
