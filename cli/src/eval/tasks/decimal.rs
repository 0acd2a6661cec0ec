//! Decimal numbers of any size, and how they are found in prose.
//!
//! Numbers of answers are compared as they are written: `1`, `1.0` and `10e-1` are the same number, and
//! `0.1` is a tenth.

use serde_json::Value;

/// A decimal number `±0.d₁d₂d₃… × 10^point`, with `d₁ ≠ 0` and no zero at the end, so that equal numbers
/// have equal fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    negative: bool,
    digits: String,
    point: i64,
}

/// Exponents beyond this are beyond every number that is computed with.
const LARGEST_POINT: i64 = 400;

impl Decimal {
    /// Parses a number as JSON spells it. `None` if it is no number, or its exponent does not fit 64 bits.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (negative, magnitude) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match magnitude.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
            None => (magnitude, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        if all.is_empty() || !all.bytes().all(|it| it.is_ascii_digit()) {
            return None;
        }
        let from_first = all.trim_start_matches('0');
        let zeros = i64::try_from(all.len() - from_first.len()).ok()?;
        let point = exponent
            .checked_add(i64::try_from(whole.len()).ok()?)?
            .checked_sub(zeros)?;
        let digits = from_first.trim_end_matches('0').to_owned();
        Some(match digits.is_empty() {
            true => Self {
                negative: false,
                digits,
                point: 0,
            },
            false => Self {
                negative,
                digits,
                point,
            },
        })
    }

    /// Returns `true` if the numbers differ by at most `tolerance`; without a tolerance, if they are equal.
    pub(super) fn is_near(&self, other: &Self, tolerance: f64) -> bool {
        if self == other {
            return true;
        }
        let distance = (self.rounded() - other.rounded()).abs();
        // A tolerance of 0.1 means a tenth, which binary numbers miss by less than this.
        tolerance > 0.0 && distance <= tolerance * (1.0 + 1e-9)
    }

    /// Returns `true` if the number is too large or too small for arithmetic.
    pub(super) fn is_absurd(&self) -> bool {
        self.point.abs() > LARGEST_POINT
    }

    /// Returns the number as JSON, or its digits as a text if its exponent is absurd.
    pub(super) fn json(&self) -> Value {
        let sign = if self.negative { "-" } else { "" };
        let digits = self.digits.len() as i64;
        let spelled = match self.point {
            _ if self.digits.is_empty() => "0".to_owned(),
            point if point.abs() > LARGEST_POINT => return format!("{sign}0.{}e{point}", self.digits).into(),
            point if point <= 0 => format!("{sign}0.{}{}", "0".repeat(-point as usize), self.digits),
            point if point >= digits => {
                format!("{sign}{}{}", self.digits, "0".repeat((point - digits) as usize))
            }
            point => {
                let (whole, fraction) = self.digits.split_at(point as usize);
                format!("{sign}{whole}.{fraction}")
            }
        };
        serde_json::from_str(&spelled).unwrap_or(Value::String(spelled))
    }

    /// Returns the nearest binary number; infinite if there is none.
    fn rounded(&self) -> f64 {
        let sign = if self.negative { "-" } else { "" };
        let text = format!("{sign}0.{}0e{}", self.digits, self.point);
        text.parse().unwrap_or(f64::NAN)
    }
}

/// Returns the first number of a text.
pub(super) fn first_in(text: &str) -> Option<Decimal> {
    Numbers { text, at: 0 }.next()
}

/// Returns the last number of a text.
pub(super) fn last_in(text: &str) -> Option<Decimal> {
    Numbers { text, at: 0 }.last()
}

/// The numbers of a text in order: digits, perhaps in groups of three with commas (`1,234,567`), with a
/// fraction, with an exponent, and with a sign before them or before their currency (`-$5`, `−5`).
struct Numbers<'a> {
    text: &'a str,
    at: usize,
}

impl Iterator for Numbers<'_> {
    type Item = Decimal;

    fn next(&mut self) -> Option<Decimal> {
        loop {
            let found = self.text.get(self.at..)?.find(|it: char| it.is_ascii_digit())?;
            let mut start = self.at + found;
            let end = end_of_number(self.text.as_bytes(), start);
            if self.text[..start].ends_with('.') && !self.text[..start - 1].ends_with(char::is_alphanumeric) {
                start -= 1;
            }
            self.at = end;
            let sign = if is_negative(&self.text[..start]) { "-" } else { "" };
            let number = Decimal::parse(&format!("{sign}{}", self.text[start..end].replace(',', "")));
            if number.is_some() {
                return number;
            }
        }
    }
}

/// Returns where the number ends that has a digit here.
fn end_of_number(text: &[u8], start: usize) -> usize {
    let digits = |from: usize| from + text[from..].iter().take_while(|it| it.is_ascii_digit()).count();
    let mut end = digits(start);
    if end - start <= 3 {
        while text.get(end) == Some(&b',') && digits(end + 1) == end + 4 {
            end += 4;
        }
    }
    if text.get(end) == Some(&b'.') {
        let fraction = digits(end + 1);
        end = if fraction > end + 1 { fraction } else { end };
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(end + 1), Some(b'-' | b'+')));
        let from = (end + 1 + sign).min(text.len());
        let exponent = digits(from);
        end = if exponent > from { exponent } else { end };
    }
    end
}

/// Returns `true` if a text ends with a minus sign that belongs to what follows, as in `= -`, and not
/// between two things, as in `7-`.
fn is_negative(before: &str) -> bool {
    let before = before.trim_end_matches(['$', '€', '£']);
    let rest = before.strip_suffix('-').or_else(|| before.strip_suffix('−'));
    rest.is_some_and(|rest| !rest.ends_with(|it: char| it.is_alphanumeric() || it == ')'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text).expect("a number")
    }

    #[test]
    fn spellings_of_a_number_are_equal() {
        for (one, other) in [
            ("1", "1.0"),
            ("10e-1", "1"),
            ("-0", "0.00"),
            ("007", "7"),
            ("1E3", "1000"),
        ] {
            assert_eq!(decimal(one), decimal(other), "{one} {other}");
        }
        let long = "9".repeat(5000);
        assert_ne!(decimal(&long), decimal(&format!("{long}.1")));
        assert_ne!(decimal("1"), decimal("-1"));
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in [
            "",
            "-",
            "NaN",
            "Infinity",
            ".",
            "1.2.3",
            "1e",
            "1e99999999999999999999",
            "0x10",
            "1,000",
        ] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_tolerance_is_met_exactly() {
        assert!(decimal("0.3").is_near(&decimal("0.4"), 0.1));
        assert!(!decimal("0.3").is_near(&decimal("0.4001"), 0.1));
        assert!(!decimal("1e999999").is_near(&decimal("2e999999"), 1.0));
        assert!(decimal("1e999999").is_near(&decimal("10e999998"), 0.0));
        assert!(!decimal("0.1").is_near(&decimal("0.1000000000000000000001"), 0.0));
    }

    #[test]
    fn numbers_are_shown_as_people_write_them() {
        for (text, shown) in [
            ("-0.050", "-0.05"),
            ("12.50", "12.5"),
            ("1e3", "1000"),
            ("0.0", "0"),
            ("7", "7"),
            ("1e-3", "0.001"),
            ("-2e900", "\"-0.2e901\""),
        ] {
            assert_eq!(decimal(text).json().to_string(), shown);
        }
    }

    #[test]
    fn numbers_are_found_in_prose() {
        for (text, first, last) in [
            ("She has 1,234.50 dollars.", "1234.5", "1234.5"),
            ("7-3 = 4.", "7", "4"),
            ("so x = -12, or −13", "-12", "-13"),
            ("-$5 and $-6", "-5", "-6"),
            ("1,2,3", "1", "3"),
            ("12,345,67", "12345", "67"),
            ("about .5 of v2.5", "0.5", "2.5"),
            ("6e2 and 3 eggs", "600", "3"),
            ("100% of 1e", "100", "1"),
        ] {
            assert_eq!(first_in(text), Some(decimal(first)), "{text}");
            assert_eq!(last_in(text), Some(decimal(last)), "{text}");
        }
        assert_eq!(last_in("NaN, or none"), None);
        assert_eq!(last_in(""), None);
    }
}
