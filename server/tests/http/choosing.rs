//! Answers that are chosen among samples, compared with a slow choice among the same samples.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::service::{Answer, Service};

/// Values that a model that always wants `a` draws nearly evenly.
fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {"x": {"enum": [1, 2, 3]}, "y": {"enum": ["b c", "b d"]}, "z": {"type": "boolean"}},
        "required": ["x", "y", "z"],
        "additionalProperties": false
    })
}

fn ask(service: &Service, seed: usize, more: Value) -> Answer {
    let mut body = json!({"guided_json": schema(), "temperature": 1, "seed": seed});
    if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
        body.extend(more);
    }
    service.chat("say", body)
}

fn choices(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["choices"].as_array().expect("choices").clone()
}

/// A sample: its value, and its log-probability per token. A token of this model is a byte.
type Drawn = (BTreeMap<String, Value>, f64);

fn drawn(choice: &Value) -> Drawn {
    let content = choice["message"]["content"].as_str().expect("content");
    let log_probability = choice["lexiform"]["log_probability"].as_f64().expect("a number");
    let value = serde_json::from_str(content).expect("JSON");
    (value, log_probability / content.len() as f64)
}

/// Values agree by their three fields; the texts that differ share one word of two.
fn agreement(one: &Drawn, other: &Drawn) -> f64 {
    let field = |name: &str, otherwise: f64| {
        if one.0[name] == other.0[name] {
            1.0
        } else {
            otherwise
        }
    };
    (field("x", 0.0) + field("y", 0.5) + field("z", 0.0)) / 3.0
}

/// The index of the largest pair.
fn largest(pairs: impl Iterator<Item = (f64, f64)>) -> usize {
    let all: Vec<(f64, f64)> = pairs.map(|(one, other)| ((one * 1e9).round(), other)).collect();
    let better = |best: usize, next: usize| if all[next] > all[best] { next } else { best };
    (0..all.len()).reduce(better).expect("samples")
}

#[test]
fn the_value_that_most_samples_have_is_the_answer() {
    let service = Service::start();
    let mut changed = 0;
    for seed in 0..6 {
        let samples = choices(&ask(&service, seed, json!({"n": 12})));
        let samples: Vec<Drawn> = samples.iter().map(drawn).collect();
        let count = |one: &Drawn| samples.iter().filter(|other| other.0 == one.0).count() as f64;
        let best = largest(samples.iter().map(|one| (count(one), one.1)));
        let answer = ask(
            &service,
            seed,
            json!({"best_of": 12, "choose": "majority", "n": 2}),
        );
        let told = choices(&answer);
        assert_eq!(told.len(), 2);
        assert_eq!(drawn(&told[0]), samples[best], "seed {seed}");
        assert_ne!(drawn(&told[1]).0, samples[best].0, "seed {seed}");
        assert_eq!(told[1]["index"], 1);
        let law = &told[0]["lexiform"];
        assert_eq!(law["law"], "majority");
        assert_eq!(law["support"]["samples"], 12);
        let share = law["support"]["share"].as_f64().expect("a share");
        assert!((share - count(&samples[best]) / 12.0).abs() < 1e-12);
        for field in law["support"]["fields"].as_array().expect("fields") {
            let name = field["path"].as_str().expect("a path").trim_start_matches('/');
            let same = samples
                .iter()
                .filter(|other| other.0[name] == samples[best].0[name]);
            let share = field["share"].as_f64().expect("a share");
            assert!((share - same.count() as f64 / 12.0).abs() < 1e-12, "{field}");
        }
        let likeliest = choices(&ask(&service, seed, json!({"best_of": 12})));
        changed += usize::from(drawn(&likeliest[0]).0 != samples[best].0);
        let bytes: usize = samples
            .iter()
            .map(|(value, _)| json!(value).to_string().len())
            .sum();
        let usage = &answer.json()["usage"];
        assert!(usage["completion_tokens"].as_u64().expect("a number") >= bytes as u64);
        assert!(usage["prompt_tokens"].as_u64().expect("a number") > 0);
    }
    assert!(
        changed > 0,
        "the likeliest sample was the most frequent one throughout"
    );
}

#[test]
fn the_value_that_agrees_most_with_the_others_is_the_answer() {
    let service = Service::start();
    for seed in 0..6 {
        let samples = choices(&ask(&service, seed, json!({"n": 12})));
        let samples: Vec<Drawn> = samples.iter().map(drawn).collect();
        let mean = |one: usize| {
            let others = (0..12).filter(|&other| other != one);
            others
                .map(|other| agreement(&samples[one], &samples[other]))
                .sum::<f64>()
                / 11.0
        };
        let best = largest((0..12).map(|one| (mean(one), samples[one].1)));
        let told = choices(&ask(&service, seed, json!({"best_of": 12, "choose": "mbr"})));
        assert_eq!(drawn(&told[0]), samples[best], "seed {seed}");
        let support = &told[0]["lexiform"]["support"];
        let found = support["agreement"].as_f64().expect("a number");
        assert!((found - mean(best)).abs() < 1e-9, "{support}");
        assert_eq!(told[0]["lexiform"]["law"], "mbr");
    }
}

#[test]
fn the_first_sample_that_is_whole_is_the_answer() {
    let service = Service::start();
    let ask = |more: Value| {
        let mut body = json!({"guided_regex": "b|c{60}", "temperature": 1, "seed": 3});
        if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
            body.extend(more);
        }
        service.chat("say", body)
    };
    let all = ask(json!({"n": 8}));
    let texts = choices(&all);
    let short = texts.iter().filter(|choice| choice["message"]["content"] == "b");
    assert!((1..8).contains(&short.count()), "{texts:?}");
    let first = ask(json!({"best_of": 8, "choose": "first"}));
    let told = choices(&first);
    assert_eq!(told[0]["message"]["content"], "b");
    assert_eq!(told[0]["lexiform"]["law"], "first");
    let tokens = |answer: &Answer| answer.json()["usage"]["completion_tokens"].as_u64();
    assert!(tokens(&first) < tokens(&all), "the others went on");
    service.until("the end of the others", |stats| stats.running == 0);
}

#[test]
fn what_cannot_be_chosen_is_refused() {
    let service = Service::start();
    for (more, param) in [
        (json!({"choose": "majority"}), "choose"),
        (json!({"choose": "worst", "best_of": 2}), "choose"),
        (
            json!({"choose": "mbr", "best_of": 2, "n": 2, "stream": true}),
            "best_of",
        ),
        (
            json!({"choose": "first", "best_of": 2, "weights": true}),
            "weights",
        ),
        (
            json!({"choose": "majority", "best_of": 2, "law": "smc"}),
            "best_of",
        ),
    ] {
        let answer = ask(&service, 1, more.clone());
        assert_eq!(
            (answer.status, &answer.json()["error"]["param"]),
            (400, &json!(param)),
            "{more}: {}",
            answer.text()
        );
    }
}

/// Texts of `c` do not fit into their tokens.
#[test]
fn samples_that_fail_are_not_chosen() {
    let service = Service::start();
    let ask = |more: Value| {
        let mut body = json!({"guided_regex": "b|c{60}", "temperature": 1, "seed": 3, "max_tokens": 10,
                              "on_budget": "error", "best_of": 8});
        if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
            body.extend(more);
        }
        service.chat("say", body)
    };
    let told = choices(&ask(json!({"choose": "majority"})));
    assert_eq!(told[0]["message"]["content"], "b");
    let support = &told[0]["lexiform"]["support"];
    let samples = support["samples"].as_u64().expect("a number");
    assert!((1..8).contains(&samples), "{support}");
    assert_eq!(support["share"], 1.0);
    let all = ask(json!({"choose": "majority", "n": 8}));
    assert_eq!((all.status, all.error_code().as_str()), (422, "budget_exceeded"));
}
