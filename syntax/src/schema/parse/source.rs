//! Stage 0: parses JSON text to a JSON value, within the limits.
//!
//! The depth is counted before the text is parsed, so that neither the parser nor the destructor of the value
//! can overflow the stack.

use serde::Deserialize;
use serde_json::Value;

use lexiform_automata::error::{Place, Problem, ProblemKind};
use lexiform_automata::limits::Limits;

/// The deepest nesting of values, whatever `nesting` allows: the JSON parser recurses, and so do the
/// destructor and the comparison of values.
const MOST_NESTING: usize = 1_000;

/// The approximate number of bytes of an entry of a map, without its key and value.
const ENTRY_BYTES: usize = 96;

/// The length up to which a text is not scanned: its value takes some megabytes at most, and usually
/// `SHORT_BYTES` for each byte.
const SHORT_SOURCE: usize = 64 << 10;
const SHORT_BYTES: usize = 8;

/// Estimates the number of bytes of the value of a JSON text before it is parsed: each comma, bracket and
/// colon adds a value or an entry of a map. Those inside strings are counted, too.
pub(crate) fn bytes_of_value(text: &str) -> usize {
    if text.len() <= SHORT_SOURCE {
        return text.len() * SHORT_BYTES;
    }
    let values = text
        .bytes()
        .filter(|byte| matches!(byte, b',' | b'[' | b'{'))
        .count();
    let entries = text.bytes().filter(|&byte| byte == b':').count();
    text.len() + values * 2 * size_of::<Value>() + entries * ENTRY_BYTES
}

/// Parses one JSON text.
pub(crate) fn read(text: &str, limits: &Limits) -> Result<Value, Problem> {
    if text.len() > limits.source_bytes {
        let message = format!(
            "the source has {} bytes; the limit `source_bytes` is {}",
            text.len(),
            limits.source_bytes
        );
        return Err(Problem::new(ProblemKind::Limit, Place::Whole, message));
    }
    check_depth(text, limits.nesting.min(MOST_NESTING))?;
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let value = Value::deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    value.map_err(|error| {
        let place = place_of(&error, text);
        let text = error.to_string();
        // serde_json ends its message with the position, which the place already says.
        let message = text
            .rsplit_once(" at line ")
            .map_or(text.as_str(), |(message, _)| message);
        // The only abbreviation of serde_json, spelled out.
        let message = match message {
            "EOF while parsing a value" => "the text ends where a value is expected".to_owned(),
            other => other.replace("EOF while parsing", "the text ends inside"),
        };
        Problem::new(ProblemKind::Syntax, place, format!("invalid JSON: {message}"))
    })
}

/// Returns the place of a syntax error. An error at a line break is reported at the end of the line that it
/// terminates.
fn place_of(error: &serde_json::Error, text: &str) -> Place {
    let (line, column) = (error.line().max(1), error.column());
    if column > 0 || line == 1 {
        return Place::LineColumn {
            line,
            column: column.max(1),
        };
    }
    let before = text.lines().nth(line - 2).unwrap_or_default();
    Place::LineColumn {
        line: line - 1,
        column: before.chars().count() + 1,
    }
}

fn check_depth(text: &str, limit: usize) -> Result<(), Problem> {
    // Most schemas have fewer brackets than they may nest, and counting them takes a sixteenth of the time of
    // tracking them.
    let opening = text.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count();
    if opening <= limit {
        return Ok(());
    }
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0usize, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = end_of_string(bytes, at + 1),
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > limit {
            let message = format!("the schema nests too deeply; the limit `nesting` is {limit}");
            return Err(Problem::new(
                ProblemKind::Limit,
                Place::in_text(text, at),
                message,
            ));
        }
        at += 1;
    }
    Ok(())
}

/// Returns the end of a string, or of the text if the string does not end. Most of a large schema is strings,
/// so eight bytes are examined at a time.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    loop {
        while let Some(eight) = bytes[at.min(bytes.len())..].first_chunk() {
            let eight = u64::from_le_bytes(*eight);
            if has(eight, b'"') || has(eight, b'\\') {
                break;
            }
            at += 8;
        }
        match bytes.get(at) {
            None | Some(b'"') => return at,
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
        }
    }
}

/// Checks whether one of eight bytes is this one: a byte that is equal becomes zero, from which one cannot be
/// subtracted without a carry.
fn has(eight: u64, byte: u8) -> bool {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    let differing = eight ^ (ONES * u64::from(byte));
    differing.wrapping_sub(ONES) & !differing & (ONES << 7) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_bounded_before_parsing() {
        let limits = Limits {
            nesting: 500,
            ..Limits::default()
        };
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(read(&nested(500), &limits).is_ok());
        let problem = read(&nested(501), &limits).expect_err("too deep");
        assert_eq!(
            (problem.kind, problem.place),
            (ProblemKind::Limit, Place::LineColumn { line: 1, column: 501 })
        );
        let huge = "[".repeat(1 << 19);
        assert_eq!(
            read(&huge, &Limits::default()).expect_err("too deep").kind,
            ProblemKind::Limit
        );
    }

    #[test]
    fn brackets_in_strings_do_not_nest() {
        let limits = Limits {
            nesting: 1,
            ..Limits::default()
        };
        assert!(read(r#"["[[[ \" [[["]"#, &limits).is_ok());
    }

    #[test]
    fn strings_of_any_length_are_passed_over() {
        let limits = Limits {
            nesting: 2,
            ..Limits::default()
        };
        for length in 0..40 {
            for inside in ["", "[", "\\\"[{", "\\\\", "é]{", "\\u005b"] {
                let string = format!("\"{}{inside}{}\"", "x".repeat(length), "y".repeat(length % 9));
                let fits = format!("[{string}, [{string}], [], {{\"a\": {string}}}]");
                assert!(read(&fits, &limits).is_ok(), "{fits}");
                let deep = format!("[{string}, [{string}, []], {string}]");
                let place = read(&deep, &limits).expect_err("too deep").place;
                let expected = deep.rfind("[]").map(|at| deep[..at].chars().count() + 1);
                let Place::LineColumn {
                    line: 1,
                    column: found,
                } = place
                else {
                    panic!("{place:?}")
                };
                assert_eq!(Some(found), expected, "{deep}");
            }
        }
        assert!(check_depth("[[[\"open [", 3).is_ok() && check_depth("[[[[\"open \\", 3).is_err());
    }

    #[test]
    fn syntax_errors_have_line_and_column() {
        let problem = read("{\n  \"a\": tru\n}", &Limits::default()).expect_err("not JSON");
        assert_eq!(problem.place, Place::LineColumn { line: 2, column: 11 });
        assert!(
            problem.message.starts_with("invalid JSON: "),
            "{}",
            problem.message
        );
    }
}
