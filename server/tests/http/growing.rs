//! What is told of the values in an answer: how sure the model was of each, and how they grow.

use serde_json::{Value, json};

use super::service::Service;

fn person() -> Value {
    json!({"type": "object", "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
           "sure": {"enum": ["yes", "no"]}}, "required": ["name", "tags", "sure"], "additionalProperties": false})
}

/// What the model says: all as the schema wants it, but for the last value.
const SAID: &str = r#"echo {"name":"Ada","tags":["a","b"],"sure":"!!!"}"#;

fn fields(choice: &Value) -> Vec<(String, f64, f64)> {
    let fields = choice["lexiform"]["fields"].as_array().expect("fields");
    let number = |field: &Value, name: &str| field[name].as_f64().expect("a number");
    let path = |field: &Value| field["path"].as_str().expect("a pointer").to_owned();
    let told = fields.iter().map(|field| {
        let probability = number(field, "probability");
        assert!(
            (number(field, "logprob").exp() - probability).abs() < 1e-9,
            "{field}"
        );
        (path(field), probability, number(field, "mass"))
    });
    told.collect()
}

/// K2: a score for each field, which clients else put together from log-probabilities by hand.
#[test]
fn each_value_tells_how_sure_the_model_was() {
    let service = Service::start();
    let wish = json!({"guided_json": person(), "field_confidence": true, "whitespace": "compact"});
    let answer = service.chat(SAID, wish.clone());
    assert_eq!(answer.status, 200, "{}", answer.text());
    let told = fields(&answer.json()["choices"][0]);
    let paths: Vec<&str> = told.iter().map(|(path, ..)| path.as_str()).collect();
    assert_eq!(paths, ["/name", "/tags/0", "/tags/1", "/sure"]);
    for (path, probability, mass) in &told[..3] {
        assert!(
            *probability > 0.99 && *mass > 0.99,
            "{path}: {probability} {mass}"
        );
    }
    let (_, probability, mass) = told[3];
    // It wanted neither word; what it got, the constraint chose.
    assert!(probability < 1e-6 && mass < 1e-6, "{probability} {mass}");

    let mut streamed = wish;
    streamed["stream"] = json!(true);
    let events = service.chat(SAID, streamed).events();
    let end = events
        .iter()
        .find(|event| event["choices"][0]["lexiform"].is_object());
    assert_eq!(fields(&end.expect("an end")["choices"][0]), told);
    let plain = service.chat(SAID, json!({"guided_json": person()}));
    assert!(plain.json()["choices"][0]["lexiform"].get("fields").is_none());
}

#[test]
fn the_arguments_of_calls_tell_it_too() {
    let service = Service::start();
    let tool = json!({"type": "function", "function": {"name": "f", "parameters": person()}});
    let choice = json!({"type": "function", "function": {"name": "f"}});
    let said = SAID.replace("!!!", "yes");
    let answer = service.chat(
        &said,
        json!({"tools": [tool], "tool_choice": choice, "field_confidence": true}),
    );
    let answer = answer.json();
    let told = &answer["choices"][0]["lexiform"]["fields"];
    assert_eq!(
        (&told[0]["path"], &told[0]["call"]),
        (&json!("/name"), &json!(0)),
        "{answer}"
    );
    assert_eq!(told.as_array().map(Vec::len), Some(4));
}

fn apply(document: &mut Value, operation: &Value) {
    assert_eq!(operation["op"], "add");
    let path = operation["path"].as_str().expect("a pointer");
    let value = operation["value"].clone();
    match path.rsplit_once('/') {
        None => *document = value,
        Some((holder, last)) => match document.pointer_mut(holder).expect("a holder") {
            Value::Array(items) => items.insert(last.parse().expect("a place"), value),
            holder => holder[last] = value,
        },
    }
}

#[test]
fn a_value_grows_by_patches_and_is_always_a_part_of_the_whole() {
    let service = Service::start();
    let events = service
        .chat(
            SAID,
            json!({"guided_json": person(), "stream": true, "stream_options": {"json_patch": true}}),
        )
        .events();
    let (mut document, mut text, mut steps) = (Value::Null, String::new(), 0);
    for event in &events {
        let choice = &event["choices"][0];
        text.push_str(choice["delta"]["content"].as_str().unwrap_or_default());
        for operation in choice["lexiform_patch"].as_array().into_iter().flatten() {
            // What is told is there: a value is never told before its text is complete.
            apply(&mut document, operation);
            steps += 1;
        }
    }
    assert_eq!(
        Some(&document),
        serde_json::from_str(&text).ok().as_ref(),
        "{text}"
    );
    assert_eq!(
        steps, 6,
        "the object, the name, the list, its two items, the word"
    );
}

#[test]
fn patches_want_a_json_constraint_and_a_chat() {
    let service = Service::start();
    let options = json!({"json_patch": true});
    let answer = service.chat("echo x", json!({"stream": true, "stream_options": options}));
    assert_eq!(
        (answer.status, answer.error_code().as_str()),
        (400, "invalid_value")
    );
    assert_eq!(answer.json()["error"]["param"], "stream_options.json_patch");
    let body = json!({"model": "m", "prompt": "x", "guided_json": person(), "stream": true, "stream_options": options});
    let answer = service.post("/v1/completions", &body.to_string());
    assert_eq!(
        (answer.status, answer.error_code().as_str()),
        (400, "unsupported_parameter")
    );
}
