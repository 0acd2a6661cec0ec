//! Schemas as providers and engines take them, and the values of their answers. `lexiform/project.py` is the
//! interface; schemas and answers go between the two as JSON texts.

use std::sync::Arc;

use lexiform::limits::Limits;
use lexiform::project::{self, Profile, Proof, Receiver, Rejected, Toward};
use lexiform::schema::Options;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::{Problem, compile_error, rejected_error};
use crate::fork;

/// A constraint that a target cannot have, or a part that is written in another shape.
#[pyclass(frozen, get_all, eq, module = "lexiform.project")]
#[derive(Clone, PartialEq)]
pub(crate) struct Remark {
    /// The JSON pointer of the place in the schema.
    pointer: String,
    /// "wider", "narrower" or "recoded".
    effect: &'static str,
    /// A description.
    message: String,
}

#[pymethods]
impl Remark {
    fn __str__(&self) -> String {
        format!("#{}: {}: {}", self.pointer, self.effect, self.message)
    }

    fn __repr__(&self) -> String {
        format!(
            "Remark({:?}, {:?}, {:?})",
            self.pointer, self.effect, self.message
        )
    }
}

/// A schema as a target takes it.
#[pyclass(frozen, module = "lexiform._lexiform")]
pub(crate) struct RawProjection {
    source: String,
    projection: Arc<project::Projection>,
    receiver: std::sync::OnceLock<Receiver>,
}

#[pymethods]
impl RawProjection {
    #[getter]
    fn schema(&self) -> String {
        self.projection.schema().to_string()
    }

    #[getter]
    fn restored_schema(&self) -> String {
        self.projection.restored_schema().to_string()
    }

    #[getter]
    fn unchanged(&self) -> bool {
        self.projection.is_unchanged()
    }

    #[getter]
    fn relation(&self) -> &'static str {
        self.projection.relation().as_str()
    }

    #[getter]
    fn proven(&self) -> bool {
        self.projection.proof() == Proof::Proven
    }

    #[getter]
    fn remarks(&self) -> Vec<Remark> {
        let losses = self.projection.losses().iter().map(|loss| Remark {
            pointer: loss.pointer.clone(),
            effect: loss.effect.as_str(),
            message: loss.message.clone(),
        });
        let recodings = self.projection.recodings().iter().map(|recoding| Remark {
            pointer: recoding.pointer.clone(),
            effect: "recoded",
            message: recoding.message.clone(),
        });
        losses.chain(recodings).collect()
    }

    /// Restores the value that an answer stands for; both are JSON texts.
    fn restore(&self, answer: &str) -> PyResult<String> {
        let answer = serde_json::from_str(answer);
        let answer = answer.map_err(|error| rejected_error(&Rejected::NotJson(error.to_string())))?;
        let restored = self.projection.restore(answer, &Limits::default());
        let restored = restored.map_err(|error| rejected_error(&Rejected::NotRestored(error)))?;
        Ok(restored.to_string())
    }

    /// Returns the value of the schema that an answer stands for, or the nearest one, and how many changes
    /// lead to it.
    fn receive(&self, py: Python<'_>, answer: &str) -> PyResult<(String, usize)> {
        let receiver = self.receiver()?;
        let _inside = fork::enter(py);
        let received = py.detach(|| receiver.receive(answer));
        let received = received.map_err(|rejected| rejected_error(&rejected))?;
        Ok((received.value.to_string(), received.changes.len()))
    }
}

impl RawProjection {
    fn receiver(&self) -> PyResult<&Receiver> {
        if let Some(known) = self.receiver.get() {
            return Ok(known);
        }
        let made = Receiver::new(&self.source, self.projection.clone(), &Limits::default());
        let made = made.map_err(|error| compile_error(&error))?;
        Ok(self.receiver.get_or_init(|| made))
    }
}

/// Projects a schema, given as JSON, to a profile: the name of one, or its JSON.
#[pyfunction]
pub(crate) fn project_schema(
    py: Python<'_>,
    schema: &str,
    profile: &str,
    narrower: bool,
) -> PyResult<RawProjection> {
    let profile = profile_of(profile)?;
    let _inside = fork::enter(py);
    let toward = if narrower { Toward::Narrower } else { Toward::Wider };
    let projected = py.detach(|| {
        project::project(
            schema,
            &profile,
            toward,
            &Options::for_generation(),
            &Limits::default(),
        )
    });
    let projection = projected.map_err(|error| compile_error(&error))?;
    Ok(RawProjection {
        source: schema.to_owned(),
        projection: Arc::new(projection),
        receiver: std::sync::OnceLock::new(),
    })
}

/// Returns everything in a schema, given as JSON, that a profile does not take.
#[pyfunction]
pub(crate) fn schema_refusals(schema: &str, profile: &str) -> PyResult<Vec<Problem>> {
    let found = project::refusals(schema, &profile_of(profile)?, &Limits::default());
    let found = found.map_err(|error| compile_error(&error))?;
    Ok(found.iter().map(Problem::from).collect())
}

/// Returns the names of the profiles that come with the library.
#[pyfunction]
pub(crate) fn profile_names() -> Vec<&'static str> {
    Profile::names().collect()
}

fn profile_of(text: &str) -> PyResult<Profile> {
    if let Some(known) = Profile::named(text) {
        return Ok(known);
    }
    if !text.trim_start().starts_with('{') {
        let known: Vec<&str> = Profile::names().collect();
        let message = format!("there is no profile {text:?}; there are {}", known.join(", "));
        return Err(PyValueError::new_err(message));
    }
    Profile::read(text).map_err(|error| compile_error(&error))
}
