//! `continue_final_message`: the last message of a chat is the beginning of the answer.

use serde_json::{Value, json};

use super::service::{Answer, Service, roomy};
use super::tokenizer::{IM_END, IM_START, TEMPLATE};
use super::tools::{self, calls};

/// Asks for an echo whose beginning is there.
fn ask(service: &Service, text: &str, begun: &str, more: Value) -> Answer {
    let mut body = json!({"model": "m", "continue_final_message": true, "add_generation_prompt": false,
        "messages": [{"role": "user", "content": format!("echo {text}")},
                     {"role": "assistant", "content": begun}]});
    body.as_object_mut()
        .expect("an object")
        .extend(more.as_object().expect("an object").clone());
    service.post("/v1/chat/completions", &body.to_string())
}

fn choices(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let body = answer.json();
    let choices = body["choices"].as_array().expect("choices").iter();
    choices
        .map(|choice| {
            let message = choice.get("message").map(|message| &message["content"]);
            let text = message.unwrap_or(&choice["text"]);
            text.as_str().expect("a text").to_owned()
        })
        .collect()
}

fn refused(answer: &Answer, param: &str, meant: &str) {
    let error = answer.json()["error"].clone();
    assert_eq!((answer.status, &error["param"]), (400, &json!(param)), "{error}");
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains(meant), "{message}");
}

#[test]
fn the_answer_is_what_follows_the_message() {
    let service = Service::start();
    let rest = |text: &str, begun: &str, more: Value| choices(&ask(&service, text, begun, more)).remove(0);
    assert_eq!(rest("hello world", "hello", json!({})), " world");
    assert_eq!(rest("hello world", "hello ", json!({})), "world");
    let pattern = json!({"guided_regex": "[a-z]+ [a-z]+!"});
    assert_eq!(rest("hello world!", "hello w", pattern.clone()), "orld!");
    assert_eq!(
        rest("hello 1", "hello ", pattern.clone()).chars().last(),
        Some('!')
    );
    assert_eq!(rest("a b!", "a b!", pattern), "", "nothing is left");
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"], "additionalProperties": false});
    let text = "{\"name\":\"Ada\",\"age\":36}";
    for cut in 1..text.len() {
        let (begun, left) = text.split_at(cut);
        assert_eq!(rest(text, begun, json!({"guided_json": schema})), left);
    }
    let chat = json!({"model": "m", "continue_final_message": true, "messages": [
        {"role": "user", "content": "x"}, {"role": "assistant", "content": " a <|im_end|>\n"}]});
    let prompt = service.post("/tokenize", &chat.to_string()).json()["prompt"].clone();
    assert_eq!(
        prompt,
        "<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n a <|im_end|>\n"
    );
    let mut streamed = String::new();
    let events = ask(
        &service,
        text,
        "{\"name\":\"A",
        json!({"guided_json": schema, "stream": true}),
    )
    .events();
    for event in events {
        streamed += event["choices"][0]["delta"]["content"]
            .as_str()
            .unwrap_or_default();
    }
    assert_eq!(streamed, "da\",\"age\":36}");
}

/// The tokens of an echo of `x` whose beginning is there.
fn prompt(begun: &str) -> Vec<u32> {
    let bytes = |text: &str| text.bytes().map(u32::from).collect::<Vec<u32>>();
    let before = [vec![IM_START], bytes("user\necho x"), vec![IM_END, 10, IM_START]];
    [before.concat(), bytes("assistant\n"), bytes(begun)].concat()
}

/// Guards against attempts of the global law that a request for the rest of a text shares with one for the
/// whole text after the same prompt.
#[test]
fn attempts_are_shared_with_no_text_that_begins_elsewhere() {
    let service = Service::start();
    let more = json!({"model": "m", "law": "global", "temperature": 1, "share_attempts": true, "max_tokens": 12,
        "guided_regex": "xa[ab]{4}c", "logit_bias": {"257": -19}});
    for _ in 0..4 {
        let rest = choices(&ask(&service, "x", "xa", more.clone())).remove(0);
        assert!(rest.len() == 5 && !rest.contains('x'), "{rest}");
        let mut whole = more.clone();
        whole["prompt"] = json!(prompt("xa"));
        let whole = choices(&service.post("/v1/completions", &whole.to_string())).remove(0);
        assert!(whole.len() == 7 && whole.starts_with("xa"), "{whole}");
    }
}

/// The oracle is a completion of the same tokens under the constraint of what is left: all laws and searches
/// give the same texts, with drafts and without, so the law is that of the rest after the prompt.
#[test]
fn the_law_is_that_of_the_rest() {
    let service = Service::start();
    let prompt = prompt("xab");
    for law in [
        json!({"temperature": 1, "n": 4}),
        json!({"temperature": 1, "n": 2, "law": "global"}),
        json!({"temperature": 1, "n": 2, "law": "asap"}),
        json!({"temperature": 1, "n": 2, "law": "smc", "particles": 4}),
        json!({"n": 3, "search": {"kind": "beam", "width": 4}}),
        json!({"temperature": 1, "min_tokens": 4}),
    ] {
        for (seed, drafts) in [(1, true), (1, false), (2, true)] {
            let mut more = law.clone();
            more["seed"] = json!(seed);
            more["draft"] = json!(drafts);
            more["logit_bias"] = json!({"257": -19});
            let mut whole = more.clone();
            whole["guided_regex"] = json!("x[ab]{4}(c|dd)|xab");
            let mut left = more;
            left["guided_regex"] = json!("([ab]{2}(c|dd))?");
            left["model"] = json!("m");
            left["prompt"] = json!(prompt);
            let expected = choices(&service.post("/v1/completions", &left.to_string()));
            assert_eq!(choices(&ask(&service, "x", "xab", whole)), expected, "{left}");
        }
    }
}

#[test]
fn a_beginning_that_the_constraint_does_not_allow_is_refused_with_its_place() {
    let service = Service::start();
    let content = "messages[1].content";
    let pattern = json!({"guided_regex": "héllo"});
    refused(
        &ask(&service, "x", "héln", pattern.clone()),
        content,
        "at byte 4, \"n\"",
    );
    refused(
        &ask(&service, "x", "hé2", pattern.clone()),
        content,
        "at byte 3, \"2\"",
    );
    refused(&ask(&service, "x", "hè", pattern), content, "at byte 2, \"è\"");
    let object = json!({"response_format": {"type": "json_object"}});
    refused(&ask(&service, "x", "[", object), content, "at byte 0");
}

#[test]
fn text_before_a_call_can_be_continued_and_a_call_cannot() {
    let service = Service::start();
    let call = "<tool_call>\n{\"name\": \"mk\", \"arguments\": {\"age\":36}}\n</tool_call>";
    let with = |more: Value| {
        let mut body = json!({"tools": tools::tools()});
        body.as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("an object").clone());
        body
    };
    let text = format!("Let me see: {call}");
    let answer = ask(&service, &text, "Let me", with(json!({}))).json();
    let message = &answer["choices"][0]["message"];
    assert_eq!(
        message["content"].as_str().map(str::trim_end),
        Some(" see:"),
        "{answer}"
    );
    assert_eq!(calls(message), [("mk".to_owned(), "{\"age\":36}".to_owned())]);
    let content = "messages[1].content";
    for begun in ["Let me see: <tool_", &text, "<tool_call>\n{\"name\": \"mk\""] {
        refused(&ask(&service, &text, begun, with(json!({}))), content, "call");
    }
    refused(
        &ask(&service, &text, "a", with(json!({"tool_choice": "required"}))),
        "tool_choice",
        "auto or none",
    );
    let free = ask(
        &service,
        "<tool_call> x",
        "<tool",
        with(json!({"tool_choice": "none"})),
    );
    assert_eq!(choices(&free), ["_call> x"]);
}

#[test]
fn the_text_behind_a_thought_can_be_continued_and_a_thought_cannot() {
    let service = Service::of_model(roomy(), 1 << 20, TEMPLATE, &["<think>", "</think>"]);
    let pattern = json!({"guided_regex": "a+b"});
    assert_eq!(choices(&ask(&service, "aab", "aa", pattern.clone())), ["b"]);
    for begun in ["<think>hm", "a</think>"] {
        refused(
            &ask(&service, "aab", begun, pattern.clone()),
            "messages[1].content",
            "thought",
        );
    }
}

#[test]
fn fields_that_have_no_meaning_beside_it_are_refused() {
    let service = Service::start();
    let object = json!({"type": "object"});
    for (more, param) in [
        (json!({"add_generation_prompt": true}), "add_generation_prompt"),
        (json!({"continue_final_message": false}), "add_generation_prompt"),
        (json!({"guided_json": object, "certificate": true}), "certificate"),
        (
            json!({"guided_json": object, "field_confidence": true}),
            "field_confidence",
        ),
        (json!({"guided_json": object, "enum_scores": true}), "enum_scores"),
        (json!({"token_healing": true}), "token_healing"),
        (
            json!({"messages": [{"role": "user", "content": "x"}]}),
            "messages[0].role",
        ),
        (
            json!({"messages": [{"role": "assistant", "content": ""}]}),
            "messages[0].content",
        ),
    ] {
        refused(&ask(&service, "x", "x", more), param, "");
    }
    // Without the field, a last message of the assistant is a message like any other.
    let messages =
        json!([{"role": "user", "content": "echo hello"}, {"role": "assistant", "content": "hel"}]);
    let body = json!({"model": "m", "messages": messages});
    let answer = service.post("/v1/chat/completions", &body.to_string());
    assert_eq!(choices(&answer), ["hello"]);
}
