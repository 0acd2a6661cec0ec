//! What API keys allow: their time, and the models, constraints, laws and searches of requests.

use lexiform_server::operate::keys::{Keys, hashed};
use lexiform_server::routes::state::Settings;
use serde_json::{Value, json};

use super::service::{Answer, Service, chat, roomy, unhurried};

/// A service with one key, `s3cret`, of these rights.
fn keyed(rights: &str) -> Service {
    let text = format!(
        "[[keys]]\nname = \"shop\"\nsha256 = \"{}\"\n{rights}",
        hashed("s3cret")
    );
    let settings = Settings {
        keys: Keys::parse(&text).expect("a file of keys"),
        ..Settings::default()
    };
    Service::operated(roomy(), settings, unhurried())
}

fn post(service: &Service, path: &str, body: &Value) -> Answer {
    let head =
        format!("POST {path} HTTP/1.1\r\ncontent-type: application/json\r\nauthorization: Bearer s3cret");
    service.exchange(&head, body.to_string().as_bytes())
}

fn ask(service: &Service, more: Value) -> Answer {
    post(service, "/v1/chat/completions", &chat("echo x", more))
}

/// The answer is a refusal that names the field, what is not allowed, and what is.
fn is_refused(answer: &Answer, field: &str, words: &[&str]) {
    let told = answer.text();
    assert_eq!(
        (answer.status, answer.error_code().as_str()),
        (403, "not_permitted"),
        "{told}"
    );
    let error = answer.json()["error"].clone();
    assert_eq!(error["param"], field, "{told}");
    let message = error["message"].as_str().unwrap_or_default();
    assert!(words.iter().all(|word| message.contains(word)), "{message}");
}

#[test]
fn a_key_uses_the_laws_and_searches_that_it_is_given() {
    let service = keyed("laws = [\"local\", \"global\"]\nsearches = []");
    assert_eq!(ask(&service, json!({"guided_regex": "x"})).status, 200);
    let global = json!({"guided_regex": "x", "law": "global", "temperature": 1});
    assert_eq!(ask(&service, global).status, 200);
    let mcmc = ask(
        &service,
        json!({"guided_regex": "x", "law": "mcmc", "temperature": 1}),
    );
    is_refused(&mcmc, "law", &["'mcmc'", "local, global"]);
    let beam = ask(
        &service,
        json!({"guided_regex": "x", "search": {"kind": "beam", "width": 2}}),
    );
    is_refused(&beam, "search", &["'beam'", "none"]);
    let flat = ask(
        &service,
        json!({"guided_regex": "x", "use_beam_search": true, "beam_width": 2}),
    );
    is_refused(&flat, "use_beam_search", &["'beam'"]);
}

#[test]
fn a_key_uses_the_constraints_that_it_is_given_on_every_route() {
    let service = keyed("constraints = [\"json_schema\"]");
    assert_eq!(ask(&service, json!({"guided_json": {"const": 1}})).status, 200);
    assert_eq!(ask(&service, json!({})).status, 200);
    let regex = json!({"model": "m", "guided_regex": "x"});
    is_refused(
        &ask(&service, regex.clone()),
        "guided_regex",
        &["'regex'", "json_schema"],
    );
    for route in ["", "/lint", "/check", "/mask", "/explain"] {
        let mut body = regex.clone();
        if route == "/check" {
            body["texts"] = json!(["x"]);
        }
        let answer = post(&service, &format!("/v1/grammars{route}"), &body);
        is_refused(&answer, "guided_regex", &["'regex'"]);
    }
    let tools = json!([{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]);
    is_refused(&ask(&service, json!({"tools": tools})), "tools", &["'tools'"]);
}

#[test]
fn a_key_uses_the_models_that_it_is_given() {
    assert_eq!(ask(&keyed("models = [\"m\"]"), json!({})).status, 200);
    let service = keyed("models = [\"large\"]");
    is_refused(&ask(&service, json!({})), "model", &["'m'", "large"]);
    let questions = json!([{"type": "predicate", "instructions": "yes?"}]);
    let decisions = json!({"model": "m", "input": "echo x", "questions": questions});
    is_refused(&post(&service, "/v1/decisions", &decisions), "model", &["'m'"]);
}

/// Guards against clients that pick a model from the list and are then refused.
#[test]
fn a_key_is_shown_the_models_that_it_may_use() {
    let get = |rights: &str, path: &str| {
        let head = format!("GET {path} HTTP/1.1\r\nauthorization: Bearer s3cret");
        keyed(rights).exchange(&head, b"")
    };
    let listed = |rights| get(rights, "/v1/models").json()["data"].as_array().map(Vec::len);
    assert_eq!(
        (
            listed(""),
            listed("models = [\"m\"]"),
            listed("models = [\"large\"]")
        ),
        (Some(1), Some(1), Some(0))
    );
    assert_eq!(get("models = [\"m\"]", "/v1/models/m").status, 200);
    let hidden = get("models = [\"large\"]", "/v1/models/m");
    assert_eq!(
        (hidden.status, hidden.error_code().as_str()),
        (404, "model_not_found")
    );
}

#[test]
fn a_key_that_has_expired_is_told_so() {
    let answer = ask(&keyed("expires = 2020-01-01"), json!({}));
    assert_eq!(
        (answer.status, answer.error_code().as_str()),
        (401, "expired_api_key")
    );
    assert_eq!(
        ask(&keyed("expires = \"9999-01-01T00:00:00Z\""), json!({})).status,
        200
    );
}
