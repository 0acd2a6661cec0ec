//! The fields of the filters that keep some of the allowed tokens, except `top_p`, `top_k` and `min_p`.
//!
//! Their names are those of llama.cpp's server, of vLLM's relatives and of transformers.

use lexiform_engine::{Mirostat, MirostatVersion};

use super::super::fields::{Fields, Problems};

/// The maximum of `top_n_sigma`, in standard deviations.
const SIGMAS: f64 = 1_000.0;
/// The minimum, maximum and default of `mirostat_tau`, the surprise to aim at in bits.
const TAU: (f64, f64, f32) = (0.01, 100.0, 5.0);
/// The minimum, maximum and default of `mirostat_eta`, the share of an error that is corrected at the next
/// token.
const ETA: (f64, f64, f32) = (0.001, 10.0, 0.1);

/// The filters that a request sets. Absent values are the model's own defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Filters {
    /// The total probability of the tokens that are kept, those of nearly the expected surprise first; 1
    /// keeps all.
    pub typical_p: Option<f32>,
    /// The maximum distance of a logit below the largest, in standard deviations.
    pub top_n_sigma: Option<f32>,
    /// The minimum probability; 0 keeps all.
    pub epsilon_cutoff: Option<f32>,
    /// The minimum probability where the entropy is small; 0 keeps all.
    pub eta_cutoff: Option<f32>,
    /// The price of each token that is kept, by which Bregman top-k chooses their number; 0 keeps all.
    pub bregman_lambda: Option<f32>,
    /// The settings of Mirostat, which steers the surprise of the text.
    pub mirostat: Option<Mirostat>,
}

impl Filters {
    /// Reads the fields.
    pub(super) fn read(fields: &mut Fields, problems: &mut Problems) -> Self {
        Filters {
            typical_p: fields.number("typical_p", 0.0, 1.0, problems),
            // Zero or less means no filter, as in llama.cpp.
            top_n_sigma: fields
                .number("top_n_sigma", -1.0, SIGMAS, problems)
                .filter(|sigmas| *sigmas > 0.0),
            epsilon_cutoff: fields.number("epsilon_cutoff", 0.0, 1.0, problems),
            eta_cutoff: fields.number("eta_cutoff", 0.0, 1.0, problems),
            bregman_lambda: fields.number("bregman_lambda", 0.0, 100.0, problems),
            mirostat: mirostat(fields, problems),
        }
    }
}

fn mirostat(fields: &mut Fields, problems: &mut Problems) -> Option<Mirostat> {
    let mode = fields.integer("mirostat_mode", 0, 2, problems);
    let tau = fields.number("mirostat_tau", TAU.0, TAU.1, problems);
    let eta = fields.number("mirostat_eta", ETA.0, ETA.1, problems);
    let version = match mode {
        Some(1) => MirostatVersion::One,
        Some(2) => MirostatVersion::Two,
        _ => {
            let without = [("mirostat_tau", tau), ("mirostat_eta", eta)];
            for (name, _) in without.into_iter().filter(|(_, value)| value.is_some()) {
                problems.invalid(name, "requires mirostat_mode: 1 or 2");
            }
            return None;
        }
    };
    Some(Mirostat {
        version,
        tau: tau.unwrap_or(TAU.2),
        eta: eta.unwrap_or(ETA.2),
    })
}
