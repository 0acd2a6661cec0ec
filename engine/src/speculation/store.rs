//! Stores: what drafts are learned from earlier answers, for each owner by itself.
//!
//! ```text
//!   rows of a pass ─► teach ─┐                     ┌─► offer ─► drafts of the next pass
//!   whole answers ─► record ─┴─► store of an owner ┘
//! ```
//!
//! A store is several predictors as one, by the table of [`DraftStores::learners`]. What it offers is
//! verified by drawing once, so whatever it has learned, and from whom, can only save passes. That is also
//! all that an answer can tell of others: how fast it came. So owners do not share a store, unless the
//! operator says so.
//!
//! The samples of one request have a store of their own beside that of their owner: what most of them went on
//! with, the others probably will. It ends with its request.
//!
//! The operator's corpus is one of the predictors of every store. It is read alone, so all of them share it,
//! and it is there also where nothing is learned.
//!
//! Where a folder is named, the last answers and what rows have taught are kept over a restart
//! ([`journal`](crate::speculation::journal)).
//!
//! A predictor that panics is given up with all that it knew, and counted; answers go on without it.

use crate::Grammar;
use crate::config::{DraftStores, Drafting, Learner};
use crate::error::EngineError;
use crate::fairness::pool::Owner;
use crate::request::{Request, law};
use crate::speculation::journal::{self, Kept};
use crate::speculation::policy::svip;
use lexiform::vocab::Vocabulary;
use lexiform_law::draft::{
    BestFirst, Candidate, Combined, Consensus, Context, Draft, Layer, NGrams, NodeId, Observation, Phrases,
    Predictor, Recycling, Retrieval, Shape, StateKeyed, Suffixes, Text, Trigram,
};
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;

/// Paths that are less likely than this are not offered.
const LEAST_PROBABILITY: f32 = 0.1;
/// The most bytes that samples of one request learn from each other.
const OF_SAMPLES: usize = 1 << 20;
/// The tokens of a phrase.
const PHRASE: usize = 5;

/// What was learned from the answers of an owner, with what its next ones are drafted from beside that.
pub(crate) struct Store {
    /// `None` once it was given up.
    predictor: RwLock<Option<Box<dyn Predictor>>>,
    /// Whether anything is learned.
    learns: bool,
    /// Whether phrases are learned that became no text.
    learns_phrases: bool,
    /// Whether it offers a chain that ends where it is unsure, in the place of a tree.
    is_chain: bool,
    /// The last answers, where a store is kept over a restart.
    last: Option<Mutex<LastAnswers>>,
    given_up: Arc<AtomicU64>,
}

/// The last answers of an owner, as many as fit.
struct LastAnswers {
    /// The earliest first.
    answers: VecDeque<Vec<u32>>,
    bytes: usize,
    most: usize,
    /// Whether there are some that no file has.
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
            is_chain: false,
            last: last.map(Mutex::new),
            given_up,
        }
    }

    /// Whether rows and answers teach it anything.
    pub(crate) fn learns(&self) -> bool {
        self.learns
    }

    /// Whether phrases teach it anything that became no text.
    pub(crate) fn learns_phrases(&self) -> bool {
        self.learns_phrases
    }

    /// Adds to a draft what is at least this likely to come below one of its nodes, or after the text.
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
            let shape: &dyn Shape<Grammar, _> = match self.is_chain {
                true => &svip::shape(),
                false => &BestFirst {
                    least: least.max(LEAST_PROBABILITY),
                },
            };
            shape.grow(&watched, text, below, draft);
            watched.has_panicked.into_inner()
        };
        if has_panicked {
            self.give_up();
        }
    }

    /// Learns from a row of the model.
    pub(crate) fn learn(&self, at: &Context<'_>, seen: &Observation<'_>) {
        self.change(|predictor| predictor.learn(at, seen));
    }

    /// Learns from phrases that the model guessed and that became no text.
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

    /// Whether answers of it are kept over a restart.
    fn has_answers(&self) -> bool {
        let last = |last: &Mutex<LastAnswers>| last.lock().unwrap_or_else(PoisonError::into_inner).bytes > 0;
        self.last.as_ref().is_some_and(last)
    }

    /// Writes the last answers and what rows have taught to the owner's file, if there are new answers. Who
    /// learns meanwhile waits for as long as it takes to copy the rows.
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
            // To be tried again.
            last.lock().unwrap_or_else(PoisonError::into_inner).is_new = true;
        }
        written
    }

    /// What rows have taught, each part with its name.
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

    /// Learns again from what was kept; the names of parts that no predictor knows.
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

    /// The bytes that it holds.
    fn bytes(&self) -> usize {
        let predictor = self.predictor.read().unwrap_or_else(PoisonError::into_inner);
        let last = self.last.as_ref().map_or(0, |last| {
            last.lock().unwrap_or_else(PoisonError::into_inner).bytes
        });
        last + predictor.as_ref().map_or(0, |predictor| predictor.bytes())
    }
}

/// The bytes of the last answers of a store.
fn bytes_of_answers(config: &DraftStores) -> usize {
    match config.folder {
        Some(_) => config.bytes / 4,
        None => 0,
    }
}

/// A predictor whose panics are caught where it predicts, and nowhere else: a grammar whose work is bounded
/// unwinds through the drafts, which is no panic and must reach who bounded it.
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

/// The operator's corpus as a part of a store, whose memory it is none of.
struct Corpus(Retrieval);

impl Predictor for Corpus {
    fn predict(&self, at: &Context<'_>, found: &mut Vec<Candidate>) {
        self.0.predict(at, found);
    }

    fn bytes(&self) -> usize {
        0
    }
}

/// The predictors of a store. Those that learn have the rest of its bytes.
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
    Box::new(Combined {
        layers: config.learners.iter().filter_map(layer).collect(),
        union: config.union,
    })
}

/// Answers that end between two times that stores are saved.
const SAVED_EVERY: u32 = 64;

/// The stores of the owners that were served last, the latest last.
pub(crate) struct Stores {
    config: DraftStores,
    /// Whether stores offer chains.
    in_chains: bool,
    /// Tells the files of this vocabulary from those of others.
    vocabulary: u32,
    recent: VecDeque<(Owner, Arc<Store>)>,
    /// What all owners have where nothing is learned: the corpus, if there is one.
    unlearning: Option<Arc<Store>>,
    /// Owners whose stores have given way, and whose files have yet to.
    gone: Vec<Owner>,
    given_up: Arc<AtomicU64>,
    unsaved: Arc<AtomicU64>,
    ended: u32,
    saving: Option<JoinHandle<()>>,
    /// What was found in the folder and cannot be used.
    notices: Vec<String>,
}

impl Stores {
    /// No stores, or those of the folder.
    ///
    /// # Errors
    /// The folder cannot be used, or it or the corpus is of another vocabulary.
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
            in_chains: drafting == Drafting::Svip,
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

    /// A store that nobody has yet.
    fn store(&self, predictor: Box<dyn Predictor>, last: Option<LastAnswers>) -> Store {
        Store {
            is_chain: self.in_chains,
            ..Store::new(predictor, last, self.given_up.clone())
        }
    }

    /// What was found in the folder and cannot be used, a sentence each.
    pub(crate) fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Hears that an answer has ended; after some, what is new is written to the folder by another thread.
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
        // Its panics are none of this thread's.
        let _ = self.saving.take().map(JoinHandle::join);
        self.save()();
    }

    /// What writes all that is new, and removes the files of stores that have given way: there are never many
    /// more files than owners who have a store.
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

    /// How often something could not be written.
    pub(crate) fn unsaved(&self) -> u64 {
        self.unsaved.load(Ordering::Relaxed)
    }

    /// The store of an owner; `None` where nothing is to be learned and there is no corpus. That of the owner
    /// who was not served for longest gives way where there are too many.
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
            // Who never had an answer has no file.
            if store.has_answers() {
                self.gone.push(owner);
            }
        }
        Some(store)
    }

    /// A store for the samples of one request, which is gone with the last of them; `None` where there is one
    /// alone, and for the branches of a search, which differ by what they were told to be.
    pub(crate) fn of_samples(&self, request: &Request) -> Option<Arc<Store>> {
        let is_wanted = request.speculation.siblings && request.task.search().is_none();
        (is_wanted && law::branches(request) > 1).then(|| {
            let consensus = Box::new(Consensus::new(OF_SAMPLES));
            Arc::new(self.store(consensus, None))
        })
    }

    /// How many were given up because a predictor panicked.
    pub(crate) fn given_up(&self) -> u64 {
        self.given_up.load(Ordering::Relaxed)
    }

    /// The bytes that all of them hold.
    pub(crate) fn bytes(&self) -> usize {
        self.recent.iter().map(|(_, store)| store.bytes()).sum()
    }

    /// The bytes of the operator's corpus.
    pub(crate) fn corpus_bytes(&self) -> usize {
        self.config.corpus.as_ref().map_or(0, Predictor::bytes)
    }
}

#[cfg(test)]
mod soak;
#[cfg(test)]
mod tests;
