//! Streams through the gateway: free text at once, everything else when it was checked.

use std::io::BufReader;

use lexiform_server::gateway::Limits;
use lexiform_server::gateway::upstream::Bounds;
use serde_json::{Value, json};

use crate::gateway::{call, format, tools};
use crate::service::{read_chunk, read_head};
use crate::upstream_host::{Provider, Reply, Running, piece, said, stream};

fn streamed(mut more: Value) -> Value {
    more["stream"] = json!(true);
    more
}

/// The events of the answer when the provider streams these.
fn passed_on(more: Value, events: &[Value]) -> Vec<Value> {
    let sent = format!("{}data: [DONE]\n\n", stream(events));
    let provider = Provider::of(move |_, _| Reply::Raw(sent.clone()));
    let answer = Running::to(&provider).chat(&streamed(more));
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    answer.events()
}

/// What is new in the choices of these events, without the fields that are the same in all of them.
fn deltas(events: &[Value]) -> Vec<(&Value, &Value)> {
    let choices = events.iter().filter_map(|event| event["choices"].get(0));
    choices
        .map(|choice| (&choice["delta"], &choice["finish_reason"]))
        .collect()
}

#[test]
fn free_text_is_passed_on_piece_by_piece() {
    let events = passed_on(
        json!({"stream_options": {"include_usage": true}}),
        &[
            piece(0, json!({"role": "assistant", "content": ""}), json!(null)),
            piece(0, json!({"reasoning_content": "hm"}), json!(null)),
            piece(0, json!({"content": "He"}), json!(null)),
            piece(0, json!({"content": "llo"}), json!("stop")),
            json!({"id": "x", "choices": [], "usage": {"total_tokens": 3}}),
        ],
    );
    let null = json!(null);
    let expected = [
        (&json!({"role": "assistant", "content": ""}), &null),
        (&json!({"reasoning_content": "hm"}), &null),
        (&json!({"content": "He"}), &null),
        (&json!({"content": "llo"}), &null),
        (&json!({}), &json!("stop")),
    ];
    assert_eq!(deltas(&events), expected);
    assert_eq!(events[5]["usage"], json!({"total_tokens": 3}));
    assert_eq!(events[6], "[DONE]");
}

#[test]
fn the_first_text_is_there_before_the_last() {
    let begun = stream(&[piece(0, json!({"content": "He"}), json!(null))]);
    let provider = Provider::of(move |_, _| Reply::Hangs(begun.clone()));
    let gateway = Running::to(&provider);
    let mut reader = BufReader::new(gateway.begin_chat(&streamed(json!({}))));
    assert_eq!(read_head(&mut reader).0, 200);
    let first = read_chunk(&mut reader).expect("a piece");
    assert!(String::from_utf8_lossy(&first).contains("\"He\""));
    // A client that leaves in the middle ends the stream of the provider.
    drop(reader);
    provider.until_left(1);
}

#[test]
fn text_under_a_schema_is_held_until_it_is_checked() {
    let events = passed_on(
        format(),
        &[
            piece(0, json!({"role": "assistant", "content": "{\"na"}), json!(null)),
            piece(0, json!({"content": "me\":\"Ada\",\"age\""}), json!(null)),
            piece(0, json!({"content": ":null}"}), json!(null)),
            piece(0, json!({}), json!("stop")),
        ],
    );
    let null = json!(null);
    let expected = [
        (&json!({"role": "assistant"}), &null),
        (&json!({"content": "{\"name\":\"Ada\"}"}), &null),
        (&json!({}), &json!("stop")),
    ];
    assert_eq!(deltas(&events), expected);
    assert_eq!(
        (&events[2]["lexiform"]["attempts"], &events[2]["id"]),
        (&json!(1), &json!("x"))
    );
}

#[test]
fn calls_are_held_until_all_of_them_are_checked() {
    let begun = |index: usize, name: &str| {
        let function = json!({"name": name, "arguments": ""});
        json!({"tool_calls": [{"index": index, "id": format!("call_{name}"), "type": "function", "function": function}]})
    };
    let more =
        |index: usize, text: &str| json!({"tool_calls": [{"index": index, "function": {"arguments": text}}]});
    let events = passed_on(
        tools("auto"),
        &[
            piece(0, json!({"content": "So"}), json!(null)),
            piece(0, begun(0, "add"), json!(null)),
            piece(0, more(0, "{\"name\":\"Ada\",\"a"), json!(null)),
            piece(0, begun(1, "drop"), json!(null)),
            piece(0, more(0, "ge\":null}"), json!(null)),
            piece(0, more(1, "{\"name\":\"Bob\",\"age\":4}"), json!("tool_calls")),
        ],
    );
    let mut calls = json!([
        call("add", "{\"name\":\"Ada\"}"),
        call("drop", "{\"name\":\"Bob\",\"age\":4}")
    ]);
    for index in 0..2 {
        calls[index]["index"] = json!(index);
    }
    let null = json!(null);
    let expected = [
        (&json!({"content": "So"}), &null),
        (&json!({"tool_calls": calls}), &null),
        (&json!({}), &json!("tool_calls")),
    ];
    assert_eq!(deltas(&events), expected);
}

#[test]
fn what_does_not_fit_is_asked_for_again_and_not_as_a_stream() {
    let first = [
        piece(0, json!({"role": "assistant", "content": "no"}), json!("stop")),
        json!({"choices": [], "usage": {"total_tokens": 3}}),
    ];
    let first = format!("{}data: [DONE]\n\n", stream(&first));
    let provider = Provider::of(move |_, number| match number {
        0 => Reply::Raw(first.clone()),
        _ => said(json!({"role": "assistant", "content": "{\"name\":\"Ada\",\"age\":null}"})),
    });
    let answer = Running::to(&provider).chat(&streamed(format()));
    let events = answer.events();
    assert_eq!(deltas(&events)[1].0, &json!({"content": "{\"name\":\"Ada\"}"}));
    assert_eq!(events[2]["lexiform"]["attempts"], 2);
    assert_eq!(events[3]["usage"]["total_tokens"], 18);
    assert!(provider.asked()[1].body.get("stream").is_none());
}

#[test]
fn an_error_ends_a_stream() {
    let start = piece(0, json!({"role": "assistant"}), json!(null));
    let ended = piece(
        0,
        json!({"content": "{\"name\":\"Ada\",\"age\":1}"}),
        json!("stop"),
    );
    for (events, code) in [
        (vec![start.clone()], "upstream_failed"),
        (
            vec![
                start.clone(),
                json!({"error": {"message": "broke", "code": "mine"}}),
            ],
            "mine",
        ),
        (vec![start.clone(), json!([])], "upstream_invalid_answer"),
        (vec![piece(1, json!({}), json!(null))], "upstream_invalid_answer"),
        (
            vec![piece(0, json!({"content": 5}), json!(null))],
            "upstream_invalid_answer",
        ),
        (
            vec![piece(0, json!({"content": "x".repeat(2000)}), json!(null))],
            "upstream_invalid_answer",
        ),
        (
            vec![ended.clone(), piece(0, json!({"content": "x"}), json!(null))],
            "upstream_invalid_answer",
        ),
        (
            vec![piece(0, json!({"content": "{\"na"}), json!("length"))],
            "answer_incomplete",
        ),
        (
            vec![piece(0, json!({"content": "no"}), json!("stop"))],
            "answer_rejected",
        ),
    ] {
        let sent = stream(&events);
        let provider = Provider::of(move |_, _| Reply::Raw(sent.clone()));
        let (limits, bounds) = (
            Limits::default(),
            Bounds {
                bytes: 1_000,
                ..Bounds::default()
            },
        );
        let limits = Limits { retries: 0, ..limits };
        let answer = Running::within(provider.address, limits, bounds).chat(&streamed(format()));
        let events = answer.events();
        let last = events.last().expect("an event");
        assert_eq!(last["error"]["code"], code, "{}", answer.text());
        assert!(!answer.text().contains("[DONE]"));
    }
}

#[test]
fn an_answer_that_is_no_stream_is_refused() {
    let provider = Provider::saying(&[json!({"content": "hi"})]);
    let answer = Running::to(&provider).chat(&streamed(json!({})));
    assert_eq!(
        (answer.status, &*answer.error_code()),
        (502, "upstream_invalid_answer")
    );
}

#[test]
fn comments_and_names_of_the_provider_are_not_passed_on() {
    let last = piece(0, json!({"content": "a"}), json!("stop"));
    let sent = format!(
        "{}: hi\n\nevent: x\nid: 1\ndata: {last}\n\ndata: [DONE]\n\n",
        stream(&[])
    );
    let provider = Provider::of(move |_, _| Reply::Raw(sent.clone()));
    let answer = Running::to(&provider).chat(&streamed(json!({})));
    assert_eq!(answer.events().len(), 3);
    let mut lines = answer.text().lines();
    assert!(
        lines.all(|line| line.is_empty() || line.starts_with("data: ")),
        "{}",
        answer.text()
    );
}
