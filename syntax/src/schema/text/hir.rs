//! Regular expressions built by hand: short names, so that the languages of numbers and formats read like
//! formulas.

use regex_syntax::hir::{Class, ClassBytes, ClassBytesRange, Hir, Repetition};

use lexiform_automata::grammar::Expression;

/// Exactly this text.
pub(crate) fn text(text: impl AsRef<[u8]>) -> Hir {
    Hir::literal(text.as_ref())
}

/// An expression of this program's own, in the syntax of Rust's `regex`; `.` is any character.
pub(crate) fn own(expression: &str) -> Hir {
    let mut parser = regex_syntax::ParserBuilder::new()
        .dot_matches_new_line(true)
        .nest_limit(1_000)
        .build();
    parser.parse(expression).expect("a constant that is well formed")
}

/// The same, in the form that grammars hold.
pub(crate) fn own_expression(expression: &str) -> Expression {
    own(expression).into()
}

/// The empty text.
pub(crate) fn nothing() -> Hir {
    Hir::empty()
}

/// No text at all.
pub(crate) fn never() -> Hir {
    Hir::fail()
}

/// One byte out of these ranges.
pub(crate) fn class(ranges: &[(u8, u8)]) -> Hir {
    let ranges = ranges
        .iter()
        .map(|&(first, last)| ClassBytesRange::new(first, last));
    Hir::class(Class::Bytes(ClassBytes::new(ranges)))
}

/// One digit from `first` to `last`; none at all where `first` is above `last`.
pub(crate) fn digit(first: u8, last: u8) -> Hir {
    if first > last {
        never()
    } else {
        class(&[(first, last)])
    }
}

/// One digit, whichever.
pub(crate) fn any_digit() -> Hir {
    digit(b'0', b'9')
}

/// All parts, one after the other.
pub(crate) fn concat(parts: impl IntoIterator<Item = Hir>) -> Hir {
    Hir::concat(parts.into_iter().collect())
}

/// Any one of the ways.
pub(crate) fn any(ways: impl IntoIterator<Item = Hir>) -> Hir {
    Hir::alternation(ways.into_iter().collect())
}

/// The body between `min` and `max` times.
pub(crate) fn repeat(body: Hir, min: u32, max: Option<u32>) -> Hir {
    Hir::repetition(Repetition {
        min,
        max,
        greedy: true,
        sub: Box::new(body),
    })
}

/// The body any number of times.
pub(crate) fn star(body: Hir) -> Hir {
    repeat(body, 0, None)
}

/// The body at least once.
pub(crate) fn plus(body: Hir) -> Hir {
    repeat(body, 1, None)
}

/// The body or nothing.
pub(crate) fn optional(body: Hir) -> Hir {
    repeat(body, 0, Some(1))
}

/// Exactly `count` digits.
pub(crate) fn digits(count: usize) -> Hir {
    let count = count as u32;
    repeat(any_digit(), count, Some(count))
}
