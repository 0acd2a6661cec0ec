//! Explanations for people: the possible continuations and their reasons, and how a schema is enforced.

use lexiform::Expected;
use lexiform::schema;
use lexiform::schema::Enforced;
use napi::bindgen_prelude::Buffer;
use napi_derive::napi;
use serde_json::{Value, json};

use crate::vocabulary::count;

/// The possible continuations of a state, and the reasons for them.
#[napi(object, object_from_js = false)]
pub struct Explanation {
    /// `true` if the text may end here.
    pub may_end: bool,
    /// The bytes that every completion continues with.
    pub forced: Buffer,
    /// The continuations that are shown.
    pub ways: Vec<Way>,
    /// The number of readings of the text.
    pub readings: u32,
}

/// One possible continuation of the text.
#[napi(object, object_from_js = false)]
pub struct Way {
    /// The kind of continuation: "text", "bytes", "word", "key" or "special".
    pub expected: &'static str,
    /// The fixed text, the shortest completion of the word or key, or the name of the special token.
    pub text: Option<Buffer>,
    /// `true` if part of a word or key is already written.
    pub begun: bool,
    /// The bytes that may come first, as ranges with both ends included.
    pub bytes: Vec<Vec<u32>>,
    /// The rules that are being read, from the inside out: of a grammar, or JSON pointers into a schema.
    pub rules: Vec<String>,
}

impl From<lexiform::Explanation> for Explanation {
    fn from(explanation: lexiform::Explanation) -> Explanation {
        Explanation {
            may_end: explanation.may_end,
            forced: explanation.forced.into(),
            ways: explanation.ways.into_iter().map(Way::from).collect(),
            readings: count(explanation.readings),
        }
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
        let ranges = way.bytes.into_iter();
        Way {
            expected,
            text: text.map(Buffer::from),
            begun,
            bytes: ranges
                .map(|(first, last)| vec![u32::from(first), u32::from(last)])
                .collect(),
            rules: way.rules,
        }
    }
}

/// Returns an assertion of a schema for JavaScript, with how it is enforced.
pub(crate) fn assertion(assertion: schema::Assertion) -> Value {
    let (enforced, note) = match assertion.enforced {
        Enforced::Exact => ("exact", None),
        Enforced::Spelled(how) => ("spelled", Some(how.to_owned())),
        Enforced::Closed(how) => ("closed", Some(how)),
        Enforced::Narrower(why) => ("narrower", Some(why)),
    };
    json!({"pointer": assertion.pointer, "keyword": assertion.keyword, "enforced": enforced, "note": note})
}
