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
    /// The most likely allowed token at each place.
    Greedy,
    /// The masked rows.
    Local,
    /// The masked rows, cut by filters.
    LocalFiltered,
    /// The model conditioned on the constraint.
    GlobalExact,
    /// A local sample that stands in for a global one with its weight.
    GlobalWeighted,
    /// Drafts that were likely enough, whatever their probability, and draws between them
    /// ([`TypicalAcceptance`](super::TypicalAcceptance)).
    Lossy,
    /// The likeliest of several samples, whatever their law.
    BestOf,
    /// Drawn by weight from particles that were resampled on the way: the global law in the limit of many.
    Smc,
    /// Drawn by weight from several local samples: the global law in the limit of many.
    Sir,
    /// A text of a Markov chain: the global law in the limit of many steps.
    Mcmc,
    /// Drawn with what texts before it have taught: the global law in the limit of many.
    Asap,
    /// Drawn with what errors have taught, and back where one was met ([`Aprad`](crate::law::Aprad)):
    /// approximate.
    Aprad,
    /// The likeliest texts that a beam search has found.
    Beam,
    /// The same, found in the order of what is likely.
    BestFirstBeam,
    /// Likely texts that groups of beams have found, each avoiding what the others write.
    DiverseBeam,
    /// The likeliest texts there are.
    KBest,
    /// Likely texts that contain given phrases.
    DynamicBeam,
    /// Likely texts, found with a look-ahead to the end.
    AStarEsque,
    /// Drawn, with trials where the model was unsure, of which the likeliest was kept.
    Cntp,
}

impl LawTag {
    /// The tag as text: `global-exact` and so on.
    pub fn as_str(self) -> &'static str {
        match self {
            LawTag::Raw => "raw",
            LawTag::RawFiltered => "raw-filtered",
            LawTag::Greedy => "greedy",
            LawTag::Local => "local",
            LawTag::LocalFiltered => "local-filtered",
            LawTag::GlobalExact => "global-exact",
            LawTag::GlobalWeighted => "global-weighted",
            LawTag::Lossy => "lossy",
            LawTag::BestOf => "best-of",
            LawTag::Smc => "smc",
            LawTag::Sir => "sir",
            LawTag::Mcmc => "mcmc",
            LawTag::Asap => "asap",
            LawTag::Aprad => "aprad",
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
    /// Whether a sample has an importance weight: not where its law cannot be written down, or where nothing
    /// was left to chance.
    pub fn has_weight(self) -> bool {
        match self {
            LawTag::Raw
            | LawTag::RawFiltered
            | LawTag::Local
            | LawTag::LocalFiltered
            | LawTag::GlobalExact
            | LawTag::GlobalWeighted
            | LawTag::Asap
            | LawTag::Smc
            | LawTag::Sir => true,
            LawTag::Greedy
            | LawTag::Lossy
            | LawTag::BestOf
            | LawTag::Mcmc
            | LawTag::Aprad
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

/// Why a law cannot be sampled from.
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
#[non_exhaustive]
pub enum LawError {
    /// A parameter of the warping is out of its range.
    #[error("{name} is {value}; it must be {expected}")]
    OutOfRange {
        /// The parameter.
        name: &'static str,
        /// What was given.
        value: f64,
        /// What is possible.
        expected: &'static str,
    },
    /// Greedy decoding has no global form short of a search for the most likely sequence.
    #[error("the global law needs a temperature above 0")]
    GreedyGlobal,
    /// Mirostat's bound depends on the surprise under a mask, and the global law is about the model before
    /// it.
    #[error("Mirostat needs the local law")]
    MirostatGlobal,
    /// The global law is about a constraint, and there is none.
    #[error("the global law needs a constraint")]
    NothingToCondition,
    /// The law is about all that is allowed at a place, and tokens can only be asked about.
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
        /// How many were made.
        attempts: u32,
    },
}
