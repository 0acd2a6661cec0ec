//! A token of a constraint that has no mask.

use lexiform_law as law;
use lexiform_law::{History, Law, Place, Seeded, Warper, Warping};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::setting::row_of;
use super::warping;

/// Draws a token without a mask, given a function that returns whether a token may come next (adaptive
/// weighted rejection sampling). Returns the token and its log weight; the mean of the weight is the
/// probability of all allowed tokens. Returns `None` if no token with probability may come. The function is
/// called for few tokens, at most once for each.
#[pyfunction]
#[pyo3(signature = (logits, allows, *, seed = 0, sample = 0, position = 0, temperature = 1.0))]
pub(crate) fn weighted_token(
    logits: &Bound<'_, PyAny>,
    allows: &Bound<'_, PyAny>,
    seed: u64,
    sample: u32,
    position: u32,
    temperature: f32,
) -> PyResult<Option<(u32, f64)>> {
    let warping = Warping {
        temperature,
        ..Warping::default()
    };
    let warper = Warper::new(warping, Law::Local).map_err(|error| warping::refused(&error, Law::Local))?;
    let logits = row_of(logits)?;
    let row = warper.row(&logits, History::default());
    let row = row.map_err(|error| PyValueError::new_err(error.to_string()))?;
    let mut raised = None;
    let ask = |token: u32| {
        let answer = allows.call1((token,)).and_then(|answer| answer.is_truthy());
        // After an error any answer will do: the draw ends, and its result is discarded.
        answer.unwrap_or_else(|error| {
            raised.get_or_insert(error);
            true
        })
    };
    let drawn = law::recursive(&row, ask, Place::new(0, position), &mut Seeded::new(seed, sample));
    match raised {
        Some(error) => Err(error),
        None => Ok(drawn.map(|drawn| (drawn.token, f64::ln(drawn.weight)))),
    }
}
