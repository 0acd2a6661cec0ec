//! How numbers are written for people.

/// The number of digits that are shown.
const DIGITS: i32 = 3;

/// Writes a number with three significant digits, or all digits of its integer part, and separators of
/// thousands: `0.0123`, `4.5`, `12,345`. A number that is not finite is a dash.
pub(crate) fn number(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor();
    if !(-6.0..15.0).contains(&magnitude) {
        return format!("{value:.2e}");
    }
    let decimals = (DIGITS - 1 - magnitude as i32).max(0) as usize;
    let text = format!("{:.decimals$}", value.abs());
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let rest = rest.trim_end_matches('0');
    let sign = if value < 0.0 { "−" } else { "" };
    let point = if rest.is_empty() { "" } else { "." };
    format!("{sign}{}{point}{rest}", grouped(whole))
}

/// Writes a number as beside an axis: `2,000`, `20k`, `2M`.
pub(super) fn short(value: f64) -> String {
    match value.abs() {
        size if size < 1e4 || !size.is_finite() => number(value),
        size if size < 1e6 => number(value / 1e3) + "k",
        size if size < 1e9 => number(value / 1e6) + "M",
        size if size < 1e12 => number(value / 1e9) + "G",
        _ => format!("{value:.0e}"),
    }
}

/// Writes a share of 1 in percent, with as many decimals as tell it from 100%.
pub(super) fn percent(share: f64) -> String {
    let text = format!("{:.4}", 100.0 * share);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Writes a whole number with separators of thousands.
pub fn count(value: usize) -> String {
    grouped(&value.to_string())
}

fn grouped(digits: &str) -> String {
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_or_all_of_their_integer_part() {
        let written = [
            0.0,
            0.012_345,
            4.5,
            99.96,
            1234.5,
            1_234_567.0,
            -12.25,
            1e-9,
            1e20,
        ];
        let expected = [
            "0",
            "0.0123",
            "4.5",
            "100",
            "1,234",
            "1,234,567",
            "−12.2",
            "1.00e-9",
            "1.00e20",
        ];
        assert_eq!(written.map(number), expected);
        assert_eq!([f64::NAN, f64::INFINITY].map(number), ["–", "–"]);
        assert_eq!(
            [0.0, 0.5, 0.999, 0.999_99].map(percent),
            ["0", "50", "99.9", "99.999"]
        );
        let short = [500.0, 2000.0, 20_000.0, 2.5e6, 1e9, 1e15, 1e300].map(short);
        assert_eq!(short, ["500", "2,000", "20k", "2.5M", "1G", "1e15", "1e300"]);
        assert_eq!([count(0), count(999), count(5568)], ["0", "999", "5,568"]);
    }
}
