//! The notation of JSON numbers as regular expressions: the spellings from which sets of numbers are
//! selected.
//!
//! Exponents are kept within the range of a 64-bit floating-point number, because most parsers read anything
//! larger as infinity:
//!
//! ```text
//!   one digit before the point     up to e307, and of e308 up to 1.69…e308 and 1.7976931348623157e308
//!   any others                     up to e99: finite with up to 209 digits before the point
//! ```
//!
//! Exponents of zero and exponents with a minus are never too large, and a constant keeps its exponent.
//!
//! If numbers are written as doubles, these are further limited to 17 significant digits and an exponent of
//! at most three digits:
//!
//! ```text
//!   digits      0   12   12.5   12345678901234567     17, wherever the point is
//!   small       0.000001234…                          and up to 6 zeros before them, as JavaScript writes
//!   exponent    1.25e-07   5E+300                     three digits after any of these
//! ```
//!
//! Integers are written in at most 20 digits, which are enough for every 64-bit integer.
//!
//! The constraints on a number may need more. Between two different bounds of `n` digits there is a number of
//! `n + 1` digits, and ten times as many with each further digit, so as many digits are allowed as certainly
//! suffice. If the bounds need a great many digits, or are beyond the range of doubles, all spellings are
//! kept.

use std::sync::OnceLock;

use regex_syntax::hir::Hir;

use crate::schema::decimal::{Decimal, Plain};
use crate::schema::forms::NumberShape;
use crate::schema::options::Numbers;
use crate::schema::text::hir::{
    any, any_digit, class, concat, digit, nothing, optional, plus, repeat, star, text,
};
use lexiform_automata::grammar::Expression;

use super::digits::{
    fraction, padded_at_most, padded_between, sign, signed_exponent_at_most, signed_exponent_equal, zeros,
};

/// The spellings from which the bounds and exceptions of a number select.
#[derive(Clone, Copy)]
pub(super) enum Spelling {
    /// Digits, which are the integers of draft 4.
    Integer,
    /// Digits, without `-0`.
    Digits,
    /// The numbers that are not integers in draft 4.
    Point,
    ComparablePoint,
    Whole,
    WholeToldApart,
    NotWhole,
    Comparable,
    Any,
}

impl Spelling {
    /// Returns the expression. It is built and hashed only once, because nearly every schema contains several
    /// of them.
    pub(super) fn expression(self) -> Expression {
        static KNOWN: [OnceLock<Expression>; 9] = [const { OnceLock::new() }; 9];
        let known = KNOWN[self as usize].get_or_init(|| match self {
            Spelling::Digits => any([text("0"), signed(positive_integer())]).into(),
            _ => signed(self.magnitude()).into(),
        });
        known.clone()
    }

    fn magnitude(self) -> Hir {
        match self {
            Spelling::Integer | Spelling::Digits => integer(),
            Spelling::Point => any([concat([integer(), fraction()]), with_exponent()]),
            Spelling::ComparablePoint => any([concat([integer(), fraction()]), scientific()]),
            Spelling::Whole => whole_number(false),
            Spelling::WholeToldApart => whole_number(true),
            Spelling::NotWhole => not_whole_number(),
            Spelling::Comparable => comparable(),
            Spelling::Any => any([concat([integer(), optional(fraction())]), with_exponent()]),
        }
    }
}

pub(super) fn positive_integer() -> Hir {
    concat([digit(b'1', b'9'), star(any_digit())])
}

pub(super) fn signed(magnitude: Hir) -> Hir {
    concat([optional(text("-")), magnitude])
}

/// Returns digits without a leading zero.
pub(super) fn integer() -> Hir {
    any([text("0"), concat([digit(b'1', b'9'), star(any_digit())])])
}

pub(super) fn e() -> Hir {
    class(&[(b'E', b'E'), (b'e', b'e')])
}

pub(super) fn exponent() -> Hir {
    concat([e(), optional(sign()), plus(any_digit())])
}

/// The greatest exponents after any digits, and after a single nonzero one.
const EXPONENT: i64 = 99;
const EXPONENT_OF_ONE: i64 = 307;

/// Returns digits, with or without a point, and an exponent that keeps the number finite.
fn with_exponent() -> Hir {
    let any_digits = concat([
        integer(),
        optional(fraction()),
        e(),
        signed_exponent_at_most(EXPONENT),
    ]);
    any([any_digits, scientific()])
}

/// Returns `d.ddd e±ddd` with a nonzero first digit.
fn scientific() -> Hir {
    let usual = concat([
        digit(b'1', b'9'),
        optional(fraction()),
        e(),
        signed_exponent_at_most(EXPONENT_OF_ONE),
    ]);
    any([usual, largest(star(any_digit()))])
}

/// Returns `1.ddd e308` up to the largest 64-bit floating-point number, without those between 1.7e308 and it.
/// `tail` is what may follow the first digit after the point.
fn largest(tail: Hir) -> Hir {
    let decimals = any([concat([digit(b'0', b'6'), tail]), text("7976931348623157")]);
    concat([
        text("1"),
        optional(concat([text("."), decimals])),
        e(),
        signed_exponent_equal(EXPONENT_OF_ONE + 1),
    ])
}

pub(super) fn zero() -> Hir {
    concat([text("0"), zeros(), optional(exponent())])
}

/// Returns plain or scientific spellings.
fn comparable() -> Hir {
    any([concat([integer(), optional(fraction())]), scientific(), zero()])
}

/// Returns spellings of numbers without a fractional part: digits, optionally with a point and zeros, and
/// those of [`scaled`] after any digits, or after a single digit if values are distinguished: `12e1` would
/// bypass an exception of 120.
fn whole_number(told_apart: bool) -> Hir {
    let one_digit = concat([digit(b'1', b'9'), scaled(EXPONENT_OF_ONE)]);
    let mut ways = vec![
        concat([integer(), zeros()]),
        one_digit,
        largest(repeat(any_digit(), 0, Some(DECIMALS - 1))),
    ];
    if !told_apart {
        ways.push(concat([integer(), scaled(EXPONENT)]));
    }
    any(ways)
}

/// The number of digits after the point of a 64-bit floating-point number.
const DECIMALS: u32 = 16;

/// Returns the part of a whole number after the digits before its point, with an exponent of at most `most`:
/// either a non-negative exponent after zeros, or an exponent that reaches beyond the last digit. Of the
/// second kind, only those with few digits after the point are included.
fn scaled(most: i64) -> Hir {
    let exponent = concat([zeros(), e(), optional(text("+")), padded_at_most(most)]);
    let digits = repeat(any_digit(), 1, Some(DECIMALS));
    any([
        exponent,
        concat([
            text("."),
            digits,
            e(),
            optional(text("+")),
            padded_between(i64::from(DECIMALS), most),
        ]),
    ])
}

/// Returns spellings of numbers with a fractional part.
fn not_whole_number() -> Hir {
    let some = concat([text("."), star(any_digit()), digit(b'1', b'9'), star(any_digit())]);
    let small = concat([
        digit(b'1', b'9'),
        optional(fraction()),
        e(),
        signed_exponent_at_most(-1),
    ]);
    any([concat([integer(), some]), small])
}

/// The number of digits that distinguish any two doubles.
const DIGITS: usize = 17;

/// The number of digits in the exponent of a double, which is at most 308.
const EXPONENT_DIGITS: u32 = 3;

/// The most digits that are counted.
const MOST_DIGITS: usize = 40;

/// The most zeros between the point and the first nonzero digit.
const ZEROS: u32 = 6;

/// The exponents of bounds and exceptions for which three digits of exponent are enough to write the numbers
/// next to them.
const RANGE: std::ops::RangeInclusive<i64> = -900..=300;

/// Returns the spellings from which the numbers of a shape are selected, or `None` if all are needed.
pub(super) fn as_doubles(shape: &NumberShape) -> Option<Expression> {
    static USUAL: OnceLock<Expression> = OnceLock::new();
    match digits_needed(shape)? {
        DIGITS => Some(USUAL.get_or_init(|| double(DIGITS as u32).into()).clone()),
        more => Some(double(more as u32).into()),
    }
}

/// The number of digits of the largest 64-bit integer, 18446744073709551615.
const INTEGER_DIGITS: usize = 20;

/// Returns the digits in which the integers of a shape are written, or `None` if all are needed.
pub(super) fn as_integers(shape: &NumberShape) -> Option<Expression> {
    static USUAL: OnceLock<Expression> = OnceLock::new();
    match integer_digits_needed(shape)? {
        INTEGER_DIGITS => Some(USUAL.get_or_init(|| digits(INTEGER_DIGITS as u32)).clone()),
        more => Some(digits(more as u32)),
    }
}

fn digits(most: u32) -> Expression {
    let rest = repeat(any_digit(), 0, Some(most - 1));
    any([text("0"), signed(concat([digit(b'1', b'9'), rest]))]).into()
}

/// Returns the number of digits that certainly suffice for integers beyond the bounds and exceptions of a
/// shape.
fn integer_digits_needed(shape: &NumberShape) -> Option<usize> {
    let bounds = shape.lower.iter().chain(&shape.upper).map(|bound| &bound.value);
    let largest = bounds
        .chain(&shape.except)
        .filter(|value| !value.is_zero())
        .map(|value| usize::try_from(value.exponent()).unwrap_or(0))
        .max();
    let told_apart = 1 + shape.except.len().to_string().len();
    let most = largest.map_or(INTEGER_DIGITS, |exponent| {
        INTEGER_DIGITS.max(exponent + 1 + told_apart)
    });
    (most <= MOST_DIGITS).then_some(most)
}

/// Returns the number of digits that certainly suffice for the numbers of a shape.
fn digits_needed(shape: &NumberShape) -> Option<usize> {
    let bounds = shape.lower.iter().chain(&shape.upper).map(|bound| &bound.value);
    let told_apart = 1 + shape.except.len().to_string().len();
    let mut most = DIGITS;
    for value in bounds.chain(&shape.except).filter(|value| !value.is_zero()) {
        if !RANGE.contains(&value.exponent()) {
            return None;
        }
        most = most.max(value.digits().len() + 1 + told_apart);
        if !shape.not_steps.is_empty() {
            // A large number that is not whole has all its digits before the point.
            most = most.max(usize::try_from(value.exponent()).unwrap_or(0) + 2 + told_apart);
        }
    }
    (most <= MOST_DIGITS).then_some(most)
}

fn double(digits: u32) -> Hir {
    let small = concat([
        repeat(text("0"), 0, Some(ZEROS)),
        digit(b'1', b'9'),
        repeat(any_digit(), 0, Some(digits - 1)),
    ]);
    let small = concat([text("."), any([small, repeat(text("0"), 1, Some(ZEROS))])]);
    let large = concat([digit(b'1', b'9'), further(digits - 1)]);
    let mantissa = any([concat([text("0"), optional(small)]), large]);
    let exponent = concat([
        e(),
        optional(sign()),
        repeat(any_digit(), 1, Some(EXPONENT_DIGITS)),
    ]);
    concat([signed(mantissa), optional(exponent)])
}

/// Returns at most `digits` further digits, optionally with a point among them.
fn further(digits: u32) -> Hir {
    let mut rest = Hir::empty();
    for left in 1..=digits {
        let fraction = concat([text("."), repeat(any_digit(), 1, Some(left))]);
        rest = optional(any([concat([any_digit(), rest]), fraction]));
    }
    rest
}

/// Returns the usual spellings of finitely many values. The part after the digits is written once, because an
/// automaton of many bare literals is built in linear time: 120,000 integers with a tail each took 9 s before
/// they were refused.
pub(super) fn constants(values: &[Decimal], plain: Option<bool>, numbers: Numbers) -> Hir {
    let (mut whole, mut fractions, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for value in values {
        let usual = !value.is_zero() && (plain == Some(true) || (-4..16).contains(&value.exponent()));
        let sign: &[u8] = if value.is_negative() { b"-" } else { b"" };
        match value.plain() {
            _ if !usual => others.push(match numbers {
                Numbers::Double if plain != Some(false) => needed(value, plain),
                _ => constant(value, plain),
            }),
            digits if digits.fraction.is_empty() => whole.push(text([sign, &digits.whole].concat())),
            digits => fractions.push(text([sign, &digits.whole, b".", &digits.fraction].concat())),
        }
    }
    let groups = match numbers {
        Numbers::Double if plain != Some(false) => [(whole, nothing()), (fractions, nothing())],
        _ => [(whole, zeros_after(plain)), (fractions, star(text("0")))],
    };
    let groups = groups.into_iter().filter(|(group, _)| !group.is_empty());
    any(groups
        .map(|(group, tail)| concat([any(group), tail]))
        .chain(others))
}

/// Returns the zeros that may follow a whole number, in a spelling with or without a point.
fn zeros_after(plain: Option<bool>) -> Hir {
    match plain {
        Some(true) => nothing(),
        Some(false) => concat([text("."), plus(text("0"))]),
        None => zeros(),
    }
}

/// Returns the usual spellings of one value.
fn constant(value: &Decimal, plain: Option<bool>) -> Hir {
    let sign = if value.is_negative() { text("-") } else { nothing() };
    if value.is_zero() {
        let magnitude = match plain {
            None => zero(),
            Some(true) => text("0"),
            Some(false) => concat([
                text("0"),
                any([exponent(), concat([zeros_after(plain), optional(exponent())])]),
            ]),
        };
        return concat([optional(text("-")), magnitude]);
    }
    let Plain { whole, fraction, .. } = value.plain();
    let magnitude = match fraction.is_empty() || plain == Some(true) {
        true => concat([text(&whole), zeros_after(plain)]),
        false => concat([text(&whole), text("."), text(&fraction), star(text("0"))]),
    };
    let usual = (-4..16).contains(&value.exponent());
    if usual || plain == Some(true) {
        return concat([sign, magnitude]);
    }
    concat([sign, any([magnitude, scientific_spellings(value)])])
}

/// Returns the spellings of one value that a program needs: all digits without unnecessary zeros, and an
/// exponent if the value is very large or small.
fn needed(value: &Decimal, plain: Option<bool>) -> Hir {
    if value.is_zero() {
        return text("0");
    }
    let sign = if value.is_negative() { text("-") } else { nothing() };
    let Plain { whole, fraction, .. } = value.plain();
    let digits = match fraction.is_empty() {
        true => text(&whole),
        false => concat([text(&whole), text("."), text(&fraction)]),
    };
    match plain {
        Some(true) => concat([sign, digits]),
        _ => concat([sign, any([digits, short_scientific(value)])]),
    }
}

/// Returns the digits of a value with a point after the first, and an exponent with at most two leading
/// zeros.
fn short_scientific(value: &Decimal) -> Hir {
    let (first, rest) = value.digits().split_at(1);
    let fraction = match rest.is_empty() {
        true => nothing(),
        false => concat([text("."), text(rest)]),
    };
    let exponent = value.exponent();
    let sign = match exponent {
        0 => optional(sign()),
        1.. => optional(text("+")),
        _ => text("-"),
    };
    let digits = text(exponent.abs().to_string());
    concat([
        text(first),
        fraction,
        e(),
        sign,
        repeat(text("0"), 0, Some(2)),
        digits,
    ])
}

/// Returns every spelling of a value, plain or scientific.
pub(super) fn all_spellings(value: &Decimal) -> Hir {
    if value.is_zero() {
        return concat([optional(text("-")), zero()]);
    }
    let sign = if value.is_negative() { text("-") } else { nothing() };
    let magnitude = value.magnitude();
    concat([
        sign,
        any([constant(&magnitude, None), scientific_spellings(&magnitude)]),
    ])
}

fn scientific_spellings(value: &Decimal) -> Hir {
    let (first, rest) = value.digits().split_at(1);
    let fraction = if rest.is_empty() {
        zeros()
    } else {
        concat([text("."), text(rest), star(text("0"))])
    };
    concat([
        text(first),
        fraction,
        e(),
        signed_exponent_equal(value.exponent()),
    ])
}
