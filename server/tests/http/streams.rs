//! Streamed answers, event by event.

use serde_json::{Value, json};

use super::service::Service;

/// The parts of one sample's text, in the order of their events.
fn parts(events: &[Value], index: usize) -> Vec<String> {
    let of_sample = |event: &&Value| event["choices"][0]["index"] == index;
    let text = |event: &Value| {
        event["choices"][0]["delta"]["content"]
            .as_str()
            .map(str::to_owned)
    };
    events.iter().filter(of_sample).filter_map(text).collect()
}

#[test]
fn a_stream_has_the_events_that_clients_expect() {
    let service = Service::start();
    let answer = service.chat(
        "echo abc",
        json!({"stream": true, "stream_options": {"include_usage": true}}),
    );
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    let events = answer.events();
    let (first, last) = (&events[0], &events[events.len() - 1]);
    assert_eq!(
        first["choices"][0]["delta"],
        json!({"role": "assistant", "content": "", "refusal": null})
    );
    assert_eq!(*last, json!("[DONE]"));
    let usage = &events[events.len() - 2];
    assert_eq!(usage["choices"], json!([]));
    assert!(
        usage["usage"]["total_tokens"]
            .as_u64()
            .is_some_and(|total| total > 3)
    );
    let end = &events[events.len() - 3];
    assert_eq!(end["choices"][0]["finish_reason"], "stop");
    assert_eq!(end["choices"][0]["delta"], json!({}));
    assert_eq!(end["choices"][0]["lexiform"]["law"], "greedy");
    assert_eq!(parts(&events, 0).concat(), "abc");
    for event in &events[..events.len() - 1] {
        assert_eq!(event["object"], "chat.completion.chunk");
        assert_eq!(
            (&event["id"], &event["created"]),
            (&first["id"], &first["created"])
        );
    }
    for event in &events[..events.len() - 2] {
        assert!(event["usage"].is_null(), "{event}");
    }
}

/// Guards against characters that come in halves (J1).
#[test]
fn no_event_splits_a_character() {
    let service = Service::start();
    // Every token of this model is a single byte, so each of these characters comes in pieces.
    let text = "é漢🦀 e\u{301} 👨‍👩‍👧 \u{10FFFF}";
    let answer = service.chat(&format!("echo {text}"), json!({"stream": true}));
    let parts = parts(&answer.events(), 0);
    assert_eq!(parts.concat(), text);
    assert!(
        parts
            .iter()
            .all(|part| !part.contains(char::REPLACEMENT_CHARACTER)),
        "{parts:?}"
    );
}

#[test]
fn samples_are_told_apart() {
    let service = Service::start();
    let events = service.chat("echo xyz", json!({"stream": true, "n": 2})).events();
    for index in 0..2 {
        assert_eq!(parts(&events, index).concat(), "xyz");
        let ends = events
            .iter()
            .filter(|event| event["choices"][0]["index"] == index);
        assert_eq!(
            ends.filter(|event| event["choices"][0]["finish_reason"] == "stop")
                .count(),
            1
        );
    }
}

#[test]
fn a_stop_string_never_shows_in_a_stream() {
    let service = Service::start();
    let events = service
        .chat("echo one END two", json!({"stream": true, "stop": "END"}))
        .events();
    assert_eq!(parts(&events, 0).concat(), "one ");
    let end = &events[events.len() - 2];
    assert_eq!(end["choices"][0]["finish_reason"], "stop");
}

#[test]
fn logprobs_come_with_the_text_they_belong_to() {
    let service = Service::start();
    let events = service
        .chat("echo aé", json!({"stream": true, "logprobs": true}))
        .events();
    let entries: Vec<&Value> = events
        .iter()
        .filter_map(|event| event["choices"][0]["logprobs"]["content"].as_array())
        .flatten()
        .collect();
    let bytes: Vec<u64> = entries
        .iter()
        .filter_map(|entry| entry["bytes"][0].as_u64())
        .collect();
    assert_eq!(bytes, [97, 0xc3, 0xa9]);
}

#[test]
fn completions_stream_too() {
    let service = Service::start();
    let body = json!({"model": "m", "prompt": "x", "max_tokens": 4, "stream": true});
    let events = service.post("/v1/completions", &body.to_string()).events();
    let text: String = events
        .iter()
        .filter_map(|event| event["choices"][0]["text"].as_str())
        .collect();
    assert_eq!(text, "aaaa");
    assert_eq!(events[events.len() - 2]["choices"][0]["finish_reason"], "length");
    assert_eq!(events[events.len() - 1], json!("[DONE]"));
}

#[test]
fn an_error_in_the_middle_is_an_event_and_the_next_request_works() {
    let service = Service::start();
    let events = service.chat("panic", json!({"stream": true})).events();
    let last = events.last().expect("an event");
    assert_eq!(last["error"]["code"], "internal_error");
    assert_eq!(
        service.chat("echo ok", json!({})).json()["choices"][0]["message"]["content"],
        "ok"
    );
}
