//! The product of the automata of a regular language, explored and trimmed.
//!
//! Each part of a [`Regular`] is one DFA. A state of the product is a state of each; it is explored from the start,
//! one representative byte a class, and what cannot lead to a word is cut away.

use std::collections::HashMap;

use regex_automata::{
    Anchored,
    dfa::{Automaton, StartKind, dense},
    nfa::thompson,
    util::{primitives::StateID, start},
};
use regex_syntax::hir::Hir;

use super::counter::UnitGraph;
use super::terminal::TerminalError;
use crate::grammar::{Part, Regular};
use crate::limits::Limits;

/// A transition that leads to no word.
pub(super) const DEAD: u32 = u32::MAX;

/// The DFAs whose product is the language.
pub(super) struct Operands {
    /// Each with whether its words are wanted (`true`) or unwanted.
    matches: Vec<(dense::DFA<Vec<u32>>, bool)>,
    unit: Option<dense::DFA<Vec<u32>>>,
    /// The bounds of the counted part.
    pub(super) range: Option<(u64, Option<u64>)>,
    pub(super) classes: Box<[u8; 256]>,
    /// One byte of each class.
    pub(super) representatives: Vec<u8>,
}

impl Operands {
    pub(super) fn new(regular: &Regular, limits: &Limits) -> Result<Operands, TerminalError> {
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

    pub(super) fn explore(&self, limits: &Limits) -> Result<Graph, TerminalError> {
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
