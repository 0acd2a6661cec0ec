//! What texts of a law have taught, for those that follow.

use std::sync::{Arc, Mutex, PoisonError};

use lexiform_law as law;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::setting::{Setting, ends_of};
use crate::grammar::Grammar;

/// The number of prefixes and edges that are remembered, where nothing else is said: about 5 MB.
pub(super) const CAPACITY: usize = 1 << 16;

/// The bounds that the texts of a law have left, shared by all objects of one model, prompt, warping, grammar
/// and greatest length.
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
    #[pyo3(signature = (grammar, *, max_tokens, ends = None, capacity = CAPACITY))]
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

/// Returns the trie of the texts of a setting, whose greatest length becomes that of the setting: the given
/// one, or a new one. `because` names the argument that makes a trie necessary.
pub(super) fn trie_of(
    given: Option<&Bound<'_, Trie>>,
    setting: &mut Setting,
    because: &str,
) -> PyResult<Arc<Mutex<law::Trie>>> {
    let ends = setting.end_tokens();
    match (given.map(Bound::get), setting.max_tokens) {
        (Some(trie), most) if trie.ends != ends || most.is_some_and(|most| most != trie.max_tokens) => {
            let message = "trie: it is one for other ends or another greatest length";
            Err(PyValueError::new_err(message))
        }
        (Some(trie), _) => {
            setting.max_tokens = Some(trie.max_tokens);
            Ok(trie.inner.clone())
        }
        (None, Some(most)) => Ok(Arc::new(Mutex::new(law::Trie::new(&ends, most, CAPACITY)))),
        (None, None) => {
            let message = format!("max_tokens: {because} needs the greatest length of an answer, or a trie=");
            Err(PyValueError::new_err(message))
        }
    }
}
