//! The syntax of the Rust `regex` crate (and, near enough, RE2), read by regex-syntax.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind};
use regex_syntax::{ParserBuilder, ast, hir};

use super::error::RegexError;
use super::node::Node;
use lexiform_automata::error::ProblemKind;

/// Parses a pattern; the result may contain anchors and word boundaries.
pub(crate) fn parse(pattern: &str, nesting: usize) -> Result<Node, RegexError> {
    let nesting = u32::try_from(nesting).unwrap_or(u32::MAX);
    let parsed = ParserBuilder::new()
        .nest_limit(nesting)
        .utf8(true)
        .unicode(true)
        .build()
        .parse(pattern);
    let hir = parsed.map_err(|error| typed(pattern, &error))?;
    node(&hir)
}

fn typed(pattern: &str, error: &regex_syntax::Error) -> RegexError {
    let (kind, offset, message) = match error {
        regex_syntax::Error::Parse(error) => {
            let kind = match error.kind() {
                ast::ErrorKind::UnsupportedBackreference | ast::ErrorKind::UnsupportedLookAround => {
                    ProblemKind::Unsupported
                }
                ast::ErrorKind::NestLimitExceeded(_) | ast::ErrorKind::CaptureLimitExceeded => {
                    ProblemKind::Limit
                }
                _ => ProblemKind::Syntax,
            };
            let message = match error.kind() {
                ast::ErrorKind::NestLimitExceeded(limit) => {
                    format!("groups nest too deeply; the limit `nesting` is {limit}")
                }
                ast::ErrorKind::UnsupportedLookAround => {
                    "look-around is not in the dialect `rust`; the dialects `ecma` and `python` have it"
                        .to_owned()
                }
                other => other.to_string(),
            };
            (kind, error.span().start.offset, message)
        }
        regex_syntax::Error::Translate(error) => {
            let kind = match error.kind() {
                hir::ErrorKind::InvalidUtf8 => ProblemKind::Unsupported,
                _ => ProblemKind::Syntax,
            };
            let message = match error.kind() {
                hir::ErrorKind::UnicodePropertyNotFound => "unknown Unicode property".to_owned(),
                other => other.to_string(),
            };
            (kind, error.span().start.offset, message)
        }
        other => (ProblemKind::Syntax, 0, other.to_string()),
    };
    let column = pattern
        .get(..offset)
        .map_or(1, |before| before.chars().count() + 1);
    RegexError::at(kind, column, message)
}

/// Converts an expression of regex-syntax.
///
/// # Errors
/// Returns an error if it matches bytes that are not UTF-8.
pub(crate) fn node(hir: &Hir) -> Result<Node, RegexError> {
    Ok(match hir.kind() {
        HirKind::Empty => Node::Empty,
        HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
            Ok(text) => Node::concat(text.chars().map(Node::char)),
            Err(_) => return Err(not_text()),
        },
        HirKind::Class(Class::Unicode(set)) => Node::Set(set.clone()),
        HirKind::Class(Class::Bytes(set)) => {
            if !set.is_ascii() {
                return Err(not_text());
            }
            let ranges = set.ranges().iter();
            Node::Set(ClassUnicode::new(ranges.map(|range| {
                ClassUnicodeRange::new(char::from(range.start()), char::from(range.end()))
            })))
        }
        HirKind::Look(look) => Node::Look(*look),
        HirKind::Repetition(repetition) => {
            Node::repeat(node(&repetition.sub)?, repetition.min, repetition.max)
        }
        HirKind::Capture(capture) => node(&capture.sub)?,
        HirKind::Concat(parts) => Node::concat(parts.iter().map(node).collect::<Result<Vec<_>, _>>()?),
        HirKind::Alternation(parts) => Node::alt(parts.iter().map(node).collect::<Result<Vec<_>, _>>()?),
    })
}

fn not_text() -> RegexError {
    RegexError {
        kind: ProblemKind::Unsupported,
        column: None,
        message: "the expression matches bytes that are not UTF-8, which is not supported".into(),
    }
}
