//! The description of the tools and of the schema of the answer that is added to the prompt, and its place
//! there.
//!
//! | | the template has a place | it has none |
//! |---|---|---|
//! | tools, `tool_choice` other than `none` | there | in the system message, in words |
//! | a tool whose arguments are the answer | its schema, else the tool | in the system message, with a task |
//! | a schema, `schema_in_prompt: auto` | there, in short | as `WITHOUT_PLACE` says: its keys and types |
//! | a schema, `always` | there, in short | whole, in the system message |
//! | another constraint, `always` | in the system message | in the system message |
//! | `never` | schemas and other constraints are not described | likewise |
//!
//! The enforcement of an answer does not depend on any of this: a grammar is enforced whether the model knows
//! it or not. But a model that knows what it is to write needs its constraint less.

use lexiform_chat::ChatTemplate;
use lexiform_syntax::answer::{CALL, END_CALL};
use lexiform_syntax::schema::sketch;
use serde_json::Value;

use crate::grammars::language::Language;
use crate::grammars::tool_format::ToolFormat;
use crate::wire::chat::{ChatRequest, Message};
use crate::wire::constraint::{Constraint, Source};
use crate::wire::generation::{Generation, SchemaInPrompt};
use crate::wire::tools::{Callable, Calls, Input, Mode};

/// Where a schema is described to a model without a place for schemas, if the request leaves that to the
/// server: the default of `schema_in_prompt` for such models.
///
/// SmolLM2-135M-Instruct read facts from 200 short texts of ten kinds under a schema, greedily; all facts of
/// a text were right in 139 of them, in 113 without a description, and in 84 if a sketch with the choices of
/// each `enum` followed the question (`benches/record/2026-11-27-real-model-again.md`). The JSON Schema in
/// the system message, which replaces the template's own one, harms such a model, and so does every list of
/// choices: it writes the first of them. So the keys are described, with their types, and choices are left to
/// the grammar.
const WITHOUT_PLACE: Telling = Telling::Question;

/// The maximum length of a schema of which the model is shown a sketch, in bytes. A sketch ends after some
/// kilobytes; of a longer schema it would show an arbitrary part.
pub const SKETCHED: usize = 256 << 10;

/// Where a description is placed in the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Telling {
    /// In the place that the chat template has for it.
    Template,
    /// After the last message of the user, in short.
    Question,
    /// In the system message, in words.
    Words,
    /// Nowhere.
    Nowhere,
}

/// The presence of a place for the schema of the whole answer in the template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SchemaPlace {
    Present,
    Missing,
}

impl SchemaPlace {
    fn in_template(template: &ChatTemplate) -> Self {
        match template.takes_schema() {
            true => Self::Present,
            false => Self::Missing,
        }
    }
}

/// Returns where the schema of the answer is described.
fn telling_of_schema(asked: SchemaInPrompt, place: SchemaPlace) -> Telling {
    match (asked, place) {
        (SchemaInPrompt::Never, _) => Telling::Nowhere,
        (SchemaInPrompt::Auto | SchemaInPrompt::Always, SchemaPlace::Present) => Telling::Template,
        (SchemaInPrompt::Always, SchemaPlace::Missing) => Telling::Words,
        (SchemaInPrompt::Auto, SchemaPlace::Missing) => WITHOUT_PLACE,
    }
}

/// Returns a sentence for each thing that the template has no place for, for the operator who starts the
/// service.
pub fn notices(template: &ChatTemplate) -> Vec<&'static str> {
    let mut notices = Vec::new();
    if !template.takes_tools() {
        notices.push("the chat template has no place for tools: they are told in the system message");
    }
    if telling_of_schema(SchemaInPrompt::Auto, SchemaPlace::in_template(template)) == Telling::Question {
        notices.push(
            "the chat template has no place for schemas: they are told behind the question (schema_in_prompt: never \
             leaves them out)",
        );
    }
    notices
}

/// The descriptions that are added to the messages.
pub struct Told<'r> {
    /// The tools, for the template's place for them.
    pub tools: &'r [Value],
    /// The schema in short, for the template's place for it.
    pub schema: Option<String>,
    /// The text that is added to the system message; empty if there is none.
    pub words: String,
    /// The text that is added to the last message of the user.
    pub behind_question: Option<String>,
}

/// Returns the descriptions for the model of this template.
pub fn of<'r>(template: &ChatTemplate, request: &'r ChatRequest, language: &Language) -> Told<'r> {
    let generation = &request.generation;
    let calls = language.calls.as_ref();
    let schema = obeyed(language).and_then(|constraint| in_place(template, constraint, generation));
    let tools = match calls {
        // The model must call this tool, and its answer obeys the schema that the template describes
        // elsewhere.
        Some(calls) if calls.mode == Mode::Bare && schema.is_some() => &[],
        Some(_) if template.takes_tools() => &request.tools[..],
        _ => &[],
    };
    let told_tools = calls.filter(|_| !template.takes_tools());
    let told_tools = told_tools.map(|calls| tools_in_words(&request.tools, calls, &form_of_call(language)));
    let content = language.content.as_ref();
    let is_beside_tools = calls.is_some();
    let told_constraint = content.and_then(|constraint| match is_beside_tools {
        false => in_words(constraint, generation, SchemaPlace::in_template(template)),
        // The template's place is for the schema of the whole answer, and so is the place after the question.
        true => in_words(constraint, generation, SchemaPlace::Missing)
            .or_else(|| behind_question(constraint, generation, SchemaPlace::Missing))
            .map(|told| format!("Where you call no tool: {told}")),
    });
    let words: Vec<String> = [told_tools, told_constraint].into_iter().flatten().collect();
    let alone = content.filter(|_| !is_beside_tools);
    Told {
        tools,
        schema,
        words: words.join("\n\n"),
        behind_question: alone.and_then(|constraint| {
            behind_question(constraint, generation, SchemaPlace::in_template(template))
        }),
    }
}

/// Returns the description of the constraint for a prompt without a template, if the request asks for it.
pub fn in_text(generation: &Generation) -> Option<String> {
    let constraint = generation.constraint.as_ref();
    let asked = constraint.filter(|_| generation.schema_in_prompt == SchemaInPrompt::Always);
    asked.and_then(described)
}

/// Returns the one constraint that the whole answer obeys, if there is one.
fn obeyed(language: &Language) -> Option<&Constraint> {
    let Some(calls) = &language.calls else {
        return language.content.as_ref();
    };
    match (calls.mode, &calls.tools.first()?.input) {
        (Mode::Bare, Input::Arguments(constraint)) => Some(constraint),
        _ => None,
    }
}

/// Returns the short form of a schema, if the template has a place for it and the request lets the model see
/// it.
fn in_place(template: &ChatTemplate, constraint: &Constraint, generation: &Generation) -> Option<String> {
    let telling = telling_of_schema(generation.schema_in_prompt, SchemaPlace::in_template(template));
    match &constraint.source {
        Source::Schema(text) if telling == Telling::Template => sketch(text),
        _ => None,
    }
}

/// Returns the description of a constraint in the system message.
fn in_words(constraint: &Constraint, generation: &Generation, place: SchemaPlace) -> Option<String> {
    let asked = generation.schema_in_prompt;
    let Source::Schema(_) = &constraint.source else {
        return described(constraint).filter(|_| asked == SchemaInPrompt::Always);
    };
    match telling_of_schema(asked, place) {
        Telling::Words => described(constraint),
        _ => None,
    }
}

/// Returns the description of a schema after the question.
fn behind_question(constraint: &Constraint, generation: &Generation, place: SchemaPlace) -> Option<String> {
    match &constraint.source {
        Source::Schema(text)
            if telling_of_schema(generation.schema_in_prompt, place) == Telling::Question =>
        {
            in_question(text)
        }
        _ => None,
    }
}

/// Returns a sketch of a schema, or `None` if the schema is too long.
fn sketch(schema: &str) -> Option<String> {
    Some(sketch::sketch(&short(schema)?))
}

/// Parses a schema, or returns `None` if it is too long for a sketch.
fn short(schema: &str) -> Option<Value> {
    let is_short = schema.len() <= SKETCHED;
    is_short.then(|| serde_json::from_str(schema).ok()).flatten()
}

/// Returns a sentence that describes a schema in short, to follow a question.
fn in_question(schema: &str) -> Option<String> {
    let schema = short(schema)?;
    Some(match sketch::keys(&schema) {
        Some(keys) => format!("Answer with JSON with the keys {keys}."),
        None => format!(
            "Answer with JSON of this form:\n{}",
            sketch::without_choices(&schema)
        ),
    })
}

/// Returns a constraint in words.
fn described(constraint: &Constraint) -> Option<String> {
    match &constraint.source {
        Source::Schema(text) => Some(format!("Answer with JSON that obeys this JSON Schema:\n{text}")),
        Source::Regex(text) => Some(format!(
            "Answer with a text that matches this regular expression:\n{text}"
        )),
        Source::Grammar(text, _) => Some(format!("Answer with a text of this grammar:\n{text}")),
        Source::Choice(texts) => Some(format!("Answer with one of these texts:\n{}", texts.join("\n"))),
        Source::Extract(text, _) => Some(format!(
            "Answer with words of this text, exactly as they stand in it:\n{text}"
        )),
        // A client that sends tags has described them to the model, or the model would not write any.
        Source::Tags(_) => None,
    }
}

/// Returns the form of a call, as a model without a place for tools is shown it.
fn form_of_call(language: &Language) -> String {
    match (language.tool_format, language.frames()) {
        (ToolFormat::Of(_), [frame, ..]) => frame.shown(),
        _ => format!("{CALL}\n{{\"name\": NAME, \"arguments\": ARGUMENTS}}\n{END_CALL}"),
    }
}

/// Returns the callable tools in words, and the form of a call. `described` has all tools of the request.
fn tools_in_words(described: &[Value], calls: &Calls, form: &str) -> String {
    let is_callable = |tool: &&Value| {
        let name = tool["type"].as_str().and_then(|kind| tool[kind]["name"].as_str());
        calls.tools.iter().any(|callable| name == Some(&callable.name))
    };
    let listed: Vec<String> = described
        .iter()
        .filter(is_callable)
        .map(Value::to_string)
        .collect();
    let listed = listed.join("\n");
    if calls.mode == Mode::Bare {
        let answer = match calls.tools.first().is_some_and(Callable::is_custom) {
            true => "its input alone",
            false => "the arguments of the call alone, as JSON",
        };
        return format!("Call this tool:\n{listed}\nAnswer with {answer}.");
    }
    format!("You can call these tools:\n{listed}\nA call is written as\n{form}")
}

impl Told<'_> {
    /// Returns the conversation with these descriptions added.
    pub fn within(&self, messages: &[Message]) -> Vec<Message> {
        let mut messages = match self.words.as_str() {
            "" => messages.to_vec(),
            words => with_instructions(messages, words),
        };
        let question = messages.iter_mut().rfind(|message| message.role == "user");
        match (&self.behind_question, question) {
            (None, _) => messages,
            (Some(told), Some(question)) => {
                let said = question.content.take().unwrap_or_default();
                question.content = Some(format!("{said}\n\n{told}"));
                messages
            }
            (Some(told), None) => with_instructions(&messages, told),
        }
    }
}

/// Returns the conversation with more instructions in its system message, which is created if there is none.
fn with_instructions(messages: &[Message], instructions: &str) -> Vec<Message> {
    let mut messages = messages.to_vec();
    match messages.first_mut().filter(|first| first.role == "system") {
        Some(system) => {
            let before = system.content.take().unwrap_or_default();
            system.content = Some(format!("{before}\n\n{instructions}"));
        }
        None => {
            let content = Some(instructions.to_owned());
            messages.insert(
                0,
                Message {
                    role: "system".to_owned(),
                    content,
                    ..Message::default()
                },
            );
        }
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(source: &str) -> ChatTemplate {
        ChatTemplate::new(source, Vec::new()).expect("valid Jinja")
    }

    #[test]
    fn whoever_starts_the_service_learns_what_the_template_has_no_place_for() {
        let count = |source: &str| notices(&template(source)).len();
        assert_eq!(count("{{ messages }}"), 2);
        assert_eq!(count("{{ messages }}{{ tools }}"), 1);
        assert_eq!(count("{{ messages }}{{ tools }}{{ schema }}"), 0);
    }

    #[test]
    fn a_schema_is_told_where_there_is_a_place_unless_nobody_wants_it() {
        use {SchemaInPrompt::*, SchemaPlace::*};
        let table = [
            (Auto, Present, Telling::Template),
            (Always, Present, Telling::Template),
            (Auto, Missing, WITHOUT_PLACE),
            (Always, Missing, Telling::Words),
            (Never, Present, Telling::Nowhere),
            (Never, Missing, Telling::Nowhere),
        ];
        for (asked, place, told) in table {
            assert_eq!(telling_of_schema(asked, place), told, "{asked:?}, {place:?}");
        }
    }
}
