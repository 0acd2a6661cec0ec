//! The formats `hostname` and `host-name`: labels of ASCII with points between them, as far as they are a
//! regular set.
//!
//! Which labels in Punycode (`xn--`) are valid is not regular, so that they are left out here and written
//! apart ([`punycode`](super::punycode)).

use lexiform_automata::grammar::{Expression, Part};

use super::hir::own_expression;

/// A label of at most 63 characters.
pub(super) const LABEL: &str = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";

/// The names without labels in Punycode, as languages that intersect.
pub(super) fn parts() -> Vec<Part> {
    vec![
        Part::Match(own_expression(&format!(r"{LABEL}(?:\.{LABEL})*"))),
        Part::Not(reserved()),
        Part::Units {
            unit: own_expression("(?s:.)"),
            min: 0,
            max: Some(253),
        },
    ]
}

/// Words that have the names among them: those whose labels in Punycode may stand for anything.
pub(super) fn wider() -> Vec<Part> {
    vec![Part::Match(own_expression(&format!(r"{LABEL}(?:\.{LABEL})*")))]
}

/// Names with two hyphens in the third and fourth place of a label, which are reserved, `xn--` for Punycode.
pub(super) fn reserved() -> Expression {
    own_expression(r"(?:.*\.)?[^.]{2}--.*")
}
