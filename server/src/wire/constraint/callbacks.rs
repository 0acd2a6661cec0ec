//! Callbacks: how requests name them, and the JSON in which they are asked about texts and answer.
//!
//! ```text
//!   ─► {"id": "cb_…", "callback": "schema", "want": "verdicts", "texts": ["SELECT", "SELECT "], "done": [false, false]}
//!   ◄─ {"verdicts": [true, ["id", "name"]]}
//!   ─► {…, "want": "scores", …}
//!   ◄─ {"scores": [-1.5, "-inf"]}
//! ```

use std::sync::Arc;

use lexiform_law::monitor::{Question, Verdict};
use serde_json::{Value, json};

use crate::wire::fields::{Fields, Problems};

/// The most bytes of `data`, which is sent with every question.
const MOST_DATA: usize = 16 << 10;

/// A callback that a request names.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// The name that the operator gave it.
    pub name: String,
    /// The path of the name in the request.
    pub param: String,
    /// What the client wants to be sent with every question.
    pub data: Option<Value>,
}

impl Named {
    /// Takes the name from a field, and `data`, from an object that has no other fields.
    pub(in crate::wire) fn read(
        mut fields: Fields,
        name: &'static str,
        others: &[&'static str],
        problems: &mut Problems,
    ) -> Option<Named> {
        fields.ignore(others);
        let param = fields.path(name);
        let is_given = fields.has(name);
        let found = fields.string(name, problems);
        if !is_given {
            problems.invalid(&param, "expected the name of a callback of this service");
        }
        let data = fields.take("data");
        if data
            .as_ref()
            .is_some_and(|data| data.to_string().len() > MOST_DATA)
        {
            problems.invalid(
                fields.path("data"),
                format!("expected at most {MOST_DATA} bytes of JSON"),
            );
        }
        fields.finish_strict(problems);
        Some(Named {
            name: found?,
            param,
            data,
        })
    }
}

/// The kind of answer that a callback is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Whether texts may begin or end like this.
    Verdicts,
    /// By how much texts weigh more.
    Scores,
}

impl Wanted {
    /// Returns the field of the answer.
    pub fn name(self) -> &'static str {
        match self {
            Wanted::Verdicts => "verdicts",
            Wanted::Scores => "scores",
        }
    }
}

/// Returns the body of a question about texts.
pub fn question(id: &str, callback: &Named, wanted: Wanted, texts: &[Question]) -> String {
    let mut body = json!({
        "id": id,
        "callback": callback.name,
        "want": wanted.name(),
        "texts": texts.iter().map(|text| text.text.as_str()).collect::<Vec<_>>(),
        "done": texts.iter().map(|text| text.is_whole).collect::<Vec<_>>(),
    });
    if let Some(data) = &callback.data {
        body["data"] = data.clone();
    }
    body.to_string()
}

/// Reads the answer to a question: what was asked for about each text.
///
/// # Errors
/// Fails with what is wrong with it.
fn answers<A>(
    body: &[u8],
    wanted: Wanted,
    count: usize,
    read: impl Fn(&Value) -> Option<A>,
    expected: &str,
) -> Result<Vec<A>, String> {
    let name = wanted.name();
    let body: Value =
        serde_json::from_slice(body).map_err(|error| format!("its answer is not JSON: {error}"))?;
    let Some(items) = body.get(name).and_then(Value::as_array) else {
        return Err(format!("its answer has no list of {name}"));
    };
    if items.len() != count {
        let given = items.len();
        return Err(format!("its answer has {given} {name} for {count} texts"));
    }
    let item = |(number, item): (usize, &Value)| {
        read(item).ok_or_else(|| format!("{name}[{number}] of its answer is not {expected}"))
    };
    items.iter().enumerate().map(item).collect()
}

/// Reads the verdicts of an answer.
///
/// # Errors
/// Fails with what is wrong with the answer.
pub fn verdicts(body: &[u8], count: usize) -> Result<Vec<Verdict>, String> {
    let expected = "true, false, \"allowed\", or a list of strings that are not empty";
    answers(body, Wanted::Verdicts, count, verdict, expected)
}

fn verdict(value: &Value) -> Option<Verdict> {
    match value {
        Value::Bool(true) => Some(Verdict::Open),
        Value::Bool(false) => Some(Verdict::Forbidden),
        Value::String(word) => match word.as_str() {
            "allowed" => Some(Verdict::Allowed),
            "open" => Some(Verdict::Open),
            "forbidden" => Some(Verdict::Forbidden),
            _ => None,
        },
        Value::Array(items) => {
            let item = |item: &Value| item.as_str().filter(|item| !item.is_empty()).map(Arc::from);
            items.iter().map(item).collect::<Option<_>>().map(Verdict::Next)
        }
        Value::Null | Value::Number(_) | Value::Object(_) => None,
    }
}

/// Reads the scores of an answer.
///
/// # Errors
/// Fails with what is wrong with the answer.
pub fn scores(body: &[u8], count: usize) -> Result<Vec<f64>, String> {
    answers(body, Wanted::Scores, count, score, "a number or \"-inf\"")
}

fn score(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64().filter(|number| number.is_finite()),
        Value::String(word) => (word == "-inf").then_some(f64::NEG_INFINITY),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_whole_or_not_at_all() {
        let read = |body: &str| verdicts(body.as_bytes(), 2);
        let body = r#"{"verdicts": [true, ["users", "orders"]], "more": 1}"#;
        let next = Verdict::Next(vec!["users".into(), "orders".into()]);
        assert_eq!(read(body), Ok(vec![Verdict::Open, next]));
        assert_eq!(
            read(r#"{"verdicts": ["allowed", false]}"#),
            Ok(vec![Verdict::Allowed, Verdict::Forbidden])
        );
        for (wrong, word) in [
            ("", "JSON"),
            ("[]", "verdicts"),
            (r#"{"verdicts": true}"#, "verdicts"),
            (r#"{"verdicts": [true]}"#, "1 verdicts for 2 texts"),
            (r#"{"verdicts": [true, null]}"#, "verdicts[1]"),
            (r#"{"verdicts": ["yes", true]}"#, "verdicts[0]"),
            (r#"{"verdicts": [true, [""]]}"#, "verdicts[1]"),
            (r#"{"verdicts": [true, [1]]}"#, "verdicts[1]"),
            (r#"{"scores": [1, 2]}"#, "verdicts"),
        ] {
            let error = read(wrong).expect_err(wrong);
            assert!(error.contains(word), "{wrong}: {error}");
        }
        assert_eq!(
            scores(br#"{"scores": [-1.5, "-inf"]}"#, 2),
            Ok(vec![-1.5, f64::NEG_INFINITY])
        );
        for wrong in [
            r#"{"scores": [null]}"#,
            r#"{"scores": [1e999]}"#,
            r#"{"scores": ["inf"]}"#,
            r#"{"scores": [-Infinity]}"#,
        ] {
            assert!(scores(wrong.as_bytes(), 1).is_err(), "{wrong}");
        }
    }
}
