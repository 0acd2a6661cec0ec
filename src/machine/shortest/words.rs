//! The shortest words of a regular language from each of its states.
//!
//! Without a counter that is one number a state. With one it depends on how many units are missing, so there is a
//! *layer* of numbers for each count:
//!
//! ```text
//!   layer[m][s]   the fewest bytes that lead from s to a word and complete exactly m units on the way
//! ```
//!
//! A layer follows from the one before by the same linear rule (over minimum and plus), so as soon as a layer is the
//! one before plus a constant, all later ones are too, and nothing more is stored: a bound of 10⁹ costs two layers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{NEVER, plus};
use crate::machine::bytes::ByteSet;
use crate::machine::terminal::{Cursor, Terminal};
use crate::work::spend;

/// No more layers than this are stored; what lies beyond is bounded, not known.
const LAYERS: usize = 1 << 12;
/// No more numbers than this are stored for one terminal.
const NUMBERS: usize = 1 << 20;
/// How many places a search for different words may visit.
const PLACES: usize = 1 << 14;

/// The lengths of one terminal.
#[derive(Debug)]
pub(in crate::machine) struct Words {
    /// One layer without a counter.
    layers: Vec<Vec<u64>>,
    /// What each layer beyond the last adds to it, where that is known.
    slope: Option<u64>,
    /// The greatest finite number of each layer and those before it.
    peaks: Vec<u64>,
    /// Whether every state can complete any number of units from one on, but for those behind the last.
    even: bool,
    bounds: Option<(u64, Option<u64>)>,
}

impl Words {
    /// The lengths in steps over these bytes alone. Where they are all bytes, all grammars with the terminal share them, unless
    /// they may be much larger than it.
    pub(super) fn over(terminal: &Terminal, usable: &ByteSet) -> Arc<Words> {
        match usable.len() == 256 && terminal.bounds().is_none() {
            true => terminal.shortest_words(|| Words::new(terminal, usable)),
            false => Arc::new(Words::new(terminal, usable)),
        }
    }

    fn new(terminal: &Terminal, usable: &ByteSet) -> Words {
        let bounds = terminal.bounds();
        let into = edges_into(terminal, usable);
        let first = match bounds {
            None => layer(terminal, &into, None, |_| true),
            Some(_) => layer(terminal, &into, None, |unit| !unit),
        };
        let mut layers = vec![first];
        let mut slope = None;
        if let Some((min, _)) = bounds {
            let most = LAYERS.min(NUMBERS / terminal.len().max(1)).max(2);
            let wanted = usize::try_from(min)
                .unwrap_or(usize::MAX)
                .saturating_add(terminal.len() + 2);
            while layers.len() < wanted.min(most) && slope.is_none() {
                let last = &layers[layers.len() - 1];
                let next = layer(terminal, &into, Some(last), |unit| !unit);
                slope = constant_between(last, &next);
                layers.push(next);
            }
        }
        Words {
            peaks: peaks(&layers),
            even: is_even(&layers),
            layers,
            slope,
            bounds,
        }
    }

    /// The fewest steps from the cursor to the end of a word; with `achievable` never too few, else never too many.
    pub(super) fn shortest(&self, cursor: Cursor, achievable: bool) -> u64 {
        let state = cursor.state as usize;
        let Some((min, max)) = self.bounds else {
            return self.layers[0][state];
        };
        let missing = min.saturating_sub(cursor.count);
        let left = max.map_or(u64::MAX, |max| max.saturating_sub(cursor.count));
        let mut best = NEVER;
        let mut units = missing;
        // A unit has at least one byte, so that more units than the best has bytes cannot be better.
        while units <= left && units < best {
            if units - missing > LAYERS as u64 {
                return if achievable { best } else { best.min(units) };
            }
            let exact = self.at(units, state);
            if exact.is_none() && !achievable {
                return best.min(units);
            }
            best = best.min(exact.unwrap_or(NEVER));
            units += 1;
        }
        best
    }

    /// No cursor that is reached from this one within the terminal is further from a word than this.
    pub(super) fn peak(&self, cursor: Cursor) -> u64 {
        let Some((min, _)) = self.bounds else {
            return self.peaks[0];
        };
        if !self.even {
            return NEVER;
        }
        let missing = min.saturating_sub(cursor.count).max(1);
        let last = self.layers.len() as u64 - 1;
        match (missing <= last, self.slope) {
            (true, _) => self.peaks[missing as usize],
            (false, Some(slope)) => plus(self.peaks[last as usize], slope.saturating_mul(missing - last)),
            (false, None) => NEVER,
        }
    }

    fn at(&self, units: u64, state: usize) -> Option<u64> {
        let last = self.layers.len() as u64 - 1;
        if units <= last {
            return Some(self.layers[units as usize][state]);
        }
        let slope = self.slope?;
        Some(plus(
            self.layers[last as usize][state],
            slope.saturating_mul(units - last),
        ))
    }
}

/// For each state the edges that lead into it, and whether they complete a unit.
fn edges_into(terminal: &Terminal, usable: &ByteSet) -> Vec<Vec<(u32, bool)>> {
    let mut into = vec![Vec::new(); terminal.len()];
    let kinds = terminal.kinds_of(*usable);
    for from in 0..terminal.len() as u32 {
        spend(1);
        let next = kinds.iter().filter_map(|&byte| terminal.next_unit(from, byte));
        for (to, unit) in next {
            let edges: &mut Vec<(u32, bool)> = &mut into[to as usize];
            if edges.last() != Some(&(from, unit)) {
                edges.push((from, unit));
            }
        }
    }
    into
}

/// One layer: from acceptance for the first, from the layer before over the edges that complete a unit for others.
fn layer(
    terminal: &Terminal,
    into: &[Vec<(u32, bool)>],
    before: Option<&Vec<u64>>,
    stays: impl Fn(bool) -> bool,
) -> Vec<u64> {
    let mut best = vec![NEVER; into.len()];
    let mut open = BinaryHeap::new();
    for state in 0..into.len() {
        match before {
            None if terminal.is_accepting_state(state as u32) => open.push(Reverse((0, state as u32))),
            None => {}
            Some(before) if before[state] == NEVER => {}
            Some(before) => {
                let units = into[state].iter().filter(|(_, unit)| *unit);
                open.extend(units.map(|&(from, _)| Reverse((before[state] + 1, from))));
            }
        }
    }
    while let Some(Reverse((length, state))) = open.pop() {
        spend(1);
        if length >= best[state as usize] {
            continue;
        }
        best[state as usize] = length;
        let inner = into[state as usize].iter().filter(|&&(_, unit)| stays(unit));
        open.extend(inner.map(|&(from, _)| Reverse((length + 1, from))));
    }
    best
}

/// What the second layer adds to the first, if that is the same everywhere.
fn constant_between(first: &[u64], second: &[u64]) -> Option<u64> {
    let mut slope = None;
    for (&a, &b) in first.iter().zip(second) {
        match (a, b) {
            (NEVER, NEVER) => {}
            (NEVER, _) | (_, NEVER) => return None,
            _ if b < a || slope.is_some_and(|slope| slope != b - a) => return None,
            _ => slope = Some(b - a),
        }
    }
    slope
}

fn peaks(layers: &[Vec<u64>]) -> Vec<u64> {
    let mut peak = 0;
    let greatest = |layer: &Vec<u64>| layer.iter().copied().filter(|&length| length != NEVER).max();
    if let [only] = layers {
        // A state without any way to a word over these bytes leaves no bound.
        return vec![only.iter().copied().max().unwrap_or(NEVER)];
    }
    layers
        .iter()
        .map(|layer| {
            peak = peak.max(greatest(layer).unwrap_or(0));
            peak
        })
        .collect()
}

/// Whether every state can complete any number of units from one on, but for states behind the last unit.
fn is_even(layers: &[Vec<u64>]) -> bool {
    let any = |state: usize| layers[1..].iter().all(|layer| layer[state] != NEVER);
    let none =
        |state: usize| layers[0][state] != NEVER && layers[1..].iter().all(|layer| layer[state] == NEVER);
    (0..layers[0].len()).all(|state| any(state) || none(state))
}

/// The least length within which more than `taken` different words end, or [`NEVER`] if that is not found out soon.
pub(super) fn length_of_many(terminal: &Terminal, cursor: Cursor, usable: &ByteSet, taken: usize) -> u64 {
    let mut places = FxHashMap::from_iter([(cursor, 1usize)]);
    let (mut words, mut visited) = (0usize, 0);
    for length in 0.. {
        let ending = places
            .iter()
            .filter(|(cursor, _)| terminal.is_accepting(**cursor));
        words = ending.fold(words, |words, (_, &ways)| words.saturating_add(ways));
        if words > taken {
            return length;
        }
        visited += places.len();
        if places.is_empty() || visited > PLACES {
            break;
        }
        let mut next: FxHashMap<Cursor, usize> = FxHashMap::default();
        spend(places.len());
        for (&cursor, &ways) in &places {
            let usable = (0..=255u8).filter(|&byte| usable.contains(byte));
            for to in usable.filter_map(|byte| terminal.next(cursor, byte)) {
                let known = next.entry(to).or_default();
                *known = known.saturating_add(ways);
            }
        }
        places = next;
    }
    NEVER
}
