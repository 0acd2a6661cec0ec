//! `POST /v1/responses`: items, events, and what is refused.

use serde_json::{Value, json};

use super::service::{Answer, Service};

fn respond(service: &Service, text: &str, more: Value) -> Answer {
    let mut body = json!({"model": "m", "input": [{"role": "user", "content": [{"type": "input_text", "text": format!("echo {text}")}]}]});
    body.as_object_mut()
        .expect("an object")
        .extend(more.as_object().cloned().unwrap_or_default());
    service.post("/v1/responses", &body.to_string())
}

/// A response, checked to be built up by the events of its stream.
fn both(service: &Service, text: &str, more: Value) -> Value {
    let whole = respond(service, text, more.clone());
    assert_eq!(whole.status, 200, "{more}: {}", whole.text());
    let mut streamed = more;
    streamed["stream"] = json!(true);
    let events = respond(service, text, streamed).named_events();
    assert_eq!(
        (events[0].0.as_str(), events[1].0.as_str()),
        ("response.created", "response.in_progress")
    );
    let mut items: Vec<Value> = Vec::new();
    let mut texts: Vec<String> = Vec::new();
    for (name, event) in &events {
        match name.rsplit('.').next() {
            Some("added") if name == "response.output_item.added" => {
                assert_eq!(event["output_index"], items.len());
                items.push(event["item"].clone());
                texts.push(String::new());
            }
            Some("delta") => {
                assert_eq!(event["item_id"], items.last().expect("an item")["id"]);
                texts
                    .last_mut()
                    .expect("an item")
                    .push_str(event["delta"].as_str().expect("a text"));
            }
            Some("done") if name == "response.output_item.done" => {
                let place = event["output_index"].as_u64().expect("a place") as usize;
                assert_eq!(text_of(&event["item"]), texts[place]);
            }
            _ => {}
        }
    }
    let (last, event) = events.last().expect("a last event");
    let whole = whole.json();
    assert_eq!(
        *last,
        format!("response.{}", whole["status"].as_str().expect("a status"))
    );
    let plain = |response: &Value| -> Vec<(Value, String)> {
        let items = response["output"].as_array().cloned().unwrap_or_default();
        items
            .iter()
            .map(|item| (item["type"].clone(), text_of(item)))
            .collect()
    };
    assert_eq!(plain(&event["response"]), plain(&whole));
    assert_eq!(
        event["response"]["usage"]["total_tokens"],
        whole["usage"]["total_tokens"]
    );
    whole
}

/// The text of an item, wherever its type keeps it.
fn text_of(item: &Value) -> String {
    let places = [&item["content"][0]["text"], &item["arguments"], &item["input"]];
    places
        .iter()
        .find_map(|place| place.as_str())
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn a_text_is_a_message() {
    let service = Service::start();
    let whole = both(
        &service,
        "grüß 🦀",
        json!({"instructions": "be brief", "metadata": {"a": "b"}}),
    );
    assert_eq!(whole["output"][0]["content"][0]["text"], "grüß 🦀");
    assert_eq!(
        (&whole["status"], &whole["metadata"]["a"]),
        (&json!("completed"), &json!("b"))
    );
    for key in [
        "error",
        "incomplete_details",
        "previous_response_id",
        "user",
        "instructions",
        "tools",
        "text",
    ] {
        assert!(whole.get(key).is_some(), "{key}");
    }
    assert!(whole["usage"]["input_tokens_details"]["cached_tokens"].is_number());
}

/// Guards against formats that are accepted here and ignored (A4).
#[test]
fn a_format_constrains_the_message() {
    let service = Service::start();
    let schema = json!({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"],
                        "additionalProperties": false});
    let more =
        json!({"text": {"format": {"type": "json_schema", "name": "P", "schema": schema, "strict": true}}});
    let whole = both(&service, "{\"age\":36}", more.clone());
    assert_eq!(text_of(&whole["output"][0]), "{\"age\":36}");
    let whole = both(&service, "never", more);
    let value: Value = serde_json::from_str(&text_of(&whole["output"][0])).expect("JSON");
    assert!(value["age"].is_number());
    let unknown = respond(&service, "x", json!({"text": {"format": {"type": "yaml"}}}));
    assert_eq!(
        (unknown.status, unknown.error_code().as_str()),
        (400, "unsupported_parameter")
    );
    let extra = respond(
        &service,
        "x",
        json!({"text": {"format": {"type": "text"}, "grammar": "a"}}),
    );
    assert_eq!(extra.status, 400);
}

#[test]
fn calls_are_items_of_their_own() {
    let service = Service::start();
    let schema = json!({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]});
    let function = json!({"type": "function", "name": "mk", "parameters": schema, "strict": false});
    let custom = json!({"type": "custom", "name": "sql", "format": {"type": "grammar", "syntax": "regex", "definition": "SELECT [0-9];"}});
    let text = "Look: <tool_call>\n{\"name\": \"mk\", \"arguments\": {\"age\":36}}\n</tool_call>\n\
                <tool_call>\n{\"name\": \"sql\"}\nSELECT 1;";
    let whole = both(&service, text, json!({"tools": [function, custom]}));
    let kinds: Vec<&str> = whole["output"]
        .as_array()
        .expect("items")
        .iter()
        .filter_map(|item| item["type"].as_str())
        .collect();
    assert_eq!(kinds, ["message", "function_call", "custom_tool_call"]);
    assert_eq!(whole["output"][1]["name"], "mk");
    assert_eq!(text_of(&whole["output"][1]), "{\"age\":36}");
    assert_eq!(text_of(&whole["output"][2]), "SELECT 1;");
    let forced = json!({"tools": [function], "tool_choice": {"type": "function", "name": "mk"}});
    let whole = both(&service, "{\"age\":1}", forced);
    assert_eq!(whole["output"].as_array().map(Vec::len), Some(1));
    assert!(
        whole["output"][0]["call_id"]
            .as_str()
            .is_some_and(|id| !id.is_empty())
    );
}

#[test]
fn a_cut_text_is_incomplete() {
    let service = Service::start();
    let whole = both(&service, "a long text", json!({"max_output_tokens": 3}));
    assert_eq!(whole["status"], "incomplete");
    assert_eq!(whole["incomplete_details"]["reason"], "max_output_tokens");
    assert_eq!(text_of(&whole["output"][0]), "a l");
}

#[test]
fn logprobs_come_when_they_are_included() {
    let service = Service::start();
    let more = json!({"include": ["message.output_text.logprobs"], "top_logprobs": 2});
    let whole = both(&service, "ab", more);
    let logprobs = whole["output"][0]["content"][0]["logprobs"]
        .as_array()
        .expect("a list");
    assert_eq!(logprobs.len(), 2);
    assert_eq!(logprobs[0]["top_logprobs"].as_array().map(Vec::len), Some(2));
}

#[test]
fn an_error_in_the_middle_is_an_event() {
    let service = Service::start();
    let body = json!({"model": "m", "input": "panic", "stream": true});
    let events = service.post("/v1/responses", &body.to_string()).named_events();
    let (name, event) = events.last().expect("an event");
    assert_eq!(
        (name.as_str(), &event["code"]),
        ("error", &json!("internal_error"))
    );
}
