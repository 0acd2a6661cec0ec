//! Determinised regular expressions, shared.
//!
//! regex-automata builds them. The same few expressions stand in nearly every schema (a JSON string, a number), and
//! building one takes longer than all else that is done for a small schema, so they are kept by their structure.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::DashMap;
use regex_automata::dfa::{Automaton as _, StartKind, dense};
use regex_automata::util::primitives::StateID;
use regex_automata::util::start;
use regex_automata::{Anchored, MatchKind, nfa::thompson};
use regex_syntax::hir::Hir;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::terminal::TerminalError;
use crate::grammar::structure_hash;
use crate::limits::Limits;

/// A complete automaton over bytes. States are plain numbers.
#[derive(Debug)]
pub(super) struct Automaton {
    dfa: dense::DFA<Vec<u32>>,
    pub(super) start: u32,
}

impl Automaton {
    fn new(hir: &Hir, limits: &Limits) -> Result<Automaton, TerminalError> {
        if !hir.properties().look_set().is_empty() {
            return Err(TerminalError::Look);
        }
        let dfa = determinise(hir, limits).ok_or(TerminalError::Limit {
            what: "bytes of automaton",
            limit: limits.regular_bytes,
        })?;
        let anchored = start::Config::new().anchored(Anchored::Yes);
        let start = dfa.start_state(&anchored);
        let start = start.expect("an anchored DFA without look-around has an anchored start");
        Ok(Automaton {
            dfa,
            start: start.as_u32(),
        })
    }

    pub(super) fn next(&self, state: u32, byte: u8) -> u32 {
        self.dfa.next_state(id(state), byte).as_u32()
    }

    pub(super) fn is_dead(&self, state: u32) -> bool {
        self.dfa.is_dead_state(id(state))
    }

    pub(super) fn accepts(&self, state: u32) -> bool {
        self.dfa.is_match_state(self.dfa.next_eoi_state(id(state)))
    }

    pub(super) fn class(&self, byte: u8) -> u8 {
        self.dfa.byte_classes().get(byte)
    }
}

fn id(state: u32) -> StateID {
    StateID::new_unchecked(state as usize)
}

fn determinise(hir: &Hir, limits: &Limits) -> Option<dense::DFA<Vec<u32>>> {
    let config = thompson::Config::new()
        .utf8(false)
        .which_captures(thompson::WhichCaptures::None)
        .nfa_size_limit(Some(limits.regular_bytes));
    let nfa = thompson::Compiler::new()
        .configure(config)
        .build_from_hir(hir)
        .ok()?;
    let config = dense::Config::new()
        .start_kind(StartKind::Anchored)
        // All matches, not the leftmost-first one: a word belongs to the language however it is matched.
        .match_kind(MatchKind::All)
        .accelerate(false)
        .dfa_size_limit(Some(limits.regular_bytes))
        .determinize_size_limit(Some(limits.regular_bytes));
    dense::Builder::new().configure(config).build_from_nfa(&nfa).ok()
}

/// The automata that were built so far. Dropped when they pass a bound, but for those of the base.
#[derive(Debug, Default)]
pub struct Automata {
    base: Arc<FxHashMap<u64, Known>>,
    found: DashMap<u64, Known, FxBuildHasher>,
    bytes: AtomicUsize,
}

/// Expressions of the same hash.
type Known = Vec<(Hir, Arc<Automaton>)>;

/// The memory for automata beyond the base.
const BOUND: usize = 16 << 20;

impl Automata {
    /// The automaton of an expression.
    pub(super) fn get(&self, hir: &Hir, limits: &Limits) -> Result<Arc<Automaton>, TerminalError> {
        let hash = structure_hash(hir);
        let find = |known: &Known| {
            let mut same = known.iter().filter(|(known, _)| known == hir);
            same.next().map(|(_, automaton)| automaton.clone())
        };
        if let Some(known) = self.base.get(&hash).and_then(find) {
            return Ok(known);
        }
        if let Some(known) = self.found.get(&hash).and_then(|known| find(&known)) {
            return Ok(known);
        }
        let automaton = Arc::new(Automaton::new(hir, limits)?);
        let bytes = automaton.dfa.memory_usage();
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > BOUND {
            self.found.clear();
            self.bytes.store(bytes, Ordering::Relaxed);
        }
        let mut known = self.found.entry(hash).or_default();
        known.push((hir.clone(), automaton.clone()));
        Ok(automaton)
    }

    /// The same base, and nothing found since.
    pub(crate) fn fresh(&self) -> Automata {
        Automata {
            base: self.base.clone(),
            ..Automata::default()
        }
    }

    /// A base of everything that was found.
    pub(crate) fn primed(&self) -> Automata {
        let mut base = (*self.base).clone();
        for known in &self.found {
            base.entry(*known.key())
                .or_default()
                .extend(known.value().clone());
        }
        Automata {
            base: Arc::new(base),
            ..Automata::default()
        }
    }
}
