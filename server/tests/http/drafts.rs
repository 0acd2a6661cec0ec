//! The field `draft` of a request: what is drafted, how much of it, and by which rule it is verified.

use serde_json::{Value, json};

use super::service::Service;

/// A text of which the constraint forces most.
const FORCED: &str = "forced text of some length [ab]";

/// Returns the answer with this value of `draft`: its text, and the number of drafted tokens.
fn drafted(service: &Service, draft: &Value) -> (Value, u64) {
    let wish = json!({"guided_regex": FORCED, "temperature": 0, "draft": draft});
    let answer = service.chat("echo a", wish);
    assert_eq!(answer.status, 200, "{draft}: {}", answer.text());
    let choice = answer.json()["choices"][0].clone();
    let count = choice["lexiform"]["drafted"].as_u64().expect("a count");
    (choice["message"]["content"].clone(), count)
}

#[test]
fn tokens_are_drafted_from_the_sources_that_a_request_names() {
    let service = Service::start();
    let (text, all) = drafted(&service, &json!(true));
    let (forced, of_grammar) = drafted(&service, &json!({"sources": ["grammar"]}));
    assert!(all > 10 && of_grammar > 10, "{all}, {of_grammar}");
    assert_eq!(forced, text);
    for none in [json!(false), json!({"sources": ["samples"]})] {
        assert_eq!(drafted(&service, &none), (text.clone(), 0), "{none}");
    }
}

/// One token a pass is drafted beside the one that is drawn, so half of the text is.
#[test]
fn no_more_tokens_are_drafted_than_a_request_allows() {
    let service = Service::start();
    let (text, all) = drafted(&service, &json!({"sources": ["grammar"]}));
    let (same, few) = drafted(&service, &json!({"sources": ["grammar"], "max_tokens": 1}));
    assert_eq!(text, same);
    assert!(0 < few && 3 * few < 2 * all, "{few} of {all}");
}

#[test]
fn a_rule_that_nothing_obeys_is_named_and_one_that_changes_the_text_of_a_seed_is_refused() {
    let service = Service::start();
    let wish = json!({"guided_regex": "[ab]", "draft": {"candidates": 3, "rule": "k_seq"}});
    let answer = service.chat("echo a", wish);
    let ignored = &answer.json()["lexiform"]["ignored"];
    assert_eq!(
        ignored,
        &json!(["draft.candidates", "draft.rule"]),
        "there is no draft model"
    );
    // Stores obey this one.
    let wish = json!({"guided_regex": "[ab]{9}", "temperature": 1, "draft": {"rule": "sampled"}});
    let answer = service.chat("echo a", wish);
    assert_eq!(
        (answer.status, &answer.json()["lexiform"]["ignored"]),
        (200, &Value::Null)
    );
    for rule in ["residual", "sampled"] {
        let wish = json!({"guided_regex": "[ab]", "seed": 1, "draft": {"rule": rule}});
        let answer = service.chat("echo a", wish);
        assert_eq!(
            (answer.status, &answer.json()["error"]["param"]),
            (400, &json!("draft.rule"))
        );
    }
}
