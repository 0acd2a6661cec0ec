//! `monitors`: constraints that the text must obey in addition to the request's own, each an object as in
//! `response_format`, the identity of a registered grammar, or a callback.

use serde_json::Value;

use super::callbacks::Named;
use super::{Constraint, fields};
use crate::wire::fields::{Fields, Problems, type_name};

/// The maximum number of monitors of a request.
const MOST_MONITORS: usize = 8;

/// One monitor of a request.
#[derive(Clone, Debug)]
pub struct Monitor {
    /// The path of the monitor in the request, which is also its name in errors.
    pub param: String,
    /// The source of the monitor.
    pub source: MonitorSource,
}

/// The source of a monitor.
#[derive(Clone, Debug)]
pub enum MonitorSource {
    /// A constraint in the request.
    Constraint(Constraint),
    /// The identity of a registered constraint.
    Registered(String),
    /// A callback that the operator allows.
    Callback(Named),
}

impl Monitor {
    /// Returns the constraint, if it is in the request.
    pub fn constraint(&self) -> Option<&Constraint> {
        match &self.source {
            MonitorSource::Constraint(constraint) => Some(constraint),
            MonitorSource::Registered(_) | MonitorSource::Callback(_) => None,
        }
    }
}

/// Returns the constraints of the monitors whose constraint is in the request.
pub fn constraints(monitors: &mut [Monitor]) -> impl Iterator<Item = &mut Constraint> {
    monitors
        .iter_mut()
        .filter_map(|monitor| match &mut monitor.source {
            MonitorSource::Constraint(constraint) => Some(constraint),
            MonitorSource::Registered(_) | MonitorSource::Callback(_) => None,
        })
}

/// Takes the monitors of a request.
pub fn read(fields: &mut Fields, problems: &mut Problems) -> Vec<Monitor> {
    let values = fields.array("monitors", problems).unwrap_or_default();
    if values.len() > MOST_MONITORS {
        let found = values.len();
        problems.invalid(
            "monitors",
            format!("expected at most {MOST_MONITORS} monitors, found {found}"),
        );
        return Vec::new();
    }
    let one = |(number, value)| monitor(number, value, problems);
    values.into_iter().enumerate().filter_map(one).collect()
}

fn monitor(number: usize, value: Value, problems: &mut Problems) -> Option<Monitor> {
    let param = format!("monitors[{number}]");
    let source = match value {
        Value::String(id) => MonitorSource::Registered(id),
        Value::Object(object) if object.get("type").is_some_and(|kind| kind == "text") => {
            problems.invalid(param, "expected a constraint: free text allows everything");
            return None;
        }
        Value::Object(object) if object.get("type").is_some_and(|kind| kind == "callback") => {
            let callback = Fields::of(Value::Object(object), &param, problems)?;
            MonitorSource::Callback(Named::read(callback, "name", &["type"], problems)?)
        }
        value @ Value::Object(_) => {
            let format = Fields::of(value, &param, problems)?;
            MonitorSource::Constraint(fields::format(format, problems)?)
        }
        other => {
            let found = type_name(&other);
            let message = format!(
                "expected an object as in response_format, a callback, or the grammar_id of a registered grammar, found {found}"
            );
            problems.invalid(param, message);
            return None;
        }
    };
    Some(Monitor { param, source })
}
