//! Models that think before they answer: the constraint holds for the answer, not for the thought.

use serde_json::{Value, json};

use super::service::{Service, roomy};
use super::tokenizer::TEMPLATE;

const MARKS: [&str; 2] = ["<think>", "</think>"];

fn thinking(template: &str) -> Service {
    Service::of_model(roomy(), 1 << 20, template, &MARKS)
}

fn person() -> Value {
    json!({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"],
           "additionalProperties": false})
}

fn message(service: &Service, text: &str, more: Value) -> Value {
    let answer = service.chat(&format!("echo {text}"), more);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["choices"][0]["message"].clone()
}

/// Guards against JSON inside the thought, and against a grammar that begins too early or never (E1).
#[test]
fn the_constraint_begins_behind_the_thought() {
    let service = thinking(TEMPLATE);
    let text = "<think>an {object}?</think>\n\n{\"age\":36}";
    let whole = message(&service, text, json!({"guided_json": person()}));
    assert_eq!(whole["reasoning_content"], "an {object}?");
    assert_eq!(whole["reasoning"], whole["reasoning_content"]);
    assert_eq!(whole["content"], "{\"age\":36}");
    let direct = message(&service, "{\"age\":36}", json!({"guided_json": person()}));
    assert_eq!(direct["content"], "{\"age\":36}");
    assert!(direct.get("reasoning").is_none());
    let hidden = message(
        &service,
        text,
        json!({"guided_json": person(), "include_reasoning": false}),
    );
    assert!(hidden.get("reasoning").is_none());
    assert_eq!(hidden["content"], "{\"age\":36}");
}

#[test]
fn a_thought_that_the_prompt_began_goes_on() {
    let template = format!(
        "{TEMPLATE}{{{{ '<think>\\n' if enable_thinking is not false else '<think>\\n\\n</think>\\n\\n' }}}}"
    );
    let service = thinking(&template);
    let ask = |more: Value| message(&service, "..hm</think>{\"age\":36}", more);
    // The script counts what is written from `assistant` on, so it echoes from behind the opened thought.
    let whole = ask(json!({"guided_json": person()}));
    assert_eq!(whole["reasoning"], "hm");
    let content: Value = serde_json::from_str(whole["content"].as_str().unwrap_or_default()).expect("JSON");
    assert!(content["age"].is_number());
    let quick = ask(json!({"guided_json": person(), "reasoning_effort": "none"}));
    assert!(quick.get("reasoning").is_none(), "{quick}");
    let content: Value = serde_json::from_str(quick["content"].as_str().unwrap_or_default()).expect("JSON");
    assert!(content["age"].is_number());
}

/// What is repaired is the answer: the thought is no part of the text, and the grammar of the answer is that
/// of any repair.
#[test]
fn a_rewritten_text_has_no_thought_in_it() {
    // The script echoes what the template leaves of the message: the text behind the task.
    let template = TEMPLATE.replace("message.content", "message.content.split('\\n\\n')[-1]");
    let service = thinking(&template);
    let mut body = json!({"model": "m", "guided_regex": "a{2}|b", "text": "echo <think>hm</think>aa"});
    let nearest = service.post("/v1/repair", &body.to_string()).json();
    body["rewrite"] = json!(true);
    let answer = service.post("/v1/repair", &body.to_string());
    assert_eq!(answer.status, 200, "{}", answer.text());
    let answer = answer.json();
    assert_eq!(
        (&answer["text"], &answer["cost"]),
        (&json!("aa"), &json!(22)),
        "{answer}"
    );
    assert_eq!(answer["id"], nearest["id"]);
    let details = &answer["usage"]["completion_tokens_details"];
    assert!(details["reasoning_tokens"].as_u64() > Some(1), "{answer}");
}

#[test]
fn a_free_answer_is_split_and_streamed_in_its_channels() {
    let service = thinking(TEMPLATE);
    let text = "<think>why</think>\n\nbecause";
    let events = service.chat(
        &format!("echo {text}"),
        json!({"stream": true, "stream_options": {"include_usage": true}}),
    );
    let events = events.events();
    let joined = |key: &str| {
        let deltas = events
            .iter()
            .filter_map(|event| event["choices"][0]["delta"][key].as_str());
        deltas.collect::<String>()
    };
    assert_eq!(
        (joined("reasoning").as_str(), joined("content").as_str()),
        ("why", "because")
    );
    let usage = events.iter().rev().find(|event| event["usage"].is_object());
    let thought = usage.map(|event| event["usage"]["completion_tokens_details"]["reasoning_tokens"].clone());
    assert_eq!(
        thought
            .and_then(|tokens| tokens.as_u64())
            .map(|tokens| tokens >= 3),
        Some(true)
    );
}

#[test]
fn tools_are_called_behind_a_thought() {
    let service = thinking(TEMPLATE);
    let tool = json!({"type": "function", "function": {"name": "mk", "parameters": person()}});
    let named = json!({"type": "function", "function": {"name": "mk"}});
    for choice in [json!("auto"), named] {
        let bare = choice.is_object();
        let call = if bare {
            "{\"age\":36}"
        } else {
            "<tool_call>\n{\"name\": \"mk\", \"arguments\": {\"age\":36}}\n</tool_call>"
        };
        let text = format!("<think>call</think>{call}");
        let whole = message(&service, &text, json!({"tools": [tool], "tool_choice": choice}));
        assert_eq!(whole["reasoning"], "call");
        assert_eq!(whole["tool_calls"][0]["function"]["arguments"], "{\"age\":36}");
    }
}

#[test]
fn marks_that_are_special_tokens_are_read_too() {
    let marks = ["!<think>", "!</think>", "!<tool_call>", "!</tool_call>"];
    let service = Service::of_model(roomy(), 1 << 20, TEMPLATE, &marks);
    let whole = message(
        &service,
        "<think>so</think>{\"age\":36}",
        json!({"guided_json": person()}),
    );
    assert_eq!(
        (&whole["reasoning"], &whole["content"]),
        (&json!("so"), &json!("{\"age\":36}"))
    );
    let tool = json!({"type": "function", "function": {"name": "mk", "parameters": person()}});
    let call = "<tool_call>\n{\"name\": \"mk\", \"arguments\": {\"age\":36}}\n</tool_call>";
    let text = format!("{call}\n{call}");
    let more = json!({"tools": [tool], "logprobs": true});
    let whole = message(&service, &text, more.clone());
    assert_eq!(whole["tool_calls"].as_array().map(Vec::len), Some(2));
    // In a stream as in a whole answer, every token has its log-probability.
    let count = |choice: &Value| choice["logprobs"]["content"].as_array().map_or(0, Vec::len);
    let whole = service.chat(&format!("echo {text}"), more.clone()).json();
    let mut streamed = more;
    streamed["stream"] = json!(true);
    let events = service.chat(&format!("echo {text}"), streamed).events();
    let sum: usize = events.iter().map(|event| count(&event["choices"][0])).sum();
    assert_eq!(sum, count(&whole["choices"][0]));
}
