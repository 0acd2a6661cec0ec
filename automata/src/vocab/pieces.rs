//! Splits a long text into pieces so that the tokens of the pieces are the tokens of the whole text.
//!
//! Tokenizing a text takes more than a hundred times its size in memory, and a reader that knows how many
//! tokens it can use wants to stop early. So a long text is split into pieces. A *seam* is the place between
//! an ASCII letter and a space that is followed by another ASCII letter:
//!
//! ```text
//!   … one word| and another| …      no token spans a seam, no rule looks across one
//! ```
//!
//! Whether a tokenizer respects seams is checked once per tokenizer: none of its tokens writes a letter and
//! then a space; no step of its normalization joins characters or looks at the ends of a text; none of its
//! added tokens could span a seam or absorb its space; and probes of many kinds have the same tokens when
//! split and when whole. If any check fails, texts are not split for this tokenizer.

use serde_json::Value;

use super::{TokenKind, Vocabulary};

/// The length in bytes after which a seam is looked for.
const PIECE: usize = 16 << 10;

/// Probes: texts that end before a seam, and texts that begin after one.
const BEFORE: [&str; 8] = [
    "one",
    "A",
    "x = 12ab",
    "don't",
    "\n\n  if a",
    "é, z",
    "字a",
    "  \t\r\n q",
];
const AFTER: [&str; 8] = [
    " two",
    " B",
    " ab12",
    " s't",
    " a  \n\n b",
    " zé. ",
    " a字。",
    " q\t\r\n  ",
];

/// Normalizers that change characters one by one, each depending only on a few neighbours that no seam
/// separates.
const LOCAL: [&str; 5] = ["NFC", "NFD", "NFKC", "NFKD", "Lowercase"];

/// Returns the pieces of a text. All but the last are at least [`PIECE`] bytes long and end at a seam.
pub(super) fn pieces(text: &str, has_seams: bool) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = has_seams.then(|| seam(rest.as_bytes(), PIECE)).flatten();
        let (piece, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        Some(piece)
    })
}

/// Returns the first seam at or after this offset. It is between two ASCII characters.
fn seam(text: &[u8], from: usize) -> Option<usize> {
    let is_seam =
        |three: &[u8]| three[0].is_ascii_alphabetic() && three[1] == b' ' && three[2].is_ascii_alphabetic();
    let found = text.get(from..)?.windows(3).position(is_seam)?;
    Some(from + found + 1)
}

/// A function that tokenizes text, or returns `None` if it cannot.
pub(super) type Cut<'a> = &'a dyn Fn(&str) -> Option<Vec<u32>>;

/// Returns `true` if texts may be split at seams for a tokenizer with this normalizer, these tokens and these
/// functions.
pub(super) fn has_seams(normalizer: Option<&Value>, tokens: &Vocabulary, cuts: &[Cut<'_>]) -> bool {
    normalizer.is_none_or(is_local) && tokens_stay_within(tokens) && probes_agree(cuts)
}

/// Returns `true` if no token, added tokens included, writes a letter and then a space, or may absorb the
/// space of a seam.
fn tokens_stay_within(tokens: &Vocabulary) -> bool {
    let crosses = |bytes: &[u8]| {
        bytes
            .windows(2)
            .any(|two| two[0].is_ascii_alphabetic() && two[1] == b' ')
    };
    let mut all = (0..tokens.len()).map(|token| token as u32);
    all.all(|token| tokens.kind(token) == TokenKind::Unused || !crosses(tokens.bytes(token)))
}

fn is_local(normalizer: &Value) -> bool {
    match normalizer.get("type").and_then(Value::as_str) {
        Some("Sequence") => {
            let parts = normalizer.get("normalizers").and_then(Value::as_array);
            parts.is_some_and(|parts| parts.iter().all(is_local))
        }
        // The replacement for the space: in the text a seam is before a space, afterwards before the
        // replacement.
        Some("Replace") => normalizer.pointer("/pattern/String").and_then(Value::as_str) == Some(" "),
        Some(name) => LOCAL.contains(&name),
        None => false,
    }
}

/// Returns `true` if the normalizer leaves ASCII unchanged.
pub(super) fn keeps_ascii(normalizer: &Value) -> bool {
    match normalizer.get("type").and_then(Value::as_str) {
        Some("Sequence") => {
            let parts = normalizer.get("normalizers").and_then(Value::as_array);
            parts.is_some_and(|parts| parts.iter().all(keeps_ascii))
        }
        Some(name) => name.starts_with("NF"),
        None => false,
    }
}

/// Returns `true` if the probes have the same tokens when split at a seam and when whole, with every function
/// that tokenizes.
fn probes_agree(cuts: &[Cut<'_>]) -> bool {
    let agree = |before: &str, after: &str| {
        let whole = format!("{before}{after}");
        cuts.iter()
            .all(|cut| match (cut(&whole), cut(before), cut(after)) {
                (Some(whole), Some(before), Some(after)) => whole == [before, after].concat(),
                _ => false,
            })
    };
    BEFORE
        .iter()
        .all(|before| AFTER.iter().all(|after| agree(before, after)))
}

/// Returns a lower bound on the number of tokens in any tokenization of this text, at most `most`. The text
/// is read no further than that requires. `names` are texts beside those of the vocabulary that are a single
/// token.
///
/// One more token extends the covered text at most to the furthest end of any token that begins in it:
///
/// ```text
///   covered by k tokens ├───────────────┤
///   a token begins here          └─ the furthest end of any of them ─┘   covered by k + 1
/// ```
pub(super) fn at_least(text: &[u8], tokens: &Vocabulary, names: &[&str], most: usize) -> usize {
    let (mut count, mut covered, mut next, mut at) = (0, 0, 0, 0);
    while count < most && covered < text.len() {
        while at <= covered && at < text.len() {
            // A byte that no token begins with cannot be written; the encoder reports that.
            let longest = tokens.trie().prefixes(&text[at..]).map(|(len, _)| len).last();
            let name = names
                .iter()
                .filter(|name| text[at..].starts_with(name.as_bytes()));
            let longest = longest
                .unwrap_or(1)
                .max(name.map(|name| name.len()).max().unwrap_or(0));
            next = next.max(at + longest);
            at += 1;
        }
        covered = next.max(covered + 1);
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_written_with_fewer_tokens() {
        let texts = ["<end>", "a", "ab", "bbb"].map(|text| (TokenKind::Text, text));
        let tokens = Vocabulary::new(&texts, &[0]).expect("a vocabulary");
        for (text, least) in [
            ("", 0),
            ("a", 1),
            ("ab", 1),
            ("abbb", 2),
            ("aaaa", 4),
            ("NNab", 2),
        ] {
            let names: &[&str] = if text.starts_with('N') { &["NN"] } else { &[] };
            assert_eq!(at_least(text.as_bytes(), &tokens, names, 10), least, "{text}");
        }
        assert_eq!(at_least(&[b'a'; 100], &tokens, &[], 7), 7);
    }

    #[test]
    fn pieces_end_at_seams_and_make_up_the_text() {
        let text = format!("{}one two{}", "-".repeat(PIECE), "é, two three".repeat(PIECE));
        let all: Vec<&str> = pieces(&text, true).collect();
        assert!(all.len() > 3 && all.concat() == text);
        assert!(all[0].ends_with("one") && all[1].starts_with(" two"));
        assert_eq!(pieces(&text, false).count(), 1);
        let blanks = " ".repeat(3 * PIECE);
        assert_eq!(pieces(&blanks, true).count(), 1);
        assert_eq!(pieces("", true).count(), 0);
    }
}
