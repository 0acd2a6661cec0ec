//! The one supported kind of grammar in llguidance's variant of Lark: a start rule that is a JSON Schema.
//!
//! ```text
//!   %llguidance {}
//!   start: %json {"type": "object", …}
//! ```
//!
//! This is what llama.cpp generates for a schema. All other Lark is refused by name.

use lexiform_automata::error::{CompileError, Place, Problem, ProblemKind};

/// Returns the schema that is the whole grammar.
///
/// ```
/// use lexiform_syntax::notation::lark;
/// assert_eq!(lark::schema("%llguidance {}\nstart: %json {\"type\": \"null\"}\n")?, "{\"type\": \"null\"}");
/// assert!(lark::schema("start: /[a-z]+/").is_err());
/// # Ok::<(), lexiform::error::CompileError>(())
/// ```
///
/// # Errors
/// Returns an error if the grammar is anything else.
pub fn schema(text: &str) -> Result<&str, CompileError> {
    let rest = text.trim();
    let rest = match rest.strip_prefix("%llguidance") {
        // The options of that engine end at the end of their line.
        Some(options) => options.split_once('\n').map_or("", |(_, rest)| rest).trim_start(),
        None => rest,
    };
    let schema = rest
        .strip_prefix("start:")
        .and_then(|rest| rest.trim_start().strip_prefix("%json"))
        .map(str::trim);
    schema.filter(|schema| !schema.is_empty()).ok_or_else(|| {
        let message = "of Lark, only `start: %json SCHEMA` is supported";
        Problem::new(ProblemKind::Unsupported, Place::Whole, message).into()
    })
}
