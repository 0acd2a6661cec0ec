//! The product of the automata of a regular language, explored and trimmed.
//!
//! Each part of a [`Regular`] is one automaton. A state of the product is a state of each; it is explored from the start,
//! one representative byte a class, and what cannot lead to a word is cut away.

use std::sync::Arc;

use regex_syntax::hir::Hir;
use rustc_hash::FxHashMap;

use super::automaton::{Automata, Automaton};
use super::counter::UnitGraph;
use super::terminal::TerminalError;
use super::words::WordTree;
use crate::grammar::{Part, Regular};
use crate::limits::Limits;

/// A transition that leads to no word.
pub(super) const DEAD: u32 = u32::MAX;

/// One factor of a product.
enum Operand {
    Automaton(Arc<Automaton>),
    /// A finite set of words, which would be slow to determinise and is a tree already.
    Words(WordTree),
}

/// The automata whose product is the language.
pub(super) struct Operands {
    /// Each with whether its words are wanted (`true`) or unwanted.
    matches: Vec<(Operand, bool)>,
    unit: Option<Arc<Automaton>>,
    /// The bounds of the counted part.
    pub(super) range: Option<(u64, Option<u64>)>,
    pub(super) classes: Box<[u8; 256]>,
    /// One byte of each class.
    pub(super) representatives: Vec<u8>,
}

impl Operands {
    pub(super) fn new(
        regular: &Regular,
        automata: &Automata,
        limits: &Limits,
    ) -> Result<Operands, TerminalError> {
        let mut matches = Vec::new();
        let mut counted: Option<(&Hir, u64, Option<u64>)> = None;
        for part in &regular.parts {
            match part {
                Part::Match(hir) => matches.push((Operand::new(hir, automata, limits)?, true)),
                Part::Not(hir) => matches.push((Operand::new(hir, automata, limits)?, false)),
                Part::Units { unit, min, max } => counted = Some(meet(counted, (unit, *min, *max))?),
            }
        }
        let unit = counted.map(|(unit, ..)| automata.get(unit, limits)).transpose()?;
        if let Some(unit) = &unit {
            check_prefix_code(unit, limits)?;
        }
        // A run of any number of units needs no register, only the operand that checks the units themselves.
        let range = counted.map(|(_, min, max)| (min, max));
        Ok(Operands::over(matches, unit, range))
    }

    fn over(
        matches: Vec<(Operand, bool)>,
        unit: Option<Arc<Automaton>>,
        range: Option<(u64, Option<u64>)>,
    ) -> Operands {
        let (classes, representatives) = joint_classes(&matches, unit.as_deref());
        Operands {
            matches,
            unit,
            range,
            classes,
            representatives,
        }
    }

    fn start(&self) -> Vec<u32> {
        let starts = self.matches.iter().map(|(operand, _)| operand.start());
        starts.chain(self.unit.as_ref().map(|unit| unit.start)).collect()
    }

    /// Writes the product state after a byte; whether a unit ended, or `None` if the state is dead.
    fn step(&self, from: &[u32], byte: u8, to: &mut Vec<u32>) -> Option<bool> {
        to.clear();
        for ((operand, wanted), &state) in self.matches.iter().zip(from) {
            let next = operand.next(state, byte);
            if *wanted && operand.is_dead(next) {
                return None;
            }
            to.push(next);
        }
        let Some(unit) = &self.unit else {
            return Some(false);
        };
        let next = unit.next(from[from.len() - 1], byte);
        if unit.is_dead(next) {
            return None;
        }
        let ended = unit.accepts(next);
        to.push(if ended { unit.start } else { next });
        Some(ended)
    }

    fn accepts(&self, state: &[u32]) -> bool {
        let mut matches = self.matches.iter().zip(state);
        let between = self
            .unit
            .as_ref()
            .is_none_or(|unit| state[state.len() - 1] == unit.start);
        between && matches.all(|((operand, wanted), &id)| operand.accepts(id) == *wanted)
    }

    pub(super) fn explore(&self, limits: &Limits) -> Result<Graph, TerminalError> {
        let mut known: FxHashMap<Box<[u32]>, u32> = FxHashMap::default();
        let mut order: Vec<Box<[u32]>> = vec![self.start().into()];
        known.insert(order[0].clone(), 0);
        let mut graph = Graph {
            stride: self.representatives.len(),
            next: Vec::new(),
            accepting: Vec::new(),
        };
        let mut to = Vec::new();
        let mut at = 0;
        while let Some(from) = order.get(at).cloned() {
            graph.accepting.push(self.accepts(&from));
            for &byte in &self.representatives {
                let Some(ended) = self.step(&from, byte, &mut to) else {
                    graph.next.push(DEAD);
                    continue;
                };
                let id = known.get(&to[..]).copied().unwrap_or_else(|| {
                    order.push(to[..].into());
                    known.insert(to[..].into(), order.len() as u32 - 1);
                    order.len() as u32 - 1
                });
                graph.next.push(id << 1 | u32::from(ended));
            }
            if order.len() > limits.regular_states || limits.cancel.is_asked() {
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

impl Operand {
    fn new(hir: &Hir, automata: &Automata, limits: &Limits) -> Result<Operand, TerminalError> {
        match WordTree::new(hir) {
            Some(words) => Ok(Operand::Words(words)),
            None => Ok(Operand::Automaton(automata.get(hir, limits)?)),
        }
    }

    fn start(&self) -> u32 {
        match self {
            Operand::Automaton(automaton) => automaton.start,
            Operand::Words(words) => words.start(),
        }
    }

    fn next(&self, state: u32, byte: u8) -> u32 {
        match self {
            Operand::Automaton(automaton) => automaton.next(state, byte),
            Operand::Words(words) => words.next(state, byte),
        }
    }

    fn is_dead(&self, state: u32) -> bool {
        match self {
            Operand::Automaton(automaton) => automaton.is_dead(state),
            Operand::Words(words) => words.is_dead(state),
        }
    }

    fn accepts(&self, state: u32) -> bool {
        match self {
            Operand::Automaton(automaton) => automaton.accepts(state),
            Operand::Words(words) => words.accepts(state),
        }
    }

    fn class(&self, byte: u8) -> u8 {
        match self {
            Operand::Automaton(automaton) => automaton.class(byte),
            Operand::Words(words) => words.class(byte),
        }
    }
}

/// Units can only be counted if it is clear where one ends: where a unit is complete, it cannot go on.
fn check_prefix_code(unit: &Arc<Automaton>, limits: &Limits) -> Result<(), TerminalError> {
    let alone = Operands::over(vec![(Operand::Automaton(unit.clone()), true)], None, None);
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

/// The coarsest byte classes that all operands agree on, and one byte of each.
fn joint_classes(matches: &[(Operand, bool)], unit: Option<&Automaton>) -> (Box<[u8; 256]>, Vec<u8>) {
    let mut known: FxHashMap<Vec<u8>, u8> = FxHashMap::default();
    let mut classes = Box::new([0u8; 256]);
    let mut representatives = Vec::new();
    for byte in 0..=255u8 {
        let signature = matches.iter().map(|(operand, _)| operand.class(byte));
        let signature: Vec<u8> = signature.chain(unit.map(|unit| unit.class(byte))).collect();
        let class = *known.entry(signature).or_insert_with(|| {
            representatives.push(byte);
            (representatives.len() - 1) as u8
        });
        classes[byte as usize] = class;
    }
    (classes, representatives)
}

/// The explored product, before and after its dead ends are cut away.
pub(super) struct Graph {
    stride: usize,
    /// `target * 2 + (1 if a unit ends)`, or `DEAD`.
    pub(super) next: Vec<u32>,
    pub(super) accepting: Vec<bool>,
}

impl Graph {
    pub(super) fn targets(&self, state: usize) -> impl Iterator<Item = (u32, bool)> {
        let row = &self.next[state * self.stride..(state + 1) * self.stride];
        row.iter()
            .filter(|&&packed| packed != DEAD)
            .map(|&packed| (packed >> 1, packed & 1 == 1))
    }

    /// Cuts away the states from which no word can be completed, and numbers what is left anew in the order in
    /// which it is reached; an error if the start is among them.
    pub(super) fn trim(&mut self) -> Result<(), TerminalError> {
        let live = self.live();
        if !live[0] {
            return Err(TerminalError::Empty);
        }
        for packed in &mut self.next {
            if *packed != DEAD && !live[(*packed >> 1) as usize] {
                *packed = DEAD;
            }
        }
        if live.contains(&false) {
            self.renumber();
        }
        Ok(())
    }

    /// Keeps only what the start still reaches.
    fn renumber(&mut self) {
        let mut numbers = vec![u32::MAX; self.accepting.len()];
        numbers[0] = 0;
        let mut order = vec![0u32];
        let mut at = 0;
        while at < order.len() {
            for (target, _) in self.targets(order[at] as usize) {
                if numbers[target as usize] == u32::MAX {
                    numbers[target as usize] = order.len() as u32;
                    order.push(target);
                }
            }
            at += 1;
        }
        let renumbered = |&packed: &u32| match packed {
            DEAD => DEAD,
            _ => numbers[(packed >> 1) as usize] << 1 | (packed & 1),
        };
        let rows = order.iter().flat_map(|&state| {
            let row = state as usize * self.stride;
            self.next[row..row + self.stride].iter().map(renumbered)
        });
        let next = rows.collect();
        self.accepting = order
            .iter()
            .map(|&state| self.accepting[state as usize])
            .collect();
        self.next = next;
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
    pub(super) fn infinite(&self) -> Vec<bool> {
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

    pub(super) fn units(&self) -> UnitGraph {
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
