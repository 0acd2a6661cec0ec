//! Predictors: the tokens that may come next at a place, learned from earlier rows and texts of the model.
//!
//! ```text
//!   text, drafted tokens, state of the constraint ─► Context ─► Predictor::predict ─► candidates
//!   what the model's row at a context was, and what was drawn ─► Predictor::learn
//! ```
//!
//! A predictor does not know the tree. A [`Shape`](super::Shape) asks it below one node after the other and
//! spends the tokens of a draft where they are likeliest to be accepted. So each published drafter is two
//! parts that combine freely:
//!
//! | system | predictor | shape |
//! |---|---|---|
//! | Token Recycling ([Luo et al. 2024](https://arxiv.org/abs/2408.08696)) | [`Recycling`] | [`Template`](super::Template) |
//! | adaptive drafts, ADED ([Liu et al. 2024](https://arxiv.org/abs/2407.12021)) | [`Trigram`] | [`BestFirst`](super::BestFirst) |
//! | STAND ([Song et al. 2025](https://arxiv.org/abs/2506.04708)) | [`NGrams`] | [`Sampled`](super::Sampled) |
//! | SAM-Decoding ([Hu et al. 2024](https://arxiv.org/abs/2411.10666)) | [`Suffixes`] | [`Chain`](super::Chain) |
//! | REST ([He et al. 2023](https://arxiv.org/abs/2311.08252)) | [`Retrieval`] | [`BestFirst`](super::BestFirst) |
//! | multi-sample consensus ([Li et al. 2025](https://arxiv.org/abs/2503.05330)) | [`Consensus`] | [`BestFirst`](super::BestFirst) |
//! | lookahead decoding ([Fu et al. 2024](https://arxiv.org/abs/2402.02057)), Ouroboros ([Zhao et al. 2024](https://arxiv.org/abs/2402.13720)) | [`Phrases`], which a [`JacobiWindow`](super::JacobiWindow) fills | [`BestFirst`](super::BestFirst) |
//! | hierarchy drafting ([Cho et al. 2025](https://arxiv.org/abs/2502.05609)), RASD ([Quan et al. 2025](https://arxiv.org/abs/2503.03434)), cascades ([Chen et al. 2023](https://arxiv.org/abs/2312.11462)) | [`Combined`] | any |
//!
//! [`StateKeyed`] is keyed by the constraint's state; no paper describes it.
//!
//! **Exact.** Candidates are offered without chance ([`Proposal::Point`](super::Proposal)), so they are
//! verified by drawing once: whatever a predictor predicts, and wherever it learned it, the text is the same
//! as without drafts. Candidates that are drawn ([`Sampled`](super::Sampled)) are verified by the residual
//! rule: the text has the same law.
//!
//! **Saved.** What predictors have learned from rows can be saved and restored ([`Predictor::save`]):
//! contexts are tokens and states of constraints, which mean the same in every process
//! ([`Constraint::key`](super::Constraint::key)).
//!
//! **Bounded.** A predictor never holds more bytes than it was created with, and allocates them as they are
//! needed.

mod combined;
mod consensus;
mod context;
mod keyed;
mod ngrams;
mod phrases;
mod recycling;
mod retrieval;
mod rows;
mod suffixes;
mod table;
#[cfg(test)]
mod tests;
mod trigram;
mod trust;

pub use combined::{Combined, Layer, Union};
pub use consensus::Consensus;
pub use context::{Candidate, Context, Observation};
pub use keyed::StateKeyed;
pub use ngrams::NGrams;
pub use phrases::Phrases;
pub use recycling::Recycling;
pub use retrieval::{CorpusError, Retrieval};
pub use suffixes::Suffixes;
pub use trigram::Trigram;

use super::Origin;

/// Predicts the next tokens, and learns from those that came.
pub trait Predictor: Send + Sync {
    /// Adds candidates for the next token, the likeliest first and each token once; none if nothing is
    /// known.
    ///
    /// Their chances are those of the model's own row, before any mask, and sum to at most 1. They are used
    /// only to order candidates and to decide how many to verify.
    fn predict(&self, at: &Context<'_>, found: &mut Vec<Candidate>);

    /// Learns from a row of the model that was verified.
    fn learn(&mut self, _at: &Context<'_>, _seen: &Observation<'_>) {}

    /// Learns from consecutive tokens of the model that became no text: guesses of a
    /// [`JacobiWindow`](super::JacobiWindow), and the tokens that it predicted after refused drafts.
    fn learn_phrase(&mut self, _phrase: &[u32]) {}

    /// Learns whether a candidate that was drafted came next. Only a predictor that chooses between others
    /// needs this.
    fn judge(&mut self, _origin: Origin, _chance: f32, _is_confirmed: bool) {}

    /// Learns from an answer that has ended.
    fn record(&mut self, _answer: &[u32]) {}

    /// Saves what was learned from rows, for use after a restart, as parts of bytes. The name of each part
    /// identifies the predictor and the format. What was learned from answers is not saved; call
    /// [`record`](Self::record) again for that.
    fn save(&self, _keep: &mut dyn FnMut(&'static str, Vec<u8>)) {}

    /// Restores a part that was saved under a name, in addition to what is known. Returns `true` if the name
    /// belongs to this predictor. Entries of the part that are no valid rows are left out.
    fn restore(&mut self, _name: &str, _part: &[u8]) -> bool {
        false
    }

    /// Returns the number of bytes that it holds.
    fn bytes(&self) -> usize;
}
