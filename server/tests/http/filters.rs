//! Filters under laws about the model and searches: what the request asks for is a part of the model, what
//! the model recommends is not, and an answer says which it was.

use lexiform_server::model::text::Defaults;
use serde_json::{Value, json};

use super::service::{Answer, Service};

/// Asks for `xb` or `xc` of a model that wants to write `x` and end, so that few filters leave a `b` or `c`.
fn ask(service: &Service, more: Value) -> Answer {
    let mut body = json!({"guided_regex": "x[bc]", "seed": 5});
    if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
        body.extend(more);
    }
    service.chat("echo x", body)
}

fn law_of(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["choices"][0]["lexiform"]["law"].clone()
}

const LAWS: [&str; 6] = ["global", "asap", "aprad", "smc", "sir", "mcmc"];

#[test]
fn filters_that_leave_nothing_are_named_under_every_law_and_search() {
    let service = Service::start();
    let mut asked: Vec<Value> = LAWS
        .iter()
        .map(|law| json!({"law": law, "temperature": 1}))
        .collect();
    asked.push(json!({"law": "smc", "proposal": "awrs", "temperature": 1}));
    asked.push(json!({"law": "sir", "proposal": "twisted", "temperature": 1}));
    for search in [
        "beam",
        "best_first_beam",
        "diverse_beam",
        "k_best",
        "a_star_esque",
    ] {
        asked.push(json!({"search": search}));
    }
    for mut more in asked {
        (more["top_k"], more["min_p"]) = (json!(1), json!(0.5));
        let answer = ask(&service, more.clone());
        let error = answer.json()["error"].clone();
        assert_eq!(
            (answer.status, answer.error_code().as_str(), &error["param"]),
            (422, "filtered_out", &json!("top_k")),
            "{more}: {}",
            answer.text()
        );
        let message = error["message"].as_str().expect("a message");
        assert!(
            message.contains("top_k and min_p") && !message.contains("max_attempts"),
            "{message}"
        );
    }
    // After the mask every filter leaves something.
    let local = ask(&service, json!({"temperature": 1, "top_k": 1}));
    assert_eq!(law_of(&local), "local-filtered");
    let cautious = ask(&service, json!({"search": "cntp", "temperature": 1, "top_k": 1}));
    assert_eq!(law_of(&cautious), "cntp");
}

#[test]
fn a_way_out_is_taken_where_filters_leave_nothing() {
    let service = Service::start();
    for way_out in ["weighted", "mcmc"] {
        for max_attempts in [1, 100] {
            let more = json!({
                "law": "global",
                "temperature": 1,
                "top_k": 1,
                "max_attempts": max_attempts,
                "on_exhaustion": way_out
            });
            let answer = ask(&service, more);
            assert_eq!(law_of(&answer), "local-filtered");
            let sample = answer.json()["choices"][0]["lexiform"].clone();
            assert!(
                sample["log_weight"].as_f64().expect("a weight") < -10.0,
                "{sample}"
            );
        }
    }
}

/// A model that recommends a filter that leaves nothing of the constraint: only the local law applies it.
#[test]
fn what_a_model_recommends_is_no_part_of_the_laws_about_it() {
    let service = Service::recommending(Defaults {
        top_k: Some(1),
        top_p: 0.5,
        ..Defaults::default()
    });
    for law in LAWS {
        let expected = if law == "global" { "global-exact" } else { law };
        assert_eq!(law_of(&ask(&service, json!({"law": law}))), expected);
    }
    assert_eq!(law_of(&ask(&service, json!({}))), "local-filtered");
    assert_eq!(law_of(&ask(&service, json!({"search": "beam"}))), "beam");
}

/// What the request asks for itself applies, and the answer says so.
#[test]
fn what_a_request_filters_is_told_by_the_law() {
    let service = Service::start();
    for law in LAWS {
        let more = json!({"law": law, "temperature": 1, "top_n_sigma": 1000, "particles": null});
        let expected = match law {
            "global" => "global-exact-filtered".to_owned(),
            law => format!("{law}-filtered"),
        };
        assert_eq!(law_of(&ask(&service, more)), json!(expected));
    }
}

/// The model of this service is greedy where a request does not say otherwise.
#[test]
fn a_law_about_the_model_has_a_temperature() {
    let service = Service::start();
    for law in LAWS {
        let said = ask(&service, json!({"law": law, "temperature": 1}));
        let unsaid = ask(&service, json!({"law": law}));
        assert_eq!(unsaid.status, 200, "{law}: {}", unsaid.text());
        assert_eq!(
            said.json()["choices"][0]["message"],
            unsaid.json()["choices"][0]["message"]
        );
        let greedy = ask(&service, json!({"law": law, "temperature": 0}));
        assert_eq!(
            (greedy.status, &greedy.json()["error"]["param"]),
            (400, &json!("temperature"))
        );
    }
    assert_eq!(law_of(&ask(&service, json!({}))), "greedy");
}
