//! The choice of a law with its parameters: one enum for the library, engines and services.

use super::{Cuts, Resampling, TypicalAcceptance};

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
        /// The way out when no attempt is accepted.
        fallback: Fallback,
        /// `true` if the attempts also learn from those of other requests that agree in all but the seed.
        /// They are fewer then, from the same law, but the text of a seed depends on earlier requests.
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
        /// How readily a text goes back: 0 never gives up a token that was allowed, which is the local law,
        /// and 1 is the exponent of the paper; at most [`Law::MOST_EXPONENT`].
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
/// unbiased with each, and with different ones for different particles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenProposal {
    /// From the masked row; the weight takes the mass of the mask as a factor.
    #[default]
    Masked,
    /// By asking the constraint about one token after the other ([`asked`](super::asked)), so that no mask is
    /// computed unless many tokens in a row are refused; the factor is an estimate of the mass of the mask.
    /// For constraints whose cost for each token is high, such as a compiler or a database (Lipkin et al.
    /// 2025, arXiv 2504.05410).
    Asked,
    /// In proportion to `p·θ`, what the texts over a trie have found out about how probable a valid end is
    /// ([`Walk::twisted`](super::Walk::twisted)); the factor is `θ_now(u) / θ_held(u)`. Weights vary less
    /// than with masks where the texts have prefixes in common. Such a twist is proper for any positive `θ`
    /// (Whiteley and Lee 2014, arXiv 1204.0247, on twisted particle filters).
    Twisted,
}

/// The way out when no attempt at the global law was accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fallback {
    /// An error.
    #[default]
    Fail,
    /// One sample drawn with what the attempts have learned, as [`Law::Asap`] draws, tagged
    /// `global-weighted` and weighted.
    Weighted,
    /// A text of a Markov chain over what the attempts have learned, tagged `mcmc`: the global law in the
    /// limit of many steps.
    Chain {
        /// The number of texts proposed after the first.
        steps: u32,
    },
}
