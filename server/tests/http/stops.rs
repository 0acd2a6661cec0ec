//! Stops beside a constraint: an answer stops where its text is whole, and goes on elsewhere.

use serde_json::{Value, json};

use super::service::Service;
use super::tools::{self, calls};

/// The content and the finish of each choice.
fn choices(service: &Service, text: &str, more: Value) -> Vec<(String, String)> {
    let answer = service.chat(text, more);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let choice = |choice: &Value| {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        (
            text(&choice["message"]["content"]),
            text(&choice["finish_reason"]),
        )
    };
    let body = answer.json();
    body["choices"]
        .as_array()
        .expect("choices")
        .iter()
        .map(choice)
        .collect()
}

/// The only choice of an echo, checked to be the same when it is streamed.
fn echoed(service: &Service, text: &str, mut more: Value) -> String {
    let told = format!("echo {text}");
    let all = choices(service, &told, more.clone());
    assert_eq!((all.len(), all[0].1.as_str()), (1, "stop"), "{more}: {all:?}");
    more["stream"] = json!(true);
    let mut streamed = String::new();
    for event in service.chat(&told, more).events() {
        streamed += event["choices"][0]["delta"]["content"]
            .as_str()
            .unwrap_or_default();
    }
    assert_eq!(streamed, all[0].0);
    streamed
}

fn with(more: &Value, field: &str, value: Value) -> Value {
    let mut body = more.clone();
    body[field] = value;
    body
}

#[test]
fn an_answer_stops_where_its_text_is_whole() {
    let service = Service::start();
    for (pattern, text, stop, expected) in [
        ("(ab,?)*", "ab,ab", json!(","), "ab"),
        ("ab(,ab)*", "ab,ab,ab", json!([";", ",a"]), "ab"),
        // Inside brackets no text is whole.
        (r"\[a(,a)*\]", "[a,a]", json!(","), "[a,a]"),
        (r"\[a(,a)*\](,a)*", "[a,a],a", json!(","), "[a,a]"),
        ("[0-9]+(\\.[0-9]+)?", "3.14", json!("."), "3"),
        ("[0-9]+(\\.[0-9]+)?", "3.14", json!("1"), "3.14"),
        // A stop that a longer one contains.
        ("ab,cd|ab|a", "ab,cd", json!(["b,c", "c"]), "a"),
        ("ab,cd|ab,", "ab,cd", json!(["b,c", "c"]), "ab,"),
        ("é(é|,)*", "éé,é", json!("é"), "é"),
    ] {
        let more = json!({"guided_regex": pattern, "stop": stop});
        assert_eq!(echoed(&service, text, more), expected, "{pattern} {stop}");
    }
    let kept = |pattern: &str| {
        let more = json!({"guided_regex": pattern, "stop": ",", "include_stop_str_in_output": true});
        echoed(&service, "ab,ab", more)
    };
    assert_eq!(kept("(ab,?)*"), "ab,", "the text is whole with the stop");
    assert_eq!(kept("ab(,ab)*"), "ab,ab", "it is not");
}

/// What clients send with every request, and stops that occur only inside of a value.
#[test]
fn stops_that_the_text_may_not_end_at_change_nothing() {
    let service = Service::start();
    let text = "{\"a\": \"x}\\n\\n</s>\", \"b\": [1, 2]}";
    let schema = json!({"type": "object", "additionalProperties": true});
    for stop in [
        json!(["\n\n", "</s>", "<|im_end|>"]),
        json!("}"),
        json!(["\"", ",", "x}"]),
    ] {
        let object = json!({"response_format": {"type": "json_object"}});
        let schema = json!({"response_format":
            {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}});
        for more in [object, schema] {
            let whole = echoed(&service, text, more.clone());
            assert!(serde_json::from_str::<Value>(&whole).is_ok(), "{whole}");
            assert_eq!(echoed(&service, text, with(&more, "stop", stop.clone())), whole);
        }
    }
    let registered = service.post("/v1/grammars", &json!({"guided_regex": "(ab,?)*"}).to_string());
    let id = registered.json()["id"].clone();
    assert_eq!(
        echoed(&service, "ab,ab", json!({"grammar_id": id, "stop": ","})),
        "ab"
    );
}

/// The law of stopped answers is the image of the law without stops under the cut, so answers of a seed are
/// cut and otherwise the same: with several samples, under all kinds of laws, in searches, with drafts and
/// without. Before `b`, no text is whole; before `;`, every text is.
#[test]
fn a_stop_cuts_what_would_have_been_written() {
    let service = Service::start();
    let mut cut = 0;
    for (law, seeds) in [
        (json!({"n": 4, "temperature": 1}), 3),
        (json!({"n": 2, "temperature": 1, "law": "global"}), 2),
        (json!({"n": 2, "temperature": 1, "law": "smc", "particles": 4}), 2),
        (
            json!({"n": 2, "temperature": 1, "law": "mcmc", "mcmc_steps": 3}),
            1,
        ),
        (json!({"n": 3, "search": {"kind": "beam", "width": 4}}), 1),
        (json!({"n": 2, "temperature": 1, "best_of": 3}), 1),
    ] {
        for (seed, drafts) in (0..seeds).flat_map(|seed| [(seed, true), (seed, false)]) {
            // Without the bias, the model writes nothing but `a`.
            let mut more = json!({"guided_regex": "([ab]{2}[,;]){2,5}[ab]{2}|([ab]{2}[,;])*[ab]{2}", "seed": seed,
                "draft": drafts, "max_tokens": 20, "logit_bias": {"97": -19}});
            more.as_object_mut()
                .expect("an object")
                .extend(law.as_object().expect("an object").clone());
            let whole = choices(&service, "forever", more.clone());
            let stopped = choices(&service, "forever", with(&more, "stop", json!(["b", ";"])));
            assert_eq!(whole.len(), stopped.len());
            for ((whole, _), (stopped, finish)) in whole.iter().zip(&stopped) {
                let expected = whole.split(';').next().expect("a text");
                assert_eq!((stopped.as_str(), finish.as_str()), (expected, "stop"), "{more}");
                cut += usize::from(whole != stopped);
            }
        }
    }
    assert!(cut > 5, "{cut} answers were cut");
}

#[test]
fn tools_may_have_stops() {
    let service = Service::start();
    let call = |name: &str, arguments: &str| {
        format!("<tool_call>\n{{\"name\": \"{name}\", \"arguments\": {arguments}}}\n</tool_call>")
    };
    let (make, say) = (call("mk", "{\"age\":36}"), call("say", "{\"text\":\"}\"}"));
    let ask = |text: &str, stop: Value| {
        tools::ask(&service, text, json!({"tools": tools::tools(), "stop": stop}))["message"].clone()
    };
    let mk = ("mk".to_owned(), "{\"age\":36}".to_owned());
    // In free text any stop counts, in a call none does, and between calls it does again.
    let text = ask(&format!("hi there {make}"), json!("there"));
    assert_eq!((&text["content"], calls(&text).len()), (&json!("hi "), 0));
    let both = format!("{make}\n{say}");
    assert_eq!(calls(&ask(&both, json!(["}", "\"", "arg"]))).len(), 2);
    assert_eq!(calls(&ask(&both, json!("\n"))), std::slice::from_ref(&mk));
    let forced = json!({"tools": tools::tools(), "stop": ["}", "\n"], "tool_choice": "required"});
    let forced = tools::ask(&service, &make, forced)["message"].clone();
    assert_eq!(calls(&forced), [mk]);
}

#[test]
fn stop_tokens_stop_where_the_text_is_whole() {
    let service = Service::start();
    let ask = |more: Value| {
        let mut body = json!({"guided_regex": "ab(,ab)*"});
        body.as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("an object").clone());
        let answer = service.chat("echo ab,ab", body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let ignored = answer.header("x-lexiform-ignored").map(str::to_owned);
        let content = answer.json()["choices"][0]["message"]["content"].clone();
        (content.as_str().expect("a text").to_owned(), ignored)
    };
    assert_eq!(ask(json!({"stop_token_ids": [44]})), ("ab".to_owned(), None));
    assert_eq!(
        ask(json!({"stop_token_ids": [98, 257]})),
        ("ab,ab".to_owned(), None)
    );
    // A control token that does not end texts never comes under a constraint.
    let ignored = Some("stop_token_ids".to_owned());
    assert_eq!(
        ask(json!({"stop_token_ids": [256]})),
        ("ab,ab".to_owned(), ignored)
    );
    let weights = service.chat(
        "echo ab",
        json!({"guided_regex": "ab(,ab)*", "stop": ",", "weights": true, "temperature": 1}),
    );
    assert_eq!(
        (weights.status, &weights.json()["error"]["param"]),
        (400, &json!("weights"))
    );
}

/// A thought is no whole answer, so nothing stops it under a constraint.
#[test]
fn a_thought_before_a_constraint_goes_on() {
    let marks = ["<think>", "</think>"];
    let service = Service::of_model(
        super::service::roomy(),
        1 << 20,
        super::tokenizer::TEMPLATE,
        &marks,
    );
    let text = "<think>well, a, b</think>ab,ab";
    let all = choices(
        &service,
        &format!("echo {text}"),
        json!({"guided_regex": "(ab,?)+", "stop": [",", "a"]}),
    );
    assert_eq!(all, [("ab".to_owned(), "stop".to_owned())]);
}
