//! The exact law of a sampler, by running it once for every path of its choices.
//!
//! ```text
//!            choose [½, ½]                 script      outcome   probability
//!            0/         \1                 0 0         "aa"      ½ · ¼
//!   choose [¼, ¾]      (end)               0 1         "ab"      ½ · ¾
//!     0/     \1                            1           "b"       ½
//! ```
//!
//! A run replays its script and, past the end of it, takes the first possible option. Afterwards the last
//! choice that has another option takes its next one, and the choices after it are dropped: an odometer over
//! a tree that is never built.

use std::collections::BTreeMap;

use super::weight::sum;
use super::{Chooser, Place, Weight};

struct Choice<W> {
    taken: usize,
    weights: Vec<W>,
}

impl<W: Weight> Choice<W> {
    fn next_possible(&self, from: usize) -> Option<usize> {
        (from..self.weights.len()).find(|&index| self.weights[index].is_positive())
    }

    fn probability(&self) -> W {
        self.weights[self.taken].clone() / sum(&self.weights)
    }
}

/// A chooser that follows one path of choices and remembers it; see [`law_of`].
pub struct Every<W> {
    path: Vec<Choice<W>>,
    at: usize,
}

impl<W: Weight> Chooser<W> for Every<W> {
    fn choose(&mut self, _place: Place, weights: &[W]) -> usize {
        if self.at == self.path.len() {
            let mut choice = Choice {
                taken: 0,
                weights: weights.to_vec(),
            };
            choice.taken = choice.next_possible(0).unwrap_or(0);
            self.path.push(choice);
        }
        self.at += 1;
        self.path[self.at - 1].taken
    }
}

impl<W: Weight> Every<W> {
    fn probability(&self) -> W {
        self.path
            .iter()
            .fold(W::one(), |product, choice| product * choice.probability())
    }

    fn advance(&mut self) -> bool {
        self.at = 0;
        while let Some(mut last) = self.path.pop() {
            if let Some(next) = last.next_possible(last.taken + 1) {
                last.taken = next;
                self.path.push(last);
                return true;
            }
        }
        false
    }
}

/// Returns the law of `run`: each outcome with its probability. `run` must take all its randomness from the
/// chooser and do the same when the choices are the same; it is called once for every path, so this is for
/// small examples.
///
/// ```
/// use lexiform_law::{Chooser, Place, law_of};
///
/// let heads = law_of(|coin| (0..2).filter(|&toss| coin.choose(Place::new(0, toss), &[0.5, 0.5]) == 0).count());
/// assert_eq!(heads.into_iter().collect::<Vec<_>>(), [(0, 0.25), (1, 0.5), (2, 0.25)]);
/// ```
pub fn law_of<W: Weight, T: Ord>(mut run: impl FnMut(&mut Every<W>) -> T) -> BTreeMap<T, W> {
    let mut law = BTreeMap::new();
    let mut every = Every {
        path: Vec::new(),
        at: 0,
    };
    loop {
        let outcome = run(&mut every);
        let probability = every.probability();
        let entry = law.entry(outcome).or_insert_with(W::zero);
        *entry = entry.clone() + probability;
        if !every.advance() {
            return law;
        }
    }
}
