//! The masks of many sequences in one call, on the threads of the package.

use lexiform::BatchRow;
use pyo3::Borrowed;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::buffer::Words;
use crate::fork;
use crate::grammar::Grammar;
use crate::pool::pool;
use crate::session::Session;
use crate::state::State;

/// Writes the masks of many sequences into the rows of one array. Each item of `rows` is `(grammar, state,
/// row)`, optionally with a budget and with the tokens that end the sequence, or `(session, row)`, optionally
/// with a budget. Returns the numbers of the rows whose masks would cost more than the limits of their
/// grammars allow; these rows are cleared.
#[pyfunction]
pub(crate) fn fill_batch(
    py: Python<'_>,
    rows: Vec<Bound<'_, PyTuple>>,
    mask: &Bound<'_, PyAny>,
) -> PyResult<Vec<usize>> {
    let rows: Vec<(usize, BatchRow)> = rows.iter().map(read).collect::<PyResult<_>>()?;
    let Some((_, first)) = rows.first() else {
        return Ok(Vec::new());
    };
    let width = first.grammar.vocabulary().len().div_ceil(32);
    let mut words = Words::of(mask, width)?;
    let mut is_taken = vec![false; words.rows()];
    for (number, row) in &rows {
        let number = words.row(*number)?;
        if row.grammar.vocabulary().len().div_ceil(32) != width {
            let message =
                format!("the vocabulary of row {number} has another size than that of the first row");
            return Err(PyValueError::new_err(message));
        }
        if std::mem::replace(&mut is_taken[number], true) {
            return Err(PyValueError::new_err(format!("row {number} is given twice")));
        }
    }
    let (_inside, pool) = (fork::enter(py), pool());
    let words = words.all();
    let refused = py.detach(|| pool.fill_rows(rows, width, words));
    Ok(refused.into_iter().map(|(number, _)| number).collect())
}

/// Reads one item of the rows.
fn read(item: &Bound<'_, PyTuple>) -> PyResult<(usize, BatchRow)> {
    // Reading an item that is missing would raise an exception, which takes longer than everything else here.
    let optional = |index: usize| -> PyResult<Option<Borrowed<'_, '_, PyAny>>> {
        match item.len() > index {
            true => Ok(Some(item.get_borrowed_item(index)?).filter(|value| !value.is_none())),
            false => Ok(None),
        }
    };
    let budget = |index| optional(index)?.map(|budget| budget.extract()).transpose();
    let first = item.get_borrowed_item(0)?;
    if let Ok(grammar) = first.cast::<Grammar>() {
        let state = item.get_borrowed_item(1)?;
        let state = state.cast::<State>()?.get().of(&grammar.get().shared)?;
        let ends = state.ends(optional(4)?.as_deref())?;
        return Ok((item.get_borrowed_item(2)?.extract()?, state.row(budget(3)?, ends)));
    }
    match first.cast::<Session>() {
        Ok(session) => Ok((
            item.get_borrowed_item(1)?.extract()?,
            session.get().row(budget(2)?),
        )),
        Err(_) => Err(PyTypeError::new_err(
            "a row is (grammar, state, row), perhaps with a budget and ends, or (session, row), perhaps with a budget",
        )),
    }
}
