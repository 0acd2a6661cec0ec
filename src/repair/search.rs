//! The shortest path of edits, found with A*.
//!
//! ```text
//!   node (configuration, place)   keep, delete, substitute ─► place + 1    insert ─► same place
//!   order                         cost so far + lower bound on insertions; of equals, the farthest in the text
//! ```
//!
//! A node is taken from the queue twice: first to keep the next character, which costs nothing, and again for
//! edits, once nothing cheaper is left. So the many nodes that are as far away as the end itself are never
//! edited.
//!
//! The bound is never too high, so the first end that is taken from the queue is the nearest. A node that is
//! reached again at a lower cost is examined again: the bound need not be consistent.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::characters::{Characters, after};
use super::edits::{Step, apply};
use super::remaining::Remaining;
use super::task::{Repair, RepairError, RepairLimits, Task};
use super::weights::{Weights, cost_of};
use lexiform_automata::matcher::Grammar;
use lexiform_automata::pushdown::ConfigId;

/// The number of nodes between two checks for cancellation.
const LOOK_EVERY: usize = 256;

/// Returns the text with the lowest cost on a grammar without further constraints, using a lower bound, and
/// only with the characters of the alphabet if there is one.
pub(super) fn nearest(
    grammar: &Grammar,
    task: &Task<'_>,
    remaining: Remaining,
    alphabet: Option<Vec<char>>,
) -> Result<Repair, RepairError> {
    let mut search = RepairSearch::new(grammar, task, remaining, Characters::new(alphabet))?;
    let end = search.run()?;
    let cost = cost_of(search.nodes[end as usize].cost);
    let (text, edits) = apply(task.text, &search.steps_to(end));
    let changes = Vec::new();
    Ok(Repair {
        text,
        cost,
        edits,
        changes,
    })
}

/// A configuration and a place in the text, and the best way there.
struct SearchNode {
    config: ConfigId,
    place: u32,
    cost: u64,
    from: u32,
    step: Step,
}

/// The next action on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NodeTurn {
    Keep,
    Edit,
}

/// An entry of the queue: the bound on the cost of the node, its turn, its place, its cost when it was
/// queued, and its number.
type Waiting = Reverse<(u64, NodeTurn, Reverse<u32>, Reverse<u64>, u32)>;

struct RepairSearch<'a> {
    grammar: &'a Grammar,
    text: Vec<char>,
    weights: Weights,
    limits: &'a RepairLimits,
    remaining: Remaining,
    characters: Characters,
    nodes: Vec<SearchNode>,
    known: FxHashMap<(ConfigId, u32), u32>,
    queue: BinaryHeap<Waiting>,
}

impl<'a> RepairSearch<'a> {
    fn new(
        grammar: &'a Grammar,
        task: &Task<'a>,
        remaining: Remaining,
        characters: Characters,
    ) -> Result<RepairSearch<'a>, RepairError> {
        let mut search = RepairSearch {
            grammar,
            text: task.text.chars().collect(),
            weights: Weights::of(task.costs),
            limits: task.limits,
            remaining,
            characters,
            nodes: Vec::new(),
            known: FxHashMap::default(),
            queue: BinaryHeap::new(),
        };
        search.reach((grammar.machine().start(), 0), 0, (0, Step::Keep))?;
        Ok(search)
    }

    /// Returns the number of the first end node.
    fn run(&mut self) -> Result<u32, RepairError> {
        let mut looked = 0_usize;
        while let Some(Reverse((bound, turn, _, Reverse(cost), number))) = self.queue.pop() {
            let node = &self.nodes[number as usize];
            if cost > node.cost {
                continue;
            }
            if self.nodes.len() > self.limits.nodes {
                let (reached, limit) = (cost_of(bound), self.limits.nodes);
                let cost = reached.saturating_sub(1);
                return Err(RepairError::TooFar { cost, limit });
            }
            if looked.is_multiple_of(LOOK_EVERY) && self.limits.cancel.is_asked() {
                return Err(RepairError::Cancelled);
            }
            looked += 1;
            let place = node.place;
            match turn {
                NodeTurn::Keep if place as usize == self.text.len() && self.is_end(node.config)? => {
                    return Ok(number);
                }
                NodeTurn::Keep => {
                    self.keep(number)?;
                    let edited = bound.max(cost + self.weights.least());
                    let edit = (edited, NodeTurn::Edit, Reverse(place), Reverse(cost), number);
                    self.queue.push(Reverse(edit));
                }
                NodeTurn::Edit => self.edit(number)?,
            }
        }
        Err(RepairError::NoText)
    }

    fn is_end(&self, config: ConfigId) -> Result<bool, RepairError> {
        let stacks = self.grammar.machine().stacks();
        Ok(self.grammar.ask(|| stacks.closure(config).accepting)?)
    }

    /// Returns the configuration after the next character of the text.
    fn kept(&self, config: ConfigId, place: u32) -> Result<Option<ConfigId>, RepairError> {
        let stacks = self.grammar.machine().stacks();
        let Some(&c) = self.text.get(place as usize) else {
            return Ok(None);
        };
        Ok(self.grammar.ask(|| after(stacks, config, c))?)
    }

    /// Continues from a node with the next character of the text.
    fn keep(&mut self, number: u32) -> Result<(), RepairError> {
        let SearchNode {
            config, place, cost, ..
        } = self.nodes[number as usize];
        match self.kept(config, place)? {
            Some(kept) => self.reach((kept, place + 1), cost, (number, Step::Keep)),
            None => Ok(()),
        }
    }

    /// Reaches all nodes that are one edit away from a node.
    fn edit(&mut self, number: u32) -> Result<(), RepairError> {
        let SearchNode {
            config, place, cost, ..
        } = self.nodes[number as usize];
        let kept = self.kept(config, place)?;
        let (stacks, characters) = (self.grammar.machine().stacks(), &mut self.characters);
        let ways = self.grammar.ask(|| characters.from(stacks, config))?;
        let has_more = (place as usize) < self.text.len();
        if has_more {
            let deleted = cost + self.weights.delete;
            self.reach((config, place + 1), deleted, (number, Step::Delete))?;
        }
        for &(next, c) in &*ways {
            if has_more && Some(next) != kept {
                let substituted = cost + self.weights.substitute;
                self.reach((next, place + 1), substituted, (number, Step::Substitute(c)))?;
            }
            if next != config {
                let inserted = cost + self.weights.insert;
                self.reach((next, place), inserted, (number, Step::Insert(c)))?;
            }
        }
        Ok(())
    }

    /// Records a way to a node, if it is the best one so far.
    fn reach(
        &mut self,
        (config, place): (ConfigId, u32),
        cost: u64,
        (from, step): (u32, Step),
    ) -> Result<(), RepairError> {
        let next = self.nodes.len() as u32;
        let number = *self.known.entry((config, place)).or_insert(next);
        let node = SearchNode {
            config,
            place,
            cost,
            from,
            step,
        };
        match self.nodes.get_mut(number as usize) {
            None => self.nodes.push(node),
            Some(known) if cost < known.cost => *known = node,
            Some(_) => return Ok(()),
        }
        let left = self.text.len() - place as usize;
        let (machine, remaining) = (self.grammar.machine(), &self.remaining);
        let insertions = self.grammar.ask(|| remaining.insertions(machine, config, left))?;
        let Some(insertions) = insertions else {
            return Ok(());
        };
        let bound = cost.saturating_add(insertions.saturating_mul(self.weights.insert));
        let keep = (bound, NodeTurn::Keep, Reverse(place), Reverse(cost), number);
        self.queue.push(Reverse(keep));
        Ok(())
    }

    /// Returns the steps from the beginning to a node.
    fn steps_to(&self, mut number: u32) -> Vec<Step> {
        let mut steps = Vec::new();
        // The first node is the beginning.
        while number > 0 {
            let node = &self.nodes[number as usize];
            steps.push(node.step);
            number = node.from;
        }
        steps.reverse();
        steps
    }
}
