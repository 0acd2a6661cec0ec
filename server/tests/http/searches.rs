//! What a request may say about a search, and what its answers tell.

use serde_json::{Value, json};

use super::service::{Answer, Service};

/// A search for `xb`, `xc` or longer texts, with a model that wants to write `x` and end.
fn ask(service: &Service, search: Value, more: Value) -> Answer {
    let mut body = json!({"guided_regex": "x[bc]{1,3}", "search": search});
    if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
        body.extend(more);
    }
    service.chat("echo x", body)
}

/// The texts of an answer and what it says of each.
fn told(answer: &Answer) -> Vec<(String, Value)> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let choices = answer.json()["choices"].as_array().expect("choices").clone();
    let told = choices.iter().map(|choice| {
        let text = choice["message"]["content"].as_str().expect("a text");
        (text.to_owned(), choice["lexiform"].clone())
    });
    told.collect()
}

fn param(answer: &Answer) -> (u16, String) {
    let param = answer.json()["error"]["param"].as_str().unwrap_or("-").to_owned();
    (answer.status, param)
}

#[test]
fn every_search_is_asked_for_by_a_word_or_by_an_object() {
    let service = Service::start();
    for (word, tag) in [
        ("beam", "beam"),
        ("best_first_beam", "best-first-beam"),
        ("diverse_beam", "diverse-beam"),
        ("k_best", "k-best"),
        ("a_star_esque", "a-star-esque"),
        ("cntp", "cntp"),
    ] {
        for search in [json!(word), json!({"kind": word})] {
            let drawn = word == "cntp";
            let answer = ask(&service, search, json!({"temperature": 1, "seed": 3}));
            let (text, told) = told(&answer).remove(0);
            assert!(text.starts_with('x') && text.len() >= 2, "{text}");
            assert_eq!(told["law"], tag);
            assert!(told["rows"].as_u64().expect("a number") >= 2, "{told}");
            assert!(told["score"].as_f64().expect("a score") < 0.0);
            assert_eq!(told.get("log_weight"), None);
            let has_width = !drawn && word != "k_best";
            assert_eq!(told["beam_width"], if has_width { json!(4) } else { json!(null) });
        }
    }
    let with = ask(
        &service,
        json!({"kind": "dynamic_beam", "must_contain": ["bcb"]}),
        json!({}),
    );
    let (text, told) = told(&with).remove(0);
    assert_eq!((text.as_str(), &told["law"]), ("xbcb", &json!("dynamic-beam")));
}

/// All fourteen texts, the likeliest first; beam search finds the same where it is wide enough, and
/// best-first in fewer rows.
#[test]
fn exact_answers_are_the_likeliest_in_order() {
    let service = Service::start();
    let more = json!({"n": 14, "length_penalty": 1});
    let exact = told(&ask(&service, json!("k_best"), more.clone()));
    let scores: Vec<f64> = exact
        .iter()
        .map(|(_, told)| told["score"].as_f64().expect("a score"))
        .collect();
    assert!(scores.is_sorted_by(|one, other| one >= other), "{scores:?}");
    for (_, told) in &exact {
        assert_eq!(told["score"], told["log_probability"]);
    }
    let texts = |told: &[(String, Value)]| -> std::collections::BTreeSet<String> {
        told.iter().map(|(text, _)| text.clone()).collect()
    };
    assert_eq!(texts(&exact).len(), 14);
    let wide = told(&ask(
        &service,
        json!({"kind": "beam", "width": 32, "length_penalty": 0}),
        more,
    ));
    assert_eq!(texts(&exact), texts(&wide));
    let rows = |kind: &str| {
        let search = json!({"kind": kind, "width": 8, "length_penalty": 0});
        let (text, told) = told(&ask(&service, search, json!({}))).remove(0);
        (text, told["rows"].as_u64().expect("a number"))
    };
    let (beam, best) = (rows("beam"), rows("best_first_beam"));
    assert_eq!(beam.0, best.0);
    assert!(best.1 <= beam.1, "{beam:?} {best:?}");
}

#[test]
fn parameters_are_read_and_refused_by_their_names() {
    let service = Service::start();
    let of = |kind: &str, name: &str, value: Value| json!({"kind": kind, name: value});
    for (search, name) in [
        (json!("fast"), "search.kind"),
        (json!({"width": 4}), "search.kind"),
        (json!(3), "search"),
        (of("beam", "width", json!(0)), "search.width"),
        (of("beam", "width", json!(33)), "search.width"),
        (of("beam", "width", json!(1)), "search.width"),
        (of("beam", "length_penalty", json!(11)), "search.length_penalty"),
        (of("beam", "patience", json!(0)), "search.patience"),
        (of("beam", "groups", json!(2)), "search.groups"),
        (of("best_first_beam", "patience", json!(2)), "search.patience"),
        (of("diverse_beam", "groups", json!(3)), "search.groups"),
        (of("diverse_beam", "diversity", json!(-1)), "search.diversity"),
        (of("k_best", "width", json!(4)), "search.width"),
        (of("k_best", "max_rows", json!(0)), "search.max_rows"),
        (of("k_best", "max_frontier", json!("many")), "search.max_frontier"),
        (json!("dynamic_beam"), "search.must_contain"),
        (
            of("dynamic_beam", "must_contain", json!([])),
            "search.must_contain",
        ),
        (
            of("dynamic_beam", "must_contain", json!([""])),
            "search.must_contain",
        ),
        (
            of("dynamic_beam", "must_contain", json!("b")),
            "search.must_contain",
        ),
        (of("beam", "must_contain", json!(["b"])), "search.must_contain"),
        (of("a_star_esque", "look_ahead", json!(17)), "search.look_ahead"),
        (
            of("a_star_esque", "distance_weight", json!(101)),
            "search.distance_weight",
        ),
        (of("cntp", "trials", json!(0)), "search.trials"),
        (of("cntp", "high_entropy", json!(0.1)), "search.high_entropy"),
        (of("cntp", "low_entropy", json!(-1)), "search.low_entropy"),
        (of("cntp", "trial_tokens", json!(0)), "search.trial_tokens"),
        (of("beam", "wdith", json!(4)), "search.wdith"),
    ] {
        let answer = ask(&service, search.clone(), json!({"n": 2}));
        assert_eq!(
            param(&answer),
            (400, name.to_owned()),
            "{search}: {}",
            answer.text()
        );
    }
    for null in [json!(null), json!({"kind": "beam", "patience": null})] {
        assert_eq!(ask(&service, null, json!({})).status, 200);
    }
}

#[test]
fn what_a_search_cannot_be_combined_with_is_refused() {
    let service = Service::start();
    for (search, more, name) in [
        ("k_best", json!({"law": "global", "temperature": 1}), "search"),
        ("k_best", json!({"use_beam_search": true}), "use_beam_search"),
        ("k_best", json!({"temperature": 0.7}), "temperature"),
        ("cntp", json!({"temperature": 0}), "temperature"),
        ("beam", json!({"best_of": 3}), "best_of"),
        ("beam", json!({"on_budget": "truncate"}), "on_budget"),
        (
            "beam",
            json!({"mirostat_mode": 2, "temperature": 1}),
            "mirostat_mode",
        ),
        ("beam", json!({"n": 5}), "search.width"),
        ("beam", json!({"beam_width": 5}), "beam_width"),
        (
            "beam",
            json!({"logprobs": true, "top_logprobs": 2}),
            "top_logprobs",
        ),
    ] {
        let answer = ask(&service, json!(search), more.clone());
        assert_eq!(
            param(&answer),
            (400, name.to_owned()),
            "{more}: {}",
            answer.text()
        );
    }
    for (search, more) in [
        ("k_best", json!({"temperature": 1})),
        ("k_best", json!({"logprobs": true})),
        (
            "cntp",
            json!({"temperature": 0.7, "logprobs": true, "top_logprobs": 2, "top_p": 0.9, "n": 2}),
        ),
        ("beam", json!({"law": "local", "draft": true})),
    ] {
        let answer = ask(&service, json!(search), more.clone());
        assert_eq!(answer.status, 200, "{more}: {}", answer.text());
    }
}

#[test]
fn a_search_that_finds_no_answer_says_why() {
    let service = Service::start();
    let without = ask(
        &service,
        json!({"kind": "dynamic_beam", "must_contain": ["bd"]}),
        json!({}),
    );
    assert_eq!(
        (
            without.status,
            without.error_code().as_str(),
            param(&without).1.as_str()
        ),
        (422, "phrases_missing", "search.must_contain")
    );
    let exhausted = ask(
        &service,
        json!({"kind": "k_best", "max_rows": 2}),
        json!({"n": 9}),
    );
    assert_eq!(
        (exhausted.status, exhausted.error_code().as_str()),
        (422, "search_exhausted")
    );
    assert!(exhausted.text().contains("max_rows"), "{}", exhausted.text());
}

/// Fewer choices than were asked for, each of which says how many there are; a stream writes nothing for the
/// others.
#[test]
fn a_search_returns_as_many_choices_as_it_found() {
    let service = Service::start();
    let kinds = [
        json!({"search": "beam"}),
        json!({"search": "best_first_beam"}),
        json!({"search": {"kind": "diverse_beam", "width": 4}}),
        json!({"search": "k_best"}),
        json!({"search": {"kind": "dynamic_beam", "must_contain": ["x"]}}),
        json!({"search": "a_star_esque"}),
        json!({"use_beam_search": true}),
    ];
    for mut body in kinds {
        (body["guided_regex"], body["n"]) = (json!("x[bc]"), json!(4));
        let answer = service.chat("echo x", body.clone());
        let found = told(&answer);
        let texts: Vec<&str> = found.iter().map(|(text, _)| text.as_str()).collect();
        assert!(
            texts == ["xb", "xc"] || texts == ["xc", "xb"],
            "{body}: {texts:?}"
        );
        for (_, told) in &found {
            assert_eq!((&told["found"], told.get("met")), (&json!(2), None), "{body}");
        }
        body["stream"] = json!(true);
        let events = service.chat("echo x", body.clone()).events();
        let of = |index: usize| {
            let choices = events.iter().filter_map(|event| event["choices"].get(0));
            choices
                .filter(|choice| choice["index"] == index)
                .collect::<Vec<_>>()
        };
        for index in 0..2 {
            let of = of(index);
            assert_eq!(of[0]["delta"]["role"], "assistant", "{body}");
            assert_eq!(of[of.len() - 1]["finish_reason"], "stop", "{body}");
        }
        assert!(of(2).is_empty() && of(3).is_empty(), "{body}: {events:?}");
        assert_eq!(events.last(), Some(&json!("[DONE]")));
    }
}

/// Each prompt of a completion has the choices that were found for it, at their places.
#[test]
fn prompts_have_the_choices_found_for_them() {
    let service = Service::start();
    let body =
        json!({"model": "m", "prompt": ["x", "y"], "search": "k_best", "n": 3, "guided_regex": "x[bc]"});
    let answer = service.post("/v1/completions", &body.to_string());
    assert_eq!(answer.status, 200, "{}", answer.text());
    let choices = answer.json()["choices"].as_array().expect("choices").clone();
    let indices: Vec<&Value> = choices.iter().map(|choice| &choice["index"]).collect();
    assert_eq!(indices, [0, 1, 3, 4]);
}

#[test]
fn an_exact_search_that_meets_its_bound_returns_what_it_has() {
    let service = Service::start();
    let search = json!({"kind": "k_best", "max_rows": 4});
    let found = told(&ask(&service, search, json!({"n": 9})));
    assert!((1..9).contains(&found.len()), "{found:?}");
    for (_, told) in &found {
        assert_eq!(
            (&told["found"], &told["met"]),
            (&json!(found.len()), &json!("max_rows"))
        );
    }
}

/// A search that ranks tells nothing before it is over; one that draws tells what it has kept.
#[test]
fn searches_can_be_streamed() {
    let service = Service::start();
    for search in ["k_best", "cntp"] {
        let answer = ask(
            &service,
            json!(search),
            json!({"stream": true, "temperature": 1, "seed": 1}),
        );
        assert_eq!(answer.status, 200);
        let text = answer.text();
        assert!(
            text.contains("[DONE]") && text.contains("\"finish_reason\":\"stop\""),
            "{text}"
        );
    }
}

#[test]
fn clauses_of_phrases_are_for_a_star_esque() {
    let service = Service::start();
    let search = json!({"kind": "a_star_esque", "must_contain": [["cb", "bcb"]], "must_not_contain": ["bb"]});
    let (text, about) = told(&ask(&service, search, json!({}))).remove(0);
    assert!(text.contains("cb") && !text.contains("bb"), "{text}");
    assert_eq!(about["law"], "a-star-esque");
    let missing = json!({"kind": "a_star_esque", "must_contain": ["bccccc"]});
    let answer = ask(&service, missing, json!({}));
    assert_eq!(
        (answer.status, &answer.json()["error"]["code"]),
        (422, &json!("phrases_missing"))
    );
    let wrong = |search: Value| param(&ask(&service, search, json!({})));
    let of = |field: &str| (400, format!("search.{field}"));
    assert_eq!(
        wrong(json!({"kind": "dynamic_beam", "must_contain": [["b", "c"]]})),
        of("must_contain")
    );
    assert_eq!(
        wrong(json!({"kind": "beam", "must_not_contain": ["b"]})),
        of("must_not_contain")
    );
    assert_eq!(
        wrong(json!({"kind": "a_star_esque", "must_contain": [[]]})),
        of("must_contain")
    );
    let many: Vec<&str> = vec!["b"; 10];
    let both = json!({"kind": "a_star_esque", "must_contain": many, "must_not_contain": many});
    assert_eq!(wrong(both), of("must_contain"));
}
