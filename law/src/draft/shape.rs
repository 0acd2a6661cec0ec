//! Shapes: how a draft spends its tokens on the candidates of a predictor.
//!
//! ```text
//!   Predictor ─ candidates below a node ─► Shape ─ offers ─► Draft        as many nodes as the draft has room for
//! ```
//!
//! | shape | which nodes |
//! |---|---|
//! | [`Chain`] | the likeliest child of each, until the predictor is unsure (SVIP) or the path is unlikely |
//! | [`Template`] | a fixed tree of ranks: Token Recycling's, or Sequoia's from measured acceptance |
//! | [`Sampled`] | such a tree, of tokens that are drawn: STAND's |
//! | [`OptTree`] | the likeliest paths among the likeliest nodes of each layer |
//! | [`BestFirst`] | the likeliest paths of the whole tree: SpecExec, and DySpec for candidates without chance |
//!
//! All of them read the chances of candidates and never what the target draws. All but [`Sampled`] offer
//! tokens without chance ([`Proposal::Point`](super::Proposal)), so none of these can change a law; `Sampled`
//! keeps the conditions of [`verify`](crate::verify) for tokens that were drawn.

mod best_first;
mod chain;
mod frontier;
mod opt_tree;
mod sampled;
mod sequoia;
mod template;
#[cfg(test)]
mod tests;

pub use best_first::BestFirst;
pub use chain::{Chain, Stop};
pub use opt_tree::OptTree;
pub use sampled::{Here, Sampled};
pub use sequoia::Sequoia;
pub use template::Template;

use super::{Constraint, Draft, NodeId, Predictor, Text};

/// Grows a draft from the candidates of a predictor.
pub trait Shape<C: Constraint, Q>: Send {
    /// Adds nodes below a node of the draft, or after the text for `None`, until nothing is likely enough or
    /// there is no room. Nodes that are already there are extended.
    fn grow(
        &self,
        predictor: &dyn Predictor,
        text: Text<'_>,
        below: Option<NodeId>,
        draft: &mut Draft<'_, C, Q>,
    );
}
