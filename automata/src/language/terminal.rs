//! A regular language as a byte automaton without dead ends.
//!
//! Each part of a [`Regular`] becomes a DFA. Their product is explored eagerly over classes of characters,
//! states from which no word can be completed are removed, and the result is spelled in bytes as a dense
//! table. A counted part is not unrolled: its unit is one more operand of the product, and each completed
//! unit increments a register that [`Counter`] judges.
//!
//! ```text
//!   parts:  Match(^a.*)   Units(char, ..=20)          cursor = (product state, units so far)
//!              DFA             DFA                        next(cursor, byte): one table look-up,
//!               └── product ────┘                          + 1 when a unit ends
//! ```

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::attributes::infinite::Infinite;
use super::attributes::lengths::Lengths;
use super::attributes::words_left::WordsLeft;
use super::build::build;
use super::byte_set::ByteSet;
use super::cache::Automata;
use super::counter::{Counter, Cursor};
use super::error::TerminalError;
use super::graph::DEAD;
use super::language_id::{LanguageId, language_ids};
use super::longest::Marked;
use super::minimise::Dfa;
use super::table::Named;
use crate::grammar::Regular;
use crate::limits::Limits;

/// A compiled regular language. Immutable; every cursor that it returns can be completed to a word.
#[derive(Debug)]
pub struct Terminal {
    pub(super) classes: Box<[u8; 256]>,
    pub(super) stride: usize,
    /// The transitions: `target * 2 + (1 if a unit ends)`, or `DEAD`.
    pub(super) next: Vec<u32>,
    pub(super) accepting: Vec<bool>,
    /// For each state, whether infinitely many words continue from it, ignoring counts.
    infinite: OnceLock<Infinite>,
    /// For each state with finitely many continuations, their number, ignoring counts.
    pub(super) words_left: OnceLock<WordsLeft>,
    pub(super) prefix_code: bool,
    pub(super) counter: Option<Counter>,
    /// The names of the states, shared with all languages that differ only in their bounds.
    named: Arc<Named>,
    /// The bytes that each state reads, and those of them after which infinitely many words continue.
    bytes_of: OnceLock<Box<[OnceLock<[ByteSet; 2]>]>>,
    /// The bytes that are read in states in which a word may end.
    after_words: OnceLock<ByteSet>,
    /// The characters that lead back to each state, as computed without the names of states and with them.
    loops: [OnceLock<Box<[OnceLock<u128>]>>; 2],
    /// The number of the terminal, for caches.
    number: u64,
    /// The hash of the terminal's structure, for caches that outlive the process.
    structure: u64,
    /// The states from which words of every sufficiently large number of units can be completed.
    endless: OnceLock<Box<[bool]>>,
    /// `true` if infinitely many words continue from everywhere but their ends.
    pub(super) endless_inside: OnceLock<bool>,
    /// The bytes with which all words begin and end.
    pub(super) edges: OnceLock<Option<(u8, u8)>>,
    /// The lengths of the shortest words.
    shortest: OnceLock<Arc<Lengths>>,
    /// For each state, the bytes that must not follow a word that ends there; `None` if all may.
    blocked: Option<Arc<[ByteSet]>>,
}

/// The continuations of a cursor, as far as a token can distinguish them: equal ids allow the same bytes,
/// whatever terminals they come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CursorId {
    language: LanguageId,
    /// The units missing to the lower bound, and in `left` those left to the upper one; both are zero if
    /// neither bound can be reached.
    missing: u64,
    left: u64,
}

/// The number of the next terminal.
static NEXT: AtomicU64 = AtomicU64::new(0);

impl Terminal {
    /// Returns `true` if no word is a prefix of another, so that a complete word never continues.
    pub fn is_prefix_code(&self) -> bool {
        self.prefix_code
    }

    /// Compiles the language. An empty language is an error.
    pub fn new(regular: &Regular, limits: &Limits) -> Result<Terminal, TerminalError> {
        Terminal::with(regular, &Automata::default(), limits)
    }

    /// Compiles the language, reusing automata that are already known.
    pub fn with(regular: &Regular, automata: &Automata, limits: &Limits) -> Result<Terminal, TerminalError> {
        let (table, bounds) = build(regular, automata, limits)?;
        let counter = match (&table.units, bounds) {
            (Some(units), Some((min, max))) => Some(Counter::new(units, min, max, limits)?),
            _ => None,
        };
        let terminal = Terminal {
            prefix_code: table.prefix_code,
            classes: table.classes,
            stride: table.stride,
            next: table.next,
            accepting: table.accepting,
            named: table.named,
            infinite: OnceLock::new(),
            words_left: OnceLock::new(),
            counter,
            bytes_of: OnceLock::new(),
            after_words: OnceLock::new(),
            loops: Default::default(),
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            structure: regular.structure_hash(),
            endless: OnceLock::new(),
            endless_inside: OnceLock::new(),
            edges: OnceLock::new(),
            shortest: OnceLock::new(),
            blocked: table.blocked,
        };
        let start = terminal.start();
        if terminal.alive(start.state, start.count) {
            Ok(terminal)
        } else {
            Err(TerminalError::Empty)
        }
    }

    /// Returns the cursor at which every run begins.
    pub fn start(&self) -> Cursor {
        Cursor { state: 0, count: 0 }
    }

    /// Returns the cursor after one more byte, or `None` if no word continues with it.
    #[inline]
    pub fn next(&self, cursor: Cursor, byte: u8) -> Option<Cursor> {
        let packed = self.next[cursor.state as usize * self.stride + self.classes[byte as usize] as usize];
        if packed == DEAD {
            return None;
        }
        let state = packed >> 1;
        let Some(counter) = &self.counter else {
            return Some(Cursor { state, count: 0 });
        };
        let count = counter.clamp(cursor.count + u64::from(packed & 1));
        counter.alive(state, count).then_some(Cursor { state, count })
    }

    /// Returns `true` if the bytes so far are a word.
    #[inline]
    pub fn is_accepting(&self, cursor: Cursor) -> bool {
        self.accepting[cursor.state as usize]
            && self.counter.as_ref().is_none_or(|c| c.in_range(cursor.count))
    }

    /// Returns the bytes that must not follow a word that ends in a state; `None` if all may.
    #[inline]
    pub(crate) fn blocked(&self, state: u32) -> Option<&ByteSet> {
        let blocked = self.blocked.as_ref()?.get(state as usize)?;
        (!blocked.is_empty()).then_some(blocked)
    }

    /// Returns `true` if some words must not be followed by some bytes.
    pub(crate) fn blocks(&self) -> bool {
        self.blocked.is_some()
    }

    /// Returns `true` if a word may end in a state and be followed by a byte of what comes after it.
    #[inline]
    pub(crate) fn ends_before(&self, state: u32, byte: u8) -> bool {
        self.accepting[state as usize] && self.blocked(state).is_none_or(|blocked| !blocked.contains(byte))
    }

    /// Returns `true` if infinitely many words continue from here.
    pub fn is_infinite(&self, cursor: Cursor) -> bool {
        let infinite = self.infinite.get_or_init(|| Infinite::new(self.len()));
        infinite.holds(cursor.state, &self.next, self.stride)
            && self.counter.as_ref().is_none_or(Counter::is_unbounded)
    }

    /// Returns `true` if no byte can be read here.
    pub fn is_stuck(&self, cursor: Cursor) -> bool {
        (0..=255).all(|byte| self.next(cursor, byte).is_none())
    }

    /// Returns the bytes that the tables take.
    pub fn bytes(&self) -> usize {
        512 + self.next.len() * 4 + self.accepting.len() * 2 + self.counter.as_ref().map_or(0, Counter::bytes)
    }

    /// Returns `true` if these bytes, read from the cursor on, complete a word.
    pub fn matches_from(&self, cursor: Cursor, bytes: &[u8]) -> bool {
        let end = bytes
            .iter()
            .try_fold(cursor, |cursor, &byte| self.next(cursor, byte));
        end.is_some_and(|cursor| self.is_accepting(cursor))
    }

    /// Adds the bytes that the cursor can read. Near bounds, some of them may lead nowhere.
    pub(crate) fn add_bytes(&self, cursor: Cursor, bytes: &mut ByteSet) {
        bytes.unite(&self.bytes_of(cursor.state)[0]);
    }

    /// Returns the bytes that a state reads, and those of them after which infinitely many words continue,
    /// ignoring bounds.
    pub(crate) fn bytes_of(&self, state: u32) -> &[ByteSet; 2] {
        let known = self
            .bytes_of
            .get_or_init(|| vec![OnceLock::new(); self.len()].into());
        known[state as usize].get_or_init(|| {
            let mut sets = [ByteSet::default(); 2];
            for byte in 0..=255 {
                let Some(state) = self.next_state(state, byte) else {
                    continue;
                };
                sets[0].insert_range(byte, byte);
                if self.is_infinite(Cursor { state, count: 0 }) {
                    sets[1].insert_range(byte, byte);
                }
            }
            sets
        })
    }

    /// Returns the bytes that may follow some word so that the result begins another word.
    pub(crate) fn bytes_after_words(&self) -> &ByteSet {
        self.after_words.get_or_init(|| {
            let mut bytes = ByteSet::default();
            for state in (0..self.len() as u32).filter(|&state| self.is_accepting_state(state)) {
                bytes.unite(&self.bytes_of(state)[0]);
            }
            bytes
        })
    }

    /// Returns the characters that lead back to a state, as `find` computes them on the first call with names
    /// or without.
    #[inline]
    pub(crate) fn loops(&self, state: u32, find: impl FnOnce(Option<&[LanguageId]>) -> u128) -> u128 {
        let names = self.named.names[0].get().map(|names| &names[..]);
        let known =
            self.loops[usize::from(names.is_some())].get_or_init(|| vec![OnceLock::new(); self.len()].into());
        *known[state as usize].get_or_init(|| find(names))
    }

    /// Returns the lengths of the shortest words, as `find` computes them on the first call.
    pub(super) fn shortest_words(&self, find: impl FnOnce() -> Lengths) -> Arc<Lengths> {
        self.shortest.get_or_init(|| Arc::new(find())).clone()
    }

    /// Returns a number that no other terminal of this process has.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns a hash of the expressions of the terminal, the same in every process. Terminals of equal
    /// expressions have the same states.
    pub(crate) fn structure(&self) -> u64 {
        self.structure
    }

    /// Returns a number shared only by terminals that have the same states and steps and differ only in their
    /// bounds.
    pub(crate) fn table_number(&self) -> u64 {
        self.named.number
    }

    /// Returns the cursor in `state`, reached by more bytes that complete this many units; `None` if no word
    /// within the bounds continues from there.
    pub(crate) fn after_units(&self, cursor: Cursor, state: u32, units: u64) -> Option<Cursor> {
        let count = match &self.counter {
            Some(counter) => counter.clamp(cursor.count + units),
            None => 0,
        };
        self.alive(state, count).then_some(Cursor { state, count })
    }

    /// Returns the id of the continuations of the cursor within `horizon` more bytes.
    pub(crate) fn cursor_id(&self, cursor: Cursor, horizon: u64) -> CursorId {
        let felt = self
            .counter
            .as_ref()
            .and_then(|c| c.horizon(cursor.count, horizon));
        let (missing, left) = felt.unwrap_or((0, 0));
        CursorId {
            language: self.language_ids(felt.is_some())[cursor.state as usize],
            missing,
            left,
        }
    }

    /// Returns `true` if the bounds of the counter cannot be reached within `horizon` more bytes, so that the
    /// state alone determines the continuations.
    pub(crate) fn is_plain(&self, cursor: Cursor, horizon: u64) -> bool {
        let counter = self.counter.as_ref();
        counter.is_none_or(|counter| counter.horizon(cursor.count, horizon).is_none())
    }

    /// Returns the language id of each state; with `units`, the id also depends on where units end.
    pub(crate) fn language_ids(&self, units: bool) -> &[LanguageId] {
        self.named.names[usize::from(units)].get_or_init(|| {
            let automaton = Dfa {
                classes: &self.classes,
                stride: self.stride,
                next: &self.next,
                accepting: &self.accepting,
                units,
            };
            match &self.blocked {
                None => language_ids(&automaton),
                Some(blocked) => Marked::new(&automaton, blocked).language_ids(),
            }
        })
    }

    /// Returns `true` if the names of the states, ignoring units, are known.
    pub(crate) fn has_language_ids(&self) -> bool {
        self.named.names[0].get().is_some()
    }

    /// Returns `true` if two bytes lead to the same state from everywhere.
    #[inline]
    pub(crate) fn are_alike(&self, one: u8, other: u8) -> bool {
        self.classes[one as usize] == self.classes[other as usize]
    }

    /// Returns the state after a byte, ignoring bounds.
    #[inline]
    pub(crate) fn next_state(&self, state: u32, byte: u8) -> Option<u32> {
        let packed = self.next[state as usize * self.stride + self.classes[byte as usize] as usize];
        (packed != DEAD).then_some(packed >> 1)
    }

    /// Returns the state after a byte and whether a unit ended, ignoring bounds.
    #[inline]
    pub(crate) fn next_unit(&self, state: u32, byte: u8) -> Option<(u32, bool)> {
        let packed = self.next[state as usize * self.stride + self.classes[byte as usize] as usize];
        (packed != DEAD).then_some((packed >> 1, packed & 1 == 1))
    }

    /// Returns one of these bytes for each class of bytes that lead to the same state from everywhere.
    pub(crate) fn kinds_of(&self, mut bytes: ByteSet) -> Vec<u8> {
        let mut seen = [false; 256];
        let bytes = std::iter::from_fn(|| bytes.pop());
        bytes
            .filter(|&byte| !std::mem::replace(&mut seen[usize::from(self.classes[usize::from(byte)])], true))
            .collect()
    }

    /// Returns `true` if a word within the bounds can be completed from a state of this language after
    /// `count` units.
    pub(crate) fn is_alive_at(&self, language: LanguageId, count: u64) -> bool {
        let states = self.named.states.get_or_init(|| {
            let names = self.language_ids(true).iter();
            names.zip(0u32..).map(|(&name, state)| (name, state)).collect()
        });
        let state = states.get(&language);
        state.is_some_and(|&state| self.alive(state, count))
    }

    /// Returns the number of units left to the upper bound, if there is one.
    pub(crate) fn units_left(&self, count: u64) -> Option<u64> {
        let (_, max) = self.bounds()?;
        Some(max?.saturating_sub(count))
    }

    /// Returns `true` if units are counted and have only an upper bound.
    pub(crate) fn has_only_an_upper_bound(&self) -> bool {
        matches!(self.bounds(), Some((0, Some(_))))
    }

    /// Returns the smallest number of units with which a word is completed from a state.
    #[inline]
    pub(crate) fn least_units(&self, state: u32) -> u64 {
        self.counter.as_ref().map_or(0, |counter| counter.least(state))
    }

    /// Returns `true` if a state is known to complete words with [the least number of
    /// units](Self::least_units) and with every larger one: some byte is a unit and leads back to it, or it
    /// leads to such a state on a shortest path to the end. This is a property of its language alone.
    #[inline]
    pub(crate) fn is_endless(&self, state: u32) -> bool {
        self.endless.get_or_init(|| self.find_endless())[state as usize]
    }

    fn find_endless(&self) -> Box<[bool]> {
        let targets = |state: u32| {
            let row = state as usize * self.stride;
            let targets = self.next[row..row + self.stride].iter();
            targets
                .filter(|&&packed| packed != DEAD)
                .map(|&packed| (packed >> 1, packed & 1))
        };
        // For each state, the states that it follows on a shortest path to the end.
        let mut before: Vec<Vec<u32>> = vec![Vec::new(); self.len()];
        let mut endless = vec![false; self.len()];
        let mut open = Vec::new();
        for state in 0..self.len() as u32 {
            for (to, unit) in targets(state) {
                if (to, unit) == (state, 1) {
                    open.push(state);
                } else if self.least_units(state) == self.least_units(to) + u64::from(unit) {
                    before[to as usize].push(state);
                }
            }
        }
        while let Some(state) = open.pop() {
            if !std::mem::replace(&mut endless[state as usize], true) {
                open.extend_from_slice(&before[state as usize]);
            }
        }
        endless.into()
    }

    /// Returns `true` if units are counted.
    pub(crate) fn is_counted(&self) -> bool {
        self.counter.is_some()
    }

    /// Returns `true` if a word of `count` units is within the bounds.
    pub(crate) fn is_in_range(&self, count: u64) -> bool {
        self.counter
            .as_ref()
            .is_none_or(|counter| counter.in_range(count))
    }

    /// Returns the smallest and the largest number of units of a word, if units are counted.
    pub(crate) fn bounds(&self) -> Option<(u64, Option<u64>)> {
        self.counter.as_ref().map(Counter::bounds)
    }

    /// Returns `true` if a word may end in the state, ignoring bounds.
    #[inline]
    pub(crate) fn is_accepting_state(&self, state: u32) -> bool {
        self.accepting[state as usize]
    }

    /// Returns the number of states.
    pub fn len(&self) -> usize {
        self.accepting.len()
    }

    /// Returns `false`: a compiled terminal has at least one state.
    pub fn is_empty(&self) -> bool {
        self.accepting.is_empty()
    }

    fn alive(&self, state: u32, count: u64) -> bool {
        self.counter
            .as_ref()
            .is_none_or(|counter| counter.alive(state, count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::{Expression, Part};

    fn hir(pattern: &str) -> Expression {
        let parsed = regex_syntax::parse(pattern);
        parsed.expect("the test's pattern is well formed").into()
    }

    fn terminal(parts: Vec<Part>) -> Result<Terminal, TerminalError> {
        Terminal::new(&Regular::of(parts), &Limits::default())
    }

    fn matches(terminal: &Terminal, text: &str) -> bool {
        let mut cursor = terminal.start();
        for byte in text.bytes() {
            match terminal.next(cursor, byte) {
                Some(next) => cursor = next,
                None => return false,
            }
        }
        terminal.is_accepting(cursor)
    }

    #[test]
    fn an_intersection_has_no_dead_ends() {
        let both = terminal(vec![Part::Match(hir("[ab]*")), Part::Not(hir("a*"))]).unwrap();
        assert!(matches(&both, "ab") && !matches(&both, "aa") && !matches(&both, "c"));
        let none = terminal(vec![Part::Match(hir("a+")), Part::Not(hir("a*"))]);
        assert_eq!(none.unwrap_err(), TerminalError::Empty);
    }

    #[test]
    fn a_language_of_one_expression_keeps_to_the_limits_too() {
        let limits = Limits {
            regular_states: 20,
            ..Limits::default()
        };
        // A set of words, and an expression that is not one.
        for pattern in ["abcdefghijklmnopqrstuvwxyz", "[a-z]{26}x*"] {
            let parts = vec![Part::Match(hir(pattern))];
            let refused = Terminal::new(&Regular::of(parts), &limits);
            let expected = TerminalError::Limit {
                what: "states",
                limit: 20,
            };
            assert_eq!(refused.unwrap_err(), expected, "{pattern}");
        }
        let wide: Vec<String> = ('\u{100}'..'\u{180}').map(|c| format!("{c}{c}{c}x{c}")).collect();
        let limits = Limits {
            regular_bytes: 16_000,
            ..Limits::default()
        };
        let parts = vec![Part::Match(hir(&wide.join("|")))];
        let refused = Terminal::new(&Regular::of(parts), &limits);
        assert!(
            matches!(refused, Err(TerminalError::Limit { .. })),
            "many letters in many states"
        );
    }

    #[test]
    fn units_are_counted_in_characters_and_not_unrolled() {
        let unit = hir("a|ab");
        let wrong = terminal(vec![Part::Units {
            unit,
            min: 0,
            max: Some(3),
        }]);
        assert!(
            matches!(wrong, Err(TerminalError::Units(_))),
            "a begins ab, so this is no prefix code"
        );
        let unit = hir("[a-zé]");
        let counted = terminal(vec![Part::Units {
            unit,
            min: 2,
            max: Some(1_000_000_000),
        }])
        .unwrap();
        assert!(counted.len() < 8);
        assert!(matches(&counted, "éé") && !matches(&counted, "é"));
    }

    #[test]
    fn a_language_is_endless_inside_where_only_its_ends_are_finite() {
        let patterns = [
            "'[a-z]*'",
            "'[a-z]*",
            "'[a-z]+'|'1'",
            "'([a-z]|1{3})*'",
            "a*b|cd",
            "'([a-z]*|12)'",
            "ab",
            "a+",
        ];
        let found = patterns.map(|pattern| {
            let terminal = terminal(vec![Part::Match(hir(pattern))]).expect("it compiles");
            let inside = (0..terminal.len() as u32).filter(|&state| !terminal.is_accepting_state(state));
            let slowly = terminal.is_prefix_code() && { inside }
                .all(|state| terminal.is_infinite(Cursor { state, count: 0 }));
            assert_eq!(terminal.is_endless_inside(), slowly, "{pattern}");
            slowly
        });
        assert_eq!(found, [true, false, false, true, false, false, false, false]);
    }

    #[test]
    fn a_count_and_a_pattern_leave_no_dead_end() {
        let even = Part::Match(hir("(aa)*b?"));
        let counted = terminal(vec![
            even,
            Part::Units {
                unit: hir("[ab]"),
                min: 3,
                max: Some(3),
            },
        ])
        .unwrap();
        assert!(matches(&counted, "aab") && !matches(&counted, "aaa"));
        let start = counted.start();
        let a = counted.next(start, b'a').unwrap();
        let aa = counted.next(a, b'a').unwrap();
        assert!(
            counted.next(start, b'b').is_none(),
            "b alone could never reach three"
        );
        assert!(counted.next(aa, b'a').is_none(), "aaa could only become aaaa");
    }
}
