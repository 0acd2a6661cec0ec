//! How the numbers of JSON are written, as regular expressions: the spellings that sets of numbers are taken out of.
//!
//! Exponents are kept within what a binary number of 64 bits holds, because most parsers read what is larger as infinity:
//!
//! ```text
//!   one digit before the point     up to e307, and of e308 up to 1.69…e308 and 1.7976931348623157e308
//!   any others                     up to e99: finite with up to 209 digits before the point
//! ```
//!
//! Exponents of zero and exponents with a minus are never too large, and a constant has the exponent that it has.

use std::sync::OnceLock;

use regex_syntax::hir::Hir;

use crate::grammar::Expression;
use crate::schema::text::hir::{any, any_digit, class, concat, digit, optional, plus, repeat, star, text};

use super::digits::{
    fraction, padded_at_most, padded_between, sign, signed_exponent_at_most, signed_exponent_equal, zeros,
};

/// The spellings that the bounds of a number, and its exceptions, are taken out of.
#[derive(Clone, Copy)]
pub(super) enum Spelling {
    /// Digits, as draft 4 has integers.
    Integer,
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
        static KNOWN: [OnceLock<Expression>; 8] = [const { OnceLock::new() }; 8];
        let known = KNOWN[self as usize].get_or_init(|| signed(self.magnitude()).into());
        known.clone()
    }

    fn magnitude(self) -> Hir {
        match self {
            Spelling::Integer => integer(),
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

/// `1.ddd e308` up to the largest number of 64 bits, without those between 1.7e308 and it. `tail` is what may stand after
/// the first digit after the point.
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

/// Spellings of numbers without fractional part: digits with perhaps a point and zeros, and those of [`scaled`] after any
/// digits, or after one where values are told apart: `12e1` would get around an exception of 120.
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

/// What follows the digits before the point of a whole number with an exponent of at most `most`: one without minus after
/// zeros, or one that reaches beyond the last digit. Of the last kind those with few digits after the point are known.
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
