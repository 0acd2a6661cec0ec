//! Whether an output is what a page shows: `…` stands for any text, an object for one that has at least its
//! fields.

use serde_json::Value;

/// Whether a text is of a pattern.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('…');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// The path of the first value of a page that an answer does not have.
pub(crate) fn missing(shown: &Value, answer: &Value, path: &str) -> Option<String> {
    let differs = || Some(format!("{path}: {answer}, and not {shown}"));
    match (shown, answer) {
        (Value::Object(shown), Value::Object(answer)) => shown.iter().find_map(|(key, value)| {
            let path = format!("{path}/{key}");
            missing(value, answer.get(key).unwrap_or(&Value::Null), &path)
        }),
        (Value::Array(shown), Value::Array(answer)) if shown.len() == answer.len() => {
            let both = shown.iter().zip(answer).enumerate();
            let mut differences =
                both.filter_map(|(at, (shown, answer))| missing(shown, answer, &format!("{path}/{at}")));
            differences.next()
        }
        (Value::String(pattern), Value::String(text)) if matches(pattern, text) => None,
        (Value::Number(shown), Value::Number(answer)) => {
            let (shown, answer) = (shown.as_f64()?, answer.as_f64()?);
            let near = (shown - answer).abs() <= 0.01 * shown.abs().max(answer.abs());
            if near { None } else { differs() }
        }
        _ if shown == answer => None,
        _ => differs(),
    }
}

#[test]
fn dots_stand_for_any_text() {
    for (pattern, text, right) in [
        ("a", "a", true),
        ("a", "ab", false),
        ("a…", "ab", true),
        ("…b", "ab", true),
        ("…a", "ab", false),
        ("a…b…c", "a b\nc", true),
        ("a…b…c", "a c b", false),
        ("…", "", true),
    ] {
        assert_eq!(matches(pattern, text), right, "{pattern} {text}");
    }
}

#[test]
fn what_is_shown_must_be_there() {
    let answer = serde_json::json!({"a": [1, {"b": "xyz"}], "c": -0.001_65});
    let has = |shown: Value| missing(&shown, &answer, "").is_none();
    assert!(has(serde_json::json!({"a": [1, {"b": "x…"}]})));
    assert!(has(serde_json::json!({"c": -0.00165})));
    assert!(!has(serde_json::json!({"a": [1]})));
    assert!(!has(serde_json::json!({"a": [1, {"b": "y"}]})));
    assert!(!has(serde_json::json!({"d": 1})));
}
