//! Fractions, signs, and digits compared with a limit, as regular expressions: the building blocks of
//! languages of numbers.

use regex_syntax::hir::Hir;

use crate::schema::text::hir::{
    any, any_digit, class, concat, digit, digits, never, nothing, optional, plus, repeat, star, text,
};

/// Returns a point followed by one or more digits.
pub(super) fn fraction() -> Hir {
    concat([text("."), plus(any_digit())])
}

/// Returns either sign.
pub(super) fn sign() -> Hir {
    class(&[(b'+', b'+'), (b'-', b'-')])
}

/// Returns a point followed only by zeros, or nothing.
pub(super) fn zeros() -> Hir {
    optional(concat([text("."), plus(text("0"))]))
}

/// Returns the digits, without a leading zero, of a smaller number.
pub(super) fn whole_below(limit: &[u8]) -> Hir {
    let mut ways = Vec::new();
    if limit.len() > 1 {
        ways.push(text("0"));
        ways.push(concat([
            digit(b'1', b'9'),
            repeat(any_digit(), 0, Some(limit.len() as u32 - 2)),
        ]));
    }
    for (at, &here) in limit.iter().enumerate() {
        let least = if at == 0 && limit.len() > 1 { b'1' } else { b'0' };
        if here > least {
            ways.push(concat([
                text(&limit[..at]),
                digit(least, here - 1),
                digits(limit.len() - at - 1),
            ]));
        }
    }
    any(ways)
}

/// Returns the digits, without a leading zero, of a larger number.
pub(super) fn whole_above(limit: &[u8]) -> Hir {
    let length = limit.len() as u32;
    let mut ways = vec![concat([digit(b'1', b'9'), repeat(any_digit(), length, None)])];
    for (at, &here) in limit.iter().enumerate() {
        if here < b'9' {
            ways.push(concat([
                text(&limit[..at]),
                digit(here + 1, b'9'),
                digits(limit.len() - at - 1),
            ]));
        }
    }
    any(ways)
}

/// Returns a point and digits that are not above the limit, or nothing.
pub(super) fn fraction_at_most(limit: &[u8], strictly: bool) -> Hir {
    if limit.is_empty() {
        return if strictly { never() } else { zeros() };
    }
    let mut ways = Vec::new();
    for (at, &here) in limit.iter().enumerate() {
        if at > 0 {
            // A proper prefix of the limit is less, because the limit does not end in a zero.
            ways.push(text(&limit[..at]));
        }
        if here > b'0' {
            ways.push(concat([
                text(&limit[..at]),
                digit(b'0', here - 1),
                star(any_digit()),
            ]));
        }
    }
    if !strictly {
        ways.push(concat([text(limit), star(text("0"))]));
    }
    optional(concat([text("."), any(ways)]))
}

/// Returns a point and digits that are not below the limit; also nothing, if the limit has no digits.
pub(super) fn fraction_at_least(limit: &[u8], strictly: bool) -> Hir {
    let more = concat([star(any_digit()), digit(b'1', b'9'), star(any_digit())]);
    if limit.is_empty() {
        return if strictly {
            concat([text("."), more])
        } else {
            optional(fraction())
        };
    }
    let mut ways = Vec::new();
    for (at, &here) in limit.iter().enumerate() {
        if here < b'9' {
            ways.push(concat([
                text(&limit[..at]),
                digit(here + 1, b'9'),
                star(any_digit()),
            ]));
        }
    }
    ways.push(concat([
        text(limit),
        if strictly { more } else { star(any_digit()) },
    ]));
    concat([text("."), any(ways)])
}

/// Returns the digits, with leading zeros, of a number up to the limit.
pub(super) fn padded_at_most(limit: i64) -> Hir {
    let limit = limit.to_string();
    let below = whole_below(limit.as_bytes());
    concat([star(text("0")), any([below, text(&limit)])])
}

/// Returns the digits, with leading zeros, of a number from the limit on.
pub(super) fn padded_at_least(limit: i64) -> Hir {
    if limit <= 0 {
        return plus(any_digit());
    }
    let limit = limit.to_string();
    concat([
        star(text("0")),
        any([whole_above(limit.as_bytes()), text(&limit)]),
    ])
}

/// Returns the digits, with leading zeros, of a number from `least` to `most`, which is not less than
/// `least`.
pub(super) fn padded_between(least: i64, most: i64) -> Hir {
    let tens = |number: i64| (number / 10, (number % 10) as u8 + b'0');
    let ((first, from), (last, to)) = (tens(least), tens(most));
    if first == last {
        let beginning = if first > 0 {
            text(first.to_string())
        } else {
            nothing()
        };
        return concat([star(text("0")), beginning, digit(from, to)]);
    }
    let mut ways = vec![
        padded_between(least, first * 10 + 9),
        padded_between(last * 10, most),
    ];
    if first + 1 < last {
        ways.push(concat([padded_between(first + 1, last - 1), any_digit()]));
    }
    any(ways)
}

pub(super) fn signed_exponent_at_most(limit: i64) -> Hir {
    if limit < 0 {
        return concat([text("-"), padded_at_least(-limit)]);
    }
    any([
        concat([text("-"), plus(any_digit())]),
        concat([optional(text("+")), padded_at_most(limit)]),
    ])
}

pub(super) fn signed_exponent_at_least(limit: i64) -> Hir {
    if limit > 0 {
        return concat([optional(text("+")), padded_at_least(limit)]);
    }
    any([
        concat([optional(text("+")), plus(any_digit())]),
        concat([text("-"), padded_at_most(-limit)]),
    ])
}

pub(super) fn signed_exponent_equal(value: i64) -> Hir {
    let digits = concat([star(text("0")), text(value.abs().to_string())]);
    match value {
        0 => concat([optional(sign()), digits]),
        1.. => concat([optional(text("+")), digits]),
        _ => concat([text("-"), digits]),
    }
}
