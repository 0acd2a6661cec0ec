//! What the texts of one sampler, population or chain have in common.

use std::sync::Arc;

use lexiform::{Ends, Mask, MaskRequest};
use lexiform_law::monitor::ProductState;
use lexiform_law::{Contrastive, Distribution, History, Law, LawTag, Walk, Warper};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::monitors::Monitors;
use super::warping;
use crate::error::limit_error;
use crate::grammar::Grammar;
use crate::state::{Shared, State};

/// How the rows of a law are made.
enum Rows {
    /// From the rows of a model.
    OfOne(Warper),
    /// From the rows of a model, the expert, and of another one.
    OfTwo(Contrastive),
}

/// The logits after a text.
#[derive(Clone, Copy)]
pub(super) struct Logits<'a> {
    pub(super) model: &'a [f32],
    /// Those of the amateur, of which contrastive decoding needs a row too.
    pub(super) amateur: Option<&'a [f32]>,
}

/// The grammar, the changes to the model's rows, and the bounds of an answer.
pub(super) struct Setting {
    /// Keeps alive the grammar that replaces an outgrown one.
    _shared: Arc<Shared>,
    start: State,
    rows: Rows,
    ends: Option<Ends>,
    pub(super) max_tokens: Option<u32>,
    prompt: Vec<u32>,
    /// The constraints beside the grammar.
    pub(super) monitors: Option<Monitors>,
}

/// The arguments that `Sampler`, `Particles` and `Chain` have in common.
pub(super) struct Common<'a, 'py> {
    pub(super) grammar: &'a Bound<'py, Grammar>,
    pub(super) prompt: Option<Vec<u32>>,
    pub(super) max_tokens: Option<u32>,
    pub(super) ends: Option<&'a Bound<'py, PyAny>>,
    pub(super) warping: Option<&'a Bound<'py, PyDict>>,
    pub(super) monitors: Option<Vec<Bound<'py, PyAny>>>,
}

impl Setting {
    /// Reads the common arguments, for texts of a law.
    pub(super) fn new(common: Common<'_, '_>, law: Law) -> PyResult<Setting> {
        let grammar = common.grammar.get();
        let start = grammar.at_start();
        let tokens = start.grammar().vocabulary().len();
        let (warping, contrast) = warping::read(common.warping, tokens)?;
        let ends = start.ends(common.ends)?;
        let monitors = Monitors::read(
            common.monitors.as_deref().unwrap_or_default(),
            start.grammar().vocabulary(),
            ends_of(&start, ends.as_ref()),
        )?;
        if monitors.is_some() && warping.mirostat.is_some() {
            let message = "mirostat_mode cannot be combined with monitors";
            return Err(PyValueError::new_err(message));
        }
        let rows = match contrast {
            None => Warper::new(warping, law).map(Rows::OfOne),
            Some(contrast) => Contrastive::new(contrast, warping, law).map(Rows::OfTwo),
        };
        if common.max_tokens == Some(0) {
            return Err(PyValueError::new_err("max_tokens is 0; it must be at least 1"));
        }
        Ok(Setting {
            _shared: grammar.shared.clone(),
            ends,
            start,
            rows: rows.map_err(|error| warping::refused(&error, law))?,
            max_tokens: common.max_tokens,
            prompt: common.prompt.unwrap_or_default(),
            monitors,
        })
    }

    /// Returns the state in which a text begins.
    pub(super) fn start(&self) -> State {
        self.start.at(self.start.state)
    }

    /// Returns the state of the monitors at the beginning of a text, if there are monitors.
    pub(super) fn watch(&self) -> Option<ProductState> {
        self.monitors.as_ref().map(Monitors::begin)
    }

    /// Returns the tokens that end an answer, as they were given.
    pub(super) fn ends(&self) -> Option<&Ends> {
        self.ends.as_ref()
    }

    /// Returns the tokens that end an answer.
    pub(super) fn end_tokens(&self) -> Vec<u32> {
        ends_of(&self.start, self.ends())
    }

    /// Returns the tag of a law about the model, which says whether filters cut the rows before the mask.
    pub(super) fn tag(&self, law: LawTag) -> LawTag {
        match &self.rows {
            Rows::OfOne(warper) if warper.cuts_before_mask() => law.filtered(),
            Rows::OfOne(_) | Rows::OfTwo(_) => law,
        }
    }

    /// Returns the walk of a law about the model, whose tag says whether filters cut the rows before the
    /// mask.
    pub(super) fn tagged(&self, walk: Walk) -> Walk {
        match &self.rows {
            Rows::OfOne(warper) => walk.filtered(warper),
            Rows::OfTwo(_) => walk,
        }
    }

    /// Returns the walk of a text under the local law.
    pub(super) fn local_walk(&self) -> Walk {
        let ends = self.end_tokens();
        match &self.rows {
            Rows::OfOne(warper) => Walk::local(warper, true, &ends),
            Rows::OfTwo(contrastive) => contrastive.walk(true, &ends),
        }
    }

    /// Returns the law of the token after the tokens of an answer, before the mask.
    pub(super) fn row<'a>(&'a self, logits: Logits<'a>, answer: &[u32]) -> PyResult<Distribution<'a>> {
        let tokens = self.start.grammar().vocabulary().len();
        if logits.model.len() != tokens {
            let given = logits.model.len();
            let message = format!("the row has {given} logits; the vocabulary has {tokens} tokens");
            return Err(PyValueError::new_err(message));
        }
        let history = History {
            prompt: &self.prompt,
            answer,
            ..History::default()
        };
        let row = match (&self.rows, logits.amateur) {
            (Rows::OfOne(warper), None) => warper.row(logits.model, history),
            (Rows::OfTwo(contrastive), Some(amateur)) => contrastive.row(logits.model, amateur, history),
            (Rows::OfOne(_), Some(_)) => {
                return Err(PyValueError::new_err(
                    "amateur has no effect without contrast_beta",
                ));
            }
            (Rows::OfTwo(_), None) => {
                return Err(PyValueError::new_err("amateur: contrast_beta needs its row too"));
            }
        };
        row.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Returns how many more tokens an answer may have after these, its end included.
    pub(super) fn budget(&self, answer: &[u32]) -> Option<usize> {
        let most = self.max_tokens? as usize;
        Some(most.saturating_sub(answer.len()))
    }

    /// Returns the tokens that may come next in a state, with so many tokens left.
    pub(super) fn mask(&self, state: &State, budget: Option<usize>) -> PyResult<Arc<Mask>> {
        let request = MaskRequest::from(state.state).within(budget).ending(self.ends());
        state.grammar().try_mask(request).map_err(limit_error)
    }
}

/// Returns the tokens that end an answer.
pub(super) fn ends_of(state: &State, ends: Option<&Ends>) -> Vec<u32> {
    match ends {
        Some(ends) => ends.tokens().to_vec(),
        None => state.grammar().vocabulary().eos().to_vec(),
    }
}

/// Returns the numbers of a row of float32.
pub(super) fn row_of(logits: &Bound<'_, PyAny>) -> PyResult<Vec<f32>> {
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

/// Returns the numbers of `count` rows of float32, one after the other, and the length of a row.
pub(super) fn rows_of(logits: &Bound<'_, PyAny>, count: usize) -> PyResult<(Vec<f32>, usize)> {
    let wrong =
        |_| PyTypeError::new_err("rows of logits are a contiguous array of float32 with two dimensions");
    let buffer = PyBuffer::<f32>::get(logits).map_err(wrong)?;
    let &[rows, width] = buffer.shape() else {
        let dimensions = buffer.dimensions();
        let message = format!("the rows have {dimensions} dimensions; they must have two");
        return Err(PyValueError::new_err(message));
    };
    if rows != count {
        let message =
            format!("there are {rows} rows for {count} active particles; pass one for each of `active`");
        return Err(PyValueError::new_err(message));
    }
    Ok((buffer.to_vec(logits.py())?, width))
}
