//! Draft stores: what is learned from earlier answers to draft from, separately for each owner.
//!
//! ```text
//!   rows of a pass ─► teach ─┐                     ┌─► offer ─► drafts of the next pass
//!   whole answers ─► record ─┴─► store of an owner ┘
//! ```
//!
//! A store combines several predictors, listed in [`DraftStores::learners`]. Its drafts are verified by
//! drawing once, so whatever it has learned, and from whom, can only save passes. The speed of an answer is
//! therefore all that it can reveal about other answers. For this reason owners do not share a store, unless
//! the operator configures it.
//!
//! The samples of one request have a separate store in addition to their owner's: a sample will probably
//! continue like most of the others. It ends with its request.
//!
//! The operator's corpus is one of the predictors of every store. It is only read, so all stores share it,
//! and it is there even if nothing is learned.
//!
//! If a folder is configured, the last answers and what was learned from rows are kept across restarts
//! ([`journal`](crate::speculation::journal)).
//!
//! A predictor that panics is dropped with all that it knew, and counted; answers continue without it.

use crate::Grammar;
use crate::config::{DraftShape, DraftStores, Drafting, Learner};
use crate::error::EngineError;
use crate::fairness::pool::Owner;
use crate::request::{Request, law};
use crate::speculation::draft as drafted;
use crate::speculation::journal::{self, Kept};
use crate::speculation::row::DraftRow;
use crate::speculation::shaping::Shaping;
use lexiform::vocab::Vocabulary;
use lexiform_law::draft::{
    Candidate, Combined, Consensus, Constraint, Context, Draft, Here, Layer, NGrams, NodeId, Observation,
    Phrases, Predictor, Recycling, Retrieval, Sampled, StateKeyed, Suffixes, Text, Trigram,
};
use lexiform_law::{Place, Seeded};
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;

/// The most bytes that the samples of one request learn from each other.
const OF_SAMPLES: usize = 1 << 20;
/// The number of tokens of a phrase.
const PHRASE: usize = 5;

/// The store of an owner: what was learned from its answers, and the corpus.
pub(crate) struct Store {
    /// The combined predictors; `None` once they were given up.
    predictor: RwLock<Option<Box<dyn Predictor>>>,
    /// `true` if anything is learned.
    learns: bool,
    /// `true` if the store learns phrases that did not become text.
    learns_phrases: bool,
    /// The tree that it offers.
    shaping: Shaping,
    /// The bits of the factor of the logits in the last row that was learned.
    scale: AtomicU64,
    /// The last answers, if the store is kept across restarts.
    last: Option<Mutex<LastAnswers>>,
    given_up: Arc<AtomicU64>,
}

/// The last answers of an owner, as many as fit.
struct LastAnswers {
    /// The answers, the earliest first.
    answers: VecDeque<Vec<u32>>,
    bytes: usize,
    most: usize,
    /// `true` if some answers are not in a file yet.
    is_new: bool,
}

impl LastAnswers {
    fn new(most: usize) -> Self {
        LastAnswers {
            answers: VecDeque::new(),
            bytes: 0,
            most,
            is_new: false,
        }
    }

    fn bytes_of(answer: &[u32]) -> usize {
        size_of::<Vec<u32>>() + size_of_val(answer)
    }

    fn add(&mut self, answer: &[u32]) {
        let answer = answer.to_vec();
        self.bytes += Self::bytes_of(&answer);
        self.answers.push_back(answer);
        self.is_new = true;
        while self.bytes > self.most
            && let Some(first) = self.answers.pop_front()
        {
            self.bytes -= Self::bytes_of(&first);
        }
    }
}

impl Store {
    fn new(predictor: Box<dyn Predictor>, last: Option<LastAnswers>, given_up: Arc<AtomicU64>) -> Self {
        Store {
            predictor: RwLock::new(Some(predictor)),
            learns: true,
            learns_phrases: false,
            shaping: Shaping::new(DraftShape::default(), false),
            scale: AtomicU64::new(1.0_f64.to_bits()),
            last: last.map(Mutex::new),
            given_up,
        }
    }

    /// Returns `true` if the store learns from rows and answers.
    pub(crate) fn learns(&self) -> bool {
        self.learns
    }

    /// Returns `true` if the store learns from phrases that did not become text.
    pub(crate) fn learns_phrases(&self) -> bool {
        self.learns_phrases
    }

    /// Adds tokens to a draft whose probability is at least `least`, below the node `below` or after the
    /// text.
    pub(crate) fn offer(
        &self,
        text: Text<'_>,
        (below, least): (Option<NodeId>, f32),
        draft: &mut Draft<'_, Grammar>,
    ) {
        let has_panicked = {
            let predictor = self.predictor.read().unwrap_or_else(PoisonError::into_inner);
            let Some(predictor) = &*predictor else { return };
            let watched = Watched {
                predictor: &**predictor,
                has_panicked: AtomicBool::new(false),
            };
            self.shaping.grow(&watched, text, (below, least), draft);
            watched.has_panicked.into_inner()
        };
        if has_panicked {
            self.give_up();
        }
    }

    /// Adds tokens to a draft that are drawn from the rows of the store, the first of them at this place,
    /// with the weights that `weigh` gives to the candidates at a place.
    pub(crate) fn draw<C: Constraint>(
        &self,
        text: Text<'_>,
        draft: &mut Draft<'_, C, DraftRow>,
        (first, mut chooser): (Place, Seeded),
        weigh: impl Fn(Here<'_, C>, &[Candidate]) -> Vec<f64>,
    ) {
        let has_panicked = {
            let predictor = self.predictor.read().unwrap_or_else(PoisonError::into_inner);
            let Some(predictor) = &*predictor else { return };
            let watched = Watched {
                predictor: &**predictor,
                has_panicked: AtomicBool::new(false),
            };
            let template = self.shaping.drawn(draft.room_below(None));
            Sampled { template, weigh }.grow(&watched, text, None, draft, first, &mut chooser);
            watched.has_panicked.into_inner()
        };
        if has_panicked {
            self.give_up();
        }
    }

    /// Returns the factor of the logits in the rows that it has learned, as far as those are like the last
    /// one: 1 over the temperature, if the model took the sums of rows.
    pub(crate) fn scale(&self) -> f64 {
        f64::from_bits(self.scale.load(Ordering::Relaxed))
    }

    /// Learns the fate of drafts, of which the path `accepted` was accepted.
    pub(crate) fn judge(&self, drafts: &[drafted::Draft], accepted: &[NodeId]) {
        self.shaping.judge(drafts, accepted);
        let judged: Vec<_> = drafted::judged(drafts, accepted).collect();
        if !judged.is_empty() {
            self.change(|predictor| {
                for (origin, chance, is_confirmed) in judged {
                    predictor.judge(origin, chance, is_confirmed);
                }
            });
        }
    }

    /// Learns from a row of the model, whose probabilities are those of logits times `scale`.
    pub(crate) fn learn(&self, at: &Context<'_>, seen: &Observation<'_>, scale: f64) {
        self.scale.store(scale.to_bits(), Ordering::Relaxed);
        self.change(|predictor| predictor.learn(at, seen));
    }

    /// Learns from phrases that the model guessed and that did not become text.
    pub(crate) fn learn_phrases(&self, phrases: &[Vec<u32>]) {
        if !phrases.is_empty() {
            self.change(|predictor| phrases.iter().for_each(|phrase| predictor.learn_phrase(phrase)));
        }
    }

    /// Learns from a whole answer.
    pub(crate) fn record(&self, answer: &[u32]) {
        self.change(|predictor| predictor.record(answer));
        if let Some(last) = &self.last {
            last.lock().unwrap_or_else(PoisonError::into_inner).add(answer);
        }
    }

    /// Returns `true` if the store has answers to keep across restarts.
    fn has_answers(&self) -> bool {
        let last = |last: &Mutex<LastAnswers>| last.lock().unwrap_or_else(PoisonError::into_inner).bytes > 0;
        self.last.as_ref().is_some_and(last)
    }

    /// Writes the last answers and what was learned from rows to the owner's file, if there are new answers.
    /// Concurrent learning waits only while the rows are copied.
    fn save(&self, folder: &Path, vocabulary: u32, owner: &Owner) -> io::Result<()> {
        let Some(last) = &self.last else { return Ok(()) };
        let answers: Vec<Vec<u32>> = {
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            if !std::mem::take(&mut last.is_new) {
                return Ok(());
            }
            last.answers.iter().cloned().collect()
        };
        let kept = Kept {
            owner: owner.clone(),
            answers,
            parts: self.parts(),
        };
        let written = journal::write(folder, vocabulary, &kept);
        if written.is_err() {
            // The next save tries again.
            last.lock().unwrap_or_else(PoisonError::into_inner).is_new = true;
        }
        written
    }

    /// Returns what was learned from rows, each part with its name.
    fn parts(&self) -> Vec<(String, Vec<u8>)> {
        let saved = {
            let predictor = self.predictor.read().unwrap_or_else(PoisonError::into_inner);
            let Some(predictor) = &*predictor else {
                return Vec::new();
            };
            let mut parts = Vec::new();
            let save = || predictor.save(&mut |name, part| parts.push((name.to_owned(), part)));
            catch_unwind(AssertUnwindSafe(save)).map(|()| parts)
        };
        saved.unwrap_or_else(|_| {
            self.give_up();
            Vec::new()
        })
    }

    /// Learns again from a saved store, and returns the names of the parts that no predictor knows.
    fn restore(&self, kept: &Kept) -> Vec<String> {
        kept.answers.iter().for_each(|answer| self.record(answer));
        if let Some(last) = &self.last {
            last.lock().unwrap_or_else(PoisonError::into_inner).is_new = false;
        }
        let mut unknown = Vec::new();
        for (name, part) in &kept.parts {
            let mut is_known = false;
            self.change(|predictor| is_known = predictor.restore(name, part));
            if !is_known {
                unknown.push(name.clone());
            }
        }
        unknown
    }

    fn change(&self, change: impl FnOnce(&mut dyn Predictor)) {
        if !self.learns {
            return;
        }
        let changed = {
            let mut predictor = self.predictor.write().unwrap_or_else(PoisonError::into_inner);
            let Some(predictor) = &mut *predictor else { return };
            catch_unwind(AssertUnwindSafe(|| change(&mut **predictor)))
        };
        if changed.is_err() {
            self.give_up();
        }
    }

    fn give_up(&self) {
        let mut predictor = self.predictor.write().unwrap_or_else(PoisonError::into_inner);
        if predictor.take().is_some() {
            self.given_up.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the size of the store in bytes.
    fn bytes(&self) -> usize {
        let predictor = self.predictor.read().unwrap_or_else(PoisonError::into_inner);
        let last = self.last.as_ref().map_or(0, |last| {
            last.lock().unwrap_or_else(PoisonError::into_inner).bytes
        });
        last + predictor.as_ref().map_or(0, |predictor| predictor.bytes())
    }
}

/// Returns the bytes reserved for the last answers of a store.
fn bytes_of_answers(config: &DraftStores) -> usize {
    match config.folder {
        Some(_) => config.bytes / 4,
        None => 0,
    }
}

/// A predictor whose panics are caught while it predicts, and nowhere else: a grammar whose work is bounded
/// unwinds through the drafts, which is not a panic and must reach the caller that bounded it.
struct Watched<'a> {
    predictor: &'a dyn Predictor,
    has_panicked: AtomicBool,
}

impl Predictor for Watched<'_> {
    fn predict(&self, at: &Context<'_>, found: &mut Vec<Candidate>) {
        if self.has_panicked.load(Ordering::Relaxed) {
            return;
        }
        let predict = AssertUnwindSafe(|| self.predictor.predict(at, found));
        if catch_unwind(predict).is_err() {
            self.has_panicked.store(true, Ordering::Relaxed);
            found.clear();
        }
    }

    fn bytes(&self) -> usize {
        self.predictor.bytes()
    }
}

/// The operator's corpus as a part of a store. Its memory does not count towards the store's.
struct Corpus(Retrieval);

impl Predictor for Corpus {
    fn predict(&self, at: &Context<'_>, found: &mut Vec<Candidate>) {
        self.0.predict(at, found);
    }

    fn bytes(&self) -> usize {
        0
    }
}

/// Combines the predictors of a store. Those that learn share the bytes that remain.
fn combined(config: &DraftStores) -> Box<dyn Predictor> {
    let learns = |learner: &&Learner| **learner != Learner::Retrieval;
    let learning = config.learners.iter().filter(learns).count();
    let bytes = (config.bytes - bytes_of_answers(config)) / learning.max(1);
    let layer = |learner: &Learner| {
        Some(match learner {
            Learner::Retrieval => Layer::new(Corpus(config.corpus.clone()?)),
            _ if !config.learns() => return None,
            Learner::Suffixes => Layer::new(Suffixes::new(bytes)),
            Learner::StateKeyed => Layer::new(StateKeyed::new(bytes)),
            Learner::NGrams => Layer::new(NGrams::new(bytes)),
            Learner::Trigram => Layer::new(Trigram::new(bytes)),
            Learner::Recycling => Layer::new(Recycling::new(bytes)),
            Learner::Phrases => Layer::new(Phrases::new(PHRASE, bytes)),
        })
    };
    let layers = config.learners.iter().filter_map(layer).collect();
    Box::new(Combined::new(layers, config.union))
}

/// The number of answers that end between two saves of the stores.
const SAVED_EVERY: u32 = 64;

/// The stores of the most recently served owners, the latest last.
pub(crate) struct Stores {
    config: DraftStores,
    /// `true` if stores offer chains that end where they are unsure.
    ends_unsure: bool,
    /// The fingerprint that distinguishes the files of this vocabulary from those of others.
    vocabulary: u32,
    recent: VecDeque<(Owner, Arc<Store>)>,
    /// The store of all owners if nothing is learned: the corpus, if there is one.
    unlearning: Option<Arc<Store>>,
    /// Owners whose stores were dropped, and whose files are still to be removed.
    gone: Vec<Owner>,
    given_up: Arc<AtomicU64>,
    unsaved: Arc<AtomicU64>,
    ended: u32,
    saving: Option<JoinHandle<()>>,
    /// The contents of the folder that cannot be used.
    notices: Vec<String>,
}

impl Stores {
    /// Creates the stores, from the folder if one is configured.
    ///
    /// # Errors
    /// The folder cannot be used, or the folder or the corpus belongs to another vocabulary.
    pub(crate) fn open(
        config: DraftStores,
        drafting: Drafting,
        vocabulary: &Vocabulary,
    ) -> Result<Self, EngineError> {
        let greatest = config.corpus.as_ref().and_then(Retrieval::greatest);
        if let Some(token) = greatest.filter(|&token| token as usize >= vocabulary.len()) {
            return Err(EngineError::Corpus {
                token,
                tokens: vocabulary.len(),
            });
        }
        let mut stores = Stores {
            config,
            ends_unsure: drafting == Drafting::Svip,
            vocabulary: 0,
            recent: VecDeque::new(),
            unlearning: None,
            gone: Vec::new(),
            given_up: Arc::default(),
            unsaved: Arc::default(),
            ended: 0,
            saving: None,
            notices: Vec::new(),
        };
        if !stores.config.learns() {
            let has_corpus =
                stores.config.corpus.is_some() && stores.config.learners.contains(&Learner::Retrieval);
            stores.unlearning = has_corpus.then(|| {
                Arc::new(Store {
                    learns: false,
                    ..stores.store(combined(&stores.config), None)
                })
            });
        }
        if let Some(folder) = stores.config.folder.clone() {
            stores.vocabulary = journal::fingerprint(vocabulary);
            let found = journal::open(&folder, stores.vocabulary)?;
            stores.notices = found.notices;
            for kept in found.kept {
                let Some(store) = stores.of(&kept.owner) else {
                    break;
                };
                let unknown = store.restore(&kept);
                stores.notices.extend(unknown.iter().map(|name| {
                    let path = journal::path_of(&folder, &kept.owner);
                    format!(
                        "what {} has under `{name}` is of another format, or of a drafter that is off; it was left out",
                        path.display()
                    )
                }));
            }
        }
        Ok(stores)
    }

    /// Creates a store.
    fn store(&self, predictor: Box<dyn Predictor>, last: Option<LastAnswers>) -> Store {
        Store {
            shaping: Shaping::new(self.config.shape, self.ends_unsure),
            ..Store::new(predictor, last, self.given_up.clone())
        }
    }

    /// Returns the contents of the folder that cannot be used, one sentence each.
    pub(crate) fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Counts an answer that has ended. After [`SAVED_EVERY`] of them, another thread writes what is new to
    /// the folder.
    pub(crate) fn ended(&mut self) {
        if self.config.folder.is_none() {
            return;
        }
        self.ended = self.ended.saturating_add(1);
        let is_idle = self.saving.as_ref().is_none_or(JoinHandle::is_finished);
        if self.ended >= SAVED_EVERY && is_idle {
            self.ended = 0;
            let save = self.save();
            self.saving = std::thread::Builder::new()
                .name("lexiform-drafts".to_owned())
                .spawn(save)
                .ok();
        }
    }

    /// Writes what is new to the folder, and waits for that.
    pub(crate) fn close(&mut self) {
        // A panic of that thread does not concern this one.
        let _ = self.saving.take().map(JoinHandle::join);
        self.save()();
    }

    /// Returns a function that writes all that is new, and removes the files of dropped stores: there are
    /// never many more files than owners with a store.
    fn save(&mut self) -> impl FnOnce() + Send + 'static {
        let (stores, folder, vocabulary) = (self.recent.clone(), self.config.folder.clone(), self.vocabulary);
        let (gone, unsaved) = (std::mem::take(&mut self.gone), self.unsaved.clone());
        move || {
            let Some(folder) = folder else { return };
            let removed = gone.iter().map(|owner| journal::remove(&folder, owner));
            let failed = removed.filter(Result::is_err).count();
            let saved = stores
                .iter()
                .map(|(owner, store)| store.save(&folder, vocabulary, owner));
            let failed = failed + saved.filter(Result::is_err).count();
            unsaved.fetch_add(failed as u64, Ordering::Relaxed);
        }
    }

    /// Returns how often something could not be written.
    pub(crate) fn unsaved(&self) -> u64 {
        self.unsaved.load(Ordering::Relaxed)
    }

    /// Returns the store of an owner; `None` if nothing is learned and there is no corpus. The least recently
    /// served owner's store is dropped if there are too many.
    pub(crate) fn of(&mut self, owner: &Owner) -> Option<Arc<Store>> {
        if !self.config.learns() {
            return self.unlearning.clone();
        }
        let owner = match self.config.shared {
            true => &None,
            false => owner,
        };
        let known = self.recent.iter().position(|(known, _)| known == owner);
        let entry = known.and_then(|place| self.recent.remove(place));
        let entry = entry.unwrap_or_else(|| {
            let last = self
                .config
                .folder
                .as_ref()
                .map(|_| LastAnswers::new(bytes_of_answers(&self.config)));
            let store = Store {
                learns_phrases: self.config.learners.contains(&Learner::Phrases),
                ..self.store(combined(&self.config), last)
            };
            (owner.clone(), Arc::new(store))
        });
        let store = entry.1.clone();
        self.recent.push_back(entry);
        while self.recent.len() > self.config.owners
            && let Some((owner, store)) = self.recent.pop_front()
        {
            // An owner that never had an answer has no file.
            if store.has_answers() {
                self.gone.push(owner);
            }
        }
        Some(store)
    }

    /// Creates a store for the samples of one request, which is dropped with the last of them. Returns `None`
    /// if there is only one sample, and for a search, whose branches are made to differ.
    pub(crate) fn of_samples(&self, request: &Request) -> Option<Arc<Store>> {
        let is_wanted = request.speculation.siblings && request.task.search().is_none();
        (is_wanted && law::branches(request) > 1).then(|| {
            let consensus = Box::new(Consensus::new(OF_SAMPLES));
            Arc::new(self.store(consensus, None))
        })
    }

    /// Returns the number of stores that were given up because a predictor panicked.
    pub(crate) fn given_up(&self) -> u64 {
        self.given_up.load(Ordering::Relaxed)
    }

    /// Returns the size of all stores in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.recent.iter().map(|(_, store)| store.bytes()).sum()
    }

    /// Returns the size of the operator's corpus in bytes.
    pub(crate) fn corpus_bytes(&self) -> usize {
        self.config.corpus.as_ref().map_or(0, Predictor::bytes)
    }
}

#[cfg(test)]
mod soak;
#[cfg(test)]
mod tests;
