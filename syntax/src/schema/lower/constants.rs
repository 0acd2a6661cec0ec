//! The spellings of finitely many numbers, and of single ones.

use regex_syntax::hir::Hir;

use crate::schema::decimal::{Decimal, Plain};
use crate::schema::options::Numbers;
use crate::schema::text::hir::{any, concat, nothing, optional, plus, repeat, star, text};

use super::digits::{sign, signed_exponent_equal, zeros};
use super::numeral::{e, exponent, zero};

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
