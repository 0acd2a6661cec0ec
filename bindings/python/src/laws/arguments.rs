//! The arguments of laws by their names.

use lexiform_law::{Cuts, Fallback, Law, Resampling, TokenProposal};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The most attempts, and the number of texts of a chain that replaces them, where they are not given.
const ATTEMPTS: u32 = 1000;
const STEPS: u32 = 10;

/// The arguments of a `Sampler` that only some laws have.
#[derive(Clone, Copy)]
pub(super) struct LawArguments<'a> {
    pub(super) law: &'a str,
    pub(super) has_trie: bool,
    pub(super) attempts: Option<u32>,
    pub(super) fallback: Option<&'a str>,
    pub(super) mcmc_steps: Option<u32>,
    pub(super) aprad_exponent: Option<u32>,
}

impl LawArguments<'_> {
    /// Returns the law, unless an argument has no effect under it.
    pub(super) fn law(&self) -> PyResult<Law> {
        let max_attempts = at_least_one("attempts", self.attempts.unwrap_or(ATTEMPTS))?;
        let law = match self.law {
            "local" => Law::Local,
            "global" => Law::Global {
                max_attempts,
                fallback: self.fallback()?,
                share_attempts: self.has_trie,
            },
            "asap" => Law::Asap {
                share_attempts: self.has_trie,
            },
            "aprad" => Law::Aprad {
                exponent: self.aprad_exponent.unwrap_or(1),
                max_errors: max_attempts,
            },
            "smc" | "sir" => return Err(elsewhere(self.law, "Particles")),
            "mcmc" => return Err(elsewhere(self.law, "Chain")),
            other => return Err(unknown("law", other, &["local", "global", "asap", "aprad"])),
        };
        self.refuse_what_has_no_effect(law)?;
        match law {
            Law::Aprad { exponent, .. } if exponent > Law::MOST_EXPONENT => {
                let most = Law::MOST_EXPONENT;
                let message = format!("aprad_exponent is {exponent}; it must be between 0 and {most}");
                Err(PyValueError::new_err(message))
            }
            law => Ok(law),
        }
    }

    fn fallback(&self) -> PyResult<Fallback> {
        match self.fallback.unwrap_or("fail") {
            "fail" => Ok(Fallback::Fail),
            "weighted" => Ok(Fallback::Weighted),
            "mcmc" => Ok(Fallback::Chain {
                steps: at_least_one("mcmc_steps", self.mcmc_steps.unwrap_or(STEPS))?,
            }),
            other => Err(unknown("fallback", other, &["fail", "weighted", "mcmc"])),
        }
    }

    fn refuse_what_has_no_effect(&self, law: Law) -> PyResult<()> {
        let is_global = matches!(law, Law::Global { .. });
        let is_aprad = matches!(law, Law::Aprad { .. });
        let learns = is_global || matches!(law, Law::Asap { .. });
        let chains = is_global && self.fallback == Some("mcmc");
        let table = [
            ("trie", self.has_trie, learns, "law=\"global\" or \"asap\""),
            (
                "attempts",
                self.attempts.is_some(),
                is_global || is_aprad,
                "law=\"global\" or \"aprad\"",
            ),
            ("fallback", self.fallback.is_some(), is_global, "law=\"global\""),
            (
                "mcmc_steps",
                self.mcmc_steps.is_some(),
                chains,
                "law=\"global\", fallback=\"mcmc\"",
            ),
            (
                "aprad_exponent",
                self.aprad_exponent.is_some(),
                is_aprad,
                "law=\"aprad\"",
            ),
        ];
        for (name, is_given, has_effect, needed) in table {
            if is_given && !has_effect {
                let law = law.name();
                let message = format!("{name} has no effect under law=\"{law}\"; it needs {needed}");
                return Err(PyValueError::new_err(message));
            }
        }
        Ok(())
    }
}

/// Reads how copies of particles are allotted.
pub(super) fn resampling(name: &str) -> PyResult<Resampling> {
    match name {
        "multinomial" => Ok(Resampling::Multinomial),
        "stratified" => Ok(Resampling::Stratified),
        "systematic" => Ok(Resampling::Systematic),
        "residual" => Ok(Resampling::Residual),
        other => {
            let names = ["systematic", "stratified", "residual", "multinomial"];
            Err(unknown("resampling", other, &names))
        }
    }
}

/// Reads how a particle is extended by a token.
pub(super) fn proposal(name: &str) -> PyResult<TokenProposal> {
    match name {
        "masked" => Ok(TokenProposal::Masked),
        "awrs" => Ok(TokenProposal::Asked),
        "twisted" => Ok(TokenProposal::Twisted),
        other => Err(unknown("proposal", other, &["masked", "awrs", "twisted"])),
    }
}

/// Reads where a chain cuts its text.
pub(super) fn cuts(name: &str) -> PyResult<Cuts> {
    match name {
        "restart" => Ok(Cuts::Restart),
        "uniform" => Ok(Cuts::Uniform),
        "priority" => Ok(Cuts::Priority),
        other => Err(unknown("cuts", other, &["restart", "uniform", "priority"])),
    }
}

fn at_least_one(name: &str, number: u32) -> PyResult<u32> {
    match number {
        0 => Err(PyValueError::new_err(format!(
            "{name} is 0; it must be at least 1"
        ))),
        number => Ok(number),
    }
}

fn unknown(argument: &str, given: &str, names: &[&str]) -> PyErr {
    let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    PyValueError::new_err(format!("{argument}={given:?} is not one of {}", names.join(", ")))
}

fn elsewhere(law: &str, class: &str) -> PyErr {
    PyValueError::new_err(format!("law={law:?} is not one of a single text: use {class}"))
}
