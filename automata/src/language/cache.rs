//! Shares automata among the compiles of a process.
//!
//! The same few expressions (a JSON string, a number) occur in nearly every schema, and building one takes
//! longer than much of the work for a small schema, so automata are cached by the structure of their
//! expressions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::DashMap;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::characters::{Alphabet, Automaton, Failure, Room};
use super::error::TerminalError;
use super::table::Table;
use crate::grammar::{Expression, Regular};
use crate::limits::Limits;

/// A cache of automata. When it exceeds a bound, all but those of the base are dropped.
#[derive(Debug, Default)]
pub struct Automata {
    base: Arc<FxHashMap<u64, Known>>,
    found: DashMap<u64, Known, FxBuildHasher>,
    bytes: AtomicUsize,
}

/// The entries with the same hash.
#[derive(Clone, Debug, Default)]
struct Known {
    /// The automata of expressions. Failures over characters are cached too.
    automata: Vec<(Expression, Alphabet, Result<Arc<Automaton>, Failure>)>,
    /// The tables of counted languages, ignoring their bounds, and of the words of lexers.
    tables: Vec<(Regular, Table)>,
}

/// The maximum number of bytes of automata beyond the base.
const BOUND: usize = 16 << 20;

impl Automata {
    /// Returns the automaton of an expression over an alphabet.
    pub(super) fn get(
        &self,
        expression: &Expression,
        alphabet: Alphabet,
        limits: &Limits,
    ) -> Result<Arc<Automaton>, Failure> {
        let hash = expression.structure_hash();
        let find = |known: &Known| {
            let mut same = known
                .automata
                .iter()
                .filter(|known| known.1 == alphabet && known.0 == *expression);
            same.next().map(|(.., found)| found.clone())
        };
        if let Some(known) = self.base.get(&hash).and_then(find) {
            return known;
        }
        if let Some(known) = self.found.get(&hash).and_then(|known| find(&known)) {
            return known;
        }
        let room = Room {
            bytes: limits.regular_bytes,
            cancel: &limits.cancel,
        };
        let found = Automaton::new(expression, alphabet, room).map(Arc::new);
        if matches!(found, Err(Failure::Limit | Failure::Look)) {
            return found;
        }
        self.grow(found.as_ref().map_or(0, |automaton| automaton.bytes()));
        let mut known = self.found.entry(hash).or_default();
        known.automata.push((expression.clone(), alphabet, found.clone()));
        found
    }

    /// Returns the table of a counted language, ignoring its bounds, or of the words of a lexer.
    pub(super) fn spelled(
        &self,
        regular: &Regular,
        build: impl FnOnce() -> Result<Table, TerminalError>,
    ) -> Result<Table, TerminalError> {
        let hash = regular.structure_hash();
        let find = |known: &Known| {
            let mut same = known.tables.iter().filter(|known| known.0 == *regular);
            same.next().map(|(_, table)| table.clone())
        };
        if let Some(known) = self.base.get(&hash).and_then(find) {
            return Ok(known);
        }
        if let Some(known) = self.found.get(&hash).and_then(|known| find(&known)) {
            return Ok(known);
        }
        let table = build()?;
        self.grow(table.bytes());
        let mut known = self.found.entry(hash).or_default();
        known.tables.push((regular.clone(), table.clone()));
        Ok(table)
    }

    /// Counts this many more bytes, and drops everything beyond the base if the bound is exceeded.
    fn grow(&self, bytes: usize) {
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > BOUND {
            self.found.clear();
            self.bytes.store(bytes, Ordering::Relaxed);
        }
    }

    /// Returns the bytes of the automata beyond the base.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Drops all automata beyond the base.
    pub(crate) fn forget(&self) {
        self.found.clear();
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// Returns a cache with the same base and nothing else.
    pub(crate) fn fresh(&self) -> Automata {
        Automata {
            base: self.base.clone(),
            ..Automata::default()
        }
    }

    /// Returns a cache whose base holds everything cached so far.
    pub(crate) fn primed(&self) -> Automata {
        let mut base = (*self.base).clone();
        for known in &self.found {
            let all: &mut Known = base.entry(*known.key()).or_default();
            all.automata.extend(known.automata.iter().cloned());
            all.tables.extend(known.tables.iter().cloned());
        }
        Automata {
            base: Arc::new(base),
            ..Automata::default()
        }
    }
}
