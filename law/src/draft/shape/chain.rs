//! A chain of the likeliest tokens.

use super::Shape;
use super::frontier::Frontier;
use crate::draft::{Candidate, Constraint, Draft, NodeId, Predictor, Text};

/// The condition that ends a chain early.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stop {
    /// Its path is less likely than this.
    Unlikely(f32),
    /// SVIP's bound ([Zhang et al. 2024](https://arxiv.org/abs/2411.18462)) on the acceptance of a token is
    /// too low: `√(0.15 H)` exceeds this, where `H` is the entropy of the next token in nats. The paper uses
    /// 0.3. The token after which the chain ends is still drafted.
    Unsure(f32),
}

/// The likeliest candidate after each token, until one is too unlikely.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chain {
    /// The condition that ends it.
    pub stop: Stop,
}

/// SVIP's constant `c` in the bound `1 − √(c H)` on the acceptance.
const SLACK: f32 = 0.15;

/// Returns the entropy of candidates in nats. The remaining probability counts as one more token.
fn entropy(candidates: &[Candidate]) -> f32 {
    let known: f32 = candidates.iter().map(|candidate| candidate.chance).sum();
    let chances = candidates.iter().map(|candidate| candidate.chance);
    let each = chances.chain([1.0 - known]).filter(|chance| *chance > 0.0);
    -each.map(|chance| chance * chance.ln()).sum::<f32>()
}

impl<C: Constraint, Q> Shape<C, Q> for Chain {
    fn grow(
        &self,
        predictor: &dyn Predictor,
        text: Text<'_>,
        below: Option<NodeId>,
        draft: &mut Draft<'_, C, Q>,
    ) {
        let mut frontier = Frontier::new(predictor, text, draft);
        let (mut node, mut likely) = (below, 1.0);
        loop {
            let candidates = frontier.candidates(node);
            let Some(best) = candidates.first() else { return };
            likely *= best.chance;
            if matches!(self.stop, Stop::Unlikely(least) if likely < least) {
                return;
            }
            node = frontier.add(node, best);
            let is_unsure = |most: f32| (SLACK * entropy(&candidates)).sqrt() > most;
            if node.is_none() || matches!(self.stop, Stop::Unsure(most) if is_unsure(most)) {
                return;
            }
        }
    }
}
