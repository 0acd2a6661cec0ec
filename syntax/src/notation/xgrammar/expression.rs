//! The expressions of `Regex("…")`.
//!
//! They have the syntax of JavaScript, with a `.` that is any character and an `\\s` that is white space of
//! ASCII. Here they are written so that [`Dialect::Ecma`] means the same:
//!
//! ```text
//!   ^a.\s[\s,]$   ─►   a[^][\t-\r\x20][\t-\r\x20,]
//! ```

use crate::regex::node::Node;
use crate::regex::{self, Dialect, RegexError};
use lexiform_automata::error::ProblemKind;
use lexiform_automata::limits::Limits;

/// White space inside of a class.
const SPACE: &str = r"\t-\r\x20";

/// Reads an expression that a whole text matches.
///
/// # Errors
/// Returns an error if it is not an expression, or is one whose meaning depends on what is around it.
pub(super) fn read(pattern: &str, limits: &Limits) -> Result<Node, RegexError> {
    let pattern = pattern.strip_prefix('^').unwrap_or(pattern);
    let pattern = without_end(pattern);
    let refused = |message: &str| RegexError::at(ProblemKind::Unsupported, 1, message);
    let Some(pattern) = rewritten(pattern) else {
        return Err(refused("`\\S` inside of a class is not supported"));
    };
    let node = regex::parse(&pattern, Dialect::Ecma, limits)?;
    match node.is_plain() {
        true => Ok(node),
        false => Err(refused(
            "anchors and look-around inside of `Regex` are not supported",
        )),
    }
}

/// Returns an expression without the `$` at its end.
fn without_end(pattern: &str) -> &str {
    let Some(before) = pattern.strip_suffix('$') else {
        return pattern;
    };
    let escapes = before.bytes().rev().take_while(|&byte| byte == b'\\').count();
    if escapes % 2 == 0 { before } else { pattern }
}

/// Returns the expression in the dialect of ECMA-262, or `None` if a class has an `\S`.
fn rewritten(pattern: &str) -> Option<String> {
    let mut written = String::with_capacity(pattern.len());
    let mut in_class = false;
    let mut characters = pattern.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => match (characters.next(), in_class) {
                (Some('s'), true) => written.push_str(SPACE),
                (Some('s'), false) => written.extend(["[", SPACE, "]"]),
                (Some('S'), true) => return None,
                (Some('S'), false) => written.extend(["[^", SPACE, "]"]),
                (escaped, _) => written.extend(['\\'].into_iter().chain(escaped)),
            },
            '.' if !in_class => written.push_str("[^]"),
            '[' | ']' => {
                in_class = c == '[';
                written.push(c);
            }
            _ => written.push(c),
        }
    }
    Some(written)
}
