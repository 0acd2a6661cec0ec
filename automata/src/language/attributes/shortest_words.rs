//! Computes the lengths of the shortest words of a regular language, backwards from the ends of its words.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::lengths::{LAYERS, Lengths, NEVER, constant_between};
use crate::language::byte_set::ByteSet;
use crate::language::counter::Cursor;
use crate::language::terminal::Terminal;
use crate::work::spend;

/// The maximum number of lengths that are stored for one terminal.
const NUMBERS: usize = 1 << 20;
/// The maximum number of places that a search for distinct words visits.
const PLACES: usize = 1 << 14;

/// Returns the lengths in steps over these bytes alone. If they are all bytes, all grammars with the terminal
/// share the lengths, unless these may be much larger than the terminal.
pub(crate) fn lengths_over(terminal: &Terminal, usable: &ByteSet) -> Arc<Lengths> {
    match usable.len() == 256 && terminal.bounds().is_none() {
        true => terminal.shortest_words(|| lengths(terminal, usable)),
        false => Arc::new(lengths(terminal, usable)),
    }
}

/// Computes the layers, until one equals the previous one plus a constant.
fn lengths(terminal: &Terminal, usable: &ByteSet) -> Lengths {
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
    Lengths::new(layers, slope, bounds).followed_by(u64::from(terminal.blocks()))
}

/// Returns, for each state, the edges that lead into it, and whether they complete a unit.
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

/// Computes one layer: the first from acceptance, others from the previous layer over the edges that complete
/// a unit.
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

/// Returns the smallest length within which more than `taken` distinct words end, or [`NEVER`] if the search
/// becomes too large.
pub(crate) fn length_of_many(terminal: &Terminal, cursor: Cursor, usable: &ByteSet, taken: usize) -> u64 {
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
