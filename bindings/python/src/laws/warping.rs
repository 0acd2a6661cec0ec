//! The keywords that change the model's rows before they are drawn from: temperature, filters, penalties and
//! biases. They have the names that requests to the service have.

use std::collections::BTreeMap;

use lexiform_law::{Contrast, Law, LawError, Mirostat, MirostatVersion, Warping};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The target surprise of Mirostat in bits and its rate, where they are not given.
const TAU: f32 = 5.0;
const ETA: f32 = 0.1;
/// The plausibility that contrastive decoding demands, where it is not given.
const ALPHA: f32 = 0.1;

/// Reads the keywords, for a vocabulary of `tokens` tokens. A keyword that is `None` is as one that is not
/// given. The contrast is that to another model, if there is one.
pub(super) fn read(
    keywords: Option<&Bound<'_, PyDict>>,
    tokens: usize,
) -> PyResult<(Warping, Option<Contrast>)> {
    let mut warping = Warping::default();
    let (mut alpha, mut beta) = (None, None);
    let (mut mode, mut tau, mut eta) = (None, None, None);
    for (name, value) in keywords.into_iter().flatten() {
        let name: String = name.extract()?;
        let value = Given { name: &name, value };
        match name.as_str() {
            "temperature" => value.number(&mut warping.temperature)?,
            "top_k" => warping.top_k = value.read()?,
            "top_p" => value.number(&mut warping.top_p)?,
            "min_p" => value.number(&mut warping.min_p)?,
            "typical_p" => value.number(&mut warping.typical_p)?,
            "top_n_sigma" => warping.top_n_sigma = value.read()?,
            "epsilon_cutoff" => value.number(&mut warping.epsilon_cutoff)?,
            "eta_cutoff" => value.number(&mut warping.eta_cutoff)?,
            "bregman_lambda" => value.number(&mut warping.bregman_lambda)?,
            "mirostat_mode" => mode = value.read::<u32>()?,
            "mirostat_tau" => tau = value.read::<f32>()?,
            "mirostat_eta" => eta = value.read::<f32>()?,
            "contrast_alpha" => alpha = value.read::<f32>()?,
            "contrast_beta" => beta = value.read::<f32>()?,
            "repetition_penalty" => value.number(&mut warping.repetition_penalty)?,
            "frequency_penalty" => value.number(&mut warping.frequency_penalty)?,
            "presence_penalty" => value.number(&mut warping.presence_penalty)?,
            "logit_bias" => warping.bias = value.bias(tokens)?,
            other => {
                return Err(PyTypeError::new_err(format!(
                    "{other:?} is no keyword argument of this class"
                )));
            }
        }
    }
    warping.mirostat = mirostat(mode, tau, eta)?;
    if alpha.is_some() && beta.is_none() {
        let message = "contrast_alpha has no effect without contrast_beta";
        return Err(PyValueError::new_err(message));
    }
    let contrast = beta.map(|beta| Contrast::beyond(alpha.unwrap_or(ALPHA), beta));
    Ok((warping, contrast))
}

/// A keyword and its value.
struct Given<'a, 'py> {
    name: &'a str,
    value: Bound<'py, PyAny>,
}

impl<'py> Given<'_, 'py> {
    fn read<T>(&self) -> PyResult<Option<T>>
    where
        T: for<'a> FromPyObject<'a, 'py, Error: Into<PyErr>>,
    {
        let name = self.name;
        let wrong = |error: PyErr| {
            let py = self.value.py();
            let message = format!("{name}: {}", error.value(py));
            match error.is_instance_of::<PyTypeError>(py) {
                true => PyTypeError::new_err(message),
                false => PyValueError::new_err(message),
            }
        };
        self.value
            .extract::<Option<T>>()
            .map_err(|error| wrong(error.into()))
    }

    fn number(&self, target: &mut f32) -> PyResult<()> {
        if let Some(value) = self.read()? {
            *target = value;
        }
        Ok(())
    }

    fn bias(&self, tokens: usize) -> PyResult<Vec<(u32, f32)>> {
        let bias = self.read::<BTreeMap<u32, f32>>()?.unwrap_or_default();
        match bias.keys().find(|&&token| token as usize >= tokens) {
            Some(token) => Err(PyValueError::new_err(format!(
                "logit_bias: token {token} is outside of the vocabulary, which has {tokens} tokens"
            ))),
            None => Ok(bias.into_iter().collect()),
        }
    }
}

fn mirostat(mode: Option<u32>, tau: Option<f32>, eta: Option<f32>) -> PyResult<Option<Mirostat>> {
    let version = match mode {
        None | Some(0) => {
            let without = [("mirostat_tau", tau), ("mirostat_eta", eta)];
            return match without.iter().find(|(_, value)| value.is_some()) {
                Some((name, _)) => Err(PyValueError::new_err(format!(
                    "{name} has no effect without mirostat_mode=1 or mirostat_mode=2"
                ))),
                None => Ok(None),
            };
        }
        Some(1) => MirostatVersion::One,
        Some(2) => MirostatVersion::Two,
        Some(other) => {
            let message = format!("mirostat_mode is {other}; it must be 0, 1 or 2");
            return Err(PyValueError::new_err(message));
        }
    };
    Ok(Some(Mirostat {
        version,
        tau: tau.unwrap_or(TAU),
        eta: eta.unwrap_or(ETA),
    }))
}

/// Returns a `ValueError` that names the keyword which a law refuses.
pub(super) fn refused(error: &LawError, law: Law) -> PyErr {
    let law = law.name();
    PyValueError::new_err(match error {
        LawError::OutOfRange { name: "alpha", .. } => "contrast_alpha: it must be from 0 to 1".to_owned(),
        LawError::OutOfRange {
            name: "expert" | "amateur",
            ..
        } => "contrast_beta: it must be a number above -1".to_owned(),
        LawError::OutOfRange { name: "bias", .. } => {
            "logit_bias: a bias must be a number or minus infinity".to_owned()
        }
        LawError::GreedyGlobal => {
            format!("temperature is 0; it must be above 0 under {law}, or use Sampler with law=\"local\"")
        }
        LawError::MirostatGlobal => {
            format!("mirostat_mode has no meaning under {law}; it needs law=\"local\"")
        }
        error => error.to_string(),
    })
}
