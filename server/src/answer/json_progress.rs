//! Progress of a JSON text while it is written: the values in it, their places, and when each is complete.
//!
//! ```text
//!   {"name": "Ada", "tags": ["a", "b"]}
//!   │        │              ││    └ Whole /tags/1
//!   │        │              │└───── Whole /tags/0
//!   │        │              └────── Opened /tags
//!   │        └─────────────────────  Whole /name
//!   └────────────────────────────── Opened (the root)
//! ```
//!
//! The reader relies on the grammar for validity and does not check: for text that is not JSON its events are
//! meaningless, but harmless. There is no recursion; values that nest deeper than `PROGRESS_DEPTH` are
//! reported as one value.

use serde_json::{Value, json};

/// The depth down to which values are reported separately.
const PROGRESS_DEPTH: usize = 64;

/// An event of the reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonEvent {
    /// An object or an array has begun, at this pointer; `true` for an object.
    Opened(String, bool),
    /// A value is complete: its pointer and its bytes.
    Whole(String, std::ops::Range<usize>),
}

/// An open object or array.
#[derive(Debug)]
struct OpenLevel {
    object: bool,
    /// `true` if a key comes next.
    wants_key: bool,
    /// The key as it is written in a pointer; empty in an array.
    key: String,
    items: usize,
    /// The length of the pointer of the enclosing value.
    outer: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProgressAt {
    Between,
    Text {
        begin: usize,
        escaped: bool,
    },
    /// A number, `true`, `false` or `null`.
    Word(usize),
    /// A value that is reported as one: where it began, the current depth in it, and the state within a
    /// string.
    Deep {
        begin: usize,
        depth: usize,
        quoted: bool,
        escaped: bool,
    },
}

/// Reads a JSON text piece by piece.
#[derive(Debug)]
pub struct JsonProgress {
    text: String,
    read: usize,
    /// The pointer of the innermost open value.
    path: String,
    levels: Vec<OpenLevel>,
    at: ProgressAt,
}

impl Default for JsonProgress {
    fn default() -> Self {
        Self {
            text: String::new(),
            read: 0,
            path: String::new(),
            levels: Vec::new(),
            at: ProgressAt::Between,
        }
    }
}

impl JsonProgress {
    /// Reads more text and returns its events.
    pub fn push(&mut self, more: &str) -> Vec<JsonEvent> {
        self.text.push_str(more);
        let mut found = Vec::new();
        while let Some(&byte) = self.text.as_bytes().get(self.read) {
            self.byte(byte, &mut found);
            self.read += 1;
        }
        found
    }

    /// Ends the text, and with it a number at the root.
    pub fn finish(&mut self) -> Vec<JsonEvent> {
        let mut found = Vec::new();
        if let ProgressAt::Word(begin) = self.at {
            self.whole(begin, self.text.len(), &mut found);
        }
        found
    }

    /// Returns the text read so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    fn byte(&mut self, byte: u8, found: &mut Vec<JsonEvent>) {
        match self.at {
            ProgressAt::Text {
                begin,
                escaped: false,
            } if byte == b'"' => self.quoted(begin, found),
            ProgressAt::Text { begin, escaped } => {
                let escaped = !escaped && byte == b'\\';
                self.at = ProgressAt::Text { begin, escaped };
            }
            ProgressAt::Word(_) if byte.is_ascii_alphanumeric() || b"+-.".contains(&byte) => {}
            ProgressAt::Word(begin) => {
                self.whole(begin, self.read, found);
                self.between(byte, found);
            }
            ProgressAt::Deep { .. } => self.deep(byte, found),
            ProgressAt::Between => self.between(byte, found),
        }
    }

    fn between(&mut self, byte: u8, found: &mut Vec<JsonEvent>) {
        let begin = self.read;
        match byte {
            b'{' | b'[' if self.levels.len() >= PROGRESS_DEPTH => {
                self.at = ProgressAt::Deep {
                    begin,
                    depth: 1,
                    quoted: false,
                    escaped: false,
                };
            }
            b'{' | b'[' => self.open(byte == b'{', found),
            b'}' | b']' => self.close(),
            b',' => {
                if let Some(level) = self.levels.last_mut() {
                    level.items += 1;
                    level.wants_key = level.object;
                }
            }
            b'"' => {
                self.at = ProgressAt::Text {
                    begin,
                    escaped: false,
                }
            }
            b':' | b' ' | b'\t' | b'\n' | b'\r' => {}
            _ => self.at = ProgressAt::Word(begin),
        }
    }

    fn deep(&mut self, byte: u8, found: &mut Vec<JsonEvent>) {
        let ProgressAt::Deep {
            begin,
            mut depth,
            mut quoted,
            mut escaped,
        } = self.at
        else {
            return;
        };
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => depth += 1,
            b'}' | b']' if !quoted => depth -= 1,
            _ => {}
        }
        self.at = ProgressAt::Deep {
            begin,
            depth,
            quoted,
            escaped,
        };
        if depth == 0 {
            self.whole(begin, self.read + 1, found);
        }
    }

    /// Handles the closing quote of a string: a key or a value.
    fn quoted(&mut self, begin: usize, found: &mut Vec<JsonEvent>) {
        let end = self.read + 1;
        let text = &self.text[begin..end];
        match self.levels.last_mut().filter(|level| level.wants_key) {
            Some(level) => {
                level.wants_key = false;
                let key: String = serde_json::from_str(text).unwrap_or_default();
                level.key = key.replace('~', "~0").replace('/', "~1");
                self.at = ProgressAt::Between;
            }
            None => self.whole(begin, end, found),
        }
    }

    /// Returns the pointer of the value that begins now.
    fn pointer(&self) -> String {
        match self.levels.last() {
            None => String::new(),
            Some(level) if level.object => format!("{}/{}", self.path, level.key),
            Some(level) => format!("{}/{}", self.path, level.items),
        }
    }

    fn whole(&mut self, begin: usize, end: usize, found: &mut Vec<JsonEvent>) {
        found.push(JsonEvent::Whole(self.pointer(), begin..end));
        self.at = ProgressAt::Between;
    }

    fn open(&mut self, object: bool, found: &mut Vec<JsonEvent>) {
        let pointer = self.pointer();
        found.push(JsonEvent::Opened(pointer.clone(), object));
        self.levels.push(OpenLevel {
            object,
            wants_key: object,
            key: String::new(),
            items: 0,
            outer: self.path.len(),
        });
        self.path = pointer;
    }

    fn close(&mut self) {
        if let Some(level) = self.levels.pop() {
            self.path.truncate(level.outer);
        }
    }
}

/// Converts events to operations of JSON Patch (RFC 6902). Applied in order to any document, the operations
/// of a whole text produce its value: the first one replaces the document.
pub fn operations(progress: &JsonProgress, found: Vec<JsonEvent>) -> Vec<Value> {
    let operation = |found| {
        let (path, value) = match found {
            JsonEvent::Opened(path, true) => (path, json!({})),
            JsonEvent::Opened(path, false) => (path, json!([])),
            JsonEvent::Whole(path, bytes) => (path, serde_json::from_str(progress.text.get(bytes)?).ok()?),
        };
        Some(json!({"op": "add", "path": path, "value": value}))
    };
    found.into_iter().filter_map(operation).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies `add` as RFC 6902 specifies, in the slow and obvious way.
    fn apply(document: &mut Value, operation: &Value) {
        let path = operation["path"].as_str().expect("a pointer");
        let Some((holder, last)) = path.rsplit_once('/') else {
            *document = operation["value"].clone();
            return;
        };
        match document.pointer_mut(holder).expect("what holds it is there") {
            Value::Array(items) => items.insert(last.parse().expect("a number"), operation["value"].clone()),
            Value::Object(map) => {
                map.insert(
                    last.replace("~1", "/").replace("~0", "~"),
                    operation["value"].clone(),
                );
            }
            other => panic!("{other} holds nothing"),
        }
    }

    const TEXTS: [&str; 6] = [
        r#"{"name": "A\"d\\a", "tags": ["a", {"b/~": -1.5e3}, []], "": null, "é": {"ok": true}}"#,
        "  [1, 2 , 3]\n",
        "12345678901234567890.5",
        r#""only \u00e9 text""#,
        "{}",
        r#"[[["]"]], {"a": {"a": {"a": "}"}}}]"#,
    ];

    #[test]
    fn the_operations_build_the_value_however_the_text_is_cut() {
        for text in TEXTS {
            let expected: Value = serde_json::from_str(text).expect("JSON");
            for size in 1..=text.len() {
                let (mut progress, mut document) = (JsonProgress::default(), Value::Null);
                let mut pieces: Vec<String> = Vec::new();
                for letter in text.chars() {
                    match pieces.last_mut() {
                        Some(piece) if piece.len() < size => piece.push(letter),
                        _ => pieces.push(letter.into()),
                    }
                }
                for piece in &pieces {
                    let found = progress.push(piece);
                    let told = operations(&progress, found);
                    told.iter().for_each(|operation| apply(&mut document, operation));
                }
                let found = progress.finish();
                let told = operations(&progress, found);
                told.iter().for_each(|operation| apply(&mut document, operation));
                assert_eq!(document, expected, "{text} in pieces of {size}");
            }
        }
    }

    #[test]
    fn what_nests_too_deep_is_told_as_one_value() {
        let text = format!("{}\"[\\\"\"{}", "[".repeat(300), "]".repeat(300));
        let mut progress = JsonProgress::default();
        let found = progress.push(&text);
        assert_eq!(found.len(), PROGRESS_DEPTH + 1);
        let deep = &text[PROGRESS_DEPTH..text.len() - PROGRESS_DEPTH];
        let last = JsonEvent::Whole(
            "/0".repeat(PROGRESS_DEPTH),
            PROGRESS_DEPTH..PROGRESS_DEPTH + deep.len(),
        );
        assert_eq!(found.last(), Some(&last));
    }

    #[test]
    fn what_is_not_json_does_no_harm() {
        for text in ["]}", "{\"a\" 1}}", "\u{0}é,,", "{{{", "\"\\", "[\"a\":,]"] {
            let mut progress = JsonProgress::default();
            let found = progress.push(text);
            let _ = operations(&progress, found);
            let end = progress.finish();
            assert!(operations(&progress, end).len() <= 1, "{text}");
        }
    }
}
