//! Constraints beside the constraint of a request, which are asked about tokens.

use serde_json::{Value, json};

use super::service::{Answer, Service, roomy};
use super::tokenizer::TEMPLATE;

fn regex(pattern: &str) -> Value {
    json!({"type": "regex", "pattern": pattern})
}

/// Asks for `x` and two letters.
fn ask(service: &Service, more: Value) -> Answer {
    let mut body = json!({"response_format": regex("x[a-d]{2}"), "temperature": 1, "seed": 5});
    if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
        body.extend(more);
    }
    service.chat("echo x", body)
}

fn contents(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let choices = answer.json()["choices"].as_array().expect("choices").clone();
    let content = |choice: &Value| choice["message"]["content"].as_str().expect("a text").to_owned();
    choices.iter().map(content).collect()
}

#[test]
fn a_text_obeys_the_constraint_and_all_monitors() {
    let service = Service::start();
    let mut found = std::collections::BTreeSet::new();
    for seed in 0..12 {
        let monitors = json!([regex("x[a-c]+"), regex(".[b-d].*"), {"type": "ebnf", "grammar": "root ::= \"x\" [a-d] [cd]"}]);
        let answer = ask(&service, json!({"monitors": monitors, "n": 4, "seed": seed}));
        found.extend(contents(&answer));
        assert_eq!(answer.json()["choices"][0]["lexiform"]["law"], "local");
    }
    let allowed = ["xbc", "xcc"];
    assert!(
        found.iter().all(|text| allowed.contains(&text.as_str())),
        "{found:?}"
    );
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn every_law_that_can_ask_has_monitors() {
    let service = Service::start();
    let monitors = json!([regex(".[bc]."), regex("..[cd]")]);
    for more in [
        json!({"temperature": 0}),
        json!({"law": "smc", "particles": 3, "n": 2}),
        json!({"law": "smc", "particles": 3, "proposal": "awrs"}),
        json!({"law": "sir", "particles": 3}),
        json!({"best_of": 3}),
        json!({"top_p": 0.9, "weights": true}),
        json!({"stream": false, "logprobs": true, "top_logprobs": 2}),
    ] {
        let mut body = json!({ "monitors": monitors });
        if let (Value::Object(body), Value::Object(more)) = (&mut body, more.clone()) {
            body.extend(more);
        }
        for text in contents(&ask(&service, body)) {
            let bytes = text.as_bytes();
            assert!(
                text.len() == 3 && b"bc".contains(&bytes[1]) && b"cd".contains(&bytes[2]),
                "{text} {more}"
            );
        }
    }
    let weighed = |more: Value| {
        let mut body = json!({ "monitors": monitors, "weights": true });
        if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
            body.extend(more);
        }
        ask(&service, body).json()["choices"][0]["lexiform"].clone()
    };
    assert!(weighed(json!({}))["log_weight"].as_f64().expect("a weight") < 0.0);
    assert!(weighed(json!({"top_p": 0.9})).get("log_weight").is_none());
}

#[test]
fn a_registered_grammar_is_a_monitor_by_its_identity() {
    let service = Service::start();
    let registered = service.post("/v1/grammars", &json!({"regex": "xd."}).to_string());
    let id = registered.json()["id"].as_str().expect("an identity").to_owned();
    let answer = ask(&service, json!({"monitors": [id, regex("..a")]}));
    assert_eq!(contents(&answer), ["xda"]);
    let unknown = ask(&service, json!({"monitors": [regex("..a"), "gr_0"]}));
    assert_eq!(
        (
            unknown.status,
            unknown.error_code().as_str(),
            unknown.json()["error"]["param"].clone()
        ),
        (404, "grammar_not_found", json!("monitors[1]"))
    );
}

/// Each of the two leaves something after `x`, and both together nothing.
#[test]
fn constraints_that_contradict_each_other_end_in_an_error_that_names_one() {
    let service = Service::start();
    let answer = ask(&service, json!({"monitors": [regex("x[ab]."), regex("x[cd].")]}));
    assert_eq!(
        (answer.status, answer.error_code().as_str()),
        (422, "monitor_refused"),
        "{}",
        answer.text()
    );
    let param = answer.json()["error"]["param"].clone();
    assert!(param == "monitors[0]" || param == "monitors[1]", "{param}");
    assert!(answer.text().contains("allows no token"), "{}", answer.text());
    let other = ask(&service, json!({"monitors": [regex("x[ab].")]}));
    assert_eq!(other.status, 200, "the next request is as good");
}

#[test]
fn what_is_no_monitor_and_what_has_none_is_refused() {
    let service = Service::start();
    let nine = vec![regex("x.*"); 9];
    for (more, code, param) in [
        (json!({"monitors": 5}), "invalid_type", "monitors"),
        (json!({"monitors": nine}), "invalid_value", "monitors"),
        (json!({"monitors": [7]}), "invalid_value", "monitors[0]"),
        (
            json!({"monitors": [{"type": "text"}]}),
            "invalid_value",
            "monitors[0]",
        ),
        (
            json!({"monitors": [{"type": "regex"}]}),
            "invalid_value",
            "monitors[0].pattern",
        ),
        (
            json!({"monitors": [{"type": "regex", "pattern": "("}]}),
            "invalid_grammar",
            "monitors[0].pattern",
        ),
        (
            json!({"monitors": [regex("x.*")], "law": "global"}),
            "invalid_value",
            "monitors",
        ),
        (
            json!({"monitors": [regex("x.*")], "law": "asap"}),
            "invalid_value",
            "monitors",
        ),
        (
            json!({"monitors": [regex("x.*")], "law": "mcmc"}),
            "invalid_value",
            "monitors",
        ),
        (
            json!({"monitors": [regex("x.*")], "law": "aprad"}),
            "invalid_value",
            "monitors",
        ),
        (
            json!({"monitors": [regex("x.*")], "law": "smc", "proposal": "twisted"}),
            "invalid_value",
            "monitors",
        ),
        (
            json!({"monitors": [regex("x.*")], "use_beam_search": true}),
            "invalid_value",
            "monitors",
        ),
        (
            json!({"monitors": [regex("x.*")], "mirostat_mode": 2}),
            "invalid_value",
            "mirostat_mode",
        ),
        (
            json!({"monitors": [regex("x.*")], "response_format": null}),
            "invalid_value",
            "monitors",
        ),
    ] {
        let answer = ask(&service, more.clone());
        let error = answer.json()["error"].clone();
        assert_eq!(answer.status, 400, "{more}: {error}");
        assert_eq!(error["param"], param, "{more}: {error}");
        assert!(error["code"] == code || code == "invalid_type", "{more}: {error}");
    }
    assert_eq!(ask(&service, json!({"monitors": null})).status, 200);
    assert_eq!(ask(&service, json!({"monitors": []})).status, 200);
}

/// A monitor is about the content: a thought before it is free, and a call in its place is not monitored.
#[test]
fn thoughts_and_calls_are_not_monitored() {
    let thinking = Service::of_model(roomy(), 1 << 20, TEMPLATE, &["<think>", "</think>"]);
    let schema = json!({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"],
                        "additionalProperties": false});
    let more = |age: &str| {
        json!({"response_format": {"type": "json_schema", "json_schema": {"name": "person", "schema": schema}},
               "monitors": [regex(&format!("\\{{\"age\":{age}\\}}"))]})
    };
    for (age, written) in [("3[0-9]", "36"), ("35", "35")] {
        let text = "echo <think>an {object}?</think>\n\n{\"age\":36}";
        let answer = thinking.chat(text, more(age));
        assert_eq!(contents(&answer), [format!("{{\"age\":{written}}}")]);
        assert_eq!(
            answer.json()["choices"][0]["message"]["reasoning"],
            "an {object}?"
        );
    }
    let service = Service::start();
    let tool = json!({"type": "function", "function": {"name": "mk", "parameters": schema}});
    let call = "echo <tool_call>\n{\"name\": \"mk\", \"arguments\": {\"age\":36}}\n</tool_call>";
    let mut body = more("35");
    body["tools"] = json!([tool]);
    let answer = service.chat(call, body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let message = &answer.json()["choices"][0]["message"];
    assert_eq!(
        message["tool_calls"][0]["function"]["arguments"], "{\"age\":36}",
        "{message}"
    );
}
