//! The law that an answer is drawn from, as a request names it: one word, and fields that belong to some of
//! the laws.

pub mod search;

use lexiform_engine::{Cuts, Fallback, Proposing, Resampling};

use super::fields::{Fields, Problems};

/// The most attempts of the global law, which are also those that it has unless the request says otherwise.
const ATTEMPTS: i64 = 1_000;
/// The most particles, and those there are unless the request says otherwise.
const PARTICLES: (i64, usize) = (64, 8);
/// The share of the particles below which they are resampled, unless the request says otherwise.
const ESS_THRESHOLD: f64 = 0.5;
/// The most steps of a chain, and those that it makes unless the request says otherwise.
const STEPS: (i64, u32) = (256, 10);

/// What may become of an answer none of whose attempts is accepted. The steps of a chain are a field of their
/// own.
const EXHAUSTION: [(&str, Fallback); 3] = [
    ("error", Fallback::Fail),
    ("weighted", Fallback::Weighted),
    ("mcmc", Fallback::Chain { steps: STEPS.1 }),
];
const RESAMPLING: [(&str, Resampling); 4] = [
    ("systematic", Resampling::Systematic),
    ("stratified", Resampling::Stratified),
    ("residual", Resampling::Residual),
    ("multinomial", Resampling::Multinomial),
];
const PROPOSALS: [(&str, Proposing); 3] = [
    ("masked", Proposing::Masked),
    ("awrs", Proposing::Asked),
    ("twisted", Proposing::Twisted),
];
const CUTS: [(&str, Cuts); 3] = [
    ("restart", Cuts::Restart),
    ("uniform", Cuts::Uniform),
    ("priority", Cuts::Priority),
];

/// The largest exponent of `aprad`, and the one that it has unless the request says otherwise.
const EXPONENT: (i64, u32) = (16, 1);

/// The laws by name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    Local,
    Global,
    Asap,
    Aprad,
    Smc,
    Sir,
    Mcmc,
}

const NAMES: [(&str, Name, &str); 7] = [
    ("local", Name::Local, "law: local"),
    ("global", Name::Global, "law: global"),
    ("asap", Name::Asap, "law: asap"),
    ("aprad", Name::Aprad, "law: aprad"),
    ("smc", Name::Smc, "law: smc"),
    ("sir", Name::Sir, "law: sir"),
    ("mcmc", Name::Mcmc, "law: mcmc"),
];

/// Fields that are about some laws alone, with the names of these.
const ABOUT: [(&str, &[Name], &str); 11] = [
    (
        "max_attempts",
        &[Name::Global, Name::Aprad],
        "law: global or law: aprad",
    ),
    ("aprad_exponent", &[Name::Aprad], "law: aprad"),
    ("on_exhaustion", &[Name::Global], "law: global"),
    (
        "share_attempts",
        &[Name::Global, Name::Asap],
        "law: global or law: asap",
    ),
    ("particles", &[Name::Smc, Name::Sir], "law: smc or law: sir"),
    ("proposal", &[Name::Smc, Name::Sir], "law: smc or law: sir"),
    (
        "return_particles",
        &[Name::Smc, Name::Sir],
        "law: smc or law: sir",
    ),
    ("ess_threshold", &[Name::Smc], "law: smc"),
    ("resampling", &[Name::Smc], "law: smc"),
    (
        "mcmc_steps",
        &[Name::Mcmc, Name::Global],
        "law: mcmc or on_exhaustion: mcmc",
    ),
    ("mcmc_cuts", &[Name::Mcmc], "law: mcmc"),
];

/// The law that the output is drawn from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Law {
    /// Each token from the model's distribution over the allowed tokens.
    #[default]
    Local,
    /// The whole text from the model's distribution over the texts that obey.
    Global {
        /// The most attempts.
        max_attempts: usize,
        /// What becomes of an answer none of whose attempts is accepted.
        on_exhaustion: Fallback,
        /// Whether attempts learn from those of other requests that agree in all but the seed.
        share_attempts: bool,
    },
    /// Near the global law, corrected by what the texts before have taught.
    Asap {
        /// Whether those are also the texts of other requests that agree in all but the seed.
        share_attempts: bool,
    },
    /// Approximately the global law, by going back from errors.
    Aprad {
        /// How readily a text goes back.
        exponent: u32,
        /// How often it may.
        max_errors: usize,
    },
    /// Near the global law, from particles that are resampled on the way.
    Smc {
        /// How many there are.
        particles: usize,
        /// The share of them below which their effective size leads to resampling.
        ess_threshold: f64,
        /// How they are resampled.
        resampling: Resampling,
        /// How they go on by a token.
        proposal: Proposing,
        /// Whether the answer has all of them.
        return_particles: bool,
    },
    /// Near the global law, by weight from several samples of the local law.
    Sir {
        /// How many there are.
        particles: usize,
        /// How they go on by a token.
        proposal: Proposing,
        /// Whether the answer has all of them.
        return_particles: bool,
    },
    /// Near the global law, by a Markov chain of texts.
    Mcmc {
        /// How many texts are proposed after the first.
        steps: u32,
        /// Where a text is cut to propose another.
        cuts: Cuts,
    },
}

impl Law {
    /// Takes the law and its fields.
    pub(super) fn read(fields: &mut Fields, problems: &mut Problems) -> Self {
        let given = ABOUT.map(|(name, ..)| fields.has(name));
        let words = NAMES.map(|(word, name, _)| (word, name));
        let name = fields.word("law", &words, problems).unwrap_or(Name::Local);
        let max_attempts = fields.integer("max_attempts", 1, ATTEMPTS, problems);
        let on_exhaustion = fields.word("on_exhaustion", &EXHAUSTION, problems);
        let share_attempts = fields.boolean("share_attempts", problems);
        let particles = fields.integer("particles", 1, PARTICLES.0, problems);
        let particles = particles.map_or(PARTICLES.1, |particles| particles as usize);
        let ess_threshold = fields.number("ess_threshold", 0.01, 1.0, problems);
        let resampling = fields.word("resampling", &RESAMPLING, problems);
        let proposal = fields.word("proposal", &PROPOSALS, problems).unwrap_or_default();
        let return_particles = fields.boolean("return_particles", problems).unwrap_or(false);
        let exponent = fields.integer("aprad_exponent", 0, EXPONENT.0, problems);
        let steps = fields.integer("mcmc_steps", 1, STEPS.0, problems);
        let steps = steps.map(|steps| steps as u32);
        let cuts = fields.word("mcmc_cuts", &CUTS, problems);
        for ((field, laws, which), is_given) in ABOUT.into_iter().zip(given) {
            if is_given && !laws.contains(&name) {
                problems.invalid(fields.path(field), format!("requires {which}"));
            }
        }
        let on_exhaustion = match (on_exhaustion, steps) {
            (Some(Fallback::Chain { .. }), Some(steps)) => Fallback::Chain { steps },
            (on_exhaustion, _) => on_exhaustion.unwrap_or_default(),
        };
        if name == Name::Global && steps.is_some() && !matches!(on_exhaustion, Fallback::Chain { .. }) {
            problems.invalid(
                fields.path("mcmc_steps"),
                "requires law: mcmc or on_exhaustion: mcmc",
            );
        }
        match name {
            Name::Local => Law::Local,
            Name::Global => Law::Global {
                max_attempts: max_attempts.unwrap_or(ATTEMPTS) as usize,
                on_exhaustion,
                share_attempts: share_attempts.unwrap_or(false),
            },
            Name::Asap => Law::Asap {
                share_attempts: share_attempts.unwrap_or(false),
            },
            Name::Aprad => Law::Aprad {
                exponent: exponent.map_or(EXPONENT.1, |exponent| exponent as u32),
                max_errors: max_attempts.unwrap_or(ATTEMPTS) as usize,
            },
            Name::Smc => Law::Smc {
                particles,
                ess_threshold: ess_threshold.map_or(ESS_THRESHOLD, f64::from),
                resampling: resampling.unwrap_or_default(),
                proposal,
                return_particles,
            },
            Name::Sir => Law::Sir {
                particles,
                proposal,
                return_particles,
            },
            Name::Mcmc => Law::Mcmc {
                steps: steps.unwrap_or(STEPS.1),
                cuts: cuts.unwrap_or_default(),
            },
        }
    }

    /// What names the law in a request.
    pub fn name(self) -> &'static str {
        let name = match self {
            Law::Local => Name::Local,
            Law::Global { .. } => Name::Global,
            Law::Asap { .. } => Name::Asap,
            Law::Aprad { .. } => Name::Aprad,
            Law::Smc { .. } => Name::Smc,
            Law::Sir { .. } => Name::Sir,
            Law::Mcmc { .. } => Name::Mcmc,
        };
        NAMES
            .iter()
            .find(|it| it.1 == name)
            .map_or("law: local", |it| it.2)
    }

    /// Whether its texts teach those of other requests.
    pub fn shares(self) -> bool {
        match self {
            Law::Global { share_attempts, .. } | Law::Asap { share_attempts } => share_attempts,
            _ => false,
        }
    }

    /// Whether an answer is chosen among texts that it has to itself.
    pub fn chooses(self) -> bool {
        !matches!(
            self,
            Law::Local | Law::Global { .. } | Law::Asap { .. } | Law::Aprad { .. }
        )
    }

    /// Whether it can be drawn from by asking about tokens, without the mask of what is allowed.
    pub fn asks(self) -> bool {
        match self {
            Law::Local => true,
            Law::Smc { proposal, .. } | Law::Sir { proposal, .. } => proposal != Proposing::Twisted,
            _ => false,
        }
    }

    /// Whether the texts that an answer was drawn from are told with it.
    pub fn returns_particles(self) -> bool {
        match self {
            Law::Smc { return_particles, .. } | Law::Sir { return_particles, .. } => return_particles,
            _ => false,
        }
    }
}
