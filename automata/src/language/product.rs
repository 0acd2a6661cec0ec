//! The product of the automata of a regular language, explored and trimmed.
//!
//! Each part of a [`Regular`] is one automaton. A state of the product is a tuple of their states. It is
//! explored from the start, one class of letters after the other, and states that cannot lead to a word are
//! removed. Letters are characters if all parts can be compiled over characters; the result is then spelled
//! in bytes at the end.

mod numbering;
mod word_tree;

use std::sync::Arc;

use super::cache::Automata;
use super::characters::{Alphabet, Automaton, Failure, Letters, spell};
use super::error::TerminalError;
use super::graph::{DEAD, Graph};
use crate::grammar::{Expression, Part, Regular};
use crate::limits::Limits;
use numbering::States;
use word_tree::WordTree;

/// One factor of a product.
enum Operand {
    Automaton(Arc<Automaton>),
    /// A finite set of words, which would be slow to determinise and is already a tree.
    Words(WordTree),
}

/// The automata whose product is the language.
pub(super) struct Operands {
    /// Each operand with `true` if its words are wanted, and `false` if they are excluded.
    matches: Vec<(Operand, bool)>,
    unit: Option<Arc<Automaton>>,
    /// The common refinement of the letter classes of all operands.
    letters: Letters,
    /// For each operand, with the unit last, the operand's own class for each common class.
    maps: Vec<Vec<u16>>,
}

/// The factor on `regular_bytes` up to which the tuples of the states of a product may grow; they are dropped
/// when the table is made.
const TUPLES: usize = 4;

impl Operands {
    pub(super) fn new(
        regular: &Regular,
        automata: &Automata,
        limits: &Limits,
    ) -> Result<Operands, TerminalError> {
        // Exclusions alone do not exclude bytes that are not text.
        let is_text = regular.parts.iter().any(|part| !matches!(part, Part::Not(_)));
        if is_text {
            match Operands::over(regular, Alphabet::Chars, automata, limits) {
                Err(Problem::Automaton(Failure::NotText)) => {}
                operands => return operands.map_err(|problem| problem.into_error(limits)),
            }
        }
        let operands = Operands::over(regular, Alphabet::Bytes, automata, limits);
        operands.map_err(|problem| problem.into_error(limits))
    }

    fn over(
        regular: &Regular,
        alphabet: Alphabet,
        automata: &Automata,
        limits: &Limits,
    ) -> Result<Operands, Problem> {
        let mut matches = Vec::new();
        let mut counted: Option<&Expression> = None;
        let operand = |hir| Operand::new(hir, alphabet, automata, limits);
        for part in &regular.parts {
            match part {
                Part::Match(hir) => matches.push((operand(hir)?, true)),
                Part::Not(hir) => matches.push((operand(hir)?, false)),
                Part::Units { unit, .. } if counted.is_some_and(|known| known != unit) => {
                    return Err(TerminalError::Units("two different units are counted").into());
                }
                Part::Units { unit, .. } => counted = Some(unit),
            }
        }
        let unit = counted
            .map(|unit| automata.get(unit, alphabet, limits))
            .transpose()?;
        if let Some(unit) = &unit {
            check_prefix_code(unit, limits)?;
        }
        Ok(Operands::of(matches, unit, alphabet)?)
    }

    /// Returns `true` if units are counted.
    pub(super) fn counts(&self) -> bool {
        self.unit.is_some()
    }

    fn of(
        matches: Vec<(Operand, bool)>,
        unit: Option<Arc<Automaton>>,
        alphabet: Alphabet,
    ) -> Result<Operands, Failure> {
        let divisions = matches.iter().map(|(operand, _)| operand.letters());
        let divisions: Vec<&Letters> = divisions.chain(unit.as_deref().map(Automaton::letters)).collect();
        let (letters, maps) = match divisions[..] {
            [only] => (only.clone(), vec![(0..only.count() as u16).collect()]),
            _ => Letters::joint(&divisions, alphabet)?,
        };
        Ok(Operands {
            matches,
            unit,
            letters,
            maps,
        })
    }

    fn start(&self) -> Vec<u32> {
        let starts = self.matches.iter().map(|(operand, _)| operand.start());
        starts
            .chain(self.unit.as_ref().map(|_| Automaton::START))
            .collect()
    }

    /// Writes the states of all operands after each class of letters, one column per operand, and marks the
    /// classes that complete a unit or lead nowhere.
    fn write_columns(&self, from: &[u32], columns: &mut Columns) {
        let count = self.letters.count();
        columns.edges.clear();
        columns.edges.resize(count, Some(false));
        columns.states.clear();
        for (((operand, wanted), &state), map) in self.matches.iter().zip(from).zip(&self.maps) {
            operand.write_row(state, &mut columns.row);
            let start = columns.states.len();
            columns
                .states
                .extend(map.iter().map(|&class| columns.row[class as usize]));
            if *wanted {
                let dead = operand.dead();
                let column = columns.states[start..].iter();
                for (edge, &next) in columns.edges.iter_mut().zip(column) {
                    *edge = edge.filter(|_| next != dead);
                }
            }
        }
        let Some(unit) = &self.unit else { return };
        for (edge, &class) in columns.edges.iter_mut().zip(&self.maps[from.len() - 1]) {
            let next = unit.next(from[from.len() - 1], class);
            let ended = unit.accepts(next);
            columns.states.push(if ended { Automaton::START } else { next });
            *edge = edge.filter(|_| next != Automaton::DEAD).map(|_| ended);
        }
    }

    fn accepts(&self, state: &[u32]) -> bool {
        let mut matches = self.matches.iter().zip(state);
        let between = self.unit.is_none() || state[state.len() - 1] == Automaton::START;
        between && matches.all(|((operand, wanted), &id)| operand.accepts(id) == *wanted)
    }

    /// Returns the product, in which a word can be completed from every state; an error if the language is
    /// empty.
    fn trimmed(&self, limits: &Limits) -> Result<Graph, TerminalError> {
        if let Some(graph) = self.alone(limits)? {
            return Ok(graph);
        }
        let mut graph = self.explore(limits)?;
        graph.trim()?;
        Ok(graph)
    }

    /// Handles the common case that the language is one expression, whose automaton is the product.
    fn alone(&self, limits: &Limits) -> Result<Option<Graph>, TerminalError> {
        let ([(operand, true)], None) = (&self.matches[..], &self.unit) else {
            return Ok(None);
        };
        // One state of the automaton is dead, none of the product is. The size is checked before the table is
        // made.
        self.check_room(operand.len() as usize - 1, limits)?;
        Ok(match operand {
            Operand::Words(words) if words.has_words() => Some(words.graph()),
            Operand::Automaton(automaton) if automaton.is_live() => Some(self.only(automaton)),
            _ => None,
        })
    }

    /// Returns an error if a table with this many states would be too large, or if the compile was cancelled.
    fn check_room(&self, states: usize, limits: &Limits) -> Result<(), TerminalError> {
        if states > limits.regular_states || limits.cancel.is_asked() {
            return Err(TerminalError::Limit {
                what: "states",
                limit: limits.regular_states,
            });
        }
        // There may be more classes of letters than of bytes, so a table may shrink when it is spelled.
        if states.saturating_mul(self.letters.count()) > limits.regular_bytes {
            return Err(Problem::Automaton(Failure::Limit).into_error(limits));
        }
        Ok(())
    }

    fn only(&self, automaton: &Automaton) -> Graph {
        let stride = self.letters.count();
        let rows = automaton.rows()[stride..].iter();
        Graph {
            stride,
            next: rows.map(|&state| packed(state)).collect(),
            accepting: accepting(automaton),
        }
    }

    fn explore(&self, limits: &Limits) -> Result<Graph, TerminalError> {
        let sizes = self.matches.iter().map(|(operand, _)| operand.len());
        let mut states = States::new(sizes.chain(self.unit.as_ref().map(|unit| unit.len())).collect());
        states.number(&self.start());
        let mut graph = Graph {
            stride: self.letters.count(),
            next: Vec::new(),
            accepting: Vec::new(),
        };
        let mut held = limits.cancel.account();
        let (mut from, mut to) = (Vec::new(), Vec::new());
        let (count, mut columns) = (self.letters.count(), Columns::default());
        while states.copy(graph.accepting.len(), &mut from) {
            graph.accepting.push(self.accepts(&from));
            self.write_columns(&from, &mut columns);
            // Most classes lead from a state to the same target: a letter with which no word of a list
            // continues is like any other.
            let mut recent: [Option<(usize, u32)>; 2] = [None; 2];
            for (class, edge) in columns.edges.iter().enumerate() {
                let Some(ended) = edge else {
                    graph.next.push(DEAD);
                    continue;
                };
                let mut known = recent.into_iter().flatten();
                let known = known.find(|&(other, _)| columns.are_alike(class, other, count));
                let packed = match known {
                    Some((_, packed)) => packed,
                    None => {
                        to.clear();
                        to.extend(columns.states.iter().skip(class).step_by(count));
                        let packed = states.number(&to) << 1 | u32::from(*ended);
                        recent = [Some((class, packed)), recent[0]];
                        packed
                    }
                };
                graph.next.push(packed);
            }
            // Lists grow by doubling.
            held.set(2 * size_of::<u32>() * graph.next.len() + states.bytes());
            self.check_room(states.count, limits)?;
            if states.bytes() > TUPLES.saturating_mul(limits.regular_bytes) {
                return Err(Problem::Automaton(Failure::Limit).into_error(limits));
            }
        }
        Ok(graph)
    }

    /// Returns the product as a table over bytes.
    pub(super) fn spelled(&self, limits: &Limits) -> Result<ByteGraph, TerminalError> {
        if let ([(Operand::Automaton(automaton), true)], None) = (&self.matches[..], &self.unit)
            && automaton.is_live()
        {
            // Spelled from the automaton directly: tables of words are large, and each copy is one more pass
            // through memory.
            self.check_room(automaton.len() as usize - 1, limits)?;
            let rows = &automaton.rows()[self.letters.count()..];
            return self.spell(rows, packed, accepting(automaton), limits);
        }
        let graph = self.trimmed(limits)?;
        self.spell(&graph.next, |edge| edge, graph.accepting, limits)
    }

    /// Writes out a graph over letters in bytes.
    fn spell(
        &self,
        next: &[u32],
        edge: impl Fn(u32) -> u32,
        mut accepting: Vec<bool>,
        limits: &Limits,
    ) -> Result<ByteGraph, TerminalError> {
        let rows = next.chunks_exact(self.letters.count());
        let mut ends = accepting.iter().zip(rows);
        let prefix_code = ends.all(|(&accepts, row)| !accepts || row.iter().all(|&to| edge(to) == DEAD));
        let bytes = spell(next, edge, &self.letters, limits.regular_bytes);
        let bytes = bytes.map_err(|failure| Problem::Automaton(failure).into_error(limits))?;
        // No word ends inside a letter.
        accepting.resize(bytes.next.len() / bytes.stride, false);
        let graph = Graph {
            stride: bytes.stride,
            next: bytes.next,
            accepting,
        };
        Ok(ByteGraph {
            graph,
            classes: bytes.classes,
            prefix_code,
        })
    }
}

/// The table of a product over bytes.
pub(super) struct ByteGraph {
    pub(super) graph: Graph,
    /// The class of each byte.
    pub(super) classes: Box<[u8; 256]>,
    /// `true` if no word is a prefix of another.
    pub(super) prefix_code: bool,
}

/// Returns the graph entry for a state of an automaton that is the whole product.
fn packed(state: u32) -> u32 {
    match state {
        Automaton::DEAD => DEAD,
        _ => (state - Automaton::START) << 1,
    }
}

/// Returns which states accept, without the dead one.
fn accepting(automaton: &Automaton) -> Vec<bool> {
    let states = Automaton::START..automaton.len();
    states.map(|state| automaton.accepts(state)).collect()
}

/// The successors of a state of the product, for each class of letters.
#[derive(Default)]
struct Columns {
    /// The states of the operands, concatenated.
    states: Vec<u32>,
    /// `true` if a unit ends; `None` if no word continues.
    edges: Vec<Option<bool>>,
    /// The states of one operand after each of its own classes.
    row: Vec<u32>,
}

impl Columns {
    /// Returns `true` if two of `count` classes lead to the same state.
    fn are_alike(&self, class: usize, other: usize, count: usize) -> bool {
        let mut columns = self.states.chunks_exact(count);
        self.edges[class] == self.edges[other] && columns.all(|column| column[class] == column[other])
    }
}

/// The errors of computing a product.
enum Problem {
    Automaton(Failure),
    Terminal(TerminalError),
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Problem {
        Problem::Automaton(failure)
    }
}

impl From<TerminalError> for Problem {
    fn from(error: TerminalError) -> Problem {
        Problem::Terminal(error)
    }
}

impl Problem {
    fn into_error(self, limits: &Limits) -> TerminalError {
        match self {
            Problem::Terminal(error) => error,
            Problem::Automaton(Failure::Look) => TerminalError::Look,
            Problem::Automaton(Failure::Limit | Failure::NotText) => TerminalError::Limit {
                what: "bytes of automaton",
                limit: limits.regular_bytes,
            },
        }
    }
}

impl Operand {
    fn new(
        hir: &Expression,
        alphabet: Alphabet,
        automata: &Automata,
        limits: &Limits,
    ) -> Result<Operand, Failure> {
        match WordTree::new(hir, alphabet)? {
            Some(words) => Ok(Operand::Words(words)),
            None => Ok(Operand::Automaton(automata.get(hir, alphabet, limits)?)),
        }
    }

    fn letters(&self) -> &Letters {
        match self {
            Operand::Automaton(automaton) => automaton.letters(),
            Operand::Words(words) => words.letters(),
        }
    }

    fn start(&self) -> u32 {
        match self {
            Operand::Automaton(_) => Automaton::START,
            Operand::Words(words) => words.start(),
        }
    }

    /// Writes the states after each of the operand's own classes.
    fn write_row(&self, state: u32, row: &mut Vec<u32>) {
        row.clear();
        match self {
            Operand::Automaton(automaton) => row.extend_from_slice(automaton.row(state)),
            Operand::Words(words) => words.write_row(state, row),
        }
    }

    fn len(&self) -> u32 {
        match self {
            Operand::Automaton(automaton) => automaton.len(),
            Operand::Words(words) => words.len(),
        }
    }

    /// Returns the state from which no word is completed.
    fn dead(&self) -> u32 {
        match self {
            Operand::Automaton(_) => Automaton::DEAD,
            Operand::Words(words) => words.dead(),
        }
    }

    fn accepts(&self, state: u32) -> bool {
        match self {
            Operand::Automaton(automaton) => automaton.accepts(state),
            Operand::Words(words) => words.accepts(state),
        }
    }
}

/// Checks that a complete unit never continues, which is needed to know where a unit ends.
fn check_prefix_code(unit: &Arc<Automaton>, limits: &Limits) -> Result<(), Problem> {
    let alphabet = unit.letters().alphabet();
    let alone = Operands::of(vec![(Operand::Automaton(unit.clone()), true)], None, alphabet)?;
    let graph = alone.trimmed(limits)?;
    let goes_on = |state: usize| graph.accepting[state] && graph.targets(state).next().is_some();
    match (0..graph.accepting.len()).any(goes_on) {
        true => Err(TerminalError::Units("one unit may begin with another").into()),
        false if graph.accepting[0] => Err(TerminalError::Units("a unit may be empty").into()),
        false => Ok(()),
    }
}
