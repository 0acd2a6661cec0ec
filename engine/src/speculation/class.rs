//! The kind of place that a text has reached in a JSON document.
//!
//! Drafts of a key are nearly always right and those of a free string hardly ever, whichever source they
//! have. So the success of drafts is counted separately for each class. A text that is not JSON has classes
//! too; they then mean little, but do no harm.

use lexiform::vocab::Vocabulary;
use lexiform_syntax::answer::JsonScanner;

/// A string counts as one of a closed list if at most this many tokens may come next.
const CLOSED: usize = 64;

/// A part of a JSON document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StateClass {
    /// Punctuation between keys and values.
    Structure,
    /// A key.
    Key,
    /// A string of a closed list.
    Enum,
    /// A number, `true`, `false` or `null`.
    Number,
    /// A free string.
    Text,
}

impl StateClass {
    /// All classes, each with its name.
    pub const ALL: [(StateClass, &'static str); 5] = [
        (StateClass::Structure, "structure"),
        (StateClass::Key, "key"),
        (StateClass::Enum, "enum"),
        (StateClass::Number, "number"),
        (StateClass::Text, "text"),
    ];
}

/// Reads a JSON document byte by byte, as far as its classes require it.
#[derive(Clone, Debug, Default)]
pub struct JsonReader(JsonScanner);

fn begins_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'-' | b't' | b'f' | b'n')
}

impl JsonReader {
    /// Returns the class of what comes next. `next` is its first byte that is not white space, if known:
    /// outside of strings it distinguishes a number from the punctuation before it. `allowed` counts the
    /// tokens that may come; it is called only inside strings that are values.
    pub fn class(&self, next: Option<u8>, allowed: impl FnOnce() -> Option<usize>) -> StateClass {
        let is_number = next.map_or(self.0.is_in_word(), begins_number);
        match self.0.is_in_string() {
            true if self.0.is_at_key() => StateClass::Key,
            true if allowed().is_some_and(|count| count <= CLOSED) => StateClass::Enum,
            true => StateClass::Text,
            false if is_number => StateClass::Number,
            false => StateClass::Structure,
        }
    }

    /// Reads one more byte.
    pub fn read(&mut self, byte: u8) {
        self.0.step(byte);
    }
}

/// The place in a JSON document that a growing answer has reached.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standing {
    reader: JsonReader,
    /// The number of tokens of the answer that were read.
    read: usize,
}

impl Standing {
    /// Reads the new tokens of an answer, or all of them if it has become shorter. If an answer went back and
    /// forward again between two calls, its beginning is taken to be unchanged. That is nearly always right,
    /// and an error only affects which drafts are counted together.
    pub(crate) fn follow(&mut self, answer: &[u32], vocabulary: &Vocabulary) -> &JsonReader {
        if answer.len() < self.read {
            *self = Standing::default();
        }
        for &token in &answer[self.read..] {
            let bytes = vocabulary.bytes(token);
            bytes.iter().for_each(|&byte| self.reader.read(byte));
        }
        self.read = answer.len();
        &self.reader
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lexiform::vocab::TokenKind;

    #[test]
    fn what_comes_next_is_known_by_what_was_read() {
        use StateClass::{Enum, Key, Number, Structure, Text};
        let text = br#"{"na\"me": "Ada", "list": [12.5, true, {"k": "x"}]}"#;
        let mut reader = JsonReader::default();
        let mut classes = Vec::new();
        for &byte in text {
            classes.push(reader.class(None, || Some(usize::MAX)));
            reader.read(byte);
        }
        // The class before each byte: a string from after its opening quote to its end, a number from after
        // its first digit.
        let expected = [
            (2, Structure),
            (7, Key),
            (3, Structure),
            (4, Text),
            (3, Structure),
            (5, Key),
            (4, Structure),
            (4, Number),
            (2, Structure),
            (4, Number),
            (3, Structure),
            (2, Key),
            (3, Structure),
            (2, Text),
            (3, Structure),
        ];
        let expected: Vec<StateClass> = expected
            .iter()
            .flat_map(|&(count, class)| std::iter::repeat_n(class, count))
            .collect();
        assert_eq!(classes, expected);
        reader = JsonReader::default();
        b"[\"r".iter().for_each(|&byte| reader.read(byte));
        assert_eq!(reader.class(None, || Some(3)), Enum);
        assert_eq!(reader.class(None, || None), Text);
        let begun = JsonReader::default();
        assert_eq!(begun.class(Some(b'7'), || None), Number);
        assert_eq!(begun.class(Some(b'{'), || None), Structure);
    }

    #[test]
    fn an_answer_that_becomes_shorter_is_read_again() {
        let tokens = ["[", "\"", "a", "]", "$"].map(|text| (TokenKind::Text, text));
        let vocabulary = Vocabulary::new(&tokens, &[4]).expect("five tokens");
        let mut standing = Standing::default();
        let class = |standing: &mut Standing, answer: &[u32]| {
            standing.follow(answer, &vocabulary).class(None, || None)
        };
        assert_eq!(class(&mut standing, &[0, 1]), StateClass::Text);
        assert_eq!(class(&mut standing, &[0, 1, 2, 1]), StateClass::Structure);
        assert_eq!(class(&mut standing, &[0, 1, 2]), StateClass::Text);
        assert_eq!(class(&mut standing, &[0]), StateClass::Structure);
    }
}
