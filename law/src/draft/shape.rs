//! Shapes: how the tokens of a draft are spent on what a predictor finds likely.
//!
//! ```text
//!   Predictor ─ candidates below a node ─► Shape ─ offers ─► Draft        as many nodes as the draft has room for
//! ```
//!
//! | shape | which nodes |
//! |---|---|
//! | [`Chain`] | the likeliest child of each, until the predictor is unsure (SVIP) or the path is unlikely |
//! | [`Template`] | a tree of ranks that was fixed before: Token Recycling's, or Sequoia's from measured acceptance |
//! | [`OptTree`] | layer by layer, the nodes whose paths are the likeliest |
//! | [`BestFirst`] | the likeliest paths of the whole tree: SpecExec, and DySpec for candidates without chance |
//!
//! All of them look at the chances of candidates and never at what is drawn, and offer tokens without chance
//! ([`Proposal::Point`](super::Proposal)): none of them can change a law.

mod best_first;
mod chain;
mod frontier;
mod opt_tree;
mod predicted;
mod sequoia;
mod template;
#[cfg(test)]
mod tests;

pub use best_first::BestFirst;
pub use chain::{Chain, Stop};
pub use opt_tree::OptTree;
pub use predicted::Predicted;
pub use sequoia::Sequoia;
pub use template::Template;

use super::{Constraint, Draft, NodeId, Predictor, Text};

/// Grows a draft by what a predictor finds likely.
pub trait Shape<C: Constraint, Q>: Send {
    /// Adds nodes below one of the draft, or after the text for `None`, until nothing is likely enough or
    /// there is no room. What stands there already is gone on from.
    fn grow(
        &self,
        predictor: &dyn Predictor,
        text: Text<'_>,
        below: Option<NodeId>,
        draft: &mut Draft<'_, C, Q>,
    );
}
