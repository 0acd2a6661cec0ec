//! Beam search with a look-ahead to the end: a prefix is judged by its cost so far and by the minimum cost of
//! its completion.
//!
//! ```text
//!   candidates of all beams ─► their rows ─► the likeliest tokens after each, up to `ahead` ─► `width` of them by ln P(uv) − λ·d(uv)
//! ```
//!
//! X. Lu, S. Welleck, P. West, L. Jiang, J. Kasai, D. Khashabi, R. Le Bras, L. Qin, Y. Yu, R. Zellers, N. A.
//! Smith, Y. Choi, *NeuroLogic A\*esque Decoding*, 2021, arXiv 2112.08726: candidates of a beam are selected
//! by their score plus `λ` times an estimate of how the constraint will be satisfied, found by a short greedy
//! continuation `v`.
//!
//! Unlike here, the paper's constraint is a formula of keywords, and its estimate the likelihood of those
//! within the look-ahead. Here the constraint is a grammar, which the mask enforces, and the remaining cost
//! is known: `d(uv)`, the fewest tokens that complete the text, its end included. `λ` is the expected cost of
//! such a token, in nats. So a likely prefix that leads into a long completion ranks below one that is nearly
//! done. Without a grammar `d` is 0. The heuristic takes no part in the score of a text.
//!
//! The cost: a row for each candidate, of which there are twice as many as beams, and for each token of its
//! look-ahead. Rows of selected candidates, and of look-aheads that turn out to be the actual continuation,
//! are not computed again.

use crate::request::searches::strategy::{Ask, Finished, Next, Strategy, score};
use crate::request::searches::tree::{Node, ROOT, Tree};
use lexiform_law::LawTag;

/// The beams of one request.
pub(crate) struct AStarEsque {
    width: usize,
    length_penalty: f64,
    /// The expected cost of a token of the completion.
    weight: f64,
    /// The number of tokens to look ahead.
    ahead: usize,
    answers: usize,
    beams: Vec<Node>,
    /// Candidates whose rows were requested, each with the end of its look-ahead; both are held.
    candidates: Vec<(Node, Node)>,
    looked: usize,
    /// Prefixes of the current look-aheads, and of the previous ones: held, because the search may reach
    /// them.
    looking: Vec<Node>,
    seen: Vec<Node>,
    finished: Finished,
    has_begun: bool,
}

impl AStarEsque {
    /// Returns a search for the best `answers` texts; there are at least as many beams as answers.
    pub(crate) fn new(
        (width, length_penalty): (usize, f64),
        (weight, ahead): (f64, usize),
        answers: usize,
    ) -> Self {
        AStarEsque {
            width,
            length_penalty,
            weight,
            ahead,
            answers,
            beams: Vec::new(),
            candidates: Vec::new(),
            looked: 0,
            looking: Vec::new(),
            seen: Vec::new(),
            finished: Finished::new(width),
            has_begun: false,
        }
    }

    /// Makes the likeliest continuations of the beams candidates; ends among the first of them finish texts.
    fn branch_out(&mut self, tree: &mut Tree) {
        let parents = std::mem::take(&mut self.beams);
        let mut all: Vec<(f64, Node, usize)> = Vec::new();
        for &parent in &parents {
            let before = tree.log_probability(parent);
            let ranked = tree.ranked(parent).iter().enumerate();
            all.extend(ranked.map(|(place, next)| (before + next.drawn.log_probability, parent, place)));
        }
        all.sort_by(|one, other| other.0.total_cmp(&one.0));
        for (number, (_, parent, place)) in all.into_iter().enumerate() {
            if self.candidates.len() == 2 * self.width {
                break;
            }
            let step = tree.ranked(parent)[place].clone();
            if step.ends && number >= self.width {
                continue;
            }
            let node = tree.child(parent, &step);
            if tree.is_final(node) {
                let score = score(tree.log_probability(node), tree.tokens(node), self.length_penalty);
                self.finished.insert(score, node, tree);
            } else {
                tree.hold(node);
                self.candidates.push((node, node));
            }
        }
        parents.into_iter().for_each(|parent| tree.release(parent));
        self.looked = 0;
    }

    /// Extends each look-ahead that has not reached the end of the text by its likeliest token.
    fn look_ahead(&mut self, tree: &mut Tree) {
        self.looked += 1;
        for (_, tip) in &mut self.candidates {
            if tree.is_final(*tip) {
                continue;
            }
            if let Some(step) = tree.ranked(*tip).first().cloned() {
                self.looking.push(*tip);
                *tip = tree.child(*tip, &step);
            }
        }
    }

    /// Returns `ln P(uv) − λ·d(uv)` of a candidate `u` with its look-ahead `v`, or minus infinity if the
    /// candidate is a dead end.
    fn promise(&self, (node, tip): (Node, Node), tree: &Tree) -> f64 {
        if tree.ranked(node).is_empty() {
            return f64::NEG_INFINITY;
        }
        let distance = match tree.is_final(tip) {
            true => 0,
            false => tree.distance(tip).unwrap_or(0),
        };
        tree.log_probability(tip) - self.weight * distance as f64
    }

    /// Makes the most promising candidates beams.
    fn choose(&mut self, tree: &mut Tree) {
        let candidates = std::mem::take(&mut self.candidates);
        let mut judged: Vec<(f64, Node)> = Vec::new();
        for &candidate in &candidates {
            judged.push((self.promise(candidate, tree), candidate.0));
        }
        judged.sort_by(|one, other| other.0.total_cmp(&one.0));
        judged.retain(|judged| judged.0 > f64::NEG_INFINITY);
        judged.truncate(self.width);
        self.beams = judged.into_iter().map(|(_, node)| node).collect();
        self.seen.drain(..).for_each(|node| tree.release(node));
        self.seen.append(&mut self.looking);
        for (node, tip) in candidates {
            self.seen.push(tip);
            if !self.beams.contains(&node) {
                tree.release(node);
            }
        }
    }

    fn is_over(&self, tree: &Tree) -> bool {
        let best = self.beams.iter().map(|&node| tree.log_probability(node));
        let best = best.fold(f64::NEG_INFINITY, f64::max);
        let worst = self.finished.worst_of(self.answers);
        self.beams.is_empty()
            || worst.is_some_and(|worst| score(best, tree.longest(), self.length_penalty) <= worst)
    }

    fn ask(&self, nodes: impl Iterator<Item = Node>) -> Next {
        let ask = |node| Ask {
            distance: true,
            // Twice as many candidates as beams, and as many ends.
            ..Ask::of(node, 4 * self.width)
        };
        Next::Look(nodes.map(ask).collect())
    }
}

impl Strategy for AStarEsque {
    fn next(&mut self, tree: &mut Tree) -> Next {
        if !self.has_begun {
            (self.has_begun, self.beams) = (true, vec![ROOT]);
            tree.hold(ROOT);
            return self.ask([ROOT].into_iter());
        }
        if !self.candidates.is_empty() {
            if self.looked < self.ahead {
                self.look_ahead(tree);
                let tips = self.candidates.iter().map(|candidate| candidate.1);
                return self.ask(tips.filter(|&tip| !tree.is_final(tip)));
            }
            self.choose(tree);
        }
        if !self.is_over(tree) {
            self.branch_out(tree);
            return self.ask(self.candidates.iter().map(|candidate| candidate.0));
        }
        let looked_at = self.seen.drain(..).chain(self.beams.drain(..));
        looked_at.for_each(|node| tree.release(node));
        self.finished.over()
    }

    fn tag(&self) -> LawTag {
        LawTag::AStarEsque
    }

    fn width(&self) -> Option<usize> {
        Some(self.width)
    }
}
