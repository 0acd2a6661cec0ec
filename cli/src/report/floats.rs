//! Numbers of a report in JSON, where a number that is not finite is `null`.
//!
//! Serde keeps the contents of a tagged enum in a buffer, from which an `f64` cannot be read if numbers have
//! arbitrary precision, as they have in this workspace; a [`Number`] can.

use serde::{Deserialize, Deserializer};
use serde_json::Number;

fn float(number: Option<Number>) -> f64 {
    number.and_then(|number| number.as_f64()).unwrap_or(f64::NAN)
}

/// Reads a number.
pub(super) fn one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Option::<Number>::deserialize(deserializer).map(float)
}

type Pair = (Option<Number>, Option<Number>);

fn floats((one, other): Pair) -> (f64, f64) {
    (float(one), float(other))
}

/// Reads a pair of numbers, or nothing.
pub(super) fn interval<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<(f64, f64)>, D::Error> {
    Ok(Option::<Pair>::deserialize(deserializer)?.map(floats))
}

/// Reads a list of points.
pub(super) fn points<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(f64, f64)>, D::Error> {
    Ok(Vec::<Pair>::deserialize(deserializer)?
        .into_iter()
        .map(floats)
        .collect())
}
