//! How many drafts were confirmed, by where they came from.

use crate::speculation::class::Standing;
use crate::speculation::draft::{Confidence, Draft, Source, path};
use crate::speculation::policy::bandit::{Arm, Play};
use lexiform_law::draft::Origin;

/// How much of what a sequence's drafts showed is left after one more of the kind.
const KEPT_SHARE: f64 = 0.95;
/// The same for those of all sequences.
const KEPT_OF_ALL: f64 = 0.999;
/// How many drafts of a sequence say as much as all that others have shown.
const PRIOR: f64 = 4.0;

/// Whether a draft begins or goes on: a copy whose last token was confirmed is likelier to be right than a
/// new one.
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

/// The sources without a say in how likely their drafts are, and what is thought of these before any was
/// verified.
const PLAIN_RECORD: [(Source, [f64; 2]); 5] = [
    (Source::Forced, [0.9, 0.95]),
    (Source::Copied, [0.5, 0.8]),
    (Source::Predicted, [0.7, 0.9]),
    (Source::Model, [0.7, 0.7]),
    (Source::Guessed, [0.1, 0.1]),
];

/// The stores, whose drafts are counted by how sure they were.
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

/// What drafts are counted by.
const KINDS: usize = PLAIN_RECORD.len() + LEARNED.len() * Confidence::COUNT;

/// By kind and stage. They lie in one place for all drafts of a sequence, most of which are of few kinds.
#[derive(Clone, Debug)]
struct KindCounts(Vec<[Count; 2]>);

impl Default for KindCounts {
    fn default() -> Self {
        KindCounts(vec![[Count::default(); 2]; KINDS])
    }
}

/// The kind of a source; `None` for what is certain.
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

/// What is thought of drafts of a kind before any was verified.
fn prior(kind: usize, stage: Stage) -> f64 {
    match PLAIN_RECORD.get(kind) {
        Some((_, priors)) => priors[stage as usize],
        None => {
            let step = (kind - PLAIN_RECORD.len()) % Confidence::COUNT;
            Confidence::all().nth(step).map_or(0.5, |(_, middle)| middle)
        }
    }
}

/// Whether drafts of both come from the same place.
fn is_like(one: Source, other: Source) -> bool {
    match (one, other) {
        (Source::Learned(one, _), Source::Learned(other, _)) => one == other,
        _ => one == other,
    }
}

/// What the drafts of one sequence showed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    counts: KindCounts,
    /// Where the last tokens came from, if they were as drafted.
    running: Option<Source>,
    /// What nobody has added to that of all sequences.
    news: Vec<(usize, Stage, bool)>,
    /// What a bandit has chosen for the next pass.
    pub(crate) play: Option<Play>,
    /// Where its text stands.
    pub(crate) standing: Standing,
    /// Whether the draft model has read its text.
    pub(crate) is_read: bool,
}

impl Record {
    /// A draft was confirmed, or another token was drawn in its place.
    pub(crate) fn note(&mut self, source: Source, stage: Stage, is_confirmed: bool) {
        if let Some(kind) = kind(source) {
            self.counts.0[kind][stage as usize].add(is_confirmed, KEPT_SHARE);
            self.news.push((kind, stage, is_confirmed));
        }
    }

    /// Drafts were verified, of which this path was accepted. What stands below a rejected one says nothing.
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

    /// A pass has brought so many tokens.
    pub(crate) fn drew(&mut self, tokens: usize) {
        if let Some(play) = &mut self.play {
            play.brought(tokens);
        }
    }

    /// The sources whose drafts are fed; `None` where no bandit chooses.
    pub(crate) fn arm(&self) -> Option<Arm> {
        self.play.as_ref().map(Play::arm)
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
            Some(parent) if is_like(drafts[parent].source, draft.source) => Stage::GoesOn,
            Some(_) => Stage::Begins,
            None => self.first(draft.source),
        }
    }

    /// The stage of the first draft after the text.
    fn first(&self, source: Source) -> Stage {
        match self.running.is_some_and(|running| is_like(running, source)) {
            true => Stage::GoesOn,
            false => Stage::Begins,
        }
    }
}

/// What the drafts of all sequences showed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records(KindCounts);

impl Records {
    /// Takes over what is new.
    pub(crate) fn hear(&mut self, record: &mut Record) {
        for (kind, stage, is_confirmed) in record.news.drain(..) {
            self.0.0[kind][stage as usize].add(is_confirmed, KEPT_OF_ALL);
        }
    }

    /// How likely a draft of a sequence is to be confirmed if the one before it was.
    pub(crate) fn chance(&self, record: &Record, source: Source, stage: Stage) -> f64 {
        let Some(kind) = kind(source) else { return 1.0 };
        let of_all = self.0.0[kind][stage as usize].share(prior(kind, stage), PRIOR);
        record.counts.0[kind][stage as usize].share(of_all, PRIOR)
    }

    /// How likely each draft of a sequence is to be confirmed: what is before it must be, too, and of those
    /// that stand side by side one at most is.
    pub(crate) fn chances(&self, record: &Record, drafts: &[Draft]) -> Vec<f64> {
        let mut chances: Vec<f64> = Vec::with_capacity(drafts.len());
        for (node, draft) in drafts.iter().enumerate() {
            let before = draft.parent.map_or(1.0, |parent| chances[parent]);
            let chance = self.chance(record, draft.source, record.stage(drafts, node));
            let beside = drafts[..node]
                .iter()
                .filter(|other| other.parent == draft.parent)
                .count();
            // What a store thinks of a token it thinks of it among its siblings.
            let beside = match draft.source {
                Source::Learned(..) => 0,
                _ => beside,
            };
            chances.push(before * chance * (1.0 - chance).powi(beside as i32));
        }
        chances
    }

    /// How likely so many tokens of the draft model are to be confirmed after these drafts, where it goes on
    /// after the first of `beside` tokens at each place.
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
