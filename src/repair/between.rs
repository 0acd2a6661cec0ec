//! The cheapest edits between two texts.
//!
//! ```text
//!   from   ab│cd     the cheapest way crosses the middle of `from` at the place in `to` where the costs
//!   to     axx│d     before and after it have the least sum; then both halves in the same way
//! ```
//!
//! This is the table of Wagner & Fischer 1974, one row at a time, divided as in Hirschberg 1975, since the
//! table for two texts of a megabyte would take a terabyte. The common prefix and suffix of the texts stay
//! unchanged in some cheapest way: an edit that takes part of them could be made beside them at the same
//! cost.

use super::edits::{Step, apply};
use super::task::{Repair, RepairError, RepairLimits, Task};
use super::weights::{Weights, cost_of};

/// Returns the edits of lowest cost that lead from the task's text to another one.
///
/// # Errors
/// Returns an error if the texts have too many pairs of places, or if the comparison was cancelled.
pub(super) fn cheapest(task: &Task<'_>, to: &str) -> Result<Repair, RepairError> {
    let from: Vec<char> = task.text.chars().collect();
    let to: Vec<char> = to.chars().collect();
    let mut comparison = Comparison {
        weights: Weights::of(task.costs),
        limits: task.limits,
        steps: Vec::with_capacity(from.len().max(to.len())),
    };
    let (begun, ended) = common(&from, &to);
    let inner = (&from[begun..from.len() - ended], &to[begun..to.len() - ended]);
    let (pairs, limit) = (inner.0.len().saturating_mul(inner.1.len()), task.limits.nodes);
    if pairs > limit {
        return Err(RepairError::TooManyPairs { pairs, limit });
    }
    comparison.compare(&from, &to)?;
    let weight = comparison
        .steps
        .iter()
        .map(|step| comparison.weights.of_step(*step));
    let cost = cost_of(weight.sum());
    let (text, edits) = apply(task.text, &comparison.steps);
    let changes = Vec::new();
    Ok(Repair {
        text,
        cost,
        edits,
        changes,
    })
}

/// Returns the lengths of the common prefix, and of the common suffix after it.
fn common(from: &[char], to: &[char]) -> (usize, usize) {
    let begun = from.iter().zip(to).take_while(|(old, new)| old == new).count();
    let ends = from[begun..].iter().rev().zip(to[begun..].iter().rev());
    (begun, ends.take_while(|(old, new)| old == new).count())
}

struct Comparison<'a> {
    weights: Weights,
    limits: &'a RepairLimits,
    /// The steps from the beginning of both texts to the place where they are currently compared.
    steps: Vec<Step>,
}

impl Comparison<'_> {
    /// Adds the cheapest steps from one text to another. It recurses on halves, so its depth is at most the
    /// number of bits of a length.
    fn compare(&mut self, from: &[char], to: &[char]) -> Result<(), RepairError> {
        let (begun, ended) = common(from, to);
        let keep = |count| std::iter::repeat_n(Step::Keep, count);
        self.steps.extend(keep(begun));
        let (from, to) = (&from[begun..from.len() - ended], &to[begun..to.len() - ended]);
        match (from, to) {
            (from, []) => self.steps.extend(from.iter().map(|_| Step::Delete)),
            ([], to) => self.steps.extend(to.iter().map(|new| Step::Insert(*new))),
            ([old], to) => self.replace(*old, to),
            (from, to) => {
                let (before, behind) = from.split_at(from.len() / 2);
                let middle = self.crossing(before, behind, to)?;
                self.compare(before, &to[..middle])?;
                self.compare(behind, &to[middle..])?;
            }
        }
        self.steps.extend(keep(ended));
        Ok(())
    }

    /// Adds the cheapest steps from one character to one or more: the character stays if it is among them.
    fn replace(&mut self, old: char, to: &[char]) {
        let insert = |new: &char| Step::Insert(*new);
        if let Some(at) = to.iter().position(|new| *new == old) {
            self.steps.extend(to[..at].iter().map(insert));
            self.steps.push(Step::Keep);
            self.steps.extend(to[at + 1..].iter().map(insert));
            return;
        }
        let is_substituted = self.weights.substitute <= self.weights.delete + self.weights.insert;
        let (first, rest) = match (is_substituted, to) {
            (true, [first, rest @ ..]) => (Step::Substitute(*first), rest),
            _ => (Step::Delete, to),
        };
        self.steps.push(first);
        self.steps.extend(rest.iter().map(insert));
    }

    /// Returns the place in `to` that the cheapest way passes between the two parts of the other text.
    fn crossing(&self, before: &[char], behind: &[char], to: &[char]) -> Result<usize, RepairError> {
        let forward = self.row(before.iter(), to.iter())?;
        let backward = self.row(behind.iter().rev(), to.iter().rev())?;
        let sums = forward.iter().zip(backward.iter().rev());
        let sums = sums.map(|(before, behind)| before + behind).enumerate();
        Ok(sums.min_by_key(|(_, sum)| *sum).map_or(0, |(place, _)| place))
    }

    /// Returns the weights of the cheapest ways from all of one text to every prefix of the other.
    fn row<'t>(
        &self,
        from: impl Iterator<Item = &'t char>,
        to: impl Iterator<Item = &'t char>,
    ) -> Result<Vec<u64>, RepairError> {
        let Weights {
            insert,
            delete,
            substitute,
        } = self.weights;
        let to: Vec<char> = to.copied().collect();
        let mut row: Vec<u64> = (0..=to.len() as u64).map(|count| count * insert).collect();
        for old in from {
            if self.limits.cancel.is_asked() {
                return Err(RepairError::Cancelled);
            }
            let mut diagonal = row[0];
            row[0] += delete;
            for (place, new) in to.iter().enumerate() {
                let kept = diagonal + if old == new { 0 } else { substitute };
                diagonal = row[place + 1];
                row[place + 1] = kept.min(diagonal + delete).min(row[place] + insert);
            }
        }
        Ok(row)
    }
}
