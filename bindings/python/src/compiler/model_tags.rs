//! The structural tags of answers in the formats of models. `lexiform/tags.py` is the interface.

use lexiform::tags::{self, AnswerShape, Tool, ToolChoice};
use lexiform_syntax::answer::first_marks;
use lexiform_syntax::tags::recognised;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::compile_error;

/// Returns the structural tag of an answer in the format of a model, as JSON. `tools` are names with the
/// JSON of their schemas; `named` is the tool that must be called.
#[pyfunction]
#[pyo3(signature = (name, tools, required, named, thinks, parallel))]
pub(crate) fn model_tag(
    name: &str,
    tools: Vec<(String, String)>,
    required: bool,
    named: Option<String>,
    thinks: bool,
    parallel: bool,
) -> PyResult<String> {
    let tools = tools_of(tools)?;
    let choice = match named {
        Some(name) => ToolChoice::Named(name),
        None if required => ToolChoice::Required,
        None => ToolChoice::Auto,
    };
    let shape = AnswerShape {
        thinks,
        is_parallel: parallel,
    };
    let tag = tags::for_model(name, &tools, &choice, shape).map_err(|error| compile_error(&error))?;
    Ok(tag.to_string())
}

/// Reads tools: names with the JSON of their schemas.
pub(crate) fn tools_of(pairs: Vec<(String, String)>) -> PyResult<Vec<Tool>> {
    let tool = |(name, schema): (String, String)| {
        let parameters = serde_json::from_str(&schema);
        let parameters = parameters.map_err(|error| {
            PyValueError::new_err(format!("the parameters of {name:?} are not JSON: {error}"))
        })?;
        Ok(Tool { name, parameters })
    };
    pairs.into_iter().map(tool).collect()
}

/// Returns the names of the formats.
#[pyfunction]
pub(crate) fn model_formats() -> Vec<&'static str> {
    tags::model_formats().collect()
}

/// Returns the format that a chat template shows; `None` if it shows none.
#[pyfunction]
pub(crate) fn recognised_format(template: &str) -> Option<&'static str> {
    recognised(template)
}

/// Returns the mark that opens a thought in a format, and those that close it.
#[pyfunction]
pub(crate) fn thought_marks(name: &str) -> (&'static str, Vec<&'static str>) {
    let marks = first_marks(name).without_calls();
    (marks.open, marks.ends.to_vec())
}
