//! `POST /v1/responses`: the stateless part of the request. Its conversation becomes a chat.
//!
//! Fields that would need stored state (`previous_response_id`, `conversation`, `background`, a stored
//! `prompt`) are refused; `store` is accepted and the answer says `false`.

use serde_json::{Map, Value, json};

use super::chat::{self, ChatRequest, Message};
use super::constraint;
use super::fields::{Fields, Problems};
use super::generation::{self, Generation};
use super::tools::{self, Spelling};
use crate::wire::error::ApiError;

/// The maximum number of items in an input.
const ITEMS: usize = 4_096;
/// The maximum number of alternatives that may be listed for each token.
const TOP_LOGPROBS: i64 = 20;

/// The fields of the request that the answer repeats, with the value for a field that was not sent.
const REPEATED: [(&str, &str); 13] = [
    ("instructions", "null"),
    ("max_output_tokens", "null"),
    ("metadata", "{}"),
    ("parallel_tool_calls", "true"),
    ("previous_response_id", "null"),
    ("reasoning", r#"{"effort":null,"summary":null}"#),
    ("temperature", "1.0"),
    ("text", r#"{"format":{"type":"text"}}"#),
    ("tool_choice", r#""auto""#),
    ("tools", "[]"),
    ("top_p", "1.0"),
    ("truncation", r#""disabled""#),
    ("user", "null"),
];

/// A request whose every field was checked.
#[derive(Clone, Debug)]
pub struct ResponsesRequest {
    /// The request as a chat.
    pub chat: ChatRequest,
    /// The fields of the request that the answer repeats.
    pub repeated: Map<String, Value>,
}

/// Reads a request.
///
/// # Errors
/// Returns all problems of the body in one error.
pub fn read(body: &[u8]) -> Result<ResponsesRequest, ApiError> {
    let body = super::object(body)?;
    let repeated = repeated(&body);
    let mut fields = Fields::root(body);
    let mut problems = Problems::default();
    let mut generation = length(&mut fields, &mut problems);
    let format = constraint::fields::text_format(&mut fields, &mut problems);
    one_constraint(&mut generation, format, &mut problems);
    let messages = conversation(&mut fields, &mut problems);
    let mut tools = tools::read(&mut fields, Spelling::Flat, &mut problems);
    generation.settle_writing(&mut fields, tools.calls.as_mut(), &mut problems);
    chat::settle(&mut generation, tools.calls.as_ref(), &mut problems);
    let contrast = chat::contrast(&mut fields, &mut problems);
    let (reasoning, template_arguments) = chat::reasoning::read(&mut fields, &mut problems);
    generation.reasons(&reasoning, &mut problems);
    let logprobs = logprobs(&mut fields, &mut problems);
    unsupported(&mut fields, &mut problems);
    chat::not_healed(&mut fields, &mut problems);
    fields.finish(&mut problems);
    let ignored = problems.check()?;
    let chat = ChatRequest {
        messages,
        continues: false,
        tools: tools.described,
        calls: tools.calls,
        template_arguments,
        logprobs,
        reasoning,
        token_details: None,
        prediction: None,
        contrast,
        generation,
        ignored,
    };
    Ok(ResponsesRequest { chat, repeated })
}

fn repeated(body: &Map<String, Value>) -> Map<String, Value> {
    let value = |(name, default): &(&str, &str)| {
        let sent = body.get(*name).filter(|value| !value.is_null()).cloned();
        let value = sent.or_else(|| serde_json::from_str(default).ok());
        ((*name).to_owned(), value.unwrap_or_default())
    };
    REPEATED.iter().map(value).collect()
}

/// Takes the shared fields; the maximum length has a different name here.
fn length(fields: &mut Fields, problems: &mut Problems) -> Generation {
    let tokens = fields.integer("max_output_tokens", 1, i64::from(u32::MAX), problems);
    let mut generation = generation::read(fields, problems);
    generation.not_a_chat(problems);
    if let Some(tokens) = tokens {
        generation.max_tokens = Some(tokens as usize);
    }
    if generation.n != 1 {
        problems.unsupported("n", "a response has one sample; n must be 1");
    }
    generation
}

fn one_constraint(
    generation: &mut Generation,
    format: Option<constraint::Constraint>,
    problems: &mut Problems,
) {
    let Some(format) = format else { return };
    if let Some(other) = &generation.constraint {
        let message = format!("only one constraint is allowed; {} is another one", other.param);
        problems.invalid(format.param.clone(), message);
    }
    generation.constraint = Some(format);
    generation.ends_whole("the text of text.format", problems);
}

fn logprobs(fields: &mut Fields, problems: &mut Problems) -> Option<u8> {
    let listed = fields.array("include", problems).unwrap_or_default();
    let wanted = listed.iter().any(|entry| entry == "message.output_text.logprobs");
    for (index, entry) in listed.iter().enumerate() {
        let known = ["message.output_text.logprobs", "reasoning.encrypted_content"];
        if !known.iter().any(|known| entry == known) {
            problems.ignore(&format!("include[{index}]"));
        }
    }
    let top = fields.integer("top_logprobs", 0, TOP_LOGPROBS, problems);
    (wanted || top.is_some_and(|top| top > 0)).then_some(top.unwrap_or(0) as u8)
}

fn unsupported(fields: &mut Fields, problems: &mut Problems) {
    let table: &[(&str, &[&str])] = &[
        ("previous_response_id", &[]),
        ("conversation", &[]),
        ("prompt", &[]),
        ("background", &["false"]),
        ("truncation", &["\"disabled\""]),
        ("context_management", &["[]"]),
        ("modalities", &["[\"text\"]"]),
    ];
    fields.only_neutral(table, problems);
    fields.ignore(&["max_tool_calls"]);
}

/// Takes the instructions and the items, as messages.
pub(crate) fn conversation(fields: &mut Fields, problems: &mut Problems) -> Vec<Message> {
    let instructions = fields.string("instructions", problems);
    let system = instructions.map(|text| Message {
        role: "system".to_owned(),
        content: Some(text),
        ..Message::default()
    });
    let items = match fields.take("input") {
        Some(Value::String(text)) => vec![json!({"role": "user", "content": text})],
        Some(Value::Array(items)) if (1..=ITEMS).contains(&items.len()) => items,
        _ => {
            problems.invalid("input", format!("expected a text or 1 to {ITEMS} items"));
            return Vec::new();
        }
    };
    let mut messages: Vec<Message> = system.into_iter().collect();
    for (index, item) in items.into_iter().enumerate() {
        let path = format!("input[{index}]");
        let kind = item["type"].as_str().unwrap_or("message").to_owned();
        match kind.as_str() {
            "message" => messages.extend(chat::message(&path, item, problems)),
            "function_call" | "custom_tool_call" => {
                check_item(&item, &path, problems);
                call(&kind, &item, &path, &mut messages, problems);
            }
            "function_call_output" | "custom_tool_call_output" => {
                check_item(&item, &path, problems);
                messages.extend(output(item, &path, problems));
            }
            // The model's thoughts in earlier turns are not shown to it again, in accordance with its
            // templates.
            "reasoning" => {}
            other => problems.unsupported(
                format!("{path}.type"),
                format!("items of type '{other}' are not supported"),
            ),
        }
    }
    messages
}

/// Records fields of a call, or of a tool's output, that are not read.
fn check_item(item: &Value, path: &str, problems: &mut Problems) {
    const KNOWN: &[&str] = &[
        "type",
        "id",
        "status",
        "call_id",
        "name",
        "arguments",
        "input",
        "output",
        "namespace",
        "created_by",
    ];
    Fields::beside(item, KNOWN, path).finish(problems);
}

/// Reads a call that the assistant made. Consecutive calls belong to one message.
fn call(kind: &str, item: &Value, path: &str, messages: &mut Vec<Message>, problems: &mut Problems) {
    let text = |key: &str| item[key].as_str().unwrap_or_default();
    if text("name").is_empty() || text("call_id").is_empty() {
        problems.invalid(path, "a call needs a name and a call_id");
        return;
    }
    let call = if kind == "function_call" {
        // Templates expect arguments as values; a text that is not JSON stays a text.
        let arguments = serde_json::from_str::<Value>(text("arguments"))
            .ok()
            .filter(Value::is_object)
            .unwrap_or_else(|| item["arguments"].clone());
        json!({"id": text("call_id"), "type": "function",
               "function": {"name": text("name"), "arguments": arguments}})
    } else {
        json!({"id": text("call_id"), "type": "custom",
               "custom": {"name": text("name"), "input": text("input")}})
    };
    match messages.last_mut().filter(|last| last.role == "assistant") {
        Some(last) => last.tool_calls.push(call),
        None => messages.push(Message {
            role: "assistant".to_owned(),
            tool_calls: vec![call],
            ..Message::default()
        }),
    }
}

/// Reads the output of a tool.
fn output(item: Value, path: &str, problems: &mut Problems) -> Option<Message> {
    let content = match &item["output"] {
        Value::String(text) => Value::from(text.as_str()),
        Value::Array(parts) => Value::from(parts.clone()),
        _ => {
            problems.invalid(format!("{path}.output"), "expected a string or an array of parts");
            return None;
        }
    };
    let message = json!({"role": "tool", "content": content, "tool_call_id": item["call_id"]});
    chat::message(path, message, problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_become_messages() {
        let body = json!({"model": "m", "instructions": "be brief", "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "a"}]},
            {"type": "reasoning", "summary": []},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{\"x\":1}"},
            {"type": "custom_tool_call", "call_id": "d", "name": "s", "input": "q"},
            {"type": "function_call_output", "call_id": "c", "output": "one"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "b"}]}]});
        let request = read(body.to_string().as_bytes()).expect("a request");
        let roles: Vec<&str> = request.chat.messages.iter().map(|m| m.role.as_str()).collect();
        assert_eq!(roles, ["system", "user", "assistant", "tool", "assistant"]);
        assert_eq!(request.chat.messages[2].tool_calls.len(), 2);
        assert_eq!(
            request.chat.messages[2].tool_calls[0]["function"]["arguments"],
            json!({"x": 1})
        );
        assert_eq!(request.chat.messages[3].tool_call_id.as_deref(), Some("c"));
    }

    #[test]
    fn what_needs_a_memory_is_refused() {
        for more in [
            json!({"previous_response_id": "resp_1"}),
            json!({"conversation": "c"}),
            json!({"background": true}),
            json!({"prompt": {"id": "p"}}),
            json!({"input": [{"type": "item_reference", "id": "x"}]}),
        ] {
            let mut body = json!({"model": "m", "input": "x"});
            body.as_object_mut()
                .expect("an object")
                .extend(more.as_object().cloned().unwrap_or_default());
            let error = read(body.to_string().as_bytes()).expect_err("a refusal");
            assert_eq!(error.code(), "unsupported_parameter", "{more}");
        }
    }

    #[test]
    fn a_format_is_a_constraint_and_a_forced_tool_wins_over_it() {
        let format = json!({"format": {"type": "json_schema", "name": "P", "schema": {"type": "object"}}});
        let tool = json!({"type": "function", "name": "P", "parameters": {"type": "object"}});
        let body = json!({"model": "m", "input": "x", "text": format});
        let request = read(body.to_string().as_bytes()).expect("a format");
        let constraint = request.chat.generation.constraint.expect("a constraint");
        assert_eq!(constraint.param, "text.format.schema");
        let body = json!({"model": "m", "input": "x", "text": format, "tools": [tool],
                          "tool_choice": {"type": "function", "name": "P"}});
        let request = read(body.to_string().as_bytes()).expect("a forced tool");
        assert!(request.chat.generation.constraint.is_none() && request.chat.calls.is_some());
    }
}
