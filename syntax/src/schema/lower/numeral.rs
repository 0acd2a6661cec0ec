//! How the numbers of JSON are written, as regular expressions: the spellings that sets of numbers are taken
//! out of.
//!
//! Exponents are kept within what a binary number of 64 bits holds, because most parsers read what is larger
//! as infinity:
//!
//! ```text
//!   one digit before the point     up to e307, and of e308 up to 1.69…e308 and 1.7976931348623157e308
//!   any others                     up to e99: finite with up to 209 digits before the point
//! ```
//!
//! Exponents of zero and exponents with a minus are never too large, and a constant has the exponent that it
//! has.
//!
//! Where numbers are written as doubles, at most 17 significant digits are left of that, and an exponent of
//! at most three:
//!
//! ```text
//!   digits      0   12   12.5   12345678901234567     17, wherever the point stands
//!   small       0.000001234…                          and up to 6 zeros before them, as JavaScript writes
//!   exponent    1.25e-07   5E+300                     three digits after any of these
//! ```
//!
//! Integers are written in at most 20 digits, which every integer of 64 bits is.
//!
//! What is asked of a number may need more. Between two different bounds of `n` digits lies a number of
//! `n + 1`, and ten times as many with each further digit, so that as many digits are allowed as surely
//! suffice. Bounds of which that is a great many, or which lie beyond the range of doubles, leave all
//! spellings.

use std::sync::OnceLock;

use regex_syntax::hir::Hir;

use crate::schema::forms::NumberShape;
use crate::schema::text::hir::{any, any_digit, class, concat, digit, optional, plus, repeat, star, text};
use lexiform_automata::grammar::Expression;

use super::digits::{
    fraction, padded_at_most, padded_between, sign, signed_exponent_at_most, signed_exponent_equal, zeros,
};

/// The spellings that the bounds of a number, and its exceptions, are taken out of.
#[derive(Clone, Copy)]
pub(super) enum Spelling {
    /// Digits, as draft 4 has integers.
    Integer,
    /// The same without `-0`.
    Digits,
    /// What draft 4 does not take for an integer.
    Point,
    ComparablePoint,
    Whole,
    WholeToldApart,
    NotWhole,
    Comparable,
    Any,
}

impl Spelling {
    /// The expression, which nearly every schema has several of: made and hashed once.
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

/// Digits without a leading zero.
pub(super) fn integer() -> Hir {
    any([text("0"), concat([digit(b'1', b'9'), star(any_digit())])])
}

pub(super) fn e() -> Hir {
    class(&[(b'E', b'E'), (b'e', b'e')])
}

pub(super) fn exponent() -> Hir {
    concat([e(), optional(sign()), plus(any_digit())])
}

/// The greatest exponent after any digits, and after a single one that is not zero.
const EXPONENT: i64 = 99;
const EXPONENT_OF_ONE: i64 = 307;

/// Digits, with a point or without, and an exponent that leaves them finite.
fn with_exponent() -> Hir {
    let any_digits = concat([
        integer(),
        optional(fraction()),
        e(),
        signed_exponent_at_most(EXPONENT),
    ]);
    any([any_digits, scientific()])
}

/// `d.ddd e±ddd` with a first digit that is not zero.
fn scientific() -> Hir {
    let usual = concat([
        digit(b'1', b'9'),
        optional(fraction()),
        e(),
        signed_exponent_at_most(EXPONENT_OF_ONE),
    ]);
    any([usual, largest(star(any_digit()))])
}

/// `1.ddd e308` up to the largest number of 64 bits, without those between 1.7e308 and it. `tail` is what may
/// stand after the first digit after the point.
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

/// Plain or scientific.
fn comparable() -> Hir {
    any([concat([integer(), optional(fraction())]), scientific(), zero()])
}

/// Spellings of numbers without fractional part: digits with perhaps a point and zeros, and those of
/// [`scaled`] after any digits, or after one where values are told apart: `12e1` would get around an
/// exception of 120.
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

/// As many digits after the point as a binary number of 64 bits has.
const DECIMALS: u32 = 16;

/// What follows the digits before the point of a whole number with an exponent of at most `most`: one without
/// minus after zeros, or one that reaches beyond the last digit. Of the last kind those with few digits after
/// the point are known.
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

/// Spellings of numbers with a fractional part.
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

/// The digits that tell any two doubles apart.
const DIGITS: usize = 17;

/// The digits of the exponent of a double, which is at most 308.
const EXPONENT_DIGITS: u32 = 3;

/// The most digits that are counted.
const MOST_DIGITS: usize = 40;

/// The zeros that may stand between the point and the first other digit.
const ZEROS: u32 = 6;

/// The exponents of values with which numbers are compared, where three digits suffice to write those beside
/// them.
const RANGE: std::ops::RangeInclusive<i64> = -900..=300;

/// The spellings that the numbers of a shape are taken out of; `None` where all are needed.
pub(super) fn as_doubles(shape: &NumberShape) -> Option<Expression> {
    static USUAL: OnceLock<Expression> = OnceLock::new();
    match digits_needed(shape)? {
        DIGITS => Some(USUAL.get_or_init(|| double(DIGITS as u32).into()).clone()),
        more => Some(double(more as u32).into()),
    }
}

/// The digits of the largest integer of 64 bits, 18446744073709551615.
const INTEGER_DIGITS: usize = 20;

/// The digits in which the integers of a shape are written; `None` where all are needed.
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

/// How many digits integers beyond the bounds and the exceptions of a shape surely need.
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

/// How many digits the numbers of a shape surely need.
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
            // A large number that is not whole has all digits before the point.
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

/// At most this many further digits, with a point among them or not.
fn further(digits: u32) -> Hir {
    let mut rest = Hir::empty();
    for left in 1..=digits {
        let fraction = concat([text("."), repeat(any_digit(), 1, Some(left))]);
        rest = optional(any([concat([any_digit(), rest]), fraction]));
    }
    rest
}
