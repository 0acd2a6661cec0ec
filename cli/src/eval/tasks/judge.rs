//! Judges an answer: is it right, how much of it, and where not.

use serde_json::{Value, json};

use super::decimal::Decimal;
use super::difference::{Compared, Difference, Wanted, compare, is_same, is_same_text};
use super::reading::{self, Json};
use super::task::{Checker, Task};

/// The verdict on an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Judgement {
    /// The share of the answer that is right, from 0 to 1.
    pub(crate) score: f64,
    /// `true` if the whole text is JSON that is valid under the schema of the task; `None` if it has none.
    pub(crate) is_valid: Option<bool>,
    /// The places that are wrong; none if the answer is right.
    pub(crate) differences: Vec<Difference>,
    /// Why nothing could be compared.
    pub(crate) unread: Option<String>,
}

impl Judgement {
    /// Returns `true` if the answer is right.
    pub(crate) fn is_right(&self) -> bool {
        self.differences.is_empty() && self.unread.is_none()
    }

    /// Returns what is wrong, in a line; empty if nothing is.
    pub(crate) fn reason(&self) -> String {
        if let Some(unread) = &self.unread {
            return unread.clone();
        }
        let mut told: Vec<String> = self
            .differences
            .iter()
            .take(TOLD)
            .map(ToString::to_string)
            .collect();
        let more = self.differences.len().saturating_sub(TOLD);
        told.extend((more > 0).then(|| format!("and {more} more")));
        told.join("; ")
    }

    /// Returns the verdict for programs.
    pub(crate) fn json(&self) -> Value {
        let differences = self
            .differences
            .iter()
            .map(|it| json!({"pointer": it.pointer, "got": it.got, "wanted": it.wanted}));
        json!({
            "right": self.is_right(),
            "score": self.score,
            "valid": self.is_valid,
            "differences": differences.collect::<Vec<_>>(),
            "unread": self.unread,
        })
    }
}

/// The most differences of a line.
const TOLD: usize = 3;

/// What a checker found: the comparison, or why there is nothing to compare.
type Found = Result<Compared, String>;

impl Task {
    /// Judges the text of an answer.
    pub(crate) fn judge(&self, text: &str) -> Judgement {
        let is_valid = self.validator.as_ref().map(|validator| {
            let whole = serde_json::from_str::<Value>(text).ok();
            let twice = || lexiform::verdict::find_twice(text.as_bytes()).is_some();
            whole.is_some_and(|value| !has_absurd_number(&value) && validator.is_valid(&value) && !twice())
        });
        let text = reading::after_thoughts(text);
        let json = reading::last_json(text, self.answer.shape());
        let twice = json.as_ref().and_then(|it| it.twice.clone());
        let found = match twice {
            Some((pointer, key)) => Err(format!(
                "an object has the key {key:?} twice{}",
                if pointer.is_empty() {
                    String::new()
                } else {
                    format!(", at {pointer}")
                }
            )),
            None => self.check(text, json.as_ref()),
        };
        match found {
            Ok(compared) => Judgement {
                score: compared.share(),
                is_valid,
                differences: compared.differences,
                unread: None,
            },
            Err(reason) => Judgement {
                score: 0.0,
                is_valid,
                differences: Vec::new(),
                unread: Some(reason),
            },
        }
    }

    /// Compares an answer with what is right. A value of JSON counts where the answer has one at the place
    /// that is asked for; otherwise its prose does.
    fn check(&self, text: &str, json: Option<&Json>) -> Found {
        if text.is_empty() {
            return Err("the answer is empty".to_owned());
        }
        let at = self.answer.at.as_deref();
        let place = at.unwrap_or_default();
        let value = json.and_then(|it| it.value.pointer(place));
        match &self.answer.checker {
            Checker::Json(wanted) => check_json(wanted, json),
            Checker::Exact { value: wanted, fold } => match (value, at, wanted) {
                (_, None, Value::String(wanted)) => Ok(one_text(wanted, text, *fold)),
                (Some(value), ..) => Ok(one(is_same(wanted, value, *fold), place, value, wanted)),
                (None, ..) => Ok(self.check_statement(wanted, text, *fold)),
            },
            Checker::Number {
                value: wanted,
                spelled,
                tolerance,
            } => {
                let (number, got) = match value.filter(|it| !it.is_object() && !it.is_array()) {
                    Some(value) => (number_of(value), value.clone()),
                    None => {
                        let number = reading::number(text);
                        (number.clone(), number.map_or(Value::Null, |it| it.json()))
                    }
                };
                let number = number.ok_or("the answer has no number")?;
                Ok(one(number.is_near(wanted, *tolerance), place, &got, spelled))
            }
            Checker::Set { members, fold } => {
                let value = value.ok_or_else(|| format!("the answer has no JSON array{}", said(place)))?;
                check_set(members, value, place, *fold)
            }
            Checker::ContainsAll { texts, fold } => {
                let text = match (at, value) {
                    (Some(_), Some(Value::String(text))) => text.as_str(),
                    _ => text,
                };
                Ok(check_contents(texts, text, place, *fold))
            }
        }
    }

    /// Compares the prose of an answer with a scalar.
    fn check_statement(&self, wanted: &Value, text: &str, fold: bool) -> Compared {
        let choices = self.choices();
        let place = "";
        match wanted {
            Value::String(wanted) if !choices.is_empty() => {
                let got = reading::choice(text, &choices);
                one(got == Some(wanted), place, &json!(got), &json!(wanted))
            }
            Value::String(wanted) => one_text(wanted, reading::statement(text), fold),
            Value::Number(number) => {
                let got = reading::number(text);
                let is_right = got.is_some() && got == Decimal::parse(&number.to_string());
                one(is_right, place, &got.map_or(Value::Null, |it| it.json()), wanted)
            }
            _ => one_text(&wanted.to_string(), reading::statement(text), true),
        }
    }
}

fn check_json(wanted: &Wanted, json: Option<&Json>) -> Found {
    let kind = if wanted.value.is_array() {
        "array"
    } else {
        "object"
    };
    let json = json.ok_or_else(|| format!("the answer has no whole JSON {kind}"))?;
    Ok(compare(wanted, &json.value))
}

/// Compares two lists without order. The score is the number of common members, of all members of either.
fn check_set(members: &[Value], value: &Value, place: &str, fold: bool) -> Found {
    let Some(got) = value.as_array() else {
        return Err(format!("the answer has no JSON array{}", said(place)));
    };
    let mut rest: Vec<(usize, &Value)> = got.iter().enumerate().collect();
    let mut compared = Compared::default();
    for member in members {
        compared.all += 1;
        match rest.iter().position(|(_, it)| is_same(member, it, fold)) {
            Some(found) => {
                rest.remove(found);
                compared.right += 1;
            }
            None => compared.differences.push(Difference {
                pointer: place.to_owned(),
                got: None,
                wanted: Some(member.clone()),
            }),
        }
    }
    for (index, extra) in rest {
        compared.all += 1;
        compared.differences.push(Difference {
            pointer: format!("{place}/{index}"),
            got: Some(extra.clone()),
            wanted: None,
        });
    }
    Ok(compared)
}

fn check_contents(texts: &[String], text: &str, place: &str, fold: bool) -> Compared {
    let cased = |text: &str| {
        if fold {
            text.to_lowercase()
        } else {
            text.to_owned()
        }
    };
    let whole = cased(text);
    let mut compared = Compared::default();
    for wanted in texts {
        compared.all += 1;
        match whole.contains(&cased(wanted)) {
            true => compared.right += 1,
            false => compared.differences.push(Difference {
                pointer: place.to_owned(),
                got: Some(json!(text)),
                wanted: Some(json!(wanted)),
            }),
        }
    }
    compared
}

/// Returns the number that a value is or states.
fn number_of(value: &Value) -> Option<Decimal> {
    match value {
        Value::Number(number) => Decimal::parse(&number.to_string()),
        Value::String(text) => reading::number(text),
        _ => None,
    }
}

fn one_text(wanted: &str, got: &str, fold: bool) -> Compared {
    one(is_same_text(wanted, got, fold), "", &json!(got), &json!(wanted))
}

/// Returns the comparison of a single value.
fn one(is_right: bool, place: &str, got: &Value, wanted: &Value) -> Compared {
    let difference = || Difference {
        pointer: place.to_owned(),
        got: Some(got.clone()).filter(|it| !it.is_null()),
        wanted: Some(wanted.clone()),
    };
    Compared {
        right: usize::from(is_right),
        all: 1,
        differences: if is_right { Vec::new() } else { vec![difference()] },
    }
}

fn said(place: &str) -> String {
    match place {
        "" => String::new(),
        place => format!(" at {place}"),
    }
}

/// Returns `true` if a value has a number whose digits nobody could write out, which a validator may try.
fn has_absurd_number(value: &Value) -> bool {
    match value {
        Value::Number(number) => Decimal::parse(&number.to_string()).is_none_or(|it| it.is_absurd()),
        Value::Array(items) => items.iter().any(has_absurd_number),
        Value::Object(members) => members.values().any(has_absurd_number),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(answer: &Value, schema: Option<&Value>) -> Task {
        let mut record = json!({"name": "t", "kind": "k", "prompt": "p", "answer": answer});
        if let Some(schema) = schema {
            record["schema"] = schema.clone();
        }
        Task::read(&record).expect("a task")
    }

    fn verdicts(answer: &Value, cases: &[(&str, f64)]) {
        let task = task(answer, None);
        for (text, score) in cases {
            let judgement = task.judge(text);
            assert!((judgement.score - score).abs() < 1e-12, "{text}: {judgement:?}");
            assert_eq!(judgement.is_right(), *score == 1.0, "{text}: {judgement:?}");
            assert_eq!(
                judgement.reason().is_empty(),
                *score == 1.0,
                "{text}: {judgement:?}"
            );
        }
    }

    #[test]
    fn numbers() {
        let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
        verdicts(
            &json!({"number": 1234.5, "at": "/answer"}),
            &[
                (r#"{"answer": 1234.5}"#, 1.0),
                (r#"{"answer": 12345e-1, "reasoning": "5"}"#, 1.0),
                (r#"{"answer": "$1,234.50"}"#, 1.0),
                ("first 12, so\n#### 1,234.5", 1.0),
                (r#"<think>{"answer": 1234.5}</think> 7"#, 0.0),
                (r#"{"answer": 1234.5, "answer": 1234.5}"#, 0.0),
                (r#"{"answer": [1234.5]} 3"#, 0.0),
                (r#"{"answer": NaN}"#, 0.0),
                (r#"{"answer": 1e999999999999999999999}"#, 0.0),
                (r#"{"answer": null}"#, 0.0),
                (&deep, 0.0),
                ("", 0.0),
                ("none", 0.0),
            ],
        );
        verdicts(
            &json!({"number": 0.3, "at": "/answer", "tolerance": 0.1}),
            &[
                (r#"{"answer": 0.4}"#, 1.0),
                (r#"{"answer": 0.41}"#, 0.0),
                ("0.2", 1.0),
            ],
        );
    }

    #[test]
    fn exact_values() {
        verdicts(
            &json!({"exact": "nk", "at": "/answer", "fold": true}),
            &[
                (r#"{"reasoning": "…", "answer": "NK"}"#, 1.0),
                ("The answer is \"nk\".", 1.0),
                (r#"{"answer": ["nk"]}"#, 0.0),
                (r#"{"answer": ""}"#, 0.0),
                ("nkx", 0.0),
            ],
        );
        verdicts(
            &json!({"exact": "a\nb"}),
            &[(" a\nb\n", 1.0), ("b", 0.0), ("A\nb", 0.0)],
        );
        verdicts(&json!({"exact": "{}"}), &[("{}", 1.0)]);
        verdicts(
            &json!({"exact": true, "at": "/ok"}),
            &[
                (r#"{"ok": true}"#, 1.0),
                ("True.", 1.0),
                (r#"{"ok": "true"}"#, 0.0),
                ("false", 0.0),
            ],
        );
        verdicts(
            &json!({"exact": [1, {"a": 2}]}),
            &[("so [1.0, {\"a\": 2}]", 1.0), ("[1]", 0.0)],
        );
        verdicts(&json!({"exact": 7, "at": "/n"}), &[("it is 7", 1.0), ("8", 0.0)]);
    }

    #[test]
    fn a_choice_in_prose_is_one_of_the_schema() {
        let schema = json!({"properties": {"label": {"enum": ["billing", "technical"]}}});
        let task = task(&json!({"exact": "billing", "at": "/label"}), Some(&schema));
        assert!(task.judge("It is no technical matter, so: billing").is_right());
        assert!(!task.judge("I do not know").is_right());
        assert!(!task.judge(r#"{"label": "technical"} (or billing)"#).is_right());
    }

    #[test]
    fn sets() {
        verdicts(
            &json!({"set": ["a", 1, 1], "at": "/x"}),
            &[
                (r#"{"x": [1, "a", 1.0]}"#, 1.0),
                (r#"{"x": [1, "a"]}"#, 2.0 / 3.0),
                (r#"{"x": [1, "a", 1, "b"]}"#, 0.75),
                (r#"{"x": []}"#, 0.0),
                (r#"{"x": "a"}"#, 0.0),
                ("a, 1, 1", 0.0),
            ],
        );
        verdicts(&json!({"set": []}), &[("[]", 1.0), ("[[]]", 0.0), ("", 0.0)]);
    }

    #[test]
    fn contents() {
        verdicts(
            &json!({"contains_all": ["Ab", "c"], "fold": true}),
            &[("c and ab", 1.0), ("c", 0.5), ("", 0.0)],
        );
        verdicts(
            &json!({"contains_all": ["x"], "at": "/t"}),
            &[(r#"{"t": "y", "u": "x"}"#, 0.0), (r#"{"t": "x"}"#, 1.0)],
        );
    }

    #[test]
    fn documents() {
        verdicts(
            &json!({"json": {"a": 1, "b": {"c": [1, 2]}}}),
            &[
                (r#"```json{"a": 1, "b": {"c": [1, 2]}}```"#, 1.0),
                (r#"{"a": 1, "b": {"c": [1]}}"#, 2.0 / 3.0),
                (r#"{"a": 1, "b": {"c": [1, 2]}, "d": 4}"#, 0.75),
                (r#"{"a": 1, "a": 1, "b": {"c": [1, 2]}}"#, 0.0),
                (r#"{"a": 1, "b": {"c": [1, 2]}"#, 0.0),
                ("[]", 0.0),
            ],
        );
    }

    #[test]
    fn validity_is_that_of_the_whole_text() {
        let schema = json!({"properties": {"a": {"type": "integer", "multipleOf": 3}}, "required": ["a"]});
        let task = task(&json!({"number": 3, "at": "/a"}), Some(&schema));
        for (text, is_valid, is_right) in [
            (" {\"a\": 3}\n", true, true),
            ("it is {\"a\": 3}", false, true),
            (r#"{"a": 6}"#, true, false),
            (r#"{"a": 3, "a": 3}"#, false, false),
            (r#"{"a": 1e999999999}"#, false, false),
            ("", false, false),
        ] {
            let judgement = task.judge(text);
            assert_eq!(
                (judgement.is_valid, judgement.is_right()),
                (Some(is_valid), is_right),
                "{text}"
            );
        }
    }

    #[test]
    fn reasons_name_the_place() {
        let task = task(&json!({"json": {"a": 1, "b": 2, "c": 3, "d": 4}}), None);
        let told = "/a: 9, wanted 1; /b: nothing, wanted 2; /c: nothing, wanted 3; and 1 more";
        assert_eq!(task.judge(r#"{"a": 9}"#).reason(), told);
        assert_eq!(task.judge("I").reason(), "the answer has no whole JSON object");
        let twice = task.judge(r#"{"a": {"b": 1, "b": 2}}"#).reason();
        assert_eq!(twice, "an object has the key \"b\" twice, at /a");
    }
}
