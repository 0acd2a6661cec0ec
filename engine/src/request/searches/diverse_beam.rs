//! Diverse beam search: groups of beams, each of which avoids the tokens that earlier groups choose at the
//! same position.
//!
//! ```text
//!   place t:  group 1 selects ─ its tokens ─► group 2 selects with penalties ─ its tokens ─► group 3 …
//! ```
//!
//! A. K. Vijayakumar, M. Cogswell, R. R. Selvaraju, Q. Sun, S. Lee, D. Crandall, D. Batra, *Diverse Beam
//! Search*, 2016, arXiv 1610.02424, with the Hamming diversity of the paper: a continuation by `x` is
//! selected by `ln P − λ·n(x)`, where `n(x)` is the number of times that earlier groups have chosen `x` at
//! this position. The penalty is no part of the score of a text, nor of later selections. The first group is
//! an ordinary beam search of the group's width.
//!
//! Groups that hold the same prefix share its row. The answers are the best text of each group, the best
//! first, then the second of each, and so on; a text that several groups have found is reported once, however
//! it was tokenised.

use crate::request::searches::beam::Beams;
use crate::request::searches::strategy::{FinishedText, Next, Strategy};
use crate::request::searches::tree::{Node, Tree};
use lexiform_law::LawTag;
use std::collections::{HashMap, HashSet};

/// The groups of one request.
#[derive(Debug)]
pub(crate) struct DiverseBeam {
    width: usize,
    diversity: f64,
    groups: Vec<BeamGroup>,
    /// The number of continuations to request, enough for any penalties.
    count: usize,
}

#[derive(Debug)]
struct BeamGroup {
    beams: Beams,
    is_over: bool,
}

impl DiverseBeam {
    /// Returns a search for `answers` texts with `width` beams in `groups` groups; `width` is a multiple of
    /// `groups`.
    pub(crate) fn new(
        (width, groups): (usize, usize),
        (diversity, length_penalty): (f64, f64),
        answers: usize,
    ) -> Self {
        let groups = groups.clamp(1, width.max(1));
        let of_each = width / groups;
        let group = || BeamGroup {
            // Other groups may find the same texts, so each looks for as many as if it were alone.
            beams: Beams::new(of_each, length_penalty, answers),
            is_over: false,
        };
        DiverseBeam {
            width,
            diversity,
            groups: std::iter::repeat_with(group).take(groups).collect(),
            // All groups before one choose at most `2 * width` tokens at a position, ends among them.
            count: 2 * of_each + 2 * width,
        }
    }

    /// Advances the groups by a token, one after the other. A group whose texts are found continues as long
    /// as later groups do, which avoid its tokens.
    fn select(&mut self, tree: &mut Tree) {
        let mut taken: HashMap<u32, usize> = HashMap::new();
        let diversity = self.diversity;
        for group in &mut self.groups {
            let times = |token: u32| taken.get(&token).copied().unwrap_or(0) as f64;
            let tokens = group.beams.select(tree, |token| diversity * times(token));
            for token in tokens {
                *taken.entry(token).or_default() += 1;
            }
            group.is_over |= group.beams.is_over(tree);
        }
        let last = self.groups.iter_mut().rev().take_while(|group| group.is_over);
        last.for_each(|group| group.beams.give_up(tree));
    }

    /// Returns the texts of all groups in turn, each once.
    fn texts(&self) -> Vec<(f64, Node)> {
        let most = self.groups.iter().map(|group| group.beams.finished.texts().len());
        let mut told = HashSet::new();
        let mut texts = Vec::new();
        for round in 0..most.max().unwrap_or(0) {
            let of_round = self.groups.iter();
            let of_round = of_round.filter_map(|group| group.beams.finished.texts().get(round));
            let mut of_round: Vec<&FinishedText> = of_round.collect();
            of_round.sort_by(|one, other| other.score.total_cmp(&one.score));
            let new = of_round.into_iter().filter(|text| told.insert(&text.written));
            texts.extend(new.map(|text| (text.score, text.node)));
        }
        texts
    }
}

impl Strategy for DiverseBeam {
    fn next(&mut self, tree: &mut Tree) -> Next {
        self.select(tree);
        if self.groups.iter().all(|group| group.is_over) {
            return Next::Over {
                found: self.texts(),
                error: None,
            };
        }
        let asks = self.groups.iter().flat_map(|group| group.beams.asks(self.count));
        Next::Look(asks.collect())
    }

    fn tag(&self) -> LawTag {
        LawTag::DiverseBeam
    }

    fn width(&self) -> Option<usize> {
        Some(self.width)
    }
}
