//! What is too large is refused by its size: before it is read, copied, or cut into tokens.

use lexiform_engine::EngineConfig;
use serde_json::{Value, json};

use super::service::{Answer, Service, chat, roomy};

/// With room for the largest bodies, and a context of 2,048 tokens.
fn service() -> Service {
    let config = EngineConfig {
        blocks: 128,
        ..EngineConfig::default()
    };
    Service::with(config, 4 << 20)
}

fn is_too_large(answer: &Answer, code: &str, limit: &str) {
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert_eq!(answer.error_code(), code, "{}", answer.text());
    let message = answer.json()["error"]["message"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    assert!(message.contains(limit), "{message}");
}

#[test]
fn a_source_that_is_too_long_is_refused_wherever_it_stands() {
    let service = service();
    let required: Vec<String> = (0..130_000)
        .map(|number| format!("a rather long key {number}"))
        .collect();
    let schema = json!({"type": "object", "required": required});
    let tool = json!({"type": "function", "function": {"name": "f", "parameters": schema}});
    let words = vec!["word".repeat(30); 28_000];
    for more in [
        json!({"response_format": {"type": "json_schema", "json_schema": {"name": "P", "schema": schema}}}),
        json!({"structured_outputs": {"json": schema}, "schema_in_prompt": "always"}),
        json!({"tools": [tool]}),
        json!({"guided_regex": "a".repeat(2 << 20)}),
        json!({"guided_choice": words}),
    ] {
        is_too_large(
            &service.chat("echo x", more),
            "grammar_too_complex",
            "source_bytes",
        );
    }
    for path in ["/v1/grammars", "/v1/grammars/explain"] {
        let answer = service.post(path, &json!({"guided_json": schema}).to_string());
        is_too_large(&answer, "grammar_too_complex", "source_bytes");
    }
    let lint = service.post("/v1/grammars/lint", &json!({"guided_json": schema}).to_string());
    assert_eq!((lint.status, &lint.json()["valid"]), (200, &json!(false)));
}

/// Guards against megabytes that are cut into tokens before anybody looks whether they fit.
#[test]
fn a_prompt_that_cannot_fit_is_refused_before_it_is_cut_to_its_end() {
    let service = service();
    let words = "some words ".repeat(25_000);
    let table = [
        ("some words ".repeat(8_000), "at least"),
        (" ".repeat(90_000), "at least"),
        ("é".repeat(45_000), "at least"),
        (words.repeat(13), "prompt_bytes"),
        (" ".repeat(3 << 20), "prompt_bytes"),
    ];
    for (text, told) in table {
        is_too_large(&service.chat(&text, json!({})), "context_length_exceeded", told);
        let body = json!({"model": "m", "prompt": text, "max_tokens": 1});
        is_too_large(
            &service.post("/v1/completions", &body.to_string()),
            "context_length_exceeded",
            told,
        );
    }
    // Where words can be told apart, no more is cut than a piece beyond the context.
    let words = "sömé words ".repeat(7_000);
    let message = service.chat(&words, json!({})).json()["error"]["message"].clone();
    let message = message.as_str().unwrap_or_default();
    let cut = message
        .split(' ')
        .filter_map(|word| word.parse::<usize>().ok())
        .max();
    assert!(cut.is_some_and(|tokens| tokens < 40_000), "{message}");
}

/// Whoever only asks how many tokens a text has may ask of longer ones than fit, but not of megabytes.
#[test]
fn a_long_text_has_the_tokens_of_its_pieces() {
    let service = service();
    let text = "some words ".repeat(8_000);
    let answer = service.post("/tokenize", &json!({"prompt": text}).to_string());
    assert_eq!(answer.json()["count"], text.len(), "{}", &answer.text()[..100]);
    let whole: Vec<u64> = text.bytes().map(u64::from).collect();
    assert_eq!(answer.json()["tokens"], json!(whole));
    let text = "some words ".repeat(10_000);
    let messages = json!([{"role": "user", "content": text}]);
    for body in [
        json!({"prompt": text}),
        json!({"model": "m", "messages": messages}),
    ] {
        let answer = service.post("/tokenize", &body.to_string());
        is_too_large(&answer, "context_length_exceeded", "prompt_bytes");
    }
    let service = Service::with(roomy(), 4 << 20);
    let answer = service.post("/tokenize", &json!({"prompt": "x".repeat(300_000)}).to_string());
    is_too_large(&answer, "context_length_exceeded", "piece_bytes");
}

#[test]
fn a_body_of_very_many_values_is_refused_before_they_are_read() {
    let service = service();
    let body = format!("{{\"model\":\"m\",\"prompt\":[{}0]}}", "0,".repeat(1 << 20));
    is_too_large(
        &service.post("/v1/completions", &body),
        "invalid_json",
        "json_values",
    );
}

/// Guards against a sketch for the prompt that takes longer than the compile.
#[test]
fn a_schema_too_long_for_a_sketch_is_enforced_without_one() {
    let service = Service::with(super::service::roomy(), 4 << 20);
    let description = "d".repeat(300_000);
    let schema = json!({"type": "object", "description": description,
                        "properties": {"a": {"const": 1}}, "required": ["a"]});
    let more = json!({"guided_json": schema, "max_tokens": 60});
    let answer = service.post("/v1/chat/completions", &chat("echo {\"a\":1}", more).to_string());
    assert_eq!(answer.status, 200, "{}", answer.text());
    let content = answer.json()["choices"][0]["message"]["content"].clone();
    let value: Option<Value> = content.as_str().and_then(|text| serde_json::from_str(text).ok());
    assert_eq!(value, Some(json!({"a": 1})));
    let explained = service.post(
        "/v1/grammars/explain",
        &json!({"guided_json": schema}).to_string(),
    );
    assert_eq!(explained.json()["sketch"], Value::Null);
}

/// Guards against an independent check that takes longer than the universe: two schemas at each level, which
/// are the same to a grammar and not to a program that follows a schema as it is written.
#[test]
fn a_schema_that_doubles_at_each_level_is_checked_in_bounded_time() {
    let service = Service::start();
    let next = |level: usize| json!({"$ref": format!("#/$defs/a{}", level + 1)});
    let level = |level: usize| (format!("a{level}"), json!({"allOf": [next(level), next(level)]}));
    let mut defs: serde_json::Map<String, Value> = (0..60).map(level).collect();
    defs.insert("a60".to_owned(), json!({"const": "x"}));
    let schema = json!({"$ref": "#/$defs/a0", "$defs": defs});
    let more = json!({"guided_json": schema, "certificate": true});
    let answer = service.chat("echo \"x\"", more);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let certificate = &answer.json()["choices"][0]["lexiform"]["certificates"][0];
    assert_eq!(
        (&certificate["valid"], &certificate["verified_by"]),
        (&json!(true), &json!("lexiform"))
    );
    let verified = service.post(
        "/v1/verify",
        &json!({"guided_json": schema, "texts": ["\"x\"", "1"]}).to_string(),
    );
    let valid = |text: usize| verified.json()["results"][text]["valid"].clone();
    assert_eq!(
        (valid(0), valid(1)),
        (json!(true), json!(false)),
        "{}",
        verified.text()
    );
}
