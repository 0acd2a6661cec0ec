//! Beam search for texts that contain given phrases, with dynamic beam allocation.
//!
//! ```text
//!   candidates: the likeliest of all · the likeliest of each beam · those that continue a phrase
//!      └─► banks by how many tokens of the phrases they have ─► each bank has its part of the width ─► beams
//! ```
//!
//! M. Post, D. Vilar, *Fast Lexically Constrained Decoding with Dynamic Beam Allocation*, 2018, arXiv
//! 1804.06609. The width is divided among `C + 1` banks, where `C` is the number of tokens of all phrases;
//! places that a bank does not fill go to the others, those with the most tokens first. So prefixes that have
//! begun a phrase do not compete with likelier ones that have not. A text may end only after it contains all
//! phrases. Scores and the end of the search are those of [beam search](super::beam).
//!
//! Unlike in the paper, phrases are matched in the bytes that are written ([`Phrases`]), so that a text may
//! write them in other tokens; and the masks of the grammar apply to all candidates, so that a phrase is
//! begun only where the grammar allows it.

use crate::error::EngineError;
use crate::request::searches::phrases::{Phrases, Progress};
use crate::request::searches::strategy::{Ask, Finished, Next, Strategy, score};
use crate::request::searches::tree::{Node, ROOT, Tree};
use lexiform_law::LawTag;
use std::cmp::Reverse;

/// The beams of one request.
pub(crate) struct DynamicBeam {
    width: usize,
    length_penalty: f64,
    answers: usize,
    phrases: Phrases,
    /// The held prefixes, and their progress in the phrases.
    beams: Vec<(Node, Progress)>,
    finished: Finished,
    /// The maximum number of phrases that any prefix contained.
    met: usize,
    has_begun: bool,
}

/// A continuation of a beam.
struct Candidate {
    total: f64,
    parent: Node,
    place: usize,
    progress: Progress,
    /// The number of tokens of the phrases that it has.
    bank: usize,
    /// `true` if it has more of them than its parent.
    advances: bool,
    /// `true` if no other continuation of its parent is likelier.
    is_first: bool,
}

impl DynamicBeam {
    /// Returns a search for the best `answers` texts that contain all phrases; there are at least as many
    /// beams as answers.
    pub(crate) fn new((width, length_penalty): (usize, f64), phrases: Phrases, answers: usize) -> Self {
        DynamicBeam {
            width,
            length_penalty,
            answers,
            phrases,
            beams: Vec::new(),
            finished: Finished::new(width),
            met: 0,
            has_begun: false,
        }
    }

    /// Returns all continuations that may become beams, the likeliest first.
    fn candidates(&self, tree: &Tree) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        for (parent, progress) in &self.beams {
            let own = self.phrases.tokens_of(progress);
            let mut is_first = true;
            for (place, next) in tree.ranked(*parent).iter().enumerate() {
                let progress = self.phrases.advance(progress, next.drawn.token);
                let is_last = next.ends || tree.tokens(*parent) + 1 == tree.longest();
                if is_last && self.phrases.met(&progress) < self.phrases.len() {
                    continue;
                }
                let bank = self.phrases.tokens_of(&progress);
                candidates.push(Candidate {
                    total: tree.log_probability(*parent) + next.drawn.log_probability,
                    parent: *parent,
                    place,
                    progress,
                    bank,
                    advances: bank > own,
                    is_first: std::mem::take(&mut is_first),
                });
            }
        }
        candidates.sort_by(|one, other| other.total.total_cmp(&one.total));
        let mut number = 0;
        candidates.retain(|candidate| {
            number += 1;
            number <= self.width || candidate.advances || candidate.is_first
        });
        candidates
    }

    fn select(&mut self, tree: &mut Tree) {
        let mut candidates = self.candidates(tree);
        let mut sizes = vec![0; self.phrases.tokens() + 1];
        for candidate in &candidates {
            sizes[candidate.bank] += 1;
        }
        let mut places = allocate(self.width, &sizes);
        candidates.retain(|candidate| {
            let place = &mut places[candidate.bank];
            let stays = *place > 0;
            *place -= usize::from(stays);
            stays
        });
        let parents = std::mem::take(&mut self.beams);
        for candidate in candidates {
            let step = tree.ranked(candidate.parent)[candidate.place].clone();
            let node = tree.child(candidate.parent, &step);
            self.met = self.met.max(self.phrases.met(&candidate.progress));
            match tree.is_final(node) {
                true => {
                    let score = score(tree.log_probability(node), tree.tokens(node), self.length_penalty);
                    self.finished.insert(score, node, tree);
                }
                false => self.beams.push((node, candidate.progress)),
            }
        }
        parents.into_iter().for_each(|(parent, _)| tree.release(parent));
    }

    fn is_over(&self, tree: &Tree) -> bool {
        let best = self.beams.iter().map(|(node, _)| tree.log_probability(*node));
        let best = best.fold(f64::NEG_INFINITY, f64::max);
        let worst = self.finished.worst_of(self.answers);
        self.beams.is_empty()
            || worst.is_some_and(|worst| score(best, tree.longest(), self.length_penalty) <= worst)
    }
}

/// Returns how many of `width` places each bank gets, given the number of candidates of each: all banks have
/// equal shares, the last one also gets the remainder, and unused places go to the fullest banks.
pub(super) fn allocate(width: usize, sizes: &[usize]) -> Vec<usize> {
    let mut places = vec![width / sizes.len(); sizes.len()];
    if let Some(last) = places.last_mut() {
        *last += width % sizes.len();
    }
    for (place, &size) in places.iter_mut().zip(sizes) {
        *place = size.min(*place);
    }
    let mut left = width - places.iter().sum::<usize>();
    for (place, &size) in places.iter_mut().zip(sizes).rev() {
        let more = left.min(size - *place);
        *place += more;
        left -= more;
    }
    places
}

impl Strategy for DynamicBeam {
    fn next(&mut self, tree: &mut Tree) -> Next {
        if self.has_begun {
            self.select(tree);
        } else {
            (self.has_begun, self.beams) = (true, vec![(ROOT, self.phrases.start())]);
            tree.hold(ROOT);
        }
        if !self.is_over(tree) {
            // Beams with the most tokens of phrases come first, so that they are not the ones left out if the
            // loop lacks room for all.
            self.beams
                .sort_by_key(|(_, progress)| Reverse(self.phrases.tokens_of(progress)));
            let ask = |(node, progress): &(Node, Progress)| Ask {
                also: self.phrases.next(progress),
                ..Ask::of(*node, 2 * self.width)
            };
            return Next::Look(self.beams.iter().map(ask).collect());
        }
        self.beams.drain(..).for_each(|(node, _)| tree.release(node));
        let Next::Over { found, .. } = self.finished.over() else {
            return self.finished.over();
        };
        let missing = EngineError::PhrasesMissing {
            phrases: self.phrases.len(),
            met: self.met,
        };
        Next::Over {
            error: found.is_empty().then_some(missing),
            found,
        }
    }

    fn tag(&self) -> LawTag {
        LawTag::DynamicBeam
    }

    fn width(&self) -> Option<usize> {
        Some(self.width)
    }
}

#[cfg(test)]
mod tests {
    use super::allocate;

    #[test]
    fn banks_share_the_width() {
        assert_eq!(allocate(7, &[9, 9, 9]), [2, 2, 3]);
        assert_eq!(allocate(7, &[9, 1, 0]), [6, 1, 0]);
        assert_eq!(allocate(7, &[9, 9, 0]), [2, 5, 0]);
        assert_eq!(allocate(2, &[9, 3, 1, 0]), [0, 1, 1, 0]);
        assert_eq!(allocate(4, &[1, 1]), [1, 1]);
    }
}
