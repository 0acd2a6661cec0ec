//! Finds the place within a JSON text at which a prefix of it ends.

/// The construct that the next byte would belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Between values: before a value, a key, a comma, a colon or a closing bracket.
    Between,
    /// Inside a string, which may be a key.
    Text { key: bool },
    /// Inside a string, after a backslash or within the digits of `\u`.
    Escape { key: bool },
    /// In a number that may continue.
    Number,
    /// In `true`, `false` or `null`.
    Word,
}

/// The result of scanning a prefix.
#[derive(Debug)]
pub struct Scan {
    /// The place that the next byte belongs to.
    pub place: Place,
    /// The start of the string, number or word that contains the place.
    pub began: usize,
    /// The open brackets, each with the spellings of the keys that its object already has, without quotes.
    open: Vec<(u8, Vec<Vec<u8>>)>,
    expects_key: bool,
}

impl Scan {
    /// Scans a prefix of a JSON text. Invalid JSON is scanned as far as it resembles JSON.
    pub fn of(text: &[u8]) -> Self {
        let mut scan = Self {
            place: Place::Between,
            began: 0,
            open: Vec::new(),
            expects_key: false,
        };
        let mut left_of_escape = 0;
        for (at, &byte) in text.iter().enumerate() {
            scan.take(text, at, byte, &mut left_of_escape);
        }
        scan
    }

    fn take(&mut self, text: &[u8], at: usize, byte: u8, left_of_escape: &mut usize) {
        match self.place {
            Place::Escape { key } => {
                // Four digits follow `\u`; any other escape is one character.
                *left_of_escape = match *left_of_escape {
                    0 if byte == b'u' => 4,
                    0 => 0,
                    left => left - 1,
                };
                if *left_of_escape == 0 {
                    self.place = Place::Text { key };
                }
            }
            Place::Text { key } => match byte {
                b'\\' => self.place = Place::Escape { key },
                b'"' => self.end_string(key, &text[self.began + 1..at]),
                _ => {}
            },
            Place::Number if matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-') => {}
            Place::Word if byte.is_ascii_lowercase() => {}
            Place::Between | Place::Number | Place::Word => self.take_between(at, byte),
        }
    }

    fn take_between(&mut self, at: usize, byte: u8) {
        self.place = match byte {
            b'"' => Place::Text {
                key: self.expects_key,
            },
            b'0'..=b'9' | b'-' => Place::Number,
            b'a'..=b'z' => Place::Word,
            _ => Place::Between,
        };
        if self.place != Place::Between {
            self.began = at;
        }
        match byte {
            b'{' | b'[' => self.open.push((byte, Vec::new())),
            b'}' | b']' => drop(self.open.pop()),
            _ => {}
        }
        if matches!(byte, b'{' | b'[' | b',' | b':' | b'}' | b']') {
            self.expects_key = matches!(byte, b'{' | b',') && self.in_object();
        }
    }

    fn end_string(&mut self, key: bool, content: &[u8]) {
        self.place = Place::Between;
        if let (true, Some((_, keys))) = (key, self.open.last_mut()) {
            keys.push(content.to_vec());
        }
    }

    /// Returns `true` if the innermost open bracket is that of an object.
    pub fn in_object(&self) -> bool {
        self.open.last().is_some_and(|(bracket, _)| *bracket == b'{')
    }

    /// Returns `true` if the innermost object already has a key whose spelling begins with this one.
    pub fn has_key_from(&self, spelling: &[u8]) -> bool {
        let keys = self.open.last().map_or(&[][..], |(_, keys)| keys);
        keys.iter().any(|key| key.starts_with(spelling))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        let cases: [(&str, Place); 12] = [
            ("", Place::Between),
            ("{", Place::Between),
            (r#"{"a"#, Place::Text { key: true }),
            (r#"{"a": "b"#, Place::Text { key: false }),
            (r#"{"a": "b\"#, Place::Escape { key: false }),
            (r#"{"a": "b\u00"#, Place::Escape { key: false }),
            (r#"{"a": "b\u00e9"#, Place::Text { key: false }),
            (r#"{"a": ["b", "c"#, Place::Text { key: false }),
            (r#"{"a": [1], "b"#, Place::Text { key: true }),
            (r#"{"a": -1.5e"#, Place::Number),
            (r#"{"a": tr"#, Place::Word),
            (r#"{"a": true "#, Place::Between),
        ];
        for (text, place) in cases {
            assert_eq!(Scan::of(text.as_bytes()).place, place, "{text}");
        }
    }

    #[test]
    fn keys_are_those_of_the_innermost_object() {
        let scan = Scan::of(br#"{"out": 1, "in": {"first": [{}], "se"#);
        assert!(scan.in_object() && scan.has_key_from(b"fi") && !scan.has_key_from(b"out"));
    }
}
