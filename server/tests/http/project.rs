//! Schemas and tools as providers and engines take them.

use serde_json::{Value, json};

use super::service::Service;

fn ask(service: &Service, body: &Value) -> Value {
    let answer = service.post("/v1/project", &body.to_string());
    assert_eq!(answer.status, 200, "{body}: {}", answer.text());
    answer.json()
}

fn person() -> Value {
    json!({"type": "object", "properties": {"name": {"type": "string", "minLength": 1}, "age": {"type": "integer", "minimum": 0}},
           "required": ["name"], "additionalProperties": {"type": "string"}})
}

#[test]
fn a_schema_is_projected_to_all_targets_or_to_some() {
    let service = Service::start();
    let told = ask(&service, &json!({"schema": person()}));
    assert_eq!(told["object"], "projections");
    let projections = told["projections"].as_array().expect("a list");
    let names: Vec<&str> = projections
        .iter()
        .filter_map(|one| one["profile"].as_str())
        .collect();
    assert_eq!(
        names,
        [
            "openai-strict",
            "anthropic",
            "gemini",
            "llama.cpp",
            "xgrammar",
            "outlines"
        ]
    );
    for one in projections {
        let schema = &one["schemas"][0];
        assert_eq!(
            (&schema["name"], &schema["pointer"]),
            (&json!("schema"), &json!(""))
        );
        assert_eq!(schema["proven"], true, "{one}");
        assert_eq!(one["document"]["type"], "object", "{one}");
        assert_eq!(
            schema["counts"]["losses"],
            schema["losses"].as_array().map_or(0, Vec::len)
        );
        assert_eq!(schema["taken"], schema["refused"] == json!([]));
    }
    let openai = &projections[0];
    assert_eq!(openai["document"]["additionalProperties"], false);
    assert_eq!(
        openai["document"]["required"],
        json!(["name", "age", "additional_properties"])
    );
    assert_eq!(openai["schemas"][0]["relation"], "equal");
    let refused = openai["schemas"][0]["refused"].as_array().expect("a list");
    assert!(
        refused.iter().any(|one| one["path"] == "/additionalProperties"),
        "{refused:?}"
    );
    let one = ask(&service, &json!({"schema": person(), "profiles": ["gemini"]}));
    assert_eq!(one["projections"].as_array().map(Vec::len), Some(1));
}

#[test]
fn losses_are_told_with_their_place_on_the_side_that_was_asked_for() {
    let service = Service::start();
    let schema = json!({"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": true}},
                        "required": ["tags"], "additionalProperties": false});
    for (toward, effect) in [("wider", "wider"), ("narrower", "narrower")] {
        let body = json!({"schema": schema, "profiles": ["openai-strict"], "toward": toward});
        let told = ask(&service, &body);
        let projected = &told["projections"][0]["schemas"][0];
        assert_eq!(projected["relation"], effect, "{told}");
        let loss = &projected["losses"][0];
        assert_eq!(
            (&loss["pointer"], &loss["effect"]),
            (&json!("/properties/tags/uniqueItems"), &json!(effect))
        );
    }
}

#[test]
fn tools_of_all_shapes_are_projected_in_their_place() {
    let service = Service::start();
    let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}});
    let tools = json!([
        {"type": "function", "function": {"name": "a", "parameters": schema}},
        {"name": "b", "input_schema": schema},
        {"name": "c", "inputSchema": schema},
        {"name": "without"},
        {"functionDeclarations": [{"name": "d", "parameters": schema}]},
    ]);
    let told = ask(
        &service,
        &json!({"tools": tools, "profiles": ["openai-strict", "anthropic"]}),
    );
    let projection = &told["projections"][0];
    let schemas = projection["schemas"].as_array().expect("a list");
    let found: Vec<(&str, &str)> = schemas
        .iter()
        .filter_map(|one| Some((one["name"].as_str()?, one["pointer"].as_str()?)))
        .collect();
    let expected = [
        ("a", "/0/function/parameters"),
        ("b", "/1/input_schema"),
        ("c", "/2/inputSchema"),
        ("d", "/4/functionDeclarations/0/parameters"),
    ];
    assert_eq!(found, expected);
    for (_, pointer) in expected {
        let written = projection["document"].pointer(pointer).expect("a schema");
        assert_eq!(written["required"], json!(["q"]), "{pointer}");
    }
    assert_eq!(projection["document"][3], tools[3]);
}

#[test]
fn a_profile_of_the_client_is_a_target() {
    let service = Service::start();
    let text = include_str!("../../../syntax/src/project/profiles/gemini.json");
    let mut profile: Value = serde_json::from_str(text).expect("JSON");
    profile["name"] = json!("ours");
    let told = ask(&service, &json!({"schema": true, "profiles": [profile]}));
    assert_eq!(told["projections"][0]["profile"], "ours");
}

#[test]
fn what_cannot_be_projected_is_refused_by_name_and_place() {
    let service = Service::start();
    let wrong = json!({"type": "object", "properties": {"a": {"type": "strin"}}});
    for (body, code, param) in [
        (json!({}), "invalid_value", "schema"),
        (
            json!({"schema": {}, "tools": [{"name": "a", "parameters": {}}]}),
            "invalid_value",
            "schema",
        ),
        (json!({"schema": "text"}), "invalid_value", "schema"),
        (json!({"tools": []}), "invalid_value", "tools"),
        (json!({"tools": [{"name": "a"}]}), "invalid_value", "tools"),
        (
            json!({"tools": [5, {"name": "a", "parameters": {}}]}),
            "invalid_value",
            "tools[0]",
        ),
        (
            json!({"schema": {}, "profiles": ["openai"]}),
            "invalid_value",
            "profiles[0]",
        ),
        (
            json!({"schema": {}, "profiles": [{"name": "x"}]}),
            "invalid_value",
            "profiles[0]",
        ),
        (json!({"schema": {}, "profiles": []}), "invalid_value", "profiles"),
        (json!({"schema": {}, "toward": "both"}), "invalid_value", "toward"),
        (json!({"schema": {}, "draws": 100_000}), "invalid_value", "draws"),
        (
            json!({"schema": {}, "targets": ["gemini"]}),
            "unsupported_parameter",
            "targets",
        ),
        (json!({"schema": wrong}), "invalid_json_schema", "schema"),
        (
            json!({"tools": [{"name": "a", "parameters": {}}, {"name": "b", "parameters": wrong}]}),
            "invalid_json_schema",
            "tools[1].parameters",
        ),
        (
            json!({"schema": {"type": "string", "const": 1}}),
            "unsatisfiable_schema",
            "schema",
        ),
    ] {
        let answer = service.post("/v1/project", &body.to_string());
        let error = answer.json()["error"].clone();
        assert_eq!(
            (answer.status, &error["code"], &error["param"]),
            (400, &json!(code), &json!(param)),
            "{body}: {error}"
        );
    }
    let answer = service
        .post("/v1/project", &json!({"schema": wrong}).to_string())
        .json();
    assert_eq!(
        answer["error"]["lexiform"]["diagnostics"][0]["path"],
        "/properties/a/type"
    );
}

/// Guards against answers that are many times as large as their request.
#[test]
fn an_answer_lists_no_more_than_it_counts() {
    let service = Service::start();
    let properties: serde_json::Map<String, Value> = (0..300)
        .map(|at| (format!("p{at}"), json!({"type": "array", "uniqueItems": true})))
        .collect();
    let schema = json!({"type": "object", "properties": properties});
    let told = ask(&service, &json!({"schema": schema, "profiles": ["gemini"]}));
    let schema = &told["projections"][0]["schemas"][0];
    for list in ["refused", "losses"] {
        assert_eq!(schema[list].as_array().map(Vec::len), Some(100), "{list}");
        assert!(schema["counts"][list].as_u64() >= Some(300), "{list}");
    }
}
