//! One regular language as a byte automaton without dead ends.
//!
//! The parts of a [`Regular`] become one DFA each; their product is explored eagerly over classes of
//! characters, states from which no word can be completed are cut away, and what is left is spelled in bytes,
//! as a dense table. A counted part is not unrolled: its unit runs as one more operand of the product, and
//! each completed unit adds one to a register that [`Counter`] judges.
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
use super::identity::{LanguageId, language_ids};
use super::minimise::Dfa;
use super::table::Named;
use crate::grammar::Regular;
use crate::limits::Limits;

/// A compiled regular language. Immutable; every cursor that it hands out can be completed to a word.
#[derive(Debug)]
pub struct Terminal {
    pub(super) classes: Box<[u8; 256]>,
    pub(super) stride: usize,
    /// `target * 2 + (1 if a unit ends)`, or `DEAD`.
    pub(super) next: Vec<u32>,
    pub(super) accepting: Vec<bool>,
    /// Whether infinitely many words go on from each state, counts left aside.
    infinite: OnceLock<Infinite>,
    /// How many words go on from each state where these are not infinitely many, counts left aside.
    pub(super) words_left: OnceLock<WordsLeft>,
    pub(super) prefix_code: bool,
    pub(super) counter: Option<Counter>,
    /// The names of the states, shared with all languages that differ in their bounds alone.
    named: Arc<Named>,
    /// The bytes that each state takes, and those of them after which words go on without end.
    bytes_of: OnceLock<Box<[OnceLock<[ByteSet; 2]>]>>,
    /// The bytes that some state takes in which a word may end.
    behind_words: OnceLock<ByteSet>,
    /// The characters that lead back to each state, as who walks the terminal has found them without the
    /// names of states and with them.
    loops: [OnceLock<Box<[OnceLock<u128>]>>; 2],
    /// What those who keep something about the terminal know it by.
    number: u64,
    /// What those know it by who keep it longer than the process.
    structure: u64,
    /// The states from which words of any number of units can be completed that is not too small.
    endless: OnceLock<Box<[bool]>>,
    /// Whether infinitely many words go on from everywhere but their ends.
    pub(super) endless_inside: OnceLock<bool>,
    /// The bytes with which all words begin and end.
    pub(super) edges: OnceLock<Option<(u8, u8)>>,
    /// How long the shortest words are.
    shortest: OnceLock<Arc<Lengths>>,
}

/// What can follow a cursor, as far as a token can tell: equal identities allow the same bytes, whatever
/// terminals they come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    language: LanguageId,
    /// Units missing to the lower and left to the upper bound; zero and zero where neither can be felt.
    missing: u64,
    left: u64,
}

/// The number of the next terminal.
static NEXT: AtomicU64 = AtomicU64::new(0);

impl Terminal {
    /// Whether a complete word never goes on: no word begins with another.
    pub fn is_prefix_code(&self) -> bool {
        self.prefix_code
    }

    /// Compiles the language; an empty one is an error.
    pub fn new(regular: &Regular, limits: &Limits) -> Result<Terminal, TerminalError> {
        Terminal::with(regular, &Automata::default(), limits)
    }

    /// The same; automata that are known already are not built again.
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
            behind_words: OnceLock::new(),
            loops: Default::default(),
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            structure: regular.structure_hash(),
            endless: OnceLock::new(),
            endless_inside: OnceLock::new(),
            edges: OnceLock::new(),
            shortest: OnceLock::new(),
        };
        let start = terminal.start();
        if terminal.alive(start.state, start.count) {
            Ok(terminal)
        } else {
            Err(TerminalError::Empty)
        }
    }

    /// Where every run begins.
    pub fn start(&self) -> Cursor {
        Cursor { state: 0, count: 0 }
    }

    /// The cursor after one more byte, or `None` if no word goes on with it.
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

    /// Whether the bytes so far are a word.
    #[inline]
    pub fn is_accepting(&self, cursor: Cursor) -> bool {
        self.accepting[cursor.state as usize]
            && self.counter.as_ref().is_none_or(|c| c.in_range(cursor.count))
    }

    /// Whether infinitely many words go on from here.
    pub fn is_infinite(&self, cursor: Cursor) -> bool {
        let infinite = self.infinite.get_or_init(|| Infinite::new(self.len()));
        infinite.holds(cursor.state, &self.next, self.stride)
            && self.counter.as_ref().is_none_or(Counter::is_unbounded)
    }

    /// Whether no byte goes on from here.
    pub fn is_stuck(&self, cursor: Cursor) -> bool {
        (0..=255).all(|byte| self.next(cursor, byte).is_none())
    }

    /// The memory that the tables take, in bytes.
    pub fn bytes(&self) -> usize {
        512 + self.next.len() * 4 + self.accepting.len() * 2 + self.counter.as_ref().map_or(0, Counter::bytes)
    }

    /// Whether these bytes, read from the cursor on, complete a word.
    pub fn matches_from(&self, cursor: Cursor, bytes: &[u8]) -> bool {
        let end = bytes
            .iter()
            .try_fold(cursor, |cursor, &byte| self.next(cursor, byte));
        end.is_some_and(|cursor| self.is_accepting(cursor))
    }

    /// Adds the bytes that the cursor can take; with bounds some of them may turn out to lead nowhere.
    pub(crate) fn add_bytes(&self, cursor: Cursor, bytes: &mut ByteSet) {
        bytes.unite(&self.bytes_of(cursor.state)[0]);
    }

    /// The bytes that a state takes, and those of them after which words go on without end, bounds left
    /// aside.
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

    /// The bytes that may come after some word, to make it another one.
    pub(crate) fn bytes_behind_words(&self) -> &ByteSet {
        self.behind_words.get_or_init(|| {
            let mut bytes = ByteSet::default();
            for state in (0..self.len() as u32).filter(|&state| self.is_accepting_state(state)) {
                bytes.unite(&self.bytes_of(state)[0]);
            }
            bytes
        })
    }

    /// The characters that lead back to a state: what `find` found when it was asked first, with names or
    /// without.
    #[inline]
    pub(crate) fn loops(&self, state: u32, find: impl FnOnce(Option<&[LanguageId]>) -> u128) -> u128 {
        let names = self.named.names[0].get().map(|names| &names[..]);
        let known =
            self.loops[usize::from(names.is_some())].get_or_init(|| vec![OnceLock::new(); self.len()].into());
        *known[state as usize].get_or_init(|| find(names))
    }

    /// How long the shortest words are, as was found when it was asked first.
    pub(super) fn shortest_words(&self, find: impl FnOnce() -> Lengths) -> Arc<Lengths> {
        self.shortest.get_or_init(|| Arc::new(find())).clone()
    }

    /// A number that no other terminal of this process has.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// A hash of the expressions that it was made of, the same in every process. Terminals of equal ones have
    /// the same states.
    pub(crate) fn structure(&self) -> u64 {
        self.structure
    }

    /// A number that only those terminals share that have the same states and steps: they differ in their
    /// bounds alone.
    pub(crate) fn table_number(&self) -> u64 {
        self.named.number
    }

    /// The cursor in a state that more bytes lead to, which end this many units; `None` if no word within the
    /// bounds goes on from there.
    pub(crate) fn after_units(&self, cursor: Cursor, state: u32, units: u64) -> Option<Cursor> {
        let count = match &self.counter {
            Some(counter) => counter.clamp(cursor.count + units),
            None => 0,
        };
        self.alive(state, count).then_some(Cursor { state, count })
    }

    /// What can follow the cursor within `horizon` more bytes.
    pub(crate) fn identity(&self, cursor: Cursor, horizon: u64) -> Identity {
        let felt = self
            .counter
            .as_ref()
            .and_then(|c| c.horizon(cursor.count, horizon));
        let (missing, left) = felt.unwrap_or((0, 0));
        Identity {
            language: self.language_ids(felt.is_some())[cursor.state as usize],
            missing,
            left,
        }
    }

    /// Whether the bounds of the counter cannot be felt within `horizon` more bytes, so that the state alone
    /// says what can follow.
    pub(crate) fn is_plain(&self, cursor: Cursor, horizon: u64) -> bool {
        let counter = self.counter.as_ref();
        counter.is_none_or(|counter| counter.horizon(cursor.count, horizon).is_none())
    }

    /// The name of the language of each state; with `units` also of when its units end.
    pub(crate) fn language_ids(&self, units: bool) -> &[LanguageId] {
        self.named.names[usize::from(units)].get_or_init(|| {
            language_ids(&Dfa {
                classes: &self.classes,
                stride: self.stride,
                next: &self.next,
                accepting: &self.accepting,
                units,
            })
        })
    }

    /// Whether the names of the states are known, where units do not matter.
    pub(crate) fn has_language_ids(&self) -> bool {
        self.named.names[0].get().is_some()
    }

    /// Whether two bytes lead to the same state from everywhere.
    #[inline]
    pub(crate) fn are_alike(&self, one: u8, other: u8) -> bool {
        self.classes[one as usize] == self.classes[other as usize]
    }

    /// The state after a byte, bounds left aside.
    #[inline]
    pub(crate) fn next_state(&self, state: u32, byte: u8) -> Option<u32> {
        let packed = self.next[state as usize * self.stride + self.classes[byte as usize] as usize];
        (packed != DEAD).then_some(packed >> 1)
    }

    /// The state after a byte and whether a unit ended, bounds left aside.
    #[inline]
    pub(crate) fn next_unit(&self, state: u32, byte: u8) -> Option<(u32, bool)> {
        let packed = self.next[state as usize * self.stride + self.classes[byte as usize] as usize];
        (packed != DEAD).then_some((packed >> 1, packed & 1 == 1))
    }

    /// One of these bytes for each class of bytes that lead to the same from everywhere.
    pub(crate) fn kinds_of(&self, mut bytes: ByteSet) -> Vec<u8> {
        let mut seen = [false; 256];
        let bytes = std::iter::from_fn(|| bytes.pop());
        bytes
            .filter(|&byte| !std::mem::replace(&mut seen[usize::from(self.classes[usize::from(byte)])], true))
            .collect()
    }

    /// Whether a word within the bounds can be completed from a state of this language after `count` units.
    pub(crate) fn is_alive_at(&self, language: LanguageId, count: u64) -> bool {
        let states = self.named.states.get_or_init(|| {
            let names = self.language_ids(true).iter();
            names.zip(0u32..).map(|(&name, state)| (name, state)).collect()
        });
        let state = states.get(&language);
        state.is_some_and(|&state| self.alive(state, count))
    }

    /// The number of units that are left to the upper bound, if there is one.
    pub(crate) fn units_left(&self, count: u64) -> Option<u64> {
        let (_, max) = self.bounds()?;
        Some(max?.saturating_sub(count))
    }

    /// Whether units are counted and any number is enough.
    pub(crate) fn has_only_an_upper_bound(&self) -> bool {
        matches!(self.bounds(), Some((0, Some(_))))
    }

    /// The least number of units with which a word is completed from a state.
    #[inline]
    pub(crate) fn least_units(&self, state: u32) -> u64 {
        self.counter.as_ref().map_or(0, |counter| counter.least(state))
    }

    /// Whether a state is known to complete words with [the least number of units](Self::least_units) and
    /// with every larger one: there is a byte that is a unit and leads back to it, or it is as far from the
    /// end as such a state to which it leads. This is a property of its language alone.
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
        // From which states each one lies on the shortest way to the end.
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

    /// Whether units are counted.
    pub(crate) fn is_counted(&self) -> bool {
        self.counter.is_some()
    }

    /// Whether a word of `count` units is within the bounds.
    pub(crate) fn is_in_range(&self, count: u64) -> bool {
        self.counter
            .as_ref()
            .is_none_or(|counter| counter.in_range(count))
    }

    /// The least and the greatest number of units of a word, where units are counted.
    pub(crate) fn bounds(&self) -> Option<(u64, Option<u64>)> {
        self.counter.as_ref().map(Counter::bounds)
    }

    /// Whether a word may end in the state, bounds left aside.
    #[inline]
    pub(crate) fn is_accepting_state(&self, state: u32) -> bool {
        self.accepting[state as usize]
    }

    /// The number of states.
    pub fn len(&self) -> usize {
        self.accepting.len()
    }

    /// Whether there is no state; never true of a compiled terminal.
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
        Terminal::new(&Regular { parts }, &Limits::default())
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
        // A set of words, and an expression that is none.
        for pattern in ["abcdefghijklmnopqrstuvwxyz", "[a-z]{26}x*"] {
            let parts = vec![Part::Match(hir(pattern))];
            let refused = Terminal::new(&Regular { parts }, &limits);
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
        let refused = Terminal::new(&Regular { parts }, &limits);
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
