//! Where in a JSON text a prefix of it ends.

/// What the next byte would belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Between values: before a value, a key, a comma, a colon or a closing bracket.
    Between,
    /// Inside a string, which is a key or not.
    Text { key: bool },
    /// Inside a string, behind a backslash or in what follows `\u`.
    Escape { key: bool },
    /// In a number that may go on.
    Number,
    /// In `true`, `false` or `null`.
    Word,
}

/// A prefix, read.
#[derive(Debug)]
pub struct Scan {
    /// What the next byte belongs to.
    pub place: Place,
    /// Where the string, number or word began that the place is in.
    pub began: usize,
    /// The brackets that are open; for each object the spellings of the keys that it has, quotes not
    /// included.
    open: Vec<(u8, Vec<Vec<u8>>)>,
    expects_key: bool,
}

impl Scan {
    /// Reads a prefix of a JSON text. What is no JSON is read as far as it resembles it.
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
                // `\u` has four digits behind it, any other escape is one character.
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

    /// Whether the innermost open bracket is that of an object.
    pub fn in_object(&self) -> bool {
        self.open.last().is_some_and(|(bracket, _)| *bracket == b'{')
    }

    /// Whether the innermost object has a key already whose spelling begins so.
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
