//! How the characters inside of quotes and classes are written.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use crate::notation::lower::Problems;

const NO_CHARACTER: &str = "this number is not a Unicode character";

/// How a notation writes the characters inside of quotes and classes.
pub(crate) struct Spelling {
    /// What a backslash means; `None` if it is an ordinary character.
    pub(crate) escapes: Option<Escapes>,
    /// `true` if `#x41` is a character of a class.
    pub(crate) has_points: bool,
}

/// What a backslash means. All notations have `\xNN`, `\uNNNN` and `\UNNNNNNNN`.
pub(crate) struct Escapes {
    /// The letters that denote another character, with that character.
    pub(crate) letters: &'static [(char, char)],
    /// Says whether a character denotes itself after a backslash.
    pub(crate) is_plain: fn(char) -> bool,
    /// The number of digits in `\xNN`; `None` if there may be any number of them.
    pub(crate) hex_digits: Option<usize>,
    /// `true` if there are `\u{N…}` and surrogate pairs.
    pub(crate) has_wide: bool,
}

/// Returns the character that `#x…` or `%x…` names.
pub(crate) fn point(digits: &str, radix: u32) -> Option<char> {
    u32::from_str_radix(digits, radix).ok().and_then(char::from_u32)
}

impl Spelling {
    /// Returns the text between two quotes, which begins at an offset.
    pub(crate) fn text(&self, inside: &str, at: usize, problems: &mut Problems) -> String {
        let mut reader = self.reader(inside, 0);
        let mut text = String::new();
        while let Some(character) = reader.next(false) {
            match character {
                Ok(character) => text.push(character),
                Err(bad) => problems.syntax(at + bad.offset, bad.message),
            }
        }
        text
    }

    /// Returns the characters of a class, given the text between its brackets and the offset of that text.
    pub(crate) fn class(&self, inside: &str, at: usize, problems: &mut Problems) -> ClassUnicode {
        let negated = inside.starts_with('^');
        let mut reader = self.reader(inside, usize::from(negated));
        let mut ranges = Vec::new();
        loop {
            let offset = reader.at;
            match reader.range() {
                None => break,
                Some(Ok((start, end))) if start <= end => ranges.push(ClassUnicodeRange::new(start, end)),
                Some(Ok(_)) => {
                    let message = "the first character of a range comes after its last";
                    problems.syntax(at + offset, message);
                }
                Some(Err(bad)) => problems.syntax(at + bad.offset, bad.message),
            }
        }
        let mut set = ClassUnicode::new(ranges);
        if negated {
            set.negate();
        }
        set
    }

    fn reader<'a>(&'a self, text: &'a str, at: usize) -> Reader<'a> {
        Reader {
            spelling: self,
            text,
            at,
        }
    }
}

/// An error inside of quotes or a class, with its offset after the opening.
struct Bad {
    offset: usize,
    message: String,
}

struct Reader<'a> {
    spelling: &'a Spelling,
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// Reads the next character and resolves escapes.
    fn next(&mut self, in_class: bool) -> Option<Result<char, Bad>> {
        let start = self.at;
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        match (c, &self.spelling.escapes) {
            ('\\', Some(escapes)) => Some(self.escape(start, escapes)),
            ('#', _) if in_class && self.spelling.has_points => Some(self.class_point(start)),
            _ => Some(Ok(c)),
        }
    }

    /// Reads a character or a range of a class.
    fn range(&mut self) -> Option<Result<(char, char), Bad>> {
        let start = match self.next(true)? {
            Ok(start) => start,
            Err(bad) => return Some(Err(bad)),
        };
        let rest = self.rest();
        if !rest.starts_with('-') || rest.len() == 1 {
            return Some(Ok((start, start)));
        }
        self.at += 1;
        self.next(true).map(|end| end.map(|end| (start, end)))
    }

    /// Reads `#xN…` in a class, or a plain `#`.
    fn class_point(&mut self, start: usize) -> Result<char, Bad> {
        let rest = self.rest();
        let digits = rest.strip_prefix('x').unwrap_or_default();
        let count = digits.bytes().take_while(u8::is_ascii_hexdigit).count();
        if count == 0 {
            return Ok('#');
        }
        let named = point(&digits[..count], 16);
        self.at += 1 + count;
        named.ok_or_else(|| bad(start, NO_CHARACTER))
    }

    fn escape(&mut self, start: usize, escapes: &Escapes) -> Result<char, Bad> {
        let Some(c) = self.rest().chars().next() else {
            return Err(bad(start, "a backslash must be followed by a character"));
        };
        self.at += c.len_utf8();
        if let Some(&(_, meant)) = escapes.letters.iter().find(|&&(letter, _)| letter == c) {
            return Ok(meant);
        }
        match c {
            'x' => match escapes.hex_digits {
                Some(count) => self.numbered(count, start),
                None => self.numbered_freely(start),
            },
            'U' => self.numbered(8, start),
            'u' if escapes.has_wide && self.rest().starts_with('{') => self.braced(start),
            'u' if escapes.has_wide => self.unicode(start),
            'u' => self.numbered(4, start),
            c if (escapes.is_plain)(c) => Ok(c),
            c => Err(bad(start, &format!("unknown escape `\\{}`", c.escape_default()))),
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

    fn numbered(&mut self, count: usize, start: usize) -> Result<char, Bad> {
        let value = self
            .digits(count)
            .ok_or_else(|| bad(start, &format!("the escape needs {count} hexadecimal digits")))?;
        char::from_u32(value).ok_or_else(|| bad(start, NO_CHARACTER))
    }

    /// Reads the digits of `\xN…`.
    fn numbered_freely(&mut self, start: usize) -> Result<char, Bad> {
        let count = self.rest().bytes().take_while(u8::is_ascii_hexdigit).count();
        let named = point(&self.rest()[..count], 16);
        self.at += count;
        match count {
            0 => Err(bad(start, "the escape needs hexadecimal digits")),
            _ => named.ok_or_else(|| bad(start, NO_CHARACTER)),
        }
    }

    /// Reads `\uNNNN`, or two of them as a surrogate pair.
    fn unicode(&mut self, start: usize) -> Result<char, Bad> {
        let first = self
            .digits(4)
            .ok_or_else(|| bad(start, "the escape needs 4 hexadecimal digits"))?;
        let half = "half of a surrogate pair is not a character";
        if !(0xd800..0xdc00).contains(&first) || !self.rest().starts_with("\\u") {
            return char::from_u32(first).ok_or_else(|| bad(start, half));
        }
        self.at += 2;
        match self.digits(4) {
            Some(second @ 0xdc00..0xe000) => {
                let value = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                char::from_u32(value).ok_or_else(|| bad(start, NO_CHARACTER))
            }
            _ => Err(bad(start, half)),
        }
    }

    fn braced(&mut self, start: usize) -> Result<char, Bad> {
        let end = self.rest().find('}').unwrap_or(0);
        let named = self.rest().get(1..end).and_then(|digits| point(digits, 16));
        self.at += end + usize::from(end > 0);
        named.ok_or_else(|| bad(start, "`\\u{…}` needs a hexadecimal number up to 10FFFF"))
    }
}

fn bad(offset: usize, message: &str) -> Bad {
    Bad {
        offset,
        message: message.into(),
    }
}
