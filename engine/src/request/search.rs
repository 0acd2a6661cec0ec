//! The search that a request performs instead of a draw, with its parameters.

/// A search for likely texts. Its answers are not samples: temperature and filters define which texts are
/// likely, the constraint only cuts, and the result is deterministic.
///
/// In all formulas `P(w)` is the probability of a text under the warped model, before the mask, and `t` the
/// number of its tokens, the end token included. Texts are compared by what they write: of the token
/// sequences that write a text, the best one found counts, so answers differ, and may be fewer than requested
/// ([`EngineError::FewTexts`](crate::EngineError::FewTexts)). A text has the score `ln P(w) /
/// t^length_penalty` (Wu et al. 2016, arXiv 1609.08144).
#[derive(Clone, Debug, PartialEq)]
pub enum Search {
    /// Beam search: after every token the `width` likeliest prefixes continue.
    Beam {
        /// The number of prefixes followed at a time; at least the number of answers.
        width: usize,
        /// The exponent of the number of tokens in the score; from 0 to 10.
        length_penalty: f64,
        /// The search ends at the latest once `patience · width` token sequences are finished; above 0 (Kasai
        /// et al. 2024, arXiv 2204.05424).
        patience: Option<f64>,
    },
    /// Best-first beam search (Meister, Vieira, Cotterell 2020, arXiv 2007.03909): finds the answers of
    /// [`Search::Beam`] from no more rows, computed one after the other.
    BestFirstBeam {
        /// The maximum number of prefixes of each length that are followed; at least the number of answers.
        width: usize,
        /// The exponent of the number of tokens in the score; from 0 to 10.
        length_penalty: f64,
    },
    /// Diverse beam search (Vijayakumar et al. 2016, arXiv 1610.02424): beams in groups, each of which avoids
    /// the tokens that earlier groups have chosen at the same position.
    DiverseBeam {
        /// The number of prefixes followed at a time in all groups together; a multiple of `groups`.
        width: usize,
        /// The number of groups; at least 1.
        groups: usize,
        /// The cost of a token, in nats, for each time that earlier groups have chosen it at this position;
        /// from 0 to 100.
        diversity: f64,
        /// The exponent of the number of tokens in the score; from 0 to 10.
        length_penalty: f64,
    },
    /// Exact best-first search for the likeliest texts: no other text of the grammar within the answer's
    /// token limit is likelier than the last of them.
    KBest {
        /// The maximum number of rows to compute; at least 1.
        max_rows: usize,
        /// The maximum number of prefixes that are open at a time; at least 1.
        max_frontier: usize,
    },
    /// Beam search for texts that contain phrases, with dynamic beam allocation (Post, Vilar 2018, arXiv
    /// 1804.06609). If none is found, the answers fail with
    /// [`EngineError::PhrasesMissing`](crate::EngineError::PhrasesMissing).
    DynamicBeam {
        /// The number of prefixes followed at a time; at least the number of answers.
        width: usize,
        /// The exponent of the number of tokens in the score; from 0 to 10.
        length_penalty: f64,
        /// The phrases, each as tokens that write it: from 1 to 16 of them, each of 1 to 64 tokens. They are
        /// matched in the bytes of an answer, however it is tokenised.
        must_contain: Vec<Vec<u32>>,
    },
    /// Beam search that selects prefixes by their cost so far, by the minimum cost of their completion, and
    /// by what a look-ahead has of phrases that are wanted (after Lu et al. 2021, arXiv 2112.08726). If no
    /// text has the phrases, the answers fail as in [`Search::DynamicBeam`].
    AStarEsque {
        /// The number of prefixes followed at a time; at least the number of answers.
        width: usize,
        /// The exponent of the number of tokens in the score; from 0 to 10.
        length_penalty: f64,
        /// The expected cost, in nats, of each of the fewest tokens that a completion takes; from 0 to 100.
        distance_weight: f64,
        /// The number of tokens of the greedy look-ahead; from 0 to 16.
        look_ahead: usize,
        /// The clauses, of each of which an answer must contain a phrase; at most 16 phrases in all, with
        /// those of `must_not_contain`. Phrases are those of [`Search::DynamicBeam`].
        must_contain: Vec<Vec<Vec<u32>>>,
        /// Phrases that no answer contains.
        must_not_contain: Vec<Vec<u32>>,
    },
    /// Cautious next token prediction (2025, arXiv 2507.03038): where a row has high entropy, several
    /// continuations are drawn, and the likeliest is kept. Continuations are random, so temperature and seed
    /// matter.
    Cntp {
        /// The maximum number of continuations to try; from 1 to 16.
        trials: usize,
        /// The entropy in nats up to which only one continuation is drawn; at least 0.
        low_entropy: f64,
        /// The entropy in nats from which on all `trials` are drawn; at least `low_entropy`.
        high_entropy: f64,
        /// The maximum number of tokens of a trial; at least 1.
        trial_tokens: usize,
    },
}

impl Search {
    /// The maximum number of phrases of [`Search::DynamicBeam`] and [`Search::AStarEsque`].
    pub const MOST_PHRASES: usize = 16;
    /// The maximum number of tokens of a phrase.
    pub const MOST_PHRASE_TOKENS: usize = 64;
    /// The maximum number of tokens that [`Search::AStarEsque`] looks ahead.
    pub const MOST_LOOK_AHEAD: usize = 16;
    /// The maximum number of trials of [`Search::Cntp`].
    pub const MOST_TRIALS: usize = 16;

    /// Returns the maximum number of texts that one request for `answers` answers has in progress, including
    /// the prompt's own branch.
    pub(crate) fn branches(&self, answers: usize) -> usize {
        let prefixes = match self {
            Search::Beam { width, .. }
            | Search::DiverseBeam { width, .. }
            | Search::DynamicBeam { width, .. } => *width,
            // Beams, candidates, and the ends of the candidates' look-aheads.
            Search::AStarEsque { width, .. } => 3 * *width,
            Search::Cntp { trials, .. } => return answers * *trials,
            Search::BestFirstBeam { .. } | Search::KBest { .. } => OPEN_PREFIXES,
        };
        1 + 2 * prefixes.max(answers)
    }
}

impl Search {
    /// Returns `true` if the answers are drawn, and `false` if texts are ranked.
    pub fn draws(&self) -> bool {
        matches!(self, Search::Cntp { .. })
    }

    /// Returns the number of prefixes followed at a time, if the search bounds it.
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

    /// Returns the exponent of the number of tokens in the score, if there is one.
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

/// The number of prefixes whose keys and values are kept by a search that backtracks. Others are recomputed.
const OPEN_PREFIXES: usize = 8;
