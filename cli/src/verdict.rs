//! Verdicts on texts as the commands print them: the wrong line with a caret, and JSON.

use lexiform::error::Place;
use lexiform::verdict::{Expected, Shown, Unwritten, Verdict, end_of_string};
use serde_json::{Value, json};

use crate::shown::excerpt::excerpt;

/// Returns the wrong line of a text, with a caret; empty for a text that belongs.
pub fn wrong_line(verdict: &Verdict, text: &[u8]) -> String {
    let Some(offset) = verdict.offset(text) else {
        return String::new();
    };
    let shown = Shown::of(text, offset);
    let Place::LineColumn { line, .. } = shown.place() else {
        return String::new();
    };
    let length = match verdict {
        Verdict::Twice(_) => end_of_string(text, offset) - offset,
        Verdict::EndsEarly { .. } => 0,
        _ => shown.found().len_utf8(),
    };
    excerpt(&shown.text, shown.offset..shown.offset + length, line)
}

/// Returns the reason for programs; null for a text that belongs.
pub fn as_json(verdict: &Verdict, text: &[u8]) -> Value {
    let (Some(kind), Some(offset)) = (verdict.kind(), verdict.offset(text)) else {
        return Value::Null;
    };
    let (line, column) = match Shown::of(text, offset).place() {
        Place::LineColumn { line, column } => (line, column),
        _ => (1, 1),
    };
    let expected = verdict.expected().map(Expected::in_words);
    json!({"kind": kind, "byte": offset, "line": line, "column": column, "expected": expected,
           "message": verdict.reason(text)})
}

/// Returns why a text is never written although its value is allowed, with the flag that allows it.
pub fn in_words(unwritten: Unwritten) -> &'static str {
    match unwritten {
        Unwritten::KeyOrder => "order of keys: --key-order any",
        Unwritten::WhiteSpace => "white space",
        Unwritten::Both => "order of keys: --key-order any; white space",
    }
}
