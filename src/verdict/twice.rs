//! Finds keys that an object has twice, however they are spelled.
//!
//! Texts of other writers are judged with every spelling of a character, and there the grammar distinguishes
//! keys by their spelling: `{"a": 1, "\u0061": 2}` has two different keys to it. So once a text belongs, its
//! keys are compared by their decoded values.
//!
//! # Why the grammar does not do this
//!
//! Text that Lexiform writes has one spelling for a key that no property names. For other text, a grammar
//! would have to exclude exponentially many spellings of each used key.

use std::borrow::Cow;
use std::collections::HashSet;

/// A key that occurs again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Twice {
    /// The decoded key.
    pub key: String,
    /// The offset of the second occurrence, in bytes.
    pub offset: usize,
}

/// Returns the first key of a JSON text that its object already has. The text must be valid JSON. O(text).
pub fn find_twice(text: &[u8]) -> Option<Twice> {
    // For each open object its keys so far, and `None` for an array.
    let mut open: Vec<Option<HashSet<Cow<'_, str>>>> = Vec::new();
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'{' => open.push(Some(HashSet::new())),
            b'[' => open.push(None),
            b'}' | b']' => drop(open.pop()),
            b'"' => {
                let end = end_of_string(text, at);
                let is_key = text[end..].trim_ascii_start().first() == Some(&b':');
                if let (true, Some(Some(keys))) = (is_key, open.last_mut())
                    && let Some(key) = decoded(&text[at..end])
                    && !keys.insert(key.clone())
                {
                    let key = key.into_owned();
                    return Some(Twice { key, offset: at });
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Returns where the string that begins here ends, with its quotes.
pub fn end_of_string(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

/// Returns the decoded string. A string with half a surrogate pair encodes no text, and is left out.
fn decoded(spelled: &[u8]) -> Option<Cow<'_, str>> {
    let plain = spelled.get(1..spelled.len() - 1)?;
    match plain.contains(&b'\\') {
        false => std::str::from_utf8(plain).ok().map(Cow::Borrowed),
        true => serde_json::from_slice(spelled).ok().map(Cow::Owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_compared_by_what_they_mean() {
        let found = |text: &str| find_twice(text.as_bytes()).map(|twice| (twice.key, twice.offset));
        assert_eq!(found(r#"{"a": 1, "\u0061": 2}"#), Some(("a".to_owned(), 9)));
        assert_eq!(
            found(r#"[{"é": {"\"": 1}, "\u00E9": 2}]"#),
            Some(("é".to_owned(), 19))
        );
        assert_eq!(
            found(r#"{"\ud83d\ude00": 1, "😀" : 2}"#),
            Some(("😀".to_owned(), 20))
        );
    }

    #[test]
    fn the_same_key_of_two_objects_is_no_key_twice() {
        for text in [
            r#"{"a": {"a": {"a": ["a", "a", {"a": 1}, {"a": "\\"}]}}, "b": "a"}"#,
            r#""\": ""#,
            r#"[{"a\\": 1}, {"a\\": 1, "a": "}"}]"#,
            "{}",
        ] {
            assert_eq!(find_twice(text.as_bytes()), None, "{text}");
        }
    }
}
