//! Host names with labels in Punycode (`xn--`), beside labels of ASCII.
//!
//! ```text
//!   www.xn--mnchen-3ya.example      before95  xn--  a label from left to right             after95
//!   xn--4dbrk0ce.xn--4dbbqj9a       before42  xn--  labels in the order of RFC 5893, two   after42
//! ```
//!
//! A validator decides the labels (see `grammar::Validator`), so such names are not a regular language and
//! cannot be intersected with one: they are allowed where the format is the only constraint on a string. A
//! name has at most 253 characters. Nothing counts the characters of the labels that the validator reads, so
//! these labels count with their greatest length, and the parts around them share the rest: 253 is 95 + 63 +
//! 95, and 42 + 63 + 1 + 42 + 63 + 42.

use std::sync::OnceLock;

use lexiform_automata::grammar::{CfgBuilder, ExprId, Part, Regular, Validator};

use super::hir::own_expression;
use super::hostname::{LABEL, reserved};

/// The most characters before and after the only such label of a name, and around the labels of a name that
/// may have two.
const BESIDE_ONE: u64 = 95;
const BESIDE_TWO: u64 = 42;

/// The languages around the labels in Punycode.
struct Beside {
    before: Regular,
    after: Regular,
}

impl Beside {
    fn new(label: &str, most: u64) -> Beside {
        let of = |labels: String| {
            Regular::of(vec![
                Part::Match(own_expression(&labels)),
                Part::Not(reserved()),
                Part::Units {
                    unit: own_expression("(?s:.)"),
                    min: 0,
                    max: Some(most),
                },
            ])
        };
        Beside {
            before: of(format!(r"(?:{label}\.)*")),
            after: of(format!(r"(?:\.{label})*")),
        }
    }

    fn write(&self, builder: &mut CfgBuilder) -> (ExprId, ExprId) {
        let mut add = |regular: &Regular| {
            let regular = builder.add_regular(regular.clone());
            builder.regular(regular)
        };
        (add(&self.before), add(&self.after))
    }
}

/// Returns the names in which some label is in Punycode, without quotes.
pub(crate) fn names(builder: &mut CfgBuilder) -> ExprId {
    static BESIDE: OnceLock<[Beside; 2]> = OnceLock::new();
    let [one, two] = BESIDE.get_or_init(|| {
        // In a name with characters from right to left, no label begins with a digit.
        let ordered = "[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?";
        [Beside::new(LABEL, BESIDE_ONE), Beside::new(ordered, BESIDE_TWO)]
    });
    let sign = builder.bytes("xn--");
    let label = builder.validated(Validator::LabelFromLeft);
    let (before, after) = one.write(builder);
    let from_left = builder.seq([before, sign, label, after]);
    let label = builder.validated(Validator::OrderedLabel);
    let (before, after) = two.write(builder);
    let dot = builder.bytes(".");
    let second = builder.seq([dot, before, sign, label]);
    let second = builder.optional(second);
    let ordered = builder.seq([before, sign, label, second, after]);
    builder.choice([from_left, ordered])
}
