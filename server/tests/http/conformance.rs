//! Bodies that real clients sent, recorded in front of another server: each must be accepted and answered in
//! the shape that its client reads.
//!
//! The recordings are not part of this repository; where they are missing, the test says so and returns.

use std::path::Path;

use lexiform_engine::EngineConfig;
use serde_json::{Value, json};

use super::service::{Answer, Service};

#[test]
fn every_recorded_body_is_answered() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/conformance/requests.jsonl");
    let Ok(recorded) = std::fs::read_to_string(&file) else {
        println!(
            "skipped: every_recorded_body_is_answered: ../shared/conformance/requests.jsonl is not there"
        );
        return;
    };
    // The script never ends a string by itself; a small context does.
    let config = EngineConfig {
        blocks: 128,
        ..EngineConfig::default()
    };
    let service = Service::with(config, 1 << 20);
    let mut answered = 0;
    for line in recorded.lines() {
        let mut entry: Value = serde_json::from_str(line).expect("a recording is JSON");
        // The recordings name models that made the server of the recording misbehave; here there is one
        // model.
        entry["body"]["model"] = json!("m");
        let path = entry["path"].as_str().expect("a path");
        let answer = service.post(path, &entry["body"].to_string());
        assert_eq!(answer.status, 200, "{entry}: {}", answer.text());
        check(path, &entry["body"], &answer);
        answered += 1;
    }
    assert!(answered > 50, "only {answered} bodies were recorded");
}

/// The least that a client needs of an answer.
fn check(path: &str, body: &Value, answer: &Answer) {
    let streamed = body["stream"] == json!(true);
    match path {
        "/v1/decisions" => assert!(answer.json()["answers"].is_array()),
        "/v1/responses" if streamed => {
            let (last, _) = answer.named_events().pop().expect("events");
            assert!(
                ["response.completed", "response.incomplete"].contains(&last.as_str()),
                "{last}"
            );
        }
        "/v1/responses" => assert!(
            answer.json()["output"]
                .as_array()
                .is_some_and(|items| !items.is_empty())
        ),
        _ if streamed => {
            let events = answer.events();
            let ended = |event: &Value| event["choices"][0]["finish_reason"].is_string();
            assert!(events.iter().any(ended), "{body}");
            assert_eq!(events.last(), Some(&json!("[DONE]")));
        }
        _ => {
            let message = &answer.json()["choices"][0]["message"];
            assert!(
                message["content"].is_string() || message["tool_calls"].is_array(),
                "{body}"
            );
        }
    }
}
