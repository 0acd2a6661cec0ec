//! `lexiform project` and `lexiform lint`.

use serde_json::{Value, json};

use crate::program::lexiform;

const PERSON: &str = r#"{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","minimum":0}},"required":["name"]}"#;

#[test]
fn a_schema_is_written_for_a_target_and_what_is_lost_is_said() {
    let run = lexiform(&["project", "--profile", "anthropic", PERSON]);
    assert_eq!(run.code, 0, "{}", run.err);
    let expected = "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"age\":{\"type\":\"integer\"}},\
                    \"required\":[\"name\"],\"additionalProperties\":false}\n";
    assert_eq!(run.out, expected);
    assert_eq!(
        run.err,
        "schema: wider, proven\n  #/properties/age/minimum: wider: `minimum` is not enforced\n"
    );
    let quiet = lexiform(&["project", "-q", "--profile", "openai-strict", PERSON]);
    assert_eq!((quiet.code, &*quiet.err), (0, ""));
    assert!(quiet.out.contains("[\"integer\",\"null\"]"), "{}", quiet.out);
}

#[test]
fn answers_are_restored_and_validated() {
    let restore = |answer: &str| {
        lexiform(&[
            "project",
            "--profile",
            "openai-strict",
            "--restore",
            answer,
            PERSON,
        ])
    };
    let run = restore(r#"{"name": "Ada", "age": null}"#);
    assert_eq!((run.code, &*run.out), (0, "{\"name\":\"Ada\"}\n"), "{}", run.err);
    let run = restore(r#"{"name": "Ada", "age": -1}"#);
    assert_eq!(run.code, 1);
    assert!(run.err.contains("#/age"), "{}", run.err);
    let run = restore("[");
    assert_eq!(run.code, 2);
    assert!(run.err.contains("the answer is no JSON"), "{}", run.err);
}

#[test]
fn tools_of_every_provider_are_found_and_replaced() {
    let schema: Value = serde_json::from_str(PERSON).expect("JSON");
    let openai = json!([{"type": "function", "function": {"name": "add", "parameters": schema}}]);
    let anthropic = json!({"tools": [{"name": "add", "input_schema": schema}]});
    let mcp =
        json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "add", "inputSchema": schema}]}});
    let gemini = json!([{"functionDeclarations": [{"name": "add", "parameters": schema}]}]);
    let openapi = json!({"openapi": "3.1.0", "components": {"schemas": {"person": schema}}, "paths": {"/people": {"post": {
        "operationId": "add", "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/person"}}}}}}}});
    let places = [
        (openai, "/0/function/parameters"),
        (anthropic, "/tools/0/input_schema"),
        (mcp, "/result/tools/0/inputSchema"),
        (gemini, "/0/functionDeclarations/0/parameters"),
        (
            openapi,
            "/paths/~1people/post/requestBody/content/application~1json/schema",
        ),
    ];
    for (document, place) in places {
        let run = lexiform(&["project", "--profile", "openai-strict", &document.to_string()]);
        assert_eq!(run.code, 0, "{}", run.err);
        assert!(run.err.starts_with("add: equal, proven\n"), "{}", run.err);
        let written: Value = serde_json::from_str(&run.out).expect("JSON");
        let schema = written.pointer(place).expect("the schema in its place");
        assert_eq!(schema["required"], json!(["name", "age"]), "{place}");
    }
}

#[test]
fn lint_says_which_target_refuses_which_tool_and_why() {
    let tools = json!([{"name": "add", "inputSchema": serde_json::from_str::<Value>(PERSON).expect("JSON")}])
        .to_string();
    let run = lexiform(&[
        "lint",
        &tools,
        "--profile",
        "openai-strict",
        "--profile",
        "gemini",
    ]);
    assert_eq!(run.code, 1, "{}", run.err);
    let expected = "add\n  openai-strict  refused; projected: equal, proven\n      \
                    #/additionalProperties: `additionalProperties` must be there and be false\n      \
                    #/required: every property must be required, and \"age\" is not\n  gemini         taken as it is\n";
    assert_eq!(run.out, expected);
    let run = lexiform(&[
        "lint",
        &tools,
        "--profile",
        "openai-strict",
        "--fail-on",
        "lossy",
        "--json",
    ]);
    let answer: Value = serde_json::from_str(&run.out).expect("JSON");
    assert_eq!((run.code, &answer["ok"]), (0, &json!(true)), "{}", run.out);
    assert_eq!(answer["tools"][0]["targets"][0]["relation"], "equal");
}

#[test]
fn what_cannot_be_read_is_said() {
    for (arguments, code, message) in [
        (
            &["project", "--profile", "open-ai", "{}"][..],
            2,
            "there is no profile \"open-ai\"",
        ),
        (
            &["project", "--profile", "gemini", "{"],
            2,
            "the document is no JSON",
        ),
        (
            &["project", "--profile", "gemini", "[]"],
            2,
            "no tool or operation with a schema",
        ),
        (
            &["project", "--profile", "gemini", "{\"type\": \"objct\"}"],
            3,
            "#/type",
        ),
        (
            &["lint", "/nowhere/tools.json"],
            2,
            "cannot read /nowhere/tools.json",
        ),
    ] {
        let run = lexiform(arguments);
        assert_eq!(run.code, code, "{arguments:?}: {}", run.err);
        assert!(run.err.contains(message), "{arguments:?}: {}", run.err);
    }
}
