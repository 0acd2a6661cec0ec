//! Tasks: questions with the answers that are right.
//!
//! ```json
//! {"name": "sum-1", "kind": "arithmetic", "level": 1,
//!  "prompt": "How much is 2 + 3?",
//!  "schema": {"type": "object", "properties": {"answer": {"type": "number"}}},
//!  "answer": {"number": 5, "at": "/answer"}}
//! ```
//!
//! `answer` names one checker, none of which runs anything:
//!
//! | checker | an answer is right if |
//! |---|---|
//! | `exact` | the value at `at` equals, or the whole text without `at` |
//! | `number` | the number at `at` differs by at most `tolerance` |
//! | `set` | the array at `at` has the same members in any order |
//! | `json` | the whole value equals field by field; see `Wanted` for `or`, `optional` and `unordered` |
//! | `contains_all` | the text at `at`, or the whole one, contains each of the texts |

use std::sync::Arc;

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use super::decimal::Decimal;
use super::difference::Wanted;
use super::reading::Shape;

/// The most calls of an answer with tools.
const CALLS: usize = 12;

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// `system`, `user` or `assistant`.
    pub(crate) role: String,
    pub(crate) content: String,
}

/// A question with the answer that is right.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) name: String,
    /// The kind, by which results are grouped.
    pub(crate) kind: String,
    /// How hard it is, from 1; `None` if nobody says.
    pub(crate) level: Option<u64>,
    pub(super) messages: Vec<Message>,
    /// The tools that may be called, with `name`, `description` and `parameters`.
    pub(super) tools: Vec<Value>,
    /// The JSON Schema of an answer.
    pub(crate) schema: Option<Value>,
    pub(super) validator: Option<Arc<Validator>>,
    pub(crate) answer: Answer,
}

/// The parts from which a task is made.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Parts {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) level: Option<u64>,
    pub(super) messages: Vec<Message>,
    pub(super) tools: Vec<Value>,
    pub(super) schema: Option<Value>,
    pub(super) answer: Answer,
}

/// What is right.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) checker: Checker,
    /// The JSON pointer to the value that is checked; `None` if it is the whole answer.
    pub(super) at: Option<String>,
}

/// The way in which an answer is compared with what is right.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Checker {
    Exact {
        value: Value,
        fold: bool,
    },
    Number {
        value: Decimal,
        spelled: Value,
        tolerance: f64,
    },
    Set {
        members: Vec<Value>,
        fold: bool,
    },
    Json(Box<Wanted>),
    ContainsAll {
        texts: Vec<String>,
        fold: bool,
    },
}

/// What is wrong with a record of a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{reason}", if pointer.is_empty() { String::new() } else { format!("{pointer}: ") })]
pub(crate) struct Defect {
    /// The JSON pointer to the place.
    pub(super) pointer: String,
    pub(super) reason: String,
    /// `true` if what is right is not valid under the schema of its own task.
    pub(super) contradicts_itself: bool,
}

impl Defect {
    pub(super) fn new(pointer: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            reason: reason.into(),
            contradicts_itself: false,
        }
    }
}

impl Message {
    pub(crate) fn system(content: impl Into<String>) -> Self {
        Self {
            role: "system".to_owned(),
            content: content.into(),
        }
    }

    pub(crate) fn user(content: impl Into<String>) -> Self {
        Self {
            role: "user".to_owned(),
            content: content.into(),
        }
    }

    /// Reads a message.
    pub(super) fn read(value: &Value, pointer: &str) -> Result<Self, Defect> {
        let mut fields = Fields::of(value, pointer)?;
        let role = fields.text("role")?;
        if !["system", "user", "assistant"].contains(&role.as_str()) {
            return Err(fields.defect("role", "is none of system, user and assistant"));
        }
        let content = fields.text("content")?;
        Ok(Self { role, content })
    }

    /// Returns the message as the API of OpenAI has it.
    pub(crate) fn json(&self) -> Value {
        json!({"role": self.role, "content": self.content})
    }
}

impl Task {
    /// Makes a task, and checks that its schema compiles and that what is right is valid under it.
    pub(super) fn new(parts: Parts) -> Result<Self, Defect> {
        let Parts {
            name,
            kind,
            level,
            messages,
            tools,
            schema,
            answer,
        } = parts;
        if messages.iter().all(|it| it.content.trim().is_empty()) {
            return Err(Defect::new("/prompt", "the question is empty"));
        }
        let schema = match (schema, tools.is_empty()) {
            (None, false) => Some(calls_schema(&tools)),
            (schema, _) => schema,
        };
        let validator = match &schema {
            None => None,
            Some(schema) => {
                let compiled = jsonschema::options().should_validate_formats(true).build(schema);
                Some(compiled.map_err(|error| Defect::new("/schema", error.to_string()))?)
            }
        };
        if let (Checker::Json(wanted), Some(validator)) = (&answer.checker, &validator)
            && let Err(error) = validator.validate(&wanted.value)
        {
            let pointer = format!("/answer/json{}", error.instance_path());
            let reason = format!("what is right is not valid under the schema of the task: {error}");
            return Err(Defect {
                contradicts_itself: true,
                ..Defect::new(pointer, reason)
            });
        }
        let validator = validator.map(Arc::new);
        Ok(Self {
            name,
            kind,
            level,
            messages,
            tools,
            schema,
            validator,
            answer,
        })
    }

    /// Reads a task in the form of this project.
    pub(super) fn read(record: &Value) -> Result<Self, Defect> {
        let mut fields = Fields::of(record, "")?;
        let name = fields.text("name")?;
        let kind = fields.text("kind")?;
        let level = match fields.get("level") {
            None => None,
            Some(level) => {
                let level = level.as_u64().filter(|it| *it > 0);
                Some(level.ok_or_else(|| fields.defect("level", "is no whole number from 1"))?)
            }
        };
        let messages = match (fields.get("prompt"), fields.list("messages")?) {
            (Some(_), None) => vec![Message::user(fields.text("prompt")?)],
            (None, Some(messages)) => {
                let read = |(index, it)| Message::read(it, &format!("/messages/{index}"));
                messages.iter().enumerate().map(read).collect::<Result<_, _>>()?
            }
            _ => return Err(Defect::new("", "a task has either `prompt` or `messages`")),
        };
        let tools = fields.list("tools")?.map_or_else(Vec::new, <[Value]>::to_vec);
        for (index, tool) in tools.iter().enumerate() {
            let mut tool = Fields::of(tool, &format!("/tools/{index}"))?;
            tool.text("name")?;
        }
        let schema = fields.get("schema").cloned();
        let answer = Answer::read(fields.required("answer")?)?;
        fields.finish()?;
        Self::new(Parts {
            name,
            kind,
            level,
            messages,
            tools,
            schema,
            answer,
        })
    }

    /// Returns the question, without instructions.
    pub(super) fn prompt(&self) -> String {
        let messages: Vec<&str> = self.messages.iter().map(|it| it.content.as_str()).collect();
        messages.join("\n\n")
    }

    /// Returns the texts among which an answer chooses, which the schema says at the place of the answer.
    pub(super) fn choices(&self) -> Vec<&str> {
        let steps = self.answer.at.as_deref().unwrap_or_default().split('/').skip(1);
        let place = steps.fold(self.schema.as_ref(), |schema, step| {
            schema?.get("properties")?.get(step)
        });
        let choices = place.and_then(|it| it.get("enum")?.as_array());
        choices.into_iter().flatten().filter_map(Value::as_str).collect()
    }
}

impl Answer {
    /// Reads what is right.
    fn read(value: &Value) -> Result<Self, Defect> {
        let mut fields = Fields::of(value, "/answer")?;
        let at = match fields.get("at") {
            None => None,
            Some(_) => Some(fields.text("at")?),
        };
        if at
            .as_ref()
            .is_some_and(|at| !at.is_empty() && !at.starts_with('/'))
        {
            return Err(fields.defect("at", "is no JSON pointer, which begins with \"/\""));
        }
        let fold = match fields.get("fold") {
            None => false,
            Some(fold) => fold
                .as_bool()
                .ok_or_else(|| fields.defect("fold", "is neither true nor false"))?,
        };
        let names = ["exact", "number", "set", "json", "contains_all"];
        let named: Vec<&str> = names.into_iter().filter(|it| value.get(it).is_some()).collect();
        let checker = match named[..] {
            ["exact"] => Checker::Exact {
                value: fields.required("exact")?.clone(),
                fold,
            },
            ["number"] => number_checker(&mut fields)?,
            ["set"] => Checker::Set {
                members: fields.list("set")?.unwrap_or_default().to_vec(),
                fold,
            },
            ["json"] => Checker::Json(Box::new(wanted(&mut fields, fold)?)),
            ["contains_all"] => Checker::ContainsAll {
                texts: fields.texts("contains_all")?,
                fold,
            },
            _ => {
                let reason = format!("has one of {}", names.map(|it| format!("`{it}`")).join(", "));
                return Err(Defect::new("/answer", reason));
            }
        };
        if at.is_some() && matches!(checker, Checker::Json(_)) {
            return Err(fields.defect("at", "`json` compares the whole answer"));
        }
        fields.finish()?;
        Ok(Self { checker, at })
    }

    /// Returns the type of JSON value in which the answer is looked for.
    pub(super) fn shape(&self) -> Shape {
        let is_array = match (&self.checker, self.at.as_deref()) {
            (Checker::Json(wanted), _) => wanted.value.is_array(),
            (Checker::Exact { value, .. }, None | Some("")) => value.is_array(),
            (Checker::Set { .. }, None | Some("")) => true,
            (_, at) => at.is_some_and(|at| at[1.min(at.len())..].starts_with(|it: char| it.is_ascii_digit())),
        };
        if is_array { Shape::Array } else { Shape::Object }
    }
}

fn number_checker(fields: &mut Fields) -> Result<Checker, Defect> {
    let spelled = fields.required("number")?;
    let text = spelled.as_number().map(ToString::to_string);
    let value = text.and_then(|text| Decimal::parse(&text));
    let value = value.ok_or_else(|| fields.defect("number", "is no number"))?;
    let tolerance = match fields.get("tolerance") {
        None => 0.0,
        Some(tolerance) => tolerance
            .as_f64()
            .filter(|it| *it >= 0.0)
            .ok_or_else(|| fields.defect("tolerance", "is no number of at least 0"))?,
    };
    Ok(Checker::Number {
        value,
        spelled: spelled.clone(),
        tolerance,
    })
}

fn wanted(fields: &mut Fields, fold: bool) -> Result<Wanted, Defect> {
    let value = fields.required("json")?.clone();
    let mut wanted = Wanted {
        value,
        fold,
        ..Wanted::default()
    };
    if let Some(or) = fields.get("or") {
        for (place, others) in Fields::of(or, "/answer/or")?.object {
            let others = others
                .as_array()
                .ok_or_else(|| Defect::new("/answer/or", format!("{place:?} has no list of values")))?;
            wanted.or.insert(place.clone(), others.clone());
        }
    }
    wanted.optional = fields.texts("optional")?.into_iter().collect();
    wanted.unordered = fields.texts("unordered")?.into_iter().collect();
    let named = wanted.or.keys().chain(&wanted.optional).chain(&wanted.unordered);
    for place in named {
        if wanted.value.pointer(place).is_none() {
            let reason = format!("nothing of `json` is at {place:?}");
            return Err(Defect::new("/answer", reason));
        }
    }
    Ok(wanted)
}

/// Returns the schema of an answer that calls some of these tools, perhaps none.
fn calls_schema(tools: &[Value]) -> Value {
    let call = |tool: &Value| {
        json!({
            "type": "object",
            "properties": {"name": {"const": tool["name"]}, "arguments": tool.get("parameters").unwrap_or(&json!({}))},
            "required": ["name", "arguments"],
            "additionalProperties": false,
        })
    };
    let calls: Vec<Value> = tools.iter().map(call).collect();
    json!({
        "type": "object",
        "properties": {"calls": {"type": "array", "items": {"anyOf": calls}, "maxItems": CALLS}},
        "required": ["calls"],
        "additionalProperties": false,
    })
}

/// Returns the schema of an answer after its reasoning.
pub(crate) fn reasoning_then(answer: &Value) -> Value {
    json!({
        "type": "object",
        "properties": {"reasoning": {"type": "string"}, "answer": answer},
        "required": ["reasoning", "answer"],
        "additionalProperties": false,
    })
}

/// The fields of an object that is read, so that a field that nobody reads is an error.
pub(super) struct Fields<'a> {
    pointer: String,
    object: &'a Map<String, Value>,
    read: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    pub(super) fn of(value: &'a Value, pointer: &str) -> Result<Self, Defect> {
        let object = value
            .as_object()
            .ok_or_else(|| Defect::new(pointer, "is no JSON object"))?;
        Ok(Self {
            pointer: pointer.to_owned(),
            object,
            read: Vec::new(),
        })
    }

    pub(super) fn get(&mut self, name: &'static str) -> Option<&'a Value> {
        self.read.push(name);
        self.object.get(name)
    }

    pub(super) fn required(&mut self, name: &'static str) -> Result<&'a Value, Defect> {
        let value = self.get(name);
        value.ok_or_else(|| Defect::new(self.pointer.clone(), format!("`{name}` is missing")))
    }

    pub(super) fn text(&mut self, name: &'static str) -> Result<String, Defect> {
        let text = self.required(name)?.as_str().filter(|it| !it.is_empty());
        let text = text.ok_or_else(|| self.defect(name, "is no text, or an empty one"))?;
        Ok(text.to_owned())
    }

    pub(super) fn list(&mut self, name: &'static str) -> Result<Option<&'a [Value]>, Defect> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items)),
            Some(_) => Err(self.defect(name, "is no list")),
        }
    }

    fn texts(&mut self, name: &'static str) -> Result<Vec<String>, Defect> {
        let items = self.list(name)?.unwrap_or_default();
        let texts = items.iter().map(|it| it.as_str().map(str::to_owned));
        texts
            .collect::<Option<_>>()
            .ok_or_else(|| self.defect(name, "has an item that is no text"))
    }

    pub(super) fn defect(&self, name: &str, reason: &str) -> Defect {
        Defect::new(format!("{}/{name}", self.pointer), reason)
    }

    /// Ends the reading; a field that was not read is an error.
    fn finish(self) -> Result<(), Defect> {
        let unread = self.object.keys().find(|key| !self.read.contains(&key.as_str()));
        match unread {
            None => Ok(()),
            Some(key) => {
                let reason = format!(
                    "the field {key:?} is not known; known are {}",
                    self.read.join(", ")
                );
                Err(Defect::new(self.pointer, reason))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defect(change: &Value) -> String {
        let mut record = json!({
            "name": "t", "kind": "k", "prompt": "p",
            "schema": {"type": "object", "properties": {"a": {"type": "integer"}}},
            "answer": {"json": {"a": 1}},
        });
        for (key, value) in change.as_object().expect("an object") {
            record[key] = value.clone();
        }
        match Task::read(&record) {
            Ok(_) => "fine".to_owned(),
            Err(defect) => defect.to_string(),
        }
    }

    #[test]
    fn broken_tasks_are_refused_with_their_place() {
        for (change, told) in [
            (json!({}), "fine"),
            (json!({"extra": 1}), "the field \"extra\" is not known"),
            (json!({"name": ""}), "/name: is no text"),
            (json!({"level": 0}), "/level: is no whole number"),
            (
                json!({"messages": []}),
                "a task has either `prompt` or `messages`",
            ),
            (json!({"schema": {"type": 3}}), "/schema: "),
            (json!({"schema": {"pattern": "("}}), "/schema: "),
            (
                json!({"answer": {"json": {"a": "x"}}}),
                "/answer/json/a: what is right is not valid",
            ),
            (json!({"answer": {}}), "/answer: has one of `exact`"),
            (
                json!({"answer": {"exact": 1, "set": []}}),
                "/answer: has one of `exact`",
            ),
            (
                json!({"answer": {"exact": 1, "at": "a"}}),
                "/answer/at: is no JSON pointer",
            ),
            (
                json!({"answer": {"json": {}, "at": "/a"}}),
                "/answer/at: `json` compares",
            ),
            (json!({"answer": {"number": "1"}}), "/answer/number: is no number"),
            (
                json!({"answer": {"number": 1, "tolerance": -1}}),
                "/answer/tolerance: ",
            ),
            (
                json!({"answer": {"exact": 1, "tolerance": 1}}),
                "/answer: the field \"tolerance\"",
            ),
            (
                json!({"answer": {"json": {}, "or": {"/a": [1]}}}),
                "/answer: nothing of `json` is at \"/a\"",
            ),
            (
                json!({"answer": {"json": {"a": 1}, "or": {"/a": 1}}}),
                "/answer/or: \"/a\" has no list",
            ),
            (
                json!({"answer": {"contains_all": [1]}}),
                "/answer/contains_all: has an item",
            ),
            (json!({"tools": [{}]}), "/tools/0: `name` is missing"),
        ] {
            let found = defect(&change);
            assert!(found.starts_with(told), "{change}: {found}");
        }
    }

    #[test]
    fn tools_make_the_schema_of_their_calls() {
        let task = json!({
            "name": "t", "kind": "k", "messages": [{"role": "user", "content": "x"}],
            "tools": [{"name": "f", "parameters": {"properties": {"a": {"type": "integer"}}}}],
            "answer": {"json": {"calls": [{"name": "f", "arguments": {"a": 1}}]}},
        });
        let task = Task::read(&task).expect("a task");
        let validator = task.validator.expect("a schema");
        assert!(validator.is_valid(&json!({"calls": []})));
        assert!(!validator.is_valid(&json!({"calls": [{"name": "g", "arguments": {}}]})));
        assert!(!validator.is_valid(&json!({"calls": [{"name": "f", "arguments": {"a": "1"}}]})));
    }

    // A runner judges answers on the threads that receive them.
    #[test]
    fn tasks_are_shared_between_threads() {
        fn is_shared<T: Clone + Send + Sync + 'static>() {}
        is_shared::<Task>();
    }

    #[test]
    fn choices_are_those_of_the_schema() {
        let task = json!({
            "name": "t", "kind": "k", "prompt": "p",
            "schema": {"properties": {"label": {"enum": ["yes", "no"]}}},
            "answer": {"exact": "yes", "at": "/label"},
        });
        assert_eq!(Task::read(&task).expect("a task").choices(), ["yes", "no"]);
    }
}
