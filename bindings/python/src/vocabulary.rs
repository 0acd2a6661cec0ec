//! Vocabularies, from tokenizers in the forms that Python programs use.

use std::sync::Arc;

use lexiform_automata::vocab;
use lexiform_automata::vocab::{ReadLimits, TokenKind, from_tokenizer_json};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::error::vocabulary_error;
use crate::fork;

/// The tokens of a model as bytes.
#[pyclass(frozen, module = "lexiform")]
pub(crate) struct Vocabulary {
    pub(crate) inner: Arc<vocab::Vocabulary>,
}

#[pymethods]
impl Vocabulary {
    /// Creates the vocabulary of a tokenizer of `transformers` or `tokenizers`. `rows` is the number of rows
    /// of the model's output (`model.config.vocab_size`), and `eos` are the tokens that end a sequence; by
    /// default those that the tokenizer names.
    #[staticmethod]
    #[pyo3(signature = (tokenizer, *, rows = None, eos = None))]
    fn from_tokenizer(
        tokenizer: &Bound<'_, PyAny>,
        rows: Option<usize>,
        eos: Option<Vec<u32>>,
    ) -> PyResult<Vocabulary> {
        let backend = match tokenizer.getattr_opt("backend_tokenizer")? {
            Some(backend) => backend,
            None => tokenizer.clone(),
        };
        if !backend.hasattr("to_str")? {
            let given = tokenizer.get_type().name()?;
            let message = format!(
                "{given} has no fast tokenizer: a tokenizer of `tokenizers`, or one of `transformers` that is made from one, is needed"
            );
            return Err(PyTypeError::new_err(message));
        }
        let text: String = backend.call_method0("to_str")?.extract()?;
        let eos = match eos {
            Some(eos) => eos,
            None => named_eos(tokenizer)?,
        };
        read(tokenizer.py(), &text, &eos, rows)
    }

    /// Creates the vocabulary of the text of a `tokenizer.json`.
    #[staticmethod]
    #[pyo3(signature = (text, *, eos, rows = None))]
    fn from_json(py: Python<'_>, text: &str, eos: Vec<u32>, rows: Option<usize>) -> PyResult<Vocabulary> {
        read(py, text, &eos, rows)
    }

    /// Creates the vocabulary of these tokens by id. `kinds` gives the kind of each: "text", "special",
    /// "mark" or "unused"; all are text by default. The bytes of a special token are its name.
    #[staticmethod]
    #[pyo3(signature = (tokens, *, eos, kinds = None))]
    fn from_tokens(
        tokens: Vec<Bound<'_, PyAny>>,
        eos: Vec<u32>,
        kinds: Option<Vec<String>>,
    ) -> PyResult<Vocabulary> {
        let kinds = match kinds {
            None => vec![TokenKind::Text; tokens.len()],
            Some(kinds) => kinds.iter().map(|kind| kind_of(kind)).collect::<PyResult<_>>()?,
        };
        if kinds.len() != tokens.len() {
            let message = format!("there are {} tokens and {} kinds", tokens.len(), kinds.len());
            return Err(PyValueError::new_err(message));
        }
        let tokens: Vec<Vec<u8>> = tokens.iter().map(bytes_of).collect::<PyResult<_>>()?;
        let tokens: Vec<(TokenKind, Vec<u8>)> = kinds.into_iter().zip(tokens).collect();
        let inner = vocab::Vocabulary::new(&tokens, &eos).map_err(vocabulary_error)?;
        Ok(Vocabulary {
            inner: Arc::new(inner),
        })
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    fn __repr__(&self) -> String {
        format!("<Vocabulary of {} tokens>", self.inner.len())
    }

    /// The number of 32-bit words of one row of a mask.
    #[getter]
    fn words(&self) -> usize {
        self.inner.len().div_ceil(32)
    }

    /// The tokens that end a sequence.
    #[getter]
    fn eos(&self) -> Vec<u32> {
        self.inner.eos().to_vec()
    }

    /// Returns the bytes of a token, or the name of a special one; empty outside the vocabulary.
    fn bytes<'py>(&self, py: Python<'py>, token: u32) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.inner.bytes(token))
    }

    /// Returns the kind of a token: "text", "special", "mark" or "unused".
    fn kind(&self, token: u32) -> &'static str {
        match self.inner.kind(token) {
            TokenKind::Text => "text",
            TokenKind::Special => "special",
            TokenKind::Mark => "mark",
            TokenKind::Unused => "unused",
        }
    }

    /// Returns how many tokens of a prompt are kept, and the bytes of the removed ones. As few tokens as
    /// possible are removed from its end, such that no token could begin in the part that is kept and end
    /// after the prompt. A grammar with these bytes as its `prefix` continues from there.
    fn heal<'py>(&self, py: Python<'py>, prompt: Vec<u32>) -> (usize, Bound<'py, PyBytes>) {
        let healed = self.inner.heal(&prompt);
        (healed.kept, PyBytes::new(py, &healed.removed))
    }

    /// Returns the special token or mark of this name.
    fn special(&self, name: &str) -> Option<u32> {
        self.inner.special(name)
    }
}

fn read(py: Python<'_>, text: &str, eos: &[u32], rows: Option<usize>) -> PyResult<Vocabulary> {
    let limits = ReadLimits::default();
    if let Some(rows) = rows.filter(|&rows| rows > limits.tokens) {
        let message = format!(
            "a model with {rows} rows is not supported; the limit is {}",
            limits.tokens
        );
        return Err(PyValueError::new_err(message));
    }
    let _inside = fork::enter(py);
    let read = py.detach(|| {
        let file = from_tokenizer_json(text, &limits)?;
        let file = match rows {
            Some(rows) => file.fitted_to(rows),
            None => file,
        };
        file.vocabulary(eos)
    });
    Ok(Vocabulary {
        inner: Arc::new(read.map_err(vocabulary_error)?),
    })
}

fn named_eos(tokenizer: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
    let named = tokenizer
        .getattr_opt("eos_token_id")?
        .filter(|named| !named.is_none());
    match named {
        Some(named) => named
            .extract::<u32>()
            .map(|one| vec![one])
            .or_else(|_| named.extract()),
        None => Err(PyValueError::new_err(
            "the tokenizer does not say which token ends a sequence; pass `eos`, such as `eos=[2]`",
        )),
    }
}

fn kind_of(name: &str) -> PyResult<TokenKind> {
    match name {
        "text" => Ok(TokenKind::Text),
        "special" => Ok(TokenKind::Special),
        "mark" => Ok(TokenKind::Mark),
        "unused" => Ok(TokenKind::Unused),
        other => Err(PyValueError::new_err(format!(
            "{other:?} is no kind of token; there are \"text\", \"special\", \"mark\" and \"unused\""
        ))),
    }
}

fn bytes_of(token: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    match token.cast::<PyString>() {
        Ok(text) => Ok(text.to_str()?.as_bytes().to_vec()),
        Err(_) => token.extract(),
    }
}
