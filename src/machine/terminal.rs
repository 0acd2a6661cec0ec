//! One regular language as a byte automaton without dead ends.
//!
//! The parts of a [`Regular`] become one DFA each (regex-automata builds them); their product is explored eagerly,
//! states from which no word can be completed are cut away, and what is left is a dense table. A counted part is not
//! unrolled: its unit runs as one more operand of the product, and each completed unit adds one to a register that
//! [`Counter`] judges.
//!
//! ```text
//!   parts:  Match(^a.*)   Units(char, ..=20)          cursor = (product state, units so far)
//!              DFA             DFA                        next(cursor, byte): one table look-up,
//!               └── product ────┘                          + 1 when a unit ends
//! ```

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use regex_automata::{
    Anchored,
    dfa::{Automaton, StartKind, dense},
    nfa::thompson,
    util::{primitives::StateID, start},
};
use regex_syntax::hir::Hir;

use super::counter::{Counter, UnitGraph};
use crate::grammar::{Part, Regular};
use crate::limits::Limits;

/// Why a regular language could not be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TerminalError {
    /// No word belongs to the language.
    #[error("no text can match this expression")]
    Empty,
    /// A limit was reached.
    #[error("the expression needs more than {limit} {what}")]
    Limit {
        /// What there are too many of.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The counted unit is not a prefix code, or two different units are counted at once.
    #[error("the repeated part cannot be counted: {0}")]
    Units(&'static str),
    /// The expression looks around.
    #[error("look-around is not possible inside a grammar")]
    Look,
}

/// Where a run through a [`Terminal`] stands: a state and the units completed so far (clamped).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cursor {
    /// The state of the product.
    pub state: u32,
    /// Units completed, as far as they still matter.
    pub count: u64,
}

const DEAD: u32 = u32::MAX;

/// A compiled regular language. Immutable; every cursor that it hands out can be completed to a word.
#[derive(Debug)]
pub struct Terminal {
    id: u64,
    classes: Box<[u8; 256]>,
    stride: usize,
    /// `target * 2 + (1 if a unit ends)`, or `DEAD`.
    next: Vec<u32>,
    accepting: Vec<bool>,
    infinite: Vec<bool>,
    endless: bool,
    prefix_code: bool,
    counter: Option<Counter>,
}

impl Terminal {
    /// A number that no other terminal of this process has: what caches know it by.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whether a complete word never goes on: no word begins with another.
    pub fn is_prefix_code(&self) -> bool {
        self.prefix_code
    }

    /// Whether every text that is not yet a word can become infinitely many.
    pub fn is_endless(&self) -> bool {
        self.endless
    }

    /// Compiles the language; an empty one is an error.
    pub fn new(regular: &Regular, limits: &Limits) -> Result<Terminal, TerminalError> {
        let operands = Operands::new(regular, limits)?;
        let mut graph = operands.explore(limits)?;
        graph.trim()?;
        let counter = match operands.range {
            Some((min, max)) => Some(Counter::new(&graph.units(), min, max, limits)?),
            None => None,
        };
        let infinite = graph.infinite();
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        let endless = counter.as_ref().is_none_or(Counter::is_unbounded)
            && (infinite.iter().zip(&graph.accepting)).all(|(&infinite, &accepting)| infinite || accepting);
        let ends = |state: usize| !graph.accepting[state] || graph.targets(state).next().is_none();
        let prefix_code = (0..graph.accepting.len()).all(ends);
        let terminal = Terminal {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            endless,
            prefix_code,
            classes: operands.classes,
            stride: operands.representatives.len(),
            next: graph.next,
            accepting: graph.accepting,
            infinite,
            counter,
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
        self.infinite[cursor.state as usize] && self.counter.as_ref().is_none_or(Counter::is_unbounded)
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

    /// All ways to complete a word from here, or `None` if there are more than `cap`. O(cap · length of the words).
    pub fn words(&self, cursor: Cursor, cap: usize) -> Option<Vec<Vec<u8>>> {
        if self.is_infinite(cursor) {
            return None;
        }
        let mut words = Vec::new();
        let mut open = vec![(cursor, Vec::new())];
        while let Some((cursor, text)) = open.pop() {
            if words.len() + open.len() > cap.saturating_mul(2).saturating_add(256) {
                // Every open path leads to at least one word of its own.
                return None;
            }
            for byte in 0..=255 {
                if let Some(next) = self.next(cursor, byte) {
                    open.push((next, [&text[..], &[byte]].concat()));
                }
            }
            if self.is_accepting(cursor) {
                words.push(text);
            }
        }
        (words.len() <= cap).then_some(words)
    }

    /// A cursor with the same allowed continuations of at most `horizon` bytes: what masks are shared by.
    pub fn horizon(&self, cursor: Cursor, horizon: u64) -> (u32, u64, u64) {
        match &self.counter {
            None => (cursor.state, 0, 0),
            Some(counter) => {
                let (low, high) = counter.horizon(cursor.count, horizon);
                (cursor.state, low, high)
            }
        }
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

/// The DFAs whose product is the language.
struct Operands {
    /// Each with whether its words are wanted (`true`) or unwanted.
    matches: Vec<(dense::DFA<Vec<u32>>, bool)>,
    unit: Option<dense::DFA<Vec<u32>>>,
    range: Option<(u64, Option<u64>)>,
    classes: Box<[u8; 256]>,
    representatives: Vec<u8>,
}

impl Operands {
    fn new(regular: &Regular, limits: &Limits) -> Result<Operands, TerminalError> {
        let mut matches = Vec::new();
        let mut counted: Option<(&Hir, u64, Option<u64>)> = None;
        for part in &regular.parts {
            match part {
                Part::Match(hir) => matches.push((build(hir, limits)?, true)),
                Part::Not(hir) => matches.push((build(hir, limits)?, false)),
                Part::Units { unit, min, max } => counted = Some(meet(counted, (unit, *min, *max))?),
            }
        }
        let unit = counted.map(|(unit, ..)| build(unit, limits)).transpose()?;
        if let Some(unit) = &unit {
            check_prefix_code(unit, limits)?;
        }
        // A run of any number of units needs no register, only the operand that checks the units themselves.
        let range = counted.map(|(_, min, max)| (min, max));
        let (classes, representatives) = joint_classes(matches.iter().map(|(dfa, _)| dfa).chain(&unit));
        Ok(Operands {
            matches,
            unit,
            range,
            classes,
            representatives,
        })
    }

    fn start(&self) -> Vec<StateID> {
        self.matches
            .iter()
            .map(|(dfa, _)| dfa)
            .chain(&self.unit)
            .map(start_of)
            .collect()
    }

    /// The product state after a byte and whether a unit ended, or `None` if it is dead.
    fn step(&self, from: &[StateID], byte: u8) -> Result<Option<(Vec<StateID>, bool)>, TerminalError> {
        let mut to = Vec::with_capacity(from.len());
        for ((dfa, wanted), &state) in self.matches.iter().zip(from) {
            let next = dfa.next_state(state, byte);
            if *wanted && dfa.is_dead_state(next) {
                return Ok(None);
            }
            to.push(next);
        }
        let Some(unit) = &self.unit else {
            return Ok(Some((to, false)));
        };
        let next = unit.next_state(from[from.len() - 1], byte);
        if unit.is_dead_state(next) {
            return Ok(None);
        }
        let ended = accepts(unit, next);
        to.push(if ended { start_of(unit) } else { next });
        Ok(Some((to, ended)))
    }

    fn accepts(&self, state: &[StateID]) -> bool {
        let wanted = self
            .matches
            .iter()
            .zip(state)
            .all(|((dfa, wanted), &id)| accepts(dfa, id) == *wanted);
        let between = self
            .unit
            .as_ref()
            .is_none_or(|unit| state[state.len() - 1] == start_of(unit));
        wanted && between
    }

    fn explore(&self, limits: &Limits) -> Result<Graph, TerminalError> {
        let mut known: HashMap<Vec<StateID>, u32> = HashMap::new();
        let mut order = vec![self.start()];
        known.insert(order[0].clone(), 0);
        let mut graph = Graph {
            stride: self.representatives.len(),
            next: Vec::new(),
            accepting: Vec::new(),
        };
        let mut at = 0;
        while at < order.len() {
            let from = order[at].clone();
            graph.accepting.push(self.accepts(&from));
            for &byte in &self.representatives {
                let packed = match self.step(&from, byte)? {
                    None => DEAD,
                    Some((to, ended)) => {
                        let id = *known.entry(to.clone()).or_insert_with(|| {
                            order.push(to);
                            order.len() as u32 - 1
                        });
                        id << 1 | u32::from(ended)
                    }
                };
                graph.next.push(packed);
            }
            if order.len() > limits.regular_states {
                return Err(TerminalError::Limit {
                    what: "states",
                    limit: limits.regular_states,
                });
            }
            at += 1;
        }
        Ok(graph)
    }
}

/// Units can only be counted if it is clear where one ends: where a unit is complete, it cannot go on.
fn check_prefix_code(unit: &dense::DFA<Vec<u32>>, limits: &Limits) -> Result<(), TerminalError> {
    let (classes, representatives) = joint_classes(std::iter::once(unit));
    let matches = vec![(unit.clone(), true)];
    let alone = Operands {
        matches,
        unit: None,
        range: None,
        classes,
        representatives,
    };
    let mut graph = alone.explore(limits)?;
    graph.trim()?;
    let goes_on = |state: usize| graph.accepting[state] && graph.targets(state).next().is_some();
    match (0..graph.accepting.len()).any(goes_on) {
        true => Err(TerminalError::Units("one unit may begin with another")),
        false if graph.accepting[0] => Err(TerminalError::Units("a unit may be empty")),
        false => Ok(()),
    }
}

/// Two counts of the same unit are one count in the common range.
fn meet<'a>(
    known: Option<(&'a Hir, u64, Option<u64>)>,
    new: (&'a Hir, u64, Option<u64>),
) -> Result<(&'a Hir, u64, Option<u64>), TerminalError> {
    let Some((unit, min, max)) = known else {
        return Ok(new);
    };
    if unit != new.0 {
        return Err(TerminalError::Units("two different units are counted"));
    }
    let max = match (max, new.2) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    Ok((unit, min.max(new.1), max))
}

fn build(hir: &Hir, limits: &Limits) -> Result<dense::DFA<Vec<u32>>, TerminalError> {
    if !hir.properties().look_set().is_empty() {
        return Err(TerminalError::Look);
    }
    let too_big = |_| TerminalError::Limit {
        what: "bytes of automaton",
        limit: limits.regular_bytes,
    };
    let config = thompson::Config::new()
        .utf8(false)
        .which_captures(thompson::WhichCaptures::None)
        .nfa_size_limit(Some(limits.regular_bytes));
    let nfa = thompson::Compiler::new()
        .configure(config)
        .build_from_hir(hir)
        .map_err(|_| TerminalError::Limit {
            what: "bytes of automaton",
            limit: limits.regular_bytes,
        })?;
    let config = dense::Config::new()
        .start_kind(StartKind::Anchored)
        // All matches, not the leftmost-first one: a word belongs to the language however it is matched.
        .match_kind(regex_automata::MatchKind::All)
        .accelerate(false)
        .dfa_size_limit(Some(limits.regular_bytes))
        .determinize_size_limit(Some(limits.regular_bytes));
    dense::Builder::new()
        .configure(config)
        .build_from_nfa(&nfa)
        .map_err(too_big)
}

fn start_of(dfa: &dense::DFA<Vec<u32>>) -> StateID {
    let config = start::Config::new().anchored(Anchored::Yes);
    dfa.start_state(&config)
        .expect("an anchored DFA without look-around has an anchored start")
}

fn accepts(dfa: &dense::DFA<Vec<u32>>, state: StateID) -> bool {
    dfa.is_match_state(dfa.next_eoi_state(state))
}

/// The coarsest byte classes that all automata agree on, and one byte of each.
fn joint_classes<'a>(dfas: impl Iterator<Item = &'a dense::DFA<Vec<u32>>>) -> (Box<[u8; 256]>, Vec<u8>) {
    let maps: Vec<_> = dfas.map(|dfa| dfa.byte_classes()).collect();
    let mut known: HashMap<Vec<u8>, u8> = HashMap::new();
    let mut classes = Box::new([0u8; 256]);
    let mut representatives = Vec::new();
    for byte in 0..=255u8 {
        let signature: Vec<u8> = maps.iter().map(|map| map.get(byte)).collect();
        let class = *known.entry(signature).or_insert_with(|| {
            representatives.push(byte);
            (representatives.len() - 1) as u8
        });
        classes[byte as usize] = class;
    }
    (classes, representatives)
}

/// The explored product, before and after its dead ends are cut away.
struct Graph {
    stride: usize,
    next: Vec<u32>,
    accepting: Vec<bool>,
}

impl Graph {
    fn targets(&self, state: usize) -> impl Iterator<Item = (u32, bool)> {
        let row = &self.next[state * self.stride..(state + 1) * self.stride];
        row.iter()
            .filter(|&&packed| packed != DEAD)
            .map(|&packed| (packed >> 1, packed & 1 == 1))
    }

    /// Cuts transitions into states from which no word can be completed; an error if the start is one.
    fn trim(&mut self) -> Result<(), TerminalError> {
        let live = self.live();
        for packed in &mut self.next {
            if *packed != DEAD && !live[(*packed >> 1) as usize] {
                *packed = DEAD;
            }
        }
        if live[0] {
            Ok(())
        } else {
            Err(TerminalError::Empty)
        }
    }

    fn live(&self) -> Vec<bool> {
        let mut into: Vec<Vec<u32>> = vec![Vec::new(); self.accepting.len()];
        for state in 0..self.accepting.len() {
            for (target, _) in self.targets(state) {
                into[target as usize].push(state as u32);
            }
        }
        let mut live = self.accepting.clone();
        let mut open: Vec<u32> = (0..live.len() as u32).filter(|&s| live[s as usize]).collect();
        while let Some(state) = open.pop() {
            for &from in &into[state as usize] {
                if !std::mem::replace(&mut live[from as usize], true) {
                    open.push(from);
                }
            }
        }
        live
    }

    /// From which states a cycle is reachable; after trimming every cycle leads to infinitely many words.
    fn infinite(&self) -> Vec<bool> {
        // Kahn's order on the reversed graph: states left over are on a cycle or lead to one.
        let len = self.accepting.len();
        let mut into: Vec<Vec<u32>> = vec![Vec::new(); len];
        let mut out = vec![0u32; len];
        for (state, count) in out.iter_mut().enumerate() {
            for (target, _) in self.targets(state) {
                into[target as usize].push(state as u32);
                *count += 1;
            }
        }
        let mut open: Vec<u32> = (0..len as u32).filter(|&s| out[s as usize] == 0).collect();
        let mut infinite = vec![true; len];
        while let Some(state) = open.pop() {
            infinite[state as usize] = false;
            for &from in &into[state as usize] {
                out[from as usize] -= 1;
                if out[from as usize] == 0 {
                    open.push(from);
                }
            }
        }
        infinite
    }

    fn units(&self) -> UnitGraph {
        let edges = (0..self.accepting.len()).map(|state| {
            let mut targets: Vec<(u32, bool)> = self.targets(state).collect();
            targets.sort_unstable();
            targets.dedup();
            targets
        });
        UnitGraph {
            edges: edges.collect(),
            accepting: self.accepting.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hir(pattern: &str) -> Hir {
        regex_syntax::parse(pattern).expect("the test's pattern is well formed")
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
