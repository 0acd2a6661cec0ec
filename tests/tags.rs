//! Structural tags: which texts belong to each form, and what is said of a form that cannot be read.

use std::sync::Arc;

use lexiform::compile::{Compiler, Options, Source};
use lexiform::error::CompileError;
use lexiform::vocab::{TokenKind, Vocabulary};
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

/// Whether a text belongs; `«name»` in it is the special token of that name.
fn belongs(grammar: &Grammar, text: &str) -> bool {
    let mut state: Option<State> = Some(grammar.start());
    let mut rest = text;
    while let Some(at) = rest.find('«') {
        let (name, after) = rest[at + '«'.len_utf8()..]
            .split_once('»')
            .expect("a closing sign");
        let token = grammar.vocabulary().special(name).expect("a special token");
        state = state
            .and_then(|state| grammar.step_bytes(state, &rest.as_bytes()[..at]))
            .and_then(|state| grammar.step(state, token));
        rest = after;
    }
    let state = state.and_then(|state| grammar.step_bytes(state, rest.as_bytes()));
    state.is_some_and(|state| grammar.is_accepting(state))
}

fn format(format: Value) -> Value {
    json!({"type": "structural_tag", "format": format})
}

fn text(value: &str) -> Value {
    json!({"type": "const_string", "value": value})
}

fn digits() -> Value {
    json!({"type": "regex", "pattern": "[0-9]+"})
}

fn tag(begin: impl Into<Value>, content: Value, end: impl Into<Value>) -> Value {
    json!({"type": "tag", "begin": begin.into(), "content": content, "end": end.into()})
}

#[test]
fn each_form_has_its_texts() {
    let age = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "null"}},
                     "required": ["a", "b"], "additionalProperties": false});
    let any_order = json!({"type": "json_schema", "json_schema": age, "any_order": true});
    let older = json!({"triggers": ["<f="], "structures": [
        {"begin": "<f=a>", "schema": {"type": "integer"}, "end": "</f>"},
        {"begin": "<f=b>", "schema": "{\"type\": \"boolean\"}", "end": "</f>"}]});
    let triggered = |more: Value| {
        let mut form =
            json!({"type": "triggered_tags", "triggers": ["<a"], "tags": [tag("<a>", digits(), "</a>")]});
        form.as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("an object").clone());
        format(form)
    };
    let free = json!({"type": "any_text"});
    let token = |name: Value| json!({"type": "token", "token": name});
    let table: Vec<(Value, &[&str], &[&str])> = vec![
        (format(text("ab")), &["ab"], &["", "a", "abc"]),
        (format(digits()), &["1", "42"], &["", "a1"]),
        (
            format(json!({"type": "grammar", "grammar": "root ::= \"x\" root | \"y\""})),
            &["xxy"],
            &["x"],
        ),
        (
            format(any_order),
            &["{\"b\":null,\"a\":1}", "{\"a\":1,\"b\":null}"],
            &["{\"a\":1}"],
        ),
        (
            format(json!({"type": "sequence", "elements": [text("a"), digits()]})),
            &["a1"],
            &["a", "1"],
        ),
        (
            format(json!({"type": "or", "elements": [text("a"), digits()]})),
            &["a", "1"],
            &["a1", ""],
        ),
        (
            format(json!({"type": "optional", "content": text("a")})),
            &["", "a"],
            &["aa"],
        ),
        (
            format(json!({"type": "star", "content": text("a")})),
            &["", "a", "aaa"],
            &["b"],
        ),
        (
            format(json!({"type": "plus", "content": text("a")})),
            &["a", "aaa"],
            &[""],
        ),
        (
            format(json!({"type": "repeat", "min": 2, "max": 3, "content": text("a")})),
            &["aa", "aaa"],
            &["a", "aaaa"],
        ),
        (
            format(json!({"type": "repeat", "min": 2, "max": -1, "content": text("a")})),
            &["aa", "aaaaa"],
            &["a"],
        ),
        (format(free.clone()), &["", "any<a>"], &[]),
        (
            format(json!({"type": "any_text", "excludes": ["no", "x"]})),
            &["", "n o"],
            &["no", "a no b", "x"],
        ),
        (
            format(tag("<", free.clone(), json!([">", "|"]))),
            &["<a>", "<a|"],
            &["<a", "<a|b>", "<a>b"],
        ),
        (
            older,
            &["", "free", "a <f=a>1</f> b <f=b>true</f>"],
            &["<f=", "<f=c>1</f>", "<f=a>true</f>"],
        ),
        (
            triggered(json!({})),
            &["", "x", "x<a>1</a>y<a>2</a>"],
            &["x<a", "<a></a>"],
        ),
        (
            triggered(json!({"at_least_one": true})),
            &["x<a>1</a>y"],
            &["", "x"],
        ),
        (
            triggered(json!({"stop_after_first": true})),
            &["x<a>1</a>", "x"],
            &["<a>1</a>y"],
        ),
        (
            triggered(json!({"excludes": ["bad"]})),
            &["x<a>1</a>ba d"],
            &["bad", "<a>1</a>bad"],
        ),
        (
            format(
                json!({"type": "tags_with_separator", "separator": ",", "tags": [tag("(", digits(), ")")]}),
            ),
            &["", "(1)", "(1),(2)"],
            &[",", "(1)(2)", "(1),"],
        ),
        (
            format(tag("<tool>", digits(), "</tool>")),
            &["«<tool>»1«</tool>»"],
            &["<tool>1</tool>", "«<tool>»1</tool>"],
        ),
        (
            format(tag(token(json!("<tool>")), free, token(json!(258)))),
            &["«<tool>»any«</tool>»"],
            &["«<tool>»any</tool>«</tool>»", "<tool>any«</tool>»"],
        ),
        (
            format(json!({"type": "sequence", "elements": [token(json!(257)), text("x")]})),
            &["«<tool>»x"],
            &["x"],
        ),
    ];
    for (form, belonging, strange) in table {
        let grammar = compile(&form).unwrap_or_else(|error| panic!("{form}: {error}"));
        for text in belonging {
            assert!(belongs(&grammar, text), "{text:?} does not belong to {form}");
        }
        for text in strange {
            assert!(!belongs(&grammar, text), "{text:?} belongs to {form}");
        }
    }
}

#[test]
fn what_is_wrong_is_named_with_its_pointer() {
    let wrong_schema = json!({"type": "json_schema", "json_schema": {"type": "objct"}});
    let deep = (0..70).fold(text("x"), |inner, _| json!({"type": "star", "content": inner}));
    let deepest = "/format".to_owned() + &"/content".repeat(64);
    let table = [
        (json!(3), "", "must be an object"),
        (json!({}), "/structures", "list of 1 to 256"),
        (
            json!({"type": "tag", "format": text("a")}),
            "/type",
            "structural_tag",
        ),
        (
            json!({"format": text("a"), "formt": 1}),
            "/formt",
            "did you mean `format`",
        ),
        (
            json!({"triggers": ["<"], "structures": [{"begin": "<", "schema": 3, "end": ">"}]}),
            "/structures/0/schema",
            "not a number",
        ),
        (
            json!({"triggers": ["<"], "structures": [{"begin": "f", "schema": {}, "end": ">"}]}),
            "/structures/0/begin",
            "triggers",
        ),
        (
            format(json!({"type": "const_strin", "value": "a"})),
            "/format/type",
            "did you mean `const_string`",
        ),
        (
            format(json!({"type": "dispatch", "rules": []})),
            "/format/type",
            "`dispatch` is not supported",
        ),
        (
            format(json!({"type": "any_text", "max_tokens": 5})),
            "/format/max_tokens",
            "not supported",
        ),
        (
            format(json!({"type": "json_schema", "json_schema": {}, "style": "qwen_xml"})),
            "/format/style",
            "qwen_xml",
        ),
        (
            format(json!({"type": "repeat", "min": 3, "max": 2, "content": text("a")})),
            "/format/max",
            "from `min`",
        ),
        (
            format(json!({"type": "or", "elements": [text("a"), 4]})),
            "/format/elements/1",
            "not a number",
        ),
        (
            format(tag("<", wrong_schema, ">")),
            "/format/content/json_schema/type",
            "did you mean",
        ),
        (
            format(json!({"type": "regex", "pattern": "(a"})),
            "/format/pattern",
            "line 1, column 1",
        ),
        (
            format(tag(json!({"type": "token", "token": "<nope>"}), digits(), ">")),
            "/format/begin/token",
            "<nope>",
        ),
        (
            format(tag(json!({"type": "token", "token": 65}), digits(), ">")),
            "/format/begin/token",
            "65",
        ),
        (
            format(json!({"type": "token", "token": "<end>"})),
            "/format/token",
            "ends every text",
        ),
        (format(deep), deepest.as_str(), "64 deep"),
    ];
    for (form, pointer, words) in table {
        let error = compile(&form).err().unwrap_or_else(|| panic!("{form} compiles"));
        let found = error.problems.iter().any(|problem| {
            problem.place.to_string() == format!("#{pointer}") && problem.message.contains(words)
        });
        assert!(found, "{form}: {error}");
    }
}

#[test]
fn all_problems_come_at_once() {
    let form = format(json!({"type": "sequence", "elements": [
        {"type": "any_text", "max_chars": 3}, tag("<", json!({"type": "regex"}), 3), {"type": "or", "elements": []}]}));
    let error = compile(&form).expect_err("much is wrong");
    let places: Vec<String> = error
        .problems
        .iter()
        .map(|problem| problem.place.to_string())
        .collect();
    for place in ["0/max_chars", "1/end", "1/content/pattern", "2/elements"] {
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
