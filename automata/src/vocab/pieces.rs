//! Where a long text may be cut so that the tokens of its parts are the tokens of the whole.
//!
//! Cutting text into tokens takes memory of more than a hundred times the text, and a reader that knows how
//! many tokens it can use wants to stop early. So a long text is cut in pieces. A *seam* is a place between a
//! letter of ASCII and a space that another such letter follows:
//!
//! ```text
//!   … one word| and another| …      no token spans a seam, no rule looks across one
//! ```
//!
//! That it is a seam depends on the tokenizer, which is asked once: none of its tokens writes a letter and
//! then a space; nothing of its normalization joins characters or looks at the ends of a text; none of its
//! added tokens could stand across a seam or take the space of one; and probes of many kinds have the same
//! tokens cut and whole. Of a tokenizer that fails any of these, no text has seams.

use serde_json::Value;

use super::{TokenKind, Vocabulary};

/// How long a piece is before a seam is looked for, in bytes.
const PIECE: usize = 16 << 10;

/// Texts that end before a seam, and texts that begin behind one.
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
const BEHIND: [&str; 8] = [
    " two",
    " B",
    " ab12",
    " s't",
    " a  \n\n b",
    " zé. ",
    " a字。",
    " q\t\r\n  ",
];

/// Parts of normalization that change characters by themselves, each within a few neighbours that no seam
/// separates.
const LOCAL: [&str; 5] = ["NFC", "NFD", "NFKC", "NFKD", "Lowercase"];

/// The pieces of a text: all but the last are at least some kilobytes long and end at a seam.
pub(super) fn pieces(text: &str, has_seams: bool) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = has_seams.then(|| seam(rest.as_bytes(), PIECE)).flatten();
        let (piece, behind) = rest.split_at(end.unwrap_or(rest.len()));
        rest = behind;
        Some(piece)
    })
}

/// The first seam from this offset on. It lies between two characters of ASCII.
fn seam(text: &[u8], from: usize) -> Option<usize> {
    let is_seam =
        |three: &[u8]| three[0].is_ascii_alphabetic() && three[1] == b' ' && three[2].is_ascii_alphabetic();
    let found = text.get(from..)?.windows(3).position(is_seam)?;
    Some(from + found + 1)
}

/// A way in which a tokenizer cuts text into tokens; `None` where it cannot.
pub(super) type Cut<'a> = &'a dyn Fn(&str) -> Option<Vec<u32>>;

/// Whether texts have seams for a tokenizer with this normalization, these tokens and these ways to cut text.
pub(super) fn has_seams(normalizer: Option<&Value>, tokens: &Vocabulary, cuts: &[Cut<'_>]) -> bool {
    normalizer.is_none_or(is_local) && tokens_stay_within(tokens) && probes_agree(cuts)
}

/// Whether no token, added ones included, writes a letter and then a space, or may take the space of a seam.
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
        // The stand-in for the space: a seam lies before one in the text, and before its stand-in behind.
        Some("Replace") => normalizer.pointer("/pattern/String").and_then(Value::as_str) == Some(" "),
        Some(name) => LOCAL.contains(&name),
        None => false,
    }
}

/// Whether normalization leaves ASCII as it is.
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

/// Whether texts that are cut at a seam have the tokens of the whole, in all ways in which text is cut into
/// tokens.
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
        .all(|before| BEHIND.iter().all(|behind| agree(before, behind)))
}

/// A number of tokens that no way of writing this text falls short of, up to `most`; the text is read no
/// further than that needs. `names` are texts beside those of the vocabulary that are a single token.
///
/// With one token more, at most the longest token is covered that begins anywhere in what is covered by then:
///
/// ```text
///   covered by k tokens ├───────────────┤
///   a token begins here          └─ the furthest end of any of them ─┘   covered by k + 1
/// ```
pub(super) fn at_least(text: &[u8], tokens: &Vocabulary, names: &[&str], most: usize) -> usize {
    let (mut count, mut covered, mut next, mut at) = (0, 0, 0, 0);
    while count < most && covered < text.len() {
        while at <= covered && at < text.len() {
            // A byte that no token begins with cannot be written, which is for the encoding to say.
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
