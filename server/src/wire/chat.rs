//! `POST /v1/chat/completions`: the request, and the shapes of its answers.
//!
//! `forwarded`, `upstream` and `projected` are what a gateway reads and writes.

mod continuing;
pub mod forwarded;
pub mod projected;
pub mod reasoning;
pub mod upstream;

use serde_json::{Map, Value, json};

use self::reasoning::Reasoning;
use super::constraint::Constraint;
use super::fields::{Fields, Ignored, Problems};
use super::generation::{self, Contrast, Generation};
use super::tools::{self, Calls, Mode, Spelling};
use crate::wire::error::ApiError;

/// The maximum number of messages in a conversation.
const MESSAGES: usize = 4_096;

/// The fields that clients repeat from an earlier answer, or from an item of one, and that no template reads.
const REPEATED: &[&str] = &[
    "type",
    "id",
    "status",
    "phase",
    "refusal",
    "annotations",
    "audio",
    "reasoning",
    "reasoning_content",
    "parsed",
];

/// A chat request whose every field was checked.
#[derive(Clone, Debug)]
pub struct ChatRequest {
    /// The conversation.
    pub messages: Vec<Message>,
    /// `true` if the answer continues the last message.
    pub continues: bool,
    /// The tools, as the client described them; only for the chat template.
    pub tools: Vec<Value>,
    /// The tools that the answer may or must call.
    pub calls: Option<Calls>,
    /// Additional variables for the chat template.
    pub template_arguments: Map<String, Value>,
    /// The number of alternatives in log-probabilities; `None` for no log-probabilities.
    pub logprobs: Option<u8>,
    /// Whether the answer begins with a thought, and how long it may be.
    pub reasoning: Reasoning,
    /// The details of each token in a stream besides its text.
    pub token_details: Option<TokenDetails>,
    /// Text that the answer is likely to repeat; it affects the speed of the answer, never its content.
    pub prediction: Option<String>,
    /// What the answer is contrasted with: another conversation, or the draft model.
    pub contrast: Option<Contrast<Vec<Message>>>,
    /// The fields that all routes share.
    pub generation: Generation,
    /// The fields that have no effect here.
    pub ignored: Ignored,
}

impl ChatRequest {
    /// Creates a request with a conversation and default settings.
    pub fn plain(model: &str, messages: Vec<Message>) -> Self {
        Self {
            messages,
            continues: false,
            tools: Vec::new(),
            calls: None,
            template_arguments: Map::new(),
            logprobs: None,
            reasoning: Reasoning::default(),
            token_details: None,
            prediction: None,
            contrast: None,
            generation: Generation::plain(model),
            ignored: Ignored::default(),
        }
    }

    /// Returns all constraints of the request.
    pub fn constraints(&self) -> impl Iterator<Item = &Constraint> {
        let tools = self.calls.iter().flat_map(|calls| &calls.tools);
        let inputs = tools.filter_map(|tool| tool.input.constraint());
        self.generation.constraints().chain(inputs)
    }

    /// Returns the bytes of its messages and their calls, which for most models is the minimum that any
    /// template writes of it.
    pub fn bytes(&self) -> usize {
        let texts = |message: &Message| {
            let content = message.content.as_ref().map_or(0, String::len);
            content + message.name.as_ref().map_or(0, String::len)
        };
        self.messages.iter().map(texts).sum()
    }
}

/// The details to report about each token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenDetails {
    /// How many of the model's likeliest tokens, and of the likeliest allowed ones, are listed with it.
    pub top: u8,
    /// `true` to name its places in the constraint.
    pub places: bool,
    /// `true` to list the drafts of its pass.
    pub drafts: bool,
}

/// One message of a conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message {
    /// The role of the speaker.
    pub role: String,
    /// The text of the message.
    pub content: Option<String>,
    /// The name of the speaker.
    pub name: Option<String>,
    /// The tools that the assistant called, with arguments as values.
    pub tool_calls: Vec<Value>,
    /// The call that a tool's message answers.
    pub tool_call_id: Option<String>,
}

impl Message {
    /// Returns the message as chat templates read it.
    pub fn to_json(&self) -> Value {
        let mut entries = Map::new();
        entries.insert("role".to_owned(), self.role.as_str().into());
        // Templates concatenate the content without checking that it exists.
        let content = self.content.as_deref().unwrap_or_default();
        entries.insert("content".to_owned(), content.into());
        for (key, text) in [("name", &self.name), ("tool_call_id", &self.tool_call_id)] {
            entries.extend(text.as_deref().map(|text| (key.to_owned(), text.into())));
        }
        if !self.tool_calls.is_empty() {
            entries.insert("tool_calls".to_owned(), self.tool_calls.clone().into());
        }
        Value::Object(entries)
    }
}

/// Reads a request.
///
/// # Errors
/// Returns all problems of the body in one error.
pub fn read(body: &[u8]) -> Result<ChatRequest, ApiError> {
    let mut fields = Fields::root(super::object(body)?);
    let mut problems = Problems::default();
    let mut generation = generation::read(&mut fields, &mut problems);
    let messages = messages(&mut fields, &mut problems);
    let mut tools = tools::read(&mut fields, Spelling::Nested, &mut problems);
    generation.settle_writing(&mut fields, tools.calls.as_mut(), &mut problems);
    settle(&mut generation, tools.calls.as_ref(), &mut problems);
    let contrast = contrast(&mut fields, &mut problems);
    let continues = continuing::read(&mut fields, last(&messages), &mut problems);
    if continues {
        let calls = tools.calls.as_ref();
        continuing::check(&generation, calls, contrast.is_some(), &mut problems);
    }
    let (reasoning, template_arguments) = reasoning::read(&mut fields, &mut problems);
    generation.reasons(&reasoning, &mut problems);
    let logprobs = generation::chat_logprobs(&mut fields, &mut problems);
    let token_details = token_details(&mut fields, &mut problems);
    if token_details.is_some() && generation.stream.is_none() {
        problems.invalid("token_details", "only possible with stream: true");
    }
    if let Some(modalities) = fields
        .take("modalities")
        .filter(|value| *value != json!(["text"]))
    {
        problems.unsupported(
            "modalities",
            format!("only [\"text\"] is supported, not {modalities}"),
        );
    }
    let prediction = prediction(&mut fields, &mut problems);
    if prediction.is_some() && !generation.copies() {
        problems.ignore("prediction");
    }
    unsupported_fields(&mut fields, &mut problems);
    not_healed(&mut fields, &mut problems);
    fields.finish(&mut problems);
    let ignored = problems.check()?;
    Ok(ChatRequest {
        messages,
        continues,
        tools: tools.described,
        calls: tools.calls,
        template_arguments,
        logprobs,
        reasoning,
        token_details,
        prediction,
        contrast,
        generation,
        ignored,
    })
}

/// Returns the last message, as far as it matters where it is continued.
fn last(messages: &[Message]) -> Option<continuing::Last<'_>> {
    messages.last().map(|last| continuing::Last {
        path: format!("messages[{}]", messages.len() - 1),
        role: &last.role,
        content: last.content.as_deref(),
        calls: !last.tool_calls.is_empty(),
    })
}

/// Takes `true`, or an object that selects further details.
fn token_details(fields: &mut Fields, problems: &mut Problems) -> Option<TokenDetails> {
    let value = match fields.take("token_details")? {
        Value::Bool(wanted) => return wanted.then(TokenDetails::default),
        value => value,
    };
    let mut inner = Fields::of(value, &fields.path("token_details"), problems)?;
    let top = inner.integer("top", 0, generation::TOP_LOGPROBS, problems);
    let places = inner.boolean("places", problems);
    let drafts = inner.boolean("drafts", problems);
    inner.finish_strict(problems);
    Some(TokenDetails {
        top: top.unwrap_or(0) as u8,
        places: places.unwrap_or(false),
        drafts: drafts.unwrap_or(false),
    })
}

/// Applies the choice of tools to the other fields: an answer that is a call has no content, so nothing
/// constrains its content, and a call ends where it is complete.
pub(crate) fn settle(generation: &mut Generation, calls: Option<&Calls>, problems: &mut Problems) {
    let Some(calls) = calls else { return };
    if calls.mode != Mode::Auto {
        generation.constraint = None;
    }
    generation.ends_whole("a call of a tool", problems);
}

/// Refuses `token_healing` in a chat.
pub(crate) fn not_healed(fields: &mut Fields, problems: &mut Problems) {
    if fields.boolean("token_healing", problems) == Some(true) {
        let message = "only possible at /v1/completions: the prompt of a chat ends in what its template writes, where there is \
                       nothing to heal";
        problems.unsupported("token_healing", message);
    }
}

fn unsupported_fields(fields: &mut Fields, problems: &mut Problems) {
    let table: &[(&str, &[&str])] = &[
        ("audio", &[]),
        ("web_search_options", &[]),
        ("chat_template", &[]),
        ("echo", &["false"]),
        ("documents", &["[]"]),
        ("function_call", &["\"none\""]),
        ("functions", &["[]"]),
    ];
    fields.only_neutral(table, problems);
}

/// Takes what the answer is contrasted with.
pub(super) fn contrast(fields: &mut Fields, problems: &mut Problems) -> Option<Contrast<Vec<Message>>> {
    Contrast::read(fields, problems, |inner, problems| {
        Some(messages(inner, problems)).filter(|messages| !messages.is_empty())
    })
}

/// Takes the messages of a conversation.
fn messages(fields: &mut Fields, problems: &mut Problems) -> Vec<Message> {
    let path = fields.path("messages");
    let items = fields.array_of("messages", MESSAGES, "messages", problems);
    items
        .unwrap_or_default()
        .into_iter()
        .enumerate()
        .filter_map(|(index, item)| message(&format!("{path}[{index}]"), item, problems))
        .collect()
}

/// Reads a message at this path.
pub(crate) fn message(path: &str, item: Value, problems: &mut Problems) -> Option<Message> {
    let mut fields = Fields::of(item, path, problems)?;
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
        problems.invalid(fields.path("content"), "content is required");
    }
    let name = fields.string("name", problems);
    let tool_call_id = fields.string("tool_call_id", problems);
    fields.ignore(REPEATED);
    fields.finish(problems);
    Some(Message {
        role,
        content,
        name,
        tool_calls,
        tool_call_id,
    })
}

/// Takes the text of OpenAI's predicted outputs.
fn prediction(fields: &mut Fields, problems: &mut Problems) -> Option<String> {
    let mut prediction = fields.object("prediction", problems)?;
    for name in ["type", "content"] {
        if !prediction.has(name) {
            problems.invalid(prediction.path(name), "this field is required");
        }
    }
    prediction.word("type", &[("content", ())], problems);
    let text = content(&mut prediction, problems);
    prediction.finish(problems);
    text
}

/// Takes a text, or parts of type `text`, which are joined by line breaks.
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
            "text" | "input_text" | "output_text" => texts.extend(text_of(&mut part, "text", problems)),
            "refusal" => texts.extend(text_of(&mut part, "refusal", problems)),
            _ => problems.unsupported(
                format!("{at}.type"),
                format!("only parts of type 'text' are supported, not '{kind}'"),
            ),
        }
        part.ignore(&["annotations", "logprobs"]);
        part.finish(problems);
    }
    Some(texts.join("\n"))
}

/// Takes the text of a part, which is required: a part without it would be ignored silently.
fn text_of(part: &mut Fields, name: &'static str, problems: &mut Problems) -> Option<String> {
    if !part.has(name) {
        problems.invalid(part.path(name), "this field is required");
    }
    part.string(name, problems)
}

/// Takes the calls of an assistant's message. Templates expect the arguments as values, while the API has
/// them as text.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::tools::Input;

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
        let body =
            br#"{"model":5,"messages":[{"role":"king","content":3}],"temperature":"hot","n":0,"top_p":2}"#;
        let message = read(body).expect_err("five problems").to_string();
        for field in ["model", "messages[0].role", "temperature", "n:", "top_p"] {
            assert!(message.contains(field), "{field} is missing in {message}");
        }
    }

    #[test]
    fn a_named_tool_is_the_only_one() {
        use crate::wire::constraint::Source;
        let choice = r#"{"type":"function","function":{"name":"mk"}}"#;
        let body = format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":"x"}}],"tools":[{TOOL}],"tool_choice":{choice}}}"#
        );
        let request = read(body.as_bytes()).expect("a forced tool");
        let calls = request.calls.expect("a forced tool");
        assert_eq!((calls.mode, calls.tools[0].name.as_str()), (Mode::Bare, "mk"));
        let Input::Arguments(constraint) = &calls.tools[0].input else {
            panic!("a function has parameters")
        };
        assert_eq!(
            constraint.source,
            Source::Schema(r#"{"type":"object"}"#.to_owned())
        );
        assert_eq!(constraint.param, "tools[0].function.parameters");
    }

    #[test]
    fn a_call_may_have_stops_and_no_weight_beside_them() {
        let body = |more: &str| {
            format!(
                r#"{{"model":"m","messages":[{{"role":"user","content":"x"}}],"tools":[{TOOL}],"stop":"}}"{more}}}"#
            )
        };
        let request = read(body("").as_bytes()).expect("a stop that is looked for");
        assert_eq!(request.generation.stop.texts, ["}"]);
        let error = read(body(r#","weights":true"#).as_bytes()).expect_err("a contradiction");
        assert!(error.to_string().contains("weights"), "{error}");
    }
}
