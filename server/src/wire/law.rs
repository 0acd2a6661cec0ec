//! The law that an answer is drawn from, as a request names it: one word, and fields that belong to some of the laws.

use lexiform_engine::{Cuts, Fallback, Resampling};

use super::fields::{Fields, Problems};

/// The most attempts of the global law, which are also those that it has unless the request says otherwise.
const ATTEMPTS: i64 = 1_000;
/// The most particles, and those there are unless the request says otherwise.
const PARTICLES: (i64, usize) = (64, 8);
/// The share of the particles below which they are resampled, unless the request says otherwise.
const ESS_THRESHOLD: f64 = 0.5;
/// The most steps of a chain, and those that it makes unless the request says otherwise.
const STEPS: (i64, u32) = (256, 10);

/// The most beams, and those there are unless the request says otherwise.
const BEAMS: (i64, usize) = (32, 4);

/// What may become of an answer none of whose attempts is accepted.
const EXHAUSTION: [(&str, Fallback); 2] = [("error", Fallback::Fail), ("weighted", Fallback::Weighted)];
const RESAMPLING: [(&str, Resampling); 4] = [
    ("systematic", Resampling::Systematic),
    ("stratified", Resampling::Stratified),
    ("residual", Resampling::Residual),
    ("multinomial", Resampling::Multinomial),
];
const CUTS: [(&str, Cuts); 3] = [
    ("restart", Cuts::Restart),
    ("uniform", Cuts::Uniform),
    ("priority", Cuts::Priority),
];

/// The laws by name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    Local,
    Global,
    Asap,
    Smc,
    Sir,
    Mcmc,
    Beam,
}

const NAMES: [(&str, Name, &str); 6] = [
    ("local", Name::Local, "law: local"),
    ("global", Name::Global, "law: global"),
    ("asap", Name::Asap, "law: asap"),
    ("smc", Name::Smc, "law: smc"),
    ("sir", Name::Sir, "law: sir"),
    ("mcmc", Name::Mcmc, "law: mcmc"),
];

/// What asks for a beam search.
const BEAM: &str = "use_beam_search: true";

/// Fields that are about some laws alone, with the names of these.
const ABOUT: [(&str, &[Name], &str); 11] = [
    ("max_attempts", &[Name::Global], "law: global"),
    ("on_exhaustion", &[Name::Global], "law: global"),
    (
        "share_attempts",
        &[Name::Global, Name::Asap],
        "law: global or law: asap",
    ),
    ("particles", &[Name::Smc, Name::Sir], "law: smc or law: sir"),
    ("ess_threshold", &[Name::Smc], "law: smc"),
    ("resampling", &[Name::Smc], "law: smc"),
    ("mcmc_steps", &[Name::Mcmc], "law: mcmc"),
    ("mcmc_cuts", &[Name::Mcmc], "law: mcmc"),
    ("beam_width", &[Name::Beam], BEAM),
    ("length_penalty", &[Name::Beam], BEAM),
    ("patience", &[Name::Beam], BEAM),
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
    /// Near the global law, from particles that are resampled on the way.
    Smc {
        /// How many there are.
        particles: usize,
        /// The share of them below which their effective size leads to resampling.
        ess_threshold: f64,
        /// How they are resampled.
        resampling: Resampling,
    },
    /// Near the global law, by weight from several samples of the local law.
    Sir {
        /// How many there are.
        particles: usize,
    },
    /// Near the global law, by a Markov chain of texts.
    Mcmc {
        /// How many texts are proposed after the first.
        steps: u32,
        /// Where a text is cut to propose another.
        cuts: Cuts,
    },
    /// No law: the likeliest texts that a beam search finds.
    Beam {
        /// Prefixes followed at a time.
        width: usize,
        /// The exponent of the length in the score.
        length_penalty: f64,
        /// After how many finished texts, as a multiple of the width, the search ends.
        patience: Option<f64>,
    },
}

impl Law {
    /// Takes the law and its fields.
    pub(super) fn read(fields: &mut Fields, problems: &mut Problems) -> Self {
        let given = ABOUT.map(|(name, ..)| fields.has(name));
        let name = name(fields, problems);
        let max_attempts = fields.integer("max_attempts", 1, ATTEMPTS, problems);
        let on_exhaustion = fields.word("on_exhaustion", &EXHAUSTION, problems);
        let share_attempts = fields.boolean("share_attempts", problems);
        let particles = fields.integer("particles", 1, PARTICLES.0, problems);
        let particles = particles.map_or(PARTICLES.1, |particles| particles as usize);
        let ess_threshold = fields.number("ess_threshold", 0.01, 1.0, problems);
        let resampling = fields.word("resampling", &RESAMPLING, problems);
        let steps = fields.integer("mcmc_steps", 1, STEPS.0, problems);
        let cuts = fields.word("mcmc_cuts", &CUTS, problems);
        let width = fields.integer("beam_width", 1, BEAMS.0, problems);
        let length_penalty = fields.number("length_penalty", 0.0, 10.0, problems);
        let patience = fields.number("patience", 0.01, 1_000.0, problems);
        for ((field, laws, which), is_given) in ABOUT.into_iter().zip(given) {
            // One that changes nothing is sent by clients that know no beam search here.
            let is_neutral = field == "length_penalty" && length_penalty == Some(1.0);
            if is_given && !laws.contains(&name) && !is_neutral {
                problems.invalid(field, format!("requires {which}"));
            }
        }
        match name {
            Name::Local => Law::Local,
            Name::Global => Law::Global {
                max_attempts: max_attempts.unwrap_or(ATTEMPTS) as usize,
                on_exhaustion: on_exhaustion.unwrap_or(Fallback::Fail),
                share_attempts: share_attempts.unwrap_or(false),
            },
            Name::Asap => Law::Asap {
                share_attempts: share_attempts.unwrap_or(false),
            },
            Name::Smc => Law::Smc {
                particles,
                ess_threshold: ess_threshold.map_or(ESS_THRESHOLD, f64::from),
                resampling: resampling.unwrap_or_default(),
            },
            Name::Sir => Law::Sir { particles },
            Name::Beam => Law::Beam {
                width: width.map_or(BEAMS.1, |width| width as usize),
                length_penalty: length_penalty.map_or(1.0, f64::from),
                patience: patience.map(f64::from),
            },
            Name::Mcmc => Law::Mcmc {
                steps: steps.map_or(STEPS.1, |steps| steps as u32),
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
            Law::Smc { .. } => Name::Smc,
            Law::Sir { .. } => Name::Sir,
            Law::Mcmc { .. } => Name::Mcmc,
            Law::Beam { .. } => return BEAM,
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
        !matches!(self, Law::Local | Law::Global { .. } | Law::Asap { .. })
    }
}

/// The name of the law. A beam search is asked for by a field of its own, as vLLM has it.
fn name(fields: &mut Fields, problems: &mut Problems) -> Name {
    let words = NAMES.map(|(word, name, _)| (word, name));
    let law = fields.word("law", &words, problems);
    match (fields.boolean("use_beam_search", problems), law) {
        (Some(true), None | Some(Name::Local)) => Name::Beam,
        (Some(true), Some(_)) => {
            problems.invalid("use_beam_search", "a beam search has no law; leave law out");
            Name::Beam
        }
        (_, law) => law.unwrap_or(Name::Local),
    }
}
