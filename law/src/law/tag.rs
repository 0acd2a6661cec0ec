//! The tag that a sample carries, and the reasons why a law cannot be sampled from.

use std::fmt;

/// The law that a sample was drawn from; the table is in the documentation of [`law`](crate::law).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LawTag {
    /// No constraint.
    Raw,
    /// No constraint, and rows cut by filters.
    RawFiltered,
    /// The most likely allowed token at each position.
    Greedy,
    /// The masked rows.
    Local,
    /// The masked rows, cut by filters.
    LocalFiltered,
    /// The model conditioned on the constraint.
    GlobalExact,
    /// The model as its filters leave it, conditioned on the constraint.
    GlobalExactFiltered,
    /// A sample that replaces a global one, drawn with what failed attempts have learned, with its weight.
    GlobalWeighted,
    /// The same for the model as its filters leave it.
    GlobalWeightedFiltered,
    /// Drafts that were likely enough, whatever their probability, and draws between them
    /// ([`TypicalAcceptance`](super::TypicalAcceptance)).
    Lossy,
    /// The likeliest of several samples, whatever their law.
    BestOf,
    /// Drawn by weight from particles that were resampled on the way: the global law in the limit of many.
    Smc,
    /// The same for the model as its filters leave it.
    SmcFiltered,
    /// Drawn by weight from several local samples: the global law in the limit of many.
    Sir,
    /// The same for the model as its filters leave it.
    SirFiltered,
    /// A text of a Markov chain: the global law in the limit of many steps.
    Mcmc,
    /// The same for the model as its filters leave it.
    McmcFiltered,
    /// Drawn with the trie that earlier texts have filled: the global law in the limit of many texts.
    Asap,
    /// The same for the model as its filters leave it.
    AsapFiltered,
    /// Drawn without known errors, going back where a new one was met ([`Aprad`](crate::law::Aprad)):
    /// approximate.
    Aprad,
    /// The same for the model as its filters leave it.
    ApradFiltered,
    /// The likeliest texts that a beam search found.
    Beam,
    /// The likeliest texts that a best-first beam search found.
    BestFirstBeam,
    /// Likely texts that groups of beams found, each group avoiding what the others write.
    DiverseBeam,
    /// The likeliest texts of all.
    KBest,
    /// Likely texts that contain given phrases.
    DynamicBeam,
    /// Likely texts, found with a look-ahead to the end.
    AStarEsque,
    /// Drawn, with trials where the model was unsure, of which the likeliest was kept.
    Cntp,
}

impl LawTag {
    /// Returns the tag as text: `global-exact` and so on.
    pub fn as_str(self) -> &'static str {
        match self {
            LawTag::Raw => "raw",
            LawTag::RawFiltered => "raw-filtered",
            LawTag::Greedy => "greedy",
            LawTag::Local => "local",
            LawTag::LocalFiltered => "local-filtered",
            LawTag::GlobalExact => "global-exact",
            LawTag::GlobalExactFiltered => "global-exact-filtered",
            LawTag::GlobalWeighted => "global-weighted",
            LawTag::GlobalWeightedFiltered => "global-weighted-filtered",
            LawTag::Lossy => "lossy",
            LawTag::BestOf => "best-of",
            LawTag::Smc => "smc",
            LawTag::SmcFiltered => "smc-filtered",
            LawTag::Sir => "sir",
            LawTag::SirFiltered => "sir-filtered",
            LawTag::Mcmc => "mcmc",
            LawTag::McmcFiltered => "mcmc-filtered",
            LawTag::Asap => "asap",
            LawTag::AsapFiltered => "asap-filtered",
            LawTag::Aprad => "aprad",
            LawTag::ApradFiltered => "aprad-filtered",
            LawTag::Beam => "beam",
            LawTag::BestFirstBeam => "best-first-beam",
            LawTag::DiverseBeam => "diverse-beam",
            LawTag::KBest => "k-best",
            LawTag::DynamicBeam => "dynamic-beam",
            LawTag::AStarEsque => "a-star-esque",
            LawTag::Cntp => "cntp",
        }
    }
}

impl LawTag {
    /// Returns the tag of this law where filters cut its rows. A law that the filters are a part of, or that
    /// cannot be written down anyway, keeps its tag; and so does a search, which ranks texts by what the
    /// filters leave.
    #[must_use]
    pub fn filtered(self) -> Self {
        match self {
            LawTag::Raw => LawTag::RawFiltered,
            LawTag::Local => LawTag::LocalFiltered,
            LawTag::GlobalExact => LawTag::GlobalExactFiltered,
            LawTag::GlobalWeighted => LawTag::GlobalWeightedFiltered,
            LawTag::Smc => LawTag::SmcFiltered,
            LawTag::Sir => LawTag::SirFiltered,
            LawTag::Mcmc => LawTag::McmcFiltered,
            LawTag::Asap => LawTag::AsapFiltered,
            LawTag::Aprad => LawTag::ApradFiltered,
            other => other,
        }
    }

    /// Returns `true` if a sample of this law has an importance weight. It has none if its law has no closed
    /// form, or if nothing was left to chance.
    pub fn has_weight(self) -> bool {
        match self {
            LawTag::Raw
            | LawTag::RawFiltered
            | LawTag::Local
            | LawTag::LocalFiltered
            | LawTag::GlobalExact
            | LawTag::GlobalExactFiltered
            | LawTag::GlobalWeighted
            | LawTag::GlobalWeightedFiltered
            | LawTag::Asap
            | LawTag::AsapFiltered
            | LawTag::Smc
            | LawTag::SmcFiltered
            | LawTag::Sir
            | LawTag::SirFiltered => true,
            LawTag::Greedy
            | LawTag::Lossy
            | LawTag::BestOf
            | LawTag::Mcmc
            | LawTag::McmcFiltered
            | LawTag::Aprad
            | LawTag::ApradFiltered
            | LawTag::Beam
            | LawTag::BestFirstBeam
            | LawTag::DiverseBeam
            | LawTag::KBest
            | LawTag::DynamicBeam
            | LawTag::AStarEsque
            | LawTag::Cntp => false,
        }
    }
}

impl fmt::Display for LawTag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The reason why a law cannot be sampled from.
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
#[non_exhaustive]
pub enum LawError {
    /// A parameter of the warping is out of its range.
    #[error("{name} is {value}; it must be {expected}")]
    OutOfRange {
        /// The parameter.
        name: &'static str,
        /// The value given.
        value: f64,
        /// The values that are possible.
        expected: &'static str,
    },
    /// Greedy decoding has no global form short of a search for the most likely sequence.
    #[error("the global law needs a temperature above 0")]
    GreedyGlobal,
    /// Mirostat's bound depends on the surprise under a mask, and the global law is defined by the model
    /// before the mask.
    #[error("Mirostat needs the local law")]
    MirostatGlobal,
    /// The global law conditions on a constraint, and there is none.
    #[error("the global law needs a constraint")]
    NothingToCondition,
    /// The law depends on all allowed tokens of a position, and the constraint can only check single tokens.
    #[error("the law needs the mask of what is allowed, and tokens can only be asked about")]
    NeedsMask,
    /// The row gives no probability at all to any token that the constraint allows.
    #[error("at token {position} of the answer the model gives no probability to any allowed token")]
    NoMass {
        /// The index of the token in the answer.
        position: u32,
    },
    /// No attempt was accepted.
    #[error("global law: no accepted sample in {attempts} attempts")]
    Exhausted {
        /// The number of attempts made.
        attempts: u32,
    },
}
