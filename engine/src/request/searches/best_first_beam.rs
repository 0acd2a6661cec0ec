//! Best-first beam search: the answers of beam search, from no more rows.
//!
//! ```text
//!   open continuations, the likeliest first ─► its row ─► its continuations are open, too
//!                       └─ one of a length of which `width` have gone on is dropped
//! ```
//!
//! C. Meister, T. Vieira, R. Cotterell, *Best-First Beam Search*, 2020, arXiv 2007.03909. `ln P` only falls
//! along a text, so the prefixes of each length leave the queue in the order in which beam search selects
//! them, and the first `width` of a length are its beams. The prefixes that beam search computes and this
//! search does not are those less likely than the answers.
//!
//! With a length penalty, the queue is not ordered by the score of a text. As in the paper, the search then
//! continues until the open prefixes have a bound, `ln P / T^α` with `T` the maximum number of tokens of an
//! answer, that is below the answers found. With a penalty of 0 the bound is `ln P` itself, and the search
//! ends at once.
//!
//! Rows are computed one after the other, so the search takes more passes than beam search where it takes
//! fewer rows.

use crate::request::searches::strategy::{Ask, Finished, Frontier, Next, Strategy, score};
use crate::request::searches::tree::{Node, ROOT, Tree};
use lexiform_law::LawTag;

/// The number of prefixes of one length that have left the queue, and the number of those that were extended.
#[derive(Clone, Copy, Debug, Default)]
struct PrefixLevel {
    popped: usize,
    going: usize,
}

/// The queue of one request.
#[derive(Debug)]
pub(crate) struct BestFirstBeam {
    width: usize,
    length_penalty: f64,
    answers: usize,
    frontier: Frontier,
    /// The levels, indexed by number of tokens.
    levels: Vec<PrefixLevel>,
    finished: Finished,
    /// The prefix whose row was requested.
    asked: Option<Node>,
}

impl BestFirstBeam {
    /// Returns a search for the best `answers` texts; there are at least as many beams as answers.
    pub(crate) fn new(width: usize, length_penalty: f64, answers: usize) -> Self {
        BestFirstBeam {
            width,
            length_penalty,
            answers,
            frontier: Frontier::default(),
            levels: Vec::new(),
            finished: Finished::new(width),
            asked: None,
        }
    }

    fn ask(&mut self, node: Node) -> Next {
        self.asked = Some(node);
        let count = 2 * self.width;
        Next::Look(vec![Ask::of(node, count)])
    }

    fn level(&mut self, tokens: usize) -> &mut PrefixLevel {
        if self.levels.len() <= tokens {
            self.levels.resize(tokens + 1, PrefixLevel::default());
        }
        &mut self.levels[tokens]
    }

    fn score(&self, log_probability: f64, tokens: usize) -> f64 {
        score(log_probability, tokens, self.length_penalty)
    }

    /// Returns `true` if nothing that is open can become one of the answers any more.
    fn is_over(&self, tree: &Tree) -> bool {
        let Some(bound) = self.frontier.bound() else {
            return true;
        };
        let worst = self.finished.worst_of(self.answers);
        worst.is_some_and(|worst| self.score(bound, tree.longest()) <= worst)
    }

    /// Takes the likeliest continuation, and returns its prefix if the row of that is needed.
    fn take(&mut self, tree: &mut Tree) -> Option<Node> {
        let open = self.frontier.pop()?;
        if open.is_rest {
            // Beam search does not consider more continuations of a beam either.
            tree.release(open.node);
            return None;
        }
        let step = tree.ranked(open.node)[open.place].clone();
        let width = self.width;
        let level = self.level(open.tokens);
        let number = level.popped;
        level.popped += 1;
        if step.ends && number >= width {
            self.frontier
                .open(open.node, open.place + 1, f64::NEG_INFINITY, tree);
            return None;
        }
        level.going += usize::from(!step.ends);
        let is_full = level.going == width;
        let node = tree.child(open.node, &step);
        self.frontier
            .open(open.node, open.place + 1, f64::NEG_INFINITY, tree);
        if is_full {
            self.frontier.retain(|other| other.tokens != open.tokens, tree);
        }
        if !tree.is_final(node) {
            return Some(node);
        }
        let score = self.score(tree.log_probability(node), tree.tokens(node));
        self.finished.insert(score, node, tree);
        None
    }
}

impl Strategy for BestFirstBeam {
    fn next(&mut self, tree: &mut Tree) -> Next {
        match self.asked.take() {
            None => {
                tree.hold(ROOT);
                return self.ask(ROOT);
            }
            Some(node) => {
                let tokens = tree.tokens(node) + 1;
                match self.level(tokens).going < self.width {
                    true => self.frontier.open(node, 0, f64::NEG_INFINITY, tree),
                    false => tree.release(node),
                }
            }
        }
        while !self.is_over(tree) {
            if let Some(node) = self.take(tree) {
                return self.ask(node);
            }
        }
        self.frontier.retain(|_| false, tree);
        self.finished.over()
    }

    fn tag(&self) -> LawTag {
        LawTag::BestFirstBeam
    }

    fn width(&self) -> Option<usize> {
        Some(self.width)
    }
}
