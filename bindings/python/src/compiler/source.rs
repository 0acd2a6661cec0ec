//! Schemas in the forms that Python programs use.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString};

/// Returns the JSON text of a schema: a text unchanged, a dict or a bool, a Pydantic model, or a Pydantic
/// `TypeAdapter`.
pub(super) fn schema_text(schema: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = schema.cast::<PyString>() {
        return Ok(text.to_str()?.to_owned());
    }
    for method in ["model_json_schema", "json_schema"] {
        if let Some(method) = schema.getattr_opt(method)? {
            return dumped(&method.call0()?);
        }
    }
    if schema.is_instance_of::<PyDict>() || schema.is_instance_of::<PyBool>() {
        return dumped(schema);
    }
    let given = schema.get_type().name()?;
    let message = format!(
        "a schema is a text of JSON, a dict, a bool, a Pydantic model or a Pydantic TypeAdapter, not {given}"
    );
    Err(PyTypeError::new_err(message))
}

/// Returns the JSON text of a structural tag: a text unchanged, a dict, or an object of a Pydantic model.
pub(super) fn tag_text(tag: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = tag.cast::<PyString>() {
        return Ok(text.to_str()?.to_owned());
    }
    if tag.is_instance_of::<PyDict>() {
        return dumped(tag);
    }
    if let Some(method) = tag.getattr_opt("model_dump_json")? {
        return method.call0()?.extract();
    }
    let given = tag.get_type().name()?;
    let message = format!("a structural tag is a text of JSON, a dict or a Pydantic object, not {given}");
    Err(PyTypeError::new_err(message))
}

/// Returns the JSON text of a Python value. Keys keep their order, which is the order in which they are
/// written.
fn dumped(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let keywords = PyDict::new(value.py());
    keywords.set_item("allow_nan", false)?;
    keywords.set_item("ensure_ascii", false)?;
    let json = value.py().import("json")?;
    json.call_method("dumps", (value,), Some(&keywords))?.extract()
}
