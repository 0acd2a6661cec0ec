//! What a request may say about laws and filters, and what its answers tell of themselves.

use serde_json::{Value, json};

use super::service::{Answer, Service};

/// Asks for `xb` or `xc` of a model that wants to write `x` and end: an attempt that knows nothing fails, and
/// the next one knows.
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

/// The one attempt fails, and what it has learned is where the chain begins.
#[test]
fn a_chain_takes_the_place_of_attempts_that_ran_out() {
    let service = Service::start();
    for (more, steps) in [
        (json!({"max_attempts": 1, "on_exhaustion": "mcmc"}), 10),
        (
            json!({"max_attempts": 1, "on_exhaustion": "mcmc", "mcmc_steps": 3}),
            3,
        ),
    ] {
        let chain = sample(&ask(&service, more));
        assert_eq!((&chain["law"], &chain["steps"]), (&json!("mcmc"), &json!(steps)));
        assert!(chain["moves"].as_u64().expect("a count") <= steps);
        assert!(chain.get("log_weight").is_none(), "{chain}");
    }
    let exact = sample(&ask(&service, json!({"on_exhaustion": "mcmc", "mcmc_steps": 3})));
    assert_eq!(exact["law"], "global-exact");
    assert!(exact.get("steps").is_none(), "{exact}");
    for more in [
        json!({"mcmc_steps": 3}),
        json!({"mcmc_steps": 3, "on_exhaustion": "weighted"}),
        json!({"mcmc_steps": 257, "on_exhaustion": "mcmc"}),
    ] {
        let answer = ask(&service, more.clone());
        assert_eq!(
            (answer.status, answer.json()["error"]["param"].clone()),
            (400, json!("mcmc_steps")),
            "{more}"
        );
    }
    let cuts = ask(&service, json!({"on_exhaustion": "mcmc", "mcmc_cuts": "uniform"}));
    assert_eq!(cuts.json()["error"]["param"], "mcmc_cuts");
}

/// Guards against answers of one request that learn from whichever is ahead.
#[test]
fn a_seed_names_the_texts_of_all_answers_drafted_or_not() {
    let service = Service::start();
    for law in ["global", "asap"] {
        let texts = |draft: bool, n: usize| {
            let more = json!({"guided_regex": "x[b-e]{2}", "law": law, "n": n, "draft": draft});
            let answer = ask(&service, more);
            assert_eq!(answer.status, 200, "{}", answer.text());
            let choices = answer.json()["choices"].clone();
            let choices = choices.as_array().expect("choices").clone();
            choices
                .iter()
                .map(|choice| choice["message"]["content"].clone())
                .collect::<Vec<_>>()
        };
        let wanted = texts(true, 12);
        assert_eq!(texts(false, 12), wanted, "{law}");
        assert_eq!(texts(true, 5), wanted[..5], "{law}");
    }
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
fn particles_go_on_as_the_request_says_and_are_told_if_it_asks() {
    let service = Service::start();
    for proposal in ["masked", "awrs", "twisted"] {
        for law in ["smc", "sir"] {
            let told = sample(&ask(
                &service,
                json!({"law": law, "proposal": proposal, "particles": 4, "return_particles": true}),
            ));
            assert_eq!(told["law"], law, "{proposal}");
            let weight = told["log_weight"].as_f64().expect("an estimate");
            assert!(weight < -5.0, "{proposal}: {weight}: what matches is rare");
            let population = told["population"].as_array().expect("all texts");
            assert_eq!(population.len(), 4);
            let log = |particle: &Value| particle["log_weight"].as_f64().expect("a number").exp();
            let mean = population.iter().map(log).sum::<f64>() / 4.0;
            assert!((mean.ln() - weight).abs() < 1e-6, "{told}");
            for particle in population {
                let text = &particle["text"];
                assert!(text == "xb" || text == "xc", "{particle}");
            }
        }
    }
    let several = ask(&service, json!({"law": "smc", "n": 3, "return_particles": true})).json();
    let has = |choice: &Value| choice["lexiform"].get("population").is_some();
    let choices = several["choices"].as_array().expect("choices");
    assert_eq!(choices.iter().map(has).collect::<Vec<_>>(), [true, false, false]);
    let plain = sample(&ask(&service, json!({"law": "smc", "return_particles": false})));
    assert!(plain.get("population").is_none());
    let body = json!({"model": "m", "prompt": ["echo x", "echo y"], "guided_regex": "x[bc]", "law": "sir",
                      "temperature": 1, "n": 2, "return_particles": true, "seed": 1});
    let answer = service.post("/v1/completions", &body.to_string());
    let choices = answer.json()["choices"].as_array().expect("choices").clone();
    assert_eq!(
        choices.iter().map(has).collect::<Vec<_>>(),
        [true, false, true, false]
    );
}

/// The model wants to write a `y`, which is an error each time, until the text goes back or another letter
/// comes.
#[test]
fn going_back_from_errors_is_told_by_the_law() {
    let service = Service::start();
    let aprad = sample(&ask(&service, json!({"law": "aprad", "aprad_exponent": 2})));
    assert_eq!(aprad["law"], "aprad");
    assert!(aprad["attempts"].as_u64().expect("a count") > 1, "{aprad}");
    assert!(aprad.get("log_weight").is_none());
    // The model wants to end after each letter.
    let longer = json!({"law": "aprad", "max_attempts": 1, "guided_regex": "x[bc]{3}"});
    let failed = ask(&service, longer);
    assert_eq!(
        (failed.status, failed.error_code().as_str()),
        (422, "attempts_exhausted"),
        "{}",
        failed.text()
    );
}

#[test]
fn a_seed_names_the_text_of_every_law() {
    let service = Service::start();
    for law in ["asap", "aprad", "smc", "sir", "mcmc"] {
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
        ("proposal", json!("awrs"), "local"),
        ("proposal", json!("awrs"), "mcmc"),
        ("proposal", json!("unmasked"), "smc"),
        ("return_particles", json!(true), "asap"),
        ("return_particles", json!("all"), "smc"),
        ("aprad_exponent", json!(1), "asap"),
        ("aprad_exponent", json!(17), "aprad"),
        ("max_attempts", json!(0), "aprad"),
        ("share_attempts", json!(true), "aprad"),
        ("on_budget", json!("truncate"), "aprad"),
        ("temperature", json!(0), "aprad"),
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

/// The model wants to write a word, and at this temperature it may miss it; a filter that leaves one token
/// leaves that of the word.
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
fn drafts_are_accepted_without_a_law_where_a_request_says_so() {
    let service = Service::start();
    let told = |route: &str, more: Value| {
        let mut body = json!({"model": "m", "guided_regex": "[a-z]{9}", "temperature": 1, "seed": 5,
            "prompt": "echo abcabcabc", "input": "echo abcabcabc",
            "messages": [{"role": "user", "content": "echo abcabcabc"}]});
        let unused = match route {
            "/v1/completions" => ["input", "messages"],
            "/v1/responses" => ["prompt", "messages"],
            _ => ["prompt", "input"],
        };
        if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
            body.retain(|name, _| !unused.contains(&name.as_str()));
            body.extend(more);
        }
        service.post(route, &body.to_string())
    };
    for route in ["/v1/chat/completions", "/v1/completions", "/v1/responses"] {
        for (more, law) in [
            (json!({}), "local"),
            (json!({"lossy": null}), "local"),
            (json!({"lossy": {}}), "lossy"),
            (json!({"lossy": {"epsilon": 0, "delta": 1000}}), "lossy"),
            (json!({"lossy": {"epsilon": 0.5}, "temperature": 0}), "greedy"),
            (json!({"lossy": {"epsilon": 0.5}, "top_k": 5}), "lossy"),
        ] {
            let answer = told(route, more.clone());
            assert_eq!(answer.status, 200, "{route} {more}: {}", answer.text());
            assert!(
                answer.text().contains(&format!("\"law\":\"{law}\"")),
                "{route} {more}: {}",
                answer.text()
            );
        }
        let answer = told(route, json!({"lossy": {}}));
        let weighed = answer.text();
        assert!(!weighed.contains("log_weight"), "{weighed}");
        for more in [
            json!({"law": "asap"}),
            json!({"law": "global"}),
            json!({"search": {"kind": "beam", "width": 2}, "temperature": null}),
            json!({"best_of": 2}),
            json!({"weights": true}),
            json!({"draft": false}),
            json!({"monitors": [{"type": "regex", "pattern": "a.*"}]}),
            json!({"lossy": true}),
            json!({"lossy": {"epsilon": 2}}),
            json!({"lossy": {"delta": -1}}),
            json!({"lossy": {"epsilom": 0.1}}),
        ] {
            let mut body = json!({"lossy": {}});
            if let (Value::Object(body), Value::Object(more)) = (&mut body, more.clone()) {
                body.extend(more);
            }
            let answer = told(route, body);
            let param = answer.json()["error"]["param"].clone();
            assert_eq!(answer.status, 400, "{route} {more}: {}", answer.text());
            assert!(
                param.as_str().is_some_and(|param| param.starts_with("lossy")),
                "{route} {more}: {param}"
            );
        }
    }
}

/// What stands before the answer stood before a row of `z` as well, so that is drafted; the model finds it as
/// unlikely as can be.
#[test]
fn a_lossy_answer_goes_along_with_its_drafts() {
    let service = Service::start();
    let text = |more: Value| {
        let mut body = json!({"model": "m", "guided_regex": "[a-z]{9}", "temperature": 1, "seed": 5, "messages": [
            {"role": "system", "content": "assistant\nzzzzzzzzz"}, {"role": "user", "content": "echo abcabcabc"}]});
        if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
            body.extend(more);
        }
        let answer = service.post("/v1/chat/completions", &body.to_string());
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["choices"][0]["message"]["content"].clone()
    };
    assert_eq!(text(json!({})), "abcabcabc");
    assert_eq!(text(json!({"lossy": {}})), "abcabcabc");
    assert_eq!(
        text(json!({"lossy": {"epsilon": 0}, "temperature": 0})),
        "abcabcabc"
    );
    // The last letter, behind which only the end is left, is not drafted.
    let lossy = text(json!({"lossy": {"epsilon": 0}}));
    assert!(
        lossy.as_str().is_some_and(|text| text.starts_with("zzzzzzzz")),
        "{lossy}"
    );
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
