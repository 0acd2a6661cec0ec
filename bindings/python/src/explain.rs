//! What may come next and why, and what of a schema is enforced, for people.

use lexiform::Expected;
use lexiform::schema::Enforced;
use lexiform_automata::matcher;
use lexiform_syntax::schema;
use pyo3::prelude::*;

/// What may come next in a state, and why.
#[pyclass(frozen, get_all, module = "lexiform")]
pub(crate) struct Explanation {
    /// Whether the text may end here.
    may_end: bool,
    /// The bytes that every completion goes on with.
    forced: Vec<u8>,
    /// The ways to go on that are shown.
    ways: Vec<Py<Way>>,
    /// How many readings of the text there are.
    readings: usize,
}

/// One way in which the text can go on.
#[pyclass(frozen, get_all, module = "lexiform")]
pub(crate) struct Way {
    /// What is read: "text", "bytes", "word", "key" or "special".
    expected: &'static str,
    /// The fixed text, the shortest completion of the word or key, or the name of the special token.
    text: Option<Vec<u8>>,
    /// Whether some of a word or key is written.
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
    /// The explanation as Python has it.
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
    /// The keyword; empty where the whole schema is `false`.
    keyword: String,
    /// "exact", "spelled" (exact for values, but not in every spelling), "closed" (the only keys that are
    /// written are those that it lists) or "narrower".
    enforced: &'static str,
    /// What is left out, if anything is.
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
