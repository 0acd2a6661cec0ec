//! Some requests of each kind to a real model, SmolLM2-135M-Instruct, as `cargo xtask setup --model` fetches
//! it.
//!
//! A model of random weights, or the demo model, shows none of what people meet: keys that nobody declared,
//! numbers without an end, calls as the model itself writes them. Where the model was not fetched, these
//! tests say so and are skipped.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::program::Service;

/// The name of the model among those that are fetched.
const MODEL: &str = "smollm2-135m-instruct";

/// The service with the real model; `None`, and a line that says it, where it was not fetched.
fn service(test: &str) -> Option<Service> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let folder = cache.or_else(home)?.join("lexiform/models").join(MODEL);
    if !folder.is_dir() {
        println!("skipped: real::{test}: {} is not there", folder.display());
        return None;
    }
    Some(Service::start_with(Path::new(MODEL), &["--cache-memory", "512"]))
}

/// The answer to a request at a path, which must be one.
fn asked(service: &Service, path: &str, more: Value) -> Value {
    let mut body = json!({"model": "tiny", "temperature": 0});
    let (fields, more) = (body.as_object_mut().expect("an object"), more);
    fields.extend(more.as_object().expect("an object").clone());
    let answer = service.post_to(path, "nobody", &body);
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

fn chat(service: &Service, said: &str, more: &Value) -> Value {
    let mut body = json!({"messages": [{"role": "user", "content": said}]});
    let fields = body.as_object_mut().expect("an object");
    fields.extend(more.as_object().expect("an object").clone());
    asked(service, "/v1/chat/completions", body)
}

fn content(answer: &Value) -> &str {
    answer["choices"][0]["message"]["content"]
        .as_str()
        .unwrap_or_default()
}

const MARIA: &str = "Maria Keller is 34 years old and lives in Vienna.";

/// As people write it: nothing is said of further keys.
fn person() -> Value {
    let schema = json!({"type": "object", "required": ["name", "age", "city"], "properties": {
        "name": {"type": "string"}, "age": {"type": "integer"}, "city": {"type": "string"}}});
    json!({"type": "json_schema", "json_schema": {"name": "person", "schema": schema}})
}

/// What llama.cpp writes with the same file: weights, tokenizer and computation are read as it reads them.
#[test]
fn free_text_is_that_of_llama_cpp() {
    let Some(service) = service("free_text_is_that_of_llama_cpp") else {
        return;
    };
    let body = json!({"prompt": "The three largest cities of Austria are", "max_tokens": 16});
    let answer = asked(&service, "/v1/completions", body);
    let choice = &answer["choices"][0];
    assert_eq!(
        choice["text"],
        " Vienna, Prague, and Budapest.\n\nThe answer is: 1."
    );
    assert_eq!(choice["finish_reason"], "length");
    assert_eq!(answer["usage"]["prompt_tokens"], 7);
    let answer = chat(
        &service,
        "What is the capital of France?",
        &json!({"max_tokens": 40}),
    );
    assert_eq!(content(&answer), "The capital of France is Paris.");
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
}

#[test]
fn facts_are_read_from_a_text() {
    let Some(service) = service("facts_are_read_from_a_text") else {
        return;
    };
    let asked = json!({"response_format": person()});
    let answer = chat(&service, MARIA, &asked);
    let found: Value = serde_json::from_str(content(&answer)).expect("JSON");
    assert_eq!(
        found,
        json!({"name": "Maria Keller", "age": 34, "city": "Vienna"})
    );
    assert_eq!(answer["lexiform"]["enforced"], "closed");
    // Drafts change no text.
    let mut plain = asked;
    plain["draft"] = json!(false);
    assert_eq!(content(&chat(&service, MARIA, &plain)), content(&answer));
}

/// Guards against tools whose arguments run away: without `max_tokens`, nothing but the end of an object ends
/// them.
#[test]
fn calls_end_by_themselves_in_the_keys_that_were_declared() {
    let Some(service) = service("calls_end_by_themselves_in_the_keys_that_were_declared") else {
        return;
    };
    let weather = json!({"type": "function", "function": {"name": "get_weather",
        "description": "Get the current weather of a city", "parameters": {"type": "object", "required": ["city"],
            "properties": {"city": {"type": "string"}, "unit": {"enum": ["C", "F"]}}}}});
    let timer = json!({"type": "function", "function": {"name": "set_timer", "description": "Set a timer",
        "parameters": {"type": "object", "required": ["minutes"], "properties": {"minutes": {"type": "integer"}}}}});
    let named = json!({"type": "function", "function": {"name": "set_timer"}});
    for (choice, tool, keys) in [
        (json!("required"), None, ["city", "unit", "minutes"]),
        (named, Some("set_timer"), ["minutes", "minutes", "minutes"]),
    ] {
        let asked = json!({"tools": [weather, timer], "tool_choice": choice});
        let answer = chat(&service, "Set a timer for 5 minutes.", &asked);
        let call = &answer["choices"][0]["message"]["tool_calls"][0]["function"];
        assert!(tool.is_none_or(|tool| call["name"] == tool), "{answer}");
        let arguments: Value =
            serde_json::from_str(call["arguments"].as_str().unwrap_or_default()).expect("JSON");
        let found = arguments.as_object().expect("an object");
        assert!(found.keys().all(|key| keys.contains(&key.as_str())), "{answer}");
        assert!(
            answer["usage"]["completion_tokens"].as_u64() < Some(80),
            "{answer}"
        );
    }
}

/// Guards against free text that ends at once where too few tokens are left for a call: the vocabulary is
/// large, and each of its tokens may be the beginning of one.
#[test]
fn free_text_beside_tools_goes_on_to_its_last_token() {
    let Some(service) = service("free_text_beside_tools_goes_on_to_its_last_token") else {
        return;
    };
    let tool = json!({"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object",
        "properties": {"city": {"type": "string"}}, "required": ["city"]}}});
    let asked = json!({"tools": [tool], "max_tokens": 20});
    let answer = chat(&service, "Tell me about the history of France.", &asked);
    assert_eq!(answer["choices"][0]["finish_reason"], "length", "{answer}");
    assert!(
        answer["usage"]["completion_tokens"].as_u64() > Some(15),
        "{answer}"
    );
}

#[test]
fn a_stream_is_the_answer_in_pieces() {
    let Some(service) = service("a_stream_is_the_answer_in_pieces") else {
        return;
    };
    let whole = chat(&service, MARIA, &json!({"response_format": person()}));
    let body = json!({"model": "tiny", "temperature": 0, "stream": true, "response_format": person(),
        "messages": [{"role": "user", "content": MARIA}]});
    let events = service.post(&body);
    let pieces = events.lines().filter_map(|line| line.strip_prefix("data: {"));
    let text = |piece: &str| {
        let event: Value = serde_json::from_str(&format!("{{{piece}")).expect("JSON");
        event["choices"][0]["delta"]["content"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let pieces: Vec<String> = pieces.map(text).collect();
    assert_eq!(pieces.concat(), content(&whole));
    assert!(pieces.len() > 4, "{pieces:?}");
}

#[test]
fn samples_of_the_global_law_are_answers() {
    let Some(service) = service("samples_of_the_global_law_are_answers") else {
        return;
    };
    let asked = json!({"temperature": 1, "seed": 7, "law": "global", "response_format": {"type": "regex", "pattern": "(yes|no)"}});
    let answer = chat(&service, "Is Vienna in Austria? Answer yes or no.", &asked);
    assert!(["yes", "no"].contains(&content(&answer)), "{answer}");
    assert_eq!(answer["choices"][0]["lexiform"]["law"], "global-exact");
}
