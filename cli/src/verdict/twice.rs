//! Keys that an object writes twice, whichever way they are spelled.
//!
//! Texts that others wrote are judged with every spelling of a character, and there the grammar tells keys
//! apart as they are written: `{"a": 1, "\u0061": 2}` is two keys to it. So once a text belongs, its keys are
//! compared by what they mean.
//!
//! # Why the grammar does not do this
//!
//! Text that Lexiform writes has one spelling for a key that no property names. For the text of others, a
//! grammar would have to exclude exponentially many spellings of each used key.

use std::borrow::Cow;
use std::collections::HashSet;

/// A key that comes again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Twice {
    /// What it means.
    pub key: String,
    /// Where it comes again, in bytes.
    pub offset: usize,
}

/// The first key of a JSON text that its object has written before. The text must be valid JSON. O(text).
pub fn find(text: &[u8]) -> Option<Twice> {
    // For each object that is open the keys so far, and nothing for an array.
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

/// Where the string that begins here ends, with its quotes.
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

/// What a string means. A string with half a surrogate pair means no text, and is left out.
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
        let found = |text: &str| find(text.as_bytes()).map(|twice| (twice.key, twice.offset));
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
            assert_eq!(find(text.as_bytes()), None, "{text}");
        }
    }
}
