//! Explanations for people: the possible continuations and their reasons, and how a schema is enforced.

use lexiform::Expected;
use lexiform::schema::Enforced;
use lexiform_automata::matcher;
use lexiform_syntax::schema;
use pyo3::prelude::*;

/// The possible continuations of a state, and the reasons for them.
#[pyclass(frozen, get_all, module = "lexiform")]
pub(crate) struct Explanation {
    /// `True` if the text may end here.
    may_end: bool,
    /// The bytes that every completion continues with.
    forced: Vec<u8>,
    /// The continuations that are shown.
    ways: Vec<Py<Way>>,
    /// The number of readings of the text.
    readings: usize,
}

/// One possible continuation of the text.
#[pyclass(frozen, get_all, module = "lexiform")]
pub(crate) struct Way {
    /// The kind of continuation: "text", "bytes", "word", "key" or "special".
    expected: &'static str,
    /// The fixed text, the shortest completion of the word or key, or the name of the special token.
    text: Option<Vec<u8>>,
    /// `True` if part of a word or key is already written.
    begun: bool,
    /// The bytes that may come first, as ranges with both ends included.
    bytes: Vec<(u8, u8)>,
    /// The rules that are being read, from the inside out: of an EBNF grammar, or JSON pointers into a
    /// schema.
    rules: Vec<String>,
}

#[pymethods]
impl Explanation {
    fn __repr__(&self) -> String {
        format!(
            "<Explanation of {} ways, may_end={}>",
            self.ways.len(),
            self.may_end
        )
    }
}

#[pymethods]
impl Way {
    fn __repr__(&self) -> String {
        let text = self.text.as_deref().map(String::from_utf8_lossy);
        format!("<Way {} {:?}>", self.expected, text.unwrap_or_default())
    }
}

impl Explanation {
    /// Converts an explanation for Python.
    pub(crate) fn new(py: Python<'_>, explanation: matcher::Explanation) -> PyResult<Explanation> {
        let ways = explanation.ways.into_iter();
        Ok(Explanation {
            may_end: explanation.may_end,
            forced: explanation.forced,
            ways: ways
                .map(|way| Py::new(py, Way::from(way)))
                .collect::<PyResult<_>>()?,
            readings: explanation.readings,
        })
    }
}

impl From<lexiform::Way> for Way {
    fn from(way: lexiform::Way) -> Way {
        let (expected, text, begun) = match way.expected {
            Expected::Text(text) => ("text", Some(text), false),
            Expected::Bytes => ("bytes", None, false),
            Expected::Word { shortest, begun } => ("word", Some(shortest), begun),
            Expected::Key { shortest, begun } => ("key", Some(shortest), begun),
            Expected::Special(name) => ("special", Some(name.into_bytes()), false),
        };
        Way {
            expected,
            text,
            begun,
            bytes: way.bytes,
            rules: way.rules,
        }
    }
}

/// One assertion of a schema, and how it is enforced.
#[pyclass(frozen, get_all, module = "lexiform")]
pub(crate) struct Assertion {
    /// The JSON pointer of the keyword.
    pointer: String,
    /// The keyword; empty if the whole schema is `false`.
    keyword: String,
    /// "exact", "spelled" (exact for values, but not in every spelling), "closed" (the only keys that are
    /// written are the listed ones) or "narrower".
    enforced: &'static str,
    /// The part that is left out, if any.
    note: Option<String>,
}

#[pymethods]
impl Assertion {
    fn __repr__(&self) -> String {
        format!("<Assertion #{}: {}>", self.pointer, self.enforced)
    }
}

impl From<schema::Assertion> for Assertion {
    fn from(assertion: schema::Assertion) -> Assertion {
        let (enforced, note) = match assertion.enforced {
            Enforced::Exact => ("exact", None),
            Enforced::Spelled(how) => ("spelled", Some(how.to_owned())),
            Enforced::Closed(how) => ("closed", Some(how)),
            Enforced::Narrower(why) => ("narrower", Some(why)),
        };
        Assertion {
            pointer: assertion.pointer,
            keyword: assertion.keyword,
            enforced,
            note,
        }
    }
}
