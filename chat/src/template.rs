//! Templates: parsed once to check them, and evaluated with the variables that `transformers` gives.

use std::collections::HashMap;

use minijinja::Environment;
use minijinja::machinery::ast::Stmt;
use minijinja::machinery::{Token, WhitespaceConfig, parse, tokenize};
use serde_json::{Map, Value as Json};

use crate::eval::{Evaluator, Fault};
use crate::prompt::Prompt;
use crate::text::{Origin, Text};
use crate::value::Value;

/// The maximum length of a template, in bytes.
const SOURCE_BYTES: usize = 1 << 20;

/// The maximum number of words and signs between a pair of brackets of a template. The parser makes a tree of
/// a long sum that is as deep as the sum is long.
const TAG_TOKENS: usize = 1_000;
/// The maximum number of `elif`, which nest in the tree.
const BRANCHES: usize = 200;

/// The roles of speakers. A role of this list is one of the template's words, however the request chose it:
/// some templates spell control tokens with it (`<|` + role + `|>`).
const ROLES: [&str; 14] = [
    "system",
    "developer",
    "user",
    "human",
    "assistant",
    "model",
    "tool",
    "tool_call",
    "tool_response",
    "function",
    "ipython",
    "environment",
    "observation",
    "context",
];

/// What the content of a message that is continued is while the template runs.
const PLACEHOLDER: &str = "\u{FDD0}";
/// The origin of the placeholder.
const SEAM: Origin = Origin(u32::MAX);

/// The reasons why a conversation could not be turned into a prompt.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// The template itself is not valid.
    #[error("the chat template is not valid: {0}")]
    Invalid(String),
    /// The template refused the conversation, or failed on it.
    #[error("the model's chat template does not take this conversation: {0}")]
    Refused(String),
    /// A message is not an object.
    #[error("/messages/{0}: expected an object")]
    NotAnObject(usize),
    /// The last message is to be continued, and the template does not write its content.
    #[error("the model's chat template does not write the last message, so it cannot be continued")]
    NoLastMessage,
}

/// What follows the messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// The beginning of an answer, which the model goes on with (`add_generation_prompt`).
    #[default]
    Answer,
    /// Nothing.
    Nothing,
    /// Nothing, not even the end of the last message, whose content the model goes on with
    /// (`continue_final_message`).
    Open,
}

/// The variables of a template.
#[derive(Clone, Copy, Debug)]
pub struct Conversation<'a> {
    /// The messages, as JSON objects with `role`, `content` and whatever the template reads.
    pub messages: &'a [Json],
    /// What follows the messages.
    pub ending: Ending,
    /// The tools.
    pub tools: &'a [Json],
    /// A short form of the schema of the answer.
    pub schema: Option<&'a str>,
    /// More variables, from the request.
    pub arguments: &'a Map<String, Json>,
    /// The name of `arguments` in JSON pointers.
    pub arguments_name: &'a str,
    /// The time that `strftime_now` tells, in seconds since 1970.
    pub now: u64,
}

/// A model's chat template.
#[derive(Clone, Debug)]
pub struct ChatTemplate {
    source: String,
    /// The source without what only training needs.
    parsed: String,
    constants: Vec<(String, String)>,
    takes_schema: bool,
    takes_tools: bool,
}

impl ChatTemplate {
    /// Parses a template. `constants` are its variables for special tokens (`bos_token` and so on).
    ///
    /// # Errors
    /// Fails if the template is not valid Jinja, or longer than a megabyte.
    pub fn new(source: &str, constants: Vec<(String, String)>) -> Result<Self, TemplateError> {
        if source.len() > SOURCE_BYTES {
            let message = format!("it has {} bytes; the limit is {SOURCE_BYTES}", source.len());
            return Err(TemplateError::Invalid(message));
        }
        let parsed = without_generation(source);
        let invalid = |error: minijinja::Error| TemplateError::Invalid(told(&error));
        check_size(&parsed)?;
        statements(&parsed).map_err(invalid)?;
        let mut environment = Environment::new();
        environment.add_template("chat", &parsed).map_err(invalid)?;
        let template = environment.get_template("chat").map_err(invalid)?;
        let variables = template.undeclared_variables(false);
        let (takes_schema, takes_tools) = (variables.contains("schema"), variables.contains("tools"));
        Ok(Self {
            source: source.to_owned(),
            parsed,
            constants,
            takes_schema,
            takes_tools,
        })
    }

    /// Returns the text of the template.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns `true` if the template has a place for the schema of the answer.
    pub fn takes_schema(&self) -> bool {
        self.takes_schema
    }

    /// Returns `true` if the template has a place for tools, so that its model was trained to call them.
    pub fn takes_tools(&self) -> bool {
        self.takes_tools
    }

    /// Renders a conversation up to the point where the model goes on.
    ///
    /// A message that is continued is written as it is, whatever the template does to its text: the template
    /// gets a placeholder, and the prompt ends where it wrote the placeholder.
    ///
    /// # Errors
    /// Fails if the template refuses the conversation.
    pub fn render(&self, conversation: &Conversation<'_>) -> Result<Prompt, TemplateError> {
        if let Some(at) = conversation
            .messages
            .iter()
            .position(|message| !message.is_object())
        {
            return Err(TemplateError::NotAnObject(at));
        }
        let mut origins = Origins::default();
        let open = Open::of(conversation, &mut origins)?;
        let variables = self.variables(conversation, open.is_some(), &mut origins);
        let invalid = |error: minijinja::Error| TemplateError::Invalid(told(&error));
        let template = statements(&self.parsed).map_err(invalid)?;
        let evaluated = Evaluator::new(variables, conversation.now).run(&template);
        let mut text = evaluated.map_err(|fault| TemplateError::Refused(refusal(&fault)))?;
        if let Some(open) = open {
            text = open.within(&text)?;
        }
        Ok(Prompt::new(text, origins.pointers, conversation.messages.len()))
    }

    /// Returns the variables; what the request calls like one of the others is not seen.
    fn variables(
        &self,
        conversation: &Conversation<'_>,
        is_open: bool,
        origins: &mut Origins,
    ) -> Vec<(String, Value)> {
        let messages = conversation.messages.iter().enumerate();
        let last = conversation.messages.len().checked_sub(1).filter(|_| is_open);
        let messages = messages.map(|(at, message)| origins.message(at, message, last == Some(at)));
        let messages = Value::list(messages.collect());
        let tools = conversation.tools.iter().enumerate();
        let tools = tools.map(|(at, tool)| origins.json(tool, &format!("/tools/{at}")));
        let tools: Vec<Value> = tools.collect();
        let tools = if tools.is_empty() {
            Value::None
        } else {
            Value::list(tools)
        };
        let mut variables = vec![
            ("messages".to_owned(), messages),
            ("tools".to_owned(), tools),
            (
                "add_generation_prompt".to_owned(),
                Value::Bool(conversation.ending == Ending::Answer),
            ),
        ];
        if let Some(schema) = conversation.schema {
            let schema = Text::new(schema, origins.of("/response_format"));
            variables.push(("schema".to_owned(), Value::text(schema)));
        }
        let constants = self.constants.iter();
        variables.extend(constants.map(|(name, text)| (name.clone(), Value::of_template(text.as_str()))));
        for (name, argument) in conversation.arguments {
            let pointer = format!("/{}/{name}", conversation.arguments_name);
            variables.push((name.clone(), origins.json(argument, &pointer)));
        }
        // Templates ask whether there are documents without asking whether the variable exists.
        variables.push(("documents".to_owned(), Value::None));
        variables
    }
}

/// The message that is continued.
struct Open {
    content: Text,
}

impl Open {
    fn of(conversation: &Conversation<'_>, origins: &mut Origins) -> Result<Option<Self>, TemplateError> {
        if conversation.ending != Ending::Open {
            return Ok(None);
        }
        let last = conversation.messages.last();
        let content = last.and_then(|message| message.get("content")?.as_str());
        let content = content.ok_or(TemplateError::NoLastMessage)?;
        let at = conversation.messages.len() - 1;
        let origin = origins.of(&format!("/messages/{at}/content"));
        Ok(Some(Self {
            content: Text::new(content, origin),
        }))
    }

    /// Returns a text up to its last placeholder, with the content in the places of all of them.
    fn within(&self, text: &Text) -> Result<Text, TemplateError> {
        let placeholders = text.runs().filter(|(_, origin)| *origin == SEAM);
        let end = placeholders.last().map(|(range, _)| range.end);
        let end = end.ok_or(TemplateError::NoLastMessage)?;
        let mut out = Text::default();
        for (range, origin) in text.runs().take_while(|(range, _)| range.end <= end) {
            match origin {
                SEAM => out.push(&self.content),
                _ => out.push(&text.part(range)),
            }
        }
        Ok(out)
    }
}

/// The places of a request, numbered as origins.
struct Origins {
    pointers: Vec<String>,
    known: HashMap<String, Origin>,
}

impl Default for Origins {
    fn default() -> Self {
        Self {
            // The place of `Origin::REQUEST`.
            pointers: vec![String::new()],
            known: HashMap::new(),
        }
    }
}

impl Origins {
    /// Returns the origin of a place, a new one for a new place.
    fn of(&mut self, pointer: &str) -> Origin {
        if let Some(known) = self.known.get(pointer) {
            return *known;
        }
        self.pointers.push(pointer.to_owned());
        let origin = Origin(u32::try_from(self.pointers.len()).unwrap_or(1));
        self.known.insert(pointer.to_owned(), origin);
        origin
    }

    fn json(&mut self, json: &Json, pointer: &str) -> Value {
        Value::of_json(json, pointer, &mut |at| self.of(at))
    }

    /// Converts a message. Its keys are words of the template if they have a special meaning, and its role
    /// is one if it is of the list.
    fn message(&mut self, at: usize, message: &Json, is_open: bool) -> Value {
        let mut value = crate::value::Map::default();
        for (key, item) in message.as_object().into_iter().flatten() {
            let pointer = format!("/messages/{at}/{}", key.replace('~', "~0").replace('/', "~1"));
            let item = match (key.as_str(), item.as_str()) {
                ("role", Some(role)) if ROLES.contains(&role) => Value::of_template(role),
                ("content", Some(_)) if is_open => Value::text(Text::new(PLACEHOLDER, SEAM)),
                _ => self.json(item, &pointer),
            };
            let key = Text::new(key.as_str(), self.of(&pointer));
            value.set(key, item);
        }
        Value::map(value)
    }
}

/// The settings of `transformers`.
const WHITESPACE: WhitespaceConfig = WhitespaceConfig {
    keep_trailing_newline: false,
    lstrip_blocks: true,
    trim_blocks: true,
};

fn statements(source: &str) -> Result<Stmt<'_>, minijinja::Error> {
    parse(source, "chat", minijinja::syntax::SyntaxConfig, WHITESPACE)
}

/// Refuses templates whose trees would be too deep for the stack, before they are parsed.
fn check_size(source: &str) -> Result<(), TemplateError> {
    let (mut tokens, mut branches) = (0, 0);
    for token in tokenize(source, false, minijinja::syntax::SyntaxConfig, WHITESPACE) {
        let (token, span) = token.map_err(|error| TemplateError::Invalid(told(&error)))?;
        tokens += 1;
        match token {
            Token::VariableStart | Token::BlockStart => tokens = 0,
            Token::Ident("elif") => branches += 1,
            _ => {}
        }
        let (what, most) = match (tokens > TAG_TOKENS, branches > BRANCHES) {
            (false, false) => continue,
            (true, _) => ("words and signs in a tag", TAG_TOKENS),
            (false, true) => ("branches of conditions", BRANCHES),
        };
        let line = span.start_line;
        let message = format!("it has more than {most} {what} (line {line} of the template)");
        return Err(TemplateError::Invalid(message));
    }
    Ok(())
}

/// Returns a template in which the tags that mark what a model is trained to write, and which change nothing
/// else, are conditions that always hold.
fn without_generation(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let Some(len) = rest[start..].find("%}") else {
            break;
        };
        let tag = &rest[start..start + len];
        let words = tag.trim_start_matches(['{', '%', '-', '+']);
        let replaced = match words.trim_end_matches('-').trim() {
            "generation" => tag.replacen("generation", "if true", 1),
            "endgeneration" => tag.replacen("endgeneration", "endif", 1),
            _ => tag.to_owned(),
        };
        out.push_str(&rest[..start]);
        out.push_str(&replaced);
        rest = &rest[start + len..];
    }
    out.push_str(rest);
    out
}

/// Returns the message of an error without the source excerpt that it could print.
fn told(error: &minijinja::Error) -> String {
    let detail = error
        .detail()
        .map_or_else(|| error.kind().to_string(), str::to_owned);
    match error.line() {
        Some(line) => format!("{detail} (line {line} of the template)"),
        None => detail,
    }
}

fn refusal(fault: &Fault) -> String {
    match fault.line {
        Some(line) => format!("{} (line {line} of the template)", fault.message),
        None => fault.message.clone(),
    }
}
