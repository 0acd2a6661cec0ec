//! The formats in which models write thoughts and calls of tools, by name, as data.
//!
//! ```text
//!   name, tools, choice ─► FORMATS: frames of a call, of all calls, of a thought ─► structural tag (JSON)
//! ```
//!
//! The names are those of xgrammar 0.2.8, and so are the tags but for one thing: where a call is required,
//! an answer in the `harmony` format has one. Two models have a shape of their own, [`kimi_k3`] and
//! [`harmony`]; all others are a row of the table.

use serde_json::{Value, json};

use super::model_formats::{
    Call, Calls, FORMATS, Format, HARMONY, HARMONY_CALLS, HARMONY_NEXT, KIMI_K3, KIMI_K3_CALL, KIMI_K3_CALLS,
    KIMI_K3_ENDS, Required, Thought,
};
use crate::suggest;
use lexiform_automata::error::{CompileError, Place, Problem, ProblemKind};

/// A tool that a model can call.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// The name: letters, digits, `_`, `-` and `.`.
    pub name: String,
    /// The JSON Schema of the arguments.
    pub parameters: Value,
}

/// Which tools an answer calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// Any of them, or none.
    #[default]
    Auto,
    /// At least one of them.
    Required,
    /// The tool with this name.
    Named(String),
}

/// The parts of an answer besides its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerShape {
    /// `true` if the answer begins with a thought.
    pub thinks: bool,
    /// `true` if there may be several calls.
    pub is_parallel: bool,
}

/// Returns the names of all formats.
pub fn model_formats() -> impl Iterator<Item = &'static str> {
    let rows = FORMATS.iter().map(|format| format.name);
    rows.chain([KIMI_K3.0, HARMONY.0])
}

/// Returns the structural tag of an answer in the format of a model.
///
/// # Errors
/// Returns an error if there is no such format, no tool, a tool whose name frames cannot contain, or no tool
/// with the chosen name.
pub fn for_model(
    name: &str,
    tools: &[Tool],
    choice: &ToolChoice,
    shape: AnswerShape,
) -> Result<Value, CompileError> {
    let tools = chosen(tools, choice)?;
    let form = match name {
        "kimi_k3" => kimi_k3(&tools, choice, shape),
        "harmony" => harmony(&tools, choice, shape),
        _ => match FORMATS.iter().find(|format| format.name == name) {
            Some(format) => format.answer(&tools, choice, shape),
            None => return Err(unknown(name)),
        },
    };
    Ok(json!({"type": "structural_tag", "format": form}))
}

/// Returns the error for a name that no format has, with the one that may be meant.
pub(crate) fn unknown(name: &str) -> CompileError {
    let message = match suggest::nearest(name, model_formats()) {
        Some(near) => format!("unknown model format `{name}`; did you mean `{near}`?"),
        None => {
            let all: Vec<&str> = model_formats().collect();
            format!("unknown model format `{name}` (formats: {})", all.join(", "))
        }
    };
    Problem::new(ProblemKind::Unsupported, Place::Whole, message).into()
}

/// The tools that an answer may call.
fn chosen<'t>(tools: &'t [Tool], choice: &ToolChoice) -> Result<Vec<&'t Tool>, CompileError> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    let mut problems = Vec::new();
    let mut problem = |message: String| {
        problems.push(Problem::new(ProblemKind::Invalid, Place::Whole, message));
    };
    for tool in tools {
        if tool.name.is_empty() || !tool.name.bytes().all(is_name) {
            let name = &tool.name;
            problem(format!(
                "the name {name:?} of a tool must be letters, digits, `_`, `-` and `.`"
            ));
        }
    }
    let is_chosen = |tool: &&Tool| match choice {
        ToolChoice::Named(name) => tool.name == *name,
        ToolChoice::Auto | ToolChoice::Required => true,
    };
    let chosen: Vec<&Tool> = tools.iter().filter(is_chosen).collect();
    if chosen.is_empty() {
        problem(match choice {
            ToolChoice::Named(name) => format!("there is no tool {name:?}"),
            ToolChoice::Auto | ToolChoice::Required => "there is no tool".to_owned(),
        });
    }
    match problems.is_empty() {
        true => Ok(chosen),
        false => Err(CompileError { problems }),
    }
}

impl Format {
    fn answer(&self, tools: &[&Tool], choice: &ToolChoice, shape: AnswerShape) -> Value {
        let calls = self.calls(tools, choice, shape.is_parallel);
        match &self.thought {
            Some(thought) if shape.thinks => sequence([thought.form(), calls]),
            Some(_) if !self.without_thought.is_empty() => {
                sequence(self.without_thought.iter().map(|part| text(part)).chain([calls]))
            }
            _ => calls,
        }
    }

    fn calls(&self, tools: &[&Tool], choice: &ToolChoice, is_parallel: bool) -> Value {
        let mut calls: Vec<Value> = tools.iter().map(|tool| self.call.form(tool)).collect();
        let named = match choice {
            ToolChoice::Named(_) => calls.pop(),
            ToolChoice::Auto | ToolChoice::Required => None,
        };
        let is_required = *choice == ToolChoice::Required;
        let triggered = |trigger: &str, tags: Vec<Value>| {
            json!({
                "type": "triggered_tags", "triggers": [trigger], "tags": tags, "at_least_one": is_required,
                "stop_after_first": !is_parallel, "excludes": self.without,
            })
        };
        let section = match &self.calls {
            Calls::Each(trigger) => return named.unwrap_or_else(|| triggered(trigger, calls)),
            Calls::Section(section) => section,
        };
        let (begin, end) = ([section.begin, section.after_begin].concat(), section.end);
        let all = |calls| separated(calls, section.separator, true, is_parallel);
        match (&section.required, named) {
            (Required::FreeText | Required::Tag, None) | (Required::After(_), None) if !is_required => {
                triggered(section.begin, vec![tag(&begin, all(calls), end)])
            }
            (Required::FreeText, None) => triggered(section.begin, vec![tag(&begin, all(calls), end)]),
            (Required::FreeText, Some(call)) => tag(&begin, call, end),
            (Required::Tag, None) => tag(&begin, all(calls), end),
            (Required::Tag, Some(call)) => {
                let around = |part: &str| call[part].as_str().unwrap_or_default().to_owned();
                let (begin, end) = (begin + &around("begin"), around("end") + end);
                tag(&begin, call["content"].clone(), &end)
            }
            (Required::After(before), named) => {
                let calls = named.unwrap_or_else(|| all(calls));
                sequence([text(&[before, &*begin].concat()), calls, text(end)])
            }
        }
    }
}

impl Call {
    fn form(&self, tool: &Tool) -> Value {
        let named = |part: &str| part.replace("{}", &tool.name);
        let arguments = json!({
            "type": "json_schema", "json_schema": tool.parameters, "style": self.style.as_str(),
            "any_order": false, "excludes": self.excludes,
        });
        let content = match self.after_number {
            Some(after) => sequence([
                json!({"type": "regex", "pattern": "\\d+"}),
                text(&named(after)),
                arguments,
            ]),
            None => arguments,
        };
        tag(&named(self.begin), content, self.end)
    }
}

impl Thought {
    fn form(&self) -> Value {
        let thought = tag(self.begin, any_text(self.without), self.end);
        match self.after {
            "" => thought,
            after => sequence([thought, text(after)]),
        }
    }
}

/// Kimi K3: every part of a message is in a frame.
fn kimi_k3(tools: &[&Tool], choice: &ToolChoice, shape: AnswerShape) -> Value {
    const MARKS: &[&str] = &["<|open|>", "<|close|>"];
    let (begin, end) = KIMI_K3_CALLS;
    let mut calls: Vec<Value> = tools.iter().map(|tool| KIMI_K3_CALL.form(tool)).collect();
    let calls = match choice {
        ToolChoice::Named(_) => calls.pop().unwrap_or_default(),
        ToolChoice::Auto | ToolChoice::Required => separated(calls, "", true, shape.is_parallel),
    };
    let calls = match choice {
        ToolChoice::Auto => json!({"type": "optional", "content": tag(begin, calls, end)}),
        ToolChoice::Required | ToolChoice::Named(_) => sequence([text(begin), calls, text(end)]),
    };
    let part = |begin, end| tag(begin, any_text(MARKS), end);
    let (response, message) = KIMI_K3_ENDS;
    let mut parts = match shape.thinks {
        true => vec![
            part("", "<|close|>think<|sep|>"),
            part("<|open|>response<|sep|>", response),
        ],
        false => vec![part("", response)],
    };
    parts.extend([calls, text(message)]);
    sequence(parts)
}

/// gpt-oss: messages in channels, one after another.
fn harmony(tools: &[&Tool], choice: &ToolChoice, shape: AnswerShape) -> Value {
    let frames = |tool: &&Tool| HARMONY_CALLS.each_ref().map(|call| call.form(tool));
    let calls: Vec<Value> = tools.iter().flat_map(frames).collect();
    let message = |channel: &str| {
        let begin = format!("<|channel|>{channel}<|message|>");
        json!({"type": "tag", "begin": begin, "content": any_text(&[]), "end": ["<|end|>", "<|return|>"]})
    };
    let mut messages = Vec::new();
    if *choice == ToolChoice::Auto {
        messages.push(message("final"));
    }
    if shape.thinks {
        messages.push(message("analysis"));
    }
    let is_required = *choice != ToolChoice::Auto;
    let some =
        |tags: &[Value], at_least_one, several| separated(tags.to_vec(), HARMONY_NEXT, at_least_one, several);
    let one = some(&calls, true, false);
    match (shape.is_parallel, is_required, messages.is_empty()) {
        (true, false, _) => some(&[calls, messages].concat(), false, true),
        (true, true, true) => some(&calls, true, true),
        (false, _, true) => one,
        // Messages, then calls. Messages may also come between calls.
        (true, true, false) => {
            let any = some(&[calls.clone(), messages.clone()].concat(), true, true);
            let after = sequence([text(HARMONY_NEXT), any]);
            let first = some(&messages, true, true);
            let rest = json!({"type": "optional", "content": after});
            let called = sequence([some(&calls, true, false), rest]);
            let thought = sequence([first, text(HARMONY_NEXT), called.clone()]);
            json!({"type": "or", "elements": [called, thought]})
        }
        (false, _, false) => {
            let after = sequence([some(&messages, true, true), text(HARMONY_NEXT), one.clone()]);
            let mut ways = vec![one, after];
            if !is_required {
                ways.insert(0, some(&messages, false, true));
            }
            json!({"type": "or", "elements": ways})
        }
    }
}

fn text(value: &str) -> Value {
    json!({"type": "const_string", "value": value})
}

fn any_text(excludes: &[&str]) -> Value {
    json!({"type": "any_text", "excludes": excludes})
}

fn tag(begin: &str, content: Value, end: &str) -> Value {
    json!({"type": "tag", "begin": begin, "content": content, "end": end})
}

fn sequence(elements: impl IntoIterator<Item = Value>) -> Value {
    json!({"type": "sequence", "elements": elements.into_iter().collect::<Vec<Value>>()})
}

fn separated(tags: Vec<Value>, separator: &str, at_least_one: bool, several: bool) -> Value {
    json!({
        "type": "tags_with_separator", "tags": tags, "separator": separator, "at_least_one": at_least_one,
        "stop_after_first": !several,
    })
}
