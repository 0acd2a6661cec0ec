//! Calls of tools by the demo model, held to each format.

use std::path::Path;

use lexiform::tags::model_formats;
use serde_json::{Value, json};

use crate::program::{Service, lexiform, shown};

fn tools() -> Value {
    let function = |name: &str, properties: Value| {
        let required: Vec<&String> = properties.as_object().expect("an object").keys().collect();
        json!({"type": "function", "function": {"name": name, "parameters": {
            "type": "object", "properties": properties, "required": required}}})
    };
    json!([
        function(
            "save_person",
            json!({"name": {"type": "string"}, "age": {"type": "integer"}})
        ),
        function(
            "set_mood",
            json!({"mood": {"enum": ["good", "bad"]}, "why": {"type": "array", "items": {"type": "string"}}})
        ),
    ])
}

/// Guards against a format under which a real model writes no valid call.
#[test]
fn the_demo_model_calls_tools_in_every_format() {
    for format in model_formats() {
        let service = Service::start_with(Path::new("demo"), &["--tool-format", format]);
        let body = json!({"model": "tiny", "temperature": 0, "tool_choice": "required", "tools": tools(),
            "max_tokens": 300, "parallel_tool_calls": false,
            "messages": [{"role": "user", "content": "Maria Keller is 34 years old and lives in Vienna."}]});
        let answer = service.post_to("/v1/chat/completions", "nobody", &body);
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        assert!(head.starts_with("HTTP/1.1 200"), "{format}: {answer}");
        let body: Value = serde_json::from_str(body).expect("JSON");
        let message = &body["choices"][0]["message"];
        let call = &message["tool_calls"][0]["function"];
        let arguments = call["arguments"]
            .as_str()
            .unwrap_or_else(|| panic!("{format}: {body}"));
        let arguments: Value = serde_json::from_str(arguments).expect(format);
        let is_valid = match call["name"].as_str() {
            Some("save_person") => arguments["name"].is_string() && arguments["age"].is_number(),
            Some("set_mood") => {
                let whys = arguments["why"].as_array();
                let is_mood = arguments["mood"] == "good" || arguments["mood"] == "bad";
                is_mood && whys.is_some_and(|whys| whys.iter().all(Value::is_string))
            }
            _ => false,
        };
        assert!(is_valid, "{format}: {body}");
    }
}

#[test]
fn an_unknown_format_is_refused_with_the_nearest() {
    let run = lexiform()
        .args(["serve", "--tool-format", "qwen3_coder"])
        .output();
    let run = run.expect("the program runs");
    assert_eq!(run.status.code(), Some(2));
    assert!(
        shown(&run.stderr).contains("did you mean `qwen_3_coder`?"),
        "{}",
        shown(&run.stderr)
    );
}
