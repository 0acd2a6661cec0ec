//! The gateway in front of a provider that takes less of JSON Schema, that errs, and that lies.

use std::time::Duration;

use lexiform_server::gateway::Limits;
use lexiform_server::gateway::upstream::Bounds;
use serde_json::{Value, json};

use crate::service::Answer;
use crate::upstream_host::{Provider, Reply, Running, chat, said};

/// A schema that the provider does not take: a key may be absent, and there is a limit of a length.
pub(crate) fn person() -> Value {
    json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}, "age": {"type": "integer"}},
           "required": ["name"]})
}

pub(crate) fn format() -> Value {
    json!({"response_format": {"type": "json_schema", "json_schema": {"name": "person", "schema": person()}}})
}

pub(crate) fn tools(choice: &str) -> Value {
    let tool = |name: &str| json!({"type": "function", "function": {"name": name, "parameters": person()}});
    json!({"tools": [tool("add"), tool("drop")], "tool_choice": choice})
}

pub(crate) fn call(name: &str, arguments: &str) -> Value {
    json!({"id": format!("call_{name}"), "type": "function", "function": {"name": name, "arguments": arguments}})
}

fn content(answer: &Answer) -> Value {
    let text = answer.json()["choices"][0]["message"]["content"].clone();
    serde_json::from_str(text.as_str().unwrap_or_else(|| panic!("{}", answer.text()))).expect("JSON")
}

#[test]
fn a_schema_is_projected_and_the_answer_restored() {
    let provider =
        Provider::saying(&[json!({"role": "assistant", "content": "{ \"name\": \"Ada\", \"age\": null }"})]);
    let gateway = Running::to(&provider);
    let mut more = format();
    more["temperature"] = json!(0.5);
    let answer = gateway.chat(&more);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let body = answer.json();
    assert_eq!(body["choices"][0]["message"]["content"], "{\"name\":\"Ada\"}");
    assert_eq!(
        (&body["id"], &body["usage"]["total_tokens"]),
        (&json!("x"), &json!(15))
    );
    assert_eq!(
        answer.header("x-lexiform-projection"),
        Some("response_format.json_schema.schema=equal")
    );
    let told = &body["lexiform"];
    assert_eq!((&told["attempts"], &told["changes"]), (&json!(1), &json!([])));
    assert_eq!(told["projections"][0]["relation"], "equal");
    let asked = &provider.asked()[0];
    assert_eq!(
        (&*asked.path, asked.header("authorization")),
        ("/v1/chat/completions", Some("Bearer of-the-client"))
    );
    assert_eq!(asked.body["temperature"], json!(0.5));
    let sent = &asked.body["response_format"]["json_schema"];
    assert_eq!((&sent["name"], &sent["strict"]), (&json!("person"), &json!(true)));
    assert_eq!(sent["schema"]["required"], json!(["name", "age"]));
    assert_eq!(sent["schema"]["additionalProperties"], json!(false));
}

#[test]
fn what_does_not_fit_is_repaired_or_asked_for_again() {
    let provider = Provider::saying(&[
        json!({"role": "assistant", "content": "I think that it is Ada."}),
        json!({"role": "assistant", "content": "{\"name\": \"Ada\", \"age\": \"7\"}"}),
    ]);
    let gateway = Running::to(&provider);
    let answer = gateway.chat(&format());
    assert_eq!(
        content(&answer),
        json!({"name": "Ada", "age": 7}),
        "{}",
        answer.text()
    );
    let body = answer.json();
    assert_eq!(body["lexiform"]["attempts"], 2);
    assert_eq!(
        body["lexiform"]["changes"][0]["param"],
        "choices[0].message.content"
    );
    assert_eq!(body["usage"]["total_tokens"], 30);
    let again = &provider.asked()[1].body["messages"];
    assert_eq!(
        (&again[1]["role"], &again[1]["content"]),
        (&json!("assistant"), &json!("I think that it is Ada."))
    );
    assert_eq!(again[2]["role"], "user");
    assert!(
        again[2]["content"]
            .as_str()
            .is_some_and(|text| text.contains("no JSON")),
        "{again}"
    );
}

#[test]
fn what_would_have_to_be_added_is_asked_for_first() {
    let (lacks, whole) = ("{\"age\":1}", "{\"name\":\"Ada\",\"age\":1}");
    for (second, content, changes) in [
        (whole, whole, json!([])),
        (
            lacks,
            "{\"age\":1,\"name\":\"\"}",
            json!([{"param": "choices[0].message.content", "path": "", "kind": "added"}]),
        ),
        (
            "no",
            "{\"age\":1,\"name\":\"\"}",
            json!([{"param": "choices[0].message.content", "path": "", "kind": "added"}]),
        ),
    ] {
        let provider = Provider::saying(&[json!({"content": lacks}), json!({"content": second})]);
        let body = Running::to(&provider).chat(&format()).json();
        assert_eq!(body["choices"][0]["message"]["content"], content, "{second}");
        assert_eq!(body["lexiform"]["changes"], changes);
        let again = &provider.asked()[1].body["messages"][2]["content"];
        assert!(
            again
                .as_str()
                .is_some_and(|text| text.contains("requires more than there is at '#'")),
            "{again}"
        );
    }
}

#[test]
fn a_string_that_has_to_hold_json_text_is_taken_as_the_value_in_the_end() {
    let schema = json!({"type": "object", "properties": {"any": {}}, "required": ["any"]});
    let format = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}});
    let provider = Provider::saying(&[json!({"content": "{\"any\":\"Ada [\"}"})]);
    let body = Running::to(&provider)
        .chat(&json!({"response_format": format}))
        .json();
    assert_eq!(
        body["choices"][0]["message"]["content"], "{\"any\":\"Ada [\"}",
        "{body}"
    );
    let changes = json!([{"param": "choices[0].message.content", "path": "/any", "kind": "respelled"}]);
    assert_eq!(
        (&body["lexiform"]["attempts"], &body["lexiform"]["changes"]),
        (&json!(2), &changes)
    );
}

#[test]
fn what_never_fits_is_not_passed_on() {
    for (message, more, place) in [
        (json!({"content": "no"}), format(), "choices[0].message.content"),
        (json!({"content": null}), format(), "choices[0].message.content"),
        (
            json!({"content": "[]"}),
            json!({"response_format": {"type": "json_object"}}),
            "choices[0].message.content",
        ),
        (
            json!({"tool_calls": [call("add", "no")]}),
            tools("auto"),
            "choices[0].message.tool_calls[0].function.arguments",
        ),
        (
            json!({"tool_calls": [call("rob", "{}")]}),
            tools("auto"),
            "choices[0].message.tool_calls[0]",
        ),
        (
            json!({"tool_calls": [call("add", "{}")]}),
            json!({}),
            "choices[0].message.tool_calls",
        ),
        (
            json!({"content": "hi"}),
            tools("required"),
            "choices[0].message.tool_calls",
        ),
    ] {
        let provider = Provider::saying(&[message]);
        let answer = Running::to(&provider).chat(&more);
        let error = &answer.json()["error"];
        assert_eq!(
            (answer.status, &error["code"]),
            (502, &json!("answer_rejected")),
            "{}",
            answer.text()
        );
        assert_eq!(error["param"], place);
        assert_eq!(provider.asked().len(), 2, "{place}");
    }
}

#[test]
fn an_answer_that_was_cut_off_is_neither_repaired_nor_asked_for_again() {
    let provider = Provider::of(|_, _| {
        let choice = json!({"message": {"content": "{\"name\": \"A"}, "finish_reason": "length"});
        Reply::Json(200, chat(json!([choice])))
    });
    let answer = Running::to(&provider).chat(&format());
    assert_eq!((answer.status, &*answer.error_code()), (502, "answer_incomplete"));
    assert_eq!(provider.asked().len(), 1);
}

#[test]
fn calls_are_restored_and_free_text_is_left_as_it_is() {
    let calls = json!([
        call("add", "{\"name\":\"Ada\",\"age\":null}"),
        call("drop", "{\"name\":\"Bob\",\"age\":1}")
    ]);
    let provider = Provider::saying(&[json!({"content": "Well { ", "reasoning": "r", "tool_calls": calls})]);
    let answer = Running::to(&provider).chat(&tools("auto"));
    let message = &answer.json()["choices"][0]["message"];
    assert_eq!(
        (&message["content"], &message["reasoning"]),
        (&json!("Well { "), &json!("r"))
    );
    let arguments = |index: usize| message["tool_calls"][index]["function"]["arguments"].clone();
    assert_eq!(
        (arguments(0), arguments(1)),
        (json!("{\"name\":\"Ada\"}"), json!("{\"name\":\"Bob\",\"age\":1}"))
    );
    let sent = provider.asked()[0].body["tools"][1]["function"].clone();
    assert_eq!(
        (&sent["strict"], &sent["parameters"]["required"]),
        (&json!(true), &json!(["name", "age"]))
    );
}

#[test]
fn each_of_several_choices_is_checked_by_itself() {
    let provider = Provider::of(|asked, number| {
        let choice = |index: usize, text: &str| json!({"index": index, "message": {"content": text}, "finish_reason": "stop"});
        match number {
            0 => Reply::Json(
                200,
                chat(json!([
                    choice(1, "no"),
                    choice(0, "{\"name\":\"Ada\",\"age\":1}")
                ])),
            ),
            _ => {
                assert!(asked.body.get("n").is_none());
                said(json!({"content": "{\"name\":\"Bob\",\"age\":null}"}))
            }
        }
    });
    let mut more = format();
    more["n"] = json!(2);
    let answer = Running::to(&provider).chat(&more);
    let choices = &answer.json()["choices"];
    assert_eq!(choices[0]["message"]["content"], "{\"name\":\"Ada\",\"age\":1}");
    assert_eq!(
        (&choices[1]["index"], &choices[1]["message"]["content"]),
        (&json!(1), &json!("{\"name\":\"Bob\"}"))
    );
}

#[test]
fn a_refusal_is_passed_on() {
    let provider = Provider::saying(&[json!({"content": null, "refusal": "I will not."})]);
    let answer = Running::to(&provider).chat(&format());
    assert_eq!(answer.json()["choices"][0]["message"]["refusal"], "I will not.");
}

#[test]
fn log_probabilities_of_a_checked_text_are_left_out() {
    let provider = Provider::of(|_, _| {
        let message = json!({"content": "{\"name\":\"Ada\",\"age\":1}"});
        Reply::Json(
            200,
            chat(json!([{"message": message, "logprobs": {"content": []}, "finish_reason": "stop"}])),
        )
    });
    let answer = Running::to(&provider).chat(&format());
    assert_eq!(answer.json()["choices"][0]["logprobs"], Value::Null);
}

#[test]
fn errors_of_the_provider_are_passed_on_with_their_status() {
    let provider = Provider::of(|_, _| {
        Reply::Json(
            429,
            json!({"error": {"message": "Slow down.", "type": "requests", "code": "rate_limit_exceeded"}}),
        )
    });
    let gateway = Running::to(&provider);
    for more in [json!({}), json!({"stream": true})] {
        let answer = gateway.chat(&more);
        assert_eq!(
            (answer.status, &*answer.error_code()),
            (429, "rate_limit_exceeded")
        );
        assert_eq!(answer.header("retry-after"), Some("7"));
    }
}

#[test]
fn a_provider_that_errs_is_never_passed_on() {
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\n";
    let whole = |body: &str| format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    let large = whole(&format!("{{\"x\":\"{}\"}}", "a".repeat(100_000)));
    for (bytes, code) in [
        (whole("{\"choices\":"), "upstream_invalid_answer"),
        (whole("[]"), "upstream_invalid_answer"),
        (whole("\u{0}"), "upstream_invalid_answer"),
        (
            whole("{\"choices\":[{\"message\":{\"content\":5},\"finish_reason\":\"stop\"}]}"),
            "upstream_invalid_answer",
        ),
        (
            whole("{\"choices\":[{\"message\":{\"content\":\"x\"}}]}"),
            "upstream_invalid_answer",
        ),
        (whole(&"[".repeat(50_000)), "upstream_invalid_answer"),
        (
            whole("{\"error\":{\"message\":\"no\",\"code\":\"mine\"}}"),
            "mine",
        ),
        (large, "upstream_invalid_answer"),
        (
            format!("{head}content-encoding: gzip\r\ncontent-length: 2\r\n\r\n{{}}"),
            "upstream_invalid_answer",
        ),
        (
            format!("{head}content-length: 99\r\n\r\n{{\"choices\""),
            "upstream_failed",
        ),
        ("SSH-2.0-x\r\n".to_owned(), "upstream_failed"),
        (String::new(), "upstream_failed"),
        (
            "HTTP/1.1 302 X\r\nlocation: /\r\ncontent-length: 0\r\n\r\n".to_owned(),
            "upstream_error",
        ),
    ] {
        let bytes_sent = bytes.clone();
        let provider = Provider::of(move |_, _| Reply::Raw(bytes_sent.clone()));
        let bounds = Bounds {
            bytes: 60_000,
            ..Bounds::default()
        };
        let answer = Running::within(provider.address, Limits::default(), bounds).chat(&format());
        let shown: String = bytes.chars().take(120).collect();
        assert_eq!(
            (answer.status, &*answer.error_code()),
            (502, code),
            "{shown}: {}",
            answer.text()
        );
    }
}

#[test]
fn a_provider_that_is_silent_or_absent_is_waited_for_as_long_as_allowed() {
    let started = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{";
    for bytes in ["", started] {
        let provider = Provider::of(|_, _| Reply::Hangs(bytes.to_owned()));
        let bounds = Bounds {
            silence: Duration::from_millis(200),
            ..Bounds::default()
        };
        let answer = Running::within(provider.address, Limits::default(), bounds).chat(&json!({}));
        assert_eq!((answer.status, &*answer.error_code()), (504, "upstream_timeout"));
        let limits = Limits {
            answer: Duration::from_millis(200),
            ..Limits::default()
        };
        let answer = Running::within(provider.address, limits, Bounds::default()).chat(&json!({}));
        assert_eq!((answer.status, &*answer.error_code()), (504, "upstream_timeout"));
        provider.until_left(2);
    }
    let nobody = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = nobody.local_addr().expect("an address");
    drop(nobody);
    let answer = Running::within(address, Limits::default(), Bounds::default()).chat(&json!({}));
    assert_eq!((answer.status, &*answer.error_code()), (502, "upstream_failed"));
    assert!(answer.text().contains("connection refused"), "{}", answer.text());
}

#[test]
fn a_client_that_leaves_ends_the_request_to_the_provider() {
    let provider = Provider::of(|_, _| Reply::Hangs(String::new()));
    let limits = Limits {
        requests: 1,
        ..Limits::default()
    };
    let gateway = Running::within(provider.address, limits, Bounds::default());
    let client = gateway.begin_chat(&json!({}));
    provider.until_asked(1);
    let full = gateway.chat(&json!({}));
    assert_eq!((full.status, &*full.error_code()), (503, "overloaded"));
    drop(client);
    provider.until_left(1);
}

#[test]
fn what_is_wrong_with_a_request_is_said_before_anyone_is_asked() {
    let provider = Provider::saying(&[json!({"content": "hi"})]);
    let gateway = Running::to(&provider);
    let schema = |schema: Value| json!({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}});
    for (more, code, param) in [
        (
            schema(json!({"type": "objct"})),
            "invalid_json_schema",
            "response_format.json_schema.schema",
        ),
        (
            schema(json!({"type": "object", "maxProperties": -1})),
            "invalid_json_schema",
            "response_format.json_schema.schema",
        ),
        (
            schema(json!({"allOf": [{"type": "string"}, {"type": "null"}]})),
            "unsatisfiable_schema",
            "response_format.json_schema.schema",
        ),
        (
            json!({"guided_regex": "a"}),
            "unsupported_parameter",
            "guided_regex",
        ),
        (json!({"messages": "hi"}), "invalid_value", "messages"),
    ] {
        let answer = gateway.chat(&more);
        let error = &answer.json()["error"];
        assert_eq!(
            (answer.status, &error["code"], &error["param"]),
            (400, &json!(code), &json!(param)),
            "{error}"
        );
    }
    assert_eq!(provider.asked().len(), 0);
}

#[test]
fn other_routes_are_passed_on_or_refused_by_name() {
    let provider = Provider::of(|asked, _| {
        assert_eq!(asked.path, "/v1/models");
        Reply::Json(200, json!({"object": "list", "data": [{"id": "m"}]}))
    });
    let gateway = Running::to(&provider);
    assert_eq!(gateway.get("/v1/models").json()["data"][0]["id"], "m");
    assert_eq!(
        gateway.get("/health").json(),
        json!({"status": "ok", "profile": "openai-strict"})
    );
    let post = |path: &str| Answer::read(gateway.begin(&format!("POST {path} HTTP/1.1"), "{}"));
    for (answer, status, code) in [
        (post("/v1/responses"), 501, "route_not_forwarded"),
        (post("/v1/completions"), 501, "route_not_forwarded"),
        (post("/v1/models"), 405, "method_not_allowed"),
        (gateway.get("/v1/chat/completions"), 405, "method_not_allowed"),
        (gateway.get("/v1/embeddings"), 404, "not_found"),
    ] {
        assert_eq!(
            (answer.status, &*answer.error_code()),
            (status, code),
            "{}",
            answer.text()
        );
        assert!(answer.header("x-request-id").is_some());
    }
    assert!(
        gateway
            .get("/x")
            .text()
            .contains("POST /v1/chat/completions, GET /v1/models, GET /health")
    );
}
