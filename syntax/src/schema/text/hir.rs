//! Builds regular expressions by hand, with short names, so that the languages of numbers and formats read
//! like formulas.

use regex_syntax::hir::{Class, ClassBytes, ClassBytesRange, Hir, Repetition};

use lexiform_automata::grammar::Expression;

/// Returns exactly this text.
pub(crate) fn text(text: impl AsRef<[u8]>) -> Hir {
    Hir::literal(text.as_ref())
}

/// Parses a constant of this crate in the syntax of Rust's `regex`; `.` is any character.
pub(crate) fn own(expression: &str) -> Hir {
    let mut parser = regex_syntax::ParserBuilder::new()
        .dot_matches_new_line(true)
        .nest_limit(1_000)
        .build();
    parser.parse(expression).expect("a constant that is well formed")
}

/// Parses a constant like [`own`], in the form that grammars contain.
pub(crate) fn own_expression(expression: &str) -> Expression {
    own(expression).into()
}

/// Returns the empty text.
pub(crate) fn nothing() -> Hir {
    Hir::empty()
}

/// Returns the empty language.
pub(crate) fn never() -> Hir {
    Hir::fail()
}

/// Returns one byte out of these ranges.
pub(crate) fn class(ranges: &[(u8, u8)]) -> Hir {
    let ranges = ranges
        .iter()
        .map(|&(first, last)| ClassBytesRange::new(first, last));
    Hir::class(Class::Bytes(ClassBytes::new(ranges)))
}

/// Returns one digit from `first` to `last`, or the empty language if `first` is above `last`.
pub(crate) fn digit(first: u8, last: u8) -> Hir {
    if first > last {
        never()
    } else {
        class(&[(first, last)])
    }
}

/// Returns any one digit.
pub(crate) fn any_digit() -> Hir {
    digit(b'0', b'9')
}

/// Returns all parts, one after the other.
pub(crate) fn concat(parts: impl IntoIterator<Item = Hir>) -> Hir {
    Hir::concat(parts.into_iter().collect())
}

/// Returns a choice between the ways.
pub(crate) fn any(ways: impl IntoIterator<Item = Hir>) -> Hir {
    Hir::alternation(ways.into_iter().collect())
}

/// Returns the body repeated between `min` and `max` times.
pub(crate) fn repeat(body: Hir, min: u32, max: Option<u32>) -> Hir {
    Hir::repetition(Repetition {
        min,
        max,
        greedy: true,
        sub: Box::new(body),
    })
}

/// Returns the body any number of times.
pub(crate) fn star(body: Hir) -> Hir {
    repeat(body, 0, None)
}

/// Returns the body at least once.
pub(crate) fn plus(body: Hir) -> Hir {
    repeat(body, 1, None)
}

/// Returns the body or nothing.
pub(crate) fn optional(body: Hir) -> Hir {
    repeat(body, 0, Some(1))
}

/// Returns exactly `count` digits.
pub(crate) fn digits(count: usize) -> Hir {
    let count = count as u32;
    repeat(any_digit(), count, Some(count))
}
