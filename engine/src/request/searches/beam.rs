//! Beam search for the likeliest texts, which follows a limited number of prefixes at a time.
//!
//! ```text
//!   root ─ row ─┬─ row ─┐             all candidates of all beams, the likeliest first:
//!               ├─ row ─┼─ select ─►  an end finishes a text, another token makes a beam,
//!               └─ row ─┘             until there are `width` of these
//! ```
//!
//! A prefix is judged by `ln P` under the warped model, which the mask only cuts: the constraint takes no
//! part in the score. A finished text of `t` tokens has the score `ln P / t^α`, where `α` is the length
//! penalty: 0 finds the likeliest text, 1 the likeliest per token (Wu et al. 2016, arXiv 1609.08144). An end
//! counts only among the `width` likeliest candidates.
//!
//! The search is over once no beam can become one of the best any more: `ln P` only falls, so a beam's score
//! is at most `ln P / T^α`, where `T` is the maximum number of tokens of an answer. *Patience* ends it
//! earlier, after the token with which `patience · width` token sequences are finished (Kasai et al. 2024,
//! arXiv 2204.05424).

use crate::request::searches::strategy::{Ask, Finished, Next, Strategy, score};
use crate::request::searches::tree::{Node, ROOT, Tree};
use lexiform_law::LawTag;

/// A beam search: the beams, and the best texts found.
#[derive(Debug)]
pub(crate) struct Beam {
    pub(super) beams: Beams,
    patience: Option<f64>,
}

/// Beams that are selected together.
#[derive(Debug)]
pub(super) struct Beams {
    width: usize,
    length_penalty: f64,
    /// The number of texts to find with these beams.
    answers: usize,
    /// The prefixes; each is held.
    nodes: Vec<Node>,
    pub(super) finished: Finished,
    has_begun: bool,
}

impl Beams {
    pub(super) fn new(width: usize, length_penalty: f64, answers: usize) -> Self {
        Beams {
            width,
            length_penalty,
            answers,
            nodes: Vec::new(),
            finished: Finished::new(width.max(answers)),
            has_begun: false,
        }
    }

    /// Replaces the beams by their likeliest continuations, where a token costs `penalty` in addition to its
    /// surprise. Returns the last tokens of the new beams and of the texts finished.
    pub(super) fn select(&mut self, tree: &mut Tree, penalty: impl Fn(u32) -> f64) -> Vec<u32> {
        if !self.has_begun {
            (self.has_begun, self.nodes) = (true, vec![ROOT]);
            tree.hold(ROOT);
            return Vec::new();
        }
        let parents = std::mem::take(&mut self.nodes);
        let mut candidates: Vec<(f64, Node, usize)> = Vec::new();
        for &parent in &parents {
            let before = tree.log_probability(parent);
            for (place, next) in tree.ranked(parent).iter().enumerate() {
                let total = before + next.drawn.log_probability - penalty(next.drawn.token);
                candidates.push((total, parent, place));
            }
        }
        // The sort is stable: of two equal candidates, the one of the likelier parent comes first.
        candidates.sort_by(|one, other| other.0.total_cmp(&one.0));
        let mut taken = Vec::new();
        let mut going = 0;
        for (number, (_, parent, place)) in candidates.into_iter().enumerate() {
            if going == self.width {
                break;
            }
            let step = tree.ranked(parent)[place].clone();
            if step.ends && number >= self.width {
                continue;
            }
            going += usize::from(!step.ends);
            taken.push(step.drawn.token);
            let node = tree.child(parent, &step);
            match tree.is_final(node) {
                true => self.finish(node, tree),
                false => self.nodes.push(node),
            }
        }
        parents.into_iter().for_each(|parent| tree.release(parent));
        taken
    }

    fn finish(&mut self, node: Node, tree: &mut Tree) {
        let score = score(tree.log_probability(node), tree.tokens(node), self.length_penalty);
        self.finished.insert(score, node, tree);
    }

    /// Returns `true` if no beam can become one of the answers any more.
    pub(super) fn is_over(&self, tree: &Tree) -> bool {
        let best = self.nodes.iter().map(|&node| tree.log_probability(node));
        let best = best.fold(f64::NEG_INFINITY, f64::max);
        let worst = self.finished.worst_of(self.answers);
        self.nodes.is_empty()
            || worst.is_some_and(|worst| score(best, tree.longest(), self.length_penalty) <= worst)
    }

    /// Releases the remaining beams.
    pub(super) fn give_up(&mut self, tree: &mut Tree) {
        self.nodes.drain(..).for_each(|node| tree.release(node));
    }

    /// Requests `count` continuations of each beam.
    pub(super) fn asks(&self, count: usize) -> impl Iterator<Item = Ask> {
        self.nodes.iter().map(move |&node| Ask::of(node, count))
    }
}

impl Beam {
    /// Returns a search for the best `answers` texts; there are at least as many beams as answers.
    pub(crate) fn new((width, length_penalty, patience): (usize, f64, Option<f64>), answers: usize) -> Self {
        Beam {
            beams: Beams::new(width, length_penalty, answers),
            patience,
        }
    }
}

impl Strategy for Beam {
    fn next(&mut self, tree: &mut Tree) -> Next {
        let beams = &mut self.beams;
        beams.select(tree, |_| 0.0);
        let is_patient = |patience: f64| (beams.finished.count as f64) < patience * beams.width as f64;
        if beams.is_over(tree) || !self.patience.is_none_or(is_patient) {
            beams.give_up(tree);
            return beams.finished.over();
        }
        Next::Look(beams.asks(2 * beams.width).collect())
    }

    fn tag(&self) -> LawTag {
        LawTag::Beam
    }

    fn width(&self) -> Option<usize> {
        Some(self.beams.width)
    }
}
