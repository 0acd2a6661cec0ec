//! What answers say of the model behind them: how its weights are kept, and whether a text may depend on
//! other requests.

use lexiform_engine::{ScriptedModel, WeightFormat};
use lexiform_server::model::served::ServedModel;
use lexiform_server::model::text::{Defaults, ModelText};
use lexiform_server::routes::state::Settings;
use serde_json::{Value, json};

use crate::service::{Service, roomy};
use crate::tokenizer::{IM_END, TEMPLATE, TOKENS, tokenizer_json_with};

/// A service of a model to which all tokens are alike, with weights that are said to be kept so.
fn service(weights: WeightFormat) -> Service {
    let config = json!({"chat_template": TEMPLATE, "eos_token": "<|im_end|>"});
    let tokenizer = tokenizer_json_with(&[]);
    let text = ModelText::new(tokenizer.as_bytes(), &config, None, Defaults::default()).expect("a tokenizer");
    let model = ScriptedModel::new(TOKENS, 1 << 12, |_| vec![0.0; TOKENS]);
    let served = ServedModel::start("m".to_owned(), Box::new(model), None, text, &[IM_END], roomy());
    let served = served.expect("the engine starts").with_weights(weights, 0);
    Service::of_served(served, Settings::default())
}

/// One request to each route that has a model answer.
fn asked() -> [(&'static str, Value); 5] {
    let chat = json!({"model": "m", "messages": [{"role": "user", "content": "x"}], "max_tokens": 3});
    let mut stream = chat.clone();
    stream["stream"] = json!(true);
    let question = json!({"type": "predicate", "instructions": "q"});
    [
        ("/v1/chat/completions", chat),
        ("/v1/chat/completions", stream),
        (
            "/v1/completions",
            json!({"model": "m", "prompt": "x", "max_tokens": 3}),
        ),
        (
            "/v1/responses",
            json!({"model": "m", "input": "x", "max_output_tokens": 3}),
        ),
        (
            "/v1/decisions",
            json!({"model": "m", "input": "x", "questions": [question]}),
        ),
    ]
}

#[test]
fn rounded_weights_are_named_wherever_the_model_is() {
    for format in [WeightFormat::Int8, WeightFormat::Fp8] {
        are_named(format);
    }
}

fn are_named(format: WeightFormat) {
    let service = service(format);
    assert_eq!(
        service.get("/v1/models").json()["data"][0]["weights"],
        json!(format.name())
    );
    for (path, body) in asked() {
        let answer = service.post(path, &body.to_string());
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        let told = answer.text();
        assert!(
            told.contains(&format!(r#""weights":"{format}""#)),
            "{path}: {told}"
        );
        let version = env!("CARGO_PKG_VERSION");
        let fingerprint = format!(r#""system_fingerprint":"lexiform-{version}-{format}""#);
        let tells = told.contains("system_fingerprint");
        assert_eq!(told.contains(&fingerprint), tells, "{path}: {told}");
        assert_eq!(tells, path.ends_with("completions"), "{path}");
    }
}

#[test]
fn weights_as_they_are_stored_are_named_by_the_model_alone() {
    let service = service(WeightFormat::Stored);
    assert_eq!(
        service.get("/v1/models").json()["data"][0]["weights"],
        json!("stored")
    );
    for (path, body) in asked() {
        let answer = service.post(path, &body.to_string());
        assert!(
            !answer.text().contains(r#""weights":"#),
            "{path}: {}",
            answer.text()
        );
    }
}

#[test]
fn what_depends_on_other_requests_is_refused_where_it_must_not() {
    let service = service(WeightFormat::Stored);
    assert_eq!(
        service.get("/v1/models").json()["data"][0]["batch_invariant"],
        json!(true)
    );
    let asked = |more: Value| {
        let mut body = json!({"batch_invariant": true, "guided_regex": "[ab]{4}", "seed": 7});
        body.as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("an object").clone());
        service.chat("x", body)
    };
    for taken in [
        json!({}),
        json!({"n": 3}),
        json!({"law": "global"}),
        json!({"law": "global", "n": 2}),
        json!({"law": "asap"}),
        json!({"law": "smc", "batch_invariant": false}),
    ] {
        let answer = asked(taken.clone());
        assert_eq!(answer.status, 200, "{taken}: {}", answer.text());
    }
    for (refused, because) in [
        (json!({"law": "smc"}), "drawn one by one"),
        (json!({"search": {"kind": "beam"}}), "drawn one by one"),
        (json!({"law": "global", "share_attempts": true}), "share_attempts"),
    ] {
        let answer = asked(refused.clone());
        assert_eq!(
            (answer.status, answer.error_code().as_str()),
            (400, "unsupported_parameter"),
            "{refused}: {}",
            answer.text()
        );
        let error = &answer.json()["error"];
        assert_eq!(error["param"], json!("batch_invariant"), "{refused}");
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.contains(because), "{refused}: {message}");
    }
}
