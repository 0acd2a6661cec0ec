//! Constraints beside a grammar that are asked about tokens: functions of Python, and other grammars.
//!
//! A function may do anything, and takes the interpreter for it. So no lock of this package is held while it
//! runs: a text is copied before a step, and replaced by the copy that took it. What the function raises ends
//! the step, and leaves the text as it was.

use std::sync::{Arc, Mutex, PoisonError};

use lexiform_automata::vocab::Vocabulary;
use lexiform_law::monitor::{
    Failure, Judge, Judged, Monitor, MonitorState, Product, ProductState, Question, Verdict,
};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList, PyString, PyTuple};

use crate::grammar::Grammar;

/// The exception that a function has raised.
type Raised = Arc<Mutex<Option<PyErr>>>;

/// The monitors of a setting.
pub(super) struct Monitors {
    product: Product,
    raised: Raised,
    /// The tokens that end an answer, and one that ends it for the monitors.
    ends: Vec<u32>,
    end: Option<u32>,
}

impl Monitors {
    /// Reads the argument; `None` if there are no monitors. `ends` are the tokens that end an answer.
    pub(super) fn read(
        given: &[Bound<'_, PyAny>],
        vocabulary: &Arc<Vocabulary>,
        ends: Vec<u32>,
    ) -> PyResult<Option<Monitors>> {
        if given.is_empty() {
            return Ok(None);
        }
        let end = vocabulary.eos().first().copied();
        if end.is_none() && !ends.is_empty() {
            let message = "monitors: the vocabulary has no end token, about which they could be asked";
            return Err(PyValueError::new_err(message));
        }
        let raised = Raised::default();
        let part = |(number, one): (usize, &Bound<'_, PyAny>)| part(number, one, vocabulary, &raised);
        let parts = given.iter().enumerate().map(part).collect::<PyResult<_>>()?;
        Ok(Some(Monitors {
            product: Product::new(parts),
            raised,
            ends,
            end,
        }))
    }

    /// Returns the state of the empty text.
    pub(super) fn begin(&self) -> ProductState {
        self.product.begin()
    }

    /// Returns whether a token may come next.
    pub(super) fn allows(&self, state: &mut ProductState, token: u32, left: Option<usize>) -> PyResult<bool> {
        let token = self.token(token);
        state.allows(token, left).map_err(|failure| self.error(failure))
    }

    /// Advances by a token that is allowed.
    pub(super) fn advance(&self, state: &mut ProductState, token: u32) -> PyResult<()> {
        let token = self.token(token);
        state.advance(token).map_err(|failure| self.error(failure))
    }

    /// Returns the token that means the same to the monitors.
    fn token(&self, token: u32) -> u32 {
        let end = self.end.filter(|_| self.ends.contains(&token));
        end.unwrap_or(token)
    }

    fn error(&self, failure: Failure) -> PyErr {
        let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        raised
            .take()
            .unwrap_or_else(|| PyRuntimeError::new_err(format!("a monitor failed: {failure}")))
    }
}

/// Reads one monitor.
fn part(
    number: usize,
    given: &Bound<'_, PyAny>,
    vocabulary: &Arc<Vocabulary>,
    raised: &Raised,
) -> PyResult<Arc<dyn Monitor>> {
    if let Ok(grammar) = given.cast::<Grammar>() {
        let grammar = grammar.get().at_start().grammar().clone();
        return match Arc::ptr_eq(grammar.vocabulary(), vocabulary) {
            true => Ok(Arc::new(grammar)),
            false => Err(PyValueError::new_err(format!(
                "monitors[{number}]: the grammar was compiled for another vocabulary"
            ))),
        };
    }
    if !given.is_callable() {
        let kind = given.get_type().name()?;
        let message = format!("monitors[{number}] is a {kind}; it must be a function or a Grammar");
        return Err(PyTypeError::new_err(message));
    }
    let function = Function {
        number,
        function: given.clone().unbind(),
        raised: raised.clone(),
    };
    Ok(Arc::new(Judged::new(vocabulary, function)))
}

/// A function of Python that judges a text.
struct Function {
    number: usize,
    function: Py<PyAny>,
    raised: Raised,
}

impl Judge for Function {
    fn judge(&self, texts: &[Question]) -> Result<Vec<Verdict>, Failure> {
        let verdicts = Python::attach(|py| {
            let verdicts = texts.iter().map(|question| self.verdict(py, question));
            verdicts.collect::<PyResult<Vec<Verdict>>>()
        });
        verdicts.map_err(|error| {
            let failure = Failure(error.to_string());
            *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            failure
        })
    }
}

impl Function {
    fn verdict(&self, py: Python<'_>, question: &Question) -> PyResult<Verdict> {
        let answer = self
            .function
            .bind(py)
            .call1((&question.text, question.is_whole))?;
        let wrong = |what: String| {
            let number = self.number;
            PyTypeError::new_err(format!(
                "monitors[{number}] returned {what}; it must return True, False, \"open\", \"allowed\", \"forbidden\", or a list of \
                 strings that are not empty"
            ))
        };
        if let Ok(answer) = answer.cast::<PyBool>() {
            return Ok(match answer.is_true() {
                true => Verdict::Open,
                false => Verdict::Forbidden,
            });
        }
        if let Ok(answer) = answer.cast::<PyString>() {
            return match answer.to_cow()?.as_ref() {
                "open" => Ok(Verdict::Open),
                "allowed" => Ok(Verdict::Allowed),
                "forbidden" => Ok(Verdict::Forbidden),
                other => Err(wrong(format!("{other:?}"))),
            };
        }
        let is_list = answer.cast::<PyList>().is_ok() || answer.cast::<PyTuple>().is_ok();
        let items = is_list.then(|| answer.extract::<Vec<String>>().ok()).flatten();
        match items {
            Some(items) if items.iter().all(|item| !item.is_empty()) => {
                Ok(Verdict::Next(items.into_iter().map(Arc::from).collect()))
            }
            _ => Err(wrong(answer.repr()?.to_string())),
        }
    }
}
