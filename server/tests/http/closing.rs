//! What models write where schemas leave a choice: `additional_properties`, `numbers`, `whitespace`, and what
//! is told of it.

use serde_json::{Value, json};

use super::service::Service;

/// An object that says nothing of further keys, as most tools have theirs.
fn open_person() -> Value {
    json!({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name", "age"]})
}

const SAID: &str = "{\"name\":\"Ada\",\"age\":36.0,\"born\":1815}";

/// Whether a text has the keys that are listed and no other, and digits where an integer is asked for.
fn is_closed(text: &str) -> bool {
    let value: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let keys: Vec<&String> = value.as_object().expect("an object").keys().collect();
    keys == ["name", "age"] && value["age"].is_i64()
}

fn with(mut body: Value, more: &Value) -> Value {
    let body_fields = body.as_object_mut().expect("an object");
    body_fields.extend(more.as_object().cloned().unwrap_or_default());
    body
}

/// The fields of a chat that ask for such an object, in each way in which clients do.
fn asked() -> Vec<Value> {
    let schema = open_person();
    let tool = json!({"type": "function", "function": {"name": "save", "parameters": schema}});
    let tag = json!({"type": "tag", "begin": "", "content": {"type": "json_schema", "json_schema": schema}, "end": ""});
    vec![
        json!({"response_format": {"type": "json_schema", "json_schema": {"name": "P", "strict": true, "schema": schema}}}),
        json!({"structured_outputs": {"json": schema}}),
        json!({"guided_json": schema}),
        json!({"tools": [tool], "tool_choice": "required"}),
        json!({"response_format": {"type": "structural_tag", "format": tag}}),
    ]
}

fn written(service: &Service, body: &Value) -> String {
    let answer = service.chat(&format!("echo {SAID}"), body.clone());
    assert_eq!(answer.status, 200, "{body}: {}", answer.text());
    let message = answer.json()["choices"][0]["message"].clone();
    let call = &message["tool_calls"][0]["function"]["arguments"];
    let text = message["content"].as_str().or(call.as_str());
    text.unwrap_or_default().to_owned()
}

/// Guards against objects that a model fills until its tokens end, and against integers that no program reads
/// (A1, A4 of the second visit).
#[test]
fn objects_are_closed_and_integers_are_digits_wherever_a_schema_stands() {
    let service = Service::start();
    for body in asked() {
        assert!(is_closed(&written(&service, &body)), "{body}");
        let open = with(
            body.clone(),
            &json!({"additional_properties": "open", "numbers": "any"}),
        );
        assert_eq!(written(&service, &open), SAID, "{open}");
        // Nothing of one request is kept for another.
        let again = with(
            body.clone(),
            &json!({"additional_properties": "closed", "numbers": "double"}),
        );
        assert!(is_closed(&written(&service, &again)), "{again}");
        let any = written(&service, &with(body.clone(), &json!({"numbers": "any"})));
        assert!(
            any.starts_with("{\"name\":\"Ada\",\"age\":36.0") && !any.contains("born"),
            "{any}"
        );
    }
}

#[test]
fn answers_say_what_was_closed_and_how_numbers_are_spelled() {
    let service = Service::start();
    let body = json!({"guided_json": open_person(), "enforcement_report": true});
    let answer = service.chat(&format!("echo {SAID}"), body.clone());
    assert_eq!(answer.header("x-lexiform-enforced"), Some("closed"));
    let told = answer.json()["lexiform"].clone();
    assert_eq!(told["enforced"], "closed");
    let entry = |path: &str| {
        let keywords = told["enforcement"].as_array().expect("a list").iter();
        keywords
            .clone()
            .find(|keyword| keyword["path"] == path)
            .cloned()
            .unwrap_or_default()
    };
    let closed = entry("/properties");
    assert_eq!(
        (&closed["status"], &closed["keyword"]),
        (&json!("closed"), &json!("properties")),
        "{told}"
    );
    let age = entry("/properties/age/type");
    assert_eq!(age["status"], "exact", "{told}");
    assert!(
        age["how"].as_str().is_some_and(|how| how.contains("digits only")),
        "{told}"
    );
    let open = with(body, &json!({"additional_properties": "open"}));
    let answer = service.chat(&format!("echo {SAID}"), open);
    assert_eq!(answer.header("x-lexiform-enforced"), Some("exact"));
    let strict =
        json!({"type": "json_schema", "json_schema": {"name": "P", "strict": true, "schema": open_person()}});
    let answer = service.chat(&format!("echo {SAID}"), json!({"response_format": strict}));
    assert_eq!(
        (answer.status, answer.header("x-lexiform-enforced")),
        (200, Some("closed"))
    );
}

#[test]
fn registered_grammars_keep_what_they_were_registered_with() {
    let service = Service::start();
    let register = |more: Value| {
        let body = with(json!({"guided_json": open_person()}), &more);
        let made = service.post("/v1/grammars", &body.to_string()).json();
        (
            made["id"].as_str().expect("an identity").to_owned(),
            made["enforced"].clone(),
        )
    };
    let (closed, told) = register(json!({}));
    assert_eq!(told, "closed");
    let (open, told) = register(json!({"additional_properties": "open", "numbers": "any"}));
    assert_eq!(told, "exact");
    assert_ne!(closed, open);
    assert!(is_closed(&written(&service, &json!({"grammar_id": closed}))));
    assert_eq!(written(&service, &json!({"grammar_id": open})), SAID);
    let checked = |more: Value| {
        let body = with(json!({"guided_json": open_person(), "text": SAID}), &more);
        service.post("/v1/grammars/check", &body.to_string()).json()["results"][0]["valid"].clone()
    };
    assert_eq!(
        checked(json!({"additional_properties": "open", "numbers": "any"})),
        true
    );
    assert_eq!(checked(json!({})), false);
}

#[test]
fn white_space_ends_with_the_indentation_of_the_depth() {
    let service = Service::start();
    let say = |text: &str, more: Value| {
        let body = with(json!({"guided_json": open_person()}), &more);
        let answer = service.chat(&format!("echo {text}"), body);
        answer.json()["choices"][0]["message"]["content"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let lines = |columns: usize| {
        let line = format!("\n{}", " ".repeat(columns));
        format!("{{{line}\"name\": \"Ada\",{line}\"age\": 36\n}}")
    };
    assert_eq!(say(&lines(4), json!({})), lines(4));
    assert_eq!(say(&lines(20), json!({"whitespace": "flexible"})), lines(20));
    assert_ne!(say(&lines(20), json!({})), lines(20));
    assert_eq!(say(&lines(8), json!({"whitespace": "indented"})), lines(8));
}

#[test]
fn choices_about_schemas_need_one() {
    let service = Service::start();
    let tool = json!({"type": "function", "function": {"name": "save", "parameters": open_person()}});
    for (body, param) in [
        (json!({"additional_properties": "open"}), "additional_properties"),
        (json!({"numbers": "any", "guided_regex": "a"}), "numbers"),
        (json!({"numbers": "many", "guided_json": {}}), "numbers"),
        (
            json!({"additional_properties": true, "guided_json": {}}),
            "additional_properties",
        ),
        (
            json!({"additional_properties": "open", "tools": [tool], "tool_choice": "none"}),
            "additional_properties",
        ),
        (
            json!({"aditional_properties": "open", "guided_json": {}}),
            "aditional_properties",
        ),
    ] {
        let answer = service.chat("echo a", body.clone());
        assert_eq!(answer.status, 400, "{body}: {}", answer.text());
        assert_eq!(
            answer.json()["error"]["param"],
            param,
            "{body}: {}",
            answer.text()
        );
    }
    let closing =
        json!({"structured_outputs": {"json": open_person(), "disable_additional_properties": true}});
    assert!(is_closed(&written(&service, &closing)));
}
