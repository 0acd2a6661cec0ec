//! Thoughts, calls and constraints in one request: whether there is a thought, how long it may be, and that
//! it leaves room for the answer.

use serde_json::{Value, json};

use super::service::{Service, roomy};
use super::tools::{ask, calls, pair, tools};
use crate::tokenizer::TEMPLATE;

const MARKS: [&str; 2] = ["<think>", "</think>"];
/// The same as special tokens.
const SPECIAL: [&str; 2] = ["!<think>", "!</think>"];

/// The ends of a prompt: nothing, an open thought, a closed one.
const ENDS: [&str; 3] = ["", "<think>\\n", "<think>\\n\\n</think>\\n\\n"];

fn thinking(end: &str, marks: &[&str]) -> Service {
    Service::of_model(roomy(), 1 << 20, &format!("{TEMPLATE}{{{{ '{end}' }}}}"), marks)
}

fn person() -> Value {
    json!({"type": "object", "properties": {"age": {"type": "integer", "maximum": 99, "minimum": 10}},
           "required": ["age"], "additionalProperties": false})
}

/// A text that the script says at the end of a prompt: it counts from the end of `assistant\n`.
fn said(end: &str, marks: &[&str], text: &str) -> String {
    let end = end.replace("\\n", "\n");
    let marks = marks.iter().map(|mark| mark.trim_start_matches('!'));
    let tokens = marks.fold(end, |end, mark| end.replace(mark, "."));
    ".".repeat(tokens.len()) + text
}

/// The choice of an answer, which says the same in a stream.
fn choice(service: &Service, said: &str, more: &Value) -> Value {
    ask(service, said, more.clone())
}

/// A thought, and then either a call or an answer that obeys the schema, after each end of a prompt, with
/// and without drafts.
#[test]
fn a_thought_goes_before_a_call_and_before_what_a_schema_asks_for() {
    let call = "<tool_call>\n{\"name\": \"mk\", \"arguments\": {\"age\":36}}\n</tool_call>";
    for marks in [MARKS, SPECIAL] {
        for end in ENDS {
            let service = thinking(end, &marks);
            for draft in [true, false] {
                let more = json!({"tools": tools(), "guided_json": person(), "draft": draft});
                let (before, thought) = match end {
                    "" => ("<think>so</think>", Some("so")),
                    "<think>\\n" => ("so</think>", Some("so")),
                    _ => ("", None),
                };
                for answer in [call, "{\"age\":36}"] {
                    let whole = choice(&service, &said(end, &marks, &format!("{before}{answer}")), &more);
                    let message = &whole["message"];
                    assert_eq!(message["reasoning"].as_str(), thought, "{end}: {whole}");
                    match answer == call {
                        true => assert_eq!(calls(message), [pair("mk", "{\"age\":36}")], "{end}: {whole}"),
                        false => assert_eq!(message["content"], answer, "{end}: {whole}"),
                    }
                }
            }
        }
    }
}

/// `on` and `off` decide, whatever the model would write and however the prompt ends.
#[test]
fn a_request_may_ask_for_a_thought_or_for_none() {
    for marks in [MARKS, SPECIAL] {
        for end in ENDS {
            let service = thinking(end, &marks);
            for constraint in [
                json!({"guided_json": person()}),
                json!({"tools": tools()}),
                json!({}),
            ] {
                for (word, answer, is_there) in [
                    ("on", "{\"age\":36}", true),
                    ("off", "<think>so</think>{\"age\":36}", false),
                    ("off", "so</think>{\"age\":36}", false),
                ] {
                    let mut more = constraint.clone();
                    more["reasoning"] = json!(word);
                    more["max_tokens"] = json!(60);
                    let whole = choice(&service, &said(end, &marks, answer), &more);
                    let thought = whole["message"]["reasoning"].as_str();
                    // The script has no mark that ends the thought, so it is cut where nothing completes it.
                    assert_eq!(thought.is_some(), is_there, "{word}, {end:?}: {more}: {whole}");
                    if constraint.get("guided_json").is_some() {
                        let content = whole["message"]["content"].as_str().expect("content");
                        let content: Value = serde_json::from_str(content).expect("JSON");
                        assert!(content["age"].is_number(), "{whole}");
                    }
                }
            }
        }
    }
}

/// The other spellings of the fields.
#[test]
fn an_object_says_the_same() {
    let service = thinking("", &MARKS);
    let text = "<think>abcdef</think>{\"age\":36}";
    let ask = |more: Value| {
        let mut more = more;
        more["guided_json"] = person();
        choice(&service, text, &more)["message"]["reasoning"].clone()
    };
    assert_eq!(ask(json!({"reasoning": {"enabled": false}})), Value::Null);
    assert_eq!(ask(json!({"reasoning": {"effort": "none"}})), Value::Null);
    assert_eq!(ask(json!({"reasoning_effort": "none"})), Value::Null);
    assert_eq!(ask(json!({"reasoning": {"exclude": true}})), Value::Null);
    assert_eq!(ask(json!({"reasoning": {"effort": "high"}})), "abcdef");
    assert_eq!(
        ask(json!({"reasoning": {"enabled": true, "max_tokens": 4}})),
        "abcd"
    );
    assert_eq!(ask(json!({"max_reasoning_tokens": 4})), "abcd");
    assert_eq!(ask(json!({"max_reasoning_tokens": 0})), Value::Null);
}

/// At the bound the mark that ends the thought comes, of one token or of several, and the answer says so.
#[test]
fn a_thought_ends_at_its_bound_and_the_answer_says_so() {
    for marks in [MARKS, SPECIAL] {
        for end in &ENDS[..2] {
            let service = thinking(end, &marks);
            let thought = "an endless thought";
            let before = if end.is_empty() { "<think>" } else { "" };
            let text = said(end, &marks, &format!("{before}{thought}</think>{{\"age\":36}}"));
            for constraint in [
                json!({"guided_json": person()}),
                json!({"tools": tools(), "tool_choice": "required"}),
                json!({"tools": tools(), "guided_json": person()}),
                json!({}),
            ] {
                for most in [0, 1, 6, 18, 40] {
                    let mut more = constraint.clone();
                    more["max_reasoning_tokens"] = json!(most);
                    let answer = service.chat(&format!("echo {text}"), more.clone());
                    assert_eq!(answer.status, 200, "{}", answer.text());
                    let answer = answer.json();
                    let whole = &answer["choices"][0];
                    let kept = &thought[..thought.len().min(most)];
                    let told = whole["message"]["reasoning"].as_str().unwrap_or_default();
                    assert_eq!(told, kept, "{more}: {answer}");
                    let count = &answer["usage"]["completion_tokens_details"]["reasoning_tokens"];
                    assert_eq!(count, &json!(kept.len()), "{more}: {answer}");
                    let budget = &whole["lexiform"]["budget"]["reasoning"];
                    match most < thought.len() {
                        true => assert_eq!(budget["max_reasoning_tokens"], json!(most), "{more}: {answer}"),
                        // A character of four bytes may have had no time any more.
                        false => assert!(most == 18 || budget.is_null(), "{more}: {answer}"),
                    }
                    if constraint.get("tools").is_none() {
                        assert_eq!(choice(&service, &text, &more)["message"], whole["message"]);
                    }
                }
            }
        }
    }
}

/// With `max_tokens` alone, a thought never takes the room of the shortest answer; and what leaves it no
/// room is refused.
#[test]
fn a_thought_leaves_room_for_the_shortest_answer() {
    let long = "x".repeat(40);
    let shape = json!({"type": "object", "properties": {"long": {"const": long}}, "required": ["long"],
                       "additionalProperties": false});
    let tool = json!([{"type": "function", "function": {"name": "long", "parameters": shape}}]);
    for (end, marks) in [("", SPECIAL), ("<think>\\n", SPECIAL), ("<think>\\n", MARKS)] {
        let service = thinking(end, &marks);
        let before = if end.is_empty() { "<think>" } else { "" };
        let text = said(end, &marks, &format!("{before}{}", "thought ".repeat(60)));
        let whole = format!("{{\"long\":\"{long}\"}}");
        for constraint in [
            json!({"guided_json": shape}),
            json!({"tools": tool, "tool_choice": "required"}),
            json!({"tools": tool, "guided_json": shape}),
            json!({"tools": tool, "tool_choice": {"type": "function", "function": {"name": "long"}}}),
        ] {
            for max_tokens in [120, 200] {
                let mut more = constraint.clone();
                if more.get("guided_json").is_some() {
                    more["whitespace"] = json!("compact");
                }
                more["max_tokens"] = json!(max_tokens);
                let told = choice(&service, &text, &more);
                let message = &told["message"];
                assert!(
                    message["reasoning"]
                        .as_str()
                        .is_some_and(|text| text.starts_with("thought")),
                    "{told}"
                );
                let called = calls(message);
                let answer = called.first().map(|(_, input)| input.as_str());
                let answer = answer.or(message["content"].as_str()).unwrap_or_default();
                assert_eq!(
                    answer.replace(": ", ":"),
                    whole,
                    "{max_tokens}, {constraint}: {told}"
                );
            }
            let mut few = constraint.clone();
            few["max_tokens"] = json!(40);
            let refused = service.chat(&format!("echo {text}"), few);
            assert_eq!(refused.status, 400, "{}", refused.text());
            assert_eq!(refused.json()["error"]["code"], "budget_too_small");
        }
    }
}

/// Models of some families begin a call within a thought, which then ends; others must close it first.
#[test]
fn a_call_may_end_a_thought_where_the_family_writes_it_so() {
    let marks = [
        "<think>",
        "</think>",
        "!<|tool_calls_section_begin|>",
        "!<|tool_calls_section_end|>",
        "!<|tool_call_begin|>",
        "!<|tool_call_argument_begin|>",
        "!<|tool_call_end|>",
    ];
    let kimi = "<|tool_calls_section_begin|><|tool_call_begin|>functions.mk:0<|tool_call_argument_begin|>{\"age\":36}\
                <|tool_call_end|><|tool_calls_section_end|>";
    let qwen = "<tool_call>\n<function=mk>\n<parameter=age>\n36\n</parameter>\n</function>\n</tool_call>";
    for (format, call) in [("kimi", kimi), ("qwen_3_coder", qwen), ("qwen_3_5", qwen)] {
        let service = Service::held_to(format, &marks);
        for choice in ["auto", "required"] {
            for constraint in [json!({}), json!({"guided_json": person()})] {
                let mut more = constraint;
                more["tools"] = tools();
                more["tool_choice"] = json!(choice);
                for closed in ["", "</think>"] {
                    let whole = ask(&service, &format!("<think>so<{closed}{call}"), more.clone());
                    assert_eq!(whole["message"]["reasoning"], "so<", "{format}: {whole}");
                    assert_eq!(
                        calls(&whole["message"]),
                        [pair("mk", "{\"age\":36}")],
                        "{format}: {whole}"
                    );
                }
            }
        }
    }
    // Without tools, the same text is a thought.
    let service = Service::held_to("qwen_3_coder", &marks);
    let whole = ask(
        &service,
        &format!("<think>{qwen}</think>a"),
        json!({"guided_regex": "a"}),
    );
    assert_eq!(
        (&whole["message"]["reasoning"], &whole["message"]["content"]),
        (&json!(qwen), &json!("a"))
    );
}

/// The marks of a thought are those of the model's format, as tokens where it has them.
#[test]
fn each_family_has_its_own_marks() {
    let table: [(&str, &[&str], &str, &str); 3] = [
        (
            "cohere",
            &["!<|START_THINKING|>", "!<|END_THINKING|>"],
            "<|START_THINKING|>",
            "<|END_THINKING|>",
        ),
        (
            "minimax_m3",
            &["<mm:think>", "</mm:think>"],
            "<mm:think>",
            "</mm:think>",
        ),
        (
            "kimi_k3",
            &["!<|open|>", "!<|close|>", "!<|sep|>"],
            "<|open|>think<|sep|>",
            "<|close|>think<|sep|><|open|>response<|sep|>",
        ),
    ];
    for (format, marks, open, close) in table {
        let service = Service::held_to(format, marks);
        for more in [
            json!({"guided_json": person()}),
            json!({"guided_json": person(), "tools": tools()}),
        ] {
            let whole = ask(
                &service,
                &format!("{open}<think>so{close}{{\"age\":36}}"),
                more.clone(),
            );
            let message = &whole["message"];
            assert_eq!(
                (&message["reasoning"], &message["content"]),
                (&json!("<think>so"), &json!("{\"age\":36}")),
                "{format}: {whole}"
            );
            let mut limited = more;
            limited["max_reasoning_tokens"] = json!(3);
            let whole = ask(&service, &format!("{open}a long thought"), limited);
            assert_eq!(whole["message"]["reasoning"], "a l", "{format}: {whole}");
            let called = calls(&whole["message"]);
            let content = whole["message"]["content"].as_str().unwrap_or_default();
            let is_json = serde_json::from_str::<Value>(content).is_ok();
            assert!(is_json || called.len() == 1, "{format}: {whole}");
        }
    }
}

/// Responses have the same fields.
#[test]
fn a_response_has_the_same_thoughts() {
    let service = thinking("", &MARKS);
    let format =
        json!({"format": {"type": "json_schema", "name": "person", "schema": person(), "strict": true}});
    let ask = |reasoning: Value, most: Value| {
        let body = json!({"model": "m", "input": "echo <think>abcdef</think>{\"age\":36}", "text": format,
                          "reasoning": reasoning, "max_reasoning_tokens": most});
        let answer = service.post("/v1/responses", &body.to_string());
        assert_eq!(answer.status, 200, "{}", answer.text());
        let answer = answer.json();
        let count = answer["usage"]["output_tokens_details"]["reasoning_tokens"].clone();
        let first = &answer["output"][0];
        (first["type"] == "reasoning")
            .then(|| first["content"][0]["text"].clone())
            .map(|text| (text, count))
    };
    assert_eq!(
        ask(json!({"effort": "low"}), json!(3)),
        Some((json!("abc"), json!(3)))
    );
    assert_eq!(ask(json!(null), json!(null)), Some((json!("abcdef"), json!(6))));
    assert_eq!(ask(json!({"effort": "none"}), json!(null)), None);
}
