//! Calls of tools: chosen freely, demanded, several at once, and custom ones.

use serde_json::{Value, json};

use super::service::{Service, roomy};
use crate::tokenizer::TEMPLATE;

const MAKE: &str = "<tool_call>\n{\"name\": \"mk\", \"arguments\": {\"age\":36}}\n</tool_call>";
const SAY: &str = "<tool_call>\n{\"name\": \"say\", \"arguments\": {\"text\":\"}\"}}\n</tool_call>";

fn function(name: &str, property: &str, kind: &str) -> Value {
    json!({"type": "function", "function": {"name": name, "parameters": {
        "type": "object", "properties": {property: {"type": kind}}, "required": [property],
        "additionalProperties": false}}})
}

pub(crate) fn tools() -> Value {
    json!([
        function("mk", "age", "integer"),
        function("say", "text", "string")
    ])
}

/// The names and inputs of the calls of an answer.
pub(crate) fn calls(message: &Value) -> Vec<(String, String)> {
    let call = |call: &Value| {
        let kind = call["type"].as_str().expect("a type");
        assert!(
            call["id"].as_str().is_some_and(|id| id.starts_with("call_")),
            "{call}"
        );
        let input = if kind == "custom" { "input" } else { "arguments" };
        let text = |key: &str| call[kind][key].as_str().expect("a text").to_owned();
        (text("name"), text(input))
    };
    let listed = message["tool_calls"].as_array();
    listed.into_iter().flatten().map(call).collect()
}

/// The whole answer to an echo of `text`, checked to be the same when it is streamed.
pub(crate) fn ask(service: &Service, text: &str, more: Value) -> Value {
    let answer = service.chat(&format!("echo {text}"), more.clone());
    assert_eq!(answer.status, 200, "{more}: {}", answer.text());
    let whole = answer.json()["choices"][0].clone();
    let mut streamed = more;
    streamed["stream"] = json!(true);
    let (mut content, mut collected) = (String::new(), Vec::<Value>::new());
    let mut finish = Value::Null;
    for event in service.chat(&format!("echo {text}"), streamed).events() {
        let delta = &event["choices"][0]["delta"];
        content.push_str(delta["content"].as_str().unwrap_or_default());
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            collect(call, &mut collected);
        }
        if event["choices"][0]["finish_reason"].is_string() {
            finish = event["choices"][0]["finish_reason"].clone();
        }
    }
    assert_eq!(content, whole["message"]["content"].as_str().unwrap_or_default());
    assert_eq!(calls(&json!({"tool_calls": collected})), calls(&whole["message"]));
    assert_eq!(finish, whole["finish_reason"]);
    whole
}

/// Puts a piece of a call where clients put it.
fn collect(piece: &Value, calls: &mut Vec<Value>) {
    let place = piece["index"].as_u64().expect("an index") as usize;
    if place == calls.len() {
        assert!(
            piece["id"].is_string() && piece["type"].is_string(),
            "a call begins with its name: {piece}"
        );
        calls.push(piece.clone());
        return;
    }
    for (kind, key) in [("function", "arguments"), ("custom", "input")] {
        if let Some(more) = piece[kind][key].as_str() {
            let before = calls[place][kind][key].as_str().expect("a beginning").to_owned();
            calls[place][kind][key] = json!(before + more);
        }
    }
}

pub(crate) fn pair(name: &str, input: &str) -> (String, String) {
    (name.to_owned(), input.to_owned())
}

#[test]
fn a_free_choice_may_say_something_or_call() {
    let service = Service::start();
    let said = ask(&service, "just text, 1 < 2", json!({"tools": tools()}));
    assert_eq!(said["message"]["content"], "just text, 1 < 2");
    assert_eq!(said["finish_reason"], "stop");
    let called = ask(
        &service,
        &format!("Look:\n{MAKE}"),
        json!({"tools": tools(), "tool_choice": "auto"}),
    );
    assert_eq!(called["message"]["content"], "Look:\n");
    assert_eq!(calls(&called["message"]), [pair("mk", "{\"age\":36}")]);
    assert_eq!(called["finish_reason"], "tool_calls");
    let none = ask(&service, "text", json!({"tools": tools(), "tool_choice": "none"}));
    assert!(calls(&none["message"]).is_empty());
}

/// The texts of a call in the frames that models write, and what stands before it.
const FRAMED: [(&str, &str); 12] = [
    (
        "",
        "<tool_call>\n{\"name\": \"mk\", \"arguments\": {\"age\":36}}\n</tool_call>",
    ),
    ("", "{\"name\": \"mk\", \"arguments\": {\"age\":36}}"),
    ("", "{\"name\":\"mk\",\"parameters\":{\"age\":36}}"),
    ("Sure: ", "{ \"name\" : \"mk\" , \"arguments\" : {\"age\":36} }"),
    ("", "[{\"name\": \"mk\", \"arguments\": {\"age\":36}}]"),
    (
        "See\n",
        "```json\n{\"name\": \"mk\", \"arguments\": {\"age\":36}}\n```",
    ),
    (
        "",
        "```\n{\n  \"name\": \"mk\",\n  \"arguments\": {\"age\":36}\n}\n```",
    ),
    (
        "",
        "```tool_call\n[{\"name\": \"mk\", \"arguments\": {\"age\":36}}]\n```",
    ),
    (
        "",
        "[TOOL_CALLS] [{\"name\": \"mk\", \"arguments\": {\"age\":36}}]",
    ),
    ("", "[TOOL_CALLS][{\"name\":\"mk\",\"arguments\":{\"age\":36}}]"),
    ("I call ", "<function=mk>{\"age\":36}</function>"),
    (
        "",
        "<|python_tag|>{\"name\": \"mk\", \"parameters\": {\"age\":36}}",
    ),
];

/// B3: a call that the client gets as prose, because the model was trained to write it in another way.
#[test]
fn a_call_in_the_frame_of_any_family_is_a_call() {
    let plain = Service::start();
    let marked = Service::of_model(
        roomy(),
        1 << 20,
        TEMPLATE,
        &[
            "![TOOL_CALLS]",
            "!<|python_tag|>",
            "!<tool_call>",
            "!</tool_call>",
        ],
    );
    for (before, call) in FRAMED {
        for service in [&plain, &marked] {
            let called = ask(service, &format!("{before}{call}"), json!({"tools": tools()}));
            assert_eq!(calls(&called["message"]), [pair("mk", "{\"age\":36}")], "{call}");
            assert_eq!(
                called["message"]["content"].as_str().unwrap_or_default(),
                before,
                "{call}"
            );
            assert_eq!(called["finish_reason"], "tool_calls", "{call}");
        }
    }
}

#[test]
fn a_frame_holds_several_calls_or_one() {
    let service = Service::start();
    let one = "{\"name\": \"mk\", \"arguments\": {\"age\":36}}";
    let two = "{\"name\": \"say\", \"arguments\": {\"text\":\"] \"}}";
    for text in [
        format!("{one}\n{two}"),
        format!("[{one}, {two}]"),
        format!("```json\n{one}\n{two}\n```"),
        format!("```json\n[\n  {one},\n  {two}\n]\n```"),
        format!("[TOOL_CALLS] [{one}, {two}]"),
        format!("<|python_tag|>{one}; {two}"),
        "<function=mk>{\"age\":36}</function>\n<function=say>{\"text\":\"] \"}</function>".to_owned(),
    ] {
        let called = ask(&service, &text, json!({"tools": tools()}));
        let expected = [pair("mk", "{\"age\":36}"), pair("say", "{\"text\":\"] \"}")];
        assert_eq!(calls(&called["message"]), expected, "{text}");
        let alone = json!({"tools": tools(), "parallel_tool_calls": false});
        let called = ask(&service, &text, alone);
        assert_eq!(calls(&called["message"]), expected[..1], "{text}");
    }
}

/// Guards against names that make the texts which begin a call too large, or that are told apart by their
/// first letters.
#[test]
fn many_tools_with_long_names_are_all_called() {
    let service = Service::start();
    let name = |number: usize| format!("{}{number}", "a_long_name_of_a_tool_".repeat(2));
    let tools: Vec<Value> = (0..128)
        .map(|number| function(&name(number), "age", "integer"))
        .collect();
    for number in [1, 12, 127] {
        let text = format!(
            "{{\"name\": \"{}\", \"arguments\": {{\"age\":36}}}}",
            name(number)
        );
        let called = ask(&service, &text, json!({"tools": tools}));
        assert_eq!(calls(&called["message"]), [pair(&name(number), "{\"age\":36}")]);
    }
}

/// Guards against answers that are made calls, or made impossible, because they look like one.
#[test]
fn text_that_is_no_call_stays_text() {
    let service = Service::start();
    for text in [
        "{\"name\": \"Ada\", \"age\": 36}",
        "{\"name\": \"mk2\", \"arguments\": {\"age\":36}}",
        "{\"title\": \"mk\", \"arguments\": {\"age\":36}}",
        "{\"tool\": {\"name\": 1}}",
        "[1, [2], {\"a\": []}] < > ` ``` [",
        "```json\n{\"a\": [1, {\"name\": 3}]}\n```",
        "```python\nprint({'name': 'mk'})\n```\nand `mk`",
        "<function=other>{}</function> <tool> [TOOL] <|python|>",
        "ends in a fence\n```json\n",
    ] {
        let said = ask(&service, text, json!({"tools": tools()}));
        assert_eq!(said["message"]["content"], text);
        assert_eq!(said["finish_reason"], "stop", "{text}");
        assert!(calls(&said["message"]).is_empty(), "{text}");
    }
}

/// Once it is begun, a call is one that there is, with arguments of its own, and its frame is closed.
#[test]
fn what_a_model_gets_wrong_in_a_frame_is_put_right() {
    let service = Service::start();
    for wrong in [
        "{\"name\": \"mk\", \"arguments\": {\"age\":\"old\"}}",
        "{\"name\": \"mk\", \"description\": \"makes\"}",
        "{\"name\": \"mk\", \"arguments\": {\"text\":\"x\"}",
        "```json\n{\"name\": \"mk\", \"arguments\": {\"age\":1}}",
        "[{\"name\": \"mk\", \"arguments\": {\"age\":1}}",
        "[TOOL_CALLS]mk{\"age\": 3}",
        "<function=mk>age=3</function>",
        "<|python_tag|>mk(age=3)",
        "<tool_call>{\"name\": \"mk\"}",
    ] {
        let called = ask(&service, wrong, json!({"tools": tools(), "max_tokens": 300}));
        let found = calls(&called["message"]);
        assert!(!found.is_empty(), "{wrong}: {called}");
        assert_eq!(called["finish_reason"], "tool_calls", "{wrong}");
        for (name, arguments) in found {
            let arguments: Value = serde_json::from_str(&arguments).expect("JSON");
            match name.as_str() {
                "mk" => assert!(arguments["age"].is_number(), "{wrong}: {arguments}"),
                _ => assert!(arguments["text"].is_string(), "{wrong}: {arguments}"),
            }
        }
    }
}

/// A text that obeys a format could be confused with a call in plain JSON, so then calls are written between
/// marks alone.
#[test]
fn beside_a_format_only_marks_begin_a_call() {
    let service = Service::start();
    let person = json!({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
                        "required": ["name", "age"], "additionalProperties": false});
    let more = json!({"tools": tools(), "guided_json": person});
    let said = ask(&service, "{\"name\":\"mk\",\"age\":36}", more.clone());
    assert_eq!(said["message"]["content"], "{\"name\":\"mk\",\"age\":36}");
    let called = ask(&service, MAKE, more);
    assert_eq!(calls(&called["message"]), [pair("mk", "{\"age\":36}")]);
}

/// The prompt of a chat with these fields, as the model reads it.
pub(crate) fn prompt(service: &Service, more: Value) -> String {
    let body = super::service::chat("echo x", more);
    let answer = service.post("/tokenize", &body.to_string());
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["prompt"].as_str().expect("a prompt").to_owned()
}

/// A2: a model that must call a tool that nobody told it of.
#[test]
fn tools_are_told_in_words_where_the_template_has_no_place() {
    let service = Service::start();
    let named = json!({"type": "function", "function": {"name": "mk"}});
    let one = json!([tools()[0]]);
    let table = [
        (json!("none"), tools(), [false, false]),
        (json!("auto"), tools(), [true, true]),
        (json!("required"), tools(), [true, true]),
        (named, tools(), [true, false]),
        (json!("required"), one, [true, false]),
    ];
    for (choice, tools, told) in table {
        let prompt = prompt(&service, json!({"tools": tools, "tool_choice": choice}));
        let has = ["\"name\":\"mk\"", "\"name\":\"say\""].map(|name| prompt.contains(name));
        assert_eq!(has, told, "{choice}: {prompt}");
        let is_bare = told == [true, false];
        assert_eq!(
            prompt.contains("the arguments of the call alone, as JSON"),
            is_bare,
            "{choice}: {prompt}"
        );
        assert_eq!(
            prompt.contains("A call is written as\n<tool_call>"),
            told[1],
            "{choice}: {prompt}"
        );
    }
    let custom = json!([{"type": "custom", "custom": {"name": "sql", "description": "Runs SQL"}}]);
    let told = prompt(
        &service,
        json!({"tools": custom, "tool_choice": "required", "schema_in_prompt": "never"}),
    );
    assert!(
        told.contains("Runs SQL") && told.contains("Answer with its input alone."),
        "{told}"
    );
    let before = json!({"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "x"}], "tools": tools()});
    let told = prompt(&service, before);
    assert!(told.contains("Be brief.\n\nYou can call these tools:"), "{told}");
    assert_eq!(told.matches("system\n").count(), 1, "{told}");
}

#[test]
fn a_model_sees_the_tools_that_it_may_call() {
    let template = format!("{{% for tool in tools or [] %}}{{{{ tool | tojson }}}}{{% endfor %}}{TEMPLATE}");
    let service = Service::of_model(roomy(), 1 << 20, &template, &[]);
    let length = |more: Value| {
        let answer = service.chat("echo text", more);
        answer.json()["usage"]["prompt_tokens"]
            .as_u64()
            .expect("a length")
    };
    let without = length(json!({}));
    assert!(length(json!({"tools": tools()})) > without + 100);
    assert_eq!(length(json!({"tools": tools(), "tool_choice": "none"})), without);
    let one = json!([function("mk", "age", "integer")]);
    // A demanded call is an answer under the tool's schema. Each byte is a token, and so is each of the two
    // marks.
    let sketch = "schema\n{age:integer}\n".len() as u64 + 2;
    let demanded = length(json!({"tools": one, "tool_choice": "required"}));
    assert_eq!(demanded, without + sketch);
}

/// Guards against calls of tools that were not offered or with arguments of another tool (F2).
#[test]
fn a_call_is_of_a_tool_that_is_there_with_its_own_arguments() {
    let service = Service::start();
    let wrong = MAKE.replace("\"mk\"", "\"mx\"").replace("36", "\"old\"");
    let called = ask(
        &service,
        &wrong,
        json!({"tools": tools(), "tool_choice": "required"}),
    );
    let found = calls(&called["message"]);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0, "mk");
    let arguments: Value = serde_json::from_str(&found[0].1).expect("JSON");
    assert!(arguments["age"].is_i64(), "{arguments}");
    assert!(called["message"]["content"].is_null());
}

#[test]
fn several_tools_are_called_at_once() {
    let service = Service::start();
    let text = format!("{MAKE}\n{SAY}\n{MAKE}");
    for choice in ["auto", "required"] {
        let called = ask(&service, &text, json!({"tools": tools(), "tool_choice": choice}));
        let expected = [
            pair("mk", "{\"age\":36}"),
            pair("say", "{\"text\":\"}\"}"),
            pair("mk", "{\"age\":36}"),
        ];
        assert_eq!(calls(&called["message"]), expected);
    }
}

/// Guards against `parallel_tool_calls: false` that is accepted and not enforced (F1).
#[test]
fn calls_that_may_not_be_parallel_are_not() {
    let service = Service::start();
    let more = json!({"tools": tools(), "tool_choice": "required", "parallel_tool_calls": false});
    let called = ask(&service, &format!("{MAKE}\n{SAY}"), more);
    assert_eq!(calls(&called["message"]), [pair("mk", "{\"age\":36}")]);
}

#[test]
fn allowed_tools_are_the_only_ones() {
    let service = Service::start();
    let allowed = json!({"type": "allowed_tools", "allowed_tools": {"mode": "required",
        "tools": [{"type": "function", "function": {"name": "say"}}]}});
    let called = ask(
        &service,
        "{\"text\":\"x\"}",
        json!({"tools": tools(), "tool_choice": allowed}),
    );
    assert_eq!(calls(&called["message"]), [pair("say", "{\"text\":\"x\"}")]);
}

#[test]
fn the_input_of_a_custom_tool_obeys_its_grammar() {
    let service = Service::start();
    let custom = |syntax: &str, definition: &str| {
        json!({"type": "custom", "custom": {"name": "sql", "format": {"type": "grammar",
            "grammar": {"syntax": syntax, "definition": definition}}}})
    };
    let regex = custom("regex", "SELECT [0-9]+;");
    let named = json!({"type": "custom", "custom": {"name": "sql"}});
    let called = ask(
        &service,
        "DELETE 12;",
        json!({"tools": [regex], "tool_choice": named}),
    );
    let found = calls(&called["message"]);
    assert!(
        found[0].1.starts_with("SELECT ") && found[0].1.ends_with(';'),
        "{found:?}"
    );
    let ebnf = custom("ebnf", "root ::= \"SELECT \" [0-9]+ \";\"");
    let both = json!([function("mk", "age", "integer"), ebnf]);
    let text = format!("{MAKE}\n<tool_call>\n{{\"name\": \"sql\"}}\nSELECT 1;");
    let called = ask(&service, &text, json!({"tools": both}));
    assert_eq!(
        calls(&called["message"]),
        [pair("mk", "{\"age\":36}"), pair("sql", "SELECT 1;")]
    );
    let lark = custom("lark", "start: \"SELECT \" NUMBER \";\"\nNUMBER: /[0-9]+/");
    let called = ask(
        &service,
        "DELETE 12;",
        json!({"tools": [lark], "tool_choice": named}),
    );
    let found = calls(&called["message"]);
    assert!(
        found[0].1.starts_with("SELECT ") && found[0].1.ends_with(';'),
        "{found:?}"
    );
    let antlr = custom("antlr", "start: 'a';");
    let refused = service.chat("echo a", json!({"tools": [antlr]}));
    assert_eq!(
        (refused.status, refused.error_code().as_str()),
        (400, "unsupported_parameter")
    );
}

#[test]
fn with_a_format_a_free_choice_is_a_call_or_obeys_the_format() {
    let service = Service::start();
    let more = json!({"tools": tools(), "structured_outputs": {"choice": ["yes", "no"]}});
    assert_eq!(ask(&service, "yes", more.clone())["message"]["content"], "yes");
    let called = ask(&service, SAY, more);
    assert_eq!(calls(&called["message"]), [pair("say", "{\"text\":\"}\"}")]);
}

#[test]
fn parameters_that_do_not_compile_are_named() {
    let service = Service::start();
    let broken = json!({"type": "function", "function": {"name": "f", "parameters": {"type": "text"}}});
    let refused = service.chat(
        "echo a",
        json!({"tools": [function("mk", "age", "integer"), broken]}),
    );
    assert_eq!(
        (refused.status, refused.error_code().as_str()),
        (400, "invalid_json_schema")
    );
    assert_eq!(refused.json()["error"]["param"], "tools[1].function.parameters");
}

#[test]
fn a_call_that_cannot_be_completed_in_time_is_refused() {
    let service = Service::start();
    let more = json!({"tools": tools(), "tool_choice": "required", "max_tokens": 20});
    let refused = service.chat(SAY, more);
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert_eq!(refused.json()["error"]["param"], "max_tokens");
}

/// Guards against parameters that are mangled where there are many that need not be there (F3).
#[test]
fn a_tool_with_many_optional_parameters_takes_any_of_them() {
    let service = Service::start();
    let property = |number: usize| (format!("p{number}"), json!({"type": "integer"}));
    let properties: serde_json::Map<String, Value> = (0..48).map(property).collect();
    let tool = json!({"type": "function", "function": {"name": "many", "parameters": {
        "type": "object", "properties": properties, "additionalProperties": false}}});
    let forced = json!({"tools": [tool], "tool_choice": "required", "parallel_tool_calls": false});
    for arguments in ["{}", "{\"p47\":1}", "{\"p3\":-2,\"p20\":0,\"p46\":7}"] {
        // Of the only tool, which must be called, the model writes the arguments alone.
        let choice = ask(&service, arguments, forced.clone());
        let wanted = ("many".to_owned(), arguments.to_owned());
        assert_eq!(calls(&choice["message"]), [wanted]);
    }
}

/// Guards against clients that validate arguments and refuse those that a tool does not have.
#[test]
fn a_tool_without_parameters_takes_none() {
    let service = Service::start();
    for tool in [
        json!({"type": "function", "function": {"name": "ping"}}),
        json!({"type": "function", "function": {"name": "ping", "parameters": null}}),
    ] {
        let more = json!({"tools": [tool], "tool_choice": "required", "additional_properties": "open"});
        let choice = ask(&service, "{\"a\":1}", more);
        let called = calls(&choice["message"]);
        assert_eq!(called, [("ping".to_owned(), "{}".to_owned())], "{tool}");
    }
    let open = json!({"type": "function", "function": {"name": "ping", "parameters": {}}});
    let choice = ask(
        &service,
        "{\"a\":1}",
        json!({"tools": [open], "tool_choice": "required"}),
    );
    assert_eq!(calls(&choice["message"])[0].1, "{\"a\":1}");
}
