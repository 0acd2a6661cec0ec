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

/// The probabilities of a list of options, in order, which add up to 1.
fn options(field: &Value) -> Vec<(Value, f64)> {
    let options = field["options"].as_array().cloned().unwrap_or_default();
    let option = |option: &Value| {
        (
            option["value"].clone(),
            option["probability"].as_f64().expect("a number"),
        )
    };
    let options: Vec<(Value, f64)> = options.iter().map(option).collect();
    let sum: f64 = options.iter().map(|(_, probability)| probability).sum();
    assert!(options.is_empty() || (sum - 1.0).abs() < 1e-9, "{field}");
    options
}

#[test]
fn the_values_that_could_have_stood_in_a_place_tell_how_likely_each_was() {
    let service = Service::start();
    let wish = json!({"guided_json": person(), "enum_scores": true, "whitespace": "compact"});
    let answer = service.chat(SAID, wish.clone());
    assert_eq!(answer.status, 200, "{}", answer.text());
    let answer = answer.json();
    let told = &answer["choices"][0]["lexiform"]["fields"];
    assert_eq!(options(&told[0]), [], "a name is free");
    for (number, letters) in [(1, ["a", "b"]), (2, ["b", "a"])] {
        let [(first, high), (second, low)] = &options(&told[number])[..] else {
            panic!("{told}");
        };
        assert_eq!((first, second), (&json!(letters[0]), &json!(letters[1])));
        // The wanted letter has the logit 20, others 0.
        assert!(((high / low).ln() - 20.0).abs() < 1e-3, "{told}");
    }
    let [(first, high), (second, low)] = &options(&told[3])[..] else {
        panic!("{told}");
    };
    // `yes"` is three letters that the model does not want, `no"` two letters and a quote, which has the
    // logit 2.
    assert_eq!((first, second), (&json!("no"), &json!("yes")));
    assert!(((high / low).ln() - 2.0).abs() < 1e-2, "{told}");
    let plain = service.chat(SAID, json!({"guided_json": person(), "field_confidence": true}));
    let plain = plain.json();
    assert_eq!(plain["choices"][0]["lexiform"]["fields"][1].get("options"), None);
    // What was weighed counts as written.
    let tokens = |answer: &Value| answer["usage"]["completion_tokens"].as_u64().expect("a number");
    assert!(tokens(&answer) > tokens(&plain), "{answer}");
    assert_eq!(answer["usage"]["prompt_tokens"], plain["usage"]["prompt_tokens"]);
}

/// What follows a number or a word is no part of it, also where the constraint leaves nothing else.
#[test]
fn numbers_and_words_are_places_too() {
    let service = Service::start();
    let schema = json!({"type": "object", "properties": {"n": {"enum": [1, 12, 3]}, "b": {"type": "boolean"}, "i": {"type": "integer"},
        "z": {"enum": [null, "x"]}}, "required": ["n", "b", "i", "z"], "additionalProperties": false});
    for whitespace in ["compact", "flexible"] {
        let wish = json!({"guided_json": schema, "enum_scores": true, "whitespace": whitespace});
        let answer = service
            .chat(r#"echo {"n":12,"b":false,"i":7,"z":null}"#, wish)
            .json();
        let fields = answer["choices"][0]["lexiform"]["fields"]
            .as_array()
            .cloned()
            .expect("fields");
        assert_eq!(fields.len(), 4, "{answer}");
        for field in fields {
            let expected = match field["path"].as_str() {
                Some("/n") => (json!(12), 3),
                Some("/b") => (json!(false), 2),
                Some("/z") => (json!(null), 2),
                _ => (json!(7), 0),
            };
            let options = options(&field);
            assert_eq!(options.len(), expected.1, "{field}");
            if let Some((value, probability)) = options.first() {
                assert!(*value == expected.0 && *probability > 0.99, "{field}");
            }
        }
    }
}

#[test]
fn every_sample_and_every_call_tells_its_own_values() {
    let service = Service::start();
    let tool = json!({"type": "function", "function": {"name": "f", "parameters": person()}});
    let choice = json!({"type": "function", "function": {"name": "f"}});
    let said = SAID.replace("!!!", "no");
    let wish = json!({"tools": [tool], "tool_choice": choice, "enum_scores": true, "n": 2});
    let answer = service.chat(&said, wish).json();
    for sample in 0..2 {
        let told = &answer["choices"][sample]["lexiform"]["fields"];
        assert_eq!(
            (&told[3]["path"], &told[3]["call"]),
            (&json!("/sure"), &json!(0)),
            "{answer}"
        );
        let options = options(&told[3]);
        assert!(
            options.len() == 2 && options[0].0 == "no" && options[0].1 > 0.99,
            "{told}"
        );
    }
}

#[test]
fn a_choice_is_a_place_of_its_own() {
    let service = Service::start();
    let answer = service.chat(
        "echo reed",
        json!({"guided_choice": ["red", "reed", "green", "re"], "enum_scores": true}),
    );
    let answer = answer.json();
    let told = &answer["choices"][0]["lexiform"]["fields"];
    assert_eq!(told[0]["path"], "", "{answer}");
    let options = options(&told[0]);
    let values: Vec<&Value> = options.iter().map(|(value, _)| value).collect();
    assert_eq!(values.len(), 4);
    assert_eq!(values[0], "reed");
    // Behind `re` the model wants a letter with the logit 20; the end has 1.
    let probability = |text: &str| {
        options
            .iter()
            .find(|(value, _)| value == text)
            .expect("an option")
            .1
    };
    assert!(
        ((options[0].1 / probability("re")).ln() - 19.0).abs() < 1e-2,
        "{told}"
    );
}

#[test]
fn values_cannot_be_weighed_in_a_stream() {
    let service = Service::start();
    let answer = service.chat(
        SAID,
        json!({"guided_json": person(), "enum_scores": true, "stream": true}),
    );
    assert_eq!(
        (answer.status, answer.error_code().as_str()),
        (400, "invalid_value")
    );
    assert_eq!(answer.json()["error"]["param"], "enum_scores");
}
