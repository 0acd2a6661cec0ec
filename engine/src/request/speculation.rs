//! What a request drafts, and how that is verified.

/// Where drafts come from, and how those of a draft model are verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speculation {
    /// Text that the grammar leaves no choice about.
    pub forced: bool,
    /// What followed the last few tokens when they occurred before, in the prompt, the answer or
    /// [`Prompt::reference`](super::Prompt::reference).
    pub lookup: bool,
    /// What came in earlier answers to the same owner, as the engine has learned it
    /// ([`EngineConfig::draft_stores`](crate::EngineConfig::draft_stores)). This request teaches them whether
    /// or not it drafts so.
    pub learned: bool,
    /// What the other samples of this request have written, where there are several of them: multi-sample
    /// consensus ([`Consensus`](lexiform_law::draft::Consensus)). It is gone with the request.
    pub siblings: bool,
    /// The draft model that the engine was started with, if there is one.
    pub model: bool,
    /// How many tokens the draft model proposes at each place, at least 1. It goes on after the first, and
    /// the others stand beside it, so that one of them may be confirmed where the first is not; they share
    /// [`max_draft`](Self::max_draft). One with tokens of its own ([`Assistant`](crate::Assistant)) writes
    /// one text at temperature 0.
    pub candidates: usize,
    /// The most tokens drafted for one pass, over all branches of the draft.
    pub max_draft: usize,
    /// How many different continuations lookup may offer, where the last words have gone on in several ways.
    /// With more than one a draft is a tree, whose branches share [`max_draft`](Self::max_draft).
    pub branches: usize,
    /// How the tokens of the draft model are verified. Tokens that no model sampled are always verified by
    /// drawing once.
    pub verification: Verification,
}

/// How tokens that a draft model sampled are verified. All ways are exact: the law of the answer is the one
/// without drafts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verification {
    /// The draft model draws with random numbers of its own, and a token with probability `p` under the
    /// request's law and `q` under the draft model's is accepted with probability `min(1, p/q)`. This accepts
    /// the most, `1 − TV(p, q)` of the tokens. The same seed gives a text of the same law, but not the same
    /// text as without drafts, nor the same in every company: which random number decides about a token
    /// depends on whether it was drafted. Several [`candidates`](Speculation::candidates) are drawn without
    /// replacement, and judged one after the other, each by what those before it left (recursive rejection
    /// sampling of RSD, [Jeon et al. 2024](https://arxiv.org/abs/2402.14160)).
    ///
    /// Where nothing is left to chance (at temperature 0) and under the global law, drafts are verified by
    /// drawing once. Under the global law and that of [`Law::Asap`](lexiform_law::Law::Asap) the rows of
    /// all drafts teach what attempts would have to fail to find out, except for what a draft model drew: an
    /// answer takes fewer attempts, and its text depends on what was drafted.
    #[default]
    Residual,
    /// The same with candidates that are drawn independently of each other, so that one may come several
    /// times, and judged together: k-seq of SpecTr ([`k_seq`](lexiform_law::verify::k_seq)). One candidate is
    /// judged as by [`Verification::Residual`].
    KSeq,
    /// The request's own random numbers draw the token as if nothing were drafted, and the draft is accepted
    /// if it is this token. The draft model draws with the same numbers, to guess it; further
    /// [`candidates`](Speculation::candidates) are its most likely tokens. The same seed gives the same text,
    /// drafted or not; far fewer drafts are accepted where neither model is sure.
    DrawOnce,
}

impl Speculation {
    /// Whether anything is ever drafted.
    pub(crate) fn drafts(&self) -> bool {
        let has_source = self.forced || self.lookup || self.learned || self.siblings || self.model;
        has_source && self.max_draft > 0
    }

    /// One token a pass.
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
        }
    }

    /// All sources, up to 32 tokens.
    pub fn all() -> Self {
        Speculation {
            forced: true,
            lookup: true,
            learned: true,
            siblings: true,
            model: true,
            candidates: 1,
            max_draft: 32,
            branches: 1,
            verification: Verification::Residual,
        }
    }
}
