//! Grammars: steps, masks, and forced text.

pub(crate) mod explain;
pub(crate) mod repair;

use std::sync::Arc;

use lexiform::DraftTree;
use lexiform::MaskRequest;
use lexiform::error::Diagnostics;
use lexiform::limits::Limits;
use lexiform::repair::Costs;
use lexiform_syntax::schema;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::buffer::{Words, integers};
use crate::error::{Problem, compile_error, limit_error, tree_error};
use crate::fork;
use crate::pool::pool;
use crate::state::{Shared, State, asked};
use crate::vocabulary::Vocabulary;
use explain::{Assertion, Explanation};
use repair::{Reading, Repair};

/// A compiled grammar over one vocabulary; threads may share it.
#[pyclass(frozen, module = "lexiform")]
pub(crate) struct Grammar {
    pub(crate) shared: Arc<Shared>,
    about: Arc<About>,
}

/// The source and the limits of a grammar.
pub(crate) struct About {
    /// The schema with its options, for reports; `None` for other sources.
    pub(crate) schema: Option<(String, schema::Options)>,
    pub(crate) limits: Limits,
    pub(crate) diagnostics: Diagnostics,
}

#[pymethods]
impl Grammar {
    /// Returns the state in which every sequence begins.
    fn start(&self) -> State {
        self.at_start()
    }

    /// Returns the state after a token, or `None` if the token may not come next. `ends` are the tokens that
    /// end the sequence, instead of those of the vocabulary.
    #[pyo3(signature = (state, token, *, ends = None))]
    fn step(
        &self,
        py: Python<'_>,
        state: &Bound<'_, State>,
        token: u32,
        ends: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<State>> {
        let state = state.get().of(&self.shared)?;
        state.after(py, token, state.ends(ends)?.as_ref())
    }

    /// Returns the state after these bytes, or `None` if no text of the language continues with them.
    fn step_bytes(&self, py: Python<'_>, state: &Bound<'_, State>, bytes: &[u8]) -> PyResult<Option<State>> {
        let state = state.get().of(&self.shared)?;
        let next = asked(py, || state.grammar().try_step_bytes(state.state, bytes));
        Ok(next.map_err(limit_error)?.map(|next| state.kept(next)))
    }

    /// Returns the state after each of these tokens. The list stops before the first token that may not come,
    /// so it may be shorter than `tokens`.
    #[pyo3(signature = (state, tokens, *, ends = None))]
    fn walk(
        &self,
        py: Python<'_>,
        state: &Bound<'_, State>,
        tokens: Vec<u32>,
        ends: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<State>> {
        let state = state.get().of(&self.shared)?;
        let ends = state.ends(ends)?;
        let states = asked(py, || state.grammar().walk(state.state, &tokens, ends.as_ref()));
        Ok(states.into_iter().map(|next| state.at(next)).collect())
    }

    /// Writes the mask of the tokens that may come next into a row of an array of int32. With a budget,
    /// tokens after which the text cannot be completed within that many tokens are cleared. `ends` are the
    /// tokens that end the sequence, instead of those of the vocabulary.
    #[pyo3(signature = (state, mask, row = 0, *, budget = None, ends = None))]
    fn fill(
        &self,
        py: Python<'_>,
        state: &Bound<'_, State>,
        mask: &Bound<'_, PyAny>,
        row: usize,
        budget: Option<usize>,
        ends: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let state = state.get().of(&self.shared)?;
        let ends = state.ends(ends)?;
        let mut words = Words::of(mask, state.grammar().vocabulary().len().div_ceil(32))?;
        let number = words.row(row)?;
        state.fill(py, (budget, ends.as_ref()), words.one(number))
    }

    /// Writes the masks of a tree of drafted tokens, one row for each node, and returns the states after the
    /// nodes. Node 0 is the last token of the text, and `state` is the state after it. `child` and `sibling`
    /// hold the first child and the next sibling of each node, or a negative number. Rows of nodes that
    /// cannot be reached, and of those after an end, are not changed; the state of the former is `None`.
    #[pyo3(signature = (state, child, sibling, tokens, mask, *, budget = None, ends = None))]
    #[expect(clippy::too_many_arguments, reason = "the parameters of a function of Python")]
    fn fill_tree(
        &self,
        py: Python<'_>,
        state: &Bound<'_, State>,
        child: &Bound<'_, PyAny>,
        sibling: &Bound<'_, PyAny>,
        tokens: &Bound<'_, PyAny>,
        mask: &Bound<'_, PyAny>,
        budget: Option<usize>,
        ends: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Option<State>>> {
        let state = state.get().of(&self.shared)?;
        let row = state.row(budget, state.ends(ends)?);
        let tokens = integers(tokens)?;
        let tree = DraftTree::new(&tokens, &integers(child)?, &integers(sibling)?).map_err(tree_error)?;
        let stride = state.grammar().vocabulary().len().div_ceil(32);
        let mut words = Words::of(mask, stride)?;
        if let Some(last) = tree.len().checked_sub(1) {
            words.row(last)?;
        }
        let (_inside, pool) = (fork::enter(py), pool());
        let words = words.all();
        let (states, refused) = py.detach(|| pool.fill_tree(&row, &tree, stride, words));
        if let Some(&(_, exhausted)) = refused.first() {
            return Err(limit_error(exhausted));
        }
        Ok(states
            .into_iter()
            .map(|next| next.map(|next| state.at(next)))
            .collect())
    }

    /// Returns the tokens that may come next, in ascending order.
    #[pyo3(signature = (state, *, budget = None, ends = None))]
    fn tokens(
        &self,
        py: Python<'_>,
        state: &Bound<'_, State>,
        budget: Option<usize>,
        ends: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<u32>> {
        let state = state.get().of(&self.shared)?;
        let ends = state.ends(ends)?;
        let mask = asked(py, || {
            state.grammar().try_mask(
                MaskRequest::from(state.state)
                    .within(budget)
                    .ending(ends.as_ref()),
            )
        });
        Ok(mask.map_err(limit_error)?.iter().collect())
    }

    /// Returns `True` if the text so far is complete.
    fn is_accepting(&self, py: Python<'_>, state: &Bound<'_, State>) -> PyResult<bool> {
        let state = state.get().of(&self.shared)?;
        Ok(asked(py, || state.grammar().is_accepting(state.state)))
    }

    /// Returns `True` if a token that ends the sequence was taken.
    fn is_finished(&self, state: &Bound<'_, State>) -> PyResult<bool> {
        let state = state.get().of(&self.shared)?;
        Ok(state.grammar().is_finished(state.state))
    }

    /// Returns the bytes that every completion continues with; empty if there is a choice, or if the text may
    /// end.
    fn forced<'py>(&self, py: Python<'py>, state: &Bound<'_, State>) -> PyResult<Bound<'py, PyBytes>> {
        let state = state.get().of(&self.shared)?;
        let forced = asked(py, || state.grammar().forced(state.state));
        Ok(PyBytes::new(py, &forced))
    }

    /// Returns the fewest tokens that complete the sequence, including its end; `None` if the vocabulary
    /// cannot write what is missing.
    fn min_completion(&self, py: Python<'_>, state: &Bound<'_, State>) -> PyResult<Option<usize>> {
        let state = state.get().of(&self.shared)?;
        asked(py, || state.grammar().try_min_completion(state.state)).map_err(limit_error)
    }

    /// Explains the possible continuations and where in the source they come from: at most `most` of them.
    #[pyo3(signature = (state, most = 16))]
    fn explain(&self, py: Python<'_>, state: &Bound<'_, State>, most: usize) -> PyResult<Explanation> {
        let state = state.get().of(&self.shared)?;
        let explanation = asked(py, || state.grammar().explain(state.state, most));
        Explanation::new(py, explanation)
    }

    /// Reports how each assertion of the schema is enforced, in the order of the schema.
    fn report(&self, py: Python<'_>) -> PyResult<Vec<Assertion>> {
        let Some((text, options)) = &self.about.schema else {
            return Err(PyValueError::new_err("only grammars of schemas have a report"));
        };
        let _inside = fork::enter(py);
        let report = py.detach(|| schema::report(text, options, &self.about.limits));
        let report = report.map_err(|error| compile_error(&error))?;
        Ok(report.assertions.into_iter().map(Assertion::from).collect())
    }

    /// Returns the valid text that is nearest to a given one, without any model. For a schema, the result
    /// holds the JSON values of the text, each whole, even if they are in a fence, with prose around them or
    /// in other quotation marks; `changes` lists what was done. For other grammars, and if no value can be
    /// kept, the result is exactly the text at the lowest cost of edits. An edit inserts, deletes or replaces
    /// one character; `insert`, `delete` and `substitute` are the costs, each from 1 to 1000. The search
    /// visits at most `nodes` pairs of a state and a place in the text, each of which takes a few hundred
    /// bytes, and ends after `deadline` seconds with a `TimeoutError`. A `RepairError` means that the nearest
    /// text was not found within that limit, or that there is none.
    #[pyo3(signature = (text, *, insert = 1, delete = 1, substitute = 1, nodes = REPAIR_NODES, deadline = None))]
    #[expect(clippy::too_many_arguments, reason = "the parameters of a function of Python")]
    fn repair(
        &self,
        py: Python<'_>,
        text: &str,
        insert: u32,
        delete: u32,
        substitute: u32,
        nodes: usize,
        deadline: Option<f64>,
    ) -> PyResult<Repair> {
        let costs = Costs {
            insert,
            delete,
            substitute,
        };
        let generation = self.shared.current();
        let reading = match self.about.schema {
            Some(_) => Reading::Json,
            None => Reading::Characters,
        };
        repair::nearest(
            py,
            (&generation.grammar, reading),
            text,
            &costs,
            (nodes, deadline),
        )
    }

    /// The findings of the compile: keywords that are enforced more narrowly than they say, or that have no
    /// effect, each with its place.
    #[getter]
    fn findings(&self) -> Vec<Problem> {
        self.about
            .diagnostics
            .findings
            .iter()
            .map(Problem::from)
            .collect()
    }

    /// The special tokens and marks that may occur in texts of the language.
    #[getter]
    fn specials(&self) -> Vec<u32> {
        self.shared.current().grammar.specials().to_vec()
    }

    /// The approximate number of bytes of the masks and states found so far.
    #[getter]
    fn memory(&self) -> usize {
        self.shared.bytes()
    }

    /// The vocabulary of the masks.
    #[getter]
    fn vocabulary(&self) -> Vocabulary {
        Vocabulary {
            inner: self.shared.current().grammar.vocabulary().clone(),
        }
    }

    /// The number of 32-bit words of one row of a mask.
    #[getter]
    fn words(&self) -> usize {
        self.shared.current().grammar.vocabulary().len().div_ceil(32)
    }
}

impl Grammar {
    pub(crate) fn new(grammar: lexiform::Grammar, about: About) -> Grammar {
        Grammar {
            shared: Shared::new(grammar),
            about: Arc::new(about),
        }
    }

    /// Returns the state in which every sequence begins.
    pub(crate) fn at_start(&self) -> State {
        let generation = self.shared.current();
        let state = generation.grammar.start();
        State { generation, state }
    }

    /// Returns another handle on the same grammar.
    pub(crate) fn handle(&self) -> Grammar {
        Grammar {
            shared: self.shared.clone(),
            about: self.about.clone(),
        }
    }

    /// Returns the approximate memory of the grammar with its source, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let text = self.about.schema.as_ref().map_or(0, |(text, _)| text.len());
        OVERHEAD + text + self.shared.bytes()
    }
}

/// The default number of pairs of a state and a place that a repair visits: a few hundred megabytes.
const REPAIR_NODES: usize = 1 << 21;

/// The bytes of a compiled grammar that has no masks yet: its rules and the terminals that no other grammar
/// shares.
const OVERHEAD: usize = 16 << 10;
