//! The answers of an upstream to a chat, whole or in pieces, as far as a gateway reads them.
//!
//! An upstream is not trusted: a value of another type than the API has is an error with its place. Fields
//! that are not read are kept, and passed on; those in which clients look for values that were checked, and
//! which were not, are refused.

use serde_json::{Map, Value, json};

use crate::wire;
use crate::wire::fields::type_name;

/// The fields of a message that hold values of a schema or calls besides those that are checked.
const UNCHECKED: [&str; 2] = ["function_call", "parsed"];
/// The maximum number of calls of one answer.
const CALLS: usize = 256;

/// A value that is not as the API has it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct WrongShape {
    /// The path of the field, as `choices[0].message`.
    pub place: String,
    /// What is wrong with it.
    pub message: String,
}

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Whole {
    /// The answer, whose choices are taken out.
    pub fields: Map<String, Value>,
    /// The choices in the order of their indexes.
    pub choices: Vec<Said>,
}

/// What was said in one choice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Said {
    /// The text.
    pub content: Option<String>,
    /// The calls of tools.
    pub calls: Vec<Call>,
    /// The reason why it ended.
    pub finish: Option<String>,
    /// `true` if the model refused to answer.
    pub is_refused: bool,
    /// The other fields of the message.
    pub message: Map<String, Value>,
    /// The other fields of the choice.
    pub choice: Map<String, Value>,
}

/// A call of a tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Call {
    /// Its identity; empty if the upstream has not sent one.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments, or the input of a custom tool.
    pub input: String,
    /// `true` if the tool is a custom one.
    pub is_custom: bool,
    /// The other fields of the call.
    pub other: Map<String, Value>,
}

/// A piece of a streamed answer.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// The chunk, whose choices and usage are taken out.
    pub fields: Map<String, Value>,
    /// The tokens used, if this piece tells them.
    pub usage: Option<Value>,
    /// What is new in the choices.
    pub deltas: Vec<(usize, Delta)>,
}

/// What is new in a choice.
#[derive(Clone, Debug, Default)]
pub struct Delta {
    /// What was said: `content` and `calls` have the new text alone, and `calls` stand beside their places.
    pub said: Said,
    /// The places of the calls.
    pub places: Vec<usize>,
}

/// Reads a body of JSON.
///
/// # Errors
/// Fails if it is no object, nests too deeply or has too many values.
pub fn object(body: &[u8]) -> Result<Map<String, Value>, WrongShape> {
    wire::object(body).map_err(|error| wrong("", error.envelope().error.message))
}

/// Reads a whole answer with so many choices.
///
/// # Errors
/// Fails with the place of the first value that is not as the API has it.
pub fn whole(mut fields: Map<String, Value>, samples: usize) -> Result<Whole, WrongShape> {
    let choices = list(fields.insert("choices".to_owned(), Value::Null), "choices")?;
    if choices.len() != samples {
        let message = format!(
            "there are {} of them, and {samples} were asked for",
            choices.len()
        );
        return Err(wrong("choices", message));
    }
    let mut read: Vec<Option<Said>> = vec![None; samples];
    for (at, choice) in choices.into_iter().enumerate() {
        let place = format!("choices[{at}]");
        let (index, said) = said(choice, "message", &place, samples)?;
        let (said, _) = said;
        if read[index].replace(said).is_some() {
            return Err(wrong(format!("{place}.index"), "another choice has it too"));
        }
    }
    let choices = read.into_iter().flatten().collect();
    Ok(Whole { fields, choices })
}

/// Reads a piece of a stream of so many choices.
///
/// # Errors
/// Fails like [`whole`].
pub fn chunk(mut fields: Map<String, Value>, samples: usize) -> Result<Chunk, WrongShape> {
    let usage = fields.shift_remove("usage").filter(|usage| !usage.is_null());
    let usage = usage
        .map(|usage| map(usage, "usage").map(Value::Object))
        .transpose()?;
    let choices = fields.insert("choices".to_owned(), Value::Null);
    let choices = match choices {
        None | Some(Value::Null) => Vec::new(),
        choices => list(choices, "choices")?,
    };
    let mut deltas = Vec::with_capacity(choices.len());
    for (at, choice) in choices.into_iter().enumerate() {
        let place = format!("choices[{at}]");
        let (index, (said, places)) = said(choice, "delta", &place, samples)?;
        deltas.push((index, Delta { said, places }));
    }
    Ok(Chunk {
        fields,
        usage,
        deltas,
    })
}

type SaidAt = (usize, (Said, Vec<usize>));

/// Reads a choice whose message is in this field.
fn said(choice: Value, field: &str, place: &str, samples: usize) -> Result<SaidAt, WrongShape> {
    let mut choice = map(choice, place)?;
    let index = choice.shift_remove("index").unwrap_or(json!(0));
    let index = index.as_u64().and_then(|index| usize::try_from(index).ok());
    let index = index.filter(|index| *index < samples);
    let index =
        index.ok_or_else(|| wrong(format!("{place}.index"), format!("expected less than {samples}")))?;
    let finish = text(choice.shift_remove("finish_reason"), || {
        format!("{place}.finish_reason")
    })?;
    let place = format!("{place}.{field}");
    let message = match choice.shift_remove(field) {
        None | Some(Value::Null) if field == "delta" => Value::Object(Map::new()),
        message => message.unwrap_or_default(),
    };
    let mut message = map(message, &place)?;
    for name in UNCHECKED {
        if message.shift_remove(name).is_some_and(|value| !value.is_null()) {
            return Err(wrong(format!("{place}.{name}"), "the field is not checked"));
        }
    }
    let content = text(message.shift_remove("content"), || format!("{place}.content"))?;
    let refusal = message.get("refusal").cloned();
    let refusal = text(refusal, || format!("{place}.refusal"))?;
    let (calls, places) = calls(message.shift_remove("tool_calls"), field == "delta", &place)?;
    let said = Said {
        content,
        calls,
        finish,
        is_refused: refusal.is_some_and(|refusal| !refusal.is_empty()),
        message,
        choice,
    };
    Ok((index, (said, places)))
}

fn calls(value: Option<Value>, is_delta: bool, place: &str) -> Result<(Vec<Call>, Vec<usize>), WrongShape> {
    let place = format!("{place}.tool_calls");
    let listed = match value {
        None | Some(Value::Null) => Vec::new(),
        listed => list(listed, &place)?,
    };
    if listed.len() > CALLS {
        return Err(wrong(place, format!("expected at most {CALLS} calls")));
    }
    let (mut calls, mut places) = (Vec::new(), Vec::new());
    for (at, value) in listed.into_iter().enumerate() {
        let place = format!("{place}[{at}]");
        let mut entry = map(value, &place)?;
        let index = entry.shift_remove("index").filter(|_| is_delta);
        let index = match index {
            None => at,
            Some(index) => {
                let index = index.as_u64().and_then(|index| usize::try_from(index).ok());
                let index = index.filter(|index| *index < CALLS);
                index.ok_or_else(|| wrong(format!("{place}.index"), format!("expected less than {CALLS}")))?
            }
        };
        calls.push(call(entry, &place)?);
        places.push(index);
    }
    Ok((calls, places))
}

fn call(mut entry: Map<String, Value>, place: &str) -> Result<Call, WrongShape> {
    let id = text(entry.shift_remove("id"), || format!("{place}.id"))?;
    let kind = text(entry.shift_remove("type"), || format!("{place}.type"))?;
    let is_custom = kind.as_deref() == Some("custom") || (kind.is_none() && entry.contains_key("custom"));
    if kind
        .as_deref()
        .is_some_and(|kind| !["function", "custom", ""].contains(&kind))
    {
        return Err(wrong(format!("{place}.type"), "expected 'function' or 'custom'"));
    }
    let (field, input) = match is_custom {
        true => ("custom", "input"),
        false => ("function", "arguments"),
    };
    let place = format!("{place}.{field}");
    let mut inner = match entry.shift_remove(field) {
        None | Some(Value::Null) => Map::new(),
        Some(inner) => map(inner, &place)?,
    };
    let name = text(inner.shift_remove("name"), || format!("{place}.name"))?;
    let input = text(inner.shift_remove(input), || format!("{place}.{input}"))?;
    Ok(Call {
        id: id.unwrap_or_default(),
        name: name.unwrap_or_default(),
        input: input.unwrap_or_default(),
        is_custom,
        other: entry,
    })
}

fn wrong(place: impl Into<String>, message: impl Into<String>) -> WrongShape {
    WrongShape {
        place: place.into(),
        message: message.into(),
    }
}

fn map(value: Value, place: &str) -> Result<Map<String, Value>, WrongShape> {
    match value {
        Value::Object(map) => Ok(map),
        other => Err(wrong(
            place,
            format!("expected an object, found {}", type_name(&other)),
        )),
    }
}

fn list(value: Option<Value>, place: &str) -> Result<Vec<Value>, WrongShape> {
    match value {
        Some(Value::Array(list)) => Ok(list),
        None => Err(wrong(place, "expected an array, found nothing")),
        Some(other) => Err(wrong(
            place,
            format!("expected an array, found {}", type_name(&other)),
        )),
    }
}

/// Returns a text; `null` counts as absent.
fn text(value: Option<Value>, place: impl FnOnce() -> String) -> Result<Option<String>, WrongShape> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(wrong(
            place(),
            format!("expected a string, found {}", type_name(&other)),
        )),
    }
}

impl Call {
    /// Adds what a later piece of a stream says about the call.
    pub fn grow(&mut self, piece: Call) {
        for (own, new) in [(&mut self.id, &piece.id), (&mut self.name, &piece.name)] {
            // Some repeat both in every piece.
            if own.is_empty() {
                own.clone_from(new);
            }
        }
        self.input.push_str(&piece.input);
        self.is_custom |= piece.is_custom;
        self.other.extend(piece.other);
    }

    /// Returns the call as messages have it.
    pub fn to_json(&self) -> Value {
        let mut entry = self.other.clone();
        entry.insert("id".to_owned(), json!(self.id));
        let (kind, inner) = match self.is_custom {
            true => ("custom", json!({"name": self.name, "input": self.input})),
            false => ("function", json!({"name": self.name, "arguments": self.input})),
        };
        entry.insert("type".to_owned(), json!(kind));
        entry.insert(kind.to_owned(), inner);
        Value::Object(entry)
    }
}

impl Said {
    /// Returns the calls as messages have them; in a piece of a stream, with their places.
    pub fn calls_json(&self, is_delta: bool) -> Value {
        let call = |(index, call): (usize, &Call)| {
            let mut entry = call.to_json();
            if is_delta {
                entry["index"] = json!(index);
            }
            entry
        };
        self.calls.iter().enumerate().map(call).collect()
    }

    /// Returns the message as it is repeated in a conversation.
    pub fn repeated(&self) -> Option<Value> {
        let content = self.content.as_deref().filter(|content| !content.is_empty());
        if content.is_none() && self.calls.is_empty() {
            return None;
        }
        let mut message = json!({"role": "assistant", "content": content});
        if !self.calls.is_empty() {
            message["tool_calls"] = self.calls_json(false);
        }
        Some(message)
    }

    /// Returns the choice of a whole answer.
    pub fn to_choice(&self, index: usize) -> Value {
        let mut message = self.message.clone();
        message.insert("content".to_owned(), json!(self.content));
        if !self.calls.is_empty() {
            message.insert("tool_calls".to_owned(), self.calls_json(false));
        }
        let mut choice = Map::new();
        choice.insert("index".to_owned(), json!(index));
        choice.insert("message".to_owned(), Value::Object(message));
        choice.extend(self.choice.clone());
        choice.insert("finish_reason".to_owned(), json!(self.finish));
        Value::Object(choice)
    }
}

/// Adds the numbers of the usage of one more answer.
pub fn add_usage(sum: &mut Value, more: &Value) {
    match (&mut *sum, more) {
        (Value::Object(sum), Value::Object(more)) => {
            for (name, value) in more {
                add_usage(sum.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (Value::Number(own), Value::Number(more)) => match (own.as_u64(), more.as_u64()) {
            (Some(own), Some(more)) => *sum = json!(own.saturating_add(more)),
            _ => *sum = json!(own.as_f64().unwrap_or_default() + more.as_f64().unwrap_or_default()),
        },
        (Value::Null, more) => *sum = more.clone(),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(answer: Value) -> Result<Whole, WrongShape> {
        whole(answer.as_object().expect("an object").clone(), 1)
    }

    #[test]
    fn an_answer_is_written_as_it_was_read() {
        let choice = json!({"index": 0, "message": {"role": "assistant", "annotations": [], "content": null,
            "tool_calls": [{"x": 1, "id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            "logprobs": null, "finish_reason": "tool_calls"});
        let read = read(json!({"id": "1", "choices": [choice], "usage": null})).expect("an answer");
        assert_eq!(read.choices[0].to_choice(0), choice);
        assert_eq!(read.fields.keys().collect::<Vec<_>>(), ["id", "choices", "usage"]);
    }

    #[test]
    fn what_is_not_as_the_api_has_it_is_told_with_its_place() {
        let message = |message: Value| json!({"choices": [{"message": message}]});
        let call = |call: Value| message(json!({"tool_calls": [call]}));
        for (answer, place) in [
            (json!({}), "choices"),
            (json!({"choices": {}}), "choices"),
            (json!({"choices": []}), "choices"),
            (json!({"choices": [1]}), "choices[0]"),
            (
                json!({"choices": [{"index": 1, "message": {}}]}),
                "choices[0].index",
            ),
            (
                json!({"choices": [{"index": -1, "message": {}}]}),
                "choices[0].index",
            ),
            (json!({"choices": [{}]}), "choices[0].message"),
            (
                json!({"choices": [{"message": {}, "finish_reason": 1}]}),
                "choices[0].finish_reason",
            ),
            (message(json!({"content": []})), "choices[0].message.content"),
            (message(json!({"refusal": {}})), "choices[0].message.refusal"),
            (message(json!({"parsed": {}})), "choices[0].message.parsed"),
            (
                message(json!({"function_call": {}})),
                "choices[0].message.function_call",
            ),
            (message(json!({"tool_calls": 1})), "choices[0].message.tool_calls"),
            (call(json!(null)), "choices[0].message.tool_calls[0]"),
            (
                call(json!({"type": "mcp"})),
                "choices[0].message.tool_calls[0].type",
            ),
            (
                call(json!({"function": {"arguments": {}}})),
                "choices[0].message.tool_calls[0].function.arguments",
            ),
        ] {
            let error = read(answer).expect_err(place);
            assert_eq!(error.place, place, "{error}");
        }
    }

    #[test]
    fn usages_are_added() {
        let mut sum = json!({"prompt_tokens": 3, "details": {"cached": 1}, "cost": 0.5});
        add_usage(
            &mut sum,
            &json!({"prompt_tokens": 4, "details": {"cached": 2, "other": 1}, "cost": 1, "x": null}),
        );
        let expected =
            json!({"prompt_tokens": 7, "details": {"cached": 3, "other": 1}, "cost": 1.5, "x": null});
        assert_eq!(sum, expected);
    }
}
