//! Where answers begin and end: `min_tokens`, `ignore_eos`, `echo`, and characters that are cut.

use serde_json::{Value, json};

use super::service::{Answer, Service};

/// The content of a chat, its number of tokens, and why it ended.
fn ended(answer: &Answer) -> (String, u64, String) {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let body = answer.json();
    let choice = &body["choices"][0];
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let tokens = body["usage"]["completion_tokens"].as_u64();
    let content = text(&choice["message"]["content"]);
    (content, tokens.expect("a number"), text(&choice["finish_reason"]))
}

fn refused(answer: &Answer, param: &str) {
    let error = answer.json()["error"].clone();
    assert_eq!(
        (answer.status, error["param"].as_str()),
        (400, Some(param)),
        "{error}"
    );
}

#[test]
fn an_answer_has_at_least_min_tokens() {
    let service = Service::start();
    let (short, tokens, _) = ended(&service.chat("echo ab", json!({"max_tokens": 50})));
    assert_eq!(short, "ab");
    let (long, more, finish) = ended(&service.chat("echo ab", json!({"max_tokens": 50, "min_tokens": 9})));
    assert!(long.starts_with("ab") && finish == "stop", "{long}, {finish}");
    assert_eq!(more, tokens + 7);
    for wrong in [json!({"stop": "x"}), json!({"stop_token_ids": [3]})] {
        let mut more = json!({"min_tokens": 2});
        more.as_object_mut()
            .expect("an object")
            .extend(wrong.as_object().expect("an object").clone());
        let param = wrong.as_object().and_then(|wrong| wrong.keys().next().cloned());
        refused(&service.chat("echo ab", more), &param.expect("a field"));
    }
    refused(
        &service.chat("echo ab", json!({"min_tokens": 9, "max_tokens": 5})),
        "min_tokens",
    );
    refused(
        &service.chat(
            "echo ab",
            json!({"min_tokens": 2, "guided_regex": "a+", "law": "global"}),
        ),
        "min_tokens",
    );
}

/// Guards against a constraint that `min_tokens` breaks: the text ends where nothing else may come.
#[test]
fn min_tokens_lets_a_constrained_text_grow_as_far_as_it_can() {
    let service = Service::start();
    let content = |pattern: &str| {
        let more = json!({"guided_regex": pattern, "max_tokens": 50, "min_tokens": 6});
        ended(&service.chat("echo a", more)).0
    };
    assert_eq!(content("a+"), "aaaaaa");
    assert_eq!(content("a{1,3}"), "aaa");
    assert_eq!(content("a|ab{8}"), "abbbbbbbb");
}

#[test]
fn ends_can_be_ignored_where_nothing_has_to_be_complete() {
    let service = Service::start();
    let more = json!({"max_tokens": 7, "ignore_eos": true});
    let (content, tokens, finish) = ended(&service.chat("echo ab", more));
    assert!(content.starts_with("ab"), "{content}");
    assert_eq!((tokens, finish.as_str()), (7, "length"));
    for constraint in [
        json!({"guided_regex": "a+"}),
        json!({"response_format": {"type": "json_object"}}),
        json!({"tools": super::tools::tools()}),
        json!({"law": "mcmc"}),
    ] {
        let mut more = constraint.clone();
        more["ignore_eos"] = true.into();
        refused(&service.chat("echo ab", more), "ignore_eos");
    }
}

#[test]
fn an_answer_can_begin_with_its_prompt() {
    let service = Service::start();
    let post = |more: Value| {
        let mut body = json!({"model": "m", "prompt": ["Say é: ", [83, 97, 121]], "max_tokens": 3});
        body.as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("an object").clone());
        service.post("/v1/completions", &body.to_string())
    };
    let texts = |body: &Value| {
        let choices = body["choices"].as_array().expect("choices").iter();
        choices
            .map(|choice| choice["text"].as_str().expect("a text").to_owned())
            .collect::<Vec<_>>()
    };
    let whole = post(json!({"echo": true})).json();
    assert_eq!(texts(&whole), ["Say é: aaa", "Sayaaa"]);
    assert_eq!(texts(&post(json!({"echo": false})).json()), ["aaa", "aaa"]);
    let mut streamed = vec![String::new(); 2];
    for event in post(json!({"echo": true, "stream": true})).events() {
        for choice in event["choices"].as_array().into_iter().flatten() {
            let index = choice["index"].as_u64().expect("an index") as usize;
            streamed[index] += choice["text"].as_str().expect("a text");
        }
    }
    assert_eq!(streamed, texts(&whole));
    refused(&post(json!({"echo": true, "logprobs": 1})), "echo");
}

/// Guards against replacement characters in the place of a character of which the last token wrote a part.
#[test]
fn a_character_that_is_cut_is_left_out() {
    let service = Service::start();
    let cut = |max_tokens: u64| ended(&service.chat("echo xéy", json!({"max_tokens": max_tokens}))).0;
    assert_eq!([1, 2, 3, 4].map(cut), ["x", "x", "xé", "xéy"]);
    let mut streamed = String::new();
    for event in service
        .chat("echo xé", json!({"max_tokens": 2, "stream": true}))
        .events()
    {
        streamed += event["choices"][0]["delta"]["content"]
            .as_str()
            .unwrap_or_default();
    }
    assert_eq!(streamed, "x");
}
