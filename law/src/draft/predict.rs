//! Predictors: what may come next at a place, learned from what the model said before.
//!
//! ```text
//!   text, drafted tokens, state of the constraint ─► Context ─► Predictor::predict ─► candidates
//!   what the model's row at a context was, and what was drawn ─► Predictor::learn
//! ```
//!
//! A predictor knows nothing of trees. A [`Shape`](super::Shape) asks it below one node after the other and
//! spends the tokens of a draft where they are likeliest to be accepted. So each published drafter is two
//! parts that combine freely:
//!
//! | system | predictor | shape |
//! |---|---|---|
//! | Token Recycling ([Luo et al. 2024](https://arxiv.org/abs/2408.08696)) | [`Recycling`] | [`Template`](super::Template) |
//! | adaptive drafts, ADED ([Liu et al. 2024](https://arxiv.org/abs/2407.12021)) | [`Trigram`] | [`BestFirst`](super::BestFirst) |
//! | STAND ([Song et al. 2025](https://arxiv.org/abs/2506.04708)) | [`NGrams`] | [`Template`](super::Template) |
//! | SAM-Decoding ([Hu et al. 2024](https://arxiv.org/abs/2411.10666)) | [`Suffixes`] | [`Chain`](super::Chain) |
//! | REST ([He et al. 2023](https://arxiv.org/abs/2311.08252)) | [`Retrieval`] | [`BestFirst`](super::BestFirst) |
//! | multi-sample consensus ([Li et al. 2025](https://arxiv.org/abs/2503.05330)) | [`Consensus`] | [`BestFirst`](super::BestFirst) |
//! | lookahead decoding ([Fu et al. 2024](https://arxiv.org/abs/2402.02057)), Ouroboros ([Zhao et al. 2024](https://arxiv.org/abs/2402.13720)) | [`Phrases`], which a [`JacobiWindow`](super::JacobiWindow) fills | [`BestFirst`](super::BestFirst) |
//! | hierarchy drafting ([Cho et al. 2025](https://arxiv.org/abs/2502.05609)), RASD ([Quan et al. 2025](https://arxiv.org/abs/2503.03434)), cascades ([Chen et al. 2023](https://arxiv.org/abs/2312.11462)) | [`Combined`] | any |
//!
//! [`StateKeyed`] is a store by the constraint's state, which has no paper.
//!
//! **Exact.** Candidates are offered without chance ([`Proposal::Point`](super::Proposal)), so they are
//! verified by drawing once: whatever a predictor says, and whatever it learned from whom, the text is the
//! one without drafts.
//!
//! **Kept.** What predictors have learned from rows can be saved and restored ([`Predictor::save`]): contexts
//! are tokens and states of constraints, which mean the same in every process
//! ([`Constraint::key`](super::Constraint::key)).
//!
//! **Bounded.** A predictor never holds more bytes than it was made for, and allocates them as they are
//! needed.

mod combined;
mod consensus;
mod context;
mod keyed;
mod ngrams;
mod phrases;
mod recycling;
mod retrieval;
mod suffixes;
mod table;
#[cfg(test)]
mod tests;
mod trigram;

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

/// Says what may come next, and learns from what came.
pub trait Predictor: Send + Sync {
    /// Adds candidates for the next token, the likeliest first and each token once; none where nothing is
    /// known.
    ///
    /// Their chances are those of the model's own row, before any mask, and sum up to 1 at most. They are
    /// only ever used to order candidates and to say how many are worth verifying.
    fn predict(&self, at: &Context<'_>, found: &mut Vec<Candidate>);

    /// Learns from a row of the model that was verified.
    fn learn(&mut self, _at: &Context<'_>, _seen: &Observation<'_>) {}

    /// Learns from tokens that the model put one after the other and that became no text: guesses of a
    /// [`JacobiWindow`](super::JacobiWindow), and what it said behind drafts that were refused.
    fn learn_phrase(&mut self, _phrase: &[u32]) {}

    /// Learns from an answer that has ended.
    fn record(&mut self, _answer: &[u32]) {}

    /// Hands out what rows have taught it, to be kept over a restart: parts of bytes, each under a name that
    /// says whose they are and in which format. What answers have taught it is not among them;
    /// [`record`](Self::record) teaches that again.
    fn save(&self, _keep: &mut dyn FnMut(&'static str, Vec<u8>)) {}

    /// Takes over a part that was kept under a name, beside what it knows; whether the name is one of its
    /// own. What of the part is no row is left out.
    fn restore(&mut self, _name: &str, _part: &[u8]) -> bool {
        false
    }

    /// The bytes that it holds.
    fn bytes(&self) -> usize;
}
