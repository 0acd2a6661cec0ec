//! `POST /v1/decisions`: probabilities of closed answers.

use serde_json::{Value, json};

use super::service::Service;

fn decide(service: &Service, input: &str, questions: Value) -> Vec<Value> {
    let body = json!({"model": "m", "input": input, "questions": questions});
    let answer = service.post("/v1/decisions", &body.to_string());
    assert_eq!(answer.status, 200, "{}", answer.text());
    let json = answer.json();
    assert!(
        json["usage"]["input_tokens"]
            .as_u64()
            .is_some_and(|tokens| tokens > 0)
    );
    json["answers"].as_array().cloned().unwrap_or_default()
}

fn sum(entries: &Value) -> f64 {
    let entries = entries.as_array().expect("a list");
    entries
        .iter()
        .filter_map(|entry| entry["probability"].as_f64())
        .sum()
}

#[test]
fn the_answer_that_the_model_would_write_is_the_likely_one() {
    let service = Service::start();
    // The last message is the question, and the script echoes what stands behind its first word.
    let questions = json!([
        {"type": "choice", "name": "c", "instructions": "echo banana", "choices":
            [{"value": "blue"}, {"value": "banana", "description": "a fruit"}, {"value": true}]},
        {"type": "score", "instructions": "echo good", "levels": [{"label": "bad"}, {"label": "good"}]},
        {"type": "predicate", "instructions": "echo yes"},
        {"type": "predicate", "instructions": [{"type": "input_text", "text": "echo no"}]},
    ]);
    let answers = decide(&service, "some input", questions);
    assert_eq!(
        (&answers[0]["choice"], &answers[0]["name"]),
        (&json!("banana"), &json!("c"))
    );
    assert!((sum(&answers[0]["probabilities"]) - 1.0).abs() < 1e-9);
    assert!(
        answers[0]["confidence"].as_f64().is_some_and(|p| p > 0.99),
        "{}",
        answers[0]
    );
    assert!(
        answers[1]["score"].as_f64().is_some_and(|score| score > 0.99),
        "{}",
        answers[1]
    );
    assert_eq!(answers[1]["probabilities"][1]["label"], "good");
    assert!(
        answers[2]["probability"].as_f64().is_some_and(|p| p > 0.99),
        "{}",
        answers[2]
    );
    assert!(
        answers[3]["probability"].as_f64().is_some_and(|p| p < 0.01),
        "{}",
        answers[3]
    );
}

#[test]
fn an_answer_that_begins_another_is_told_apart_by_its_end() {
    let service = Service::start();
    let choices: Vec<Value> = ["a", "a ", "a b", "a bc"]
        .iter()
        .map(|text| json!({"value": text}))
        .collect();
    // Behind the options, nothing follows that could be the answer: the script goes on with the whole question.
    let question = json!([{"type": "choice", "instructions": "echo a b", "choices": choices}]);
    let answers = decide(&service, "x", question);
    assert!((sum(&answers[0]["probabilities"]) - 1.0).abs() < 1e-9);
    assert!(
        answers[0]["probabilities"][2]["probability"].as_f64()
            > answers[0]["probabilities"][3]["probability"].as_f64()
    );
}

#[test]
fn many_choices_and_many_questions_are_answered() {
    let service = Service::start();
    let choices: Vec<Value> = (0..255)
        .map(|number| json!({"value": format!("option {number:03}")}))
        .collect();
    let question = json!({"type": "choice", "instructions": "echo option 077", "choices": choices});
    let answers = decide(&service, "x", json!([question]));
    assert_eq!(answers[0]["choice"], "option 077");
    let questions: Vec<Value> = (0..40)
        .map(|_| json!({"type": "predicate", "instructions": "echo yes"}))
        .collect();
    assert_eq!(decide(&service, "x", json!(questions)).len(), 40);
}

#[test]
fn the_same_question_gets_the_same_numbers() {
    let service = Service::start();
    let question = json!([{"type": "predicate", "instructions": "is it?"}]);
    assert_eq!(
        decide(&service, "x", question.clone()),
        decide(&service, "x", question)
    );
}
