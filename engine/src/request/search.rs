//! The search that a request asks for in place of a draw: which one, with its parameters.

/// A search for likely texts. Its answers are no samples: temperature and filters are part of what is likely,
/// the constraint only cuts, and nothing is left to chance.
///
/// In all formulas `P(w)` is the probability of a text under the warped model, before the mask, and `t` the
/// number of its tokens, the end token included. A text has the score `ln P(w) / t^length_penalty` (Wu et al.
/// 2016, arXiv 1609.08144).
#[derive(Clone, Debug, PartialEq)]
pub enum Search {
    /// Beam search: after every token the `width` likeliest prefixes go on.
    Beam {
        /// Prefixes followed at a time; at least as many as answers.
        width: usize,
        /// The exponent of the number of tokens in the score; from 0 to 10.
        length_penalty: f64,
        /// The search ends once this many times the width texts are finished, if not before; above 0 (Kasai
        /// et al. 2024, arXiv 2204.05424).
        patience: Option<f64>,
    },
    /// Best-first beam search (Meister, Vieira, Cotterell 2020, arXiv 2007.03909): the answers of
    /// [`Search::Beam`], from no more rows, one after the other.
    BestFirstBeam {
        /// Prefixes of each length that are followed at most; at least as many as answers.
        width: usize,
        /// The exponent of the number of tokens in the score; from 0 to 10.
        length_penalty: f64,
    },
    /// Diverse beam search (Vijayakumar et al. 2016, arXiv 1610.02424): beams in groups, each of which avoids
    /// the tokens that the groups before it have taken at the same place.
    DiverseBeam {
        /// Prefixes followed at a time in all groups together; a multiple of `groups`.
        width: usize,
        /// How many groups there are; at least 1.
        groups: usize,
        /// What a token costs, in nats, for each time that it was taken at this place in the groups before;
        /// from 0 to 100.
        diversity: f64,
        /// The exponent of the number of tokens in the score; from 0 to 10.
        length_penalty: f64,
    },
    /// Best-first search for the likeliest texts, exactly: no other text of the grammar within the tokens of
    /// the answer is likelier than the last of them.
    KBest {
        /// The most rows that are computed; at least 1.
        max_rows: usize,
        /// The most prefixes that are open at a time; at least 1.
        max_frontier: usize,
    },
    /// Beam search for texts that contain phrases, with dynamic beam allocation (Post, Vilar 2018, arXiv
    /// 1804.06609). Where none is found the answers fail with
    /// [`EngineError::PhrasesMissing`](crate::EngineError::PhrasesMissing).
    DynamicBeam {
        /// Prefixes followed at a time; at least as many as answers.
        width: usize,
        /// The exponent of the number of tokens in the score; from 0 to 10.
        length_penalty: f64,
        /// The phrases, each as tokens that write it: from 1 to 16 of them, each of 1 to 64 tokens. They are
        /// found in the bytes of an answer, whatever tokens it is made of.
        must_contain: Vec<Vec<u32>>,
    },
    /// Beam search that selects prefixes by what they have cost and by what their completion costs at least
    /// (after Lu et al. 2021, arXiv 2112.08726).
    AStarEsque {
        /// Prefixes followed at a time; at least as many as answers.
        width: usize,
        /// The exponent of the number of tokens in the score; from 0 to 10.
        length_penalty: f64,
        /// What a token is expected to cost of those that a completion takes at least, in nats; from 0 to
        /// 100.
        distance_weight: f64,
        /// How many of the likeliest tokens are looked ahead; from 0 to 16.
        look_ahead: usize,
    },
    /// Cautious next token prediction (2025, arXiv 2507.03038): where a row has much entropy, several
    /// continuations are drawn, and the likeliest is kept. What is drawn is left to chance, so temperature
    /// and seed matter.
    Cntp {
        /// The most continuations that are tried; from 1 to 16.
        trials: usize,
        /// The entropy in nats up to which there is one; at least 0.
        low_entropy: f64,
        /// The entropy in nats from which on there are all; at least `low_entropy`.
        high_entropy: f64,
        /// The most tokens of a trial; at least 1.
        trial_tokens: usize,
    },
}

impl Search {
    /// The most phrases of [`Search::DynamicBeam`].
    pub const MOST_PHRASES: usize = 16;
    /// The most tokens of a phrase.
    pub const MOST_PHRASE_TOKENS: usize = 64;
    /// The most tokens that [`Search::AStarEsque`] looks ahead.
    pub const MOST_LOOK_AHEAD: usize = 16;
    /// The most trials of [`Search::Cntp`].
    pub const MOST_TRIALS: usize = 16;

    /// How many texts one request for so many answers has under way at most, the prompt's own branch
    /// included.
    pub(crate) fn branches(&self, answers: usize) -> usize {
        let prefixes = match self {
            Search::Beam { width, .. }
            | Search::DiverseBeam { width, .. }
            | Search::DynamicBeam { width, .. } => *width,
            // Candidates and the ends of their look-aheads.
            Search::AStarEsque { width, .. } => 3 * *width,
            Search::Cntp { trials, .. } => return answers * *trials,
            Search::BestFirstBeam { .. } | Search::KBest { .. } => OPEN_PREFIXES,
        };
        1 + 2 * prefixes.max(answers)
    }
}

impl Search {
    /// Returns `true` if its answers are drawn, and `false` if texts are ranked.
    pub fn draws(&self) -> bool {
        matches!(self, Search::Cntp { .. })
    }

    /// Prefixes that are followed at a time, where the search bounds them.
    pub(crate) fn width(&self) -> Option<usize> {
        match *self {
            Search::Beam { width, .. }
            | Search::BestFirstBeam { width, .. }
            | Search::DiverseBeam { width, .. }
            | Search::DynamicBeam { width, .. }
            | Search::AStarEsque { width, .. } => Some(width),
            Search::KBest { .. } | Search::Cntp { .. } => None,
        }
    }

    /// The exponent of the number of tokens in the score, where there is one.
    pub(crate) fn length_penalty(&self) -> Option<f64> {
        match *self {
            Search::Beam { length_penalty, .. }
            | Search::BestFirstBeam { length_penalty, .. }
            | Search::DiverseBeam { length_penalty, .. }
            | Search::DynamicBeam { length_penalty, .. }
            | Search::AStarEsque { length_penalty, .. } => Some(length_penalty),
            Search::KBest { .. } | Search::Cntp { .. } => None,
        }
    }
}

/// Prefixes whose keys and values are kept by a search that goes back to them. Others are computed again.
const OPEN_PREFIXES: usize = 8;
