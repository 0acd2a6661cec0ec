//! A chat that a gateway forwards: what it reads of the request, and the body that it sends on.
//!
//! ```text
//!   body ─► constraint, tools, choice of tools, n, stream  (read and checked)
//!      └──► all other fields                                (sent on as they are)
//! ```
//!
//! A gateway knows neither the models behind it nor all fields that they take, so it sends on what it does
//! not read. It refuses what it would have to check and cannot, and names that resemble those of
//! constraints: an upstream that ignores them would answer without a constraint.

use serde_json::{Map, Value, json};

use super::MESSAGES;
use crate::wire;
use crate::wire::constraint::{Constraint, Source, fields as constraints};
use crate::wire::error::ApiError;
use crate::wire::fields::{Fields, Problems};
use crate::wire::tools::{self, Input, Spelling};

pub use crate::wire::tools::{Calls, Mode};

/// The maximum number of samples of a request.
const SAMPLES: i64 = 128;

/// The fields that are sent on without being read: those of OpenAI's API, and those that engines and
/// providers take besides.
const SENT_ON: &[&str] = &[
    "model",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "typical_p",
    "top_a",
    "max_tokens",
    "max_completion_tokens",
    "min_tokens",
    "stop",
    "stop_token_ids",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "length_penalty",
    "logit_bias",
    "ignore_eos",
    "reasoning_effort",
    "reasoning",
    "include_reasoning",
    "chat_template_kwargs",
    "schema_in_prompt",
    "verbosity",
    "modalities",
    "audio",
    "prediction",
    "web_search_options",
    "metadata",
    "store",
    "user",
    "service_tier",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "cache_salt",
    "provider",
    "route",
    "models",
    "transforms",
    "plugins",
];

/// A chat that is forwarded.
#[derive(Debug)]
pub struct Forwarded {
    /// The fields that are sent on as they are.
    fields: Map<String, Value>,
    messages: Vec<Value>,
    /// The tools as they were sent.
    described: Vec<Value>,
    choice: Map<String, Value>,
    /// The response format that is sent on; `None` for free text.
    format: Option<Value>,
    /// The constraint on the content, a schema.
    pub content: Option<Constraint>,
    /// All tools with the schemas of their arguments, in the order of the request.
    pub tools: Vec<tools::Callable>,
    /// The tools that the answer may or must call.
    pub calls: Option<Calls>,
    /// The number of samples.
    pub samples: usize,
    /// `true` if the answer is streamed.
    pub stream: bool,
}

/// Reads a request.
///
/// # Errors
/// Returns all problems of the body in one error.
pub fn read(body: &[u8]) -> Result<Forwarded, ApiError> {
    let mut map = wire::object(body)?;
    let mut problems = Problems::default();
    let messages = messages(map.shift_remove("messages"), &mut problems);
    let mut choice = Map::new();
    for name in ["tools", "tool_choice", "parallel_tool_calls"] {
        let value = map.shift_remove(name).filter(|value| !value.is_null());
        choice.extend(value.map(|value| (name.to_owned(), value)));
    }
    let (tools, calls) = tools_of(&choice, &mut problems);
    let mut fields = Fields::root(map.clone());
    let content = content(&mut fields, &mut problems);
    map.retain(|name, _| fields.contains(name));
    let format = content.as_ref().and_then(as_sent);
    let samples = fields.integer("n", 1, SAMPLES, &mut problems).unwrap_or(1);
    let stream = fields.boolean("stream", &mut problems).unwrap_or(false);
    // What is in it concerns the stream alone, and is sent on.
    drop(fields.object("stream_options", &mut problems));
    logprobs(&mut fields, content.is_some() || !tools.is_empty(), &mut problems);
    fields.ignore(SENT_ON);
    fields.finish(&mut problems);
    problems.check()?;
    let described = match choice.shift_remove("tools") {
        Some(Value::Array(described)) => described,
        _ => Vec::new(),
    };
    Ok(Forwarded {
        fields: map,
        messages,
        described,
        choice,
        format,
        content,
        tools,
        calls,
        samples: usize::try_from(samples).unwrap_or(1),
        stream,
    })
}

fn messages(value: Option<Value>, problems: &mut Problems) -> Vec<Value> {
    match value {
        Some(Value::Array(messages)) if (1..=MESSAGES).contains(&messages.len()) => messages,
        _ => {
            let message = format!("expected an array of 1 to {MESSAGES} messages");
            problems.invalid("messages", message);
            Vec::new()
        }
    }
}

/// Returns all tools, and those that may be called.
fn tools_of(choice: &Map<String, Value>, problems: &mut Problems) -> (Vec<tools::Callable>, Option<Calls>) {
    let mut all = Fields::root(choice.clone());
    let chosen = all.take("tool_choice").is_some();
    let read = tools::read(&mut all, Spelling::Nested, problems);
    let all = read.calls.as_ref().map(|calls| calls.tools.clone());
    let all = all.unwrap_or_default();
    for (index, tool) in all.iter().enumerate() {
        if matches!(tool.input, Input::Raw(Some(_))) {
            let message = "a gateway cannot check inputs against a grammar; leave the format out";
            problems.unsupported(format!("tools[{index}].custom.format"), message);
        }
    }
    let is_whole = choice.get("tools").and_then(Value::as_array);
    // Problems of the tools are told once.
    if !chosen || is_whole.map_or(0, Vec::len) != all.len() {
        return (all, read.calls);
    }
    let calls = tools::read(&mut Fields::root(choice.clone()), Spelling::Nested, problems).calls;
    (all, calls)
}

/// Takes the constraint on the content: a schema, in whatever field it is.
fn content(fields: &mut Fields, problems: &mut Problems) -> Option<Constraint> {
    for name in ["whitespace", "guided_whitespace_pattern", "key_order"] {
        if fields.has(name) {
            problems.unsupported(name, "a gateway cannot choose how an upstream writes JSON");
        }
    }
    let constraint = constraints::read(fields, problems)?;
    match &constraint.source {
        Source::Schema(_) => Some(constraint),
        _ => {
            let message = "a gateway forwards constraints that are JSON Schemas, and no others";
            problems.unsupported(constraint.param, message);
            None
        }
    }
}

/// Returns the response format that needs no projection: any JSON object.
fn as_sent(constraint: &Constraint) -> Option<Value> {
    (constraint.param == "response_format.type").then(|| json!({"type": "json_object"}))
}

/// Takes the log-probabilities, which are those of the text that the upstream wrote.
fn logprobs(fields: &mut Fields, is_checked: bool, problems: &mut Problems) {
    let wanted = fields.boolean("logprobs", problems).unwrap_or(false);
    let alternatives = fields.take("top_logprobs").is_some();
    if is_checked && (wanted || alternatives) {
        let message =
            "an answer that is checked has no log-probabilities: its text may not be the one of the model";
        problems.unsupported("logprobs", message);
    }
}

impl Forwarded {
    /// Returns `true` if the schema of the content is sent on as the response format `json_object`.
    pub fn is_any_object(&self) -> bool {
        self.format.is_some()
    }

    /// Sets the schema of the content that is sent on.
    pub fn constrain_content(&mut self, schema: &Value) {
        let name = self
            .content
            .as_ref()
            .and_then(|constraint| constraint.name.as_deref());
        let name = name.unwrap_or("answer");
        self.format = Some(json!({"type": "json_schema",
            "json_schema": {"name": name, "strict": true, "schema": schema}}));
    }

    /// Sets the schema of the arguments of a tool that is sent on.
    pub fn constrain_tool(&mut self, index: usize, schema: &Value) {
        if let Some(function) = self
            .described
            .get_mut(index)
            .and_then(|tool| tool.get_mut("function"))
        {
            function["parameters"] = schema.clone();
            function["strict"] = Value::Bool(true);
        }
    }

    /// Returns the body that is sent to the upstream.
    pub fn body(&self) -> String {
        self.with_messages(self.fields.clone(), &[])
    }

    /// Returns the body that asks for one more sample after further messages, not as a stream.
    pub fn body_again(&self, more: &[Value]) -> String {
        let mut fields = self.fields.clone();
        for name in ["n", "stream", "stream_options"] {
            fields.shift_remove(name);
        }
        self.with_messages(fields, more)
    }

    fn with_messages(&self, mut fields: Map<String, Value>, more: &[Value]) -> String {
        let messages = self.messages.iter().chain(more).cloned().collect();
        fields.insert("messages".to_owned(), Value::Array(messages));
        fields.extend(
            self.format
                .clone()
                .map(|format| ("response_format".to_owned(), format)),
        );
        if !self.described.is_empty() {
            fields.insert("tools".to_owned(), Value::Array(self.described.clone()));
        }
        fields.extend(self.choice.clone());
        Value::Object(fields).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_json(body: Value) -> Result<Forwarded, ApiError> {
        read(body.to_string().as_bytes())
    }

    fn said(more: Value) -> Value {
        let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
        for (name, value) in more.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        body
    }

    #[test]
    fn what_is_not_read_is_sent_on() {
        let more = json!({"temperature": 0.5, "brand_new_field": {"x": 1}, "n": 2, "stream": true,
            "stream_options": {"include_usage": true}, "user": null});
        let forwarded = read_json(said(more.clone())).expect("a request");
        assert_eq!((forwarded.samples, forwarded.stream), (2, true));
        let sent: Value = serde_json::from_str(&forwarded.body()).expect("JSON");
        assert_eq!(sent, said(more));
        let again: Value =
            serde_json::from_str(&forwarded.body_again(&[json!({"role": "user", "content": "again"})]))
                .expect("JSON");
        assert_eq!((&again["n"], &again["stream"]), (&Value::Null, &Value::Null));
        assert_eq!(again["messages"][1]["content"], "again");
    }

    #[test]
    fn schemas_are_replaced_wherever_they_were() {
        let schema = json!({"type": "object"});
        let format = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}});
        for (more, name) in [
            (json!({"response_format": format}), "x"),
            (json!({"guided_json": schema}), "answer"),
        ] {
            let mut forwarded = read_json(said(more)).expect("a request");
            assert!(forwarded.content.is_some());
            forwarded.constrain_content(&json!({"type": "null"}));
            let sent: Value = serde_json::from_str(&forwarded.body()).expect("JSON");
            let expected = json!({"name": name, "strict": true, "schema": {"type": "null"}});
            assert_eq!(sent["response_format"]["json_schema"], expected);
            assert_eq!(sent.get("guided_json"), None);
        }
        let any = read_json(said(json!({"response_format": {"type": "json_object"}}))).expect("a request");
        assert!(any.is_any_object());
        assert!(any.body().contains(r#""response_format":{"type":"json_object"}"#));
    }

    #[test]
    fn all_tools_are_projected_and_some_may_be_called() {
        let tool = |name: &str| json!({"type": "function", "function": {"name": name}});
        let more = json!({"tools": [tool("a"), tool("b")], "tool_choice": tool("b")});
        let mut forwarded = read_json(said(more)).expect("a request");
        assert_eq!(forwarded.tools.len(), 2);
        let calls = forwarded.calls.as_ref().expect("calls");
        assert_eq!((calls.tools.len(), calls.mode), (1, Mode::Bare));
        forwarded.constrain_tool(1, &json!({"type": "object"}));
        let sent: Value = serde_json::from_str(&forwarded.body()).expect("JSON");
        let expected = json!({"name": "b", "parameters": {"type": "object"}, "strict": true});
        assert_eq!(sent["tools"][1]["function"], expected);
        assert_eq!(sent["tool_choice"], tool("b"));
    }

    #[test]
    fn what_cannot_be_checked_is_refused_by_name() {
        let schema = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": {}}});
        let lark = json!({"type": "custom", "custom": {"name": "s", "format":
            {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: \"a\""}}}});
        for (more, param) in [
            (json!({"guided_regex": "a"}), "guided_regex"),
            (
                json!({"response_format": {"type": "regex", "pattern": "a"}}),
                "response_format.pattern",
            ),
            (json!({"response_fromat": {}}), "response_fromat"),
            (json!({"functions": []}), "functions"),
            (json!({"tools": [lark]}), "tools[0].custom.format"),
            (json!({"tools": [{"type": "web_search"}]}), "tools[0].type"),
            (json!({"response_format": schema, "logprobs": true}), "logprobs"),
            (json!({"n": 0}), "n"),
            (json!({"messages": []}), "messages"),
            (json!({"key_order": "any"}), "key_order"),
        ] {
            let error = read_json(said(more)).expect_err(param);
            assert_eq!(error.envelope().error.param, Some(param), "{error}");
        }
    }
}
