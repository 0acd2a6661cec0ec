//! What a request may say about the global law, and what its answers tell of themselves.

use serde_json::{Value, json};

use super::service::{Answer, Service};

/// Asks for `xb` or `xc` of a model that wants to write `x` and end: an attempt that knows nothing fails, and the next one
/// knows.
fn ask(service: &Service, more: Value) -> Answer {
    let mut body = json!({"guided_regex": "x[bc]", "law": "global", "temperature": 1, "seed": 5});
    if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
        body.extend(more);
    }
    service.chat("echo x", body)
}

fn sample(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let content = answer.json()["choices"][0]["message"]["content"].clone();
    assert!(content == "xb" || content == "xc", "{content}");
    answer.json()["choices"][0]["lexiform"].clone()
}

#[test]
fn a_request_says_what_becomes_of_an_answer_whose_attempts_run_out() {
    let service = Service::start();
    for more in [
        json!({"max_attempts": 1}),
        json!({"max_attempts": 1, "on_exhaustion": "error"}),
    ] {
        let answer = ask(&service, more);
        assert_eq!(
            (answer.status, answer.error_code().as_str()),
            (422, "attempts_exhausted")
        );
    }
    let weighted = sample(&ask(
        &service,
        json!({"max_attempts": 1, "on_exhaustion": "weighted"}),
    ));
    assert_eq!(
        (&weighted["law"], &weighted["attempts"]),
        (&json!("global-weighted"), &json!(2))
    );
    let weight = weighted["log_weight"].as_f64().expect("a weight");
    assert!(weight < -10.0, "{weight}: what it stands for is rare");
    let exact = sample(&ask(
        &service,
        json!({"max_attempts": 2, "on_exhaustion": "weighted"}),
    ));
    assert_eq!(
        (&exact["law"], &exact["log_weight"], &exact["attempts"]),
        (&json!("global-exact"), &json!(0.0), &json!(2))
    );
}

#[test]
fn requests_learn_from_each_other_if_they_ask_for_it() {
    let service = Service::start();
    let attempts = |more: Value| sample(&ask(&service, more))["attempts"].clone();
    let shared = json!({"share_attempts": true});
    assert_eq!(attempts(shared.clone()), 2);
    assert_eq!(attempts(shared), 1);
    assert_eq!(attempts(json!({})), 2);
}

#[test]
fn what_is_no_number_of_attempts_and_what_is_not_about_this_law_is_refused() {
    let service = Service::start();
    for (name, value, law) in [
        ("max_attempts", json!(0), "global"),
        ("max_attempts", json!(1_001), "global"),
        ("max_attempts", json!("many"), "global"),
        ("on_exhaustion", json!("local"), "global"),
        ("share_attempts", json!(1), "global"),
        ("max_attempts", json!(5), "local"),
        ("on_exhaustion", json!("weighted"), "local"),
        ("share_attempts", json!(true), "local"),
    ] {
        let answer = ask(&service, json!({name: value, "law": law}));
        assert_eq!(
            (answer.status, answer.json()["error"]["param"].clone()),
            (400, json!(name)),
            "{name} {value} {law}"
        );
    }
    let nothing =
        json!({"law": "local", "max_attempts": null, "on_exhaustion": null, "share_attempts": null});
    assert_eq!(ask(&service, nothing).status, 200);
}
