//! The lengths of the shortest words of a regular language from each of its states.
//!
//! Without a counter this is one number per state. With a counter it depends on how many units are missing,
//! so there is a *layer* of numbers for each count:
//!
//! ```text
//!   layer[m][s]   the fewest bytes that lead from s to a word and complete exactly m units on the way
//! ```
//!
//! Each layer follows from the previous one by the same linear rule (over minimum and plus), so once a layer
//! equals the previous one plus a constant, all later ones do too, and no more need to be stored: a bound of
//! 10⁹ costs two layers.

use crate::language::counter::Cursor;
use crate::work::spend;

/// The length if no path exists or none is known.
pub const NEVER: u64 = u64::MAX;

/// Returns the sum of two lengths; a sum with [`NEVER`] is [`NEVER`].
pub(crate) fn plus(a: u64, b: u64) -> u64 {
    a.saturating_add(b)
}

/// The maximum number of layers that are stored; lengths beyond are bounded, not known.
pub(super) const LAYERS: usize = 1 << 12;

/// The lengths of one terminal.
#[derive(Debug)]
pub(crate) struct Lengths {
    /// The layers; a single one without a counter.
    layers: Vec<Vec<u64>>,
    /// The difference between each layer beyond the last and its predecessor, if it is known.
    slope: Option<u64>,
    /// The largest finite number of each layer and those before it.
    peaks: Vec<u64>,
    /// `true` if every state that can complete a unit can complete any positive number of units.
    even: bool,
    bounds: Option<(u64, Option<u64>)>,
    /// The steps after a word before anything may follow: one if some bytes must not follow, because a space
    /// may be missing.
    after: u64,
}

impl Lengths {
    /// Creates lengths from these layers, the slope beyond them, and the bounds of the count.
    pub(super) fn new(
        layers: Vec<Vec<u64>>,
        slope: Option<u64>,
        bounds: Option<(u64, Option<u64>)>,
    ) -> Lengths {
        Lengths {
            peaks: peaks(&layers),
            even: is_even(&layers),
            layers,
            slope,
            bounds,
            after: 0,
        }
    }

    /// Returns these lengths with so many more steps after each word, which count for upper bounds only.
    pub(super) fn followed_by(self, after: u64) -> Lengths {
        Lengths { after, ..self }
    }

    /// Returns the fewest steps from the cursor to the end of a word. With `achievable` the result is an
    /// upper bound, otherwise a lower bound.
    pub(crate) fn shortest(&self, cursor: Cursor, achievable: bool) -> u64 {
        let state = cursor.state as usize;
        let Some((min, max)) = self.bounds else {
            let after = if achievable { self.after } else { 0 };
            return plus(self.layers[0][state], after);
        };
        let missing = min.saturating_sub(cursor.count);
        let left = max.map_or(u64::MAX, |max| max.saturating_sub(cursor.count));
        let mut best = NEVER;
        let mut units = missing;
        // A unit has at least one byte, so more units than the best word has bytes cannot be better.
        while units <= left && units < best {
            spend(1);
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

    /// Returns an upper bound on the distance to a word, over all cursors reachable from this one within the
    /// terminal.
    pub(crate) fn peak(&self, cursor: Cursor) -> u64 {
        let Some((min, _)) = self.bounds else {
            return plus(self.peaks[0], self.after);
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

/// Returns the difference between two layers, if it is the same everywhere.
pub(super) fn constant_between(first: &[u64], second: &[u64]) -> Option<u64> {
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
        // A state from which no word can be written with these bytes has no bound.
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

/// Returns `true` if every state can complete any positive number of units, or only zero.
fn is_even(layers: &[Vec<u64>]) -> bool {
    let any = |state: usize| layers[1..].iter().all(|layer| layer[state] != NEVER);
    let none =
        |state: usize| layers[0][state] != NEVER && layers[1..].iter().all(|layer| layer[state] == NEVER);
    (0..layers[0].len()).all(|state| any(state) || none(state))
}
