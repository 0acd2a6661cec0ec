//! Objects with so many required properties that the distance to their end is counted property by property.

use lexiform::schema::KeyOrder;
use lexiform::{Compiler, MaskRequest, Options, Source};

use super::{published, walk};

/// Returns the schema of an object with this many required properties, in turn numbers, strings and objects,
/// and some optional ones between them.
fn wide(properties: usize) -> String {
    let name = |index| format!("field_{index}");
    let schema = |index| match index % 3 {
        0 => r#"{"type": "integer"}"#,
        1 => r#"{"type": "string", "minLength": 2}"#,
        _ => r#"{"type": "object", "properties": {"id": {"enum": [null, 17]}}, "required": ["id"]}"#,
    };
    let required = || (0..properties).filter(|index| index % 10 != 9);
    let all: Vec<String> = (0..properties)
        .map(|index| format!("{:?}: {}", name(index), schema(index)))
        .collect();
    let required: Vec<String> = required().map(|index| format!("{:?}", name(index))).collect();
    format!(
        r#"{{"type": "object", "properties": {{{}}}, "required": [{}], "additionalProperties": false}}"#,
        all.join(","),
        required.join(",")
    )
}

fn compiled(compiler: &Compiler, schema: &str, key_order: KeyOrder) -> lexiform::Grammar {
    let mut options = Options::for_generation();
    options.schema.key_order = key_order;
    let compiled = compiler.compile(Source::JsonSchema(schema), &options);
    compiled.expect("the schema compiles").0
}

#[test]
fn walks_through_wide_objects_end_in_time() {
    let Some((vocabulary, _)) = published("walks_through_wide_objects_end_in_time", "gpt2") else {
        return;
    };
    let compiler = Compiler::new(vocabulary);
    let schema = wide(60);
    let value: serde_json::Value = serde_json::from_str(&schema).expect("JSON");
    let validator = jsonschema::validator_for(&value).expect("a schema");
    for key_order in [KeyOrder::Schema, KeyOrder::Any] {
        let grammar = compiled(&compiler, &schema, key_order);
        let least = grammar
            .min_completion(grammar.start())
            .expect("every byte is a token");
        assert!((300..600).contains(&least), "{least} tokens");
        for budget in [least, least + 1, least + 40] {
            let text = walk(&grammar, budget, budget);
            let value = serde_json::from_slice(&text).expect("JSON");
            assert!(validator.is_valid(&value), "{key_order:?}, {budget}");
        }
    }
}

/// In any order, each property leads to another set of missing ones, and with it to another completion.
#[test]
fn the_rest_of_a_wide_object_takes_little_memory_after_each_property() {
    let Some((vocabulary, _)) = published("the_rest_of_a_wide_object", "gpt2") else {
        return;
    };
    let compiler = Compiler::new(vocabulary);
    let grammar = compiled(&compiler, &wide(240), KeyOrder::Any);
    let mut state = grammar.start();
    for count in 0..20 {
        // Far apart, so that what is missing has little in common.
        let index = count * 51 % 240;
        let piece = match count {
            0 => format!("{{\"field_{index}\": 1"),
            _ => format!(", \"field_{index}\": 1"),
        };
        for byte in piece.bytes() {
            let mask = grammar
                .try_mask(MaskRequest::from(state).within(2_000))
                .expect("within the limits");
            assert!(mask.count() > 0);
            state = grammar.step_bytes(state, &[byte]).expect("the text is valid");
        }
    }
    assert!(
        grammar.memory_usage() < 48 << 20,
        "{} bytes",
        grammar.memory_usage()
    );
}

/// Objects within objects, in each of which a property is missing: how deep the count goes is bounded.
#[test]
fn deep_objects_are_counted_on_a_small_stack() {
    let Some((vocabulary, _)) = published("deep_objects_are_counted", "gpt2") else {
        return;
    };
    let leaf = wide(60);
    let holder = r#"{"type": "object", "properties": {"a": {"type": "integer"}, "b": "#;
    let end = r#"}, "required": ["a", "b"], "additionalProperties": false}"#;
    let schema = format!("{}{leaf}{}", holder.repeat(100), end.repeat(100));
    let compiler = Compiler::new(vocabulary);
    let least = |key_order| {
        let grammar = compiled(&compiler, &schema, key_order);
        grammar
            .min_completion(grammar.start())
            .expect("every byte is a token")
    };
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().stack_size(512 << 10);
        let counted = builder.spawn_scoped(scope, || [KeyOrder::Schema, KeyOrder::Any].map(least));
        let counted = counted.expect("a thread").join().expect("its stack suffices");
        // Every level has some ten bytes, and fewer tokens.
        assert!(
            counted.iter().all(|least| (600..2_000).contains(least)),
            "{counted:?}"
        );
    });
}
