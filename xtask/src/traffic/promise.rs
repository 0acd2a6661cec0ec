//! Constraints of requests, and the check whether a text obeys.
//!
//! ```text
//!   turn ─► Promise ─┬─ fields ─► request
//!                    └─ obeys ◄── text ◄── Told ◄── answer: whole, or a stream of events
//! ```

use serde_json::{Value, json};

/// The constraint of one request.
#[derive(Clone, Copy)]
pub(super) struct Promise {
    kind: Kind,
    turn: usize,
}

/// What a constraint is about.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Person,
    List,
    Code,
    Choice,
    Sum,
    Letters,
}

/// The kinds that admit at least eight texts.
pub(super) const OF_MANY: &[Kind] = &[Kind::Person, Kind::List, Kind::Code];
/// The kinds whose texts are short.
pub(super) const SHORT: &[Kind] = &[Kind::Person, Kind::List, Kind::Code, Kind::Choice];
/// All kinds.
pub(super) const ALL: &[Kind] = &[
    Kind::Person,
    Kind::List,
    Kind::Code,
    Kind::Choice,
    Kind::Sum,
    Kind::Letters,
];
/// The letters of a long text.
const LETTERS: usize = 160;

impl Promise {
    /// Returns the constraint of a turn; turns take the kinds one after another.
    pub(super) fn of(kinds: &[Kind], turn: usize) -> Self {
        let kind = kinds[turn % kinds.len()];
        Self { kind, turn }
    }

    /// Returns the fields of the request.
    pub(super) fn fields(self) -> Value {
        match self.kind {
            Kind::Person => json!({"guided_json": {"type": "object", "properties": {
                "name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "minimum": 0, "maximum": 150}},
                "required": ["name", "age"], "additionalProperties": false}}),
            Kind::List => {
                json!({"guided_json": {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1,
                "maxItems": self.items()}})
            }
            Kind::Code => json!({"guided_regex": "[a-f]{3}-[0-9]{2}"}),
            Kind::Sum => {
                json!({"guided_grammar": "root ::= number (\"+\" number)* \"=\"\nnumber ::= [1-9] [0-9]?\n"})
            }
            Kind::Letters => {
                let pattern = format!("[a-z ]{{{LETTERS}}}");
                json!({"guided_regex": pattern, "max_tokens": 2 * LETTERS})
            }
            Kind::Choice => json!({"guided_choice": ["yes", "no"]}),
        }
    }

    /// Returns `true` if the text is one that the constraint admits.
    pub(super) fn obeys(self, text: &str) -> bool {
        match self.kind {
            Kind::Person => is_person(text),
            Kind::List => {
                let list: Vec<String> = serde_json::from_str(text).unwrap_or_default();
                (1..=self.items()).contains(&list.len())
                    && list.iter().all(|item| ["a", "b"].contains(&item.as_str()))
            }
            Kind::Code => match text.as_bytes() {
                [letters @ .., b'-', ten, one] => {
                    letters.len() == 3
                        && letters.iter().all(|letter| (b'a'..=b'f').contains(letter))
                        && ten.is_ascii_digit()
                        && one.is_ascii_digit()
                }
                _ => false,
            },
            Kind::Sum => text
                .strip_suffix('=')
                .is_some_and(|sum| sum.split('+').all(is_number)),
            Kind::Letters => {
                text.len() == LETTERS && text.bytes().all(|byte| byte == b' ' || byte.is_ascii_lowercase())
            }
            Kind::Choice => ["yes", "no"].contains(&text),
        }
    }

    /// Returns the most items of a list, which differs between turns, so that not all share one grammar.
    fn items(self) -> usize {
        3 + self.turn % 5
    }
}

fn is_person(text: &str) -> bool {
    let person: Value = serde_json::from_str(text).unwrap_or_default();
    let has_name = person["name"]
        .as_str()
        .is_some_and(|name| name.chars().count() <= 20);
    let has_age = person["age"].as_u64().is_some_and(|age| age <= 150);
    has_name && has_age && person.as_object().is_some_and(|fields| fields.len() == 2)
}

fn is_number(text: &str) -> bool {
    matches!(text.len(), 1 | 2) && !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// What an answer told.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// The text of the first choice, as far as it came.
    pub(super) content: String,
    /// Why it ended; empty if nothing says so.
    pub(super) finish: String,
    /// The code of an error; empty without one.
    pub(super) error: String,
}

impl Told {
    /// Reads a whole answer.
    pub(super) fn whole(body: &str) -> Self {
        let answer: Value = serde_json::from_str(body).unwrap_or_default();
        let choice = &answer["choices"][0];
        Self {
            content: text(&choice["message"]["content"]),
            finish: text(&choice["finish_reason"]),
            error: text(&answer["error"]["code"]),
        }
    }

    /// Reads a stream of events.
    pub(super) fn streamed(body: &str) -> Self {
        let mut told = Self::default();
        for line in body.lines().filter_map(|line| line.strip_prefix("data: ")) {
            let event: Value = serde_json::from_str(line).unwrap_or_default();
            let choice = &event["choices"][0];
            told.content += &text(&choice["delta"]["content"]);
            for (of, value) in [
                (&mut told.finish, &choice["finish_reason"]),
                (&mut told.error, &event["error"]["code"]),
            ] {
                *of = value.as_str().map_or(std::mem::take(of), str::to_owned);
            }
        }
        told
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_constraint_does_not_admit_is_seen() {
        let cases = [
            (r#"{"name": "a", "age": 7}"#, r#"{"name": "a", "age": 151}"#),
            (r#"["a","b"]"#, r#"["a","c"]"#),
            ("abc-12", "abg-12"),
            ("no", "maybe"),
            ("1+20=", "1+02="),
            (&"a ".repeat(LETTERS / 2), &"a ".repeat(LETTERS)),
        ];
        for (turn, (right, wrong)) in cases.into_iter().enumerate() {
            let promise = Promise::of(ALL, turn);
            assert!(promise.obeys(right), "{right}");
            for wrong in [wrong, "", &right[1..]] {
                assert!(!promise.obeys(wrong), "{wrong}");
            }
        }
        let list = |turn| Promise::of(&[Kind::List], turn).obeys(r#"["a","a","a","a"]"#);
        assert_eq!((list(1), list(5)), (true, false));
    }

    #[test]
    fn a_stream_is_read_with_what_ended_it() {
        let event = |delta: Value, finish: Value| {
            format!(
                "data: {}\n\n",
                json!({"choices": [{"delta": delta, "finish_reason": finish}]})
            )
        };
        let begun =
            event(json!({"content": "ye"}), Value::Null) + &event(json!({"content": "s"}), Value::Null);
        let told = |content: &str, finish: &str, error: &str| Told {
            content: content.to_owned(),
            finish: finish.to_owned(),
            error: error.to_owned(),
        };
        assert_eq!(Told::streamed(&begun), told("yes", "", ""));
        let ended = begun.clone() + &event(json!({}), "stop".into()) + "data: [DONE]\n\n";
        assert_eq!(Told::streamed(&ended), told("yes", "stop", ""));
        let failed = begun + "data: {\"error\":{\"code\":\"shutting_down\"}}\n\n";
        assert_eq!(Told::streamed(&failed), told("yes", "", "shutting_down"));
        assert_eq!(
            Told::whole(r#"{"error": {"code": "queue_full"}}"#),
            told("", "", "queue_full")
        );
    }
}
