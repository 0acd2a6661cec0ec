//! What an answer tells of how its constraint is enforced (D1).

use serde_json::{Value, json};

use super::service::Service;

/// One keyword is enforced exactly, one more narrowly, one not at all.
fn mixed() -> Value {
    json!({"type": "object", "additionalProperties": false, "properties": {
        "host": {"type": "string", "format": "hostname"}, "shoe": {"type": "string", "format": "shoe-size"}}})
}

fn format(schema: &Value) -> Value {
    json!({"type": "json_schema", "json_schema": {"name": "P", "schema": schema}})
}

fn statuses(enforcement: &Value) -> Vec<(String, String)> {
    let all = enforcement
        .as_array()
        .unwrap_or_else(|| panic!("no list: {enforcement}"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    all.iter()
        .map(|one| (text(&one["path"]), text(&one["status"])))
        .collect()
}

/// The bodies that ask each route for a JSON of this schema.
fn asked(schema: &Value) -> [(&'static str, Value); 3] {
    let messages = json!([{"role": "user", "content": "echo {}"}]);
    let responses = json!({"type": "json_schema", "name": "P", "schema": schema});
    [
        (
            "/v1/chat/completions",
            json!({"model": "m", "messages": messages, "response_format": format(schema)}),
        ),
        (
            "/v1/completions",
            json!({"model": "m", "prompt": "echo {}", "response_format": format(schema)}),
        ),
        (
            "/v1/responses",
            json!({"model": "m", "input": "echo {}", "text": {"format": responses}}),
        ),
    ]
}

/// What a stream tells at its beginning and at its end.
fn told(service: &Service, path: &str, body: &Value) -> (Value, Value) {
    let answer = service.post(path, &body.to_string());
    if path == "/v1/responses" {
        let events = answer.named_events();
        let of =
            |event: Option<&(String, Value)>| event.map(|(_, event)| event["response"]["lexiform"].clone());
        return (
            of(events.first()).unwrap_or_default(),
            of(events.last()).unwrap_or_default(),
        );
    }
    let events = answer.events();
    let ends = |event: &&Value| event["choices"][0]["finish_reason"].is_string();
    let last = events.iter().find(ends).map(|event| event["lexiform"].clone());
    let in_the_middle = events
        .iter()
        .filter(|event| event["lexiform"].is_object())
        .count();
    assert_eq!(in_the_middle, 2, "told once more than needed: {events:?}");
    (events[0]["lexiform"].clone(), last.unwrap_or_default())
}

#[test]
fn every_route_tells_which_keywords_are_not_enforced_exactly() {
    let service = Service::start();
    let expected = [
        ("/properties/host/format".to_owned(), "narrower".to_owned()),
        ("/properties/shoe/format".to_owned(), "ignored".to_owned()),
    ];
    for (path, mut body) in asked(&mixed()) {
        let whole = service.post(path, &body.to_string()).json();
        let enforcement = &whole["lexiform"]["enforcement"];
        assert_eq!(statuses(enforcement), expected, "{whole}");
        assert_eq!(enforcement[0]["keyword"], "format");
        assert!(
            enforcement[0]["how"]
                .as_str()
                .is_some_and(|how| how.contains("hostname"))
        );
        assert!(
            enforcement[0]["param"]
                .as_str()
                .is_some_and(|param| param.ends_with("schema"))
        );
        body["stream"] = json!(true);
        let (first, last) = told(&service, path, &body);
        assert_eq!(&last["enforcement"], enforcement, "{path}");
        assert_eq!(
            (&first["enforced"], &first["enforcement"]),
            (&json!("partial"), &Value::Null),
            "{path}"
        );
    }
    let exact = json!({"type": "object", "maxProperties": 0});
    for (path, body) in asked(&exact) {
        let whole = service.post(path, &body.to_string()).json();
        assert_eq!(whole["lexiform"]["enforced"], "exact", "{whole}");
        assert!(whole["lexiform"]["enforcement"].is_null(), "{whole}");
    }
}

#[test]
fn every_keyword_is_told_of_on_request() {
    let service = Service::start();
    // The last is of the whole schema: how white space is written.
    let paths = [
        "",
        "/type",
        "/additionalProperties",
        "/properties",
        "/properties/host/type",
        "/properties/host/format",
        "/properties/shoe/type",
        "/properties/shoe/format",
    ];
    for (path, mut body) in asked(&mixed()) {
        body["enforcement_report"] = json!(true);
        let whole = service.post(path, &body.to_string()).json();
        let enforcement = &whole["lexiform"]["enforcement"];
        let mut found = statuses(enforcement);
        found.sort();
        let mut expected = paths.map(|path| {
            let status = match path {
                "/properties/host/format" => "narrower",
                "/properties/shoe/format" => "ignored",
                _ => "exact",
            };
            (path.to_owned(), status.to_owned())
        });
        expected.sort();
        assert_eq!(found, expected, "{path}");
        let last = enforcement
            .as_array()
            .and_then(|all| all.iter().find(|told| told["path"] == ""));
        let how = last.and_then(|told| told["how"].as_str()).unwrap_or_default();
        assert!(
            how.contains("white space") && last.is_some_and(|told| told["keyword"].is_null()),
            "{enforcement}"
        );
        body["stream"] = json!(true);
        let (_, last) = told(&service, path, &body);
        assert_eq!(&last["enforcement"], enforcement, "{path}");
    }
    let regex = service
        .chat("echo a", json!({"guided_regex": "a", "enforcement_report": true}))
        .json();
    assert_eq!(
        regex["lexiform"]["enforcement"],
        json!([{"param": "guided_regex", "path": "", "keyword": null, "status": "exact", "how": null}])
    );
    let free = service
        .chat("echo a", json!({"enforcement_report": true, "max_tokens": 4}))
        .json();
    assert!(free["lexiform"].is_null(), "{free}");
}

/// The same grammar may come from other fields; each request is told of its own.
#[test]
fn keywords_are_named_by_the_field_that_they_came_in() {
    let service = Service::start();
    let parameters = json!({"type": "object", "properties": {"at": {"type": "string", "format": "hostname"}}, "additionalProperties": false});
    let function =
        |name: &str| json!({"type": "function", "function": {"name": name, "parameters": parameters}});
    let flat = |name: &str| json!({"type": "function", "name": name, "parameters": parameters});
    let params = |enforcement: &Value| -> Vec<String> {
        let all = enforcement.as_array().expect("a list").iter();
        all.map(|one| one["param"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    let more = json!({"tools": [function("a"), function("b")], "tool_choice": "required", "max_tokens": 90});
    let chat = service.chat("x", more).json();
    let nested = ["tools[0].function.parameters", "tools[1].function.parameters"];
    assert_eq!(params(&chat["lexiform"]["enforcement"]), nested, "{chat}");
    let body = json!({"model": "m", "input": "x", "tools": [flat("a"), flat("b")], "tool_choice": "required",
                      "max_output_tokens": 90});
    let response = service.post("/v1/responses", &body.to_string()).json();
    let told = params(&response["lexiform"]["enforcement"]);
    assert_eq!(told, ["tools[0].parameters", "tools[1].parameters"], "{response}");
    let misses = service.metric("lexiform_grammar_cache_misses_total");
    assert_eq!(misses, 1, "both requests mean the same grammar");
    let tag =
        json!({"triggers": ["<f"], "structures": [{"begin": "<f>", "schema": parameters, "end": "</f>"}]});
    let more =
        json!({"structured_outputs": {"structural_tag": tag}, "enforcement_report": true, "max_tokens": 9});
    let tags = service.chat("echo a", more).json();
    assert!(
        params(&tags["lexiform"]["enforcement"])
            .iter()
            .any(|param| param.ends_with("structures[0].schema")),
        "{tags}"
    );
}

/// Guards against answers that are many times as large as their request.
#[test]
fn a_list_of_findings_is_bounded() {
    let service = Service::start();
    let unknown: serde_json::Map<String, Value> = (0..6_000).map(|n| (format!("x{n}"), json!(0))).collect();
    let answer = service
        .chat("echo 1", json!({"guided_json": unknown, "max_tokens": 4}))
        .json();
    let told = &answer["lexiform"];
    let listed = |what: &Value| what.as_array().map(Vec::len);
    assert_eq!(
        (listed(&told["enforcement"]), &told["unlisted"]),
        (Some(4_096), &json!(1_904))
    );
    assert_eq!(listed(&told["diagnostics"]), Some(256));
}

/// Whatever has no effect though it was meant to have one is refused at once, with its field and its place.
#[test]
fn strict_refuses_what_was_meant_to_assert_and_does_not() {
    let service = Service::start();
    let schema = json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {
        "name": {"type": "string", "maxLenght": 3}, "all": {"type": "array", "contains": {}, "minContains": 2}}, "additionalProperties": false});
    let chat = |strict: Value| {
        let format = json!({"name": "P", "strict": strict, "schema": schema});
        let body = json!({"type": "json_schema", "json_schema": format});
        service.chat("echo {}", json!({"response_format": body, "max_tokens": 60}))
    };
    for strict in [json!(false), json!(null)] {
        let answer = chat(strict);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let enforcement = &answer.json()["lexiform"]["enforcement"];
        assert!(
            statuses(enforcement)
                .iter()
                .all(|(_, status)| status == "ignored"),
            "{enforcement}"
        );
    }
    let refused = chat(json!(true));
    assert_eq!(
        (refused.status, refused.error_code().as_str()),
        (400, "unsupported_keyword")
    );
    let error = refused.json()["error"].take();
    let message = error["message"].as_str().unwrap_or_default();
    let begins = "Invalid schema for response_format 'P': In context=('properties', 'all', 'minContains'), `minContains`";
    assert!(
        message.starts_with(begins) && message.contains("1 more") && message.contains("strict"),
        "{message}"
    );
    let diagnostics = error["lexiform"]["diagnostics"].as_array().expect("diagnostics");
    let keywords: Vec<&Value> = diagnostics.iter().map(|one| &one["keyword"]).collect();
    assert_eq!(keywords, ["minContains", "maxLenght"], "{error}");
    let lint = |strict: bool| {
        let format = json!({"name": "P", "strict": strict, "schema": schema});
        let body = json!({"response_format": {"type": "json_schema", "json_schema": format}});
        service.post("/v1/grammars/lint", &body.to_string()).json()
    };
    assert_eq!(
        (&lint(false)["valid"], &lint(true)["valid"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(lint(true)["diagnostics"].as_array().map(Vec::len), Some(2));
}

#[test]
fn strict_tools_are_refused_together_and_on_every_route() {
    let service = Service::start();
    let parameters =
        |keyword: &str| json!({"type": "object", "properties": {"a": {"type": "integer", keyword: 3}}});
    let tools = [
        ("f", "divisibleBy", true),
        ("g", "minimun", true),
        ("h", "max_imum", false),
    ];
    let nested = tools.map(|(name, keyword, strict)| {
        json!({"type": "function", "function": {"name": name, "strict": strict, "parameters": parameters(keyword)}})
    });
    let flat = tools.map(|(name, keyword, strict)| {
        json!({"type": "function", "name": name, "strict": strict, "parameters": parameters(keyword)})
    });
    let chat = service.chat("x", json!({"tools": nested}));
    let response = json!({"model": "m", "input": "x", "tools": flat}).to_string();
    let response = service.post("/v1/responses", &response);
    for (answer, rest) in [(chat, ".function.parameters"), (response, ".parameters")] {
        assert_eq!(answer.status, 400, "{}", answer.text());
        let error = answer.json()["error"].take();
        assert_eq!(error["param"], format!("tools[0]{rest}"));
        let diagnostics = error["lexiform"]["diagnostics"].as_array().expect("diagnostics");
        let places: Vec<(&Value, &Value)> = diagnostics
            .iter()
            .map(|one| (&one["param"], &one["path"]))
            .collect();
        let params = [json!(format!("tools[0]{rest}")), json!(format!("tools[1]{rest}"))];
        let paths = [json!("/properties/a/divisibleBy"), json!("/properties/a/minimun")];
        assert_eq!(
            places,
            [(&params[0], &paths[0]), (&params[1], &paths[1])],
            "{error}"
        );
    }
    let unused = service.chat("echo a", json!({"tools": nested, "tool_choice": "none"}));
    assert_eq!(unused.status, 200, "{}", unused.text());
}

/// Clients send `strict: true` with whatever their programs write into schemas.
#[test]
fn strict_accepts_what_is_narrower_and_what_is_a_remark() {
    let service = Service::start();
    let remarks = json!({"type": "object", "title": "T", "x-order": 1, "discriminator": {"propertyName": "a"},
        "properties": {"a": {"type": "string", "format": "shoe-size", "nullable": true, "example": "x",
                             "errorMessage": "no", "enumNames": ["x"]},
                       "b": {"type": "string", "format": "hostname", "markdownDescription": "b"}}});
    let answer = |schema: &Value| {
        let format = json!({"name": "P", "strict": true, "schema": schema});
        let body = json!({"type": "json_schema", "json_schema": format});
        service.chat("echo {}", json!({"response_format": body}))
    };
    let accepted = answer(&remarks);
    assert_eq!(accepted.status, 200, "{}", accepted.text());
    assert_eq!(accepted.header("x-lexiform-enforced"), Some("partial"));
    let dialect = answer(&json!({"$schema": "https://example.com/my-dialect", "type": "object"}));
    assert_eq!(
        (dialect.status, dialect.error_code().as_str()),
        (400, "unsupported_keyword")
    );
}
