//! Fields that this server does not read: refused where they could mean a constraint or a limit, named
//! otherwise, and never passed over without a word.

use serde_json::{Value, json};

use super::service::{Answer, Service, chat};

/// A small body of each route that reads one, without anything that is wrong.
fn bodies() -> Vec<(&'static str, Value)> {
    let question = json!({"type": "predicate", "instructions": "q"});
    vec![
        ("/v1/chat/completions", chat("echo x", json!({"max_tokens": 4}))),
        (
            "/v1/completions",
            json!({"model": "m", "prompt": "x", "max_tokens": 4}),
        ),
        (
            "/v1/responses",
            json!({"model": "m", "input": "echo x", "max_output_tokens": 4}),
        ),
        (
            "/v1/decisions",
            json!({"model": "m", "input": "x", "questions": [question]}),
        ),
        ("/tokenize", json!({"prompt": "x"})),
        ("/detokenize", json!({"tokens": [97]})),
    ]
}

fn with(mut body: Value, name: &str, value: Value) -> String {
    body[name] = value;
    body.to_string()
}

fn is_refused(answer: &Answer, param: &str, meant: &str) {
    assert_eq!(answer.status, 400, "{param}: {}", answer.text());
    assert_eq!(answer.error_code(), "unknown_field", "{}", answer.text());
    let error = answer.json()["error"].clone();
    assert_eq!(error["param"], param);
    let message = error["message"].as_str().unwrap_or_default();
    assert!(message.contains(meant), "{message}");
}

/// Guards against free text where a constraint was asked for in a word that is misspelt.
#[test]
fn what_resembles_a_constraint_or_a_limit_is_refused_on_every_route() {
    let service = Service::start();
    let schema = json!({"type": "json_schema", "json_schema": {"name": "P", "schema": {"type": "null"}}});
    for (path, body) in bodies() {
        for (name, value) in [
            ("response_fromat", &schema),
            ("responseFormat", &schema),
            ("temprature", &json!(0)),
            ("max_tokns", &json!(5)),
            ("stop_sequences", &json!(["x"])),
            ("tool_choise", &json!("required")),
            ("extra_body", &json!({"guided_regex": "a"})),
            ("settings", &json!({"temperature": 0})),
        ] {
            let answer = service.post(path, &with(body.clone(), name, value.clone()));
            assert_eq!(answer.status, 400, "{path} {name}: {}", answer.text());
            let codes = ["unknown_field", "unsupported_parameter"];
            assert!(codes.contains(&answer.error_code().as_str()), "{path} {name}");
            assert_eq!(answer.json()["error"]["param"], name, "{path}");
        }
    }
    let sent = |name: &str, value: Value| service.chat("echo x", json!({name: value}));
    is_refused(
        &sent("response_fromat", schema),
        "response_fromat",
        "did you mean 'response_format'?",
    );
    is_refused(&sent("temp", json!(0)), "temp", "did you mean 'temperature'?");
    // Known on another route, and not read on this one.
    let tools = with(json!({"model": "m", "prompt": "x"}), "tools", json!([]));
    is_refused(
        &service.post("/v1/completions", &tools),
        "tools",
        "does not apply here",
    );
}

#[test]
fn what_resembles_one_inside_an_object_is_refused_at_its_place() {
    let service = Service::start();
    let function = json!({"name": "f", "parameters": {"type": "object"}});
    let mut misspelt = function.clone();
    misspelt["strct"] = json!(true);
    let format = |inner: Value| json!({"response_format": {"type": "json_schema", "json_schema": inner}});
    let schema = json!({"type": "null"});
    let table = [
        (
            format(json!({"name": "P", "schema": schema, "strct": true})),
            "response_format.json_schema.strct",
            "'strict'",
        ),
        (
            json!({"structured_outputs": {"regx": "a", "regex": "a"}}),
            "structured_outputs.regx",
            "'regex'",
        ),
        (
            json!({"tools": [{"type": "function", "function": misspelt}]}),
            "tools[0].function.strct",
            "'strict'",
        ),
        (
            json!({"tools": [{"type": "function", "function": function, "strict": true}]}),
            "tools[0].strict",
            "does not apply here",
        ),
        (
            json!({"tools": [{"type": "function", "function": function}],
                   "tool_choice": {"type": "function", "function": {"name": "f"}, "mod": "auto"}}),
            "tool_choice.mod",
            "",
        ),
        (
            json!({"messages": [{"role": "user", "content": "x", "response_format": {}}]}),
            "messages[0].response_format",
            "does not apply here",
        ),
        (
            json!({"stream": true, "stream_options": {"max_tokens": 3}}),
            "stream_options.max_tokens",
            "does not apply here",
        ),
    ];
    for (more, param, meant) in table {
        let answer = service.chat("echo x", more);
        assert_eq!(answer.status, 400, "{param}: {}", answer.text());
        assert_eq!(answer.json()["error"]["param"], param);
        let message = answer.json()["error"]["message"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        assert!(message.contains(meant), "{message}");
    }
}

/// Guards against fields that are passed over without a word.
#[test]
fn what_resembles_nothing_is_named_in_the_answer() {
    let service = Service::start();
    for (path, body) in bodies() {
        let answer = service.post(path, &with(body.clone(), "brand_new_field", json!(3)));
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert_eq!(
            answer.header("x-lexiform-ignored"),
            Some("brand_new_field"),
            "{path}"
        );
        assert_eq!(
            answer.json()["lexiform"]["ignored"],
            json!(["brand_new_field"]),
            "{path}"
        );
        let plain = service.post(path, &body.to_string());
        assert_eq!(plain.header("x-lexiform-ignored"), None, "{path}");
        assert!(plain.json()["lexiform"].get("ignored").is_none(), "{path}");
    }
    assert_eq!(service.metric("lexiform_ignored_fields_total"), 6);
}

#[test]
fn places_inside_objects_are_named_also_beside_a_constraint_and_in_streams() {
    let service = Service::start();
    let part = json!([{"type": "text", "text": "echo b", "cache_control": {"type": "ephemeral"}}]);
    let more = json!({"guided_choice": ["a", "b"], "provider": {"order": []}, "user": "u", "metadata": {"a": "b"},
                      "messages": [{"role": "user", "content": part, "mood": "good"}]});
    let named = json!([
        "messages[0].content[0].cache_control",
        "messages[0].mood",
        "provider"
    ]);
    let answer = service.chat("", more.clone());
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["lexiform"]["ignored"], named);
    assert_eq!(answer.json()["lexiform"]["enforced"], "exact");
    let mut streamed = chat("", more);
    streamed["stream"] = json!(true);
    streamed["stream_options"] = json!({"include_obfuscation": false, "mood_of_it": 1});
    let answer = service.post("/v1/chat/completions", &streamed.to_string());
    assert_eq!(answer.status, 200, "{}", answer.text());
    let header = answer.header("x-lexiform-ignored").unwrap_or_default().to_owned();
    assert!(
        header.contains("stream_options.mood_of_it") && !header.contains("obfuscation"),
        "{header}"
    );
    let events = answer.events();
    assert!(
        events.iter().any(|event| event["lexiform"]["ignored"].is_array()),
        "{}",
        answer.text()
    );
}

/// Guards against answers, headers and work that grow with what a client invents.
#[test]
fn many_unknown_fields_are_told_in_short_or_refused() {
    let service = Service::start();
    let invented = |count: usize| {
        let fields = (0..count).map(|number| (format!("ünknøwn{number}"), json!(1)));
        service.chat("echo x", Value::Object(fields.collect()))
    };
    let answer = invented(100);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let ignored = answer.json()["lexiform"]["ignored"].clone();
    assert_eq!(ignored.as_array().map(Vec::len), Some(33));
    assert_eq!(ignored[32], "and 68 more");
    assert!(
        answer
            .header("x-lexiform-ignored")
            .is_some_and(|value| value.len() <= 1_000 && value.is_ascii())
    );
    let answer = invented(30_000);
    assert_eq!(
        (answer.status, answer.error_code().as_str()),
        (400, "unknown_field")
    );
    assert!(answer.body.len() < 10_000);
}

/// Guards against fields that are valid and do nothing, without a word.
#[test]
fn what_has_no_effect_beside_other_fields_is_named_in_the_answer() {
    let service = Service::start();
    let prediction = json!({"type": "content", "content": "xb"});
    for (more, named) in [
        (json!({"weights": true}), vec!["weights"]),
        (json!({"weights": true, "temperature": 0}), vec!["weights"]),
        (
            json!({"weights": true, "temperature": 1, "best_of": 2}),
            vec!["weights"],
        ),
        (json!({"weights": true, "law": "mcmc"}), vec!["weights"]),
        (json!({"weights": true, "law": "aprad"}), vec!["weights"]),
        (json!({"weights": true, "search": "cntp"}), vec!["weights"]),
        (
            json!({"weights": true, "seed": 1, "draft": true, "prediction": prediction, "search": "k_best"}),
            vec!["weights", "seed", "draft", "prediction"],
        ),
        (
            json!({"seed": 1, "draft": true, "use_beam_search": true}),
            vec!["seed", "draft"],
        ),
        (
            json!({"seed": 1, "draft": true, "temperature": 1, "search": "cntp"}),
            vec!["draft"],
        ),
        (
            json!({"prediction": prediction, "draft": false}),
            vec!["prediction"],
        ),
        (
            json!({"draft": true, "prediction": prediction, "law": "smc", "seed": 1}),
            vec!["draft", "prediction"],
        ),
        (json!({"weights": true, "temperature": 1}), vec![]),
        (json!({"weights": true, "temperature": 1, "best_of": 1}), vec![]),
        (json!({"weights": true, "law": "global"}), vec![]),
        (
            json!({"seed": 1, "draft": true, "prediction": prediction}),
            vec![],
        ),
        (
            json!({"draft": true, "prediction": prediction, "law": "smc"}),
            vec![],
        ),
        (json!({"draft": false, "search": "beam"}), vec![]),
        (json!({"seed": 1, "temperature": 1, "search": "cntp"}), vec![]),
    ] {
        let mut body = more.clone();
        body["guided_regex"] = json!("x[bc]");
        if body.get("search") == Some(&json!("cntp")) {
            body["temperature"] = json!(1);
        }
        let answer = service.chat("echo x", body);
        assert_eq!(answer.status, 200, "{more}: {}", answer.text());
        let told = answer.json()["lexiform"]["ignored"].clone();
        let expected = match named.is_empty() {
            true => Value::Null,
            false => json!(named),
        };
        assert_eq!(told, expected, "{more}");
        let weighed = answer.json()["choices"][0]["lexiform"]
            .get("log_weight")
            .is_some();
        if more.get("weights").is_some() {
            assert_eq!(weighed, named.is_empty(), "{more}");
        }
    }
    let body = json!({"model": "m", "prompt": "x", "guided_regex": "x[bc]", "weights": true});
    let answer = service.post("/v1/completions", &body.to_string());
    assert_eq!(answer.json()["lexiform"]["ignored"], json!(["weights"]));
}

#[test]
fn a_misspelt_law_is_answered_with_the_one_that_was_meant() {
    let service = Service::start();
    for (more, param, hint) in [
        (json!({"lwa": "global"}), "lwa", "did you mean 'law'?"),
        (json!({"law": "gobal"}), "law", "did you mean 'global'?"),
        (
            json!({"on_exhaustion": "wieghted", "law": "global"}),
            "on_exhaustion",
            "did you mean 'weighted'?",
        ),
        (
            json!({"search": "bestfirst_beam"}),
            "search.kind",
            "did you mean 'best_first_beam'?",
        ),
    ] {
        let answer = service.chat("echo x", more.clone());
        let error = answer.json()["error"].clone();
        assert_eq!((answer.status, &error["param"]), (400, &json!(param)), "{more}");
        assert!(
            error["message"].as_str().expect("a message").contains(hint),
            "{error}"
        );
    }
    let other = service.chat("echo x", json!({"law": "lwa"}));
    let message = other.json()["error"]["message"].to_string();
    assert!(
        message.contains("'mcmc'") && !message.contains("did you mean"),
        "{message}"
    );
}
