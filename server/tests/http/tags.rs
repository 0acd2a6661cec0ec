//! Structural tags: free text in which some parts have a form. Guards against a field for a constraint that
//! is accepted and not honoured (A4).

use serde_json::{Value, json};

use super::service::{Service, roomy};
use super::tokenizer::TEMPLATE;

fn age() -> Value {
    json!({"type": "object", "properties": {"age": {"type": "integer", "maximum": 150, "minimum": 0}}, "required": ["age"],
           "additionalProperties": false})
}

/// Two tags that one trigger begins.
fn older() -> Value {
    json!({"type": "structural_tag", "triggers": ["<f="], "structures": [
        {"begin": "<f=age>", "schema": age(), "end": "</f>"},
        {"begin": "<f=word>", "schema": {"enum": ["yes", "no"]}, "end": "</f>"}]})
}

fn content(service: &Service, said: &str, more: Value) -> String {
    let answer = service.chat(&format!("echo {said}"), more.clone());
    assert_eq!(answer.status, 200, "{more}: {}", answer.text());
    let text = answer.json()["choices"][0]["message"]["content"].take();
    text.as_str().expect("a text").to_owned()
}

/// Whether each of these texts is in the language.
fn judged(service: &Service, tags: &Value, texts: &[&str]) -> Vec<bool> {
    let body = json!({"response_format": tags, "texts": texts});
    let answer = service.post("/v1/grammars/check", &body.to_string());
    assert_eq!(answer.status, 200, "{tags}: {}", answer.text());
    let results = answer.json()["results"].take();
    let results = results.as_array().expect("results").iter();
    results.map(|result| result["valid"] == json!(true)).collect()
}

#[test]
fn text_is_free_and_what_a_trigger_begins_is_not() {
    let service = Service::start();
    let said = "I think <f=age>{\"age\":36}</f> and <f=word>\"yes\"</f>.";
    for more in [
        json!({"response_format": older()}),
        json!({"structured_outputs": {"structural_tag": older()}}),
        json!({"structured_outputs": {"structural_tag": older().to_string()}}),
    ] {
        assert_eq!(content(&service, said, more), said);
    }
    // The model wants a tag that there is not, and then something else than its schema says.
    let held = content(
        &service,
        "so <f=zzz>!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!",
        json!({"response_format": older(), "max_tokens": 60}),
    );
    let rest = held
        .strip_prefix("so <f=")
        .expect("the text before the tag is free");
    let tag = rest
        .strip_prefix("age>")
        .or_else(|| rest.strip_prefix("word>"))
        .expect("a tag that there is");
    assert!(tag.contains("</f>"), "{held}");
    assert_eq!(judged(&service, &older(), &[&held]), [true], "{held}");
}

#[test]
fn a_text_is_in_the_language_exactly_where_its_tags_are() {
    let service = Service::start();
    let texts = [
        ("", true),
        ("no tag < f=", true),
        ("<f=age>{\"age\":1}</f>", true),
        ("a<f=age>{\"age\":1}</f>b<f=age>{\"age\":2}</f>", true),
        ("<f=age>{\"age\":1}", false),
        ("<f=age>{\"age\":200}</f>", false),
        ("<f=word>{\"age\":1}</f>", false),
        ("<f=", false),
        ("<f=other>", false),
    ];
    let judged_so: Vec<bool> = judged(&service, &older(), &texts.map(|(text, _)| text));
    assert_eq!(judged_so, texts.map(|(_, valid)| valid));
}

#[test]
fn the_newer_forms_are_read_too() {
    let service = Service::start();
    let schema = json!({"type": "json_schema", "json_schema": age()});
    let tag = |name: &str| json!({"type": "tag", "begin": format!("<{name}>"), "content": schema, "end": format!("</{name}>")});
    let free = json!({"begin": "<t>", "content": {"type": "any_text"}, "end": "</t>"});
    let number = json!({"type": "regex", "pattern": "[0-9]+"});
    let list = |count: Value| {
        let mut form = json!({"type": "tags_with_separator", "separator": ", ", "tags": [tag("a"), free]});
        form.as_object_mut()
            .expect("an object")
            .extend(count.as_object().cloned().expect("an object"));
        form
    };
    let triggered = json!({"type": "triggered_tags", "triggers": ["<a"], "tags": [tag("a")], "at_least_one": true,
                           "stop_after_first": true});
    let one = "<a>{\"age\":1}</a>";
    let (two, behind, before) = (format!("{one}, <t>x{{</t>"), format!("{one}x"), format!("x{one}"));
    let table: [(Value, &[(&str, bool)]); 7] = [
        (tag("a"), &[(one, true), ("", false), (&behind, false)]),
        (
            json!({"type": "sequence", "elements": [{"type": "const_string", "value": "n="}, number]}),
            &[("n=12", true), ("n=", false)],
        ),
        (
            json!({"type": "or", "elements": [number, tag("a")]}),
            &[("7", true), (one, true), ("x", false)],
        ),
        (
            list(json!({})),
            &[
                ("", true),
                (one, true),
                (&two, true),
                (&behind, false),
                ("<t></t></t>", false),
            ],
        ),
        (list(json!({"at_least_one": true})), &[("", false), (&two, true)]),
        (
            list(json!({"stop_after_first": true})),
            &[("", true), (one, true), (&two, false)],
        ),
        (
            triggered,
            &[(one, true), (&before, true), (&behind, false), ("x", false)],
        ),
    ];
    for (form, texts) in table {
        let tags = json!({"type": "structural_tag", "format": form});
        let (texts, valid): (Vec<&str>, Vec<bool>) = texts.iter().copied().unzip();
        assert_eq!(judged(&service, &tags, &texts), valid, "{tags} {texts:?}");
    }
}

/// Guards against forms that nest without an end (A1).
#[test]
fn deep_forms_are_answered_or_refused() {
    let service = Service::start();
    for kind in ["sequence", "or"] {
        let open = format!("{{\"type\":\"{kind}\",\"elements\":[").repeat(55);
        let text = format!(
            "{{\"type\":\"structural_tag\",\"format\":{open}{{\"type\":\"const_string\",\"value\":\"x\"}}{}}}",
            "]}".repeat(55)
        );
        let answer = service.chat("echo x", json!({"structured_outputs": {"structural_tag": text}}));
        assert!([200, 400].contains(&answer.status), "{kind}: {}", answer.text());
    }
    assert_eq!(service.chat("echo x", json!({})).status, 200);
}

#[test]
fn what_is_not_understood_is_refused_with_its_place() {
    let service = Service::start();
    let format = |format: Value| json!({"type": "structural_tag", "format": format});
    let at = |place: &str| format!("response_format.{place}");
    let xml = json!({"type": "token_dispatcher", "rules": []});
    let broken = json!({"type": "tag", "begin": "<", "content": {"type": "json_schema", "json_schema": {"type": 3}}, "end": ">"});
    let mut stray = older();
    stray["structures"][1]["begin"] = json!("<g=word>");
    let mut unknown = older();
    unknown["structures"][0]["strict"] = json!(true);
    for (tags, code, place) in [
        (json!({"type": "structural_tag"}), "invalid_value", at("triggers")),
        (
            json!({"type": "structural_tag", "structures": [], "triggers": ["<"]}),
            "invalid_value",
            at("structures"),
        ),
        (stray, "invalid_value", at("structures[1].begin")),
        (unknown, "unsupported_parameter", at("structures[0].strict")),
        (format(xml), "unsupported_parameter", at("format.type")),
        (
            format(json!({"type": "regex"})),
            "invalid_value",
            at("format.pattern"),
        ),
        (
            format(json!({"type": "or", "elements": [3]})),
            "invalid_value",
            at("format.elements[0]"),
        ),
        (
            format(broken),
            "invalid_json_schema",
            at("format.content.json_schema"),
        ),
    ] {
        let answer = service.chat("echo x", json!({"response_format": tags}));
        assert_eq!(
            (answer.status, answer.error_code().as_str()),
            (400, code),
            "{tags}: {}",
            answer.text()
        );
        assert_eq!(
            answer.json()["error"]["param"],
            place,
            "{tags}: {}",
            answer.text()
        );
    }
}

/// Guards against tags that a model must spell letter by letter though it was trained to write them as
/// tokens.
#[test]
fn a_mark_of_the_model_is_a_token_in_a_tag_too() {
    let marks = ["!<tool>", "</tool>", "!<sep>"];
    let tags = json!({"type": "structural_tag", "triggers": ["<tool>"], "structures": [
        {"begin": "<tool>age<sep>=", "schema": age(), "end": "</tool>"}]});
    let said = "so <tool>age<sep>={\"age\":36}</tool>.";
    let service = Service::of_model(roomy(), 1 << 20, TEMPLATE, &marks);
    let more = json!({"response_format": tags, "certificate": true, "logprobs": true});
    let answer = service.chat(&format!("echo {said}"), more.clone()).json();
    let choice = &answer["choices"][0];
    assert_eq!(choice["message"]["content"], said, "{answer}");
    let certificate = &choice["lexiform"]["certificates"][0];
    assert_eq!(certificate["valid"], true, "{certificate}");
    let tokens = choice["logprobs"]["content"].as_array().expect("tokens");
    let tokens: Vec<&Value> = tokens.iter().map(|token| &token["token"]).collect();
    for mark in ["<tool>", "<sep>", "</tool>"] {
        assert!(
            tokens.iter().any(|token| **token == mark),
            "{mark} is not one token: {tokens:?}"
        );
    }
    let mut streamed = more;
    streamed["stream"] = json!(true);
    let events = service.chat(&format!("echo {said}"), streamed).events();
    let deltas = events
        .iter()
        .filter_map(|event| event["choices"][0]["delta"]["content"].as_str());
    assert_eq!(deltas.collect::<String>(), said);
    let texts = [
        said,
        "so <tool>",
        "so <tool>b",
        "<tool>age<sep>={\"age\":200}</tool>",
        "so",
    ];
    assert_eq!(judged(&service, &tags, &texts), [true, false, false, false, true]);
    // A model without such tokens writes the same text.
    let plain = Service::start();
    assert_eq!(content(&plain, said, json!({"response_format": tags})), said);
    assert_eq!(judged(&plain, &tags, &texts), [true, false, false, false, true]);
}
