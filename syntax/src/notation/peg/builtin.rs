//! The rules that every grammar has without defining them.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::expr::{Expr, Kind};
use crate::regex::node as pattern;
use crate::regex::rust;

/// Names that no rule may have.
const RESERVED: [&str; 9] = [
    "ANY", "DROP", "EOI", "PEEK", "PEEK_ALL", "POP", "POP_ALL", "PUSH", "SOI",
];

/// Names of what is on the stack of the parser.
const STACK: [&str; 5] = ["DROP", "PEEK", "PEEK_ALL", "POP", "POP_ALL"];

/// Rules for characters of ASCII.
const ASCII: [(&str, &[(char, char)]); 10] = [
    ("ASCII_DIGIT", &[('0', '9')]),
    ("ASCII_NONZERO_DIGIT", &[('1', '9')]),
    ("ASCII_BIN_DIGIT", &[('0', '1')]),
    ("ASCII_OCT_DIGIT", &[('0', '7')]),
    ("ASCII_HEX_DIGIT", &[('0', '9'), ('a', 'f'), ('A', 'F')]),
    ("ASCII_ALPHA_LOWER", &[('a', 'z')]),
    ("ASCII_ALPHA_UPPER", &[('A', 'Z')]),
    ("ASCII_ALPHA", &[('a', 'z'), ('A', 'Z')]),
    ("ASCII_ALPHANUMERIC", &[('0', '9'), ('a', 'z'), ('A', 'Z')]),
    ("ASCII", &[('\0', '\x7f')]),
];

/// Returns `true` if no rule may have this name.
pub(super) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// Returns `true` if the name is that of something on the stack of the parser.
pub(super) fn is_of_the_stack(name: &str) -> bool {
    STACK.contains(&name)
}

/// Returns what a built-in rule reads; `None` if there is no rule of this name.
pub(super) fn read(name: &str, at: usize) -> Option<Expr> {
    let text = |text: &str| Expr::leaf(at, Kind::Text(text.to_owned()));
    let kind = match name {
        "ANY" => Kind::Set(pattern::any_set()),
        "SOI" => Kind::Start,
        "EOI" => Kind::End,
        "NEWLINE" => return Some(Expr::choice(at, vec![text("\n"), text("\r\n"), text("\r")])),
        _ => {
            let known = ASCII.iter().find(|(known, _)| *known == name);
            let ascii = known.map(|(_, ranges)| {
                ClassUnicode::new(
                    ranges
                        .iter()
                        .map(|&(start, end)| ClassUnicodeRange::new(start, end)),
                )
            });
            Kind::Set(ascii.or_else(|| property(name))?)
        }
    };
    Some(Expr::leaf(at, kind))
}

/// Returns the characters with a property of Unicode, such as `XID_START` or `UPPERCASE_LETTER`.
fn property(name: &str) -> Option<ClassUnicode> {
    let mut names = pest::unicode::unicode_property_names();
    names.any(|known| known == name).then_some(())?;
    match rust::parse(&format!(r"\p{{{name}}}"), 10) {
        Ok(pattern::Node::Set(set)) => Some(set),
        _ => None,
    }
}
