//! Labels of internationalised host names, in the form in which names are looked up: `xn--` and Punycode.
//!
//! ```text
//!   xn--mnchen-3ya  ─ punycode ─►  münchen  ─ label ─►  every character valid, where it stands too (RFC 5892)
//!       └── body ─┘                                     hyphens, marks, Normalization Form C   (RFC 5891)
//!                                                       its direction                          (RFC 5893)
//! ```
//!
//! Which bodies are valid has no small automaton. But whatever text stands in a body, it can become one:
//! written before the last hyphen it is the plain part of a label, into which the digits behind that hyphen
//! put other characters. Where they put them hangs on the *length* of the plain part alone. So there is one
//! [`ending`] for each length that makes a valid label of every text of that length: three letters `é` in
//! front of it, so that no hyphen stands first, nor two in the third and fourth place, and one behind it, so
//! that none stands last. The [`beginnings`] of bodies are therefore a regular language, although bodies are
//! not: any text of [`FREE_BODY`] characters, and what is left then is room for the ending alone. That
//! leaves out valid bodies that are longer and end in another way.

mod label;
mod punycode;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

pub use label::{Directions, NOT_VALID};

/// The most characters that a body may have: a label has 63, and four of them are `xn--`.
const BODY: usize = 59;

/// So many characters of a body are free; behind them stands the [`ending`] of that length.
pub(crate) const FREE_BODY: usize = 51;

/// What is free to stand in a body, as a class of a regular expression.
const FREE_CHARACTERS: &str = "[a-z0-9-]";

/// Whether `xn--` with this body is a valid label with such directions.
pub(crate) fn is_label(body: &[u8], directions: Directions) -> bool {
    let Some(label) = decoded(body) else { return false };
    label::is_valid(&label) && label::has_directions(&label, directions)
}

/// Whether a text is a host name of which some label is in Punycode and the others are ASCII.
pub fn is_name_in_punycode(name: &str) -> bool {
    let bodies = || name.split('.').map(|label| label.strip_prefix("xn--"));
    let has = |directions| {
        name.split('.').all(|label| match label.strip_prefix("xn--") {
            Some(body) => is_label(body.as_bytes(), directions),
            None => is_plain_label(label, directions),
        })
    };
    name.len() <= 253
        && bodies().any(|body| body.is_some())
        && (has(Directions::LeftToRight) || has(Directions::Ordered))
}

/// Whether a label is ASCII; where an order of directions is asked for it begins with a letter.
fn is_plain_label(label: &str, directions: Directions) -> bool {
    let bytes = label.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
        return false;
    };
    bytes.len() <= 63
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
        && last.is_ascii_alphanumeric()
        && bytes.get(2..4) != Some(b"--")
        && match directions {
            Directions::LeftToRight => first.is_ascii_alphanumeric(),
            Directions::Ordered => first.is_ascii_alphabetic(),
        }
}

/// The characters that a body stands for, where there is one that is not ASCII and they are written in this
/// way only.
fn decoded(body: &[u8]) -> Option<Vec<char>> {
    let is_free = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    if body.len() > BODY || !body.iter().all(is_free) {
        return None;
    }
    let label = punycode::decode(body)?;
    let is_international = label.iter().any(|c| !c.is_ascii());
    (is_international && punycode::encode(&label) == body).then_some(label)
}

/// What makes a valid label, of both [`Directions`], of every text of so many free characters, at most
/// [`FREE_BODY`].
pub(crate) fn ending(length: usize) -> &'static [u8] {
    static ENDINGS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    let endings = ENDINGS.get_or_init(|| (0..=FREE_BODY).map(find_ending).collect());
    &endings[length]
}

fn find_ending(length: usize) -> Vec<u8> {
    if length == 0 {
        return punycode::encode(&['é']);
    }
    // Only its length counts.
    let text = vec!['a'; length];
    let label = [&['é'; 3][..], &text, &['é']].concat();
    punycode::encode(&label).split_off(length)
}

/// The longest that the shortest of all [`completions`] is, whatever begins a body.
pub(crate) fn longest_completion() -> usize {
    let whole = FREE_BODY + ending(FREE_BODY).len();
    let least = |length: usize| match ending_fits(length) {
        true => ending(length).len(),
        false => whole - length,
    };
    (0..=FREE_BODY).map(least).max().unwrap_or(whole)
}

/// Whether the ending of this length may stand where the text has that length.
fn ending_fits(length: usize) -> bool {
    length <= FREE_BODY && (length == FREE_BODY || length + ending(length).len() <= FREE_BODY)
}

/// Completions of a text that begins a body: so many letters `a`, and then these characters.
pub(crate) fn completions(text: &[u8]) -> impl Iterator<Item = (usize, &'static [u8])> {
    let padded = (text.len() <= FREE_BODY).then(|| (FREE_BODY - text.len(), ending(FREE_BODY)));
    // Some of an ending may be written.
    let begun = (0..=text.len().min(FREE_BODY))
        .rev()
        .filter(|&length| ending_fits(length));
    let begun = begun.filter_map(|length| Some((0, ending(length).strip_prefix(&text[length..])?)));
    begun.chain(padded)
}

/// An expression of the texts that begin a body, the empty one left aside: each can be completed to a valid
/// label.
pub(crate) fn beginnings() -> String {
    let ending = ending(FREE_BODY).iter().rev();
    let ending = ending.fold(String::new(), |behind, &byte| {
        format!("(?:{}{behind})?", char::from(byte))
    });
    format!(
        "{FREE_CHARACTERS}{{1,{}}}|{FREE_CHARACTERS}{{{FREE_BODY}}}{ending}",
        FREE_BODY - 1
    )
}
