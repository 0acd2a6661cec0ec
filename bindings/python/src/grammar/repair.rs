//! The nearest valid text, and the changes that lead to it.

use lexiform::error::Place;
use lexiform::repair;
use lexiform::repair::{Costs, RepairLimits};
use pyo3::prelude::*;

use crate::error::repair_error;
use crate::fork;
use crate::watch::Watch;

/// A place where a text was changed.
#[pyclass(frozen, get_all, eq, module = "lexiform")]
#[derive(Clone, PartialEq)]
pub(crate) struct Edit {
    /// The start in the given text, in bytes of UTF-8.
    offset: usize,
    /// The start in characters: an index of the string.
    start: usize,
    /// The line, from 1.
    line: usize,
    /// The column in characters, from 1.
    column: usize,
    /// The text that was removed.
    removed: String,
    /// The text that was inserted.
    inserted: String,
}

#[pymethods]
impl Edit {
    fn __repr__(&self) -> String {
        let Edit {
            line,
            column,
            removed,
            inserted,
            ..
        } = self;
        format!("<Edit line {line}, column {column}: {removed:?} becomes {inserted:?}>")
    }
}

/// A change of a value of a text that was repaired as JSON.
#[pyclass(frozen, get_all, eq, module = "lexiform")]
#[derive(Clone, PartialEq)]
pub(crate) struct Change {
    /// "around", "reordered", "dropped", "added" or "respelled".
    kind: &'static str,
    /// The value, as a JSON pointer into the given text; if a value was added, the value that contains it.
    pointer: String,
    /// The text that the change concerns, truncated if it is long.
    text: String,
}

#[pymethods]
impl Change {
    fn __repr__(&self) -> String {
        let Change { kind, pointer, text } = self;
        format!("<Change {kind} {pointer:?}: {text:?}>")
    }
}

/// A valid text at the lowest cost from a given one.
#[pyclass(frozen, get_all, module = "lexiform")]
pub(crate) struct Repair {
    /// The text.
    text: String,
    /// The total cost of its edits.
    cost: u64,
    /// The edits, in the order of the text. Adjacent edits are merged.
    edits: Vec<Edit>,
    /// The changes of the values of a JSON text; empty if the text was repaired by characters.
    changes: Vec<Change>,
}

#[pymethods]
impl Repair {
    fn __repr__(&self) -> String {
        format!("<Repair at cost {}: {:?}>", self.cost, self.text)
    }
}

/// The way in which a text is read.
#[derive(Clone, Copy)]
pub(crate) enum Reading {
    Json,
    Characters,
}

/// Repairs a text with the interpreter released; Ctrl-C and the deadline cancel it.
pub(crate) fn nearest(
    py: Python<'_>,
    (grammar, reading): (&lexiform::Grammar, Reading),
    text: &str,
    costs: &Costs,
    (nodes, deadline): (usize, Option<f64>),
) -> PyResult<Repair> {
    let watch = Watch::new("repair", deadline);
    let limits = RepairLimits {
        nodes,
        text_bytes: usize::MAX,
        cancel: watch.cancel(),
    };
    let _inside = fork::enter(py);
    let repaired = py.detach(|| match reading {
        Reading::Json => repair::Repair::of_json(grammar, text, costs, &limits),
        Reading::Characters => repair::Repair::of_text(grammar, text, costs, &limits),
    });
    match (repaired, watch.reason()) {
        (_, Some(reason)) => Err(reason),
        (Err(error), None) => Err(repair_error(&error)),
        (Ok(repair), None) => Ok(told(text, repair)),
    }
}

fn change(change: repair::Change) -> Change {
    Change {
        kind: change.kind.name(),
        pointer: change.pointer,
        text: change.text,
    }
}

fn told(text: &str, repair: repair::Repair) -> Repair {
    let (mut at, mut start) = (0, 0);
    let edit = |edit: repair::Edit| {
        start += text[at..edit.offset].chars().count();
        at = edit.offset;
        let (line, column) = match edit.place {
            Place::LineColumn { line, column } => (line, column),
            _ => (1, start + 1),
        };
        Edit {
            offset: edit.offset,
            start,
            line,
            column,
            removed: edit.removed,
            inserted: edit.inserted,
        }
    };
    Repair {
        text: repair.text,
        cost: repair.cost,
        edits: repair.edits.into_iter().map(edit).collect(),
        changes: repair.changes.into_iter().map(change).collect(),
    }
}
