//! Decides from which (state, count) a word within the bounds can still be completed.
//!
//! Write `Len(s)` for the set of numbers of units that the completions of state `s` have. A pair (s, n) is
//! alive iff some `l ∈ Len(s)` has `min ≤ n + l ≤ max`. There are three cases, each exact:
//!
//! ```text
//!   no max           the longest completion of s must reach min       (∞ if s can reach a loop that counts)
//!   n ≥ min          the shortest completion of s must not pass max
//!   n < min ≤ max    layer[min − n] ∋ s, where layer[0] = { s : shortest(s) ≤ max − min } and
//!                    layer[k] = { s : some path with exactly one unit leads from s into layer[k − 1] }
//! ```
//!
//! The layers are a deterministic sequence of sets, so once two neighbours are equal, all later ones are too,
//! and no more need to be stored: a bound of 10⁹ costs a handful of sets.

use std::collections::VecDeque;
use std::sync::Arc;

use super::components::components;
use super::error::TerminalError;
use crate::limits::Limits;

/// The position of a run through a [`Terminal`](super::Terminal): a state and the units completed so far
/// (clamped).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cursor {
    /// The state of the product.
    pub state: u32,
    /// The number of completed units, as far as it still matters.
    pub count: u64,
}

/// The transitions of a trimmed product, each marked if it completes a unit.
#[derive(Debug)]
pub(super) struct UnitGraph {
    edges: Vec<Vec<(u32, bool)>>,
    /// The smallest number of units in a completion of each state.
    shortest: Arc<[u64]>,
}

impl UnitGraph {
    pub(super) fn new(edges: Vec<Vec<(u32, bool)>>, accepting: &[bool]) -> UnitGraph {
        UnitGraph {
            shortest: shortest(&edges, accepting).into(),
            edges,
        }
    }
}

/// The bounds of a counted language and the data to judge counts.
#[derive(Debug)]
pub(super) struct Counter {
    min: u64,
    max: Option<u64>,
    shortest: Arc<[u64]>,
    longest: Vec<u64>,
    layers: Vec<Vec<bool>>,
    /// The largest finite value in `longest`; `nearest` is the largest finite value in `shortest`.
    farthest: u64,
    nearest: u64,
}

const NEVER: u64 = u64::MAX;

impl Counter {
    pub(super) fn new(
        graph: &UnitGraph,
        min: u64,
        max: Option<u64>,
        limits: &Limits,
    ) -> Result<Counter, TerminalError> {
        let shortest = graph.shortest.clone();
        let longest = if max.is_none() { longest(graph) } else { Vec::new() };
        let layers = match max {
            Some(max) if min <= max => layers(graph, &shortest, min, max, limits)?,
            _ => Vec::new(),
        };
        let greatest = |of: &[u64]| {
            of.iter()
                .copied()
                .filter(|&units| units != NEVER)
                .max()
                .unwrap_or(0)
        };
        Ok(Counter {
            min,
            max,
            farthest: greatest(&longest),
            nearest: greatest(&shortest),
            shortest,
            longest,
            layers,
        })
    }

    pub(super) fn bytes(&self) -> usize {
        (self.shortest.len() + self.longest.len()) * 8 + self.layers.iter().map(Vec::len).sum::<usize>()
    }

    pub(super) fn bounds(&self) -> (u64, Option<u64>) {
        (self.min, self.max)
    }

    /// Returns the smallest number of units in a completion of a state.
    pub(super) fn least(&self, state: u32) -> u64 {
        self.shortest[state as usize]
    }

    pub(super) fn is_unbounded(&self) -> bool {
        self.max.is_none()
    }

    /// Maps all counts beyond the largest that matters to one value.
    pub(super) fn clamp(&self, count: u64) -> u64 {
        if self.max.is_none() {
            count.min(self.min)
        } else {
            count
        }
    }

    pub(super) fn in_range(&self, count: u64) -> bool {
        count >= self.min && self.max.is_none_or(|max| count <= max)
    }

    pub(super) fn alive(&self, state: u32, count: u64) -> bool {
        let state = state as usize;
        let Some(max) = self.max else {
            return self.longest[state] >= self.min.saturating_sub(count);
        };
        if self.min > max || count > max {
            return false;
        }
        if count >= self.min {
            return self.shortest[state] <= max - count;
        }
        let missing = (self.min - count).min(self.layers.len() as u64 - 1);
        self.layers[missing as usize][state]
    }

    /// Returns the units missing to the lower bound and those left to the upper one, as far as `horizon` more
    /// units can distinguish them; `None` if neither bound can be reached.
    pub(super) fn horizon(&self, count: u64, horizon: u64) -> Option<(u64, u64)> {
        let missing = self.min.saturating_sub(count);
        // Beyond the last stored layer all layers are equal, and so are distances that only a loop can cover:
        // only counts within `horizon` of the greatest distance that matters can make a difference.
        let layers = self.layers.len() as u64 + 1;
        let low = missing.min(horizon.saturating_add(self.farthest).saturating_add(layers));
        let left = self.max.map_or(NEVER, |max| max.saturating_sub(count));
        let reach = horizon.saturating_add(self.nearest);
        (low > 0 || left <= reach).then(|| (low, left.min(reach.saturating_add(1))))
    }
}

/// Returns the smallest number of units in a completion of each state, by a breadth-first search in which
/// only units cost.
fn shortest(edges: &[Vec<(u32, bool)>], accepting: &[bool]) -> Vec<u64> {
    let mut into: Vec<Vec<(u32, bool)>> = vec![Vec::new(); edges.len()];
    for (from, here) in edges.iter().enumerate() {
        for &(to, unit) in here {
            into[to as usize].push((from as u32, unit));
        }
    }
    let mut distance: Vec<u64> = accepting.iter().map(|&a| if a { 0 } else { NEVER }).collect();
    let mut open: VecDeque<u32> = (0..distance.len() as u32)
        .filter(|&s| accepting[s as usize])
        .collect();
    while let Some(state) = open.pop_front() {
        for &(from, unit) in &into[state as usize] {
            let through = distance[state as usize] + u64::from(unit);
            if through < distance[from as usize] {
                distance[from as usize] = through;
                if unit {
                    open.push_back(from)
                } else {
                    open.push_front(from)
                }
            }
        }
    }
    distance
}

/// Returns the greatest number of units in a completion of each state; `NEVER` means unbounded.
///
/// Components are numbered so that edges lead to smaller numbers, so one pass in that order visits every
/// successor first; a component with a counting edge inside itself is unbounded.
fn longest(graph: &UnitGraph) -> Vec<u64> {
    let plain: Vec<Vec<u32>> = graph
        .edges
        .iter()
        .map(|edges| edges.iter().map(|&(to, _)| to).collect())
        .collect();
    let component = components(&plain);
    let mut order: Vec<usize> = (0..graph.edges.len()).collect();
    order.sort_by_key(|&state| component[state]);
    let mut best = vec![0u64; graph.edges.len()];
    for state in order {
        let own = component[state] as usize;
        for &(to, unit) in &graph.edges[state] {
            let inside = component[to as usize] as usize == own;
            let through = match (inside, unit) {
                (true, true) => NEVER,
                (true, false) => continue,
                (false, unit) => best[component[to as usize] as usize].saturating_add(u64::from(unit)),
            };
            best[own] = best[own].max(through);
        }
    }
    component
        .iter()
        .map(|&component| best[component as usize])
        .collect()
}

fn layers(
    graph: &UnitGraph,
    shortest: &[u64],
    min: u64,
    max: u64,
    limits: &Limits,
) -> Result<Vec<Vec<bool>>, TerminalError> {
    let mut layers = vec![
        shortest
            .iter()
            .map(|&units| units <= max - min)
            .collect::<Vec<bool>>(),
    ];
    for _ in 0..min {
        let last = layers.last().expect("there is a first layer");
        let next = before_one_unit(graph, last);
        if next == *last {
            break;
        }
        layers.push(next);
        if layers.len() * graph.edges.len() > limits.regular_bytes || limits.cancel.is_asked() {
            return Err(TerminalError::Limit {
                what: "bytes of counting tables",
                limit: limits.regular_bytes,
            });
        }
    }
    Ok(layers)
}

/// Returns the states from which a path with exactly one unit leads into `goal`.
fn before_one_unit(graph: &UnitGraph, goal: &[bool]) -> Vec<bool> {
    let mut found: Vec<bool> = graph
        .edges
        .iter()
        .map(|edges| edges.iter().any(|&(to, unit)| unit && goal[to as usize]))
        .collect();
    loop {
        let mut changed = false;
        for state in 0..found.len() {
            if !found[state]
                && graph.edges[state]
                    .iter()
                    .any(|&(to, unit)| !unit && found[to as usize])
            {
                found[state] = true;
                changed = true;
            }
        }
        if !changed {
            return found;
        }
    }
}
