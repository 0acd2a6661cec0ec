//! The fields that choose the law of an answer: `law` itself, and the fields that belong to some laws only.

pub mod search;

use lexiform_engine::{Cuts, Fallback, Law, Resampling, TokenProposal};

use super::fields::{Fields, Problems};

/// The maximum and default of `max_attempts`.
const ATTEMPTS: i64 = 1_000;
/// The maximum and default of `particles`.
const PARTICLES: (i64, usize) = (64, 8);
/// The default of `ess_threshold`: the share of the particles below which they are resampled.
const ESS_THRESHOLD: f64 = 0.5;
/// The maximum and default of `mcmc_steps`, the steps of a chain.
const STEPS: (i64, u32) = (256, 10);

/// The values of `on_exhaustion`, for answers none of whose attempts is accepted. The steps of a chain come
/// from the field `mcmc_steps`.
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
const PROPOSALS: [(&str, TokenProposal); 3] = [
    ("masked", TokenProposal::Masked),
    ("awrs", TokenProposal::Asked),
    ("twisted", TokenProposal::Twisted),
];
const CUTS: [(&str, Cuts); 3] = [
    ("restart", Cuts::Restart),
    ("uniform", Cuts::Uniform),
    ("priority", Cuts::Priority),
];

/// The default of `aprad_exponent`.
const EXPONENT: u32 = 1;

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

/// The law that the field of this name chooses.
const LOSSY: &str = "lossy";

const NAMES: [(&str, Name); 7] = [
    ("local", Name::Local),
    ("global", Name::Global),
    ("asap", Name::Asap),
    ("aprad", Name::Aprad),
    ("smc", Name::Smc),
    ("sir", Name::Sir),
    ("mcmc", Name::Mcmc),
];

/// The fields that belong to some laws only, with these laws and the requirement to report if the field is
/// given without one of them.
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

/// Returns the names of all laws, also of the one that the field `lossy` chooses.
pub fn laws() -> [&'static str; 8] {
    let mut all = [LOSSY; 8];
    for (place, (name, _)) in all.iter_mut().zip(NAMES) {
        *place = name;
    }
    all
}

/// The values of the fields about the law.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct LawFields {
    /// The law that the output is drawn from.
    pub(super) law: Law,
    /// `true` if the answer reports all texts that it was drawn from.
    pub(super) return_particles: bool,
}

impl LawFields {
    /// Reads the law and its fields.
    pub(super) fn read(fields: &mut Fields, problems: &mut Problems) -> Self {
        let given = ABOUT.map(|(name, ..)| fields.has(name));
        let name = fields.word("law", &NAMES, problems).unwrap_or(Name::Local);
        let max_attempts = fields.integer("max_attempts", 1, ATTEMPTS, problems);
        let on_exhaustion = fields.word("on_exhaustion", &EXHAUSTION, problems);
        let share_attempts = fields.boolean("share_attempts", problems);
        let particles = fields.integer("particles", 1, PARTICLES.0, problems);
        let particles = particles.map_or(PARTICLES.1, |particles| particles as usize);
        let ess_threshold = fields.number("ess_threshold", 0.01, 1.0, problems);
        let resampling = fields.word("resampling", &RESAMPLING, problems);
        let proposal = fields.word("proposal", &PROPOSALS, problems).unwrap_or_default();
        let return_particles = fields.boolean("return_particles", problems).unwrap_or(false);
        let exponent = fields.integer("aprad_exponent", 0, Law::MOST_EXPONENT.into(), problems);
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
        let share_attempts = share_attempts.unwrap_or(false);
        let attempts = max_attempts.unwrap_or(ATTEMPTS) as u32;
        let law = match name {
            Name::Local => Law::Local,
            Name::Global => Law::Global {
                max_attempts: attempts,
                fallback: on_exhaustion,
                share_attempts,
            },
            Name::Asap => Law::Asap { share_attempts },
            Name::Aprad => Law::Aprad {
                exponent: exponent.map_or(EXPONENT, |exponent| exponent as u32),
                max_errors: attempts,
            },
            Name::Smc => Law::Smc {
                particles,
                threshold: ess_threshold.map_or(ESS_THRESHOLD, f64::from),
                resampling: resampling.unwrap_or_default(),
                proposal,
            },
            Name::Sir => Law::Sir {
                candidates: particles,
                proposal,
            },
            Name::Mcmc => Law::Mcmc {
                steps: steps.unwrap_or(STEPS.1),
                cuts: cuts.unwrap_or_default(),
            },
        };
        LawFields {
            law,
            return_particles,
        }
    }
}
