//! Finds the values that JSON pointers name in a JSON text. The library reports pointers, and people need
//! lines.
//!
//! One walk through the text finds all pointers. It keeps an explicit stack, so texts may nest to any depth.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// The place of a value, and of its key in its object. Both are ranges of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The key with its quotes.
    pub key: Option<Range<usize>>,
    /// The whole value, or for an object or a list its opening bracket.
    pub value: Range<usize>,
}

/// Returns the spots of these pointers; a pointer without a value gets the spot of the nearest value around
/// it. The text must be JSON; if a key occurs twice the last one counts, as it does for the reader of
/// schemas. O(text · depth).
pub fn spots<'p>(text: &str, pointers: impl IntoIterator<Item = &'p str>) -> HashMap<&'p str, Spot> {
    let pointers: HashSet<&str> = pointers.into_iter().collect();
    let wanted: HashSet<&str> = pointers.iter().flat_map(|pointer| around(pointer)).collect();
    let mut walk = PointerWalk {
        text,
        at: 0,
        pointer: String::new(),
        open: Vec::new(),
        key: None,
        longest: wanted.iter().map(|pointer| pointer.len()).max().unwrap_or(0),
        wanted: &wanted,
        found: HashMap::new(),
    };
    walk.run();
    let found = walk.found;
    let nearest = |pointer: &'p str| Some((pointer, around(pointer).find_map(|it| found.get(it))?.clone()));
    pointers.into_iter().filter_map(nearest).collect()
}

/// Returns a pointer, and the pointers of the values around it, from the inside.
fn around(pointer: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(pointer), move |it| it.rfind('/').map(|end| &pointer[..end]))
}

/// An object or a list that is open.
struct OpenValue {
    /// The length of its own pointer.
    length: usize,
    /// The index of the next value of a list.
    index: Option<usize>,
}

struct PointerWalk<'t> {
    text: &'t str,
    at: usize,
    pointer: String,
    open: Vec<OpenValue>,
    key: Option<Range<usize>>,
    wanted: &'t HashSet<&'t str>,
    /// The length of the longest of them: longer pointers are not looked up, however deep the text.
    longest: usize,
    found: HashMap<String, Spot>,
}

impl PointerWalk<'_> {
    fn run(&mut self) {
        while let Some(&byte) = self.text.as_bytes().get(self.at) {
            match byte {
                b'{' | b'[' => {
                    self.value(self.at + 1);
                    let index = (byte == b'[').then_some(0);
                    let length = self.pointer.len();
                    self.open.push(OpenValue { length, index });
                }
                b'}' | b']' => {
                    self.at += 1;
                    self.open.pop();
                }
                b'"' => self.string(),
                b',' | b':' => self.at += 1,
                byte if byte.is_ascii_whitespace() => self.at += 1,
                _ => {
                    let rest = &self.text[self.at..];
                    let ends = |c: char| ",]}".contains(c) || c.is_whitespace();
                    let length = rest.find(ends).unwrap_or(rest.len());
                    let first = rest.chars().next().map_or(1, char::len_utf8);
                    self.value(self.at + length.max(first));
                }
            }
        }
    }

    /// Reads a string: the key of an object, or a value.
    fn string(&mut self) {
        let bytes = self.text.as_bytes();
        let mut end = self.at + 1;
        while bytes.get(end).is_some_and(|&byte| byte != b'"') {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        let end = (end + 1).min(bytes.len());
        let in_object = self.open.last().is_some_and(|open| open.index.is_none());
        if !in_object || self.key.is_some() {
            return self.value(end);
        }
        self.key = Some(self.at..end);
        self.at = end;
    }

    /// Records the value that begins here and whose first token ends at `end`.
    fn value(&mut self, end: usize) {
        let key = self.key.take();
        if let Some(open) = self.open.last_mut() {
            self.pointer.truncate(open.length);
            self.pointer.push('/');
            match (&mut open.index, &key) {
                (Some(index), _) => {
                    self.pointer.push_str(&index.to_string());
                    *index += 1;
                }
                (None, Some(key)) => push_segment(&mut self.pointer, &self.text[key.clone()]),
                (None, None) => {}
            }
        }
        if self.pointer.len() <= self.longest && self.wanted.contains(self.pointer.as_str()) {
            let value = self.at..end;
            self.found.insert(self.pointer.clone(), Spot { key, value });
        }
        self.at = end;
    }
}

/// Adds a key, spelled as a JSON string, as a segment of a pointer.
fn push_segment(pointer: &mut String, spelled: &str) {
    let key: String = serde_json::from_str(spelled).unwrap_or_default();
    pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, pointer: &str) -> (String, String) {
        let spot = spots(text, [pointer])[pointer].clone();
        (
            spot.key.map_or_else(String::new, |key| text[key].to_owned()),
            text[spot.value].to_owned(),
        )
    }

    #[test]
    fn pointers_lead_to_keys_and_values() {
        let text = r#" {"a": [1, {"b/c": "x]"}, [[]]], "é\"": {"~": tru}, "d": -1.5e3 }"#;
        let expect = |pointer: &str, key: &str, value: &str| {
            assert_eq!(
                shown(text, pointer),
                (key.to_owned(), value.to_owned()),
                "{pointer}"
            );
        };
        expect("", "", "{");
        expect("/a", "\"a\"", "[");
        expect("/a/0", "", "1");
        expect("/a/1/b~1c", "\"b/c\"", "\"x]\"");
        expect("/a/2/0", "", "[");
        expect("/é\"/~0", "\"~\"", "tru");
        expect("/d", "\"d\"", "-1.5e3");
    }

    #[test]
    fn what_is_not_there_is_found_around_it() {
        assert_eq!(
            shown(r#"{"a": {"b": 1}}"#, "/a/c/d"),
            ("\"a\"".to_owned(), "{".to_owned())
        );
    }

    #[test]
    fn the_last_of_equal_keys_counts() {
        let text = r#"{"a": 1, "\u0061": 2}"#;
        assert_eq!(shown(text, "/a").1, "2");
    }

    #[test]
    fn depth_and_broken_texts_are_no_danger() {
        let deep = "[".repeat(200_000);
        assert!(spots(&deep, ["/0/0"]).contains_key("/0/0"));
        for text in ["\"", "{\"a\\", "{\"a\":", "}]", "\\", "{,:", "[\u{a0}é]", "\"\\é"] {
            spots(text, ["/a"]);
        }
    }
}
