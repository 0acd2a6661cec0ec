//! Stage 0: JSON text to a JSON value, within the limits.
//!
//! The depth is counted before the text is parsed, so that neither the parser nor the destructor of the value can
//! run out of stack.

use serde::Deserialize;
use serde_json::Value;

use crate::error::{Place, Problem, ProblemKind};
use crate::limits::Limits;

/// Reads one JSON text.
pub(crate) fn read(text: &str, limits: &Limits) -> Result<Value, Problem> {
    if text.len() > limits.source_bytes {
        let message = format!(
            "{} bytes of source; the limit source_bytes is {}",
            text.len(),
            limits.source_bytes
        );
        return Err(Problem::new(ProblemKind::Limit, Place::Whole, message));
    }
    check_depth(text, limits.nesting)?;
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
        Problem::new(ProblemKind::Syntax, place, format!("not JSON: {message}"))
    })
}

/// The place of a syntax error. One that a line break caused is said to be at the end of the line that it ends.
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
    // Most schemas have fewer brackets than they may nest, and counting them takes a sixteenth of following them.
    let opening = text.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count();
    if opening <= limit {
        return Ok(());
    }
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for (offset, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > limit {
            let message = format!("the schema nests deeper than {limit} levels, the limit nesting");
            return Err(Problem::new(
                ProblemKind::Limit,
                Place::in_text(text, offset),
                message,
            ));
        }
    }
    Ok(())
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
    fn syntax_errors_have_line_and_column() {
        let problem = read("{\n  \"a\": tru\n}", &Limits::default()).expect_err("not JSON");
        assert_eq!(problem.place, Place::LineColumn { line: 2, column: 11 });
        assert!(problem.message.starts_with("not JSON: "), "{}", problem.message);
    }
}
