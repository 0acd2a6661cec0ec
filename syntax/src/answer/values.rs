//! The values of a JSON text while it is written: their places, and when each is complete.
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
//! Validity is not checked, as [`JsonScanner`] says. There is no recursion; values that nest deeper than
//! `PROGRESS_DEPTH` are reported as one value.

use std::ops::Range;

use super::scanner::{JsonScanner, JsonStep};

/// The depth down to which values are reported separately.
const PROGRESS_DEPTH: usize = 64;

/// An event of the reader. Ranges are bytes of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonEvent {
    /// An object or an array has begun, at this pointer; `true` for an object. The last is the offset of its
    /// bracket.
    Opened(String, bool, usize),
    /// A key is complete: the pointer of its value, and its bytes with the quotes.
    Key(String, Range<usize>),
    /// A value is complete: its pointer and its bytes. Objects and arrays are reported by
    /// [`Opened`](Self::Opened) and their members.
    Whole(String, Range<usize>),
}

/// An open object or array.
#[derive(Clone, Debug)]
struct OpenLevel {
    object: bool,
    /// The key as it is written in a pointer; empty in an array.
    key: String,
    items: usize,
    /// The length of the pointer of the enclosing value.
    outer: usize,
}

/// Reads a JSON text piece by piece.
#[derive(Clone, Debug, Default)]
pub struct JsonValues {
    scanner: JsonScanner,
    text: String,
    read: usize,
    /// The beginning of the token or of the deep value that is being read.
    begin: usize,
    /// The pointer of the innermost open value.
    path: String,
    levels: Vec<OpenLevel>,
}

impl JsonValues {
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
        if self.scanner.is_in_word() && !self.is_deep() {
            self.whole(self.read, &mut found);
        }
        found
    }

    /// Returns the text read so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns `true` inside a value that is reported as one.
    fn is_deep(&self) -> bool {
        self.scanner.depth() > self.levels.len()
    }

    fn byte(&mut self, byte: u8, found: &mut Vec<JsonEvent>) {
        let was_deep = self.is_deep();
        let (step, word_ended) = self.scanner.step(byte);
        if was_deep {
            if !self.is_deep() {
                self.whole(self.read + 1, found);
            }
            return;
        }
        if word_ended {
            self.whole(self.read, found);
        }
        match step {
            JsonStep::Opens(_) if self.levels.len() >= PROGRESS_DEPTH => self.begin = self.read,
            JsonStep::Opens(object) => self.open(object, found),
            JsonStep::Closes => self.close(),
            JsonStep::Separates => {
                if let Some(level) = self.levels.last_mut() {
                    level.items += 1;
                }
            }
            JsonStep::BeginsString(_) | JsonStep::BeginsWord => self.begin = self.read,
            JsonStep::EndsString(true) => self.key(found),
            JsonStep::EndsString(false) => self.whole(self.read + 1, found),
            JsonStep::Nothing => {}
        }
    }

    /// Handles the closing quote of a key.
    fn key(&mut self, found: &mut Vec<JsonEvent>) {
        let bytes = self.begin..self.read + 1;
        let key: String = serde_json::from_str(&self.text[bytes.clone()]).unwrap_or_default();
        if let Some(level) = self.levels.last_mut() {
            level.key = key.replace('~', "~0").replace('/', "~1");
        }
        found.push(JsonEvent::Key(self.pointer(), bytes));
    }

    /// Returns the pointer of the value that begins now.
    fn pointer(&self) -> String {
        match self.levels.last() {
            None => String::new(),
            Some(level) if level.object => format!("{}/{}", self.path, level.key),
            Some(level) => format!("{}/{}", self.path, level.items),
        }
    }

    fn whole(&mut self, end: usize, found: &mut Vec<JsonEvent>) {
        found.push(JsonEvent::Whole(self.pointer(), self.begin..end));
    }

    fn open(&mut self, object: bool, found: &mut Vec<JsonEvent>) {
        let pointer = self.pointer();
        found.push(JsonEvent::Opened(pointer.clone(), object, self.read));
        self.levels.push(OpenLevel {
            object,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nests_too_deep_is_told_as_one_value() {
        let text = format!("{}\"[\\\"\"{}", "[".repeat(300), "]".repeat(300));
        let mut progress = JsonValues::default();
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
    fn text_that_is_not_json_is_not_torn_within_a_letter() {
        for text in ["aé1 {é: ü}", "[Z\u{590}k, \u{0}é,,", "\"é"] {
            let mut values = JsonValues::default();
            let mut found = values.push(text);
            found.extend(values.finish());
            for event in found {
                let (JsonEvent::Key(_, bytes) | JsonEvent::Whole(_, bytes)) = event else {
                    continue;
                };
                assert!(text.get(bytes.clone()).is_some(), "{text:?}: {bytes:?}");
            }
        }
    }
}
