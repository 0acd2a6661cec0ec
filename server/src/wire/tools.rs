//! Tools and the choice among them, in the spellings of chats and of responses.
//!
//! | | chat | responses |
//! |---|---|---|
//! | function | `{"type":"function","function":{"name",…}}` | `{"type":"function","name",…}` |
//! | custom | `{"type":"custom","custom":{"name",…,"format":{"type":"grammar","grammar":{"syntax","definition"}}}}` | `{"type":"custom","name",…,"format":{"type":"grammar","syntax","definition"}}` |
//!
//! The parameters of every tool that may be called are enforced, whatever `strict` says; with it, keywords
//! without effect are refused.

use lexiform::grammar::Notation;
use lexiform_syntax::answer::Tool;
use serde_json::{Value, json};

use super::constraint::{Constraint, Source, schema_constraint};
use super::fields::{Fields, Problems};

pub use lexiform_syntax::answer::CallMode as Mode;

/// The maximum number of tools in a request.
const TOOLS: usize = 128;

/// The input of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// JSON that obeys a schema.
    Arguments(Constraint),
    /// Raw text, constrained or free.
    Raw(Option<Constraint>),
}

impl Input {
    /// Returns the constraint on the input, unless it is free.
    pub fn constraint(&self) -> Option<&Constraint> {
        match self {
            Input::Arguments(constraint) => Some(constraint),
            Input::Raw(constraint) => constraint.as_ref(),
        }
    }
}

/// A tool that may be called.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Callable {
    /// The name of the tool.
    pub name: String,
    /// The input of the tool.
    pub input: Input,
}

impl Callable {
    /// Returns `true` if it is a custom tool.
    pub fn is_custom(&self) -> bool {
        matches!(self.input, Input::Raw(_))
    }
}

/// The calls that an answer may contain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Calls {
    /// The tools.
    pub tools: Vec<Callable>,
    /// The condition for calling them.
    pub mode: Mode,
    /// `true` if several calls are allowed.
    pub parallel: bool,
}

impl Calls {
    /// Returns the tools as the frames of calls name them.
    pub fn names(&self) -> Vec<Tool> {
        let named = |tool: &Callable| Tool {
            name: tool.name.clone(),
            is_raw: tool.is_custom(),
        };
        self.tools.iter().map(named).collect()
    }

    /// Returns the constraints of the tools' inputs.
    pub fn constraints(&mut self) -> impl Iterator<Item = &mut Constraint> {
        self.tools.iter_mut().filter_map(|tool| match &mut tool.input {
            Input::Arguments(constraint) => Some(constraint),
            Input::Raw(constraint) => constraint.as_mut(),
        })
    }
}

/// The spelling of tools on a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// In an object with the name of the type.
    Nested,
    /// In the tool itself.
    Flat,
}

/// The tools of a request.
#[derive(Clone, Debug, Default)]
pub struct Tools {
    /// The tools in the form that the chat template reads: the spelling of chats.
    pub described: Vec<Value>,
    /// The tools that may be called; `Bare` if exactly one must be.
    pub calls: Option<Calls>,
    /// The choice as it was sent.
    pub choice: Option<Value>,
}

/// Takes the tools of a request, and the choice among them.
pub fn read(fields: &mut Fields, spelling: Spelling, problems: &mut Problems) -> Tools {
    let items = fields.array("tools", problems).unwrap_or_default();
    let choice = fields.take("tool_choice");
    let parallel = fields.boolean("parallel_tool_calls", problems).unwrap_or(true);
    if items.len() > TOOLS {
        problems.invalid("tools", format!("expected up to {TOOLS} tools"));
        return Tools::default();
    }
    let mut described = Vec::with_capacity(items.len());
    let mut tools: Vec<Callable> = Vec::with_capacity(items.len());
    for (index, item) in items.into_iter().enumerate() {
        let Some((tool, description)) = tool(index, item, spelling, problems) else {
            continue;
        };
        if tools.iter().any(|other| other.name == tool.name) {
            problems.invalid(
                format!("tools[{index}]"),
                format!("duplicate tool name '{}'", tool.name),
            );
        }
        tools.push(tool);
        described.push(description);
    }
    let calls = choose(choice.as_ref(), tools, problems).map(|(tools, mode)| Calls {
        tools,
        mode,
        parallel,
    });
    Tools {
        described,
        calls,
        choice,
    }
}

/// Reads a tool, and its description in the spelling of chats.
fn tool(index: usize, item: Value, spelling: Spelling, problems: &mut Problems) -> Option<(Callable, Value)> {
    let path = format!("tools[{index}]");
    let mut fields = Fields::of(item.clone(), &path, problems)?;
    let kind_path = fields.path("type");
    let kind = fields.string("type", problems).unwrap_or_default();
    if kind != "function" && kind != "custom" {
        let message = "only tools of type 'function' or 'custom' are supported";
        problems.unsupported(kind_path, message);
        return None;
    }
    let (mut inner, described) = match spelling {
        Spelling::Nested => {
            let name = if kind == "function" { "function" } else { "custom" };
            if !fields.has(name) {
                problems.invalid(fields.path(name), format!("{name} is required"));
            }
            let inner = fields.object(name, problems);
            fields.finish(problems);
            (inner?, item)
        }
        Spelling::Flat => (fields, nested(&kind, item)),
    };
    let name_path = inner.path("name");
    let name = inner.string("name", problems);
    let Some(name) = name.filter(|name| is_name(name)) else {
        problems.invalid(
            name_path,
            "expected a name of 1 to 64 letters, digits, '_', '-' or '.'",
        );
        return None;
    };
    inner.ignore(&["description"]);
    let input = if kind == "function" {
        function(&mut inner, &name, problems)?
    } else {
        custom(&mut inner, &name, spelling, problems)?
    };
    inner.finish(problems);
    Some((Callable { name, input }, described))
}

fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    (1..=64).contains(&name.len()) && name.chars().all(allowed)
}

/// Converts a flat tool to the spelling of chats.
fn nested(kind: &str, mut item: Value) -> Value {
    if let Some(map) = item.as_object_mut() {
        map.shift_remove("type");
    }
    json!({"type": kind, kind: item})
}

fn function(inner: &mut Fields, name: &str, problems: &mut Problems) -> Option<Input> {
    let strict = inner.boolean("strict", problems).unwrap_or(false);
    let param = inner.path("parameters");
    let parameters = inner
        .take("parameters")
        // A function without parameters takes none, whatever the request says about open objects.
        .unwrap_or_else(|| json!({"type": "object", "properties": {}, "additionalProperties": false}));
    let constraint = schema_constraint(parameters, param, problems)?;
    let name = Some(name.to_owned());
    Some(Input::Arguments(Constraint {
        name,
        strict,
        ..constraint
    }))
}

fn custom(inner: &mut Fields, name: &str, spelling: Spelling, problems: &mut Problems) -> Option<Input> {
    if !inner.has("format") {
        return Some(Input::Raw(None));
    }
    let mut format = inner.object("format", problems)?;
    let kind_path = format.path("type");
    match format.string("type", problems).as_deref() {
        Some("text") => {
            format.finish_strict(problems);
            return Some(Input::Raw(None));
        }
        Some("grammar") => {}
        _ => {
            problems.invalid(kind_path, "expected 'text' or 'grammar'");
            return None;
        }
    }
    let mut grammar = match spelling {
        Spelling::Nested => {
            let grammar = format.object("grammar", problems);
            format.finish_strict(problems);
            grammar?
        }
        Spelling::Flat => format,
    };
    let syntax_path = grammar.path("syntax");
    let param = grammar.path("definition");
    let syntax = grammar.string("syntax", problems).unwrap_or_default();
    let definition = grammar.string("definition", problems).unwrap_or_default();
    grammar.finish_strict(problems);
    let source = match syntax.as_str() {
        "regex" => Source::Regex(definition),
        "ebnf" => Source::ebnf(definition),
        // The grammars of OpenAI's custom tools are in this dialect.
        "lark" => Source::Grammar(definition, Some(Notation::Llguidance)),
        other => {
            let message = format!("grammars in '{other}' are not supported; use 'regex', 'lark' or 'ebnf'");
            problems.unsupported(syntax_path, message);
            return None;
        }
    };
    let mut constraint = Constraint::new(source, param);
    constraint.name = Some(name.to_owned());
    Some(Input::Raw(Some(constraint)))
}

/// Returns the tools that the choice allows, and the condition for calling them.
fn choose(
    choice: Option<&Value>,
    tools: Vec<Callable>,
    problems: &mut Problems,
) -> Option<(Vec<Callable>, Mode)> {
    match choice.map(|choice| choice.as_str().ok_or(choice)) {
        Some(Ok("none")) => None,
        None | Some(Ok("auto")) => (!tools.is_empty()).then_some((tools, Mode::Auto)),
        Some(Ok("required")) => required(tools, problems),
        Some(Ok(_)) => {
            let expected = "expected 'none', 'auto', 'required', a named tool or allowed tools";
            problems.invalid("tool_choice", expected);
            None
        }
        Some(Err(object)) if object["type"] == "allowed_tools" => {
            check_choice(object, &["type", "allowed_tools", "mode", "tools"], problems);
            allowed(object, tools, problems)
        }
        Some(Err(object)) => {
            check_choice(object, &["type", "function", "custom", "name"], problems);
            let name = named(object, problems)?;
            let found = find(&name, tools, "tool_choice", problems)?;
            Some((vec![found], Mode::Bare))
        }
    }
}

/// Refuses fields of a choice that are not read: every part of it limits what is called.
fn check_choice(choice: &Value, known: &'static [&'static str], problems: &mut Problems) {
    Fields::beside(choice, known, "tool_choice").finish_strict(problems);
}

fn required(tools: Vec<Callable>, problems: &mut Problems) -> Option<(Vec<Callable>, Mode)> {
    match tools.len() {
        0 => {
            problems.invalid("tool_choice", "'required' needs at least one tool");
            None
        }
        1 => Some((tools, Mode::Bare)),
        _ => Some((tools, Mode::Required)),
    }
}

fn allowed(object: &Value, tools: Vec<Callable>, problems: &mut Problems) -> Option<(Vec<Callable>, Mode)> {
    let inner = object.get("allowed_tools").unwrap_or(object);
    let Some(listed) = inner["tools"].as_array() else {
        problems.invalid("tool_choice.allowed_tools.tools", "expected an array of tools");
        return None;
    };
    let mut kept = Vec::with_capacity(listed.len());
    for entry in listed {
        let name = named(entry, problems)?;
        kept.push(find(
            &name,
            tools.clone(),
            "tool_choice.allowed_tools.tools",
            problems,
        )?);
    }
    match inner["mode"].as_str() {
        Some("required") => required(kept, problems),
        Some("auto") => (!kept.is_empty()).then_some((kept, Mode::Auto)),
        _ => {
            problems.invalid("tool_choice.allowed_tools.mode", "expected 'auto' or 'required'");
            None
        }
    }
}

/// Returns the name in `{"type": T, T: {"name"}}` or `{"type": T, "name"}`.
fn named(object: &Value, problems: &mut Problems) -> Option<String> {
    let kind = object["type"]
        .as_str()
        .filter(|kind| ["function", "custom"].contains(kind));
    let name = kind.and_then(|kind| {
        let inner = object.get(kind).unwrap_or(object);
        inner["name"].as_str()
    });
    if name.is_none() {
        let expected =
            "expected {\"type\": \"function\", \"function\": {\"name\": …}}, or the same with 'custom'";
        problems.unsupported("tool_choice", expected);
    }
    name.map(str::to_owned)
}

fn find(name: &str, tools: Vec<Callable>, param: &str, problems: &mut Problems) -> Option<Callable> {
    let found = tools.into_iter().find(|tool| tool.name == name);
    if found.is_none() {
        problems.invalid(param, format!("unknown tool '{name}'"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_body(spelling: Spelling, body: Value) -> Result<Tools, crate::wire::error::ApiError> {
        let Value::Object(map) = body else {
            panic!("a test body is an object")
        };
        let (mut fields, mut problems) = (Fields::root(map), Problems::default());
        let tools = read(&mut fields, spelling, &mut problems);
        fields.finish(&mut problems);
        problems.check().map(|_| tools)
    }

    fn function_tool(name: &str) -> Value {
        json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}})
    }

    #[test]
    fn each_choice_leaves_its_tools() {
        let tools = json!([function_tool("a"), function_tool("b")]);
        let one = json!({"type": "function", "function": {"name": "b"}});
        let cases = [
            (json!(null), Some((vec!["a", "b"], Mode::Auto))),
            (json!("auto"), Some((vec!["a", "b"], Mode::Auto))),
            (json!("none"), None),
            (json!("required"), Some((vec!["a", "b"], Mode::Required))),
            (one.clone(), Some((vec!["b"], Mode::Bare))),
            (
                json!({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [one]}}),
                Some((vec!["b"], Mode::Auto)),
            ),
            (
                json!({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "a"}]}),
                Some((vec!["a"], Mode::Bare)),
            ),
        ];
        for (choice, expected) in cases {
            let body = json!({"tools": tools, "tool_choice": choice});
            let calls = read_body(Spelling::Nested, body).expect("a valid choice").calls;
            let found = calls.map(|calls| {
                let names: Vec<String> = calls.tools.into_iter().map(|tool| tool.name).collect();
                (names, calls.mode)
            });
            let expected =
                expected.map(|(names, mode)| (names.into_iter().map(str::to_owned).collect(), mode));
            assert_eq!(found, expected, "{choice}");
        }
    }

    #[test]
    fn custom_tools_are_read_in_both_spellings() {
        let grammar = json!({"syntax": "regex", "definition": "a+"});
        let nested = json!({"type": "custom", "custom": {"name": "s", "format": {"type": "grammar", "grammar": grammar}}});
        let flat = json!({"type": "custom", "name": "s",
                          "format": {"type": "grammar", "syntax": "regex", "definition": "a+"}});
        for (spelling, tool) in [(Spelling::Nested, nested), (Spelling::Flat, flat)] {
            let tools =
                read_body(spelling, json!({"tools": [tool], "tool_choice": "required"})).expect("a tool");
            let calls = tools.calls.expect("a forced tool");
            let constraint = Constraint::new(Source::Regex("a+".to_owned()), "");
            assert_eq!(calls.tools[0].input, Input::Raw(Some(constraint)));
            assert_eq!(tools.described[0]["custom"]["name"], "s");
        }
    }

    #[test]
    fn a_function_without_parameters_takes_none() {
        let closed = json!({"type": "object", "properties": {}, "additionalProperties": false});
        let cases = [
            (json!({"name": "ping"}), closed.clone()),
            (json!({"name": "ping", "parameters": null}), closed),
            (json!({"name": "ping", "parameters": {}}), json!({})),
        ];
        for (function, expected) in cases {
            let mut flat = function.clone();
            flat["type"] = "function".into();
            let nested = json!({"type": "function", "function": function});
            for (spelling, tool) in [(Spelling::Nested, nested), (Spelling::Flat, flat)] {
                let tools = read_body(spelling, json!({"tools": [tool]})).expect("a tool");
                let calls = tools.calls.expect("a tool that may be called");
                let source = calls.tools[0]
                    .input
                    .constraint()
                    .map(|constraint| &constraint.source);
                assert_eq!(source, Some(&Source::Schema(expected.to_string())), "{function}");
            }
        }
    }

    #[test]
    fn what_cannot_be_called_is_refused() {
        let lark = json!({"type": "custom", "custom": {"name": "s", "format":
            {"type": "grammar", "grammar": {"syntax": "antlr", "definition": "start: 'a';"}}}});
        let bodies = [
            json!({"tools": [lark]}),
            json!({"tools": [{"type": "web_search"}]}),
            json!({"tools": [function_tool("a"), function_tool("a")]}),
            json!({"tools": [function_tool("a b")]}),
            json!({"tools": [function_tool("a")], "tool_choice": {"type": "function", "function": {"name": "b"}}}),
            json!({"tools": [function_tool("a")], "tool_choice": {"type": "mcp", "server_label": "b"}}),
            json!({"tool_choice": "required"}),
        ];
        for body in bodies {
            let error = read_body(Spelling::Nested, body.clone()).expect_err("a refusal");
            assert_eq!(error.status().as_u16(), 400, "{body}");
        }
    }
}
