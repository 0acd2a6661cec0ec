//! The error table: what is wrong, its status, its code, and the field to blame.

use lexiform_engine::EngineConfig;
use serde_json::{Value, json};

use super::service::{Answer, Service, chat};

/// Posts a chat that is wrong and checks what is told of it.
fn refused(service: &Service, more: Value, code: &str, param: &str) {
    let answer = service.chat("echo x", more.clone());
    assert_eq!(answer.status, 400, "{more}: {}", answer.text());
    assert_eq!(answer.error_code(), code, "{more}");
    assert_eq!(answer.json()["error"]["param"], param, "{more}");
    assert_eq!(answer.json()["error"]["type"], "invalid_request_error");
}

#[test]
fn wrong_values_name_their_field() {
    let service = Service::start();
    let table = [
        (json!({"temperature": "hot"}), "temperature"),
        (json!({"temperature": 3}), "temperature"),
        (json!({"top_p": -0.1}), "top_p"),
        (json!({"top_k": 1.5}), "top_k"),
        (json!({"n": 0}), "n"),
        (json!({"n": 1000}), "n"),
        (json!({"max_tokens": 0}), "max_tokens"),
        (json!({"max_tokens": -3}), "max_tokens"),
        (json!({"max_tokens": 1e30}), "max_tokens"),
        (json!({"seed": "x"}), "seed"),
        (json!({"stop": [""]}), "stop"),
        (json!({"stop": ["a", "b", "c", "d", "e"]}), "stop"),
        (json!({"stop": 3}), "stop"),
        (json!({"stream": "yes"}), "stream"),
        (
            json!({"stream_options": {"include_usage": true}}),
            "stream_options",
        ),
        (json!({"repetition_penalty": 0}), "repetition_penalty"),
        (json!({"repetition_penalty": "much"}), "repetition_penalty"),
        (json!({"logprobs": 3}), "logprobs"),
        (json!({"logprobs": true, "top_logprobs": 21}), "top_logprobs"),
        (json!({"top_logprobs": 2}), "top_logprobs"),
        (json!({"logit_bias": {"x": 1}}), "logit_bias"),
        (json!({"logit_bias": {"97": 1000}}), "logit_bias"),
        (json!({"logit_bias": {"999999": 1}}), "logit_bias"),
        (json!({"law": "martial"}), "law"),
        (json!({"schema_in_prompt": "maybe"}), "schema_in_prompt"),
        (
            json!({"guided_whitespace_pattern": " "}),
            "guided_whitespace_pattern",
        ),
        (json!({"guided_json": {}, "guided_regex": "a"}), "guided_regex"),
        (json!({"messages": []}), "messages"),
        (json!({"messages": "hi"}), "messages"),
        (json!({"messages": null}), "messages"),
        (
            json!({"messages": [{"role": "king", "content": "x"}]}),
            "messages[0].role",
        ),
        (json!({"messages": [{"role": "user"}]}), "messages[0].content"),
        (
            json!({"messages": [{"role": "user", "content": 5}]}),
            "messages[0].content",
        ),
        (json!({"messages": [3]}), "messages[0]"),
    ];
    for (more, param) in table {
        refused(&service, more, "invalid_value", param);
    }
}

/// Guards against fields that look like a constraint and are passed over (A4), and against contradictions
/// (G2).
#[test]
fn what_is_not_honoured_is_refused() {
    let service = Service::start();
    let image = json!([{"type": "image_url", "image_url": {"url": "data:,"}}]);
    let table = [
        (
            json!({"messages": [{"role": "user", "content": image}]}),
            "messages[0].content[0].type",
        ),
        (
            json!({"response_format": {"type": "yaml"}}),
            "response_format.type",
        ),
        (json!({"bad_words": ["x"]}), "bad_words"),
        (json!({"prompt_logprobs": 1}), "prompt_logprobs"),
        (json!({"modalities": ["text", "audio"]}), "modalities"),
        (json!({"output_schema": {}}), "output_schema"),
    ];
    for (more, param) in table {
        refused(&service, more, "unsupported_parameter", param);
    }
    let neutral = json!({"repetition_penalty": 1.0, "min_tokens": 0, "user": "u", "brand_new_field": 3});
    assert_eq!(service.chat("echo x", neutral).status, 200);
}

#[test]
fn bodies_that_are_not_requests() {
    let service = Service::start();
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let table: [&[u8]; 7] = [
        b"",
        b"{",
        b"[]",
        b"nul",
        b"{\"model\": \"\xff\"}",
        b"{\"model\": \"m\"} trailing",
        deep.as_bytes(),
    ];
    for body in table {
        for path in ["/v1/chat/completions", "/v1/completions"] {
            let head = format!("POST {path} HTTP/1.1\r\ncontent-type: application/json");
            let answer = service.exchange(&head, body);
            assert_eq!(
                (answer.status, answer.error_code().as_str()),
                (400, "invalid_json"),
                "{}",
                answer.text()
            );
        }
    }
    assert_eq!(service.chat("echo x", json!({})).status, 200);
}

#[test]
fn large_bodies_and_foreign_types() {
    let service = Service::with(EngineConfig::default(), 10_000);
    let large = chat(&"x".repeat(20_000), json!({})).to_string();
    let answer = service.post("/v1/chat/completions", &large);
    assert_eq!(
        (answer.status, answer.error_code().as_str()),
        (413, "request_too_large")
    );
    let head =
        "POST /v1/chat/completions HTTP/1.1\r\nhost: test\r\nconnection: close\r\ntransfer-encoding: chunked";
    let chunked = format!("{head}\r\n\r\n{:x}\r\n{large}\r\n0\r\n\r\n", large.len());
    assert_eq!(service.raw(chunked.as_bytes()).error_code(), "request_too_large");
    let body = chat("echo x", json!({})).to_string();
    let plain = service.exchange(
        "POST /v1/chat/completions HTTP/1.1\r\ncontent-type: text/plain",
        body.as_bytes(),
    );
    assert_eq!(
        (plain.status, plain.error_code().as_str()),
        (415, "unsupported_media_type")
    );
    let zipped =
        "POST /v1/chat/completions HTTP/1.1\r\ncontent-type: application/json\r\ncontent-encoding: gzip";
    assert_eq!(service.exchange(zipped, body.as_bytes()).status, 415);
    assert_eq!(service.post("/v1/chat/completions", &body).status, 200);
}

#[test]
fn unknown_models_routes_and_methods() {
    let service = Service::start();
    let expect = |answer: Answer, status: u16, code: &str| {
        assert_eq!(
            (answer.status, answer.error_code().as_str()),
            (status, code),
            "{}",
            answer.text()
        );
        answer
    };
    let answer = expect(
        service.chat("x", json!({"model": "other"})),
        404,
        "model_not_found",
    );
    assert_eq!(answer.json()["error"]["param"], "model");
    expect(service.chat("x", json!({"model": 5})), 400, "invalid_value");
    expect(service.get("/v1/models/other"), 404, "model_not_found");
    expect(service.get("/nothing"), 404, "not_found");
    expect(service.post("/v1/embeddings", "{}"), 404, "not_found");
    let answer = expect(service.get("/v1/chat/completions"), 405, "method_not_allowed");
    assert_eq!(answer.header("allow"), Some("POST"));
    let answer = expect(service.post("/v1/models", "{}"), 405, "method_not_allowed");
    assert_eq!(answer.header("allow"), Some("GET, HEAD"));
}

#[test]
fn a_prompt_that_does_not_fit_is_refused_and_a_large_budget_is_cut() {
    let config = EngineConfig {
        blocks: 8,
        ..EngineConfig::default()
    };
    let service = Service::with(config, 1 << 20);
    let answer = service.chat(&"x".repeat(500), json!({}));
    assert_eq!(
        (answer.status, answer.error_code().as_str()),
        (400, "context_length_exceeded")
    );
    let body = service.chat("forever", json!({"max_tokens": 100_000})).json();
    assert_eq!(body["choices"][0]["finish_reason"], "length");
    assert_eq!(body["usage"]["total_tokens"], 128);
}

#[test]
fn an_answer_carries_the_request_id_of_the_client() {
    let service = Service::start();
    let answer = service.exchange("GET /nothing HTTP/1.1\r\nx-request-id: abc-123", b"");
    assert_eq!(answer.header("x-request-id"), Some("abc-123"));
}

/// Guards against answers that are cut because they never had room (C2): the minimum is told before anything
/// is written.
#[test]
fn a_budget_that_no_answer_fits_into_is_refused_with_the_minimum() {
    let service = Service::start();
    let constraint = json!({"guided_choice": ["yes!", "no way"], "max_tokens": 3});
    refused(&service, constraint.clone(), "budget_too_small", "max_tokens");
    let message = service.chat("echo x", constraint).json()["error"]["message"].to_string();
    assert!(
        message.contains("max_tokens is 3") && message.ends_with("takes 4\""),
        "{message}"
    );
    let enough = service.chat(
        "echo no way",
        json!({"guided_choice": ["yes!", "no way"], "max_tokens": 4}),
    );
    assert_eq!(enough.json()["choices"][0]["message"]["content"], "yes!");
    assert_eq!(enough.json()["choices"][0]["finish_reason"], "stop");
}
