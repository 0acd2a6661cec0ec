//! Dynamic trees of a model whose rows are over the tokens of the main one: EAGLE-2 ([Li et al.
//! 2024](https://arxiv.org/abs/2406.16858)).
//!
//! ```text
//!   text ─┬─ a .6 ─┬─ d .42 ─┬─ h .3      a pass for each layer: the likeliest nodes of the layer are read on,
//!         │        │         └─ …         by the product of the chances along their paths
//!         │        └─ e .12
//!         └─ b .3 ─── f .2 ─── …
//! ```
//!
//! Trees are drafted where each row is drawn from once, by the law, whatever was drafted: at temperature 0,
//! and for requests with a seed. Where tokens are sampled and verified by the residual rule, a
//! [chain](super::tokens) is drafted. Tokens that the mask forbids are not drafted.
//!
//! The chances decide which nodes are worth their place in a pass
//! ([`policy`](crate::speculation::policy)), measured by how many drafts of a chance were confirmed.

use crate::engine::draft_model::tokens::{TokenDrafter, TokenModel, drafted, may_go_on};
use crate::engine::grammar_task::GrammarTasks;
use crate::error::EngineError;
use crate::grammar::masks::Bounds;
use crate::model::logits::{Logits, Row};
use crate::request::Verification;
use crate::sequence::Sequence;
use crate::speculation::draft::{Confidence, Draft, Source};
use lexiform_law::draft::{NodeId, Proposal};
use lexiform_law::{Allowed, Part, Row as _, Seeded};
use std::time::Duration;

/// The most tokens that are considered after a node, and the most nodes of a layer.
const LAYER: usize = 8;
/// The most nodes of a layer that are read on.
const READ: usize = 4;
/// The most layers.
const LAYERS: usize = 8;
/// The least chance of the path to a node that is drafted, and of one that is read on.
const LEAST: [f64; 2] = [0.04, 0.1];

/// A node of a tree.
#[derive(Clone, Debug)]
pub(super) struct TreeNode {
    pub(super) token: u32,
    /// The node before it, which has a lower index; `None` below the text and the drafts before the tree.
    pub(super) parent: Option<usize>,
    /// Its draft.
    draft: NodeId,
    /// The chance of its path.
    chance: f64,
}

/// A model that reads trees.
pub(super) trait TreeModel: TokenModel {
    /// Reads nodes of trees, each below the text that was read last for a passage: of each tree all of its
    /// nodes, and those whose rows are wanted, which are in the last layer. Returns the first row of each
    /// tree, whose rows are in the order of the wanted nodes; `None` if there is no room to read it.
    fn branch(
        &mut self,
        trees: &[(Self::Passage, &[TreeNode], Vec<usize>)],
    ) -> Result<(Logits, Vec<Option<usize>>), EngineError>;
}

/// Returns the number of nodes from the text to a node, inclusive.
pub(super) fn depth(nodes: &[TreeNode], node: usize) -> usize {
    std::iter::successors(Some(node), |&node| nodes[node].parent).count()
}

/// A tree that grows.
struct Growing {
    /// The index of its sequence.
    index: usize,
    /// The draft that it hangs below; `None` for the text.
    tip: Option<NodeId>,
    nodes: Vec<TreeNode>,
    /// The nodes that are read on, with what is allowed after each; `None` for the tip.
    open: Vec<(Option<usize>, Option<Bounds>)>,
    /// The layers that may follow.
    left: usize,
}

/// A token that may become a node.
struct Candidate {
    parent: Option<usize>,
    token: u32,
    /// Its chance if its parent is confirmed.
    share: f64,
    /// The chance of its path.
    chance: f64,
}

/// What a grammar says about the candidates of a layer.
struct Placed {
    drafts: Vec<Draft>,
    /// The draft of each candidate, and what is allowed after it; `None` if it is not drafted.
    nodes: Vec<Option<(NodeId, Option<Bounds>)>>,
    /// What is allowed at the tip, if there are no candidates.
    at_tip: Option<Bounds>,
}

impl TokenDrafter {
    /// Extends the drafts of these sequences: by trees where the law draws once whatever is drafted, and by
    /// chains elsewhere. Returns the number of passes that this took.
    pub(super) fn propose_by_rule(
        &self,
        model: &mut impl TreeModel,
        sequences: &mut [&mut Sequence],
        grammar_tasks: &GrammarTasks,
        grace: Duration,
    ) -> Result<usize, EngineError> {
        let all = sequences.iter_mut().map(|sequence| &mut **sequence);
        let (mut branching, mut chains): (Vec<&mut Sequence>, Vec<&mut Sequence>) =
            all.partition(|sequence| sequence.verification() == Verification::DrawOnce);
        let rounds = self.propose(model, &mut chains, grammar_tasks, grace)?;
        Ok(rounds + self.propose_trees(model, &mut branching, grammar_tasks, grace)?)
    }

    /// Extends the drafts of these sequences by trees, layer by layer, as far as each reaches. Returns the
    /// number of passes that this took.
    fn propose_trees(
        &self,
        model: &mut impl TreeModel,
        sequences: &mut [&mut Sequence],
        grammar_tasks: &GrammarTasks,
        grace: Duration,
    ) -> Result<usize, EngineError> {
        let mut growing = Vec::new();
        for (index, sequence) in sequences.iter_mut().enumerate() {
            let tip = sequence.draft.tip;
            let left = sequence.draft.reach.saturating_sub(sequence.draft.drafts.len());
            if may_go_on(sequence, tip) && model.prepare(sequence, tip) {
                growing.push(Growing {
                    index,
                    tip,
                    nodes: Vec::new(),
                    open: Vec::new(),
                    left: left.min(LAYERS),
                });
            }
        }
        let none = growing.iter().map(|_| Vec::new()).collect();
        let mut growing = self.place(sequences, growing, none, grammar_tasks, grace);
        let mut rounds = 0;
        while !growing.is_empty() {
            let (mut logits, firsts) = read(model, sequences, &growing)?;
            rounds += 1;
            for row in logits.rows_mut() {
                self.columns.clean(row);
            }
            let layers = growing.iter().zip(firsts).map(|(tree, first)| {
                let row = |number: usize| self.columns.of(&logits, number);
                let layer = |first| tree.layer(&*sequences[tree.index], |at| row(first + at));
                first.map_or_else(Vec::new, layer)
            });
            let layers: Vec<Vec<Candidate>> = layers.collect();
            growing = self.place(sequences, growing, layers, grammar_tasks, grace);
        }
        Ok(rounds)
    }

    /// Drafts the candidates of each tree that pay to feed; returns the trees that grow on. Without
    /// candidates this requests only the mask of the tip.
    fn place(
        &self,
        sequences: &mut [&mut Sequence],
        growing: Vec<Growing>,
        layers: Vec<Vec<Candidate>>,
        grammar_tasks: &GrammarTasks,
        grace: Duration,
    ) -> Vec<Growing> {
        let works = growing.iter().zip(&layers).map(|(tree, layer)| {
            let sequence = &*sequences[tree.index];
            let mut outlook = grammar_tasks.outlook(sequence);
            let (vocabulary, tip, is_begun) = (self.vocabulary.clone(), tree.tip, !tree.open.is_empty());
            let drafts: Vec<Draft> = layer.iter().map(|candidate| tree.draft(candidate)).collect();
            let work = move || {
                let first = outlook.drafts.len();
                let mut nodes = Vec::with_capacity(drafts.len());
                for draft in drafts {
                    let at = outlook.drafts.len();
                    nodes.push(match outlook.extend(vec![draft], &vocabulary)? {
                        true => Some((at, outlook.bounds(at + 1)?)),
                        false => None,
                    });
                }
                let at_tip = match is_begun {
                    true => None,
                    false => outlook.bounds(tip.map_or(0, |tip| tip + 1))?,
                };
                let drafts = outlook.drafts.split_off(first);
                Ok(Placed {
                    drafts,
                    nodes,
                    at_tip,
                })
            };
            (sequence.request.limits.owner.clone(), work)
        });
        let has_grammar = |tree: &Growing| sequences[tree.index].request.constraints.grammar.is_some();
        let (mut slow, mut found): (Vec<_>, Vec<Option<Placed>>) = (Vec::new(), Vec::new());
        for (tree, (owner, work)) in growing.iter().zip(works) {
            // Without a grammar nothing can take long.
            match has_grammar(tree) {
                true => {
                    slow.push((owner, work));
                    found.push(None);
                }
                false => found.push(work().ok()),
            }
        }
        let mut late = grammar_tasks.together(slow, grace).into_iter();
        let waited = growing
            .iter()
            .zip(&mut found)
            .filter(|(tree, _)| has_grammar(tree));
        waited.for_each(|(_, found)| *found = late.next().flatten());
        let mut going = Vec::new();
        for ((mut tree, layer), placed) in growing.into_iter().zip(layers).zip(found) {
            let sequence = &mut *sequences[tree.index];
            let Some(placed) = placed else {
                sequence.cool_down();
                continue;
            };
            sequence.draft.drafts.extend(placed.drafts);
            match tree.open.is_empty() {
                true => tree.open.push((None, placed.at_tip)),
                false => tree.grow(layer, placed.nodes),
            }
            going.extend(Some(tree).filter(|tree| !tree.open.is_empty()));
        }
        going
    }
}

/// Reads the open nodes of all trees: the tips first, and then nodes below them.
fn read<M: TreeModel>(
    model: &mut M,
    sequences: &[&mut Sequence],
    growing: &[Growing],
) -> Result<(Logits, Vec<Option<usize>>), EngineError> {
    let passage = |model: &M, tree: &Growing| model.passage(sequences[tree.index], tree.tip);
    // All trees have the same number of layers.
    if growing.iter().all(|tree| tree.nodes.is_empty()) {
        let passages: Vec<_> = growing.iter().map(|tree| passage(model, tree)).collect();
        return model.forward(&passages);
    }
    let trees = growing.iter().map(|tree| {
        let wanted = tree.open.iter().filter_map(|(node, _)| *node).collect();
        (passage(model, tree), &tree.nodes[..], wanted)
    });
    let trees: Vec<_> = trees.collect();
    model.branch(&trees)
}

impl Growing {
    /// Returns the candidate as a draft.
    fn draft(&self, candidate: &Candidate) -> Draft {
        Draft {
            token: candidate.token,
            parent: candidate
                .parent
                .map_or(self.tip, |parent| Some(self.nodes[parent].draft)),
            source: Source::Branch(Confidence::of(Some(candidate.share as f32))),
            state: None,
            proposal: Proposal::Point,
            is_last: true,
        }
    }

    /// Returns the likeliest candidates after the open nodes, whose rows are those of these numbers.
    fn layer<'r>(&self, sequence: &Sequence, row: impl Fn(usize) -> Row<'r>) -> Vec<Candidate> {
        let mut layer = Vec::new();
        for (number, (node, bounds)) in self.open.iter().enumerate() {
            let before = node.map_or(1.0, |node| self.nodes[node].chance);
            let draft = node.map_or(self.tip, |node| Some(self.nodes[node].draft));
            let children = children(sequence, row(number), bounds.as_ref(), drafted(sequence, draft));
            layer.extend(children.into_iter().map(|(token, share)| Candidate {
                parent: *node,
                token,
                share,
                chance: before * share,
            }));
        }
        layer.retain(|candidate| candidate.chance >= LEAST[0]);
        // The sort is stable, so equal chances stay in order.
        layer.sort_by(|one, other| other.chance.total_cmp(&one.chance));
        // Deeper layers have their part of the room.
        let room = sequence.room().saturating_sub(sequence.draft.drafts.len());
        layer.truncate(LAYER.min((room / self.left.max(1)).max(1)));
        layer
    }

    /// Adds the nodes of a layer that were drafted, and opens those that are read on.
    fn grow(&mut self, layer: Vec<Candidate>, placed: Vec<Option<(NodeId, Option<Bounds>)>>) {
        self.open.clear();
        self.left = self.left.saturating_sub(1);
        for (candidate, placed) in layer.into_iter().zip(placed) {
            let Some((draft, bounds)) = placed else {
                continue;
            };
            if self.left > 0 && self.open.len() < READ && candidate.chance >= LEAST[1] {
                self.open.push((Some(self.nodes.len()), bounds));
            }
            self.nodes.push(TreeNode {
                token: candidate.token,
                parent: candidate.parent,
                draft,
                chance: candidate.chance,
            });
        }
    }
}

/// Returns the likeliest tokens after drafts, each with the chance that it is drawn.
///
/// The law draws with numbers that are known, and from a row like its own they draw the same token: the token
/// that they draw from this row has half of what is left, besides its share.
fn children(
    sequence: &Sequence,
    row: Row<'_>,
    bounds: Option<&Bounds>,
    drafted: Vec<u32>,
) -> Vec<(u32, f64)> {
    let allowed = match (bounds, &sequence.request.constraints.grammar) {
        (Some(bounds), _) => Allowed::Words(bounds.mask.words()),
        (None, None) => Allowed::All,
        (None, Some(_)) => return Vec::new(),
    };
    let place = sequence.draw.walk.place_after(drafted.len() as u32);
    let past = sequence.past();
    let counted = past.counted(drafted, allowed);
    let warper = &sequence.draw.warper;
    let Ok(row) = warper.row_of(row.logits, row.measured, past.history(&counted)) else {
        return Vec::new();
    };
    if warper.is_greedy() {
        let row = row.uncut();
        let likely = row.part(allowed).top(LAYER).into_iter();
        return likely
            .map(|(token, log_share)| (token, log_share.exp()))
            .collect();
    }
    let part = row.part(allowed);
    let mut chooser = Seeded::new(sequence.request.sampling.seed, sequence.stream());
    let Some(first) = part.draw(place, &mut chooser) else {
        return Vec::new();
    };
    let drawn = part.share(first);
    let others = part.top(LAYER).into_iter().filter(|(token, _)| *token != first);
    let others = others.map(|(token, log_share)| (token, log_share.exp() / 2.0));
    std::iter::once((first, (1.0 + drawn) / 2.0))
        .chain(others)
        .collect()
}
