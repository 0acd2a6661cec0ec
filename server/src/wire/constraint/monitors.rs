//! `monitors`: constraints that the text must obey beside the one of the request, each an object as in
//! `response_format` or the identity of a registered grammar.

use serde_json::Value;

use super::{Constraint, fields};
use crate::wire::fields::{Fields, Problems, type_name};

/// The most monitors of a request.
const MOST_MONITORS: usize = 8;

/// One monitor of a request.
#[derive(Clone, Debug)]
pub struct Monitor {
    /// Where it stands in the request, which is also what errors call it.
    pub param: String,
    /// What it is.
    pub source: MonitorSource,
}

/// What a monitor is.
#[derive(Clone, Debug)]
pub enum MonitorSource {
    /// A constraint of its own.
    Constraint(Constraint),
    /// The identity of a registered one.
    Registered(String),
}

impl Monitor {
    /// Its constraint, if the request has it.
    pub fn constraint(&self) -> Option<&Constraint> {
        match &self.source {
            MonitorSource::Constraint(constraint) => Some(constraint),
            MonitorSource::Registered(_) => None,
        }
    }
}

/// The constraints of the monitors that have one of their own.
pub fn constraints(monitors: &mut [Monitor]) -> impl Iterator<Item = &mut Constraint> {
    monitors
        .iter_mut()
        .filter_map(|monitor| match &mut monitor.source {
            MonitorSource::Constraint(constraint) => Some(constraint),
            MonitorSource::Registered(_) => None,
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
        value @ Value::Object(_) => {
            let format = Fields::of(value, &param, problems)?;
            MonitorSource::Constraint(fields::format(format, problems)?)
        }
        other => {
            let found = type_name(&other);
            let message = format!(
                "expected an object as in response_format, or the grammar_id of a registered grammar, found {found}"
            );
            problems.invalid(param, message);
            return None;
        }
    };
    Some(Monitor { param, source })
}
