//! Grammars as things of their own: registered, linted, checked, explained, and asked what may come next; and
//! what an answer under one tells.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::service::Service;
use super::tokenizer::tokenizer_json_with;

fn person() -> Value {
    json!({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"],
           "additionalProperties": false})
}

fn ask(service: &Service, path: &str, body: &Value) -> Value {
    let answer = service.post(path, &body.to_string());
    assert_eq!(answer.status, 200, "{path} {body}: {}", answer.text());
    answer.json()
}

/// Guards against the price of a compile in the first request (B2), and against texts that leave the server
/// (K1).
#[test]
fn a_grammar_is_registered_once_and_used_by_its_identity() {
    let service = Service::start();
    let made = ask(&service, "/v1/grammars", &json!({"guided_json": person()}));
    let id = made["id"].as_str().expect("an identity");
    assert!(id.starts_with("gr_") && made["enforced"] == "exact", "{made}");
    let again = ask(
        &service,
        "/v1/grammars",
        &json!({"response_format": {"type": "json_schema",
        "json_schema": {"name": "other", "schema": person()}}}),
    );
    assert_eq!(again["id"], made["id"]);
    assert_eq!(service.get(&format!("/v1/grammars/{id}")).json()["id"], id);
    let answer = service.chat("echo never", json!({"grammar_id": id}));
    assert_eq!(answer.header("x-lexiform-enforced"), Some("exact"));
    let body = answer.json();
    assert_eq!(body["lexiform"]["grammar"], id);
    let value: Value =
        serde_json::from_str(body["choices"][0]["message"]["content"].as_str().expect("text")).expect("JSON");
    assert!(value["age"].is_number());
    for (more, status) in [
        (json!({"grammar_id": "gr_none"}), 404),
        (json!({"grammar_id": id, "guided_regex": "a"}), 400),
    ] {
        let refused = service.chat("echo x", more);
        assert_eq!(refused.status, status, "{}", refused.text());
        refused.error_code();
    }
    let metrics = service.get("/metrics");
    assert!(
        metrics
            .text()
            .contains("lexiform_grammar_cache_misses_total{model_name=\"m\",engine=\"0\"} 1")
    );
}

#[test]
fn lint_tells_of_errors_and_of_what_has_no_effect() {
    let service = Service::start();
    let lint = |constraint: Value| ask(&service, "/v1/grammars/lint", &constraint);
    let good = lint(json!({"guided_json": person()}));
    assert_eq!(
        (&good["valid"], &good["enforced"], &good["satisfiable"]),
        (&json!(true), &json!("exact"), &json!(true))
    );
    let unknown = lint(json!({"guided_json": {"type": "string", "format": "shoe-size"}}));
    assert_eq!(
        (&unknown["valid"], &unknown["enforced"]),
        (&json!(true), &json!("partial"))
    );
    assert_eq!(unknown["diagnostics"][0]["severity"], "warning");
    // What is only narrower has its effect, and more than that.
    let narrower = lint(json!({"guided_json": {"type": "string", "format": "hostname"}}));
    assert_eq!(
        (
            &narrower["valid"],
            &narrower["enforced"],
            &narrower["diagnostics"][0]["kind"]
        ),
        (&json!(true), &json!("narrower"), &json!("narrowed"))
    );
    let answer = service.chat(
        "echo x",
        json!({"guided_json": {"format": "hostname", "type": "string"}}),
    );
    assert_eq!(answer.header("x-lexiform-enforced"), Some("narrower"));
    let broken = lint(json!({"guided_json": {"properties": {"a": {"type": "text"}}}}));
    assert_eq!(broken["valid"], false);
    assert!(
        broken["diagnostics"][0]["path"]
            .as_str()
            .is_some_and(|path| path.starts_with("/properties/a"))
    );
    let empty = lint(json!({"guided_json": {"type": "string", "minLength": 2, "maxLength": 1}}));
    assert_eq!(
        (&empty["valid"], &empty["satisfiable"]),
        (&json!(false), &json!(false))
    );
}

#[test]
fn texts_are_checked_to_the_byte() {
    let service = Service::start();
    let body = json!({"guided_regex": "[a-c]+é?", "texts": ["abc", "", "abx", "aé"], "text": "a\u{c4}"});
    let results = ask(&service, "/v1/grammars/check", &body)["results"].clone();
    let valid: Vec<bool> = results
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| one["valid"] == true)
        .collect();
    assert_eq!(valid, [true, false, false, true, false]);
    assert_eq!(
        (&results[1]["at"], &results[1]["expected"]),
        (&json!(0), &json!(["a-c"]))
    );
    assert_eq!(results[2]["at"], 2);
    // The first byte of Ä could begin é; the second does not.
    assert_eq!(results[4]["at"], 2);
}

#[test]
fn a_mask_says_what_may_come_behind_a_beginning() {
    let service = Service::start();
    let mask = |prefix: &str| {
        ask(
            &service,
            "/v1/grammars/mask",
            &json!({"guided_json": person(), "whitespace": "compact", "prefix": prefix}),
        )
    };
    let start = mask("");
    assert_eq!(
        (&start["forced"], &start["allowed"]),
        (&json!("{\"age\":"), &json!(1))
    );
    assert_eq!(start["tokens"][0]["text"], "{");
    let digits = mask("{\"age\":");
    assert_eq!(
        (&digits["bytes"], &digits["complete"]),
        (&json!(["-", "0-9"]), &json!(false))
    );
    let way = &digits["ways"][0];
    assert_eq!((&way["expected"], &way["begun"]), (&json!("word"), &json!(false)));
    assert_eq!((&way["text"], &way["rules"]), (&json!("0"), &json!(["#"])));
    let end = mask("{\"age\":1}");
    assert_eq!((&end["complete"], &end["tokens"]), (&json!(true), &json!([])));
    let wrong = mask("{\"name");
    assert_eq!((&wrong["possible"], &wrong["at"]), (&json!(false), &json!(2)));
}

#[test]
fn an_explanation_has_an_example() {
    let service = Service::start();
    let told = ask(
        &service,
        "/v1/grammars/explain",
        &json!({"guided_json": person(), "whitespace": "compact"}),
    );
    let shortest: Value = serde_json::from_str(told["shortest"].as_str().expect("a text")).expect("JSON");
    assert!(shortest["age"].is_number());
    assert_eq!(
        (&told["begins_with"], &told["may_be_empty"]),
        (&json!("{\"age\":"), &json!(false))
    );
    assert!(
        told["sketch"]
            .as_str()
            .is_some_and(|sketch| sketch.contains("age"))
    );
    let told = ask(
        &service,
        "/v1/grammars/explain",
        &json!({"ebnf": "root ::= \"(\" root \")\" | \"x\""}),
    );
    assert_eq!(told["shortest"], "x");
    // The only text is longer than the search goes, but all of it is forced.
    let told = ask(
        &service,
        "/v1/grammars/explain",
        &json!({"guided_regex": "a{5000}"}),
    );
    assert_eq!(told["shortest"].as_str().map(str::len), Some(5000));
}

/// Guards against keywords that are dropped without a word (D1).
#[test]
fn an_explanation_tells_of_every_assertion_how_it_is_enforced() {
    let service = Service::start();
    let schema = json!({"type": "object", "properties": {"at": {"type": "string", "format": "hostname"}, "n": {"minimum": 3}}});
    let told = ask(&service, "/v1/grammars/explain", &json!({"guided_json": schema}));
    let status = |path: &str| {
        let mut all = told["assertions"].as_array().expect("assertions").iter();
        let found = all.find(|one| one["path"] == path);
        found.unwrap_or_else(|| panic!("{path} is not in {told}")).clone()
    };
    for path in ["/type", "/properties/at/type"] {
        assert_eq!(
            (&status(path)["status"], &status(path)["how"]),
            (&json!("exact"), &Value::Null)
        );
    }
    // All values, but not in every spelling.
    let minimum = status("/properties/n/minimum");
    assert_eq!(minimum["status"], "exact");
    assert!(
        minimum["how"]
            .as_str()
            .is_some_and(|how| how.contains("exponent"))
    );
    let format = status("/properties/at/format");
    assert_eq!(
        (&format["status"], &format["keyword"]),
        (&json!("narrower"), &json!("format"))
    );
    assert!(format["how"].as_str().is_some_and(|how| !how.is_empty()));
    let regex = ask(&service, "/v1/grammars/explain", &json!({"guided_regex": "a"}));
    assert!(regex["assertions"].is_null());
}

/// Guards against answers that claim more than they hold: each is read again by a program that is not ours.
#[test]
fn an_answer_is_certified_by_another_reader() {
    let service = Service::start();
    let digest = Sha256::digest(tokenizer_json_with(&[]));
    let tokenizer: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let cases = [
        (json!({"guided_json": person()}), "jsonschema"),
        (json!({"guided_regex": "[a-c]{4}"}), "regex"),
        (json!({"ebnf": "root ::= \"x\" [0-9]"}), "lexiform"),
    ];
    for (mut more, by) in cases {
        more["certificate"] = json!(true);
        let whole = service.chat("echo {\"age\":36}", more.clone()).json();
        let certificate = whole["choices"][0]["lexiform"]["certificates"][0].clone();
        assert_eq!(
            (&certificate["valid"], &certificate["verified_by"]),
            (&json!(true), &json!(by)),
            "{whole}"
        );
        assert_eq!(certificate["grammar"], whole["lexiform"]["grammar"]);
        assert_eq!(certificate["tokenizer_sha256"], tokenizer);
        more["stream"] = json!(true);
        let events = service.chat("echo {\"age\":36}", more).events();
        let last = events
            .iter()
            .find(|event| event["choices"][0]["finish_reason"].is_string());
        let streamed = last.map(|event| event["choices"][0]["lexiform"]["certificates"][0].clone());
        assert_eq!(streamed, Some(certificate));
    }
    let tool = json!({"type": "function", "function": {"name": "mk", "parameters": person()}});
    let whole = service
        .chat(
            "echo {\"age\":36}",
            json!({"tools": [tool], "tool_choice": "required", "certificate": true}),
        )
        .json();
    assert_eq!(
        whole["choices"][0]["lexiform"]["certificates"][0]["verified_by"],
        "jsonschema"
    );
    let body = json!({"model": "m", "input": "echo {\"age\":1}", "certificate": true,
        "text": {"format": {"type": "json_schema", "name": "P", "schema": person()}}});
    let response = ask(&service, "/v1/responses", &body);
    assert_eq!(response["lexiform"]["certificates"][0]["valid"], true);
    assert!(
        service
            .get("/metrics")
            .text()
            .contains("lexiform_invalid_output_total{model_name=\"m\",engine=\"0\"} 0")
    );
}

/// Guards against certificates that nobody can check: each is confirmed for its text, and for no other.
#[test]
fn a_certificate_can_be_checked_again() {
    let service = Service::start();
    let constraint = json!({"guided_json": person(), "certificate": true});
    let whole = service.chat("echo {\"age\":36}", constraint).json();
    let choice = &whole["choices"][0];
    let (text, certificate) = (
        &choice["message"]["content"],
        &choice["lexiform"]["certificates"][0],
    );
    let verify = |text: &Value, certificate: Value| {
        let body = json!({"guided_json": person(), "text": text, "certificate": certificate});
        ask(&service, "/v1/verify", &body)["results"][0].take()
    };
    let fresh = verify(text, certificate.clone());
    assert_eq!(
        (&fresh["confirms"], &fresh["same_grammar"]),
        (&json!(true), &json!(true)),
        "{fresh}"
    );
    assert_eq!(fresh["verified_by"], "jsonschema");
    assert_eq!(fresh["same_tokenizer"], true, "{fresh}");
    let mut foreign = certificate.clone();
    foreign["tokenizer_sha256"] = json!("00");
    assert_eq!(verify(text, foreign)["same_tokenizer"], false);
    let other = verify(&json!("{\"age\":37}"), certificate.clone());
    assert_eq!(
        (&other["valid"], &other["confirms"]),
        (&json!(true), &json!(false)),
        "{other}"
    );
    let wrong = verify(&json!("{\"age\":\"36\"}"), certificate.clone());
    assert_eq!(
        (&wrong["valid"], &wrong["confirms"]),
        (&json!(false), &json!(false)),
        "{wrong}"
    );
    let mut forged = certificate.clone();
    forged["output_sha256"] = wrong["output_sha256"].clone();
    assert_eq!(verify(&json!("{\"age\":\"36\"}"), forged)["confirms"], false);
    let several = json!({"guided_regex": "a+", "texts": ["aa", "b"]});
    let results = ask(&service, "/v1/verify", &several)["results"].take();
    let valid: Vec<&Value> = results
        .as_array()
        .expect("results")
        .iter()
        .map(|result| &result["valid"])
        .collect();
    assert_eq!(valid, [&json!(true), &json!(false)]);
    assert!(results[0]["confirms"].is_null());
    for (more, param) in [
        (json!({"texts": ["a", "b"], "certificate": certificate}), "text"),
        (
            json!({"text": "a", "certificate": {"valid": true}}),
            "certificate",
        ),
        (json!({"text": "a", "certificate": 3}), "certificate"),
    ] {
        let mut body = json!({"guided_regex": "a"});
        body.as_object_mut()
            .expect("an object")
            .extend(more.as_object().cloned().expect("an object"));
        let answer = service.post("/v1/verify", &body.to_string());
        assert_eq!(
            (answer.status, answer.error_code().as_str()),
            (400, "invalid_value"),
            "{body}"
        );
        assert_eq!(answer.json()["error"]["param"], param, "{body}");
    }
}

#[test]
fn texts_become_tokens_and_tokens_texts() {
    let service = Service::start();
    let cut = ask(
        &service,
        "/tokenize",
        &json!({"model": "m", "prompt": "aé<|im_end|>"}),
    );
    assert_eq!(cut["count"], cut["tokens"].as_array().map_or(0, Vec::len));
    let tokens = cut["tokens"].as_array().expect("tokens");
    // What a stranger writes is never a control token.
    assert!(
        tokens
            .iter()
            .all(|token| token.as_u64().is_some_and(|token| token < 256)),
        "{cut}"
    );
    let back = ask(&service, "/detokenize", &json!({"tokens": tokens}));
    assert_eq!(back["prompt"], "aé<|im_end|>");
    let chat = ask(
        &service,
        "/tokenize",
        &json!({"model": "m", "messages": [{"role": "user", "content": "a"}]}),
    );
    assert!(
        chat["tokens"]
            .as_array()
            .is_some_and(|tokens| tokens.contains(&json!(257)))
    );
    for (path, body) in [("/tokenize", "{}"), ("/detokenize", r#"{"tokens":["a"]}"#)] {
        let refused = service.post(path, body);
        assert_eq!(
            (refused.status, refused.error_code().as_str()),
            (400, "invalid_value"),
            "{path}"
        );
    }
}
