//! Sequoia: the best tree of ranks for measured acceptance, by dynamic programming.

use super::Template;

/// The probability that a child of each rank is accepted, whatever its tokens are.
///
/// They determine the best tree of any size ([Chen et al. 2024](https://arxiv.org/abs/2402.12374)): with
/// `P[r]` for rank `r`, the expected number of accepted tokens of a tree is `Σ_nodes Π_path P[rank]`, which
/// [`template`](Self::template) maximises over all trees with a given number of nodes and a limited number of
/// layers.
///
/// The paper's dynamic programme over the number of nodes, the depth and the number of children adds the
/// nodes of each subtree to its root; because every node's value is the product along its path, repeatedly
/// adding the likeliest path finds the same tree, in O(n · ranks).
#[derive(Clone, Debug, PartialEq)]
pub struct Sequoia {
    acceptance: Vec<f64>,
}

impl Sequoia {
    /// Creates the rule from the probabilities of the ranks in order; each is between 0 and 1.
    ///
    /// Returns `None` if one is not.
    pub fn new(acceptance: Vec<f64>) -> Option<Sequoia> {
        let is_chance = |chance: &f64| (0.0..=1.0).contains(chance);
        acceptance.iter().all(is_chance).then_some(Sequoia { acceptance })
    }

    /// Returns eight ranks, each accepted half as often as the one above it. Its template of 80 nodes and 6
    /// layers resembles the hand-made one of Token Recycling ([Luo et al.
    /// 2024](https://arxiv.org/abs/2408.08696)).
    pub fn halving() -> Sequoia {
        Sequoia {
            acceptance: (1..=8).map(|rank| 0.5_f64.powi(rank)).collect(),
        }
    }

    /// Returns the best tree of `nodes` nodes with at most `depth` layers.
    pub fn template(&self, nodes: usize, depth: usize) -> Template {
        let mut tree: Vec<(Option<usize>, usize)> = Vec::new();
        // The nodes that may be added: value, parent, rank and depth of each.
        let mut open: Vec<(f64, Option<usize>, usize, usize)> = Vec::new();
        let below = |above: Option<usize>, value: f64, at: usize| {
            let ranks = self.acceptance.iter().enumerate().filter(move |_| at < depth);
            ranks.map(move |(rank, chance)| (value * chance, above, rank, at + 1))
        };
        open.extend(below(None, 1.0, 0));
        while tree.len() < nodes {
            let best = (0..open.len()).max_by(|&one, &other| {
                // Among equal values the first wins.
                open[one].0.total_cmp(&open[other].0).then(other.cmp(&one))
            });
            let Some((value, above, rank, at)) = best.map(|best| open.remove(best)) else {
                break;
            };
            if value <= 0.0 {
                break;
            }
            tree.push((above, rank));
            open.extend(below(Some(tree.len() - 1), value, at));
        }
        Template::of(tree)
    }

    /// Returns the expected number of accepted tokens of a tree.
    pub fn expected(&self, template: &Template) -> f64 {
        let mut values: Vec<f64> = Vec::with_capacity(template.len());
        for (above, rank) in template.nodes() {
            let before = above.map_or(1.0, |above| values[above]);
            values.push(before * self.acceptance.get(rank).copied().unwrap_or(0.0));
        }
        values.iter().sum()
    }
}
