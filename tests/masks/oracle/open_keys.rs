//! Objects with keys of their own choosing, and of no others, each written once: no regular language where
//! they may choose, and judged by reading.

use std::collections::HashSet;

use proptest::prelude::*;

use super::judge::{Judge, Verdict};
use super::vocabulary::NAMED_MARK;

/// Objects in compact spelling whose named keys have the value `[]` or an object of another kind, and all
/// others `""` or, if they nest, such an object again.
#[derive(Clone, Debug)]
pub(crate) struct Objects {
    named: Vec<&'static str>,
    /// Those of the named keys that must be there.
    required: Vec<&'static str>,
    /// Whether there may be other keys.
    open: bool,
    nest: bool,
    least: usize,
    most: Option<usize>,
    /// What the named keys have.
    inner: Option<Box<Objects>>,
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
        let value = match &self.inner {
            None => "{\"const\":[]}".to_owned(),
            Some(inner) => inner.source(),
        };
        let named: Vec<String> = self
            .named
            .iter()
            .map(|key| format!("\"{key}\":{value}"))
            .collect();
        let others = match (self.open, self.nest) {
            (false, _) => "false",
            (true, true) => "{\"anyOf\":[{\"const\":\"\"},{\"$ref\":\"#\"}]}",
            (true, false) => "{\"const\":\"\"}",
        };
        let most = self
            .most
            .map_or(String::new(), |most| format!(",\"maxProperties\":{most}"));
        format!(
            "{{\"type\":\"object\",\"properties\":{{{}}},\"required\":{:?},\"additionalProperties\":{others},\"minProperties\":{}{most}}}",
            named.join(","),
            self.required,
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
            let is_whole = keys.len() >= self.least
                && self
                    .required
                    .iter()
                    .all(|required| keys.contains(required.as_bytes()));
            let closing = left.strip_prefix(b"}").filter(|_| is_whole);
            if let Some(left) = closing {
                return Word(left);
            }
            let unwritten = || self.named.iter().filter(|named| !keys.contains(named.as_bytes()));
            let is_full = !self.open && unwritten().next().is_none();
            if is_full || self.most.is_some_and(|most| keys.len() >= most) {
                return if left.is_empty() { Within } else { Never };
            }
            let opening: &[u8] = if keys.is_empty() { b"\"" } else { b",\"" };
            let key = match after(left, opening) {
                Word(key) => key,
                read => return read,
            };
            let Some(end) = key.iter().position(|&byte| byte == b'"') else {
                let begins_named = || unwritten().any(|named| named.as_bytes().starts_with(key));
                let goes_on = if self.open {
                    begins_text(key)
                } else {
                    begins_named()
                };
                return if goes_on { Within } else { Never };
            };
            if !self.open && !self.named.iter().any(|named| named.as_bytes() == &key[..end]) {
                return Never;
            }
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
            return match &self.inner {
                None => after(text, b"[]"),
                Some(inner) => inner.object(text),
            };
        }
        match after(text, b"\"\"") {
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
    let named = prop::sample::subsequence(vec!["a", "ab", "b", "bab"], 0..=4);
    let most = prop_oneof![2 => Just(None), 1 => (2usize..4).prop_map(Some)];
    let flags = (any::<bool>(), any::<bool>(), any::<[bool; 4]>());
    (named, flags, 0usize..3, most).prop_map(|(named, (open, nest, needed), least, most)| {
        let open = open || named.is_empty();
        let needed = named
            .iter()
            .zip(needed)
            .filter(|(_, needed)| *needed && most.is_none());
        Objects {
            required: needed.map(|(&name, _)| name).collect(),
            open,
            nest,
            least: if open { least } else { least.min(named.len()) },
            most: most.filter(|_| open),
            named,
            inner: None,
        }
    })
}

/// Random kinds of objects of which some are within others, so that what follows one looks like what follows
/// the other.
pub(crate) fn objects_of_objects() -> impl Strategy<Value = Objects> {
    (objects(), objects(), objects()).prop_map(|(outer, middle, inner)| {
        // What nests itself is the whole schema.
        let inner = Objects { nest: false, ..inner };
        let middle = Objects {
            nest: false,
            inner: Some(inner.into()),
            ..middle
        };
        Objects {
            inner: Some(middle.into()),
            ..outer
        }
    })
}

#[test]
fn the_judge_knows_keys_that_were_written() {
    let objects = Objects {
        named: vec!["b"],
        required: Vec::new(),
        open: true,
        nest: true,
        least: 1,
        most: Some(2),
        inner: None,
    };
    let viable = |text: &str| objects.verdict(text.as_bytes()).viable;
    assert!(viable("{\"a\":{\"a\":\"\"},\"a") && !viable("{\"a\":{\"a\":\"\"},\"a\""));
    assert!(
        viable("{\"b\":[]") && !viable("{\"b\":\"\"") && !viable("{}") && !viable("{\"a\":\"\",\"c\":\"\",")
    );
    assert!(objects.verdict(b"{\"b\":[]}").accepted);
    let closed = Objects {
        named: vec!["a", "b"],
        required: vec!["b"],
        open: false,
        nest: false,
        least: 0,
        most: None,
        inner: None,
    };
    let viable = |text: &str| closed.verdict(text.as_bytes()).viable;
    assert!(viable("{\"a\":[],\"b") && !viable("{\"a\":[],\"a") && !viable("{\"a\":[]}"));
    assert!(!viable("{\"a\":[],\"b\":[],") && !viable("{\"c"));
    let within = Objects {
        inner: Some(closed.into()),
        ..objects
    };
    let viable = |text: &str| within.verdict(text.as_bytes()).viable;
    assert!(viable("{\"b\":{\"b\":[]},\"a\":\"\"") && !viable("{\"b\":[") && !viable("{\"b\":{}"));
}
