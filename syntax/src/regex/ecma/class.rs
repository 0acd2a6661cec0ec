//! Character classes and escapes of ECMA-262.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

use crate::regex::cursor::Cursor;
use crate::regex::error::RegexError;
use crate::regex::node::{any_set, difference};

/// The meaning of an escape or of one character of a class.
pub(super) enum Atom {
    /// One code point, perhaps half of a surrogate pair.
    Point(u32),
    /// A class such as `\d`.
    Set(ClassUnicode),
}

impl Atom {
    /// Returns the characters as a set; half of a surrogate pair is no character, so its set is empty.
    pub(super) fn into_set(self) -> ClassUnicode {
        match self {
            Atom::Point(point) => points(point, point),
            Atom::Set(set) => set,
        }
    }
}

/// Returns the set of the characters between two code points.
fn points(start: u32, end: u32) -> ClassUnicode {
    let scalar = |c| char::from_u32(c);
    let start = scalar(start).or_else(|| scalar(0xe000));
    let end = scalar(end).or_else(|| scalar(0xd7ff));
    match (start, end) {
        (Some(start), Some(end)) if start <= end => ClassUnicode::new([ClassUnicodeRange::new(start, end)]),
        _ => ClassUnicode::empty(),
    }
}

fn set_of(ranges: &[(char, char)]) -> ClassUnicode {
    ClassUnicode::new(
        ranges
            .iter()
            .map(|&(start, end)| ClassUnicodeRange::new(start, end)),
    )
}

/// Returns the characters that `.` does not match.
pub(super) fn line_terminators() -> ClassUnicode {
    set_of(&[('\n', '\n'), ('\r', '\r'), ('\u{2028}', '\u{2029}')])
}

fn digits() -> ClassUnicode {
    set_of(&[('0', '9')])
}

fn word() -> ClassUnicode {
    set_of(&[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')])
}

/// Returns ECMAScript's WhiteSpace and LineTerminator.
fn space() -> ClassUnicode {
    set_of(&[
        ('\t', '\r'),
        (' ', ' '),
        ('\u{a0}', '\u{a0}'),
        ('\u{1680}', '\u{1680}'),
        ('\u{2000}', '\u{200a}'),
        ('\u{2028}', '\u{2029}'),
        ('\u{202f}', '\u{202f}'),
        ('\u{205f}', '\u{205f}'),
        ('\u{3000}', '\u{3000}'),
        ('\u{feff}', '\u{feff}'),
    ])
}

/// Checks whether a group may have this name.
pub(super) fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    let starts = |c: char| matches!(c, '$' | '_') || property_contains("ID_Start", c);
    let goes_on = |c: char| matches!(c, '$' | '\u{200c}' | '\u{200d}') || property_contains("ID_Continue", c);
    chars.next().is_some_and(starts) && chars.all(goes_on)
}

fn property_contains(property: &str, c: char) -> bool {
    property_set(property).is_some_and(|set| set.ranges().iter().any(|r| r.start() <= c && c <= r.end()))
}

/// Returns the characters with a Unicode property (`L`, `Letter`, `Script=Greek`), from the tables of
/// regex-syntax.
fn property_set(property: &str) -> Option<ClassUnicode> {
    let well_formed = property
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '=');
    if !well_formed || property.is_empty() {
        return None;
    }
    let surrogates = property
        .trim_start_matches("General_Category=")
        .trim_start_matches("gc=");
    if matches!(surrogates, "Cs" | "Surrogate") {
        return Some(ClassUnicode::empty());
    }
    let hir = regex_syntax::Parser::new()
        .parse(&format!("\\p{{{property}}}"))
        .ok()?;
    match hir.kind() {
        HirKind::Class(Class::Unicode(set)) => Some(set.clone()),
        // A property with a single character is returned as a literal.
        HirKind::Literal(literal) => {
            let c = std::str::from_utf8(&literal.0).ok()?.chars().next()?;
            Some(set_of(&[(c, c)]))
        }
        _ => None,
    }
}

impl Cursor {
    /// Reads a class in brackets.
    pub(super) fn class(&mut self) -> Result<ClassUnicode, RegexError> {
        let start = self.at;
        self.at += 1;
        let negated = self.eat('^');
        // The ranges are collected first and ordered once: a union for each item would be quadratic for a
        // long class.
        let mut ranges = Vec::new();
        loop {
            match self.peek() {
                None => return Err(RegexError::syntax(start + 1, "unclosed `[`")),
                Some(']') => break,
                Some(_) => self.class_item(&mut ranges)?,
            }
        }
        self.at += 1;
        let set = ClassUnicode::new(ranges);
        Ok(if negated {
            difference(&any_set(), &set)
        } else {
            set
        })
    }

    fn class_item(&mut self, ranges: &mut Vec<ClassUnicodeRange>) -> Result<(), RegexError> {
        let start = self.at;
        let first = self.class_atom()?;
        let is_range = self.peek() == Some('-') && !matches!(self.peek_at(1), Some(']') | None);
        if !is_range {
            return self.add_ranges(&first.into_set(), ranges);
        }
        self.at += 1;
        // Properties exist only with the flag `u`, which forbids a class as the end of a range.
        if self.is_property(start) || self.is_property(self.at) {
            return Err(RegexError::syntax(
                start + 1,
                "a property cannot be the end of a range",
            ));
        }
        match (first, self.class_atom()?) {
            (Atom::Point(from), Atom::Point(to)) if from <= to => self.add_ranges(&points(from, to), ranges),
            (Atom::Point(_), Atom::Point(_)) => Err(RegexError::syntax(
                start + 1,
                "the first character of a range comes after its last",
            )),
            // Annex B, the language without the flag `u`: where a class is at one end, the hyphen is a
            // literal.
            (first, last) => {
                self.add_ranges(&first.into_set(), ranges)?;
                self.add_ranges(&last.into_set(), ranges)?;
                self.add_ranges(&set_of(&[('-', '-')]), ranges)
            }
        }
    }

    fn add_ranges(
        &mut self,
        set: &ClassUnicode,
        ranges: &mut Vec<ClassUnicodeRange>,
    ) -> Result<(), RegexError> {
        ranges.extend(set.ranges());
        self.spend_ranges(set.ranges().len())
    }

    fn class_atom(&mut self) -> Result<Atom, RegexError> {
        match self.peek() {
            Some('\\') => self.class_escape(true),
            Some(c) => {
                self.at += 1;
                Ok(Atom::Point(u32::from(c)))
            }
            None => Err(self.error("unclosed `[`")),
        }
    }

    /// Reads an escape that denotes characters, at its backslash.
    pub(super) fn class_escape(&mut self, in_class: bool) -> Result<Atom, RegexError> {
        let start = self.at;
        self.at += 1;
        let Some(c) = self.peek() else {
            return Err(RegexError::syntax(
                start + 1,
                "a backslash must be followed by a character",
            ));
        };
        self.at += 1;
        let not = |set: ClassUnicode| Atom::Set(difference(&any_set(), &set));
        let point = |c: char| Ok(Atom::Point(u32::from(c)));
        match c {
            'd' => Ok(Atom::Set(digits())),
            'D' => Ok(not(digits())),
            'w' => Ok(Atom::Set(word())),
            'W' => Ok(not(word())),
            's' => Ok(Atom::Set(space())),
            'S' => Ok(not(space())),
            'b' if in_class => point('\u{8}'),
            'f' => point('\u{c}'),
            'n' => point('\n'),
            'r' => point('\r'),
            't' => point('\t'),
            'v' => point('\u{b}'),
            '0' if !self.peek().is_some_and(|c| c.is_ascii_digit()) => point('\0'),
            'c' => self.control_letter(start),
            'x' => self.hex_escape(2, start).map(Atom::Point),
            'u' => self.unicode_escape(start).map(Atom::Point),
            'p' | 'P' => self.property(c == 'P', start),
            c if c.is_ascii_alphanumeric() => {
                Err(RegexError::syntax(start + 1, format!("unknown escape `\\{c}`")))
            }
            c => point(c),
        }
    }

    fn control_letter(&mut self, start: usize) -> Result<Atom, RegexError> {
        match self.peek() {
            Some(c) if c.is_ascii_alphabetic() => {
                self.at += 1;
                Ok(Atom::Point(u32::from(c) % 32))
            }
            _ => Err(RegexError::syntax(
                start + 1,
                "`\\c` must be followed by a letter",
            )),
        }
    }

    /// Reads the rest of `\uXXXX`, of a surrogate pair of two of them, or of `\u{X…}`, after the letter.
    fn unicode_escape(&mut self, start: usize) -> Result<u32, RegexError> {
        if self.eat('{') {
            return self.braced_escape(start);
        }
        let first = self.hex_escape(4, start)?;
        let is_pair =
            (0xd800..0xdc00).contains(&first) && self.peek() == Some('\\') && self.peek_at(1) == Some('u');
        if is_pair {
            let before = self.at;
            self.at += 2;
            match self.hex_escape(4, start) {
                Ok(second) if (0xdc00..0xe000).contains(&second) => {
                    return Ok(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00));
                }
                _ => self.at = before,
            }
        }
        Ok(first)
    }

    fn braced_escape(&mut self, start: usize) -> Result<u32, RegexError> {
        let bad = || RegexError::syntax(start + 1, "`\\u{…}` needs a hexadecimal number up to 10FFFF");
        let mut value = 0_u32;
        let mut count = 0;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(16)) {
            value = value.saturating_mul(16).saturating_add(digit);
            count += 1;
            self.at += 1;
        }
        if count == 0 || value > 0x10_ffff || !self.eat('}') {
            return Err(bad());
        }
        Ok(value)
    }

    /// Checks whether a property escape begins at `at`.
    fn is_property(&self, at: usize) -> bool {
        matches!(self.chars.get(at..), Some(['\\', 'p' | 'P', ..]))
    }

    fn property(&mut self, negated: bool, start: usize) -> Result<Atom, RegexError> {
        let open = self.eat('{');
        let length = self.chars[self.at.min(self.chars.len())..]
            .iter()
            .position(|&c| c == '}');
        let (true, Some(length)) = (open, length) else {
            return Err(RegexError::syntax(
                start + 1,
                "a property must be written `\\p{Name}` or `\\p{Name=Value}`",
            ));
        };
        let name: String = self.chars[self.at..self.at + length].iter().collect();
        self.at += length + 1;
        let set = property_set(&name)
            .ok_or_else(|| RegexError::syntax(start + 1, format!("unknown Unicode property `{name}`")))?;
        Ok(Atom::Set(if negated {
            difference(&any_set(), &set)
        } else {
            set
        }))
    }

    /// Reads a `\uXXXX` escape inside a group name.
    pub(super) fn name_escape(&mut self) -> Result<char, RegexError> {
        let start = self.at;
        self.at += 1;
        if !self.eat('u') {
            return Err(RegexError::syntax(start + 1, "invalid group name"));
        }
        let point = self.unicode_escape(start)?;
        char::from_u32(point).ok_or_else(|| RegexError::syntax(start + 1, "invalid group name"))
    }
}
