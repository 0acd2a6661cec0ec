//! Beam search with a look-ahead to the end: a prefix is judged by its cost so far, by the minimum cost of
//! its completion, and by how soon it may have the phrases that are wanted.
//!
//! ```text
//!   candidates of all beams ─► their rows ─► the likeliest tokens after each, up to `ahead`
//!      └─► banks by the tokens of clauses met and begun ─► of each bank the best by ln P(uv) − λ·d(uv) + κ·h(uv) ─► beams
//! ```
//!
//! X. Lu, S. Welleck, P. West, L. Jiang, J. Kasai, D. Khashabi, R. Le Bras, L. Qin, Y. Yu, R. Zellers, N. A.
//! Smith, Y. Choi, *NeuroLogic A\*esque Decoding*, 2021, arXiv 2112.08726: candidates of a beam are selected
//! by their score plus an estimate of how the constraint will be satisfied, found by a short greedy
//! continuation `v`.
//!
//! The constraint has two parts. The grammar is enforced by the mask, and its remaining cost is known:
//! `d(uv)`, the fewest tokens that complete the text, its end included. `λ` is the expected cost of such a
//! token, in nats. So a likely prefix that leads into a long completion ranks below one that is nearly done.
//! Without a grammar `d` is 0.
//!
//! The other part is the paper's: a [formula](Clauses) of phrases. Prefixes with a forbidden phrase are
//! dropped, and a text may end only when it has a phrase of every clause. `h(uv)` is the largest logarithm
//! of a probability that a token has which continues or begins a phrase that is missing, after `u` or within
//! the look-ahead; 0 if none is missing. The paper groups prefixes by the clauses that they have met. Here
//! the width is divided by how many tokens prefixes have of them, as in [dynamic beam
//! allocation](super::dynamic_beam), so that prefixes which have begun a phrase do not compete with likelier
//! ones either. Neither estimate takes part in the score of a text.
//!
//! The cost: a row for each candidate, of which there are twice as many as beams, and for each token of its
//! look-ahead. Rows of selected candidates, and of look-aheads that turn out to be the actual continuation,
//! are not computed again.

use crate::error::EngineError;
use crate::request::searches::dynamic_beam::allocate;
use crate::request::searches::phrases::{Clauses, Progress};
use crate::request::searches::strategy::{Ask, Finished, Next, Strategy, score};
use crate::request::searches::tree::{Node, ROOT, Tree};
use lexiform_law::LawTag;

/// The weight `κ` of the chance of a missing phrase.
const PHRASES: f64 = 0.25;

/// A prefix, and its progress in the phrases.
type Beam = (Node, Progress);

/// A prefix that may become a beam. Its node and its tip are held.
struct Candidate {
    node: Node,
    progress: Progress,
    /// The end of its look-ahead, and the progress there.
    tip: Beam,
    /// `h`, as far as it was looked ahead; minus infinity before a row is known.
    hope: f64,
}

/// The beams of one request.
pub(crate) struct AStarEsque {
    width: usize,
    length_penalty: f64,
    /// The expected cost of a token of the completion.
    weight: f64,
    /// The number of tokens to look ahead.
    ahead: usize,
    answers: usize,
    clauses: Clauses,
    beams: Vec<Beam>,
    /// Candidates whose rows were requested.
    candidates: Vec<Candidate>,
    looked: usize,
    /// Prefixes of the current look-aheads, and of the previous ones: held, because the search may reach
    /// them.
    looking: Vec<Node>,
    seen: Vec<Node>,
    finished: Finished,
    /// The maximum number of clauses that any prefix met.
    met: usize,
    has_begun: bool,
}

impl AStarEsque {
    /// Returns a search for the best `answers` texts; there are at least as many beams as answers.
    pub(crate) fn new(
        (width, length_penalty): (usize, f64),
        (weight, ahead): (f64, usize),
        clauses: Clauses,
        answers: usize,
    ) -> Self {
        AStarEsque {
            width,
            length_penalty,
            weight,
            ahead,
            answers,
            clauses,
            beams: Vec::new(),
            candidates: Vec::new(),
            looked: 0,
            looking: Vec::new(),
            seen: Vec::new(),
            finished: Finished::new(width),
            met: 0,
            has_begun: false,
        }
    }

    /// Returns the continuations of the beams that break no rule, as total, parent, place in its ranking and
    /// progress: those that meet or begin a clause first, as many as there are beams, then the likeliest.
    fn continuations(&self, parents: &[Beam], tree: &Tree) -> Vec<(f64, Node, usize, Progress)> {
        let (mut all, mut wanted) = (Vec::new(), Vec::new());
        for (parent, before) in parents {
            let phrases = self.clauses.next(before);
            for (place, next) in tree.ranked(*parent).iter().enumerate() {
                let is_last = next.ends || tree.tokens(*parent) + 1 == tree.longest();
                let Some(progress) = self.clauses.advance(before, next.drawn.token) else {
                    continue;
                };
                if is_last && self.clauses.met(&progress) < self.clauses.len() {
                    continue;
                }
                let total = tree.log_probability(*parent) + next.drawn.log_probability;
                let found = (total, *parent, place, progress);
                match phrases.contains(&next.drawn.token) {
                    true => wanted.push(found),
                    false => all.push(found),
                }
            }
        }
        wanted.sort_by(|one, other| other.0.total_cmp(&one.0));
        all.extend(wanted.split_off(wanted.len().min(self.width)));
        all.sort_by(|one, other| other.0.total_cmp(&one.0));
        wanted.into_iter().chain(all).collect()
    }

    /// Makes continuations of the beams candidates; ends among the first of them finish texts.
    fn branch_out(&mut self, tree: &mut Tree) {
        let parents = std::mem::take(&mut self.beams);
        let all = self.continuations(&parents, tree);
        for (number, (_, parent, place, progress)) in all.into_iter().enumerate() {
            if self.candidates.len() == 2 * self.width {
                break;
            }
            let step = tree.ranked(parent)[place].clone();
            if step.ends && number >= self.width {
                continue;
            }
            let node = tree.child(parent, &step);
            self.met = self.met.max(self.clauses.met(&progress));
            if tree.is_final(node) {
                let score = score(tree.log_probability(node), tree.tokens(node), self.length_penalty);
                self.finished.insert(score, node, tree);
            } else {
                tree.hold(node);
                self.candidates.push(Candidate {
                    node,
                    tip: (node, progress.clone()),
                    progress,
                    hope: f64::NEG_INFINITY,
                });
            }
        }
        parents.into_iter().for_each(|(parent, _)| tree.release(parent));
        self.looked = 0;
    }

    /// Notes how likely a missing phrase goes on or begins after the tips, whose rows are known.
    fn hope(&mut self, tree: &Tree) {
        for candidate in &mut self.candidates {
            let (tip, progress) = &candidate.tip;
            let missing = self.clauses.len() - self.clauses.met(progress);
            if missing == 0 {
                candidate.hope = 0.0;
            }
            if tree.is_final(*tip) {
                continue;
            }
            let phrases = self.clauses.next(progress);
            let found = tree.ranked(*tip).iter();
            let found = found.filter(|next| phrases.contains(&next.drawn.token));
            let best = found.map(|next| next.drawn.log_probability);
            candidate.hope = best.fold(candidate.hope, f64::max);
        }
    }

    /// Extends each look-ahead that has not reached the end of the text by its likeliest token that is not
    /// the last of a forbidden phrase.
    fn look_ahead(&mut self, tree: &mut Tree) {
        self.looked += 1;
        for candidate in &mut self.candidates {
            let (tip, progress) = candidate.tip.clone();
            if tree.is_final(tip) {
                continue;
            }
            let ranked = tree.ranked(tip).iter();
            let mut allowed = ranked.filter_map(|next| {
                let progress = self.clauses.advance(&progress, next.drawn.token)?;
                Some((next.clone(), progress))
            });
            if let Some((step, progress)) = allowed.next() {
                self.looking.push(tip);
                candidate.tip = (tree.child(tip, &step), progress);
            }
        }
    }

    /// Returns how promising a candidate is, or minus infinity if it is a dead end.
    fn promise(&self, candidate: &Candidate, tree: &Tree) -> f64 {
        if tree.ranked(candidate.node).is_empty() {
            return f64::NEG_INFINITY;
        }
        let tip = candidate.tip.0;
        let distance = match tree.is_final(tip) {
            true => 0,
            false => tree.distance(tip).unwrap_or(0),
        };
        // A phrase of which no token was found is as unlikely as can be, and no reason to drop the prefix.
        let hope = match self.clauses.len() {
            0 => 0.0,
            _ => candidate.hope.max(LEAST_HOPE),
        };
        tree.log_probability(tip) - self.weight * distance as f64 + PHRASES * hope
    }

    /// Makes the most promising candidates of each bank beams.
    fn choose(&mut self, tree: &mut Tree) {
        let candidates = std::mem::take(&mut self.candidates);
        let judged = candidates.iter().enumerate();
        let judged = judged.map(|(number, candidate)| {
            let bank = self.clauses.tokens_of(&candidate.progress);
            (self.promise(candidate, tree), bank, number)
        });
        let mut judged: Vec<(f64, usize, usize)> = judged.collect();
        judged.sort_by(|one, other| other.0.total_cmp(&one.0));
        judged.retain(|judged| judged.0 > f64::NEG_INFINITY);
        let mut sizes = vec![0; self.clauses.tokens() + 1];
        judged.iter().for_each(|&(_, bank, _)| sizes[bank] += 1);
        let mut places = allocate(self.width, &sizes);
        judged.retain(|&(_, bank, _)| {
            let stays = places[bank] > 0;
            places[bank] -= usize::from(stays);
            stays
        });
        let beam = |&(_, _, number): &(f64, usize, usize)| {
            let candidate = &candidates[number];
            (candidate.node, candidate.progress.clone())
        };
        self.beams = judged.iter().map(beam).collect();
        self.seen.drain(..).for_each(|node| tree.release(node));
        self.seen.append(&mut self.looking);
        for candidate in candidates {
            self.seen.push(candidate.tip.0);
            if !self.beams.iter().any(|(node, _)| *node == candidate.node) {
                tree.release(candidate.node);
            }
        }
    }

    fn is_over(&self, tree: &Tree) -> bool {
        let best = self.beams.iter().map(|(node, _)| tree.log_probability(*node));
        let best = best.fold(f64::NEG_INFINITY, f64::max);
        let worst = self.finished.worst_of(self.answers);
        self.beams.is_empty()
            || worst.is_some_and(|worst| score(best, tree.longest(), self.length_penalty) <= worst)
    }

    fn ask<'a>(&self, beams: impl Iterator<Item = &'a Beam>) -> Next {
        let ask = |(node, progress): &Beam| Ask {
            distance: true,
            also: self.clauses.next(progress),
            // Twice as many candidates as beams, and as many ends.
            ..Ask::of(*node, 4 * self.width)
        };
        Next::Look(beams.map(ask).collect())
    }
}

/// The hope of a candidate whose rows have no token of a missing phrase.
const LEAST_HOPE: f64 = -50.0;

impl Strategy for AStarEsque {
    fn next(&mut self, tree: &mut Tree) -> Next {
        if !self.has_begun {
            (self.has_begun, self.beams) = (true, vec![(ROOT, self.clauses.start())]);
            tree.hold(ROOT);
            return self.ask(self.beams.iter());
        }
        if !self.candidates.is_empty() {
            self.hope(tree);
            if self.looked < self.ahead {
                self.look_ahead(tree);
                let tips = self.candidates.iter().map(|candidate| &candidate.tip);
                return self.ask(tips.filter(|(tip, _)| !tree.is_final(*tip)));
            }
            self.choose(tree);
        }
        if !self.is_over(tree) {
            self.branch_out(tree);
            return self.ask(self.candidates.iter().map(|candidate| &candidate.tip));
        }
        let beams = self.beams.drain(..).map(|(node, _)| node);
        self.seen
            .drain(..)
            .chain(beams)
            .for_each(|node| tree.release(node));
        let Next::Over { found, .. } = self.finished.over() else {
            return self.finished.over();
        };
        let missing = EngineError::PhrasesMissing {
            phrases: self.clauses.len(),
            met: self.met,
        };
        Next::Over {
            error: (found.is_empty() && self.clauses.len() > 0).then_some(missing),
            found,
        }
    }

    fn tag(&self) -> LawTag {
        LawTag::AStarEsque
    }

    fn width(&self) -> Option<usize> {
        Some(self.width)
    }
}
