//! The compiled grammars: the compilers of each vocabulary, a cache keyed by the meaning of a language, and
//! the grammars that clients registered. Clients send the same schema with every request.
//!
//! ```text
//!   model ─┐
//!   model ─┴─► store of a vocabulary ─┐
//!   model ───► store of a vocabulary ─┴─► shelf: one cache, one bound
//! ```
//!
//! Each API key has grammars and tables of its own: a grammar that is found takes less time than one that is
//! compiled, which would tell a key what another has sent. They are shared if the operator says so, and
//! without keys.
//!
//! The cache is bounded by bytes, and charged to those whose requests were compiled, so that nobody evicts
//! the grammars of the others. A grammar that has grown with the texts it read is weighed again, and
//! one that has outgrown its bound is replaced by a fresh one, while running sequences keep the old one.
//! Concurrent requests with the same new source wait for one compilation, which is cancelled when the last of
//! them has left. Sources that do not compile are not cached: the compiler's limits are deterministic, so the
//! answer would be the same again, but caching it would let bad requests evict good grammars.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use lexiform::Options;
use lexiform::error::{Place, Problem, ProblemKind};
use lexiform::limits::Limits;
use lexiform::schema::ArgumentStyle;
use lexiform::tags::{ArgumentError, ArgumentReader};
use lexiform::vocab::Vocabulary;
use lexiform::{Compiler, Grammar};

use crate::grammars::cache::Cache;
use crate::grammars::compile_memory::CompileMemory;
use crate::grammars::compilers::Compilers;
use crate::grammars::interest::{Interest, Requester};
use crate::grammars::language::{Finding, Language, Rejected};
use crate::grammars::lowering::{lower_answer, schema_options};
use crate::grammars::single_flight::SingleFlight;
use crate::operate::metrics::gauges::CompilerGauges;
use crate::operate::metrics::{CompileOutcome, Metrics};
use crate::wire::constraint::{Constraint, Source};
use crate::wire::tools::{Callable, Input};
use lexiform_engine::Owner;

/// The estimated size of a grammar besides its source: states and masks that are filled as it is used.
const BASE_BYTES: u32 = 64 * 1024;
/// The estimated size of a compiled grammar per byte of its source.
const BYTES_PER_SOURCE_BYTE: u32 = 64;
/// The memory that all compilations together may hold, in bytes: more than two of the largest allowed ones.
const COMPILE_MEMORY: usize = 512 << 20;
/// The size of a registered constraint besides its source.
const REGISTERED_BYTES: usize = 256;

/// A compiled grammar with the findings of its compilation.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The grammar.
    pub grammar: Grammar,
    /// The findings that did not stop the compilation: a keyword without effect, an unknown format.
    pub findings: Arc<[Finding]>,
    /// The identity of the grammar: equal for equal constraints, in every process.
    pub id: Arc<str>,
    /// The readers of the arguments of each tool; `None` for a tool whose input is read as it is.
    pub readers: Arc<[Option<ArgumentReader>]>,
    /// The time that the compilation took, in microseconds.
    pub micros: u64,
    /// The memory of the grammar when it was inserted into the cache.
    weight: u32,
}

/// The identity of a compiled grammar.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Identity {
    /// The number of the vocabulary whose tokens it has.
    vocabulary: u64,
    /// The key that had it compiled, if keys do not share.
    key: Owner,
    language: Language,
}

/// The memory that the grammars of all vocabularies share, and the store of each vocabulary.
///
/// Models with equal vocabularies have the same store, so that what one has had compiled serves the other.
pub struct Shelf {
    cache: Cache<Identity, Compiled>,
    compiling: SingleFlight<Identity, Result<Compiled, Arc<Rejected>>>,
    /// `true` if keys share grammars.
    is_shared: AtomicBool,
    memory: CompileMemory,
    /// The registered constraints, which belong to no vocabulary. Each key has a separate namespace: no other
    /// key can read or use its entries.
    registered: Cache<(Owner, String), Constraint>,
    stores: Mutex<Vec<Weak<GrammarStore>>>,
    numbers: AtomicU64,
}

impl Shelf {
    /// Creates a shelf whose cache is bounded by about this many bytes. Keys do not share grammars.
    pub fn new(bytes: u64) -> Self {
        Self {
            cache: Cache::new(bytes),
            compiling: SingleFlight::default(),
            is_shared: AtomicBool::new(false),
            memory: CompileMemory::new(COMPILE_MEMORY),
            registered: Cache::new(bytes / 8),
            stores: Mutex::default(),
            numbers: AtomicU64::new(0),
        }
    }

    /// Sets whether keys share grammars.
    pub fn share(&self, is_shared: bool) {
        self.is_shared.store(is_shared, Relaxed);
    }

    /// Returns the store of a vocabulary: the one of an equal vocabulary if there is one.
    pub fn store(self: &Arc<Self>, vocabulary: Vocabulary) -> Arc<GrammarStore> {
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        stores.retain(|store| store.strong_count() > 0);
        let mut known = stores.iter().filter_map(Weak::upgrade);
        if let Some(store) = known.find(|store| **store.vocabulary() == vocabulary) {
            return store;
        }
        let number = self.numbers.fetch_add(1, Relaxed);
        let store = Arc::new(GrammarStore::new(self.clone(), number, Arc::new(vocabulary)));
        stores.push(Arc::downgrade(&store));
        store
    }

    /// Bounds the tables of keys, and weighs the grammars that have grown since they were last weighed: a
    /// grammar that is not requested again would otherwise stay as large as it was when its last answer
    /// ended. Checking one takes some hundred nanoseconds.
    pub fn weigh_all(&self) {
        let is_due = |compiled: &Compiled| has_grown(compiled) || compiled.grammar.compacted().is_some();
        for (place, compiled, owner) in self.cache.matching(is_due) {
            self.weighed(&place, compiled, &owner);
        }
        for store in self.stores() {
            store.compilers.tidy();
        }
    }

    fn stores(&self) -> Vec<Arc<GrammarStore>> {
        let stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        stores.iter().filter_map(Weak::upgrade).collect()
    }

    /// Returns the gauges of the cache and of running compilations.
    pub fn now(&self) -> CompilerGauges {
        let (cache_bytes, cache_entries) = self.cache.totals();
        CompilerGauges {
            cache_bytes,
            cache_entries,
            evictions: self.cache.evicted(),
            running: self.compiling.running(),
        }
    }

    /// Returns the grammar, or its replacement if it has outgrown its bound; a grammar that has grown a lot
    /// is weighed again.
    fn weighed(&self, place: &Identity, mut compiled: Compiled, owner: &Owner) -> Compiled {
        if let Some(renewed) = compiled.grammar.compacted() {
            compiled.weight = u32::try_from(renewed.memory_usage()).unwrap_or(u32::MAX);
            compiled.grammar = renewed;
        } else if has_grown(&compiled) {
            compiled.weight = u32::try_from(compiled.grammar.memory_usage()).unwrap_or(u32::MAX);
        } else {
            return compiled;
        }
        self.keep(place, &compiled, owner);
        compiled
    }

    fn keep(&self, place: &Identity, compiled: &Compiled, owner: &Owner) {
        let source = u32::try_from(place.language.source_bytes()).unwrap_or(u32::MAX);
        let base = BASE_BYTES.saturating_add(source.saturating_mul(BYTES_PER_SOURCE_BYTE));
        let readers = compiled
            .readers
            .iter()
            .flatten()
            .map(ArgumentReader::memory_usage);
        let weight = u64::from(base.saturating_add(compiled.weight)) + readers.sum::<usize>() as u64;
        self.cache
            .insert(place.clone(), compiled.clone(), owner.clone(), weight);
    }
}

/// The compilers of one vocabulary, whose grammars are on the shelf.
pub struct GrammarStore {
    number: u64,
    vocabulary: Arc<Vocabulary>,
    compilers: Compilers,
    limits: Limits,
    shelf: Arc<Shelf>,
}

impl Drop for GrammarStore {
    /// Forgets the grammars: no model can use them any more.
    fn drop(&mut self) {
        self.shelf.cache.remove(|place| place.vocabulary == self.number);
    }
}

impl GrammarStore {
    fn new(shelf: Arc<Shelf>, number: u64, vocabulary: Arc<Vocabulary>) -> Self {
        let compiler = Compiler::new(vocabulary.clone());
        // Without the priming, schemas still compile, but more slowly.
        let primed = compiler.primed(&Options::for_generation()).unwrap_or(compiler);
        Self {
            number,
            vocabulary,
            compilers: Compilers::new(primed),
            limits: Limits::default(),
            shelf,
        }
    }

    /// Returns the shelf with the grammars of all vocabularies.
    pub fn shelf(&self) -> &Arc<Shelf> {
        &self.shelf
    }

    /// Returns the vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// Stores a constraint under its identity for the key of this requester, as long as there is room.
    pub fn register(&self, id: &str, constraint: Constraint, requester: &Requester) {
        let weight = constraint.source.bytes() + REGISTERED_BYTES;
        let (key, owner) = (requester.key.clone(), requester.owner.clone());
        self.shelf
            .registered
            .insert((key, id.to_owned()), constraint, owner, weight as u64);
    }

    /// Returns the constraint that was registered under this identity with the key of this requester.
    pub fn registered(&self, id: &str, requester: &Requester) -> Option<Constraint> {
        self.shelf.registered.get(&(requester.key.clone(), id.to_owned()))
    }

    /// Returns the key among whose grammars those of a request are; `None` for those that all share.
    fn key_of(&self, interest: &Interest) -> Owner {
        match self.shelf.is_shared.load(Relaxed) {
            true => None,
            false => interest.requester().key.clone(),
        }
    }

    /// Returns the grammar of a language; blocks while it compiles. Returns `None` if the interest was lost
    /// meanwhile.
    ///
    /// # Errors
    /// Fails if one of its constraints does not compile.
    pub fn get(
        &self,
        language: &Language,
        interest: &Interest,
        metrics: &Metrics,
    ) -> Option<Result<Compiled, Arc<Rejected>>> {
        let place = Identity {
            vocabulary: self.number,
            key: self.key_of(interest),
            language: language.clone(),
        };
        let shelf = &self.shelf;
        if let Some(compiled) = shelf.cache.get(&place) {
            metrics.grammar_hit();
            return Some(Ok(shelf.weighed(&place, compiled, interest.owner())));
        }
        shelf.compiling.run(&place, interest, |cancel| {
            // Another request may have inserted it since.
            if let Some(compiled) = shelf.cache.get(&place) {
                return Ok(compiled);
            }
            let limits = Limits {
                cancel,
                ..self.limits(interest)
            };
            let begun = Instant::now();
            let compiled = compile(language, &self.compilers.of(&place.key), &limits);
            let outcome = match &compiled {
                Ok(_) => CompileOutcome::Compiled,
                Err(rejected) if rejected.is_called_off() => CompileOutcome::CalledOff,
                Err(_) => CompileOutcome::Rejected,
            };
            metrics.grammar_compiled(language.kind(), begun.elapsed(), outcome);
            if let Ok(compiled) = &compiled {
                shelf.keep(&place, compiled, interest.owner());
            }
            compiled.map_err(Arc::new)
        })
    }

    /// Returns the limits of work for this request alone, which is cancelled with its interest.
    pub fn limits(&self, interest: &Interest) -> Limits {
        Limits {
            cancel: interest.cancel(),
            meter: self.shelf.memory.one_of(interest.owner()),
            ..self.limits.clone()
        }
    }

    /// Returns the estimated size in bytes of the cached grammars that this owner is charged for.
    pub fn charged(&self, owner: &Owner) -> u64 {
        self.shelf.cache.charged(owner)
    }
}

/// Returns `true` if a grammar takes much more memory than when it was weighed.
fn has_grown(compiled: &Compiled) -> bool {
    compiled.grammar.memory_usage() > 2 * compiled.weight as usize + BASE_BYTES as usize
}

/// Compiles a language without any cache.
///
/// # Errors
/// Fails if one of its constraints does not compile.
pub fn compile(language: &Language, compiler: &Compiler, limits: &Limits) -> Result<Compiled, Rejected> {
    let begun = Instant::now();
    let (cfg, findings) = lower_answer(language, compiler.vocabulary(), limits)?;
    let rejected = |error| Rejected {
        constraint: language.blamed(),
        error,
    };
    let grammar = Grammar::new(&cfg, compiler.tables(), limits).map_err(rejected)?;
    // Every request asks first how long the shortest answer is. Here, those who send the same constraint wait
    // for that together, and it is counted and called off with the rest. A limit that was reached is reported
    // to each of them.
    let measure = || grammar.try_min_completion(grammar.start());
    if lexiform::unless_cancelled(&limits.cancel, measure).is_none() {
        let message = "the compile was cancelled";
        return Err(rejected(
            Problem::new(ProblemKind::Cancelled, Place::Whole, message).into(),
        ));
    }
    Ok(Compiled {
        grammar,
        id: language.id().into(),
        findings: findings.into(),
        readers: readers(language, limits)?,
        micros: u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX),
        weight: 0,
    })
}

/// Returns the readers of the arguments of each tool.
fn readers(language: &Language, limits: &Limits) -> Result<Arc<[Option<ArgumentReader>]>, Rejected> {
    let tools = language.calls.iter().flat_map(|calls| &calls.tools);
    let reader = |tool: &Callable| {
        let Input::Arguments(constraint) = &tool.input else {
            return Ok(None);
        };
        match (&constraint.source, constraint.arguments) {
            (_, ArgumentStyle::Json) => Ok(None),
            (Source::Schema(text), style) => {
                match ArgumentReader::new(style, text, &schema_options(constraint), limits) {
                    Err(ArgumentError::Schema(error)) => Err(Rejected {
                        constraint: constraint.clone(),
                        error,
                    }),
                    reader => Ok(reader.ok()),
                }
            }
            _ => Ok(None),
        }
    };
    tools.map(reader).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammars::interest::InterestGuard;
    use lexiform::vocab::TokenKind;

    fn grammars(bytes: u64) -> GrammarStore {
        let tokens = ["<end>", "a", "b"].map(|text| (TokenKind::Text, text));
        let vocabulary = Arc::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary"));
        GrammarStore::new(Arc::new(Shelf::new(bytes)), 0, vocabulary)
    }

    fn language(pattern: String) -> Language {
        Language {
            content: Some(Constraint::new(Source::Regex(pattern), "guided_regex")),
            ..Language::default()
        }
    }

    /// Requests the grammar of this number, and returns `true` if it had to be compiled.
    fn get(grammars: &GrammarStore, number: usize, owner: Owner) -> bool {
        let language = language(format!("a{{{number}}}"));
        let (wanted, metrics) = (InterestGuard::by(owner), Metrics::new("m"));
        let place = Identity {
            vocabulary: 0,
            key: grammars.key_of(&wanted.interest()),
            language: language.clone(),
        };
        let known = grammars.shelf.cache.get(&place).is_some();
        let got = grammars.get(&language, &wanted.interest(), &metrics);
        assert!(got.is_some_and(|compiled| compiled.is_ok()), "{number}");
        !known
    }

    /// Guards against a cache of grammars that strangers fill: it is bounded by bytes, the oldest are
    /// evicted, and an evicted grammar is compiled again (the theme of cache exhaustion).
    #[test]
    fn strangers_cannot_fill_the_memory_with_grammars() {
        let bytes = 16 * u64::from(BASE_BYTES);
        let grammars = grammars(bytes);
        (1..200).for_each(|number| assert!(get(&grammars, number, None), "{number}"));
        let now = grammars.shelf.now();
        assert!(now.cache_bytes <= bytes && now.cache_entries < 16, "{now:?}");
        assert_eq!(now.evictions + now.cache_entries, 199);
        assert!(get(&grammars, 1, None));
    }

    /// Guards against a grammar that grows with every text that it reads: the next request uses its
    /// replacement, and so do running ones.
    #[test]
    fn a_grammar_that_has_outgrown_its_memory_is_replaced() {
        let mut grammars = grammars(1 << 24);
        grammars.limits.grammar_bytes = 1 << 16;
        let language = language("((a|b){1,90})*".to_owned());
        let get = || {
            let (wanted, metrics) = (InterestGuard::by(None), Metrics::new("m"));
            let got = grammars.get(&language, &wanted.interest(), &metrics);
            got.expect("somebody wants it").expect("it compiles").grammar
        };
        let (mut first, charged) = (get(), grammars.charged(&None));
        assert!(get().ptr_eq(&first));
        let mut state = first.start();
        for _ in 0..90 {
            state = first.step_bytes(state, b"a").expect("a text goes on");
        }
        let second = get();
        assert!(!second.ptr_eq(&first), "{} bytes", first.memory_usage());
        assert!(grammars.charged(&None) < charged + (1 << 16));
        assert!(first.compact(&mut [state]) && first.ptr_eq(&second));
        assert!(get().ptr_eq(&second));
    }

    /// Guards against memory that is kept by a grammar that is not requested again.
    #[test]
    fn a_grammar_that_grew_is_given_up_although_nobody_asks_for_it() {
        let mut grammars = grammars(1 << 24);
        grammars.limits.grammar_bytes = 1 << 16;
        let language = language("((a|b){1,90})*".to_owned());
        let (wanted, metrics) = (InterestGuard::by(None), Metrics::new("m"));
        let got = grammars.get(&language, &wanted.interest(), &metrics);
        let first = got.expect("somebody wants it").expect("it compiles").grammar;
        let mut state = first.start();
        for _ in 0..90 {
            state = first.step_bytes(state, b"a").expect("a text goes on");
        }
        grammars.shelf.weigh_all();
        let place = Identity {
            vocabulary: 0,
            key: None,
            language,
        };
        let kept = grammars.shelf.cache.get(&place).expect("it is kept").grammar;
        assert!(!kept.ptr_eq(&first) && kept.memory_usage() < first.memory_usage());
    }

    /// Guards against an API key that evicts the grammars of all others, compiled or registered.
    #[test]
    fn a_key_pushes_out_its_own_grammars_only() {
        let grammars = grammars(16 * u64::from(BASE_BYTES));
        let by = |key: &str| Requester {
            owner: Some(key.into()),
            key: Some(key.into()),
            ..Requester::default()
        };
        let (shop, flood) = (by("shop"), by("flood"));
        let registered = Constraint::new(Source::Regex("a".repeat(10_000)), "guided_regex");
        for number in 1..5 {
            assert!(get(&grammars, number, shop.key.clone()));
            grammars.register(&format!("shop {number}"), registered.clone(), &shop);
        }
        for number in 100..300 {
            assert!(get(&grammars, number, flood.key.clone()));
            grammars.register(&format!("flood {number}"), registered.clone(), &flood);
        }
        for number in 1..5 {
            assert!(!get(&grammars, number, shop.key.clone()), "{number}");
            assert!(
                grammars.registered(&format!("shop {number}"), &shop).is_some(),
                "{number}"
            );
        }
        let is_registered = |by: &Requester| grammars.registered("flood 299", by).is_some();
        assert!(grammars.registered("flood 100", &flood).is_none());
        assert!(is_registered(&flood) && !is_registered(&shop) && !is_registered(&Requester::default()));
    }

    /// Guards against a cache that tells a key, by the time of a compile, what another has sent.
    #[test]
    fn a_key_finds_the_grammars_of_others_only_if_they_are_shared() {
        let (one, other) = (Some("one".into()), Some("other".into()));
        let apart = grammars(1 << 24);
        assert!(get(&apart, 1, Owner::clone(&one)) && !get(&apart, 1, one.clone()));
        assert!(get(&apart, 1, other.clone()) && !get(&apart, 1, other.clone()));
        assert!(get(&apart, 1, None) && !get(&apart, 1, None));
        let shared = grammars(1 << 24);
        shared.shelf.share(true);
        assert!(get(&shared, 1, one) && !get(&shared, 1, other.clone()) && !get(&shared, 1, None));
        // Without keys, addresses share grammars, and are charged for them.
        let by = |address: &str| Requester {
            owner: Some(address.into()),
            key: None,
            ..Requester::default()
        };
        let at = |address: &str| {
            let wanted = InterestGuard::asked(by(address));
            let got = apart.get(&language("b".to_owned()), &wanted.interest(), &Metrics::new("m"));
            got.expect("somebody wants it").expect("it compiles").grammar
        };
        assert!(at("10.0.0.1").ptr_eq(&at("10.0.0.2")));
        assert!(apart.charged(&by("10.0.0.1").owner) > 0 && apart.charged(&by("10.0.0.2").owner) == 0);
    }

    /// Guards against two models that compile everything twice, and against grammars of one vocabulary that
    /// answer for another.
    #[test]
    fn equal_vocabularies_share_a_store_and_others_only_the_memory() {
        let shelf = Arc::new(Shelf::new(1 << 24));
        let store = |last: &str, eos: u32| {
            let tokens = ["<end>", "a", last].map(|text| (TokenKind::Text, text));
            shelf.store(Vocabulary::new(&tokens, &[eos]).expect("a vocabulary"))
        };
        let (first, same, other, ending) = (store("b", 0), store("b", 0), store("c", 0), store("b", 1));
        assert!(Arc::ptr_eq(&first, &same) && Arc::ptr_eq(first.vocabulary(), same.vocabulary()));
        assert!(!Arc::ptr_eq(&first, &other) && !Arc::ptr_eq(&first, &ending));
        let entries = || shelf.now().cache_entries;
        let compile = |store: &GrammarStore| {
            let wanted = InterestGuard::by(None);
            let got = store.get(&language("a".to_owned()), &wanted.interest(), &Metrics::new("m"));
            got.expect("somebody wants it").expect("it compiles")
        };
        let compiled = compile(&first);
        assert!(compile(&same).grammar.ptr_eq(&compiled.grammar) && entries() == 1);
        assert!(!compile(&other).grammar.ptr_eq(&compiled.grammar) && entries() == 2);
        // A registered constraint is of no vocabulary.
        let requester = Requester::default();
        first.register(
            "id",
            Constraint::new(Source::Regex("a".to_owned()), "guided_regex"),
            &requester,
        );
        assert!(other.registered("id", &requester).is_some());
        drop((first, other));
        assert_eq!(
            entries(),
            1,
            "the grammars of the vocabulary that nobody has are gone"
        );
        drop(same);
        assert_eq!(entries(), 0);
    }
}
