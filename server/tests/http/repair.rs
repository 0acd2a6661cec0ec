//! Texts that do not match their constraint, and the nearest ones that do.

use serde_json::{Value, json};

use super::service::Service;

fn person() -> Value {
    json!({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
           "required": ["name", "age"], "additionalProperties": false})
}

fn repaired(service: &Service, body: &Value) -> Value {
    let answer = service.post("/v1/repair", &body.to_string());
    assert_eq!(answer.status, 200, "{body}: {}", answer.text());
    answer.json()
}

/// Guards against values that are cut, mixed or renamed (A7).
#[test]
fn values_of_json_are_kept_whole() {
    let service = Service::start();
    let text = "Here you are:\n```json\n{age: 3, 'name': 'Bob', \"x\": 12}\n```";
    for field in ["guided_json", "json_schema"] {
        let body = repaired(&service, &json!({field: person(), "text": text}));
        assert_eq!(body["text"], "{\"name\": \"Bob\", \"age\": 3}");
        let changes = body["changes"].as_array().expect("changes").iter();
        let changes: Vec<_> = changes
            .map(|change| (&change["kind"], &change["pointer"]))
            .collect();
        let expected = [
            ("reordered", ""),
            ("respelled", "/name"),
            ("dropped", "/x"),
            ("around", ""),
            ("around", ""),
        ];
        let expected = expected.map(|(kind, pointer)| (json!(kind), json!(pointer)));
        assert_eq!(
            changes,
            expected
                .iter()
                .map(|(kind, pointer)| (kind, pointer))
                .collect::<Vec<_>>()
        );
    }
}

#[test]
fn a_text_is_repaired_and_the_edits_are_told() {
    let service = Service::start();
    let text = "{\"name\": \"Bø\",\n 'age\": 3}";
    let body = repaired(
        &service,
        &json!({"guided_json": person(), "text": text, "mode": "nearest"}),
    );
    assert_eq!((&body["object"], &body["cost"]), (&json!("repair"), &json!(1)));
    assert_eq!(body["text"], "{\"name\": \"Bø\",\n \"age\": 3}");
    let edit = json!({"offset": 17, "line": 2, "column": 2, "removed": "'", "inserted": "\""});
    assert_eq!(body["edits"], json!([edit]));
    assert_eq!(body["changes"], json!([]));
    let valid = repaired(&service, &json!({"guided_regex": "a+", "text": "aaa"}));
    assert_eq!((&valid["cost"], &valid["edits"]), (&json!(0), &json!([])));
}

#[test]
fn all_kinds_of_constraints_are_repaired_and_costs_are_what_was_asked_for() {
    let service = Service::start();
    let made = service.post("/v1/grammars", &json!({"guided_json": person()}).to_string());
    let id = made.json()["id"].clone();
    for (mut body, cost) in [
        (json!({"guided_regex": "[0-9]{4}", "text": "20x26"}), 1),
        (
            json!({"guided_grammar": "s ::= \"(\" s \")\" | \"\"", "text": "((("}),
            2,
        ),
        (json!({"guided_choice": ["yes", "no"], "text": "yess"}), 1),
        (
            json!({"grammar_id": id, "text": "{\"name\": \"\", \"age\": 1"}),
            1,
        ),
    ] {
        let plain = repaired(&service, &body);
        assert_eq!(plain["cost"], cost, "{plain}");
        body["costs"] = json!({"insert": 5, "delete": 5, "substitute": 5});
        assert_eq!(repaired(&service, &body)["cost"], 5 * cost);
    }
}

#[test]
fn what_cannot_be_repaired_is_refused_by_name() {
    let service = Service::start();
    let ask = |body: &Value| service.post("/v1/repair", &body.to_string());
    let long = "a".repeat((64 << 10) + 1);
    for (body, param) in [
        (json!({"guided_regex": "a"}), "text"),
        (json!({"guided_regex": "a", "text": 3}), "text"),
        (json!({"text": "a"}), "grammar_id"),
        (
            json!({"guided_regex": "a", "text": "a", "mode": "rewrite"}),
            "mode",
        ),
        (
            json!({"guided_regex": "a", "text": "a", "costs": {"insert": 0}}),
            "costs.insert",
        ),
        (json!({"guided_regex": "a", "text": "a", "costs": 3}), "costs"),
        (json!({"guided_regex": "a", "text": long}), "text"),
    ] {
        let answer = ask(&body);
        let told = answer.json()["error"]["param"].clone();
        assert_eq!((answer.status, told), (400, json!(param)), "{}", answer.text());
    }
    let far = ask(&json!({"guided_regex": "a{3000}", "text": "b".repeat(3_000)}));
    assert_eq!((far.status, far.error_code().as_str()), (422, "repair_too_far"));
    assert!(far.text().contains("nodes"));
}
