//! Regular languages of text as they are spelled inside a JSON string.
//!
//! ```text
//!   a character        Canonical      Minimal                 Any
//!   a                  a              a                       a  \u0061
//!   "                  \"             \"                      \"  \u0022
//!   /                  /              /                       /  \/  \u002f
//!   line feed          \n             \n                      \n  \u000a  \u000A
//!   U+001F             \u001f         \u001f  \u001F          \u001f  \u001F
//!   U+1F600            (raw)          (raw)                   (raw)  \ud83d\ude00
//! ```
//!
//! The encoded characters form a prefix code: no spelling of one is a prefix of a spelling of another. That
//! is why [`json_char`] can be the unit of a counted string.

use std::sync::OnceLock;

use regex_syntax::hir::{Class, ClassBytes, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Repetition};

use lexiform_automata::grammar::Expression;

use super::node::{any_set, char_set, difference, intersection, is_empty};

/// The spellings of a character that are in the language of an encoded string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Escapes {
    /// One spelling for each character: escapes only where JSON requires one, in the short form where there
    /// is one. Hexadecimal digits may have either case, except in keys that no property names: these have one
    /// spelling.
    Minimal,
    /// Like `Minimal`, with lowercase hexadecimal digits: each string has exactly one spelling, the one that
    /// most programs write.
    Canonical,
    /// Every spelling that JSON allows. Keys that no property names are compared as they are written, so a
    /// key may be repeated in another spelling: a validator of the texts has to compare the decoded keys.
    Any,
}

impl Escapes {
    /// The number of variants.
    pub(crate) const COUNT: usize = 3;
}

/// Returns the language of `hir`, spelled inside a JSON string, without the quotes.
///
/// Bytes of 0x80 and above that are given as bytes rather than characters stand for themselves, as they do in
/// JSON.
pub fn encode_json(hir: &Hir, escapes: Escapes) -> Hir {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => hir.clone(),
        HirKind::Literal(literal) => encode_literal(&literal.0, escapes),
        HirKind::Class(Class::Unicode(set)) => encode_set(set, escapes),
        HirKind::Class(Class::Bytes(set)) => encode_bytes(set, escapes),
        HirKind::Repetition(repetition) => {
            Hir::repetition(repetition.with(encode_json(&repetition.sub, escapes)))
        }
        HirKind::Capture(capture) => encode_json(&capture.sub, escapes),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(|part| encode_json(part, escapes)).collect()),
        HirKind::Alternation(parts) => {
            Hir::alternation(parts.iter().map(|part| encode_json(part, escapes)).collect())
        }
    }
}

/// Returns the spellings of any one character.
pub fn json_char(escapes: Escapes) -> Hir {
    Hir::clone(&one_char(escapes))
}

/// Returns [`json_char`], shared: nearly every schema uses it, and some for every string.
pub(crate) fn one_char(escapes: Escapes) -> Expression {
    static KNOWN: [OnceLock<Expression>; Escapes::COUNT] = [const { OnceLock::new() }; Escapes::COUNT];
    let known = KNOWN[escapes as usize].get_or_init(|| encode_set(&any_set(), escapes).into());
    known.clone()
}

/// Returns [`json_string_body`], shared.
pub(crate) fn string_body(escapes: Escapes) -> Expression {
    static KNOWN: [OnceLock<Expression>; Escapes::COUNT] = [const { OnceLock::new() }; Escapes::COUNT];
    let known = KNOWN[escapes as usize].get_or_init(|| json_string_body(escapes).into());
    known.clone()
}

/// Returns the language of everything that may come between the quotes of a JSON string.
pub fn json_string_body(escapes: Escapes) -> Hir {
    let sub = Box::new(json_char(escapes));
    Hir::repetition(Repetition {
        min: 0,
        max: None,
        greedy: true,
        sub,
    })
}

fn encode_literal(bytes: &[u8], escapes: Escapes) -> Hir {
    let plain = |byte: &u8| *byte >= 0x20 && *byte != b'"' && *byte != b'\\';
    if escapes != Escapes::Any && bytes.iter().all(plain) {
        return Hir::literal(bytes);
    }
    let mut parts = Vec::new();
    for chunk in bytes.utf8_chunks() {
        parts.extend(chunk.valid().chars().map(|c| encode_set(&char_set(c), escapes)));
        parts.push(Hir::literal(chunk.invalid()));
    }
    Hir::concat(parts)
}

fn encode_bytes(set: &ClassBytes, escapes: Escapes) -> Hir {
    let mut ascii = ClassUnicode::empty();
    let mut high = ClassBytes::empty();
    for range in set.ranges() {
        for byte in range.start()..=range.end() {
            if byte.is_ascii() {
                ascii.push(ClassUnicodeRange::new(char::from(byte), char::from(byte)));
            } else {
                high.push(regex_syntax::hir::ClassBytesRange::new(byte, byte));
            }
        }
    }
    Hir::alternation(vec![encode_set(&ascii, escapes), Hir::class(Class::Bytes(high))])
}

/// The characters with a short escape, each with the letter of its escape.
const SHORT_ESCAPES: [(char, char); 8] = [
    ('"', '"'),
    ('\\', '\\'),
    ('\u{8}', 'b'),
    ('\u{c}', 'f'),
    ('\n', 'n'),
    ('\r', 'r'),
    ('\t', 't'),
    ('/', '/'),
];

fn encode_set(set: &ClassUnicode, escapes: Escapes) -> Hir {
    let must_escape = ClassUnicode::new([
        ClassUnicodeRange::new('\0', '\u{1f}'),
        ClassUnicodeRange::new('"', '"'),
        ClassUnicodeRange::new('\\', '\\'),
    ]);
    let raw = difference(set, &must_escape);
    let escaped = match escapes {
        Escapes::Minimal | Escapes::Canonical => intersection(set, &must_escape),
        Escapes::Any => set.clone(),
    };
    let mut spellings = vec![Hir::class(Class::Unicode(raw))];
    if is_empty(&escaped) {
        return spellings.remove(0);
    }
    let (letters, long) = short_escapes(&escaped, escapes);
    spellings.push(Hir::concat(vec![
        Hir::literal(*b"\\"),
        Hir::class(Class::Unicode(letters)),
    ]));
    spellings.push(numeric_escapes(&long, Case::of(escapes)));
    Hir::alternation(spellings)
}

/// Returns the letters of the short escapes for a set, and the characters that are (also) written by number.
fn short_escapes(set: &ClassUnicode, escapes: Escapes) -> (ClassUnicode, ClassUnicode) {
    let mut letters = ClassUnicode::empty();
    let mut long = set.clone();
    for (c, letter) in SHORT_ESCAPES {
        let one = char_set(c);
        if is_empty(&intersection(set, &one)) {
            continue;
        }
        letters.push(ClassUnicodeRange::new(letter, letter));
        if escapes != Escapes::Any {
            long.difference(&one);
        }
    }
    (letters, long)
}

/// The allowed case of hexadecimal digits.
#[derive(Clone, Copy)]
enum Case {
    Small,
    Either,
}

impl Case {
    fn of(escapes: Escapes) -> Case {
        match escapes {
            Escapes::Canonical => Case::Small,
            Escapes::Minimal | Escapes::Any => Case::Either,
        }
    }
}

/// One hexadecimal digit of an escape: the text before it, the digit that encodes the value 0, and the number
/// of bits that it carries.
struct Digit {
    introduced_by: &'static str,
    base: u32,
    bits: u32,
}

const fn digit(introduced_by: &'static str, base: u32, bits: u32) -> Digit {
    Digit {
        introduced_by,
        base,
        bits,
    }
}

/// `\uXXXX` of a character of the basic plane.
const BASIC: [Digit; 4] = [
    digit("\\u", 0, 4),
    digit("", 0, 4),
    digit("", 0, 4),
    digit("", 0, 4),
];

/// `\uD8XX\uDCXX` for the twenty bits above 0x10000: the first digit of a surrogate is always D.
const PAIR: [Digit; 6] = [
    digit("\\uD", 8, 2),
    digit("", 0, 4),
    digit("", 0, 4),
    digit("\\uD", 12, 2),
    digit("", 0, 4),
    digit("", 0, 4),
];

fn numeric_escapes(set: &ClassUnicode, case: Case) -> Hir {
    let mut basic = Vec::new();
    let mut beyond = Vec::new();
    for range in set.ranges() {
        let (start, end) = (u32::from(range.start()), u32::from(range.end()));
        // A range of characters may extend across the surrogates, which are not characters.
        push_clipped(&mut basic, start, end, 0, 0xd7ff);
        push_clipped(&mut basic, start, end, 0xe000, 0xffff);
        push_clipped(&mut beyond, start, end, 0x1_0000, 0x10_ffff);
    }
    let beyond: Vec<_> = beyond
        .iter()
        .map(|&(start, end)| (start - 0x1_0000, end - 0x1_0000))
        .collect();
    Hir::alternation(vec![numbers(&basic, &BASIC, case), numbers(&beyond, &PAIR, case)])
}

/// Ranges of numbers, both ends included.
type Ranges = Vec<(u32, u32)>;

fn push_clipped(out: &mut Ranges, start: u32, end: u32, least: u32, most: u32) {
    let (start, end) = (start.max(least), end.min(most));
    if start <= end {
        out.push((start, end));
    }
}

/// Returns the numbers in `ranges`, written with these digits. Digits with the same continuations are kept
/// together, so that a whole plane costs one class for each digit.
fn numbers(ranges: &[(u32, u32)], digits: &[Digit], case: Case) -> Hir {
    let Some((first, rest)) = digits.split_first() else {
        return if ranges.is_empty() {
            Hir::fail()
        } else {
            Hir::empty()
        };
    };
    let below: u32 = rest.iter().map(|digit| digit.bits).sum();
    let mut groups: Vec<(Vec<u32>, Ranges)> = Vec::new();
    for value in 0..1_u32 << first.bits {
        let (start, end) = (value << below, ((value + 1) << below) - 1);
        let mut inside = Vec::new();
        for &(from, to) in ranges {
            push_clipped(&mut inside, from, to, start, end);
        }
        let inside: Vec<_> = inside
            .iter()
            .map(|&(from, to)| (from - start, to - start))
            .collect();
        match groups.iter_mut().find(|(_, known)| *known == inside) {
            _ if inside.is_empty() => {}
            Some((values, _)) => values.push(value),
            None => groups.push((vec![value], inside)),
        }
    }
    let alternatives = groups.iter().map(|(values, inside)| {
        Hir::concat(vec![
            introduction(first, case),
            hex_digit(values, first.base, case),
            numbers(inside, rest, case),
        ])
    });
    Hir::alternation(alternatives.collect())
}

fn introduction(digit: &Digit, case: Case) -> Hir {
    let parts = digit.introduced_by.chars().map(|c| {
        if c == 'D' {
            hex_digit(&[13], 0, case)
        } else {
            Hir::literal([c as u8])
        }
    });
    Hir::concat(parts.collect())
}

fn hex_digit(values: &[u32], base: u32, case: Case) -> Hir {
    let digits = values
        .iter()
        .filter_map(|value| char::from_digit(base + value, 16));
    let spelled = digits.flat_map(|c| match case {
        Case::Small => [c, c],
        Case::Either => [c, c.to_ascii_uppercase()],
    });
    Hir::class(Class::Unicode(ClassUnicode::new(
        spelled.map(|c| ClassUnicodeRange::new(c, c)),
    )))
}

#[cfg(test)]
mod tests;
