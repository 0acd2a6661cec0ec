//! The fields `contrast` and `bregman_lambda`: what they change, what the answer says of them, and what is
//! refused.

use lexiform_engine::EngineConfig;
use serde_json::{Value, json};

use super::service::{Answer, Service, roomy};

fn user(content: &str) -> Value {
    json!([{"role": "user", "content": content}])
}

/// A chat about `echo abab`, drawn from its constraint.
fn ask(service: &Service, more: Value) -> Answer {
    let mut wish = json!({"guided_regex": "[ab]{4}", "temperature": 1, "seed": 3, "weights": true});
    let more = more.as_object().expect("fields").clone();
    wish.as_object_mut().expect("fields").extend(more);
    service.chat("echo abab", wish)
}

fn sample(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["choices"][0]["lexiform"].clone()
}

fn log_probability(answer: &Answer) -> f64 {
    sample(answer)["log_probability"].as_f64().expect("a number")
}

#[test]
fn a_contrast_with_the_same_prompt_changes_nothing() {
    let service = Service::start();
    let plain = ask(&service, json!({}));
    let contrast = json!({"messages": user("echo abab"), "beta": 2, "alpha": 0});
    let same = ask(&service, json!({ "contrast": contrast }));
    assert_eq!(
        plain.json()["choices"][0]["message"],
        same.json()["choices"][0]["message"]
    );
    assert!((log_probability(&plain) - log_probability(&same)).abs() < 1e-4);
    let tokens = |answer: &Answer| answer.json()["usage"]["total_tokens"].clone();
    assert_eq!(tokens(&plain), tokens(&same));
    let weight = |answer: &Answer| sample(answer)["log_weight"].as_f64().expect("a weight");
    assert!((weight(&plain) - weight(&same)).abs() < 1e-4);
}

#[test]
fn a_contrast_moves_the_law_and_says_so() {
    let service = Service::start();
    let plain = ask(&service, json!({}));
    assert!(log_probability(&plain) > -0.1);
    // Two of the four letters are as likely as others where the two prompts are averaged.
    let averaged = json!({"messages": user("echo aaaa"), "beta": -0.5, "alpha": 0});
    let averaged = ask(&service, json!({ "contrast": averaged }));
    let halves = log_probability(&averaged) / 0.5_f64.ln();
    assert!((halves - 2.0).abs() < 0.1, "{halves}");
    assert_eq!(sample(&averaged)["law"], "local");
    let contrast = json!({"messages": user("echo b")});
    let told = sample(&ask(&service, json!({ "contrast": contrast })));
    assert_eq!(told["law"], "local-filtered", "alpha cuts");
    assert_eq!(
        (&told["contrast"]["beta"], &told["log_weight"]),
        (&json!(0.5), &Value::Null)
    );
    assert!(
        told["contrast"]["alpha"]
            .as_f64()
            .is_some_and(|alpha| (alpha - 0.1).abs() < 1e-6)
    );
    assert!(
        told["contrast"]["prompt_tokens"]
            .as_u64()
            .is_some_and(|tokens| tokens > 3)
    );
    assert_eq!(sample(&plain)["contrast"], Value::Null);
    // Laws about the model are about the combined one.
    for law in ["global", "smc", "asap", "mcmc"] {
        let contrast = json!({"messages": user("echo b")});
        let told = sample(&ask(&service, json!({"law": law, "contrast": contrast})));
        assert_eq!(told["contrast"]["alpha"], json!(0.0), "{law}");
    }
}

#[test]
fn completions_are_contrasted_with_prompts_and_responses_with_messages() {
    let service = Service::start();
    let complete = |contrast: Value| {
        let body = json!({
            "model": "m", "prompt": "echo a", "max_tokens": 8, "guided_regex": "[ab]{4}",
            "contrast": contrast,
        });
        service.post("/v1/completions", &body.to_string())
    };
    assert!(sample(&complete(json!({"prompt": "echo b"})))["contrast"].is_object());
    assert!(sample(&complete(json!({"prompt": [1, 2, 3]})))["contrast"].is_object());
    let param = |answer: &Answer| (answer.status, answer.json()["error"]["param"].clone());
    assert_eq!(
        param(&complete(json!({"messages": user("b")}))),
        (400, json!("contrast.prompt")),
        "it lacks a prompt"
    );
    let body = json!({"model": "m", "input": "echo a", "contrast": {"prompt": "b"}});
    let answer = service.post("/v1/responses", &body.to_string());
    assert_eq!(
        param(&answer),
        (400, json!("contrast.messages")),
        "it lacks messages"
    );
    let body = json!({"model": "m", "input": "echo a", "contrast": {"messages": user("b")}});
    assert_eq!(service.post("/v1/responses", &body.to_string()).status, 200);
}

/// Of a service with a draft model that echoes as the model does, the rows of both are alike.
#[test]
fn a_draft_model_is_contrasted_with_where_there_is_one() {
    let without = Service::start();
    let contrast = json!({"model": "draft", "beta": 2, "alpha": 0});
    let refused = ask(&without, json!({ "contrast": contrast }));
    assert_eq!(
        (refused.status, &refused.json()["error"]["param"]),
        (400, &json!("contrast.model"))
    );
    for wrong in [
        json!({"model": "amateur"}),
        json!({"model": "draft", "prompt": "b"}),
    ] {
        let answer = ask(&without, json!({ "contrast": wrong }));
        assert_eq!(answer.status, 400, "{}", answer.text());
    }
    let service = Service::with_draft_model();
    let plain = ask(&service, json!({"draft": false}));
    let same = ask(&service, json!({ "contrast": contrast }));
    assert_eq!(
        plain.json()["choices"][0]["message"],
        same.json()["choices"][0]["message"]
    );
    let told = &sample(&same)["contrast"];
    assert_eq!(told, &json!({"beta": 2.0, "alpha": 0.0, "model": "draft"}));
}

#[test]
fn what_is_wrong_with_a_contrast_is_named() {
    let config = EngineConfig {
        blocks: 64,
        ..roomy()
    };
    let service = Service::with(config, 1 << 20);
    let refused = |contrast: Value| {
        let answer = ask(&service, json!({ "contrast": contrast }));
        assert_eq!(answer.status, 400, "{}", answer.text());
        answer.json()["error"]["param"].clone()
    };
    assert_eq!(refused(json!({})), "contrast.messages");
    assert_eq!(
        refused(json!({"messages": user("b"), "prompt": "b"})),
        "contrast.prompt"
    );
    assert_eq!(refused(json!({"messages": []})), "contrast.messages");
    assert_eq!(
        refused(json!({"messages": [{"role": "user"}]})),
        "contrast.messages[0].content"
    );
    assert_eq!(
        refused(json!({"messages": user("b"), "beta": -1})),
        "contrast.beta"
    );
    assert_eq!(
        refused(json!({"messages": user("b"), "alpha": 2})),
        "contrast.alpha"
    );
    assert_eq!(
        refused(json!({"messages": user("b"), "gamma": 2})),
        "contrast.gamma"
    );
    let long = "b ".repeat(2_000);
    assert_eq!(refused(json!({"messages": user(&long)})), "contrast.messages");
}

#[test]
fn bregman_top_k_is_a_filter_like_the_others() {
    let service = Service::start();
    let told = |more: Value| sample(&ask(&service, more));
    assert_eq!(told(json!({"bregman_lambda": 0.1}))["law"], "local-filtered");
    assert_eq!(told(json!({"bregman_lambda": 0}))["law"], "local");
    // A token costs more than any of them is worth: the likeliest one is left.
    let greedy = ask(&service, json!({"temperature": 0}));
    let dear = ask(&service, json!({"bregman_lambda": 50}));
    let text = |answer: &Answer| answer.json()["choices"][0]["message"]["content"].clone();
    assert_eq!(text(&greedy), text(&dear));
    let answer = ask(&service, json!({"bregman_lambda": -1}));
    assert_eq!(
        (answer.status, &answer.json()["error"]["param"]),
        (400, &json!("bregman_lambda"))
    );
}

/// Guards against probabilities of values that are those of the model without the contrast: averaged, the two
/// prompts leave both values as likely.
#[test]
fn the_probabilities_of_values_are_those_of_the_combined_model() {
    let service = Service::start();
    let share = |contrast: Value| {
        let wish = json!({
            "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"enum": ["a", "b"]}}},
            "enum_scores": true, "temperature": 1, "seed": 3, "contrast": contrast,
        });
        let answer = service.chat("echo \"a\"", wish);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let told = answer.json()["choices"][0]["lexiform"].clone();
        let options = find(&told, "options").unwrap_or_else(|| panic!("{told}"));
        options[0]["probability"].as_f64().expect("a number")
    };
    assert!(share(Value::Null) > 0.9);
    let averaged = json!({"messages": user("echo \"b\""), "beta": -0.5, "alpha": 0});
    let half = share(averaged);
    assert!((half - 0.5).abs() < 0.05, "{half}");
}

/// Returns the first field of this name, wherever it is.
fn find<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    match value {
        Value::Object(map) => map
            .get(name)
            .or_else(|| map.values().find_map(|value| find(value, name))),
        Value::Array(items) => items.iter().find_map(|value| find(value, name)),
        _ => None,
    }
}
