//! Reading a JSON object field by field, noting every problem with the path of its field.

use serde_json::{Map, Value};

use crate::error::{ApiError, shortened};

/// How many problems of one request are told.
const LISTED: usize = 10;

/// Words in a field's name that make it look like a constraint on the output. A field with such a name that no
/// reader took is refused: answering unconstrained what asked for a constraint would be the worst failure.
const CONSTRAINT_WORDS: &[&str] = &[
    "guided",
    "grammar",
    "regex",
    "schema",
    "constrain",
    "structur",
    "format",
    "choice",
    "pattern",
    "json",
    "ebnf",
    "gbnf",
    "lark",
    "bnf",
    "allowed",
    "logits_processor",
    "nvext",
    "function",
];

/// One thing that is wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldProblem {
    /// The path of the field, as `messages[0].content`.
    pub param: String,
    /// The machine-readable reason.
    pub code: &'static str,
    /// What is wrong, as a sentence without its full stop.
    pub message: String,
}

/// The problems found so far.
#[derive(Debug, Default)]
pub struct Problems {
    found: Vec<FieldProblem>,
}

impl Problems {
    /// Notes a value that is not what its field takes.
    pub fn invalid(&mut self, param: impl Into<String>, message: impl Into<String>) {
        self.push("invalid_value", param.into(), message.into());
    }

    /// Notes a field that this server knows and does not honour.
    pub fn unsupported(&mut self, param: impl Into<String>, message: impl Into<String>) {
        self.push("unsupported_parameter", param.into(), message.into());
    }

    fn push(&mut self, code: &'static str, param: String, message: String) {
        let message = shortened(&message).into_owned();
        self.found.push(FieldProblem {
            param: shortened(&param).into_owned(),
            code,
            message,
        });
    }

    /// An error that tells of the problems, if there are any.
    ///
    /// # Errors
    /// There is at least one problem.
    pub fn check(self) -> Result<(), ApiError> {
        let Some(first) = self.found.first() else {
            return Ok(());
        };
        let told: Vec<String> = self
            .found
            .iter()
            .take(LISTED)
            .map(|problem| format!("{}: {}", problem.param, problem.message))
            .collect();
        let mut message = told.join("; ");
        if self.found.len() > LISTED {
            message.push_str(&format!("; and {} more", self.found.len() - LISTED));
        }
        Err(ApiError::invalid(first.code, Some(first.param.clone()), message))
    }
}

/// An object being read: fields are taken out one by one, and what is left at the end was not known.
#[derive(Debug)]
pub struct Fields {
    map: Map<String, Value>,
    prefix: String,
}

impl Fields {
    /// The fields of the outermost object.
    pub fn root(map: Map<String, Value>) -> Self {
        Self {
            map,
            prefix: String::new(),
        }
    }

    /// The fields of a value that should be an object, at a path.
    pub fn of(value: Value, path: &str, problems: &mut Problems) -> Option<Self> {
        match value {
            Value::Object(map) => Some(Self {
                map,
                prefix: format!("{path}."),
            }),
            other => {
                problems.invalid(path, format!("expected an object, found {}", type_name(&other)));
                None
            }
        }
    }

    /// The path of a field of this object.
    pub fn path(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Takes a field; `null` counts as absent, as in OpenAI's API.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.map.shift_remove(name).filter(|value| !value.is_null())
    }

    /// Whether a field is there and not `null`.
    pub fn has(&self, name: &str) -> bool {
        self.map.get(name).is_some_and(|value| !value.is_null())
    }

    /// Takes a number within a range.
    pub fn number(&mut self, name: &str, low: f64, high: f64, problems: &mut Problems) -> Option<f32> {
        let value = self.take(name)?;
        match value.as_f64().filter(|number| (low..=high).contains(number)) {
            Some(number) => Some(number as f32),
            None => self.refuse(name, &format!("a number from {low} to {high}"), &value, problems),
        }
    }

    /// Takes a whole number within a range.
    pub fn integer(&mut self, name: &str, low: i64, high: i64, problems: &mut Problems) -> Option<i64> {
        let value = self.take(name)?;
        match whole(&value).filter(|number| (low..=high).contains(number)) {
            Some(number) => Some(number),
            None => self.refuse(
                name,
                &format!("a whole number from {low} to {high}"),
                &value,
                problems,
            ),
        }
    }

    /// Takes a boolean.
    pub fn boolean(&mut self, name: &str, problems: &mut Problems) -> Option<bool> {
        let value = self.take(name)?;
        match value.as_bool() {
            Some(flag) => Some(flag),
            None => self.refuse(name, "true or false", &value, problems),
        }
    }

    /// Takes a string.
    pub fn string(&mut self, name: &str, problems: &mut Problems) -> Option<String> {
        match self.take(name)? {
            Value::String(text) => Some(text),
            other => self.refuse(name, "a string", &other, problems),
        }
    }

    /// Takes an array.
    pub fn array(&mut self, name: &str, problems: &mut Problems) -> Option<Vec<Value>> {
        match self.take(name)? {
            Value::Array(items) => Some(items),
            other => self.refuse(name, "an array", &other, problems),
        }
    }

    /// Takes an object.
    pub fn object(&mut self, name: &str, problems: &mut Problems) -> Option<Fields> {
        let value = self.take(name)?;
        Fields::of(value, &self.path(name), problems)
    }

    /// Takes one of a few words.
    pub fn word<T: Copy>(&mut self, name: &str, words: &[(&str, T)], problems: &mut Problems) -> Option<T> {
        let value = self.take(name)?;
        let found = value
            .as_str()
            .and_then(|text| words.iter().find(|(word, _)| *word == text));
        match found {
            Some((_, meaning)) => Some(*meaning),
            None => {
                let names: Vec<String> = words.iter().map(|(word, _)| format!("'{word}'")).collect();
                self.refuse(name, &names.join(" or "), &value, problems)
            }
        }
    }

    fn refuse<T>(&self, name: &str, expected: &str, found: &Value, problems: &mut Problems) -> Option<T> {
        let shown = match found {
            Value::Number(number) => number.to_string(),
            Value::String(text) => format!("'{}'", shortened(text)),
            other => type_name(other).to_owned(),
        };
        problems.invalid(self.path(name), format!("expected {expected}, found {shown}"));
        None
    }

    /// Refuses fields that this server knows but cannot honour, unless they hold their neutral value.
    pub fn only_neutral(&mut self, table: &[(&str, &[&str])], problems: &mut Problems) {
        for (name, neutral) in table {
            let Some(value) = self.take(name) else { continue };
            if !neutral.contains(&value.to_string().as_str()) {
                problems.unsupported(self.path(name), "this server does not support this field");
            }
        }
    }

    /// Drops fields that mean nothing to this server and promise nothing to the client.
    pub fn ignore(&mut self, names: &[&str]) {
        for name in names {
            self.map.shift_remove(*name);
        }
    }

    /// Ends the reading of an object whose every field matters: what is left is refused.
    pub fn finish_strict(self, problems: &mut Problems) {
        for name in self.map.keys() {
            problems.unsupported(
                self.path(name),
                "unknown field of a constraint; it would not be honoured",
            );
        }
    }

    /// Ends the reading of an object that clients extend freely: what is left is accepted unless it looks like a
    /// constraint. Returns how many fields were passed over.
    pub fn finish(self, problems: &mut Problems) -> usize {
        for (name, value) in &self.map {
            let lower = name.to_ascii_lowercase();
            let looks = CONSTRAINT_WORDS.iter().any(|word| lower.contains(word));
            if looks && !value.is_null() {
                problems.unsupported(
                    self.path(name),
                    "this looks like a constraint on the output that this server does not know; it is refused \
                     rather than ignored",
                );
            }
        }
        self.map.len()
    }
}

/// A whole number, also when it is written as `3.0`.
fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        let number = value.as_f64()?;
        (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64)
    })
}

/// The JSON type of a value, for people.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
