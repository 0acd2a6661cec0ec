//! The choice of a law with its parameters, one enum for the library, engines and services, and the tag that
//! a sample carries.

use super::{Cuts, Resampling, TypicalAcceptance};
use std::fmt;

/// The law that an answer is drawn from, where `p` is the warped model and `L` the texts of the constraint.
///
/// Samplers of the library take the parameters that they need from it; an engine runs all of them. Which of
/// them can have which other settings of a request is the engine's table.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Law {
    /// Each token from `p` restricted to the tokens that the constraint allows after the text so far. One
    /// pass, and tokens stream as they are drawn. Favours prefixes whose continuations the model finds
    /// unlikely.
    #[default]
    Local,
    /// The local law, but drafts are accepted if they are likely enough, in place of being verified: faster,
    /// and of no law that can be written down. The answer is tagged [`LawTag::Lossy`](super::LawTag::Lossy),
    /// has no weight, and depends on what was drafted, so that a seed does not name its text. At temperature
    /// 0 nothing is given up: an accepted draft is the most likely token, and the tag is
    /// [`LawTag::Greedy`](super::LawTag::Greedy).
    Lossy(TypicalAcceptance),
    /// The whole text from `p` restricted to `L`, exactly: attempts are drawn until one is accepted. Each
    /// failed attempt makes the next one likelier to be accepted. Nothing streams before acceptance.
    Global {
        /// The most attempts; at least 1. Counted in attempts, because a limit in tokens or seconds would
        /// favour short answers.
        max_attempts: u32,
        /// What to do when no attempt is accepted.
        fallback: Fallback,
        /// `true` if the attempts also learn from those of other requests that agree in all but the seed. They are
        /// fewer then, from the same law, but the text of a seed depends on earlier requests.
        share_attempts: bool,
    },
    /// Near the global law: the local law corrected by what earlier texts have taught
    /// ([`Attempt::adaptive`](super::Attempt::adaptive)). Nears the global law as they grow in number.
    Asap {
        /// `true` if the texts of other requests that agree in all but the seed teach, too.
        share_attempts: bool,
    },
    /// Approximately the global law: each token from `p` without what is known to end in errors, and after an
    /// error back as far as the error weighs ([`Aprad`](super::Aprad)). Nothing streams before the end.
    Aprad {
        /// How readily a text goes back: 0 redraws the last token alone, 1 is the method of the paper; at
        /// most [`Law::MOST_EXPONENT`].
        exponent: u32,
        /// The most times a text goes back, at least 1.
        max_errors: u32,
    },
    /// Near the global law: weighted particles, resampled on the way ([`Particles`](super::Particles)).
    /// Answers are drawn from them by weight, so several answers of one request may be the same text.
    Smc {
        /// The number of particles; at least the number of answers.
        particles: usize,
        /// The share of the particles below which their effective size leads to resampling; above 0, at most
        /// 1.
        threshold: f64,
        /// The method of resampling.
        resampling: Resampling,
        /// How a particle is extended by a token.
        proposal: TokenProposal,
    },
    /// Near the global law: answers drawn by weight from several texts of the local law.
    Sir {
        /// The number of texts; at least the number of answers.
        candidates: usize,
        /// How a text is extended by a token.
        proposal: TokenProposal,
    },
    /// Near the global law: a Markov chain of texts for each answer ([`Chain`](super::Chain)).
    Mcmc {
        /// The number of texts proposed after the first; at least 1.
        steps: u32,
        /// Where a text is cut to propose another.
        cuts: Cuts,
    },
}

impl Law {
    /// The greatest exponent of [`Law::Aprad`].
    pub const MOST_EXPONENT: u32 = 16;

    /// Returns the name of the law as requests write it: `global` and so on.
    pub fn name(self) -> &'static str {
        match self {
            Law::Local => "local",
            Law::Lossy(_) => "lossy",
            Law::Global { .. } => "global",
            Law::Asap { .. } => "asap",
            Law::Aprad { .. } => "aprad",
            Law::Smc { .. } => "smc",
            Law::Sir { .. } => "sir",
            Law::Mcmc { .. } => "mcmc",
        }
    }

    /// Returns `true` if each token is drawn once, from its masked row: there is nothing to go back for.
    pub fn is_local(self) -> bool {
        matches!(self, Law::Local | Law::Lossy(_))
    }

    /// Returns `true` if filters cut before the mask: all laws about whole texts condition the model as the
    /// filters leave it.
    pub fn cuts_before_mask(self) -> bool {
        !self.is_local()
    }

    /// Returns `true` if each answer is chosen among several texts that are drawn for the request.
    pub fn chooses(self) -> bool {
        matches!(self, Law::Smc { .. } | Law::Sir { .. } | Law::Mcmc { .. })
    }

    /// Returns how a text is extended by a token, where it is one of several that are weighted.
    pub fn proposal(self) -> Option<TokenProposal> {
        match self {
            Law::Smc { proposal, .. } | Law::Sir { proposal, .. } => Some(proposal),
            _ => None,
        }
    }

    /// Returns `true` if its attempts learn from those of other requests.
    pub fn shares_attempts(self) -> bool {
        match self {
            Law::Global { share_attempts, .. } | Law::Asap { share_attempts } => share_attempts,
            _ => false,
        }
    }
}

/// How weighted texts are extended by a token. All proposals are properly weighted: the estimate of `Z` is
/// unbiased with each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenProposal {
    /// From the masked row; the weight takes the mass of the mask as a factor.
    #[default]
    Masked,
    /// By asking the constraint about one token after the other ([`asked`](super::asked)), so that no mask is
    /// computed unless many tokens in a row are refused; the factor is an estimate of the mass of the mask.
    Asked,
    /// In proportion to what the texts of this request have found out about how probable a valid end is
    /// ([`Twisted`](super::Twisted)). Weights vary less than with masks where the texts have prefixes in
    /// common.
    Twisted,
}

/// What happens when no attempt at the global law was accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fallback {
    /// An error.
    #[default]
    Fail,
    /// One local sample, tagged `global-weighted` and weighted.
    Weighted,
    /// A text of a Markov chain over what the attempts have learned, tagged `mcmc`: the global law in the
    /// limit of many steps.
    Chain {
        /// The number of texts proposed after the first.
        steps: u32,
    },
}

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
    /// A local sample that replaces a global one, with its weight.
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
    /// Drawn with the trie that earlier texts have filled: the global law in the limit of many texts.
    Asap,
    /// Drawn without known errors, going back where a new one was met ([`Aprad`](crate::law::Aprad)):
    /// approximate.
    Aprad,
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
    /// Returns `true` if a sample of this law has an importance weight. It has none if its law has no closed
    /// form, or if nothing was left to chance.
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
