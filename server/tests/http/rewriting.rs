//! Texts that the model writes anew under a constraint: what it is shown, what it may draft, and what is told
//! of the answer.

use std::sync::{Arc, Mutex};

use lexiform_engine::ScriptedModel;
use lexiform_server::model::served::ServedModel;
use lexiform_server::model::text::{Defaults, ModelText};
use lexiform_server::routes::state::Settings;
use serde_json::{Value, json};

use super::service::{Answer, Service, roomy};
use crate::tokenizer::{IM_END, TEMPLATE, TOKENS, tokenizer_json_with};

const SKETCH: &str = "{\"name\": 'Bob', \"age\": 3";

fn person() -> Value {
    json!({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
           "required": ["name", "age"], "additionalProperties": false})
}

/// The prompts that a model was shown.
type Shown = Arc<Mutex<Vec<String>>>;

/// A model that writes one text, whatever it is asked: what it has written of it stands behind the last line
/// break.
fn service(text: &'static str, template: Option<&str>, context: usize) -> (Service, Shown) {
    let shown = Shown::default();
    let kept = shown.clone();
    let model = ScriptedModel::new(TOKENS, context, move |prefix: &[u32]| {
        let begun = prefix.iter().rposition(|&token| token == u32::from(b'\n'));
        let written = prefix.len() - begun.map_or(0, |at| at + 1);
        if written == 0 {
            let bytes = prefix.iter().map(|&token| u8::try_from(token).unwrap_or(b'|'));
            let prompt = String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned();
            kept.lock().expect("no test panics here").push(prompt);
        }
        let next = text
            .as_bytes()
            .get(written)
            .map_or(IM_END, |&byte| u32::from(byte));
        let mut logits = vec![0.0; TOKENS];
        logits[next as usize] = 12.0;
        logits
    });
    let config = template.map_or(
        json!({}),
        |template| json!({"chat_template": template, "eos_token": "<|im_end|>"}),
    );
    let defaults = Defaults::default();
    let text = ModelText::new(tokenizer_json_with(&[]).as_bytes(), &config, None, defaults);
    let text = text.expect("the tokenizer of the test is valid");
    let served = ServedModel::start("m".to_owned(), Box::new(model), None, text, &[IM_END], roomy());
    let served = served.expect("the engine starts");
    (Service::of_served(served, Settings::default()), shown)
}

fn ask(service: &Service, more: Value) -> Answer {
    let mut body = json!({"model": "m", "guided_json": person(), "text": SKETCH, "rewrite": true});
    let body_of = body.as_object_mut().expect("an object");
    body_of.extend(more.as_object().expect("an object").clone());
    service.post("/v1/repair", &body.to_string())
}

fn rewritten(service: &Service, more: Value) -> Value {
    let answer = ask(service, more);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

/// The sketch after the edits of an answer.
fn edited(answer: &Value) -> String {
    let mut text = SKETCH.to_owned();
    for edit in answer["edits"].as_array().expect("edits").iter().rev() {
        let at = edit["offset"].as_u64().expect("a place") as usize;
        let removed = edit["removed"].as_str().expect("a text");
        assert!(text[at..].starts_with(removed), "{edit}");
        text.replace_range(at..at + removed.len(), edit["inserted"].as_str().expect("a text"));
    }
    text
}

#[test]
fn the_model_writes_the_text_and_the_answer_says_what_it_changed() {
    let (service, shown) = service(r#"{"name": "Robert", "age": 4}"#, Some(TEMPLATE), 1 << 14);
    let answer = ask(&service, json!({}));
    assert_eq!(answer.header("x-lexiform-enforced"), Some("exact"));
    let body = answer.json();
    assert_eq!(body["text"], r#"{"name": "Robert", "age": 4}"#, "{body}");
    assert_eq!(
        (&body["object"], &body["model"], &body["finish_reason"]),
        (&json!("repair"), &json!("m"), &json!("stop"))
    );
    // `'` to `"`, `B` to `R`, `ert` comes, `'` to `"`, `3` to `4`, `}` comes.
    assert_eq!(body["cost"], 1 + 1 + 3 + 1 + 1 + 1, "{body}");
    assert_eq!(edited(&body), r#"{"name": "Robert", "age": 4}"#);
    assert_eq!(body["lexiform"]["law"], "greedy", "{body}");
    assert_eq!(body["lexiform"]["enforced"], "exact");
    let nearest = service.post(
        "/v1/repair",
        &json!({"guided_json": person(), "text": SKETCH}).to_string(),
    );
    let nearest = nearest.json();
    assert_eq!(
        (&nearest["text"], &nearest["cost"]),
        (&json!(r#"{"name": "Bob", "age": 3}"#), &json!(3))
    );
    assert_eq!(body["id"], nearest["id"], "one grammar, whoever repairs");
    assert!(nearest.get("usage").is_none(), "{nearest}");
    let prompts = shown.lock().expect("no test panics here").clone();
    assert_eq!(body["usage"]["prompt_tokens"], prompts[0].len(), "{prompts:?}");
    assert!(
        prompts.iter().all(|prompt| *prompt == prompts[0]),
        "only the rewrite is shown to the model"
    );
    assert!(prompts[0].contains("user\nWrite this text again"), "{prompts:?}");
    assert!(prompts[0].contains(SKETCH), "{prompts:?}");
    assert!(
        prompts[0].contains("|schema\n"),
        "the template has a place for the schema: {prompts:?}"
    );
}

#[test]
fn costs_are_those_that_were_asked_for() {
    let (service, _) = service(r#"{"name": "Bob", "age": 3}"#, Some(TEMPLATE), 1 << 14);
    let costs = json!({"insert": 7, "delete": 100, "substitute": 3});
    let body = rewritten(&service, json!({"costs": costs}));
    assert_eq!(body["cost"], 3 + 3 + 7, "{body}");
}

#[test]
fn the_nearest_text_is_drafted_and_changes_nothing() {
    let (service, _) = service(r#"{"name": "Bob", "age": 3}"#, Some(TEMPLATE), 1 << 14);
    let accepted = |body: &Value| {
        let details = &body["usage"]["completion_tokens_details"];
        details["accepted_prediction_tokens"].as_u64().expect("a count")
    };
    let drafted = rewritten(&service, json!({}));
    let plain = rewritten(&service, json!({"rewrite": {"draft": false}}));
    assert_eq!(drafted["text"], plain["text"]);
    assert_eq!(accepted(&plain), 0, "{plain}");
    assert!(accepted(&drafted) > 5, "{drafted}");
    // Too far away to be found in a moment: the text itself is drafted.
    let far = format!("{}yes", "no ".repeat(700));
    let more = json!({"text": far, "guided_json": null, "guided_regex": "[^n]{2000,}|yes"});
    let body = rewritten(&service, more);
    assert!(body["cost"].as_u64().is_some_and(|cost| cost > 100), "{body}");
}

#[test]
fn laws_and_sampling_are_those_of_other_routes() {
    let (service, shown) = service("xb", Some(TEMPLATE), 1 << 14);
    let regex = |rewrite: Value| json!({"guided_json": null, "guided_regex": "x[bc]", "text": "xx", "rewrite": rewrite});
    let body = rewritten(&service, regex(json!({"law": "global", "seed": 5})));
    assert_eq!(body["lexiform"]["law"], "global-exact", "{body}");
    let body = rewritten(
        &service,
        regex(json!({"law": "smc", "particles": 4, "seed": 5, "temperature": 0.5})),
    );
    assert_eq!(
        (&body["lexiform"]["law"], &body["lexiform"]["particles"]),
        (&json!("smc"), &json!(4))
    );
    let body = rewritten(
        &service,
        regex(json!({"temperature": 1, "seed": 7, "top_k": 40, "weights": true})),
    );
    assert_eq!(body["lexiform"]["law"], "local-filtered", "{body}");
    let words = json!({"instruction": "Names are in capitals.", "schema_in_prompt": "always"});
    rewritten(&service, regex(words));
    let prompts = shown.lock().expect("no test panics here").clone();
    let last = prompts.last().expect("a prompt");
    assert!(last.contains("Names are in capitals.\n\nxx"), "{last}");
    assert!(last.contains("matches this regular expression:\nx[bc]"), "{last}");
}

#[test]
fn a_registered_grammar_is_obeyed_too() {
    let (service, _) = service("xb", Some(TEMPLATE), 1 << 14);
    let made = service.post("/v1/grammars", &json!({"guided_regex": "x[bc]"}).to_string());
    let id = made.json()["id"].clone();
    let body = rewritten(
        &service,
        json!({"guided_json": null, "grammar_id": id, "text": "xx"}),
    );
    assert_eq!((&body["text"], &body["id"]), (&json!("xb"), &id));
}

/// The product of their lengths is beyond the limit: the text is told, and nothing is said that was not
/// computed.
#[test]
fn texts_that_are_too_long_to_be_compared_have_no_cost() {
    let (service, _) = service("a", Some(TEMPLATE), 1 << 17);
    let more = json!({"guided_json": null, "guided_regex": "a{3000}", "text": "b".repeat(64 << 10)});
    let body = rewritten(&service, more);
    assert_eq!(body["text"].as_str().map(str::len), Some(3000));
    for field in ["cost", "edits"] {
        assert_eq!(body.get(field), Some(&Value::Null), "{field}");
    }
}

/// A model without a chat template reads a plain text, and the constraint in words if that is asked for.
#[test]
fn a_model_without_a_template_is_given_a_text() {
    let (service, shown) = service("xb", None, 1 << 14);
    let more = |rewrite: Value| json!({"guided_json": null, "guided_regex": "x[bc]", "text": "xx", "rewrite": rewrite});
    assert_eq!(rewritten(&service, more(json!(true)))["text"], "xb");
    let told = json!({"schema_in_prompt": "always", "instruction": "Be brief."});
    assert_eq!(rewritten(&service, more(told))["cost"], 1);
    let prompts = shown.lock().expect("no test panics here").clone();
    assert!(prompts[0].starts_with("Write this text again"), "{prompts:?}");
    assert!(
        prompts[0].contains("Text:\nxx\n") && !prompts[0].contains("x[bc]"),
        "{prompts:?}"
    );
    let last = prompts.last().expect("a prompt");
    assert!(last.contains("Be brief.") && last.contains("x[bc]"), "{last}");
}

#[test]
fn what_is_wrong_is_named_with_its_field() {
    let (service, _) = service("{}", Some(TEMPLATE), 512);
    let refused = |more: Value, status: u16, code: &str, param: &str| {
        let answer = ask(&service, more.clone());
        let error = answer.json()["error"].clone();
        assert_eq!(
            (answer.status, &error["code"], &error["param"]),
            (status, &json!(code), &json!(param)),
            "{more}: {error}"
        );
    };
    refused(json!({"model": 5}), 400, "invalid_value", "model");
    refused(json!({"model": "other"}), 404, "model_not_found", "model");
    refused(json!({"mode": "nearest"}), 400, "invalid_value", "mode");
    refused(json!({"rewrite": 3}), 400, "invalid_value", "rewrite");
    refused(
        json!({"text": "a".repeat(600)}),
        400,
        "context_length_exceeded",
        "text",
    );
    refused(
        json!({"text": "a".repeat((64 << 10) + 1)}),
        400,
        "invalid_value",
        "text",
    );
    refused(
        json!({"grammar_id": "nowhere", "guided_json": null}),
        404,
        "grammar_not_found",
        "grammar_id",
    );
    for (rewrite, code, param) in [
        (json!({"temperature": 3}), "invalid_value", "rewrite.temperature"),
        (json!({"particles": 3}), "invalid_value", "rewrite.particles"),
        (
            json!({"law": "global", "temperature": 0}),
            "invalid_value",
            "rewrite.temperature",
        ),
        (json!({"max_tokens": 2}), "budget_too_small", "rewrite.max_tokens"),
        (json!({"temprature": 1}), "unknown_field", "rewrite.temprature"),
        (json!({"stream": true}), "unsupported_parameter", "rewrite.stream"),
        (json!({"instruction": 3}), "invalid_value", "rewrite.instruction"),
        (
            json!({"guided_regex": "a"}),
            "unsupported_parameter",
            "rewrite.guided_regex",
        ),
    ] {
        refused(json!({"rewrite": rewrite}), 400, code, param);
    }
    // Without the field, the model is not asked, but its tokens write the text.
    refused(
        json!({"rewrite": false, "model": "other"}),
        404,
        "model_not_found",
        "model",
    );
    let nearest = ask(&service, json!({"rewrite": false}));
    assert_eq!((nearest.status, &nearest.json()["cost"]), (200, &json!(3)));
}
