//! The transitions of a product as one list, before and after trimming.

use super::counter::UnitGraph;
use super::error::TerminalError;

/// A transition from which no word can be completed.
pub(super) const DEAD: u32 = u32::MAX;

/// The explored product, before and after trimming.
pub(super) struct Graph {
    pub(super) stride: usize,
    /// The transitions: `target * 2 + (1 if a unit ends)`, or `DEAD`.
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

    /// Removes the states from which no word can be completed, and renumbers the others in the order in which
    /// they are reached. Returns an error if the start is among the removed states.
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

    /// Keeps only the states that the start still reaches.
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
        let into = Reverse::new(&self.next, self.stride);
        let mut live = self.accepting.clone();
        let mut open: Vec<u32> = (0..live.len() as u32).filter(|&s| live[s as usize]).collect();
        while let Some(state) = open.pop() {
            for &from in into.of(state) {
                if !std::mem::replace(&mut live[from as usize], true) {
                    open.push(from);
                }
            }
        }
        live
    }

    pub(super) fn units(&self) -> UnitGraph {
        let edges = (0..self.accepting.len()).map(|state| {
            let mut targets: Vec<(u32, bool)> = self.targets(state).collect();
            targets.sort_unstable();
            targets.dedup();
            targets
        });
        UnitGraph::new(edges.collect(), &self.accepting)
    }
}

/// The predecessors of each state, one entry per edge.
struct Reverse {
    ends: Vec<u32>,
    from: Vec<u32>,
}

impl Reverse {
    fn new(next: &[u32], stride: usize) -> Reverse {
        let rows = || next.chunks_exact(stride);
        let mut ends = vec![0u32; next.len() / stride + 1];
        for &packed in next.iter().filter(|&&packed| packed != DEAD) {
            ends[(packed >> 1) as usize] += 1;
        }
        let mut sum = 0;
        for end in &mut ends {
            sum += *end;
            *end = sum;
        }
        let mut from = vec![0u32; sum as usize];
        for (row, state) in rows().zip(0u32..) {
            for &packed in row.iter().filter(|&&packed| packed != DEAD) {
                // The end of each list, counted down, becomes its beginning.
                let end = &mut ends[(packed >> 1) as usize];
                *end -= 1;
                from[*end as usize] = state;
            }
        }
        Reverse { ends, from }
    }

    fn of(&self, state: u32) -> &[u32] {
        let at = state as usize;
        &self.from[self.ends[at] as usize..self.ends[at + 1] as usize]
    }
}
