//! The drafts of a request, and how they are verified.

/// The sources of drafts, and how the drafts of a draft model are verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speculation {
    /// Drafts text that the grammar forces.
    pub forced: bool,
    /// Drafts the continuation of an earlier occurrence of the last few tokens in the prompt, the answer or
    /// [`Prompt::reference`](super::Prompt::reference).
    pub lookup: bool,
    /// Drafts text of earlier answers to the same owner, as learned by the engine
    /// ([`EngineConfig::draft_stores`](crate::EngineConfig::draft_stores)). The stores learn from this
    /// request whether or not it drafts from them.
    pub learned: bool,
    /// Drafts text that the other samples of this request have written, if there are several: multi-sample
    /// consensus ([`Consensus`](lexiform_law::draft::Consensus)). It is discarded with the request.
    pub siblings: bool,
    /// Drafts with the draft model that the engine was started with, if there is one.
    pub model: bool,
    /// The number of tokens that the draft model proposes at each position, at least 1. It continues after
    /// the first, and the others are its siblings, so that one of them may be confirmed if the first is not;
    /// they share [`max_draft`](Self::max_draft). A draft model with a different vocabulary
    /// ([`Assistant`](crate::Assistant)) writes one text at temperature 0.
    pub candidates: usize,
    /// The maximum number of tokens drafted for one pass, over all branches of the draft.
    pub max_draft: usize,
    /// The maximum number of different continuations that lookup may offer, if the last words were continued
    /// in several ways. With more than one, a draft is a tree, whose branches share
    /// [`max_draft`](Self::max_draft).
    pub branches: usize,
    /// How the tokens of the draft model are verified. Tokens that were not sampled are always verified by
    /// drawing once.
    pub verification: Verification,
    /// Draws the drafts of stores from the rows that they have learned, in place of the likeliest tokens, and
    /// verifies them by the residual rule: STAND. No effect where drafts are verified by drawing once.
    pub sampled: bool,
}

/// How tokens sampled by a draft model are verified. All ways are exact: the law of the answer is the same as
/// without drafts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verification {
    /// The draft model draws with separate random numbers, and a token with probability `p` under the
    /// request's law and `q` under the draft model's is accepted with probability `min(1, p/q)`. This accepts
    /// the most, `1 − TV(p, q)` of the tokens. The same seed gives a text of the same law, but not the same
    /// text as without drafts, and the text may depend on concurrent requests: which random number decides
    /// about a token depends on whether it was drafted. Several [`candidates`](Speculation::candidates) are
    /// drawn without replacement, and judged one after the other, each by the residual that the previous ones
    /// left (recursive rejection sampling of RSD, [Jeon et al. 2024](https://arxiv.org/abs/2402.14160)).
    ///
    /// At temperature 0, where the text is deterministic, and under the global law, drafts are verified by
    /// drawing once. Under the global law and under [`Law::Asap`](lexiform_law::Law::Asap), the rows of all
    /// drafts except those that a draft model drew add to the trie what failed attempts would have to find
    /// out: an answer takes fewer attempts, and its text depends on what was drafted.
    #[default]
    Residual,
    /// Like [`Verification::Residual`], with candidates that are drawn independently of each other, so that a
    /// token may occur several times, and judged together: k-seq of SpecTr
    /// ([`k_seq`](lexiform_law::verify::k_seq)). A single candidate is judged as by
    /// [`Verification::Residual`].
    KSeq,
    /// The request's own random numbers draw the token as if nothing were drafted, and the draft is accepted
    /// if it is this token. The draft model draws with the same numbers, to guess it; further
    /// [`candidates`](Speculation::candidates) are its most likely tokens. The same seed gives the same text,
    /// drafted or not; far fewer drafts are accepted where neither model is sure.
    ///
    /// Several answers under the global law or under [`Law::Asap`](lexiform_law::Law::Asap) learn from each
    /// other in a fixed order, each from answers that have ended, so that it does not matter which is ahead.
    /// Requests without drafts may choose it for this.
    DrawOnce,
}

impl Speculation {
    /// Returns `true` if anything is ever drafted.
    pub(crate) fn drafts(&self) -> bool {
        let has_source = self.forced || self.lookup || self.learned || self.siblings || self.model;
        has_source && self.max_draft > 0
    }

    /// Returns settings without drafts: one token per pass.
    pub fn none() -> Self {
        Speculation {
            forced: false,
            lookup: false,
            learned: false,
            siblings: false,
            model: false,
            candidates: 1,
            max_draft: 0,
            branches: 1,
            verification: Verification::Residual,
            sampled: false,
        }
    }

    /// Returns settings with all sources and up to 256 tokens. So many are drafted only while a copy is being
    /// confirmed, or where the grammar forces them, and fed only as far as they pay.
    pub fn all() -> Self {
        Speculation {
            forced: true,
            lookup: true,
            learned: true,
            siblings: true,
            model: true,
            candidates: 1,
            max_draft: 256,
            branches: 1,
            verification: Verification::Residual,
            sampled: false,
        }
    }
}
