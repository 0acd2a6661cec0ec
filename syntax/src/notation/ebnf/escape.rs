//! Reads the characters inside quotes and classes.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

/// An error inside quotes or a class, with its offset in bytes after the opening.
#[derive(Debug, PartialEq)]
pub(super) struct BadText {
    pub(super) offset: usize,
    pub(super) message: String,
}

/// Returns the text between two quotes.
pub(super) fn unquote(inside: &str) -> Result<String, Vec<BadText>> {
    let mut reader = EscapeReader { text: inside, at: 0 };
    let (mut text, mut bad) = (String::new(), Vec::new());
    while let Some(character) = reader.next(false) {
        match character {
            Ok(character) => text.push(character),
            Err(problem) => bad.push(problem),
        }
    }
    if bad.is_empty() { Ok(text) } else { Err(bad) }
}

/// Returns the characters of a class, given the text between its brackets.
pub(super) fn class(inside: &str) -> Result<ClassUnicode, Vec<BadText>> {
    let negated = inside.starts_with('^');
    let mut reader = EscapeReader {
        text: inside,
        at: usize::from(negated),
    };
    let (mut ranges, mut bad) = (Vec::new(), Vec::new());
    loop {
        let offset = reader.at;
        match reader.range() {
            None => break,
            Some(Ok((start, end))) if start <= end => ranges.push(ClassUnicodeRange::new(start, end)),
            Some(Ok(_)) => {
                bad.push(BadText {
                    offset,
                    message: "the first character of a range comes after its last".into(),
                });
            }
            Some(Err(problem)) => bad.push(problem),
        }
    }
    let mut set = ClassUnicode::new(ranges);
    if negated {
        set.negate();
    }
    if bad.is_empty() { Ok(set) } else { Err(bad) }
}

/// Returns the character that `#x…` names.
pub(super) fn point(digits: &str) -> Option<char> {
    u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)
}

struct EscapeReader<'a> {
    text: &'a str,
    at: usize,
}

impl EscapeReader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// Reads the next character and resolves escapes.
    fn next(&mut self, in_class: bool) -> Option<Result<char, BadText>> {
        let start = self.at;
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        match c {
            '\\' => Some(self.escape(start)),
            '#' if in_class => Some(self.class_point(start)),
            c => Some(Ok(c)),
        }
    }

    /// Reads a character or a range of a class.
    fn range(&mut self) -> Option<Result<(char, char), BadText>> {
        let start = match self.next(true)? {
            Ok(start) => start,
            Err(problem) => return Some(Err(problem)),
        };
        let rest = self.rest();
        if !rest.starts_with('-') || rest.len() == 1 {
            return Some(Ok((start, start)));
        }
        self.at += 1;
        self.next(true).map(|end| end.map(|end| (start, end)))
    }

    /// Reads `#xN…` in a class, or a plain `#`.
    fn class_point(&mut self, start: usize) -> Result<char, BadText> {
        let rest = self.rest();
        let digits = rest.strip_prefix('x').unwrap_or_default();
        let count = digits.bytes().take_while(u8::is_ascii_hexdigit).count();
        if count == 0 {
            return Ok('#');
        }
        let named = point(&digits[..count]);
        self.at += 1 + count;
        named.ok_or_else(|| bad(start, "this number is not a Unicode character"))
    }

    fn escape(&mut self, start: usize) -> Result<char, BadText> {
        let Some(c) = self.rest().chars().next() else {
            return Err(bad(start, "a backslash must be followed by a character"));
        };
        self.at += c.len_utf8();
        match c {
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            't' => Ok('\t'),
            'b' => Ok('\u{8}'),
            'f' => Ok('\u{c}'),
            'v' => Ok('\u{b}'),
            '0' => Ok('\0'),
            'x' => self.numbered(2, start),
            'U' => self.numbered(8, start),
            'u' if self.rest().starts_with('{') => self.braced(start),
            'u' => self.unicode(start),
            c if c.is_ascii_alphanumeric() || c == '\n' => {
                Err(bad(start, &format!("unknown escape `\\{}`", c.escape_default())))
            }
            c => Ok(c),
        }
    }

    fn digits(&mut self, count: usize) -> Option<u32> {
        let digits = self
            .rest()
            .get(..count)
            .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
        let value = u32::from_str_radix(digits, 16).ok()?;
        self.at += count;
        Some(value)
    }

    fn numbered(&mut self, count: usize, start: usize) -> Result<char, BadText> {
        let value = self
            .digits(count)
            .ok_or_else(|| bad(start, &format!("the escape needs {count} hexadecimal digits")))?;
        char::from_u32(value).ok_or_else(|| bad(start, "this number is not a Unicode character"))
    }

    /// Reads `\uNNNN`, or two of them as a surrogate pair.
    fn unicode(&mut self, start: usize) -> Result<char, BadText> {
        let first = self
            .digits(4)
            .ok_or_else(|| bad(start, "the escape needs 4 hexadecimal digits"))?;
        if !(0xd800..0xdc00).contains(&first) || !self.rest().starts_with("\\u") {
            return char::from_u32(first)
                .ok_or_else(|| bad(start, "half of a surrogate pair is not a character"));
        }
        self.at += 2;
        match self.digits(4) {
            Some(second @ 0xdc00..0xe000) => {
                let value = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                char::from_u32(value).ok_or_else(|| bad(start, "this number is not a Unicode character"))
            }
            _ => Err(bad(start, "half of a surrogate pair is not a character")),
        }
    }

    fn braced(&mut self, start: usize) -> Result<char, BadText> {
        let end = self.rest().find('}').unwrap_or(0);
        let named = self.rest().get(1..end).and_then(point);
        self.at += end + usize::from(end > 0);
        named.ok_or_else(|| bad(start, "`\\u{…}` needs a hexadecimal number up to 10FFFF"))
    }
}

fn bad(offset: usize, message: &str) -> BadText {
    BadText {
        offset,
        message: message.into(),
    }
}
