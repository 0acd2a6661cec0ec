//! Answers of models, read back: the calls of all formats, however the text is cut.

use std::path::Path;
use std::sync::Arc;

use lexiform::answers::{AnswerFormat, EventKind, Events, Reading, Thought};
use lexiform::schema::ArgumentStyle;
use lexiform::tags::{Tool, model_formats, write_arguments};
use lexiform_syntax::answer::relaxed_frames;
use serde_json::{Map, Value, json};

/// What an answer says: its thought, its content, and its calls.
#[derive(Clone, Debug, Default, PartialEq)]
struct Said {
    reasoning: String,
    content: String,
    calls: Vec<(String, String)>,
    ended: usize,
}

fn read(format: &Arc<AnswerFormat>, pieces: &[&str]) -> Said {
    let mut events = Events::new(format.clone());
    let mut found: Vec<_> = pieces.iter().flat_map(|piece| events.push(piece)).collect();
    found.extend(events.finish());
    let mut said = Said::default();
    for event in found {
        match event.kind {
            EventKind::Reasoning(text) => said.reasoning += &text,
            EventKind::Content(text) => said.content += &text,
            EventKind::Call(name) => said.calls.push((name, String::new())),
            EventKind::Arguments(text) => said.calls.last_mut().expect("a call").1 += &text,
            EventKind::CallEnd => said.ended += 1,
            EventKind::Opened { .. } | EventKind::Key { .. } | EventKind::Value { .. } => {}
        }
    }
    said
}

/// Reads a text whole, in two pieces at every cut, and letter by letter, always with the same result.
fn read_at_all_cuts(format: &Arc<AnswerFormat>, text: &str) -> Said {
    let whole = read(format, &[text]);
    for (cut, _) in text.char_indices() {
        assert_eq!(
            read(format, &[&text[..cut], &text[cut..]]),
            whole,
            "cut at {cut}: {text:?}"
        );
    }
    let letters: Vec<&str> = text
        .char_indices()
        .map(|(at, c)| &text[at..at + c.len_utf8()])
        .collect();
    assert_eq!(read(format, &letters), whole, "letter by letter: {text:?}");
    whole
}

fn format(name: &str, tools: &[Tool], thought: Thought) -> Arc<AnswerFormat> {
    let reading = Reading {
        thought,
        ..Reading::default()
    };
    Arc::new(AnswerFormat::of_model(name, tools, reading).expect("a format"))
}

fn tool(name: &str, parameters: Value) -> Tool {
    Tool {
        name: name.to_owned(),
        parameters,
    }
}

/// Guards against calls that are lost, doubled or split, and arguments that depend on how a text arrives.
#[test]
fn calls_of_all_formats_are_read_back_from_every_cut() {
    let parameters = json!({"type": "object", "properties": {
        "city": {"type": "string"}, "days": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}},
        "at": {"type": "object", "properties": {"x": {"type": "number"}}}}});
    let tools = [tool("weather", parameters.clone()), tool("get", parameters)];
    let arguments = [
        json!({"city": "Zürich {\"a\": [1}\n </tool <func", "days": 3}),
        json!({}),
        json!({"city": "3", "tags": ["a", "b ]"], "at": {"x": 0.5}}),
    ];
    for name in model_formats() {
        let frame = &relaxed_frames(name).expect("a format")[0];
        let sample = match frame.style {
            ArgumentStyle::Json => "ARGUMENTS".to_owned(),
            style => write_arguments(style, &Map::from_iter([("KEY".to_owned(), "VALUE".into())])),
        };
        let format = format(name, &tools, Thought::Possible);
        for arguments in &arguments {
            let written = write_arguments(frame.style, arguments.as_object().expect("an object"));
            let call = |name: &str| frame.shown().replace("NAME", name).replace(&sample, &written);
            let (one, two) = (call("weather"), call("get"));
            let text = format!("Well: <{one}\n{two}");
            let said = read_at_all_cuts(&format, &text);
            assert_eq!(said.content.trim_end(), "Well: <", "{name}: {text}");
            let names: Vec<&str> = said.calls.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!((names, said.ended), (vec!["weather", "get"], 2), "{name}: {text}");
            for (_, read) in &said.calls {
                let read: Value =
                    serde_json::from_str(read).unwrap_or_else(|error| panic!("{name}: {read}: {error}"));
                assert_eq!(read, *arguments, "{name}: {text}");
            }
        }
    }
}

/// The texts that xgrammar accepts for its formats have the calls that they show, with arguments that the
/// schemas of the tools allow.
#[test]
fn texts_of_xgrammar_have_calls_that_obey() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(".data/tool_formats/xgrammar_formats.jsonl");
    let Ok(lines) = std::fs::read_to_string(path) else {
        println!("skipped: texts_of_xgrammar_have_calls_that_obey: .data/tool_formats is not there");
        return;
    };
    let mut calls = 0;
    for line in lines.lines() {
        let case: Value = serde_json::from_str(line).expect("a line of JSON");
        let name = case["format"].as_str().expect("a name");
        let function = |one: &Value| {
            let function = &one["function"];
            tool(
                function["name"].as_str().expect("a name"),
                function["parameters"].clone(),
            )
        };
        let tools: Vec<Tool> = case["tools"]
            .as_array()
            .into_iter()
            .flatten()
            .map(function)
            .collect();
        for text in case["accept"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
        {
            // The prompts of most models open the thought.
            let ends = [
                "</think>",
                "</mm:think>",
                "<|END_THINKING|>",
                "<|close|>think<|sep|>",
            ];
            let opens = ["<think>", "<|open|>think<|sep|>"];
            let has = |marks: &[&str]| marks.iter().any(|mark| text.contains(mark));
            let thought = match has(&ends) && !has(&opens) {
                true => Thought::Begun,
                false => Thought::Possible,
            };
            let said = read_at_all_cuts(&format(name, &tools, thought), text);
            assert_eq!(said.calls.len(), said.ended, "{name}: {text}");
            let shown: usize = tools.iter().map(|tool| text.matches(&tool.name).count()).sum();
            assert_eq!(said.calls.len(), shown, "{name}: {text}");
            calls += shown;
            for (called, arguments) in &said.calls {
                let tool = tools.iter().find(|tool| tool.name == *called).expect("a tool");
                let value: Value = serde_json::from_str(arguments).expect("JSON");
                assert!(
                    jsonschema::is_valid(&tool.parameters, &value),
                    "{name}: {text}: {arguments}"
                );
            }
        }
    }
    assert!(calls >= 100, "{calls} calls");
}
