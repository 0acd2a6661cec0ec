//! Reads a JSON object field by field, and records every problem with the path of its field.

mod resemblance;

use lexiform_syntax::suggest;
use serde_json::{Map, Value};

use crate::wire::error::{ApiError, shortened};

/// The maximum number of problems of a request that are reported.
const LISTED_PROBLEMS: usize = 10;
/// The maximum number of ignored fields of a request that are reported: a body may have as many as it has
/// bytes.
const LISTED_IGNORED: usize = 32;
/// The maximum length of the header that names them, in characters.
const HEADER_CHARS: usize = 1_000;
/// The maximum number of unknown fields in a request.
const UNKNOWN_FIELDS: usize = 1_024;

/// Words in a field's name that make it look like a constraint on the output. A field with such a name that
/// no reader took is refused: answering a request for a constraint without one would be the worst failure.
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

/// A problem of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldProblem {
    /// The path of the field, as `messages[0].content`.
    pub param: String,
    /// The machine-readable reason.
    pub code: &'static str,
    /// A description of the problem, as a sentence without its full stop.
    pub message: String,
}

/// The fields of a request that have no effect on this server, by their paths. The request is answered as if
/// they were absent, and the answer names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ignored {
    paths: Vec<String>,
    more: usize,
}

impl Ignored {
    fn note(&mut self, path: &str) {
        if self.paths.len() < LISTED_IGNORED {
            self.paths.push(shortened(path).into_owned());
        } else {
            self.more += 1;
        }
    }

    /// Adds a field that turns out to have no effect with the model that is served.
    pub fn add(&mut self, path: &str) {
        self.note(path);
    }

    /// Returns the number of fields.
    pub fn count(&self) -> usize {
        self.paths.len() + self.more
    }

    /// Returns the paths; if there are very many, the first ones and the number of the rest.
    pub fn listed(&self) -> Vec<String> {
        let more = (self.more > 0).then(|| format!("and {} more", self.more));
        self.paths.iter().cloned().chain(more).collect()
    }

    /// Returns the paths as the value of a header, or `None` if there are none. Characters that a header
    /// cannot contain are shown as `?`.
    pub fn header(&self) -> Option<String> {
        let shown = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '?' };
        let told = || {
            self.listed()
                .join(", ")
                .chars()
                .take(HEADER_CHARS)
                .map(shown)
                .collect()
        };
        (self.count() > 0).then(told)
    }
}

/// The problems found so far, and the ignored fields.
#[derive(Debug, Default)]
pub struct Problems {
    found: Vec<FieldProblem>,
    /// The number of problems beyond those that are reported.
    more: usize,
    ignored: Ignored,
    /// The number of unknown fields so far.
    unknown: usize,
}

impl Problems {
    /// Records an invalid value of a field.
    pub fn invalid(&mut self, param: impl Into<String>, message: impl Into<String>) {
        self.push("invalid_value", param.into(), message.into());
    }

    /// Records a field that this server knows and does not support.
    pub fn unsupported(&mut self, param: impl Into<String>, message: impl Into<String>) {
        self.push("unsupported_parameter", param.into(), message.into());
    }

    /// Records an unknown field, with the field that was probably meant.
    fn unknown(&mut self, param: String, meant: &str) {
        let message = format!("unknown field; did you mean {meant}?");
        self.push("unknown_field", param, message);
    }

    /// Returns `true` if one more unknown field may be examined; names are compared with many others, so
    /// their number is bounded.
    fn has_room(&mut self, prefix: &str) -> bool {
        self.unknown += 1;
        if self.unknown == UNKNOWN_FIELDS + 1 {
            let message = format!("the request has more than {UNKNOWN_FIELDS} unknown fields");
            self.push("unknown_field", prefix.trim_end_matches('.').to_owned(), message);
        }
        self.unknown <= UNKNOWN_FIELDS
    }

    /// Records a field that has no effect here.
    pub fn ignore(&mut self, path: &str) {
        self.ignored.note(path);
    }

    fn push(&mut self, code: &'static str, param: String, message: String) {
        if self.found.len() >= LISTED_PROBLEMS {
            self.more += 1;
            return;
        }
        let message = shortened(&message).into_owned();
        self.found.push(FieldProblem {
            param: shortened(&param).into_owned(),
            code,
            message,
        });
    }

    /// Returns the ignored fields of a request without problems.
    ///
    /// # Errors
    /// Fails if there is at least one problem; the error reports all of them.
    pub fn check(self) -> Result<Ignored, ApiError> {
        let Some(first) = self.found.first() else {
            return Ok(self.ignored);
        };
        let told: Vec<String> = self
            .found
            .iter()
            .map(|problem| format!("{}: {}", problem.param, problem.message))
            .collect();
        let mut message = told.join("; ");
        if self.more > 0 {
            message.push_str(&format!("; and {} more", self.more));
        }
        Err(ApiError::invalid(first.code, Some(first.param.clone()), message))
    }
}

/// An object being read: fields are taken out one by one, and the rest at the end is unknown.
#[derive(Debug)]
pub struct Fields {
    map: Map<String, Value>,
    prefix: String,
    /// The names that the reader has taken, with which misspelled names are compared.
    known: Vec<&'static str>,
}

impl Fields {
    /// Creates the fields of the outermost object.
    pub fn root(map: Map<String, Value>) -> Self {
        Self {
            map,
            prefix: String::new(),
            known: Vec::new(),
        }
    }

    /// Creates the fields of a value at a path, which should be an object.
    pub fn of(value: Value, path: &str, problems: &mut Problems) -> Option<Self> {
        match value {
            Value::Object(map) => Some(Self {
                map,
                prefix: format!("{path}."),
                known: Vec::new(),
            }),
            other => {
                problems.invalid(path, format!("expected an object, found {}", type_name(&other)));
                None
            }
        }
    }

    /// Creates the fields of an object without those that its reader knows and took in another way.
    pub fn beside(value: &Value, known: &'static [&'static str], path: &str) -> Self {
        let entries = value.as_object().into_iter().flatten();
        let unknown = entries.filter(|(name, _)| !known.contains(&name.as_str()));
        Self {
            map: unknown
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            prefix: format!("{path}."),
            known: known.to_vec(),
        }
    }

    /// Returns the path of a field of this object.
    pub fn path(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Takes a field; `null` counts as absent, as in OpenAI's API.
    pub fn take(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        self.map.shift_remove(name).filter(|value| !value.is_null())
    }

    /// Returns `true` if a field has not been taken.
    pub fn contains(&self, name: &str) -> bool {
        self.map.contains_key(name)
    }

    /// Returns `true` if a field is present and not `null`.
    pub fn has(&self, name: &str) -> bool {
        self.map.get(name).is_some_and(|value| !value.is_null())
    }

    /// Takes a number within a range.
    pub fn number(
        &mut self,
        name: &'static str,
        low: f64,
        high: f64,
        problems: &mut Problems,
    ) -> Option<f32> {
        let value = self.take(name)?;
        match value.as_f64().filter(|number| (low..=high).contains(number)) {
            Some(number) => Some(number as f32),
            None => self.refuse(name, &format!("a number from {low} to {high}"), &value, problems),
        }
    }

    /// Takes a whole number within a range.
    pub fn integer(
        &mut self,
        name: &'static str,
        low: i64,
        high: i64,
        problems: &mut Problems,
    ) -> Option<i64> {
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
    pub fn boolean(&mut self, name: &'static str, problems: &mut Problems) -> Option<bool> {
        let value = self.take(name)?;
        match value.as_bool() {
            Some(flag) => Some(flag),
            None => self.refuse(name, "true or false", &value, problems),
        }
    }

    /// Takes a string.
    pub fn string(&mut self, name: &'static str, problems: &mut Problems) -> Option<String> {
        match self.take(name)? {
            Value::String(text) => Some(text),
            other => self.refuse(name, "a string", &other, problems),
        }
    }

    /// Takes an array.
    pub fn array(&mut self, name: &'static str, problems: &mut Problems) -> Option<Vec<Value>> {
        match self.take(name)? {
            Value::Array(items) => Some(items),
            other => self.refuse(name, "an array", &other, problems),
        }
    }

    /// Takes an array of up to `most` items; returns `None` and records a problem if it is empty or too long.
    /// `items` names them.
    pub fn array_of(
        &mut self,
        name: &'static str,
        most: usize,
        items: &str,
        problems: &mut Problems,
    ) -> Option<Vec<Value>> {
        let is_given = self.has(name);
        let found = self.array(name, problems);
        if is_given && found.is_none() {
            return None;
        }
        let found = found.filter(|found| (1..=most).contains(&found.len()));
        if found.is_none() {
            problems.invalid(self.path(name), format!("expected 1 to {most} {items}"));
        }
        found
    }

    /// Takes an object.
    pub fn object(&mut self, name: &'static str, problems: &mut Problems) -> Option<Fields> {
        let value = self.take(name)?;
        Fields::of(value, &self.path(name), problems)
    }

    /// Takes one of a few words.
    pub fn word<T: Copy>(
        &mut self,
        name: &'static str,
        words: &[(&str, T)],
        problems: &mut Problems,
    ) -> Option<T> {
        let value = self.take(name)?;
        let found = value
            .as_str()
            .and_then(|text| words.iter().find(|(word, _)| *word == text));
        match found {
            Some((_, meaning)) => Some(*meaning),
            None => {
                let names: Vec<String> = words.iter().map(|(word, _)| format!("'{word}'")).collect();
                let known = words.iter().map(|(word, _)| *word);
                let meant = value.as_str().and_then(|text| suggest::nearest(text, known));
                let shown = shown(&value);
                let hint = meant.map_or_else(String::new, |meant| format!("; did you mean '{meant}'?"));
                problems.invalid(
                    self.path(name),
                    format!("expected {}, found {shown}{hint}", names.join(" or ")),
                );
                None
            }
        }
    }

    fn refuse<T>(&self, name: &str, expected: &str, found: &Value, problems: &mut Problems) -> Option<T> {
        let message = format!("expected {expected}, found {}", shown(found));
        problems.invalid(self.path(name), message);
        None
    }

    /// Refuses fields that this server knows but does not support, unless they have their neutral value.
    pub fn only_neutral(&mut self, table: &[(&'static str, &[&str])], problems: &mut Problems) {
        for (name, neutral) in table {
            let Some(value) = self.take(name) else { continue };
            if !neutral.contains(&value.to_string().as_str()) {
                problems.unsupported(self.path(name), "this field is not supported");
            }
        }
    }

    /// Drops fields that clients are known to send, that have no effect on this server and promise nothing to
    /// the client.
    pub fn ignore(&mut self, names: &[&'static str]) {
        for name in names {
            self.known.push(name);
            self.map.shift_remove(*name);
        }
    }

    /// Takes a field that has no effect on this server, and records that it was ignored.
    pub fn without_effect(&mut self, name: &'static str, problems: &mut Problems) {
        if self.take(name).is_some() {
            problems.ignore(&self.path(name));
        }
    }

    /// Ends the reading of an object in which every field matters: the remaining fields are refused.
    pub fn finish_strict(self, problems: &mut Problems) {
        for name in self.map.keys() {
            if !problems.has_room(&self.prefix) {
                return;
            }
            match resemblance::nearest(name, &self.known) {
                Some(meant) => problems.unknown(self.path(name), &format!("'{meant}'")),
                None => problems.unsupported(
                    self.path(name),
                    "unknown field; fields of a constraint are never ignored",
                ),
            }
        }
    }

    /// Ends the reading of an object that clients extend freely. A remaining field is refused if its name
    /// resembles that of a field that constrains or limits, or if it contains such a field; otherwise it is
    /// recorded as ignored. `null` counts as absent.
    pub fn finish(self, problems: &mut Problems) {
        for (name, value) in self.map.iter().filter(|(_, value)| !value.is_null()) {
            self.leftover(name, value, problems);
        }
    }

    fn leftover(&self, name: &str, value: &Value, problems: &mut Problems) {
        if !problems.has_room(&self.prefix) {
            return;
        }
        let path = self.path(name);
        let lower = name.to_ascii_lowercase();
        let looks = || CONSTRAINT_WORDS.iter().any(|word| lower.contains(word));
        match resemblance::resembled(name) {
            Some(meant) if meant == name => {
                problems.push("unknown_field", path, "this field does not apply here".to_owned());
            }
            Some(meant) if meant.contains(' ') => problems.unknown(path, meant),
            Some(meant) if self.known.contains(&meant) => problems.unknown(path, &format!("'{meant}'")),
            _ if looks() => problems.unsupported(
                path,
                "unknown field that looks like a constraint; constraints are never ignored",
            ),
            Some(meant) => {
                let message = format!("unknown field; it resembles '{meant}', which does not apply here");
                problems.push("unknown_field", path, message);
            }
            None => match resemblance::held(value) {
                Some(held) => {
                    let message = format!("unknown field; it contains '{held}', which would be ignored");
                    problems.push("unknown_field", path, message);
                }
                None => problems.ignore(&path),
            },
        }
    }
}

/// Returns a value as messages show it.
fn shown(value: &Value) -> String {
    match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("'{}'", shortened(text)),
        other => type_name(other).to_owned(),
    }
}

/// Returns a whole number, also if it is written as `3.0`.
fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        let number = value.as_f64()?;
        (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64)
    })
}

/// Returns the readable name of the JSON type of a value.
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
