//! The laws of the library over rows of logits: local, global, and weighted draws for constraints without a
//! mask.
//!
//! A sampler walks along one text of a grammar. The caller runs the model and passes the row of logits after
//! the prompt and the tokens so far; the sampler returns the next step.
//!
//! ```text
//!   local    token token token … end
//!   global   token token restart      the attempt failed: back to the prompt
//!            token token token end    accepted: the sample has the model's law under the condition of the grammar
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use lexiform::Ends;
use lexiform::MaskRequest;
use lexiform_law as law;
use lexiform_law::{
    Allowed, Fallback, History, Law, LawError, Place, Sampler as _, Seeded, Walk, Warper, Warping,
};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::error::limit_error;
use crate::fork;
use crate::grammar::Grammar;
use crate::state::{Shared, State};

/// The bounds that failed attempts at the global law have left, shared by all samplers of one model, prompt,
/// warping, grammar and greatest length.
#[pyclass(frozen, module = "lexiform")]
pub(crate) struct Trie {
    inner: Arc<Mutex<law::Trie>>,
    max_tokens: u32,
    ends: Vec<u32>,
}

#[pymethods]
impl Trie {
    /// Creates an empty trie for answers of at most `max_tokens` tokens, including their end. It keeps at
    /// most `capacity` prefixes and edges.
    #[new]
    #[pyo3(signature = (grammar, *, max_tokens, ends = None, capacity = 1 << 16))]
    fn new(
        grammar: &Bound<'_, Grammar>,
        max_tokens: u32,
        ends: Option<&Bound<'_, PyAny>>,
        capacity: usize,
    ) -> PyResult<Trie> {
        let start = grammar.get().at_start();
        let ends = ends_of(&start, start.ends(ends)?.as_ref());
        Ok(Trie {
            inner: Arc::new(Mutex::new(law::Trie::new(&ends, max_tokens, capacity))),
            max_tokens,
            ends,
        })
    }

    fn __len__(&self) -> usize {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// The step to take at a prefix.
#[pyclass(frozen, get_all, module = "lexiform")]
pub(crate) struct Step {
    /// "token": append the token and continue. "end": append it; the sample is accepted. "restart": drop the
    /// tokens of the answer and begin again after the prompt. "stuck": there will be no sample.
    kind: &'static str,
    /// The token, if there is one.
    token: Option<u32>,
    /// The log of the probability that the row gave to all allowed tokens.
    log_mass: Option<f64>,
    /// The log of the probability of the token under the warped row, before the mask.
    log_probability: Option<f64>,
    /// The reason why there will be no sample.
    reason: Option<String>,
}

#[pymethods]
impl Step {
    fn __repr__(&self) -> String {
        match self.token {
            Some(token) => format!("<Step {} {token}>", self.kind),
            None => format!("<Step {}>", self.kind),
        }
    }
}

impl From<law::Step> for Step {
    fn from(step: law::Step) -> Step {
        let (kind, drawn, reason) = match step {
            law::Step::Token(drawn) => ("token", Some(drawn), None),
            law::Step::End(drawn) => ("end", Some(drawn), None),
            law::Step::Restart => ("restart", None, None),
            law::Step::Stuck(error) => ("stuck", None, Some(error.to_string())),
        };
        Step {
            kind,
            token: drawn.as_ref().map(|drawn| drawn.token),
            log_mass: drawn.as_ref().map(|drawn| drawn.log_mass),
            log_probability: drawn.as_ref().map(|drawn| drawn.log_probability),
            reason,
        }
    }
}

/// Draws one answer of a grammar from the rows of a model, under the local law or under the global one.
#[pyclass(frozen, module = "lexiform")]
pub(crate) struct Sampler {
    drawing: Mutex<OpenDrawing>,
}

/// An answer that is being drawn.
struct OpenDrawing {
    /// Keeps alive the grammar that replaces an outgrown one.
    _shared: Arc<Shared>,
    start: State,
    state: State,
    walk: Walk,
    warper: Warper,
    chooser: Seeded,
    ends: Option<Ends>,
    max_tokens: Option<u32>,
    answer: Vec<u32>,
}

#[pymethods]
impl Sampler {
    /// Creates a sampler at the beginning of an answer. With a `trie`, it draws from the global law, in at
    /// most `attempts` attempts; without one, from the local law, and `max_tokens` makes its answers complete
    /// within that many tokens. Every draw depends only on `seed`, on the number of the sample and on the
    /// place of the token.
    #[new]
    #[pyo3(signature = (grammar, *, seed = 0, sample = 0, trie = None, attempts = 1000, fallback = "fail", temperature = 1.0,
        top_k = None, top_p = 1.0, min_p = 0.0, max_tokens = None, ends = None))]
    #[expect(clippy::too_many_arguments, reason = "the keywords of a function of Python")]
    fn new(
        grammar: &Bound<'_, Grammar>,
        seed: u64,
        sample: u32,
        trie: Option<&Bound<'_, Trie>>,
        attempts: u32,
        fallback: &str,
        temperature: f32,
        top_k: Option<u32>,
        top_p: f32,
        min_p: f32,
        max_tokens: Option<u32>,
        ends: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Sampler> {
        let (start, state) = (grammar.get().at_start(), grammar.get().at_start());
        let ends = start.ends(ends)?;
        let fallback = match fallback {
            "fail" => Fallback::Fail,
            "weighted" => Fallback::Weighted,
            other => {
                return Err(PyValueError::new_err(format!(
                    "fallback={other:?} is not one of \"fail\", \"weighted\""
                )));
            }
        };
        let law = match trie {
            None => Law::Local,
            Some(_) => Law::Global {
                max_attempts: attempts,
                fallback,
                share_attempts: false,
            },
        };
        let warping = Warping {
            temperature,
            top_k,
            top_p,
            min_p,
            ..Warping::default()
        };
        let warper = Warper::new(warping, law).map_err(law_error)?;
        let all = ends_of(&start, ends.as_ref());
        let (walk, longest) = match trie.map(Bound::get) {
            None => (Walk::local(&warper, true, &all), max_tokens),
            Some(trie) if trie.ends != all || max_tokens.is_some_and(|most| most != trie.max_tokens) => {
                let message = "the trie is one for other ends or another greatest length";
                return Err(PyValueError::new_err(message));
            }
            Some(trie) => (
                Walk::global(trie.inner.clone(), attempts, fallback).filtered(&warper),
                Some(trie.max_tokens),
            ),
        };
        let drawing = OpenDrawing {
            _shared: grammar.get().shared.clone(),
            start,
            state,
            walk,
            warper,
            chooser: Seeded::new(seed, sample),
            ends,
            max_tokens: longest,
            answer: Vec::new(),
        };
        Ok(Sampler {
            drawing: Mutex::new(drawing),
        })
    }

    /// Takes the step after the tokens so far, given the model's row of logits there: float32, one for each
    /// token of the vocabulary.
    fn next(&self, py: Python<'_>, logits: &Bound<'_, PyAny>) -> PyResult<Step> {
        let row = row_of(logits)?;
        let _inside = fork::enter(py);
        py.detach(|| {
            self.drawing
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .next(&row)
        })
    }

    /// The tokens of the answer so far.
    #[getter]
    fn tokens(&self) -> Vec<u32> {
        self.read(|drawing| drawing.answer.clone())
    }

    /// The law of the sample: "local", "greedy", "global-exact" or "global-weighted"; all but "greedy" also
    /// with "-filtered".
    #[getter]
    fn law(&self) -> &'static str {
        self.read(|drawing| drawing.walk.tag().as_str())
    }

    /// The log of the probability of the answer under the warped model.
    #[getter]
    fn log_probability(&self) -> f64 {
        self.read(|drawing| drawing.walk.log_probability())
    }

    /// The log of the importance weight of the answer, from its law to the global one.
    #[getter]
    fn log_weight(&self) -> f64 {
        self.read(|drawing| drawing.walk.log_weight())
    }

    /// The number of failed attempts at the global law.
    #[getter]
    fn failed_attempts(&self) -> u32 {
        self.read(|drawing| drawing.walk.failed_attempts())
    }
}

impl Sampler {
    fn read<T>(&self, read: impl FnOnce(&OpenDrawing) -> T) -> T {
        read(&self.drawing.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl OpenDrawing {
    fn next(&mut self, logits: &[f32]) -> PyResult<Step> {
        let tokens = self.state.grammar().vocabulary().len();
        if logits.len() != tokens {
            let given = logits.len();
            let message = format!("the row has {given} logits; the vocabulary has {tokens} tokens");
            return Err(PyValueError::new_err(message));
        }
        let drawn = u32::try_from(self.answer.len()).unwrap_or(u32::MAX);
        let budget = self.max_tokens.map(|most| most.saturating_sub(drawn) as usize);
        let mask = self.state.grammar().try_mask(
            MaskRequest::from(self.state.state)
                .within(budget)
                .ending(self.ends.as_ref()),
        );
        let mask = mask.map_err(limit_error)?;
        let history = History {
            answer: &self.answer,
            ..History::default()
        };
        let row = self.warper.row(logits, history);
        let row = row.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let step = self
            .walk
            .next(&row, Allowed::Words(mask.words()), &mut self.chooser);
        match &step {
            law::Step::Token(drawn) | law::Step::End(drawn) => self.take(drawn.token)?,
            law::Step::Restart => {
                self.answer.clear();
                self.state = self.start.at(self.start.state);
            }
            law::Step::Stuck(_) => {}
        }
        Ok(step.into())
    }

    fn take(&mut self, token: u32) -> PyResult<()> {
        let next = self
            .state
            .grammar()
            .step_for(self.state.state, token, self.ends.as_ref());
        let next = next.map_err(limit_error)?;
        // The mask allowed it.
        if let Some(next) = next {
            self.state = self.state.kept(next);
        }
        self.answer.push(token);
        Ok(())
    }
}

/// Returns the tokens that end an answer.
fn ends_of(state: &State, ends: Option<&Ends>) -> Vec<u32> {
    match ends {
        Some(ends) => ends.tokens().to_vec(),
        None => state.grammar().vocabulary().eos().to_vec(),
    }
}

fn law_error(error: LawError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Returns the numbers of a row of float32.
fn row_of(logits: &Bound<'_, PyAny>) -> PyResult<Vec<f32>> {
    let wrong =
        |_| PyTypeError::new_err("a row of logits is a contiguous array of float32 with one dimension");
    let buffer = PyBuffer::<f32>::get(logits).map_err(wrong)?;
    match buffer.dimensions() {
        1 => buffer.to_vec(logits.py()),
        dimensions => Err(PyValueError::new_err(format!(
            "the row has {dimensions} dimensions; it must have one"
        ))),
    }
}

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
    let warper = Warper::new(warping, Law::Local).map_err(law_error)?;
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
