//! The trees that stores draft, as configured by [`DraftShape`], and the acceptance by rank that Sequoia
//! needs.

use crate::Grammar;
use crate::config::DraftShape;
use crate::speculation::draft::{Draft, Source};
use crate::speculation::policy::svip;
use lexiform_law::draft::{
    self, BestFirst, Chain, NodeId, OptTree, Predictor, Sequoia, Shape, Stop, Template, Text,
};
use std::sync::{Mutex, PoisonError};

/// The least probability of a path that is offered.
const LEAST_PROBABILITY: f32 = 0.1;
/// The number of nodes that OPT-Tree keeps of a layer.
const LAYER: usize = 8;
/// The number of nodes and layers of the trees that are fixed beforehand.
const FIXED: (usize, usize) = (32, 6);
/// The number of ranks whose acceptance is measured, as many as a store keeps tokens after a context.
const RANKS: usize = 8;
/// The number of drafts that the acceptance assumed at first counts for.
const PRIOR: f64 = 16.0;
/// The number of judged drafts after which the tree is made anew.
const RENEWED_EVERY: u32 = 256;

/// How the candidates of a store become a tree.
#[derive(Debug)]
pub(crate) struct Shaping {
    shape: DraftShape,
    /// `true` if a draft is a chain that ends where the store is unsure.
    ends_unsure: bool,
    ranks: Mutex<Ranks>,
}

impl Shaping {
    pub(crate) fn new(shape: DraftShape, ends_unsure: bool) -> Self {
        Shaping {
            shape,
            ends_unsure,
            ranks: Mutex::new(Ranks::new()),
        }
    }

    /// Adds tokens to a draft below a node, or after the text. Of shapes that look at chances, paths less
    /// likely than `least` are left out.
    pub(crate) fn grow(
        &self,
        predictor: &dyn Predictor,
        text: Text<'_>,
        (below, least): (Option<NodeId>, f32),
        draft: &mut draft::Draft<'_, Grammar>,
    ) {
        let least = least.max(LEAST_PROBABILITY);
        let stop = Stop::Unlikely(least);
        let fixed;
        let shape: &dyn Shape<Grammar, _> = match self.shape {
            _ if self.ends_unsure => &svip::shape(),
            DraftShape::BestFirst => &BestFirst { least },
            DraftShape::Chain => &Chain { stop },
            DraftShape::OptTree => &OptTree {
                width: LAYER,
                least_gain: least,
            },
            DraftShape::Recycling => {
                fixed = Sequoia::halving().template(FIXED.0, FIXED.1);
                &fixed
            }
            DraftShape::Sequoia => {
                fixed = self.ranks.lock().unwrap_or_else(PoisonError::into_inner).tree();
                &fixed
            }
        };
        shape.grow(predictor, text, below, draft);
    }

    /// Returns the tree of this many tokens that are drawn from the rows of a store.
    pub(crate) fn drawn(&self, room: usize) -> Template {
        match self.shape {
            DraftShape::Recycling => Sequoia::halving().template(FIXED.0.min(room), FIXED.1),
            DraftShape::Sequoia => self.ranks.lock().unwrap_or_else(PoisonError::into_inner).tree(),
            DraftShape::BestFirst | DraftShape::Chain | DraftShape::OptTree => Template::chain(room),
        }
    }

    /// Learns the fate of drafts, of which the path `accepted` was accepted.
    pub(crate) fn judge(&self, drafts: &[Draft], accepted: &[NodeId]) {
        if self.shape == DraftShape::Sequoia {
            let mut ranks = self.ranks.lock().unwrap_or_else(PoisonError::into_inner);
            ranks.judge(drafts, accepted);
        }
    }
}

/// How often the likeliest candidate of a store was accepted, the second one, and so on.
#[derive(Debug)]
struct Ranks {
    /// The drafts of each rank that were judged, and those that were accepted.
    counts: [(f64, f64); RANKS],
    /// The drafts that were judged since the tree was made.
    since: u32,
    tree: Template,
}

impl Ranks {
    fn new() -> Self {
        Ranks {
            counts: [(0.0, 0.0); RANKS],
            since: 0,
            tree: Sequoia::halving().template(FIXED.0, FIXED.1),
        }
    }

    fn judge(&mut self, drafts: &[Draft], accepted: &[NodeId]) {
        let is_learned = |draft: &Draft| matches!(draft.source, Source::Learned(..));
        for (node, draft) in drafts.iter().enumerate().filter(|(_, draft)| is_learned(draft)) {
            if draft.parent.is_some_and(|parent| !accepted.contains(&parent)) {
                continue;
            }
            let before = drafts[..node].iter();
            let rank = before
                .filter(|other| other.parent == draft.parent && is_learned(other))
                .count();
            if let Some((judged, confirmed)) = self.counts.get_mut(rank) {
                *judged += 1.0;
                *confirmed += f64::from(u8::from(accepted.contains(&node)));
                self.since += 1;
            }
        }
    }

    /// Returns the probability that a child of each rank is accepted.
    fn acceptance(&self) -> Vec<f64> {
        let assumed = (1..).map(|rank| 0.5_f64.powi(rank));
        let share = |(&(judged, confirmed), assumed): (&(f64, f64), f64)| {
            (confirmed + PRIOR * assumed) / (judged + PRIOR)
        };
        self.counts.iter().zip(assumed).map(share).collect()
    }

    /// Returns the best tree for this acceptance.
    fn tree(&mut self) -> Template {
        if self.since >= RENEWED_EVERY {
            self.since = 0;
            if let Some(measured) = Sequoia::new(self.acceptance()) {
                self.tree = measured.template(FIXED.0, FIXED.1);
            }
        }
        self.tree.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speculation::draft::Confidence;
    use lexiform_law::draft::{Origin, Proposal};

    fn learned(parent: Option<NodeId>) -> Draft {
        Draft {
            token: 0,
            parent,
            source: Source::Learned(Origin::Recycled, Confidence::of(None)),
            state: None,
            proposal: Proposal::Point,
            is_last: false,
        }
    }

    /// Where the first candidate is nearly always right, the best tree is deep; where any of several is, it
    /// is wide.
    #[test]
    fn the_tree_follows_the_ranks_that_are_accepted() {
        let beside: Vec<Draft> = (0..4).map(|_| learned(None)).collect();
        let mut ranks = Ranks::new();
        (0..200).for_each(|_| ranks.judge(&beside, &[0]));
        let of_first = ranks.acceptance();
        assert!(of_first[0] > 0.9 && of_first[1] < 0.1, "{of_first:?}");
        let deep = ranks.tree();
        let mut ranks = Ranks::new();
        (0..200).for_each(|round| ranks.judge(&beside, &[round % 4]));
        let of_any = ranks.acceptance();
        assert!(
            of_any[..4].iter().all(|chance| (0.2..0.3).contains(chance)),
            "{of_any:?}"
        );
        let wide = ranks.tree();
        let measured = |tree: &Template, chances: &[f64]| {
            Sequoia::new(chances.to_vec()).map_or(0.0, |sequoia| sequoia.expected(tree))
        };
        assert!(measured(&deep, &of_first) > 1.2 * measured(&wide, &of_first));
        assert!(measured(&wide, &of_any) > measured(&deep, &of_any));
    }

    /// The drafts below a rejected one were never judged.
    #[test]
    fn a_draft_below_a_rejected_one_says_nothing() {
        let mut ranks = Ranks::new();
        let drafts = [learned(None), learned(Some(0)), learned(None), learned(Some(2))];
        ranks.judge(&drafts, &[2]);
        assert_eq!(
            ranks.counts[0],
            (2.0, 0.0),
            "the first below the text, and the one below the accepted one"
        );
        assert_eq!(ranks.counts[1], (1.0, 1.0));
    }
}
