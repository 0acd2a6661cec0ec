//! Constrained answers, and constraints that do not compile.

use serde_json::{Value, json};

use super::service::{Service, roomy};
use crate::tokenizer::TEMPLATE;

fn person() -> Value {
    json!({
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "minimum": 0,
                       "maximum": 150}},
        "required": ["age", "name"],
        "additionalProperties": false
    })
}

fn schema_format(schema: &Value) -> Value {
    json!({"type": "json_schema", "json_schema": {"name": "P", "schema": schema}})
}

fn content(service: &Service, more: Value) -> String {
    let answer = service.chat("echo {\"name\":\"Ada\",\"age\":36}", more.clone());
    assert_eq!(answer.status, 200, "{more}: {}", answer.text());
    let choice = &answer.json()["choices"][0];
    assert_eq!(choice["finish_reason"], "stop", "{more}");
    choice["message"]["content"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// Guards against spellings of a constraint that are accepted and not honoured (A4, K4).
#[test]
fn every_field_for_a_constraint_constrains() {
    let service = Service::start();
    let schema = person();
    let fields = [
        json!({"response_format": schema_format(&schema)}),
        json!({"structured_outputs": {"json": schema}}),
        json!({"guided_json": schema}),
        json!({"response_format": schema_format(&schema), "stream": false, "law": "global", "temperature": 1}),
    ];
    for more in fields {
        assert_eq!(content(&service, more), "{\"name\":\"Ada\",\"age\":36}");
    }
}

/// The older fields are honoured, and a client can see that it should send the newer ones.
#[test]
fn fields_of_older_clients_are_answered_as_deprecated() {
    let service = Service::start();
    for (more, deprecated) in [
        (json!({"guided_regex": "[0-9]"}), true),
        (
            json!({"nvext": {"guided_choice": ["a", "b"]}, "stream": true}),
            true,
        ),
        (json!({"structured_outputs": {"regex": "[0-9]"}}), false),
        (json!({}), false),
    ] {
        let answer = service.chat("echo 7", more.clone());
        assert_eq!(answer.status, 200, "{more}: {}", answer.text());
        let header = answer.header("deprecation");
        assert_eq!(
            header.is_some_and(|date| date.starts_with('@')),
            deprecated,
            "{more}: {header:?}"
        );
        assert_eq!(answer.header("link").is_some(), deprecated, "{more}");
    }
}

#[test]
fn a_constraint_holds_against_what_the_model_would_say() {
    let service = Service::start();
    let say = |what: &str, more: Value| {
        let body = service.chat(what, more).json();
        body["choices"][0]["message"]["content"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(say("forever", json!({"guided_regex": "[0-9]{3}x"})).len(), 4);
    let choice = say(
        "echo maybe",
        json!({"structured_outputs": {"choice": ["yes", "no"]}}),
    );
    assert!(["yes", "no"].contains(&choice.as_str()), "{choice}");
    assert_eq!(say("echo xy", json!({"ebnf": "root ::= \"x\" \"z\""})), "xz");
    let value: Value = serde_json::from_str(&say("forever", json!({"guided_json": person()}))).expect("JSON");
    assert!(
        value["name"].is_string()
            && value["age"]
                .as_f64()
                .is_some_and(|age| (0.0..=150.0).contains(&age)),
        "{value}"
    );
    let any: Value = serde_json::from_str(&say(
        "echo {\"a\":[1]}",
        json!({"response_format": {"type": "json_object"}}),
    ))
    .expect("JSON");
    assert_eq!(any, json!({"a": [1]}));
}

/// Guards against expressions that are read in a dialect which nobody has chosen (A12).
#[test]
fn the_dialect_of_an_expression_can_be_chosen() {
    let service = Service::start();
    // Two characters, of which one is a digit; only two of the dialects have look-around.
    let pattern = "(?=.*[0-9])[a-z0-9]{2}";
    let fields = |dialect: &str| {
        [
            json!({"response_format": {"type": "regex", "pattern": pattern, "dialect": dialect}}),
            json!({"structured_outputs": {"regex": pattern, "dialect": dialect}}),
            json!({"guided_regex": pattern, "dialect": dialect}),
            json!({"regex": pattern, "dialect": dialect}),
        ]
    };
    for dialect in ["ecma", "python"] {
        for field in fields(dialect) {
            let answer = service.chat("echo a7", field.clone());
            assert_eq!(answer.status, 200, "{field}: {}", answer.text());
            assert_eq!(answer.json()["choices"][0]["message"]["content"], "a7", "{field}");
        }
    }
    for field in fields("rust") {
        let answer = service.chat("echo a7", field.clone());
        assert_eq!(answer.status, 400, "{field}");
        assert!(
            answer.text().contains("the dialects `ecma` and `python` have it"),
            "{}",
            answer.text()
        );
    }
    // What a digit is depends on the dialect.
    let belongs = |dialect: &str| {
        let body = json!({"regex": "\\d", "dialect": dialect, "texts": ["٣"]});
        service.post("/v1/grammars/check", &body.to_string()).json()["results"][0]["valid"].clone()
    };
    assert_eq!((belongs("rust"), belongs("ecma")), (json!(true), json!(false)));
    for wrong in [
        json!({"guided_regex": "a", "dialect": "perl"}),
        json!({"guided_json": person(), "dialect": "ecma"}),
        json!({"dialect": "ecma"}),
        json!({"response_format": {"type": "ebnf", "grammar": "a = \"a\"", "dialect": "ecma"}}),
    ] {
        let answer = service.chat("echo a", wrong.clone());
        assert_eq!(answer.status, 400, "{wrong}: {}", answer.text());
        assert!(answer.text().contains("dialect"), "{wrong}: {}", answer.text());
    }
}

/// Guards against keys in an order that nobody wrote down (D2).
#[test]
fn the_notation_of_a_grammar_is_named_or_recognised() {
    let service = Service::start();
    let (lark, gbnf) = (
        "start: A \"-\" B\nA: /[0-9]/~2\nB: \"x\"i",
        "root ::= [0-9]{2} \"-\" [xX] # two digits",
    );
    for more in [
        json!({"structured_outputs": {"grammar": lark}}),
        json!({"structured_outputs": {"grammar": lark, "notation": "lark"}}),
        json!({"response_format": {"type": "grammar", "grammar": gbnf, "notation": "gbnf"}}),
        json!({"grammar": gbnf}),
        json!({"guided_grammar": gbnf}),
    ] {
        let text = content(&service, more.clone());
        let is_one = text.len() == 4 && text.ends_with(['x', 'X']) && text.as_bytes()[2] == b'-';
        assert!(is_one, "{more}: {text}");
    }
    let param = |more: Value| {
        let refused = service.chat("echo a", more);
        assert_eq!(refused.status, 400, "{}", refused.text());
        refused.json()["error"]["param"].as_str().map(str::to_owned)
    };
    let ambiguous = json!({"structured_outputs": {"grammar": "root = \"a\" \"b\""}});
    assert_eq!(param(ambiguous).as_deref(), Some("structured_outputs.grammar"));
    let unknown = json!({"structured_outputs": {"grammar": gbnf, "notation": "antlr"}});
    assert_eq!(param(unknown).as_deref(), Some("structured_outputs.notation"));
    let of_nothing = json!({"structured_outputs": {"regex": "a", "notation": "lark"}});
    assert_eq!(param(of_nothing).as_deref(), Some("structured_outputs.notation"));
}

#[test]
fn the_layout_of_json_can_be_chosen() {
    let service = Service::start();
    let say = |text: &str, layout: Value| {
        let mut more = json!({"guided_json": person()});
        more.as_object_mut()
            .expect("an object")
            .extend(layout.as_object().cloned().unwrap_or_default());
        let answer = service.chat(&format!("echo {text}"), more);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["choices"][0]["message"]["content"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let spaced = "{\"name\": \"Ada\", \"age\": 36}";
    assert_eq!(say(spaced, json!({})), spaced);
    assert_eq!(say(spaced, json!({"whitespace": "flexible"})), spaced);
    assert!(!say(spaced, json!({"whitespace": "compact"})).contains(' '));
    let turned = "{\"age\":36,\"name\":\"Ada\"}";
    assert_eq!(say(turned, json!({"key_order": "any"})), turned);
    assert!(say(turned, json!({"key_order": "schema"})).starts_with("{\"name\""));
    let pattern = json!({"guided_whitespace_pattern": "_?"});
    assert_eq!(
        say("{_\"name\":_\"Ada\",\"age\":36}", pattern),
        "{_\"name\":_\"Ada\",\"age\":36}"
    );
}

/// Guards against a named tool that is treated as a free choice (F2).
#[test]
fn a_forced_tool_is_called() {
    let service = Service::start();
    let tool = json!({"type": "function", "function": {"name": "mk", "parameters": person()}});
    for choice in [
        json!("required"),
        json!({"type": "function", "function": {"name": "mk"}}),
    ] {
        let more = json!({"tools": [tool], "tool_choice": choice, "parallel_tool_calls": false});
        let text = "echo {\"name\":\"Ada\",\"age\":36}";
        let body = service.chat(text, more.clone()).json();
        let message = &body["choices"][0]["message"];
        assert!(message["content"].is_null());
        assert_eq!(message["tool_calls"][0]["function"]["name"], "mk");
        assert_eq!(
            message["tool_calls"][0]["function"]["arguments"],
            "{\"name\":\"Ada\",\"age\":36}"
        );
        assert_eq!(body["choices"][0]["finish_reason"], "tool_calls");
        let mut streamed = more;
        streamed["stream"] = json!(true);
        let events = service.chat(text, streamed).events();
        let call =
            |event: &Value| event["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"].clone();
        let arguments: String = events
            .iter()
            .filter_map(|event| call(event).as_str().map(str::to_owned))
            .collect();
        assert_eq!(arguments, "{\"name\":\"Ada\",\"age\":36}");
        assert_eq!(
            events[events.len() - 2]["choices"][0]["finish_reason"],
            "tool_calls"
        );
    }
}

/// Guards against a constraint that does not compile and is dropped (A4).
#[test]
fn a_constraint_that_does_not_compile_says_where() {
    let service = Service::start();
    let wrong = json!({"type": "object", "properties": {"a": {"type": "text"}}});
    let answer = service.chat("echo x", json!({"response_format": schema_format(&wrong)}));
    assert_eq!(
        (answer.status, answer.error_code().as_str()),
        (400, "invalid_json_schema")
    );
    let error = answer.json()["error"].clone();
    assert_eq!(error["param"], "response_format.json_schema.schema");
    let message = error["message"].as_str().unwrap_or_default();
    assert!(
        message.starts_with("Invalid schema for response_format 'P': In context=('properties', 'a'"),
        "{message}"
    );
    assert_eq!(error["lexiform"]["diagnostics"].as_array().map(Vec::len), Some(1));
    for more in [
        json!({"guided_regex": "("}),
        json!({"ebnf": "root ::= ("}),
        json!({"guided_json": "{"}),
    ] {
        let answer = service.chat("echo x", more.clone());
        assert_eq!(answer.status, 400, "{more}: {}", answer.text());
        answer.error_code();
    }
    assert_eq!(service.chat("echo x", json!({})).status, 200);
}

/// A constrained answer is complete within its tokens; too few for any answer are refused with the least
/// number.
#[test]
fn a_text_under_a_constraint_is_complete_however_few_tokens_it_has() {
    let service = Service::start();
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
    let ask = |max_tokens| {
        service.chat(
            "forever",
            json!({"guided_json": schema, "max_tokens": max_tokens}),
        )
    };
    let refused = ask(3);
    assert_eq!(
        (refused.status, refused.json()["error"]["param"].as_str()),
        (400, Some("max_tokens"))
    );
    let message = refused.json()["error"]["message"]
        .as_str()
        .expect("a message")
        .to_owned();
    let least: u64 = message
        .split_whitespace()
        .last()
        .and_then(|word| word.parse().ok())
        .expect("a number");
    for max_tokens in [least, least + 3] {
        let body = ask(max_tokens).json();
        assert_eq!(body["choices"][0]["finish_reason"], "stop", "{body}");
        let content = body["choices"][0]["message"]["content"].as_str().expect("a text");
        let value: Value = serde_json::from_str(content).expect("JSON");
        assert!(value["a"].is_string(), "{content}");
    }
}

#[test]
fn a_grammar_is_compiled_once() {
    let service = Service::start();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| content(&service, json!({"guided_json": person()})));
        }
    });
    let metrics = service.get("/metrics");
    let line = "lexiform_grammar_cache_misses_total{model_name=\"m\",engine=\"0\"} 1";
    assert!(
        metrics.text().lines().any(|found| found == line),
        "{}",
        metrics.text()
    );
}

/// Guards against models that are never shown what they must write (K3), and that are shown it against the
/// client's will.
#[test]
fn the_model_is_shown_the_schema_if_the_client_wants_it() {
    let service = Service::start();
    let schema = json!({"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]});
    let prompt = |more: Value| {
        let answer = service.chat("echo {\"a\":1}", more);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["usage"]["prompt_tokens"]
            .as_u64()
            .expect("a number")
    };
    let plain = prompt(json!({}));
    assert_eq!(
        prompt(json!({"guided_json": schema, "schema_in_prompt": "never"})),
        plain
    );
    let shown = prompt(json!({"guided_json": schema, "schema_in_prompt": "always"}));
    assert!(shown > plain, "{shown}, {plain}");
    let listed = prompt(json!({"guided_choice": ["{\"a\":1}", "other"], "schema_in_prompt": "always"}));
    assert!(listed > plain);
}

/// B1: a model whose template has no place for a schema, and that answers without knowing it.
#[test]
fn a_schema_is_told_in_words_where_the_template_has_no_place() {
    let (before, after) = TEMPLATE.split_once("{% if schema %}").expect("a place");
    let (_, after) = after.split_once("{% endif %}").expect("its end");
    let placeless = Service::of_model(roomy(), 1 << 20, &format!("{before}{after}"), &[]);
    let placed = Service::start();
    let schema = json!({"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]});
    let words = format!("Answer with JSON that obeys this JSON Schema:\n{schema}");
    let names = (0..400).map(|number| (format!("a_property_{number}"), json!({"type": "integer"})));
    let long = json!({"type": "object", "properties": names.collect::<serde_json::Map<_, _>>()});
    let tool = json!([{"type": "function", "function": {"name": "mk", "parameters": {"type": "object"}}}]);
    let json_words = "Answer with JSON";
    let table = [
        (
            &placeless,
            json!({"guided_json": schema}),
            "echo x\n\nAnswer with JSON with the keys a (1).",
            true,
        ),
        (
            &placeless,
            json!({"guided_json": schema, "schema_in_prompt": "always"}),
            words.as_str(),
            true,
        ),
        (
            &placeless,
            json!({"guided_json": schema, "schema_in_prompt": "never"}),
            json_words,
            false,
        ),
        (
            &placeless,
            json!({"guided_json": long}),
            "Answer with JSON of this form:\n{",
            true,
        ),
        (
            &placeless,
            json!({"guided_json": schema, "tools": tool}),
            "Where you call no tool: Answer with JSON",
            true,
        ),
        (
            &placeless,
            json!({"guided_regex": "a+"}),
            "regular expression",
            false,
        ),
        (
            &placeless,
            json!({"guided_regex": "a+", "schema_in_prompt": "always"}),
            "regular expression:\na+",
            true,
        ),
        (&placed, json!({"guided_json": schema}), json_words, false),
        (&placed, json!({"guided_json": schema}), "schema\n{a:1}", true),
        (
            &placed,
            json!({"guided_json": schema, "schema_in_prompt": "never"}),
            "schema",
            false,
        ),
    ];
    for (service, more, wanted, is_told) in table {
        let body = super::service::chat("echo x", more.clone());
        let told = service.post("/tokenize", &body.to_string()).json();
        let prompt = told["prompt"]
            .as_str()
            .unwrap_or_else(|| panic!("no prompt: {told}"));
        assert_eq!(prompt.contains(wanted), is_told, "{more}: {prompt}");
        let answer = service.chat("echo x", more);
        assert_eq!(
            answer.json()["usage"]["prompt_tokens"],
            told["count"],
            "the prompt that is told is the one that is read"
        );
    }
}

/// Guards against drafts that change what a constraint gives (G1), and against forced text that the model
/// writes token by token all the same (H1).
#[test]
fn drafting_changes_how_fast_an_answer_comes_and_nothing_else() {
    let service = Service::start();
    let schema = json!({"type": "object", "properties": {"a_long_name": {"enum": ["red", "green"]}, "n": {"type": "integer",
        "minimum": 0, "maximum": 99}}, "required": ["a_long_name", "n"], "additionalProperties": false});
    for seed in 0..8 {
        let ask = |draft: bool| {
            let more = json!({"guided_json": schema, "temperature": 2.0, "seed": seed, "draft": draft});
            service.chat("echo nothing of the kind", more).json()["choices"][0].clone()
        };
        let (with, without) = (ask(true), ask(false));
        assert_eq!(with["message"], without["message"]);
        assert_eq!(with["lexiform"]["law"], without["lexiform"]["law"]);
        let accepted = |choice: &Value| choice["lexiform"]["accepted"].as_u64();
        assert_eq!(accepted(&without), Some(0));
        assert!(accepted(&with) > Some(10), "{with}");
    }
}

/// What the model wants to say is not in the text, but begins like something that is.
#[test]
fn an_answer_may_be_held_to_the_words_of_a_text() {
    let service = Service::start();
    let text = "Ada Lovelace lived in London, né Byron.";
    let said = |wanted: &str, more: Value| {
        let mut wish = json!({"structured_outputs": {"extract": {"text": text}}, "certificate": true});
        wish["structured_outputs"]["extract"]
            .as_object_mut()
            .expect("an object")
            .extend(more.as_object().cloned().unwrap_or_default());
        let answer = service.chat(&format!("echo {wanted}"), wish);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let choice = answer.json()["choices"][0].clone();
        let certificate = &choice["lexiform"]["certificates"][0];
        assert_eq!(
            (&certificate["valid"], &certificate["verified_by"]),
            (&json!(true), &json!("text"))
        );
        choice["message"]["content"].as_str().expect("a text").to_owned()
    };
    assert_eq!(said("Lovelace lived", json!({})), "Lovelace lived");
    assert_eq!(said("London, né", json!({"boundary": "word"})), "London, né");
    assert_eq!(said("ovel", json!({"boundary": "character"})), "ovel");
    for wanted in ["Ada lived in Paris", "Byron wrote", "lace"] {
        let found = said(wanted, json!({}));
        assert!(text.contains(&found) && !found.is_empty(), "{found}");
    }
    let refused = service.chat(
        "echo x",
        json!({"structured_outputs": {"extract": {"text": "x".repeat(65_537)}}}),
    );
    assert_eq!(
        (refused.status, refused.error_code().as_str()),
        (400, "invalid_value")
    );
    assert_eq!(
        refused.json()["error"]["param"],
        "structured_outputs.extract.text"
    );
}

/// Guards against a schema beside `json_object` that is passed over, as llama.cpp's clients send it.
#[test]
fn an_object_may_have_a_schema() {
    let service = Service::start();
    let schema = json!({"type": "object", "properties": {"a": {"enum": [7]}}, "required": ["a"]});
    let format = json!({"type": "json_object", "schema": schema});
    let answer = service.chat("echo {\"a\":8}", json!({"response_format": format}));
    let value = |text: &Value| {
        text.as_str()
            .and_then(|text| serde_json::from_str::<Value>(text).ok())
    };
    let expected = Some(json!({"a": 7}));
    assert_eq!(
        value(&answer.json()["choices"][0]["message"]["content"]),
        expected
    );
    let body = json!({"model": "m", "input": "echo {\"a\":8}", "text": {"format": format}});
    let answer = service.post("/v1/responses", &body.to_string()).json();
    assert_eq!(
        value(&answer["output"][0]["content"][0]["text"]),
        expected,
        "{answer}"
    );
    let wrong = json!({"type": "json_object", "schema": {"type": "objekt"}});
    let refused = service.chat("echo x", json!({"response_format": wrong})).json();
    let error = &refused["error"];
    assert_eq!(
        (&error["param"], &error["lexiform"]["diagnostics"][0]["path"]),
        (&json!("response_format.schema"), &json!("/type")),
        "{refused}"
    );
}

/// Guards against a name of a back end that is dropped without a word.
#[test]
fn a_name_of_a_back_end_is_named_as_ignored() {
    let service = Service::start();
    let more = json!({"guided_regex": "a", "guided_decoding_backend": "xgrammar"});
    let answer = service.chat("echo a", more);
    assert_eq!(
        answer.header("x-lexiform-ignored"),
        Some("guided_decoding_backend")
    );
    assert_eq!(
        answer.json()["lexiform"]["ignored"],
        json!(["guided_decoding_backend"])
    );
}
