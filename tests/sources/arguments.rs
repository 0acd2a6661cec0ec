//! Arguments of calls: what each style of a model writes is read back as the JSON that it stands for.

use std::sync::Arc;

use lexiform::schema::{self, ArgumentStyle};
use lexiform::tags::{ArgumentError, read_arguments, write_arguments};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Compiler, Grammar, Options, Source};
use serde_json::{Map, Value, json};

fn grammar(style: ArgumentStyle, of: &Value) -> Grammar {
    let bytes = (0..=255).map(|byte| (TokenKind::Text, vec![byte]));
    let tokens: Vec<_> = bytes.chain([(TokenKind::Special, b"<end>".to_vec())]).collect();
    let vocabulary = Arc::new(Vocabulary::new(&tokens, &[256]).expect("a vocabulary"));
    let options = Options {
        schema: schema::Options {
            arguments: style,
            ..schema::Options::for_generation()
        },
        ..Options::default()
    };
    let compiled = Compiler::new(vocabulary).compile(Source::JsonSchema(&of.to_string()), &options);
    let (grammar, _) = compiled.unwrap_or_else(|error| panic!("{style:?}, {of}: {error}"));
    grammar
}

fn belongs(grammar: &Grammar, text: &str) -> bool {
    let end = grammar.step_bytes(grammar.start(), text.as_bytes());
    end.is_some_and(|state| grammar.is_accepting(state))
}

/// A tool with one argument of each kind, of which the first is required.
fn schema() -> Value {
    json!({"type": "object", "required": ["city"], "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "metric": {"type": "boolean"},
        "unit": {"enum": ["°C", "K", 7, null]},
        "code": {"anyOf": [{"type": "string", "pattern": "^[0-9]{4}$"}, {"type": "integer", "minimum": 10000}]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "place": {"type": "object", "properties": {
            "name": {"type": "string"}, "at": {"type": "array", "items": {"type": "number"}},
            "more": {"type": "object", "properties": {"deep": {"type": "string"}}}}},
    }})
}

fn styles() -> impl Iterator<Item = ArgumentStyle> {
    ArgumentStyle::ALL.into_iter()
}

/// Guards against values that are read as another type, are cut, or keep parts of their frame.
#[test]
fn what_is_written_belongs_and_is_read_back() {
    let values = [
        json!({"city": "Paris"}),
        json!({"city": ""}),
        json!({"city": "3", "days": -3, "metric": true}),
        json!({"city": " two\n\nlines \"quoted\" & <b> \\n </x> {\"a\": 1} ", "metric": false}),
        json!({"city": "true", "unit": "°C"}),
        json!({"city": "null", "unit": null}),
        json!({"city": "[]", "unit": 7}),
        json!({"city": "x", "code": "0123"}),
        json!({"city": "x", "code": 12345}),
        json!({"city": "<parameter=days>", "tags": []}),
        json!({"city": "x", "tags": ["a", "", "2", "null"]}),
        json!({"city": "x", "place": {}}),
        json!({"city": "x", "place": {"name": "here", "at": [1.5, -2, 300], "more": {"deep": "ü"}}}),
        json!({"city": "x", "place": {"at": [], "more": {}}}),
    ];
    for style in styles() {
        let grammar = grammar(style, &schema());
        for value in &values {
            let Value::Object(arguments) = value else {
                panic!("arguments are an object")
            };
            let text = write_arguments(style, arguments);
            assert!(belongs(&grammar, &text), "{style:?}: {text}");
            let read = read_arguments(style, &schema(), &text);
            assert_eq!(read.as_ref(), Ok(value), "{style:?}: {text}");
        }
    }
}

/// Texts as models write them, with white space that belongs to no value.
#[test]
fn each_style_is_read_as_its_models_write_it() {
    use ArgumentStyle::*;
    let two = json!({"city": "Paris", "days": 3});
    let nested = json!({"city": "x", "place": {"name": "b", "at": [1, 2]}});
    let table = [
        (Json, " {\"city\": \"Paris\", \"days\": 3}\n", two.clone()),
        (
            QwenXml,
            "<parameter=city>\nParis\n</parameter>\n<parameter=days>\n3\n</parameter>",
            two.clone(),
        ),
        (
            QwenXml,
            "<parameter=city>\n\nParis\n\n</parameter>",
            json!({"city": "\nParis\n"}),
        ),
        (
            QwenXml,
            "<parameter=city>x</parameter><parameter=unit>\nK\n</parameter>",
            json!({"city": "x", "unit": "K"}),
        ),
        (
            MinimaxXml,
            "<parameter name=\"city\">Paris</parameter>\n<parameter name=\"days\">3</parameter>\n",
            two.clone(),
        ),
        (
            DeepseekXml,
            "<｜DSML｜parameter name=\"city\" string=\"true\">Paris</｜DSML｜parameter>\n\
             <｜DSML｜parameter name=\"days\" string=\"false\">3</｜DSML｜parameter>\n",
            two.clone(),
        ),
        (
            DeepseekV41Xml,
            "<｜DSML｜ parameter name=\"city\" string=\"true\">Paris</｜DSML｜ parameter>\
             <｜DSML｜ parameter name=\"days\" string=\"false\"> 3 </｜DSML｜ parameter>",
            two.clone(),
        ),
        (
            GlmXml,
            "\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n",
            two.clone(),
        ),
        (
            KimiK3Xml,
            "<|open|>argument key=\"city\" type=\"string\"<|sep|>Paris<|close|>argument<|sep|>\
             <|open|>argument key=\"days\" type=\"number\"<|sep|>3<|close|>argument<|sep|>",
            two.clone(),
        ),
        (
            CohereXml,
            "<cofl:value name=\"city\" type=\"raw\">x</cofl:value><cofl:value name=\"place\" type=\"dict\">\
             <cofl:value name=\"name\" type=\"raw\">b</cofl:value><cofl:value name=\"at\" type=\"list\">\
             <cofl:value type=\"json\">1</cofl:value><cofl:value type=\"json\">2</cofl:value></cofl:value></cofl:value>",
            nested.clone(),
        ),
        (
            MinimaxM3Xml,
            "]<]minimax[>[<city>x]<]minimax[>[</city>]<]minimax[>[<place>]<]minimax[>[<name>b]<]minimax[>[</name>\
             ]<]minimax[>[<at>]<]minimax[>[<item>1]<]minimax[>[</item>]<]minimax[>[<item>2]<]minimax[>[</item>\
             ]<]minimax[>[</at>]<]minimax[>[</place>",
            nested,
        ),
    ];
    for (style, text, expected) in table {
        assert!(
            belongs(&grammar(style, &schema()), text.trim_matches([' ', '\n'])),
            "{style:?}: {text}"
        );
        assert_eq!(
            read_arguments(style, &schema(), text),
            Ok(expected),
            "{style:?}: {text}"
        );
    }
}

/// A tool whose arguments depend on one of them: each branch reads the values by its own types.
#[test]
fn the_branch_that_was_written_is_read() {
    let branch = |kind: &str, value: &str| {
        json!({"type": "object", "required": ["kind", "value"], "properties": {
            "kind": {"const": kind}, "value": {"type": value}}})
    };
    let schema = json!({"anyOf": [branch("text", "string"), branch("count", "integer")]});
    for arguments in [
        json!({"kind": "text", "value": "5"}),
        json!({"kind": "count", "value": 5}),
    ] {
        for style in styles() {
            let text = write_arguments(style, arguments.as_object().expect("an object"));
            assert_eq!(
                read_arguments(style, &schema, &text).as_ref(),
                Ok(&arguments),
                "{style:?}: {text}"
            );
        }
    }
}

#[test]
fn arguments_that_are_not_listed_are_read_by_their_class() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}},
                        "additionalProperties": {"type": "boolean"}});
    let arguments = json!({"a": 1, "other": true});
    for style in styles().filter(|style| *style != ArgumentStyle::MinimaxM3Xml) {
        let text = write_arguments(style, arguments.as_object().expect("an object"));
        assert_eq!(
            read_arguments(style, &schema, &text).as_ref(),
            Ok(&arguments),
            "{style:?}: {text}"
        );
    }
}

#[test]
fn no_arguments_are_an_empty_object() {
    let schema = json!({"type": "object", "properties": {}});
    for style in styles().filter(|style| *style != ArgumentStyle::Json) {
        for text in ["", "\n", " \n "] {
            assert_eq!(read_arguments(style, &schema, text), Ok(json!({})), "{style:?}");
        }
    }
}

/// Nothing that a model writes ends the service: broken texts are errors that say what is wrong.
#[test]
fn what_is_no_text_of_the_style_is_an_error() {
    use ArgumentStyle::*;
    let argument = |name: &str| ArgumentError::Argument(name.to_owned());
    let table = [
        (QwenXml, "<parameter=city>Par", ArgumentError::Frame(19)),
        (QwenXml, "Paris", ArgumentError::Frame(0)),
        (
            QwenXml,
            "<parameter=city>x</parameter> y",
            ArgumentError::Frame(29),
        ),
        (QwenXml, "<parameter=town>x</parameter>", argument("town")),
        (
            QwenXml,
            "<parameter=city>x</parameter><parameter=days>3.5</parameter>",
            argument("days"),
        ),
        (
            QwenXml,
            "<parameter=city>x</parameter><parameter=city>x</parameter>",
            argument("city"),
        ),
        (
            QwenXml,
            "<parameter=days>3</parameter>",
            ArgumentError::Missing("city".to_owned()),
        ),
        (
            GlmXml,
            "<arg_key>city</arg_key>x<arg_value>Paris</arg_value>",
            ArgumentError::Frame(0),
        ),
        (
            KimiK3Xml,
            "<|open|>argument key=\"city\"<|sep|>",
            ArgumentError::Frame(0),
        ),
    ];
    for (style, text, expected) in table {
        let error = read_arguments(style, &schema(), text).expect_err(text);
        assert_eq!(error, expected, "{text}");
        assert!(!error.to_string().is_empty());
    }
    assert!(matches!(
        read_arguments(Json, &schema(), "{"),
        Err(ArgumentError::Json(_))
    ));
    assert!(matches!(
        read_arguments(QwenXml, &json!({"type": 3}), ""),
        Err(ArgumentError::Schema(_))
    ));
}

#[test]
fn values_nest_as_deep_as_is_read_and_no_deeper() {
    let schema = json!({"type": "object", "properties": {"a": {"$ref": "#"}}});
    for style in [ArgumentStyle::CohereXml, ArgumentStyle::MinimaxM3Xml] {
        for (depth, is_read) in [(100, true), (101, false), (20_000, false)] {
            let (open, close) = match style {
                ArgumentStyle::CohereXml => ("<cofl:value name=\"a\" type=\"dict\">", "</cofl:value>"),
                _ => ("]<]minimax[>[<a>", "]<]minimax[>[</a>"),
            };
            let text = open.repeat(depth) + &close.repeat(depth);
            let read = read_arguments(style, &schema, &text);
            assert_eq!(read.is_ok(), is_read, "{style:?}, {depth}: {read:?}");
        }
    }
}

/// Guards against a model, or a client, that makes the service work without an end.
#[test]
fn reading_takes_no_more_than_so_many_steps() {
    let branch = |at: usize| json!({"type": "string", "pattern": format!("^(a|b|[^c]{{{at},900}})*$")});
    let value: Vec<Value> = (1..40).map(branch).chain([json!({"type": "integer"})]).collect();
    let schema = json!({"type": "object", "properties": {"a": {"anyOf": value}}});
    let text = format!("<parameter=a>{}c</parameter>", "ab".repeat(20_000));
    let begun = std::time::Instant::now();
    assert!(read_arguments(ArgumentStyle::QwenXml, &schema, &text).is_err());
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
}

#[test]
fn names_with_signs_of_markup_are_read_in_the_style_that_escapes_them() {
    let name = "a<b>&\"c&lt;";
    let schema = json!({"type": "object", "properties": {name: {"type": "string"}}});
    let arguments = Map::from_iter([(name.to_owned(), json!("x"))]);
    let text = write_arguments(ArgumentStyle::CohereXml, &arguments);
    assert!(
        belongs(&grammar(ArgumentStyle::CohereXml, &schema), &text),
        "{text}"
    );
    assert_eq!(
        read_arguments(ArgumentStyle::CohereXml, &schema, &text),
        Ok(Value::Object(arguments))
    );
}
