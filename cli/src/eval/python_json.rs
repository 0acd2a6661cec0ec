//! Writes JSON as Python's `json.dumps(data, ensure_ascii=False)` does.
//!
//! MaskBench stores instances as values and gives engines this text of them, so figures can only be compared
//! if the text is the same byte for byte. Strings are easy; numbers pass through Python's types on the way,
//! and most of this file deals with that:
//!
//! ```text
//!   literal          Python type   text
//!   -0, 12, 10^40    int           0, 12, all digits      (exact at any size; there is no negative zero)
//!   1.0, 1e5, 1E400  float         1.0, 100000.0, Infinity (shortest digits that read back as the same double)
//! ```

use serde_json::{Number, Value};

/// Returns the text of a value.
pub fn dumps(value: &Value) -> String {
    let mut text = String::new();
    write_value(value, &mut text);
    text
}

/// Writes a value. Its depth is bounded by the reader that created it, so recursion is safe here.
fn write_value(value: &Value, to: &mut String) {
    match value {
        Value::Null => to.push_str("null"),
        Value::Bool(truth) => to.push_str(if *truth { "true" } else { "false" }),
        Value::Number(number) => write_number(number, to),
        Value::String(text) => write_string(text, to),
        Value::Array(items) => {
            to.push('[');
            for (index, item) in items.iter().enumerate() {
                to.push_str(if index == 0 { "" } else { ", " });
                write_value(item, to);
            }
            to.push(']');
        }
        Value::Object(members) => {
            to.push('{');
            for (index, (key, member)) in members.iter().enumerate() {
                to.push_str(if index == 0 { "" } else { ", " });
                write_string(key, to);
                to.push_str(": ");
                write_value(member, to);
            }
            to.push('}');
        }
    }
}

fn write_string(text: &str, to: &mut String) {
    to.push('"');
    for it in text.chars() {
        match it {
            '"' => to.push_str("\\\""),
            '\\' => to.push_str("\\\\"),
            '\n' => to.push_str("\\n"),
            '\r' => to.push_str("\\r"),
            '\t' => to.push_str("\\t"),
            '\u{8}' => to.push_str("\\b"),
            '\u{c}' => to.push_str("\\f"),
            control if control < ' ' => to.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => to.push(other),
        }
    }
    to.push('"');
}

/// Writes a number. The workspace keeps numbers as their literals, so the text in the file can be read as
/// Python would read it.
fn write_number(number: &Number, to: &mut String) {
    let literal = number.to_string();
    if literal.contains(['.', 'e', 'E']) {
        to.push_str(&python_float(literal.parse().unwrap_or(f64::NAN)));
    } else {
        to.push_str(if literal == "-0" { "0" } else { &literal });
    }
}

/// Returns the `repr` of a Python float: the shortest digits that read back as the same double, with an
/// exponent only if the number is below 10⁻⁴ or at least 10¹⁶.
fn python_float(value: f64) -> String {
    if !value.is_finite() {
        return if value.is_nan() {
            "NaN"
        } else if value > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        }
        .to_owned();
    }
    // Rust's `{:e}` finds the same shortest digits: `1.25e-5`, `1e16`, `0e0`.
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        // `{:?}` keeps `.0` on whole numbers, but switches to exponents at different limits; `{}` never does.
        let plain = format!("{value}");
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dumped(json: &str) -> String {
        dumps(&serde_json::from_str(json).expect("test data is JSON"))
    }

    #[test]
    fn separators_order_and_empty_containers() {
        assert_eq!(
            dumped(r#"{"b":[1,{},[]],"a":null,"c":true}"#),
            r#"{"b": [1, {}, []], "a": null, "c": true}"#
        );
    }

    #[test]
    fn strings_keep_what_is_not_ascii_and_escape_what_must_be() {
        assert_eq!(dumped(r#""\u00e9\u2028\ud83d\ude00/\/""#), "\"é\u{2028}😀//\"");
        assert_eq!(
            dumped(r#""\"\\\b\f\n\r\t\u0000\u001f\u007f""#),
            "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001f\u{7f}\""
        );
    }

    #[test]
    fn integers_are_exact() {
        assert_eq!(
            dumped("[0, -0, -12, 9007199254740993]"),
            "[0, 0, -12, 9007199254740993]"
        );
        assert_eq!(
            dumped("123456789012345678901234567890"),
            "123456789012345678901234567890"
        );
    }

    /// The right-hand sides are the output of CPython 3.11 for `json.dumps(json.loads(literal))`.
    #[test]
    fn floats_are_written_as_python_writes_them() {
        let cases = [
            ("1.0", "1.0"),
            ("-0.0", "-0.0"),
            ("0e5", "0.0"),
            ("1e5", "100000.0"),
            ("1E400", "Infinity"),
            ("-1e400", "-Infinity"),
            ("1e-400", "0.0"),
            ("1e15", "1000000000000000.0"),
            ("1e16", "1e+16"),
            ("9999999999999998.0", "9999999999999998.0"),
            ("1.5e16", "1.5e+16"),
            ("123456789012345678.0", "1.2345678901234568e+17"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("1.25e-7", "1.25e-07"),
            ("1e-100", "1e-100"),
            ("1e+22", "1e+22"),
            ("5e-324", "5e-324"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("0.1", "0.1"),
            ("0.30000000000000004", "0.30000000000000004"),
            ("3.14159265358979323846", "3.141592653589793"),
            ("100.10", "100.1"),
        ];
        for (literal, expected) in cases {
            assert_eq!(dumped(literal), expected, "{literal}");
        }
    }
}
