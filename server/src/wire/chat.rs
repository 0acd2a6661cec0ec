//! `POST /v1/chat/completions`: the request, and the shapes of its answers.

use serde_json::{Map, Value, json};

use super::constraint::{Constraint, Source};
use super::fields::{Fields, Problems};
use super::generation::{self, Generation};
use crate::error::ApiError;

/// The most messages of one conversation.
const MESSAGES: usize = 4_096;
/// The most tools of one request.
const TOOLS: usize = 128;

/// A chat request whose every field was checked.
#[derive(Clone, Debug)]
pub struct ChatRequest {
    /// The conversation.
    pub messages: Vec<Message>,
    /// The tools, as the client described them; only for the chat template.
    pub tools: Vec<Value>,
    /// The tool that the answer must call.
    pub forced_tool: Option<String>,
    /// More variables for the chat template.
    pub template_arguments: Map<String, Value>,
    /// Log-probabilities, with how many alternatives.
    pub logprobs: Option<u8>,
    /// Everything that all routes share. A forced tool's parameters are its constraint.
    pub generation: Generation,
}

/// One message of a conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message {
    /// Who speaks.
    pub role: String,
    /// What is said.
    pub content: Option<String>,
    /// The speaker's name.
    pub name: Option<String>,
    /// The tools that the assistant called, with arguments as values.
    pub tool_calls: Vec<Value>,
    /// The call that a tool's message answers.
    pub tool_call_id: Option<String>,
}

/// Reads a request.
///
/// # Errors
/// All problems of the body, in one error.
pub fn read(body: &[u8]) -> Result<ChatRequest, ApiError> {
    let mut fields = Fields::root(super::object(body)?);
    let mut problems = Problems::default();
    let mut generation = generation::read(&mut fields, &mut problems);
    let messages = messages(&mut fields, &mut problems);
    let tools = read_tools(&mut fields, &mut problems);
    let forced = forced_tool(&mut fields, &tools, &mut problems);
    if let (Some(_), Some(constraint)) = (&forced, &generation.constraint) {
        problems.invalid(
            constraint.param.clone(),
            "a forced tool is a constraint already; only one is possible",
        );
    }
    let forced_tool = forced.map(|(name, constraint)| {
        generation.constraint = Some(constraint);
        name
    });
    let template_arguments = template_arguments(&mut fields, &mut problems);
    let logprobs = generation::chat_logprobs(&mut fields, &mut problems);
    if let Some(modalities) = fields
        .take("modalities")
        .filter(|value| *value != json!(["text"]))
    {
        problems.unsupported(
            "modalities",
            format!("only [\"text\"] is possible, not {modalities}"),
        );
    }
    unsupported_fields(&mut fields, &mut problems);
    fields.finish(&mut problems);
    problems.check()?;
    let tools = tools.into_iter().map(|tool| tool.described).collect();
    Ok(ChatRequest {
        messages,
        tools,
        forced_tool,
        template_arguments,
        logprobs,
        generation,
    })
}

fn unsupported_fields(fields: &mut Fields, problems: &mut Problems) {
    let table: &[(&str, &[&str])] = &[
        ("audio", &[]),
        ("web_search_options", &[]),
        ("chat_template", &[]),
        ("add_generation_prompt", &["true"]),
        ("continue_final_message", &["false"]),
        ("echo", &["false"]),
        ("documents", &["[]"]),
        ("function_call", &["\"none\""]),
        ("functions", &["[]"]),
    ];
    fields.only_neutral(table, problems);
    fields.ignore(&["prediction", "include_reasoning", "parallel_tool_calls"]);
}

fn template_arguments(fields: &mut Fields, problems: &mut Problems) -> Map<String, Value> {
    let mut arguments = Map::new();
    match fields.take("chat_template_kwargs") {
        None => {}
        Some(Value::Object(map)) => arguments = map,
        Some(_) => problems.invalid("chat_template_kwargs", "expected an object"),
    }
    if let Some(effort) = fields.string("reasoning_effort", problems) {
        arguments.insert("reasoning_effort".to_owned(), Value::String(effort));
    }
    arguments
}

fn messages(fields: &mut Fields, problems: &mut Problems) -> Vec<Message> {
    let items = fields.array("messages", problems).unwrap_or_default();
    if items.is_empty() || items.len() > MESSAGES {
        problems.invalid("messages", format!("expected 1 to {MESSAGES} messages"));
        return Vec::new();
    }
    items
        .into_iter()
        .enumerate()
        .filter_map(|(index, item)| message(index, item, problems))
        .collect()
}

fn message(index: usize, item: Value, problems: &mut Problems) -> Option<Message> {
    let path = format!("messages[{index}]");
    let mut fields = Fields::of(item, &path, problems)?;
    let roles = [
        ("system", "system"),
        ("developer", "system"),
        ("user", "user"),
        ("assistant", "assistant"),
        ("tool", "tool"),
    ];
    if !fields.has("role") {
        problems.invalid(fields.path("role"), "a role is required");
    }
    let role = fields.word("role", &roles, problems)?.to_owned();
    let content = content(&mut fields, problems);
    let tool_calls = tool_calls(&mut fields, problems);
    if content.is_none() && tool_calls.is_empty() && !fields.has("refusal") && role != "assistant" {
        problems.invalid(fields.path("content"), "a content is required");
    }
    let name = fields.string("name", problems);
    let tool_call_id = fields.string("tool_call_id", problems);
    Some(Message {
        role,
        content,
        name,
        tool_calls,
        tool_call_id,
    })
}

/// A text, or parts of type `text`, which are joined by line breaks.
fn content(fields: &mut Fields, problems: &mut Problems) -> Option<String> {
    let path = fields.path("content");
    let parts = match fields.take("content")? {
        Value::String(text) => return Some(text),
        Value::Array(parts) => parts,
        other => {
            let found = super::fields::type_name(&other);
            problems.invalid(
                path,
                format!("expected a string or an array of parts, found {found}"),
            );
            return None;
        }
    };
    let mut texts = Vec::with_capacity(parts.len());
    for (index, part) in parts.into_iter().enumerate() {
        let at = format!("{path}[{index}]");
        let Some(mut part) = Fields::of(part, &at, problems) else {
            continue;
        };
        let kind = part.string("type", problems).unwrap_or_default();
        match kind.as_str() {
            "text" | "refusal" => texts.extend(part.string(&kind, problems)),
            _ => problems.unsupported(
                format!("{at}.type"),
                format!("only parts of type 'text' are read, not '{kind}'"),
            ),
        }
    }
    Some(texts.join("\n"))
}

/// The calls of an assistant's message. Templates want the arguments as values where the API has them as text.
fn tool_calls(fields: &mut Fields, problems: &mut Problems) -> Vec<Value> {
    let path = fields.path("tool_calls");
    let items = fields.array("tool_calls", problems).unwrap_or_default();
    let mut calls = Vec::with_capacity(items.len());
    for (index, mut item) in items.into_iter().enumerate() {
        if !item.is_object() {
            problems.invalid(format!("{path}[{index}]"), "expected an object");
            continue;
        }
        if let Some(arguments) = item.pointer_mut("/function/arguments")
            && let Some(parsed) = arguments
                .as_str()
                .and_then(|text| serde_json::from_str::<Value>(text).ok())
            && parsed.is_object()
        {
            *arguments = parsed;
        }
        calls.push(item);
    }
    calls
}

/// A function that the model may call.
struct Tool {
    name: String,
    parameters: Option<Value>,
    param: String,
    described: Value,
}

fn read_tools(fields: &mut Fields, problems: &mut Problems) -> Vec<Tool> {
    let items = fields.array("tools", problems).unwrap_or_default();
    if items.len() > TOOLS {
        problems.invalid("tools", format!("expected up to {TOOLS} tools"));
        return Vec::new();
    }
    items
        .into_iter()
        .enumerate()
        .filter_map(|(index, item)| tool(index, item, problems))
        .collect()
}

fn tool(index: usize, item: Value, problems: &mut Problems) -> Option<Tool> {
    let path = format!("tools[{index}]");
    let described = item.clone();
    let mut fields = Fields::of(item, &path, problems)?;
    let kind = fields.string("type", problems);
    if kind.as_deref() != Some("function") {
        problems.unsupported(fields.path("type"), "only tools of type 'function' are possible");
        return None;
    }
    let mut function = fields.object("function", problems)?;
    let name_path = function.path("name");
    let name = function.string("name", problems);
    let valid = |name: &String| !name.is_empty() && name.len() <= 64;
    let Some(name) = name.filter(valid) else {
        problems.invalid(name_path, "expected a name of 1 to 64 characters");
        return None;
    };
    function.boolean("strict", problems);
    let param = function.path("parameters");
    Some(Tool {
        name,
        parameters: function.take("parameters"),
        param,
        described,
    })
}

/// The tool that the choice forces, with its parameters as a constraint.
fn forced_tool(fields: &mut Fields, tools: &[Tool], problems: &mut Problems) -> Option<(String, Constraint)> {
    let choice = fields.take("tool_choice");
    let tool = match choice.as_ref().map(|choice| choice.as_str().ok_or(choice)) {
        None | Some(Ok("auto")) if tools.is_empty() => return None,
        Some(Ok("none")) => return None,
        None | Some(Ok("auto")) => {
            problems.unsupported(
                "tool_choice",
                "'auto' is not supported; choose 'none', 'required' or a named tool",
            );
            return None;
        }
        Some(Ok("required")) => required(tools, problems)?,
        Some(Err(object)) => named(object, tools, problems)?,
        Some(Ok(_)) => {
            problems.invalid("tool_choice", "expected 'none', 'required' or a named tool");
            return None;
        }
    };
    let schema = tool
        .parameters
        .clone()
        .unwrap_or_else(|| json!({"type": "object", "properties": {}}));
    let mut constraint = Constraint::new(Source::Schema(schema.to_string()), tool.param.clone());
    constraint.name = Some(tool.name.clone());
    Some((tool.name.clone(), constraint))
}

fn required<'a>(tools: &'a [Tool], problems: &mut Problems) -> Option<&'a Tool> {
    match tools {
        [tool] => Some(tool),
        [] => {
            problems.invalid("tool_choice", "'required' needs at least one tool");
            None
        }
        _ => {
            problems.unsupported(
                "tool_choice",
                "'required' with several tools is not supported; name one",
            );
            None
        }
    }
}

fn named<'a>(choice: &Value, tools: &'a [Tool], problems: &mut Problems) -> Option<&'a Tool> {
    let is_function = choice.get("type").and_then(Value::as_str) == Some("function");
    let name = choice.pointer("/function/name").and_then(Value::as_str);
    let Some(name) = name.filter(|_| is_function) else {
        problems.unsupported(
            "tool_choice",
            "expected {\"type\": \"function\", \"function\": {\"name\": …}}",
        );
        return None;
    };
    let tool = tools.iter().find(|tool| tool.name == name);
    if tool.is_none() {
        problems.invalid("tool_choice", format!("there is no tool '{name}'"));
    }
    tool
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOL: &str = r#"{"type":"function","function":{"name":"mk","parameters":{"type":"object"}}}"#;

    #[test]
    fn parts_are_joined_and_developers_are_the_system() {
        let body = r#"{"model":"m","messages":[{"role":"developer","content":"a"},
            {"role":"user","content":[{"type":"text","text":"b"},{"type":"text","text":"c"}]}]}"#;
        let request = read(body.as_bytes()).expect("a plain request");
        assert_eq!(request.messages[0].role, "system");
        assert_eq!(request.messages[1].content.as_deref(), Some("b\nc"));
    }

    #[test]
    fn all_problems_are_told_at_once() {
        let body = br#"{"messages":[{"role":"king","content":3}],"temperature":"hot","n":0,"top_p":2}"#;
        let message = read(body).expect_err("five problems").to_string();
        for field in ["model", "messages[0].role", "temperature", "n:", "top_p"] {
            assert!(message.contains(field), "{field} is missing in {message}");
        }
    }

    #[test]
    fn a_named_tool_is_a_constraint() {
        let choice = r#"{"type":"function","function":{"name":"mk"}}"#;
        let body = format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":"x"}}],"tools":[{TOOL}],"tool_choice":{choice}}}"#
        );
        let request = read(body.as_bytes()).expect("a forced tool");
        assert_eq!(request.forced_tool.as_deref(), Some("mk"));
        let constraint = request.generation.constraint.expect("its parameters");
        assert_eq!(
            constraint.source,
            Source::Schema(r#"{"type":"object"}"#.to_owned())
        );
        assert_eq!(constraint.param, "tools[0].function.parameters");
    }

    #[test]
    fn a_free_choice_of_tools_is_refused_rather_than_ignored() {
        let body =
            format!(r#"{{"model":"m","messages":[{{"role":"user","content":"x"}}],"tools":[{TOOL}]}}"#);
        let error = read(body.as_bytes()).expect_err("auto");
        assert_eq!(error.code(), "unsupported_parameter");
    }
}
