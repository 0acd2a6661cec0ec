//! Character classes and escapes of Python's `re` module.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

use crate::regex::cursor::Cursor;
use crate::regex::error::RegexError;
use crate::regex::node::{any_set, char_set, difference, either_case};

/// The meaning of an escape or of one item of a class.
pub(super) enum Atom {
    One(char),
    Set(ClassUnicode),
}

impl Atom {
    pub(super) fn into_set(self) -> ClassUnicode {
        match self {
            Atom::One(c) => char_set(c),
            Atom::Set(set) => set,
        }
    }
}

/// Returns the characters of a class in the syntax of regex-syntax.
fn set_of(class: &str) -> ClassUnicode {
    let hir = regex_syntax::Parser::new().parse(class);
    match hir.map(|hir| hir.into_kind()) {
        Ok(HirKind::Class(Class::Unicode(set))) => set,
        _ => ClassUnicode::empty(),
    }
}

/// Returns the characters for which `str.isalnum` is true, and the underscore.
pub(super) fn word() -> ClassUnicode {
    set_of(r"[\p{L}\p{N}_]")
}

/// Returns the decimal digits of all scripts.
fn digits() -> ClassUnicode {
    set_of(r"\p{Nd}")
}

/// Returns the characters for which `str.isspace` is true.
fn space() -> ClassUnicode {
    set_of(r"[\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]")
}

/// Checks whether a group may have this name.
pub(super) fn is_identifier(name: &str) -> bool {
    let holds = |class: &str, c: char| {
        let set = set_of(class);
        set.ranges()
            .iter()
            .any(|range| range.start() <= c && c <= range.end())
    };
    let mut chars = name.chars();
    let starts = |c: char| c.is_ascii_alphabetic() || c == '_' || holds(r"\p{XID_Start}", c);
    let goes_on = |c: char| c.is_ascii_alphanumeric() || c == '_' || holds(r"\p{XID_Continue}", c);
    name.len() <= LONGEST_NAME && chars.next().is_some_and(starts) && chars.all(goes_on)
}

/// The greatest length in bytes of a group name; each non-ASCII character is looked up in a table.
const LONGEST_NAME: usize = 256;

impl Cursor {
    /// Reads a class in brackets, of letters in either case if `ignore_case` is set. A `]` that comes first
    /// is a literal.
    pub(super) fn python_class(&mut self, ignore_case: bool) -> Result<ClassUnicode, RegexError> {
        let start = self.at;
        self.at += 1;
        let negated = self.eat('^');
        let first = self.at;
        // The ranges are collected first and ordered once: a union for each item would be quadratic for a
        // long class.
        let mut ranges = Vec::new();
        loop {
            match self.peek() {
                None => return Err(RegexError::syntax(start + 1, "unclosed `[`")),
                Some(']') if self.at > first => break,
                Some(_) => self.python_item(&mut ranges)?,
            }
        }
        self.at += 1;
        let mut set = ClassUnicode::new(ranges);
        if ignore_case {
            set = either_case(set);
        }
        Ok(if negated {
            difference(&any_set(), &set)
        } else {
            set
        })
    }

    fn python_item(&mut self, ranges: &mut Vec<ClassUnicodeRange>) -> Result<(), RegexError> {
        let start = self.at;
        let from = self.python_atom()?;
        let is_range = self.peek() == Some('-') && !matches!(self.peek_at(1), Some(']') | None);
        if !is_range {
            let set = from.into_set();
            ranges.extend(set.ranges());
            return self.spend_ranges(set.ranges().len());
        }
        self.at += 1;
        match (from, self.python_atom()?) {
            (Atom::One(from), Atom::One(to)) if from <= to => {
                ranges.push(ClassUnicodeRange::new(from, to));
                self.spend_ranges(1)
            }
            (Atom::One(_), Atom::One(_)) => Err(RegexError::syntax(
                start + 1,
                "the first character of a range comes after its last",
            )),
            _ => Err(RegexError::syntax(
                start + 1,
                "a class cannot be the end of a range",
            )),
        }
    }

    fn python_atom(&mut self) -> Result<Atom, RegexError> {
        match self.peek() {
            Some('\\') => self.python_escape(true),
            Some(c) => {
                self.at += 1;
                Ok(Atom::One(c))
            }
            None => Err(self.error("unclosed `[`")),
        }
    }

    /// Checks whether `count` octal digits begin at `at`.
    pub(super) fn is_octal(&self, at: usize, count: usize) -> bool {
        let digits = self.chars.iter().skip(at).take(count);
        digits.clone().count() == count && digits.clone().all(|c| c.is_digit(8))
    }

    /// Reads an escape that denotes characters, at its backslash.
    pub(super) fn python_escape(&mut self, in_class: bool) -> Result<Atom, RegexError> {
        let start = self.at;
        self.at += 1;
        let Some(c) = self.peek() else {
            let message = "a backslash must be followed by a character";
            return Err(RegexError::syntax(start + 1, message));
        };
        self.at += 1;
        let not = |set: ClassUnicode| Ok(Atom::Set(difference(&any_set(), &set)));
        match c {
            'd' => Ok(Atom::Set(digits())),
            'D' => not(digits()),
            'w' => Ok(Atom::Set(word())),
            'W' => not(word()),
            's' => Ok(Atom::Set(space())),
            'S' => not(space()),
            'a' => Ok(Atom::One('\u{7}')),
            'b' if in_class => Ok(Atom::One('\u{8}')),
            'f' => Ok(Atom::One('\u{c}')),
            'n' => Ok(Atom::One('\n')),
            'r' => Ok(Atom::One('\r')),
            't' => Ok(Atom::One('\t')),
            'v' => Ok(Atom::One('\u{b}')),
            'x' => self.python_point(2, start),
            'u' => self.python_point(4, start),
            'U' => self.python_point(8, start),
            'N' => Err(RegexError::unsupported(
                start + 1,
                "characters by name are not supported",
            )),
            '0'..='7' => self.octal(start, in_class),
            c if c.is_ascii_alphanumeric() => {
                Err(RegexError::syntax(start + 1, format!("unknown escape `\\{c}`")))
            }
            c => Ok(Atom::One(c)),
        }
    }

    fn python_point(&mut self, digits: usize, start: usize) -> Result<Atom, RegexError> {
        let point = self.hex_escape(digits, start)?;
        match char::from_u32(point) {
            Some(c) => Ok(Atom::One(c)),
            // Python strings may contain half of a surrogate pair, which no UTF-8 text does.
            None if (0xd800..0xe000).contains(&point) => Ok(Atom::Set(ClassUnicode::empty())),
            None => Err(RegexError::syntax(start + 1, "there is no such character")),
        }
    }

    /// Reads `\0` with up to two more octal digits, or three octal digits up to 377; fewer are enough in a
    /// class.
    fn octal(&mut self, start: usize, in_class: bool) -> Result<Atom, RegexError> {
        self.at = start + 1;
        let most = self.chars[start + 1..].iter().take(3);
        let digits = most.take_while(|c| c.is_digit(8)).count();
        if !in_class && self.chars[start + 1] != '0' && digits < 3 {
            return Err(RegexError::unsupported(
                start + 1,
                "backreferences are not supported",
            ));
        }
        let digits: String = self.chars[start + 1..start + 1 + digits].iter().collect();
        self.at += digits.len();
        let value = u32::from_str_radix(&digits, 8).unwrap_or(u32::MAX);
        match char::from_u32(value).filter(|_| value <= 0o377) {
            Some(c) => Ok(Atom::One(c)),
            None => Err(RegexError::syntax(start + 1, "an octal escape is at most 377")),
        }
    }
}
