//! Healed prompts of completions: what is removed comes back in the tokens that the model likes, and is not
//! told.

use lexiform_engine::ScriptedModel;
use lexiform_server::model::served::ServedModel;
use lexiform_server::model::text::{Defaults, ModelText};
use lexiform_server::routes::state::Settings;
use serde_json::{Value, json};

use crate::service::{Answer, Service, roomy};
use crate::tokenizer::{IM_END, TEMPLATE, TOKENS, tokenizer_json_with};

/// `://`, behind `:/`.
const SCHEME: u32 = 257;
/// The control tokens come behind these two.
const END: u32 = IM_END + 2;
const WIDTH: usize = TOKENS + 2;

/// The tokenizer of the other tests with two merges.
fn tokenizer() -> String {
    let mut tokenizer: Value = serde_json::from_str(&tokenizer_json_with(&[])).expect("it is JSON");
    tokenizer["model"]["vocab"][":/"] = json!(SCHEME - 1);
    tokenizer["model"]["vocab"]["://"] = json!(SCHEME);
    tokenizer["model"]["merges"] = json!([": /", ":/ /"]);
    for added in tokenizer["added_tokens"].as_array_mut().expect("a list") {
        added["id"] = json!(added["id"].as_u64().expect("a number") + 2);
    }
    tokenizer.to_string()
}

/// After `http` a model that has learned `://` as a token; after `http`, `:` it goes on with anything but
/// slashes.
fn script(prefix: &[u32]) -> Vec<f32> {
    let likely: &[(u8, f32)] = match prefix.split_last() {
        Some((&SCHEME, _)) => &[(b'x', 6.0), (b'y', 5.0)],
        Some((&58, _)) => &[(b'a', 8.0), (b'b', 7.0), (b'/', 1.0)],
        Some((&47, [.., 47])) => &[(b'x', 6.0)],
        Some((&47, _)) => &[(b'/', 6.0), (b'x', 5.0)],
        _ => &[],
    };
    let mut logits = vec![0.0; WIDTH];
    for &(byte, logit) in likely {
        logits[usize::from(byte)] = logit;
    }
    match prefix.last() {
        Some(&112) => (logits[SCHEME as usize], logits[58]) = (9.0, 8.0),
        _ if likely.is_empty() => logits[END as usize] = 12.0,
        _ => (),
    }
    logits
}

fn service() -> Service {
    let config = json!({"chat_template": TEMPLATE, "eos_token": "<|im_end|>"});
    let defaults = Defaults {
        temperature: 0.0,
        ..Defaults::default()
    };
    let text = ModelText::new(tokenizer().as_bytes(), &config, None, defaults).expect("a tokenizer");
    let model = ScriptedModel::new(WIDTH, 1 << 16, script);
    let served = ServedModel::start("m".to_owned(), Box::new(model), None, text, &[END], roomy());
    Service::of_served(served.expect("the engine starts"), Settings::default())
}

fn ask(service: &Service, more: Value) -> Answer {
    let mut body = json!({"model": "m", "prompt": "http:", "max_tokens": 12});
    body.as_object_mut()
        .expect("an object")
        .extend(more.as_object().expect("an object").clone());
    service.post("/v1/completions", &body.to_string())
}

fn healed(service: &Service, mut more: Value) -> Value {
    more["token_healing"] = json!(true);
    let answer = ask(service, more);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

fn text(answer: &Value) -> &str {
    answer["choices"][0]["text"].as_str().expect("a text")
}

#[test]
fn the_end_of_the_prompt_is_spelled_anew_and_not_told() {
    let service = service();
    assert_eq!(text(&ask(&service, json!({})).json()), "a");
    assert_eq!(text(&ask(&service, json!({"token_healing": false})).json()), "a");
    let answer = healed(&service, json!({}));
    assert_eq!(text(&answer), "//x");
    // `h`, `t`, `t`, `p`; then `://`, `x` and the end.
    let usage = &answer["usage"];
    assert_eq!(
        (&usage["prompt_tokens"], &usage["completion_tokens"]),
        (&json!(4), &json!(3))
    );
    // Where nothing could be longer, nothing changes.
    assert_eq!(text(&healed(&service, json!({"prompt": "http"}))), "://x");
    assert_eq!(
        text(&healed(&service, json!({"prompt": [58]}))),
        "a",
        "the first token stays"
    );
}

/// No token begins with `x`: nothing is removed, and the answer is that of the same request without the
/// field, to the last number.
#[test]
fn a_prompt_that_ends_between_tokens_costs_nothing_and_changes_nothing() {
    let service = service();
    for more in [
        json!({"prompt": "http:x"}),
        json!({"prompt": "http:x", "logprobs": 2, "temperature": 1, "seed": 3}),
    ] {
        let compiles = || service.metric("lexiform_grammar_cache_misses_total");
        let plain = ask(&service, more.clone()).json();
        let before = compiles();
        let healed = healed(&service, more);
        assert_eq!(compiles(), before);
        assert_eq!(healed["choices"], plain["choices"]);
        for count in ["prompt_tokens", "completion_tokens"] {
            assert_eq!(healed["usage"][count], plain["usage"][count]);
        }
    }
}

#[test]
fn free_text_is_cut_after_its_tokens() {
    let service = service();
    let answer = healed(&service, json!({"max_tokens": 1}));
    assert_eq!(
        (text(&answer), &answer["choices"][0]["finish_reason"]),
        ("//", &json!("length"))
    );
    assert!(
        answer
            .get("lexiform")
            .is_none_or(|told| told.get("grammar").is_none()),
        "{answer}"
    );
    let stopped = healed(&service, json!({"stop": ["x"]}));
    assert_eq!(
        (text(&stopped), &stopped["choices"][0]["finish_reason"]),
        ("//", &json!("stop"))
    );
    assert_eq!(
        text(&healed(&service, json!({"stop": [":"]}))),
        "//x",
        "the prompt does not stop an answer"
    );
}

/// Spelled `:`, `/`, `/` where `://` is out of the question; tokens that contradict the prompt are no
/// alternatives.
#[test]
fn log_probabilities_are_told_with_what_the_client_sees() {
    let service = service();
    let answer = healed(&service, json!({"logprobs": 3}));
    let logprobs = &answer["choices"][0]["logprobs"];
    assert_eq!(logprobs["tokens"], json!(["//", "x"]));
    assert_eq!(logprobs["text_offset"], json!([0, 2]));
    let first = logprobs["top_logprobs"][0].as_object().expect("a map");
    assert_eq!(first.keys().collect::<Vec<_>>(), ["//", ""], "{first:?}");
    let second = logprobs["top_logprobs"][1].as_object().expect("a map");
    assert!(second.len() == 3 && second.contains_key("y"), "{second:?}");
    let spelled = json!({"logprobs": 1, "logit_bias": {"257": -100, "97": -100, "98": -100}});
    let answer = healed(&service, spelled);
    let logprobs = &answer["choices"][0]["logprobs"];
    assert_eq!(text(&answer), "//x");
    assert_eq!(logprobs["tokens"], json!(["", "/", "/", "x"]));
    assert_eq!(logprobs["text_offset"], json!([0, 0, 1, 2]));
    let sum: f64 = logprobs["token_logprobs"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Value::as_f64)
        .sum();
    assert!(sum < -7.0, "the slash after a colon is rare: {sum}");
}

#[test]
fn constraints_are_about_what_comes_behind_the_prompt() {
    let service = service();
    let y = healed(&service, json!({"guided_regex": "//y|z", "certificate": true}));
    assert_eq!(text(&y), "//y");
    let told = &y["choices"][0]["lexiform"];
    assert_eq!(told["certificates"][0]["valid"], true, "{told}");
    // The constraint is what is told of, not what stands before it.
    let plain = ask(&service, json!({"guided_regex": "//y|z"})).json();
    assert_eq!(y["lexiform"]["grammar"], plain["lexiform"]["grammar"]);
    assert!(y["lexiform"]["grammar"].is_string(), "{y}");
    for more in [
        json!({"law": "global"}),
        json!({"law": "smc", "particles": 4, "return_particles": true}),
        json!({"law": "mcmc"}),
        json!({"use_beam_search": true}),
    ] {
        let mut body = json!({"guided_regex": "//[xy]", "n": 2, "temperature": 1, "seed": 7});
        if more.get("use_beam_search").is_some() {
            body.as_object_mut().expect("an object").remove("temperature");
        }
        body.as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("an object").clone());
        let answer = healed(&service, body);
        let choices = answer["choices"].as_array().expect("choices");
        assert!(
            choices
                .iter()
                .all(|choice| ["//x", "//y"].contains(&choice["text"].as_str().expect("a text")))
        );
        let population = answer["choices"][0]["lexiform"]["population"].as_array();
        for particle in population.into_iter().flatten() {
            assert!(
                ["//x", "//y"].contains(&particle["text"].as_str().expect("a text")),
                "{particle}"
            );
        }
        assert_eq!(population.is_some(), more.get("return_particles").is_some());
    }
    // Without a constraint, whole texts that begin with the prompt.
    assert_eq!(
        text(&healed(
            &service,
            json!({"law": "global", "temperature": 0.1, "seed": 1})
        )),
        "//x"
    );
    assert_eq!(text(&healed(&service, json!({"use_beam_search": true}))), "//x");
}

#[test]
fn each_prompt_is_healed_for_itself() {
    let service = service();
    let answer = healed(
        &service,
        json!({"prompt": ["http:", "http", "http:/"], "n": 2, "guided_regex": "(:?/?/)?[ax]"}),
    );
    let texts: Vec<&str> = answer["choices"]
        .as_array()
        .expect("choices")
        .iter()
        .filter_map(|choice| choice["text"].as_str())
        .collect();
    assert_eq!(texts, ["//x", "//x", "://x", "://x", "/x", "/x"]);
}

#[test]
fn streams_tell_the_same() {
    let service = service();
    let body = json!({"stream": true, "logprobs": 1, "token_healing": true,
                      "logit_bias": {"257": -100, "97": -100, "98": -100}});
    let events = ask(&service, body).events();
    let (mut told, mut tokens) = (String::new(), Vec::new());
    for event in &events {
        let choice = &event["choices"][0];
        told.push_str(choice["text"].as_str().unwrap_or_default());
        tokens.extend(
            choice["logprobs"]["tokens"]
                .as_array()
                .into_iter()
                .flatten()
                .cloned(),
        );
    }
    assert_eq!(told, "//x");
    assert_eq!(tokens, ["", "/", "/", "x"]);
}

/// A model with the marks of a code model is shown both texts, each in its place, and the marks of a client
/// are text.
#[test]
fn an_answer_may_stand_between_two_texts() {
    let complete = |service: &Service, more: Value| {
        let mut body = json!({"model": "m", "prompt": "ab", "suffix": "cd", "max_tokens": 2});
        let more = more.as_object().expect("fields").clone();
        body.as_object_mut().expect("fields").extend(more);
        service.post("/v1/completions", &body.to_string())
    };
    let marks = ["<fim_prefix>", "<fim_suffix>", "<fim_middle>"];
    let service = Service::of_model(roomy(), 1 << 20, TEMPLATE, &marks);
    let prompt_tokens = |more: Value| {
        let answer = complete(&service, more);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["usage"]["prompt_tokens"]
            .as_u64()
            .expect("a number")
    };
    let plain = prompt_tokens(json!({"suffix": ""}));
    assert_eq!(
        prompt_tokens(json!({})),
        plain + 2 + 3,
        "two letters and three marks"
    );
    assert_eq!(prompt_tokens(json!({"prompt": [1, 2, 3]})), 3 + 2 + 3);
    assert!(
        prompt_tokens(json!({"suffix": "<fim_middle>"})) > plain + 4,
        "a mark of a client is text"
    );
    let param = |answer: Answer| (answer.status, answer.json()["error"]["param"].clone());
    let healed = complete(&service, json!({"token_healing": true}));
    assert_eq!(param(healed), (400, json!("suffix")));
    let contrasted = json!({"suffix": "", "contrast": {"prompt": "b"}, "token_healing": true});
    assert_eq!(
        param(complete(&service, contrasted)),
        (400, json!("contrast")),
        "the end of the other prompt would be another one"
    );
    let without = Service::start();
    assert_eq!(param(complete(&without, json!({}))), (400, json!("suffix")));
    assert_eq!(complete(&without, json!({"suffix": ""})).status, 200);
}
