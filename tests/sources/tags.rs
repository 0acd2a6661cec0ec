//! Structural tags: the texts that belong to each form, and the errors of invalid forms.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use lexiform::error::{CompileError, ProblemKind};
use lexiform::tags::{AnswerShape, Tool, ToolChoice, for_model, model_formats};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Compiler, Options, Source};
use lexiform::{Grammar, State};
use serde_json::{Value, json};

/// Every byte as a token, the special tokens `<tool>` and `</tool>`, and one that ends a text.
fn vocabulary() -> Arc<Vocabulary> {
    let bytes = (0..=255).map(|byte| (TokenKind::Text, vec![byte]));
    let special = ["<end>", "<tool>", "</tool>"].map(|name| (TokenKind::Special, name.as_bytes().to_vec()));
    let tokens: Vec<_> = bytes.chain(special).collect();
    Arc::new(Vocabulary::new(&tokens, &[256]).expect("a vocabulary"))
}

fn compile(form: &Value) -> Result<Grammar, CompileError> {
    let compiled =
        Compiler::new(vocabulary()).compile(Source::StructuralTag(&form.to_string()), &Options::default());
    compiled.map(|(grammar, _)| grammar)
}

/// Returns `true` if a text belongs; `«name»` in it is the special token with that name, and `«#97»` the
/// token with that id.
fn belongs(grammar: &Grammar, text: &str) -> bool {
    let mut state: Option<State> = Some(grammar.start());
    let mut rest = text;
    while let Some(at) = rest.find('«') {
        let (name, after) = rest[at + '«'.len_utf8()..]
            .split_once('»')
            .expect("a closing sign");
        let token = match name.strip_prefix('#') {
            Some(id) => id.parse().expect("the id of a token"),
            None => grammar.vocabulary().special(name).expect("a special token"),
        };
        state = state
            .and_then(|state| grammar.step_bytes(state, &rest.as_bytes()[..at]))
            .and_then(|state| grammar.step(state, token));
        rest = after;
    }
    let state = state.and_then(|state| grammar.step_bytes(state, rest.as_bytes()));
    state.is_some_and(|state| grammar.is_accepting(state))
}

/// Forms with texts that belong and texts that do not, and forms that are wrong with the place and some
/// words of the error.
fn cases(of: &str) -> Vec<Value> {
    let cases: Value =
        serde_json::from_str(include_str!("../data/tags.json")).expect("tests/data/tags.json is JSON");
    cases[of].as_array().expect("a list").clone()
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

#[test]
fn each_form_has_its_texts() {
    for case in cases("forms") {
        let form = &case["tag"];
        let grammar = compile(form).unwrap_or_else(|error| panic!("{form}: {error}"));
        for text in texts(&case["belong"]) {
            assert!(belongs(&grammar, text), "{text:?} does not belong to {form}");
        }
        for text in texts(&case["strange"]) {
            assert!(!belongs(&grammar, text), "{text:?} belongs to {form}");
        }
    }
}

#[test]
fn what_is_wrong_is_named_with_its_pointer() {
    for case in cases("errors") {
        let (form, words) = (&case["tag"], case["words"].as_str().expect("words"));
        let place = format!("#{}", case["pointer"].as_str().expect("a pointer"));
        let error = compile(form).err().unwrap_or_else(|| panic!("{form} compiles"));
        let mut problems = error.problems.iter();
        let found =
            problems.any(|problem| problem.place.to_string() == place && problem.message.contains(words));
        assert!(found, "{form}: {error}");
    }
}

#[test]
fn all_problems_come_at_once() {
    let form = json!({"format": {"type": "sequence", "elements": [
        {"type": "any_text", "max_tokens": 3},
        {"type": "tag", "begin": "<", "content": {"type": "regex"}, "end": 3},
        {"type": "or", "elements": []},
    ]}});
    let error = compile(&form).expect_err("much is wrong");
    let places: Vec<String> = error
        .problems
        .iter()
        .map(|problem| problem.place.to_string())
        .collect();
    for place in ["0/max_tokens", "1/end", "1/content/pattern", "2/elements"] {
        assert!(
            places.contains(&format!("#/format/elements/{place}")),
            "{place}: {places:?}"
        );
    }
}

#[test]
fn broken_json_has_a_line_and_a_column() {
    let compiled =
        Compiler::new(vocabulary()).compile(Source::StructuralTag("{\n  \"format\": }"), &Options::default());
    let error = compiled.expect_err("no JSON");
    assert_eq!(error.problems[0].place.to_string(), "line 2, column 13");
}

#[test]
fn exclusions_that_are_too_long_are_refused_in_words_of_the_tag() {
    let long: Vec<String> = (0..250).map(|at| format!("{at:0300}")).collect();
    let error =
        compile(&json!({"format": {"type": "any_text", "excludes": long}})).expect_err("75,000 bytes");
    assert_eq!(error.problems.len(), 1);
    assert_eq!(error.problems[0].kind, ProblemKind::Limit);
    assert!(
        error.problems[0].message.contains("`excludes` of free text"),
        "{error}"
    );
}

/// The structural tags that xgrammar's own functions make for named model formats compile, and the texts
/// that xgrammar accepts belong to them.
#[test]
fn tags_of_model_formats_are_those_of_xgrammar() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(".data/tool_formats/xgrammar_formats.jsonl");
    let Ok(lines) = std::fs::read_to_string(path) else {
        println!("skipped: tags_of_model_formats_are_those_of_xgrammar: .data/tool_formats is not there");
        return;
    };
    let (mut compiled, mut accepted) = (0, 0);
    for line in lines.lines() {
        let case: Value = serde_json::from_str(line).expect("a line of JSON");
        let format = case["format"].as_str().expect("a name");
        let told = format!("{format}, {}, {}", case["tool_choice"], case["reasoning"]);
        let grammar = compile(&case["structural_tag"]).unwrap_or_else(|error| panic!("{told}: {error}"));
        compiled += 1;
        for text in texts(&case["accept"]) {
            assert!(belongs(&grammar, text), "{told}: {text:?}");
            accepted += 1;
        }
    }
    assert_eq!((compiled, accepted), (216, 101));
}

/// The tags that are made for a model are those of xgrammar. Only `harmony` differs, where an answer without
/// a call belongs to xgrammar's although one is required.
#[test]
fn tags_for_models_are_those_of_xgrammar() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(".data/tool_formats/xgrammar_formats.jsonl");
    let Ok(lines) = std::fs::read_to_string(path) else {
        println!("skipped: tags_for_models_are_those_of_xgrammar: .data/tool_formats is not there");
        return;
    };
    let mut seen = BTreeSet::new();
    for line in lines.lines() {
        let case: Value = serde_json::from_str(line).expect("a line of JSON");
        let format = case["format"].as_str().expect("a name");
        let tool = |tool: &Value| Tool {
            name: tool["function"]["name"].as_str().expect("a name").to_owned(),
            parameters: tool["function"]["parameters"].clone(),
        };
        let tools: Vec<Tool> = case["tools"].as_array().into_iter().flatten().map(tool).collect();
        let choice = match &case["tool_choice"] {
            Value::String(word) if word == "auto" => ToolChoice::Auto,
            Value::String(_) => ToolChoice::Required,
            named => ToolChoice::Named(named["function"]["name"].as_str().expect("a name").to_owned()),
        };
        let shape = AnswerShape {
            thinks: case["reasoning"] == "enabled",
            is_parallel: case["parallel_tool_calls"] == true,
        };
        let tag = for_model(format, &tools, &choice, shape).expect("a tag");
        let told = format!("{format}, {choice:?}, {shape:?}");
        if format == "harmony" && choice != ToolChoice::Auto {
            let grammar = compile(&tag).unwrap_or_else(|error| panic!("{told}: {error}"));
            assert!(!belongs(&grammar, ""), "{told}");
            let texts = texts(&case["accept"]).filter(|text| text.contains("functions."));
            texts.for_each(|text| assert!(belongs(&grammar, text), "{told}: {text:?}"));
        } else {
            assert_eq!(tag, case["structural_tag"], "{told}");
        }
        seen.insert(format.to_owned());
    }
    let names: BTreeSet<String> = model_formats().map(str::to_owned).collect();
    assert_eq!(names, seen);
}

#[test]
fn problems_of_tags_for_models_are_named() {
    let tool = |name: &str| Tool {
        name: name.to_owned(),
        parameters: json!({}),
    };
    let shape = AnswerShape {
        thinks: false,
        is_parallel: true,
    };
    let named = ToolChoice::Named("b".to_owned());
    for (format, tools, choice, words) in [
        (
            "qwen3",
            vec![tool("a")],
            ToolChoice::Auto,
            "did you mean `qwen_3`",
        ),
        ("nothing_like_it", vec![tool("a")], ToolChoice::Auto, "glm_4_7"),
        ("llama", Vec::new(), ToolChoice::Auto, "no tool"),
        ("llama", vec![tool("a")], named, "no tool \"b\""),
        (
            "llama",
            vec![tool("a\"b"), tool("")],
            ToolChoice::Auto,
            "the name \"\" of a tool",
        ),
    ] {
        let error = for_model(format, &tools, &choice, shape).expect_err(words);
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn exclusions_of_schemas_are_within_limits() {
    let long: Vec<String> = (0..250).map(|at| format!("{at:0300}")).collect();
    let property = |at: usize| {
        (
            format!("p{at}"),
            json!({"type": "string", "pattern": format!("^[a-z]+{at}$")}),
        )
    };
    let properties: serde_json::Map<String, Value> = (0..60).map(property).collect();
    let schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    for style in ["json", "qwen_xml"] {
        let form = json!({"type": "json_schema", "json_schema": schema, "style": style, "excludes": long});
        match compile(&json!({"format": form})) {
            Ok(grammar) => assert!(grammar.mask(grammar.start()).count() > 0),
            Err(error) => assert_eq!(error.problems[0].kind, ProblemKind::Limit, "{error}"),
        }
    }
}
