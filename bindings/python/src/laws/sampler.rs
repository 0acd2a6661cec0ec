//! One text of a law, drawn a token at a time.
//!
//! ```text
//!   local    token token token … end
//!   global   token token restart      the attempt failed: back to the prompt
//!            token token token end    accepted: the text has the model's law under the condition of the grammar
//!   asap     token token token … end  near that law, with what others have taught
//!   aprad    token token restart      an error: back to where it weighs, which may be after the prompt
//!            token token end
//! ```

use std::sync::{Mutex, MutexGuard, PoisonError};

use lexiform_law::{Allowed, Aprad, Law, Walk};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arguments::LawArguments;
use super::setting::{Common, Logits, Setting, row_of};
use super::text::{Step, Text};
use super::trie::{CAPACITY, Trie, trie_of};
use crate::fork;
use crate::grammar::Grammar;

/// Draws one answer of a grammar from the rows of a model, under one of the laws "local", "global", "asap"
/// and "aprad".
#[pyclass(frozen, module = "lexiform")]
pub(crate) struct Sampler {
    setting: Setting,
    text: Mutex<Text>,
}

#[pymethods]
impl Sampler {
    /// Creates a sampler at the beginning of an answer. Every draw depends only on `seed`, on the number of
    /// the sample, on the place of the token and on what the trie has learned.
    ///
    /// Answers are complete within `max_tokens` tokens. The laws "global" and "asap" need that number, or a
    /// `trie`, in which the texts of all samplers that have it learn from each other. "global" makes at most
    /// `attempts` attempts, and then does what `fallback` says: "fail", "weighted" (an answer of the local
    /// law with its weight) or "mcmc" (`mcmc_steps` steps of a Markov chain). "aprad" goes back at most
    /// `attempts` times, the further the larger `aprad_exponent` is.
    ///
    /// `monitors` are further constraints, of the law "local": each is a `Grammar`, or a function that judges
    /// a text. A function is called with the text so far, and with whether it is to end there. It returns
    /// `True` if texts may begin like this, or end here, and `False` if not; a list of the strings of which
    /// one comes next; or "allowed" if anything may follow. It is called for few tokens, and never twice for
    /// one text. What it raises leaves the sampler as it was. With monitors, weights are estimates.
    ///
    /// The other keywords change the rows before they are drawn from: `temperature`, `top_k`, `top_p`,
    /// `min_p`, `typical_p`, `top_n_sigma`, `epsilon_cutoff`, `eta_cutoff`, `bregman_lambda`,
    /// `mirostat_mode`, `mirostat_tau`, `mirostat_eta`, `repetition_penalty`, `frequency_penalty`,
    /// `presence_penalty` and `logit_bias`. The tokens of `prompt` count for the repetition penalty. With
    /// `contrast_beta`, a row is that of the model plus so many times its excess over that of an amateur,
    /// for tokens at least `contrast_alpha` times as likely as the most likely one.
    #[new]
    #[pyo3(signature = (grammar, *, law = "local", seed = 0, sample = 0, trie = None, attempts = None, fallback = None,
        mcmc_steps = None, aprad_exponent = None, prompt = None, max_tokens = None, ends = None, monitors = None,
        **warping))]
    #[expect(clippy::too_many_arguments, reason = "the keywords of a function of Python")]
    fn new(
        grammar: &Bound<'_, Grammar>,
        law: &str,
        seed: u64,
        sample: u32,
        trie: Option<&Bound<'_, Trie>>,
        attempts: Option<u32>,
        fallback: Option<&str>,
        mcmc_steps: Option<u32>,
        aprad_exponent: Option<u32>,
        prompt: Option<Vec<u32>>,
        max_tokens: Option<u32>,
        ends: Option<&Bound<'_, PyAny>>,
        monitors: Option<Vec<Bound<'_, PyAny>>>,
        warping: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Sampler> {
        let arguments = LawArguments {
            law,
            has_trie: trie.is_some(),
            attempts,
            fallback,
            mcmc_steps,
            aprad_exponent,
        };
        let law = arguments.law()?;
        if monitors.as_ref().is_some_and(|monitors| !monitors.is_empty()) && law != Law::Local {
            let law = law.name();
            let message = format!(
                "monitors cannot be combined with law={law:?}, which needs the tokens that all constraints together allow; use \
                 law=\"local\", or Particles"
            );
            return Err(PyValueError::new_err(message));
        }
        let common = Common {
            grammar,
            prompt,
            max_tokens,
            ends,
            warping,
            monitors,
        };
        let mut setting = Setting::new(common, law)?;
        let walk = walk(law, trie, &mut setting)?;
        Ok(Sampler {
            text: Mutex::new(Text::new(&setting, walk, seed, sample)),
            setting,
        })
    }

    /// Takes the step after the tokens so far, given the model's row of logits there: float32, one for each
    /// token of the vocabulary. `amateur` is the row of the other model, with `contrast_beta`.
    #[pyo3(signature = (logits, *, amateur = None))]
    fn next(
        &self,
        py: Python<'_>,
        logits: &Bound<'_, PyAny>,
        amateur: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Step> {
        let (model, amateur) = (row_of(logits)?, amateur.map(row_of).transpose()?);
        let _inside = fork::enter(py);
        py.detach(|| {
            let logits = Logits {
                model: &model,
                amateur: amateur.as_deref(),
            };
            if self.setting.monitors.is_none() {
                return self.step(&mut self.lock(), logits);
            }
            let mut text = self.lock().copy();
            let step = self.step(&mut text, logits)?;
            *self.lock() = text;
            Ok(step)
        })
    }

    /// The tokens of the answer so far.
    #[getter]
    fn tokens(&self) -> Vec<u32> {
        self.read(|text| text.tokens().to_vec())
    }

    /// The law of the answer: "greedy", or "local", "global-exact", "global-weighted", "asap", "aprad" or
    /// "mcmc", with "-filtered" where filters cut the rows.
    #[getter]
    fn law(&self) -> &'static str {
        self.read(|text| text.walk.tag().as_str())
    }

    /// The log of the probability of the answer under the warped model.
    #[getter]
    fn log_probability(&self) -> f64 {
        self.read(|text| text.walk.log_probability())
    }

    /// The log of the importance weight of the answer, from its law to the global one; `None` for laws that
    /// have no weight.
    #[getter]
    fn log_weight(&self) -> Option<f64> {
        self.read(|text| text.walk.tag().has_weight().then(|| text.walk.log_weight()))
    }

    /// The number of failed attempts at the global law, or how often "aprad" went back.
    #[getter]
    fn failed_attempts(&self) -> u32 {
        self.read(|text| text.walk.failed_attempts())
    }
}

impl Sampler {
    fn lock(&self) -> MutexGuard<'_, Text> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T>(&self, read: impl FnOnce(&Text) -> T) -> T {
        read(&self.lock())
    }

    fn step(&self, text: &mut Text, logits: Logits<'_>) -> PyResult<Step> {
        let row = self.setting.row(logits, text.tokens())?;
        let mask = self
            .setting
            .mask(text.state(), self.setting.budget(text.tokens()))?;
        let allowed = Allowed::Words(mask.words());
        let step = match &self.setting.monitors {
            Some(_) => text.next_asked(&self.setting, &row, Some(allowed))?,
            None => text.next(&self.setting, &row, allowed)?,
        };
        Ok(Step::of(step, text))
    }
}

/// Returns the walk of a law.
fn walk(law: Law, trie: Option<&Bound<'_, Trie>>, setting: &mut Setting) -> PyResult<Walk> {
    let walk = match law {
        Law::Global {
            max_attempts,
            fallback,
            ..
        } => Walk::global(trie_of(trie, setting, "law=\"global\"")?, max_attempts, fallback),
        Law::Asap { .. } => Walk::adaptive(trie_of(trie, setting, "law=\"asap\"")?),
        Law::Aprad { exponent, max_errors } => {
            Walk::aligned(Aprad::new(exponent, CAPACITY), max_errors, &setting.end_tokens())
        }
        _ => return Ok(setting.local_walk()),
    };
    Ok(setting.tagged(walk))
}
