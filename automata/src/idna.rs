//! Labels of internationalised host names in the form used for look-ups: `xn--` and Punycode.
//!
//! ```text
//!   xn--mnchen-3ya  ─ punycode ─►  münchen  ─ label ─►  every character valid in its place     (RFC 5892)
//!       └── body ─┘                                     hyphens, marks, Normalization Form C   (RFC 5891)
//!                                                       its direction                          (RFC 5893)
//! ```
//!
//! No small automaton decides which bodies are valid, but every text can be the beginning of a valid body:
//! before the last hyphen, it is the plain part of a label, into which the digits after that hyphen insert
//! other characters. Where the digits insert them depends on the *length* of the plain part alone. So for
//! each length there is one [`ending`] that turns every text of that length into a valid label: it inserts
//! three letters `é` at the front, so that no hyphen comes first or in both the third and fourth place, and
//! one at the back, so that none comes last. The [`beginnings`] of bodies are therefore a regular language,
//! although the bodies are not: any text of [`FREE_BODY`] characters, after which there is room for the
//! ending alone. This leaves out valid bodies that are longer and end in another way.

mod label;
mod punycode;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

pub use label::{Directions, NOT_VALID};

/// The maximum number of characters in a body: a label has at most 63, and four of them are `xn--`.
const BODY: usize = 59;

/// The number of characters of a body that are free; after them comes the [`ending`] for that length.
pub(crate) const FREE_BODY: usize = 51;

/// The characters that a body may contain, as a class of a regular expression.
const FREE_CHARACTERS: &str = "[a-z0-9-]";

/// Returns `true` if `xn--` followed by `body` is a valid label with the given directions.
pub(crate) fn is_label(body: &[u8], directions: Directions) -> bool {
    let Some(label) = decoded(body) else { return false };
    label::is_valid(&label) && label::has_directions(&label, directions)
}

/// Returns `true` if `name` is a host name with at least one label in Punycode and all others in ASCII.
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

/// Returns `true` if `label` is a valid ASCII label. With [`Directions::Ordered`], it has to begin with a
/// letter.
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

/// Decodes a body. Returns `None` unless some character is not ASCII and `body` is the canonical Punycode of
/// the characters.
fn decoded(body: &[u8]) -> Option<Vec<char>> {
    let is_free = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    if body.len() > BODY || !body.iter().all(is_free) {
        return None;
    }
    let label = punycode::decode(body)?;
    let is_international = label.iter().any(|c| !c.is_ascii());
    (is_international && punycode::encode(&label) == body).then_some(label)
}

/// Returns the text that completes every text of `length` free characters (at most [`FREE_BODY`]) to a valid
/// label with both [`Directions`].
pub(crate) fn ending(length: usize) -> &'static [u8] {
    static ENDINGS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    let endings = ENDINGS.get_or_init(|| (0..=FREE_BODY).map(find_ending).collect());
    &endings[length]
}

fn find_ending(length: usize) -> Vec<u8> {
    if length == 0 {
        return punycode::encode(&['é']);
    }
    // Only the length of the text matters.
    let text = vec!['a'; length];
    let label = [&['é'; 3][..], &text, &['é']].concat();
    punycode::encode(&label).split_off(length)
}

/// Returns the greatest length, over all texts that begin a body, of the shortest of their [`completions`].
pub(crate) fn longest_completion() -> usize {
    let whole = FREE_BODY + ending(FREE_BODY).len();
    let least = |length: usize| match ending_fits(length) {
        true => ending(length).len(),
        false => whole - length,
    };
    (0..=FREE_BODY).map(least).max().unwrap_or(whole)
}

/// Returns `true` if the ending for this length may follow a text of that length.
fn ending_fits(length: usize) -> bool {
    length <= FREE_BODY && (length == FREE_BODY || length + ending(length).len() <= FREE_BODY)
}

/// Returns completions of a text that begins a body, each as a number of letters `a` and the text after them.
pub(crate) fn completions(text: &[u8]) -> impl Iterator<Item = (usize, &'static [u8])> {
    let padded = (text.len() <= FREE_BODY).then(|| (FREE_BODY - text.len(), ending(FREE_BODY)));
    // A part of an ending may already be written.
    let begun = (0..=text.len().min(FREE_BODY))
        .rev()
        .filter(|&length| ending_fits(length));
    let begun = begun.filter_map(|length| Some((0, ending(length).strip_prefix(&text[length..])?)));
    begun.chain(padded)
}

/// Returns a regular expression of the non-empty texts that begin a body. Each of them can be completed to a
/// valid label.
pub(crate) fn beginnings() -> String {
    let ending = ending(FREE_BODY).iter().rev();
    let ending = ending.fold(String::new(), |after, &byte| {
        format!("(?:{}{after})?", char::from(byte))
    });
    format!(
        "{FREE_CHARACTERS}{{1,{}}}|{FREE_CHARACTERS}{{{FREE_BODY}}}{ending}",
        FREE_BODY - 1
    )
}
