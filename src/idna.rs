//! Labels of internationalised host names, in the form in which names are looked up: `xn--` and Punycode.
//!
//! ```text
//!   xn--mnchen-3ya  ─ punycode ─►  münchen  ─ label ─►  every character valid, where it stands too (RFC 5892)
//!       └── body ─┘                                     hyphens, marks, Normalization Form C   (RFC 5891)
//!                                                       its direction                          (RFC 5893)
//! ```
//!
//! Which bodies are valid has no small automaton. But whatever text stands in a body, it can become one: written before
//! the last hyphen it is the plain part of a label, into which the digits behind that hyphen put other characters. Where they
//! put them hangs on the *length* of the plain part alone. So there is one [`ending`] for each length that makes a valid label
//! of every text of that length: three letters `é` in front of it, so that no hyphen stands first, nor two in the third and
//! fourth place, and one behind it, so that none stands last. The [`beginnings`] of bodies are therefore a regular
//! language, although bodies are not: any text of [`FREE`] characters, and what is left then is room for the ending alone.
//! That leaves out valid bodies that are longer and end in another way.

mod label;
mod punycode;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

pub(crate) use label::Directions;

/// Code points whose category would make them letters, marks or digits of labels, but which are unstable under
/// NFKC and case folding, ignorable, old Hangul, or exceptions (RFC 5892, 2.2 to 2.9). Computed from the Unicode Character
/// Database by those rules; ranges run over code points that are out anyway.
pub(crate) const NOT_VALID: &str = r"\u{AA}-\u{BA}\u{133}\u{140}\u{149}\u{17F}\u{1C6}-\u{1CC}\u{1F3}\u{2B0}-\u{2B8}\u{2E0}-\u{2E4}\u{340}-\u{341}\u{343}-\u{345}\u{34F}\u{374}\u{37A}\u{3D0}-\u{3D6}\u{3F0}-\u{3F2}\u{3F5}\u{587}\u{640}\u{660}-\u{669}\u{675}-\u{678}\u{6F0}-\u{6F9}\u{7FA}\u{958}-\u{95F}\u{9DC}-\u{9DF}\u{A33}\u{A36}\u{A59}-\u{A5B}\u{A5E}\u{B5C}-\u{B5D}\u{E33}\u{EB3}\u{EDC}-\u{EDD}\u{F43}\u{F4D}\u{F52}\u{F57}\u{F5C}\u{F69}\u{F73}\u{F75}-\u{F79}\u{F81}\u{F93}\u{F9D}\u{FA2}\u{FA7}\u{FAC}\u{FB9}\u{10FC}\u{1100}-\u{11FF}\u{13F8}-\u{13FD}\u{17B4}-\u{17B5}\u{180B}-\u{180F}\u{1C80}-\u{1C88}\u{1D2C}-\u{1D2E}\u{1D30}-\u{1D3A}\u{1D3C}-\u{1D4D}\u{1D4F}-\u{1D6A}\u{1D78}\u{1D9B}-\u{1DBF}\u{1E9A}-\u{1E9B}\u{1F71}\u{1F73}\u{1F75}\u{1F77}\u{1F79}\u{1F7B}\u{1F7D}-\u{1FA7}\u{1FB2}-\u{1FB4}\u{1FB7}-\u{1FC4}\u{1FC7}\u{1FD3}\u{1FE3}\u{1FF2}-\u{1FF4}\u{1FF7}-\u{2149}\u{2C7C}-\u{2C7D}\u{2D6F}\u{302E}-\u{303B}\u{309F}\u{30FF}\u{3131}-\u{318E}\u{A69C}-\u{A69D}\u{A770}\u{A7F2}-\u{A7F4}\u{A7F8}-\u{A7F9}\u{A960}-\u{A97C}\u{AB5C}-\u{AB5F}\u{AB69}-\u{ABBF}\u{D7B0}-\u{FA0D}\u{FA10}\u{FA12}\u{FA15}-\u{FA1E}\u{FA20}\u{FA22}\u{FA25}-\u{FA26}\u{FA2A}-\u{FB1D}\u{FB1F}-\u{FE0F}\u{FE70}-\u{FE72}\u{FE74}-\u{FFDC}\u{10781}-\u{107BA}\u{1CCF0}-\u{1CCF9}\u{1D165}-\u{1D7FF}\u{1E030}-\u{1E06D}\u{1EE00}-\u{1FBF9}\u{2F800}-\u{2FA1D}\u{E0100}-\u{E01EF}";

/// The most characters that a body may have: a label has 63, and four of them are `xn--`.
const BODY: usize = 59;

/// So many characters of a body are free; behind them stands the [`ending`] of that length.
pub(crate) const FREE: usize = 51;

/// What is free to stand in a body, as a class of a regular expression.
const FREE_CHARACTERS: &str = "[a-z0-9-]";

/// Whether `xn--` with this body is a valid label with such directions.
pub(crate) fn is_label(body: &[u8], directions: Directions) -> bool {
    let Some(label) = decoded(body) else { return false };
    label::is_valid(&label) && label::has_directions(&label, directions)
}

/// Whether a text is a host name of which some label is in Punycode and the others are ASCII.
pub(crate) fn is_name_in_punycode(name: &str) -> bool {
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

/// The characters that a body stands for, where there is one that is not ASCII and they are written in this way only.
fn decoded(body: &[u8]) -> Option<Vec<char>> {
    let is_free = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    if body.len() > BODY || !body.iter().all(is_free) {
        return None;
    }
    let label = punycode::decode(body)?;
    let is_international = label.iter().any(|c| !c.is_ascii());
    (is_international && punycode::encode(&label) == body).then_some(label)
}

/// What makes a valid label, of both [`Directions`], of every text of so many free characters, at most [`FREE`].
pub(crate) fn ending(length: usize) -> &'static [u8] {
    static ENDINGS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    let endings = ENDINGS.get_or_init(|| (0..=FREE).map(find_ending).collect());
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
    let whole = FREE + ending(FREE).len();
    let least = |length: usize| match ending_fits(length) {
        true => ending(length).len(),
        false => whole - length,
    };
    (0..=FREE).map(least).max().unwrap_or(whole)
}

/// Whether the ending of this length may stand where the text has that length.
fn ending_fits(length: usize) -> bool {
    length <= FREE && (length == FREE || length + ending(length).len() <= FREE)
}

/// Completions of a text that begins a body: so many letters `a`, and then these characters.
pub(crate) fn completions(text: &[u8]) -> impl Iterator<Item = (usize, &'static [u8])> {
    let padded = (text.len() <= FREE).then(|| (FREE - text.len(), ending(FREE)));
    // Some of an ending may be written.
    let begun = (0..=text.len().min(FREE))
        .rev()
        .filter(|&length| ending_fits(length));
    let begun = begun.filter_map(|length| Some((0, ending(length).strip_prefix(&text[length..])?)));
    begun.chain(padded)
}

/// An expression of the texts that begin a body, the empty one left aside: each can be completed to a valid label.
pub(crate) fn beginnings() -> String {
    let ending = ending(FREE).iter().rev();
    let ending = ending.fold(String::new(), |behind, &byte| {
        format!("(?:{}{behind})?", char::from(byte))
    });
    format!(
        "{FREE_CHARACTERS}{{1,{}}}|{FREE_CHARACTERS}{{{FREE}}}{ending}",
        FREE - 1
    )
}
