//! Objects with keys of their own choosing, each written once: no regular language, and judged by reading.

use std::collections::HashSet;

use proptest::prelude::*;

use super::judge::{Judge, Verdict};
use super::vocabulary::NAMED_MARK;

/// Objects in compact spelling whose named keys have the value `true`, and all others `null` or, if they nest, such an
/// object again.
#[derive(Clone, Debug)]
pub(crate) struct Objects {
    named: Vec<&'static str>,
    nest: bool,
    least: usize,
    most: Option<usize>,
}

/// How far a text belongs to a language.
enum Read<'t> {
    /// A word has ended, and this is left.
    Word(&'t [u8]),
    /// The text ends within a word.
    Within,
    Never,
}
use Read::{Never, Within, Word};

impl Objects {
    /// The objects as a JSON Schema.
    pub(crate) fn source(&self) -> String {
        let named: Vec<String> = self
            .named
            .iter()
            .map(|key| format!("\"{key}\":{{\"const\":true}}"))
            .collect();
        let others = match self.nest {
            true => "{\"anyOf\":[{\"const\":null},{\"$ref\":\"#\"}]}",
            false => "{\"const\":null}",
        };
        let most = self
            .most
            .map_or(String::new(), |most| format!(",\"maxProperties\":{most}"));
        format!(
            "{{\"type\":\"object\",\"properties\":{{{}}},\"additionalProperties\":{others},\"minProperties\":{}{most}}}",
            named.join(","),
            self.least,
        )
    }

    fn object<'t>(&self, text: &'t [u8]) -> Read<'t> {
        let mut left = match after(text, b"{") {
            Word(left) => left,
            read => return read,
        };
        let mut keys: HashSet<&[u8]> = HashSet::new();
        loop {
            let closing = left.strip_prefix(b"}").filter(|_| keys.len() >= self.least);
            if let Some(left) = closing {
                return Word(left);
            }
            if self.most.is_some_and(|most| keys.len() >= most) {
                return if left.is_empty() { Within } else { Never };
            }
            let opening: &[u8] = if keys.is_empty() { b"\"" } else { b",\"" };
            let key = match after(left, opening) {
                Word(key) => key,
                read => return read,
            };
            let Some(end) = key.iter().position(|&byte| byte == b'"') else {
                return if begins_text(key) { Within } else { Never };
            };
            if std::str::from_utf8(&key[..end]).is_err() || !keys.insert(&key[..end]) {
                return Never;
            }
            let value = match after(&key[end + 1..], b":") {
                Word(value) => value,
                read => return read,
            };
            left = match self.value(&key[..end], value) {
                Word(left) => left,
                read => return read,
            };
        }
    }

    fn value<'t>(&self, key: &[u8], text: &'t [u8]) -> Read<'t> {
        if self.named.iter().any(|named| named.as_bytes() == key) {
            return after(text, b"true");
        }
        match after(text, b"null") {
            Never if self.nest => self.object(text),
            read => read,
        }
    }
}

fn after<'t>(text: &'t [u8], word: &[u8]) -> Read<'t> {
    match text.strip_prefix(word) {
        Some(left) => Word(left),
        None if word.starts_with(text) => Within,
        None => Never,
    }
}

/// Whether some text begins with these bytes; the last character may be cut.
fn begins_text(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).map_or_else(|error| error.error_len().is_none(), |_| true)
}

impl Judge for Objects {
    fn verdict(&self, text: &[u8]) -> Verdict {
        let is_named = text.iter().any(|byte| NAMED_MARK.as_bytes().contains(byte));
        let read = if is_named { Never } else { self.object(text) };
        let accepted = matches!(read, Word([]));
        Verdict {
            viable: accepted || matches!(read, Within),
            accepted,
        }
    }
}

/// Random kinds of objects.
pub(crate) fn objects() -> impl Strategy<Value = Objects> {
    let named = prop::sample::subsequence(vec!["a", "ab", "b"], 0..=2);
    let most = prop_oneof![2 => Just(None), 1 => (2usize..4).prop_map(Some)];
    (named, any::<bool>(), 0usize..3, most).prop_map(|(named, nest, least, most)| Objects {
        named,
        nest,
        least,
        most,
    })
}

#[test]
fn the_judge_knows_keys_that_were_written() {
    let objects = Objects {
        named: vec!["b"],
        nest: true,
        least: 1,
        most: Some(2),
    };
    let viable = |text: &str| objects.verdict(text.as_bytes()).viable;
    assert!(viable("{\"a\":{\"a\":null},\"a") && !viable("{\"a\":{\"a\":null},\"a\""));
    assert!(viable("{\"b\":t") && !viable("{\"b\":n") && !viable("{}") && !viable("{\"a\":null,\"c\":null,"));
    assert!(objects.verdict(b"{\"b\":true}").accepted);
}
