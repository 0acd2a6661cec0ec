//! What a request may say about laws and filters, and what its answers tell of themselves.

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

#[test]
fn laws_that_draw_several_texts_say_what_became_of_them() {
    let service = Service::start();
    let smc = sample(&ask(
        &service,
        json!({"law": "smc", "particles": 4, "resampling": "residual"}),
    ));
    assert_eq!((&smc["law"], &smc["particles"]), (&json!("smc"), &json!(4)));
    let size = smc["effective_size"].as_f64().expect("a number");
    assert!((1.0..4.01).contains(&size), "{size}");
    let weight = smc["log_weight"].as_f64().expect("an estimate");
    assert!(weight < -10.0, "{weight}: what matches is rare");
    let sir = sample(&ask(&service, json!({"law": "sir", "n": 2})));
    assert_eq!(
        (&sir["law"], &sir["particles"], &sir["resampled"]),
        (&json!("sir"), &json!(8), &json!(0))
    );
    let asap = sample(&ask(&service, json!({"law": "asap"})));
    assert_eq!((&asap["law"], &asap["attempts"]), (&json!("asap"), &json!(1)));
    assert!(asap["log_weight"].as_f64().expect("a weight") < -10.0);
    for cuts in ["restart", "uniform", "priority"] {
        let mcmc = sample(&ask(
            &service,
            json!({"law": "mcmc", "mcmc_steps": 5, "mcmc_cuts": cuts}),
        ));
        assert_eq!((&mcmc["law"], &mcmc["steps"]), (&json!("mcmc"), &json!(5)));
        assert!(mcmc["moves"].as_u64().expect("a count") <= 5);
        assert!(mcmc.get("log_weight").is_none());
    }
}

#[test]
fn a_seed_names_the_text_of_every_law() {
    let service = Service::start();
    for law in ["asap", "smc", "sir", "mcmc"] {
        let text =
            |seed: u64| ask(&service, json!({"law": law, "seed": seed, "n": 3})).json()["choices"].clone();
        let contents = |choices: Value| -> Vec<Value> {
            let choices = choices.as_array().expect("choices").clone();
            choices
                .iter()
                .map(|choice| choice["message"]["content"].clone())
                .collect()
        };
        assert_eq!(contents(text(5)), contents(text(5)), "{law}");
    }
}

#[test]
fn fields_of_one_law_are_refused_with_another() {
    let service = Service::start();
    for (name, value, law) in [
        ("particles", json!(0), "smc"),
        ("particles", json!(65), "sir"),
        ("ess_threshold", json!(0), "smc"),
        ("resampling", json!("none"), "smc"),
        ("mcmc_steps", json!(0), "mcmc"),
        ("mcmc_cuts", json!("nowhere"), "mcmc"),
        ("particles", json!(4), "local"),
        ("particles", json!(4), "mcmc"),
        ("ess_threshold", json!(0.5), "sir"),
        ("resampling", json!("systematic"), "global"),
        ("mcmc_steps", json!(3), "smc"),
        ("max_attempts", json!(3), "smc"),
        ("best_of", json!(3), "smc"),
        ("on_budget", json!("truncate"), "mcmc"),
        ("temperature", json!(0), "smc"),
        ("temperature", json!(0), "mcmc"),
    ] {
        let answer = ask(&service, json!({name: value, "law": law}));
        assert_eq!(
            (answer.status, answer.json()["error"]["param"].clone()),
            (400, json!(name)),
            "{name} {value} {law}: {}",
            answer.text()
        );
    }
    let answer = ask(&service, json!({"law": "smc", "particles": 2, "n": 3}));
    assert_eq!(answer.json()["error"]["param"], "particles");
}

#[test]
fn a_beam_search_tells_the_likeliest_texts_first() {
    let service = Service::start();
    let search = |more: Value| {
        let mut body = json!({"guided_regex": "x[bc]", "use_beam_search": true});
        if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
            body.extend(more);
        }
        service.chat("echo x", body)
    };
    let answer = search(json!({"n": 2, "beam_width": 3, "length_penalty": 0, "logprobs": true}));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let choices = answer.json()["choices"].as_array().expect("choices").clone();
    let texts: Vec<&Value> = choices
        .iter()
        .map(|choice| &choice["message"]["content"])
        .collect();
    assert!(
        texts.contains(&&json!("xb")) && texts.contains(&&json!("xc")),
        "{texts:?}"
    );
    let score = |choice: &Value| choice["lexiform"]["score"].as_f64().expect("a score");
    assert!(score(&choices[0]) >= score(&choices[1]));
    for choice in &choices {
        let told = &choice["lexiform"];
        assert_eq!((&told["law"], &told["beam_width"]), (&json!("beam"), &json!(3)));
        let written = told["log_probability"].as_f64().expect("a number");
        assert!((written - score(choice)).abs() < 1e-6, "{told}");
        assert_eq!(choice["logprobs"]["content"].as_array().expect("tokens").len(), 2);
    }
    let free = service.chat("echo hello", json!({"use_beam_search": true, "max_tokens": 4}));
    assert_eq!(free.status, 200, "{}", free.text());
    for (name, value) in [
        ("beam_width", json!(0)),
        ("beam_width", json!(33)),
        ("length_penalty", json!(-1)),
        ("patience", json!(0)),
        ("temperature", json!(0.5)),
        ("best_of", json!(2)),
        ("use_beam_search", json!("yes")),
        ("on_budget", json!("truncate")),
    ] {
        let answer = search(json!({name: value}));
        assert_eq!(
            (answer.status, &answer.json()["error"]["param"]),
            (400, &json!(name)),
            "{}",
            answer.text()
        );
    }
    assert_eq!(
        search(json!({"law": "smc"})).json()["error"]["param"],
        "use_beam_search"
    );
    assert_eq!(
        search(json!({"logprobs": true, "top_logprobs": 2})).json()["error"]["param"],
        "top_logprobs"
    );
    let plain = |more: Value| service.chat("echo x", more);
    assert_eq!(
        plain(json!({"use_beam_search": false, "length_penalty": 1.0})).status,
        200
    );
    assert_eq!(
        plain(json!({"length_penalty": 2})).json()["error"]["param"],
        "length_penalty"
    );
    assert_eq!(
        plain(json!({"beam_width": 2})).json()["error"]["param"],
        "beam_width"
    );
}

/// The model wants to write a word, and at this temperature it may miss it; a filter that leaves one token leaves that of the word.
#[test]
fn a_filter_is_of_the_allowed_tokens_and_told_by_the_law() {
    let service = Service::start();
    let local = |more: Value| {
        let mut body = json!({"guided_regex": "[a-z]{4}", "temperature": 2, "seed": 5});
        if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
            body.extend(more);
        }
        let answer = service.chat("echo word", body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let choice = answer.json()["choices"][0].clone();
        (
            choice["message"]["content"].clone(),
            choice["lexiform"]["law"].clone(),
        )
    };
    for off in [
        json!({"typical_p": 1}),
        json!({"top_n_sigma": 0}),
        json!({"top_n_sigma": -1}),
        json!({"epsilon_cutoff": 0, "eta_cutoff": 0}),
        json!({"mirostat_mode": 0}),
        json!({"typical_p": null, "top_n_sigma": null, "mirostat_mode": null, "mirostat_tau": null}),
    ] {
        assert_eq!(local(off.clone()), local(json!({})), "{off}");
        assert_eq!(local(off).1, "local");
    }
    for narrow in [
        json!({"top_n_sigma": 0.01}),
        json!({"epsilon_cutoff": 1}),
        json!({"eta_cutoff": 1, "epsilon_cutoff": 1}),
        json!({"mirostat_mode": 1, "mirostat_tau": 0.01, "mirostat_eta": 0.001}),
        json!({"mirostat_mode": 2, "mirostat_tau": 0.01, "mirostat_eta": 0.001}),
    ] {
        let (content, law) = local(narrow.clone());
        assert_eq!(
            (content, law),
            (json!("word"), json!("local-filtered")),
            "{narrow}"
        );
    }
    for wide in [
        json!({"typical_p": 0.9}),
        json!({"eta_cutoff": 0.001}),
        json!({"mirostat_mode": 2}),
    ] {
        assert_eq!(local(wide).1, "local-filtered");
    }
}

#[test]
fn what_no_filter_can_be_is_refused_by_its_field() {
    let service = Service::start();
    for (more, param) in [
        (json!({"typical_p": 1.5}), "typical_p"),
        (json!({"typical_p": "much"}), "typical_p"),
        (json!({"top_n_sigma": -2}), "top_n_sigma"),
        (json!({"epsilon_cutoff": -0.1}), "epsilon_cutoff"),
        (json!({"eta_cutoff": 2}), "eta_cutoff"),
        (json!({"mirostat_mode": 3}), "mirostat_mode"),
        (json!({"mirostat_mode": true}), "mirostat_mode"),
        (json!({"mirostat_mode": 2, "mirostat_tau": 0}), "mirostat_tau"),
        (json!({"mirostat_mode": 2, "mirostat_eta": 11}), "mirostat_eta"),
        (json!({"mirostat_tau": 3}), "mirostat_tau"),
        (json!({"mirostat_mode": 0, "mirostat_eta": 0.2}), "mirostat_eta"),
        (
            json!({"mirostat_mode": 1, "law": "global", "guided_regex": "x[bc]"}),
            "mirostat_mode",
        ),
    ] {
        let answer = service.chat("echo x", more.clone());
        assert_eq!(
            (
                answer.status,
                answer.error_code(),
                answer.json()["error"]["param"].clone()
            ),
            (400, "invalid_value".to_owned(), json!(param)),
            "{more}"
        );
    }
    let answer = service.chat("echo x", json!({"mirostat": 2}));
    assert_eq!(
        (answer.status, answer.error_code().as_str()),
        (400, "unknown_field")
    );
    assert!(answer.text().contains("mirostat_mode"), "{}", answer.text());
}
