//! The formats `hostname` and `host-name`: ASCII labels with points between them, as far as they are a
//! regular set.
//!
//! The set of valid labels in Punycode (`xn--`) is not regular, so they are left out here and handled
//! separately ([`punycode`](super::punycode)).

use lexiform_automata::grammar::{Expression, Part};

use super::hir::own_expression;

/// A label of at most 63 characters.
pub(super) const LABEL: &str = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";

/// Returns the names without labels in Punycode, as an intersection of languages.
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

/// Returns a superset of the names, in which the labels in Punycode may be anything.
pub(super) fn wider() -> Vec<Part> {
    vec![Part::Match(own_expression(&format!(r"{LABEL}(?:\.{LABEL})*")))]
}

/// Returns the names with two hyphens in the third and fourth place of a label, which are reserved, `xn--`
/// for Punycode.
pub(super) fn reserved() -> Expression {
    own_expression(r"(?:.*\.)?[^.]{2}--.*")
}
