//! The JSON of the API, and nothing else: what requests may contain, and the shapes of answers.
//!
//! Requests are read field by field rather than derived, for three reasons: all problems of a request are
//! reported at once, each with the path of its field; an unknown field that looks like a constraint is
//! refused rather than dropped; and numbers keep their exact text. This is the only module that derives
//! `Serialize`.

pub mod chat;
pub mod completion;
pub mod constraint;
pub mod decisions;
pub mod error;
pub mod fields;
pub mod generation;
pub mod grammars;
pub mod law;
pub mod models;
pub mod otlp;
pub mod response;
pub mod responses;
pub mod tokens;
pub mod tools;

use serde_json::{Map, Value};

use crate::wire::error::ApiError;

/// The maximum number of JSON values in a body. Each takes about a hundred bytes once it is read, and in the
/// text no more than two.
const VALUES: usize = 1 << 19;
/// The maximum number of arrays and objects in a body that are inside each other: `serde_json` reads no more.
const NESTING: usize = 127;

/// Returns an upper bound for the number of JSON values in a text: the number of commas and opening brackets,
/// plus one.
fn values(text: &[u8]) -> usize {
    let (mut count, mut quoted, mut escaped) = (1, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            b',' | b'[' | b'{' if !quoted => count += 1,
            _ => {}
        }
    }
    count
}

/// Parses the object that a request body must be. `serde_json` bounds the depth, so that no body can exhaust
/// the stack.
///
/// # Errors
/// Fails if the body is not UTF-8, not JSON, nested too deeply, or not an object.
pub(crate) fn object(body: &[u8]) -> Result<Map<String, Value>, ApiError> {
    let text = std::str::from_utf8(body).map_err(|error| {
        ApiError::malformed(format!(
            "The body is not valid UTF-8 at byte {}.",
            error.valid_up_to()
        ))
    })?;
    if values(body) > VALUES {
        return Err(ApiError::malformed(format!(
            "The body has too many JSON values; the limit json_values is {VALUES}."
        )));
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(other) => {
            let found = fields::type_name(&other);
            Err(ApiError::malformed(format!(
                "The body must be a JSON object, not {found}."
            )))
        }
        Err(error) if error.to_string().starts_with("recursion limit") => Err(ApiError::malformed(format!(
            "The body nests too deeply at line {} column {}; the limit json_nesting is {NESTING}.",
            error.line(),
            error.column()
        ))),
        Err(error) => Err(ApiError::malformed(format!(
            "The body is not valid JSON: {error}."
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_nests_too_deeply_is_told_the_limit() {
        let nested = |lists: usize| format!("{{\"a\":{}{}}}", "[".repeat(lists), "]".repeat(lists));
        assert!(object(nested(NESTING - 1).as_bytes()).is_ok());
        let refused = object(nested(NESTING).as_bytes()).expect_err("one more");
        assert!(
            refused.to_string().contains("the limit json_nesting is 127"),
            "{refused}"
        );
    }

    #[test]
    fn values_are_counted_before_they_are_read() {
        assert_eq!(values(b""), 1);
        assert_eq!(values(br#"{"a":[1,2],"b":"[[[,,,\"[["}"#), 5);
        let most = format!("{{\"a\":[{}0]}}", "0,".repeat(VALUES - 3));
        assert!(object(most.as_bytes()).is_ok());
        let more = format!("{{\"a\":[{}0]}}", "0,".repeat(VALUES));
        assert!(object(more.as_bytes()).is_err_and(|error| error.to_string().contains("json_values")));
    }
}
