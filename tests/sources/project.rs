//! Projections of schemas: what targets get, what they lose, and what is restored from their answers. Drawn
//! values decide on both sides, and a validator of another project.

use lexiform::error::ProblemKind;
use lexiform::limits::Limits;
use lexiform::project::{
    Effect, Profile, Projection, Projector, Proof, Receiver, Relation, Toward, project, refusals, tested,
};
use lexiform::schema::{AdditionalProperties, Inclusion, Options, inclusion};
use serde_json::{Value, json};

use crate::random::{Dice, cases, instance, whole_schema};

fn profile(name: &str) -> Profile {
    Profile::named(name).expect("a profile of the library")
}

fn projected(schema: &Value, name: &str, toward: Toward) -> Projection {
    let text = schema.to_string();
    project(
        &text,
        &profile(name),
        toward,
        &Options::for_generation(),
        &Limits::default(),
    )
    .unwrap_or_else(|error| panic!("{name}: {schema}: {error}"))
}

fn restored(projection: &Projection, answer: Value) -> Value {
    projection
        .restore(answer, &Limits::default())
        .expect("an answer of the target")
}

#[test]
fn what_a_target_takes_is_left_as_it_is() {
    let schema = json!({
        "type": "object", "properties": {"name": {"type": "string", "description": "who"}},
        "required": ["name"], "additionalProperties": false});
    for name in Profile::names() {
        let projection = projected(&schema, name, Toward::Wider);
        assert!(
            projection.is_unchanged() && projection.schema() == &schema,
            "{name}"
        );
    }
}

#[test]
fn combinators_references_and_optional_properties_are_written_with_what_the_target_has() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"point": {"type": "object", "description": "a place", "required": ["x"],
            "properties": {"x": {"type": "number"}, "label": {"type": "string"}}}},
        "type": "object", "required": ["at"],
        "properties": {
            "at": {"allOf": [{"$ref": "#/definitions/point"}]},
            "kind": {"oneOf": [{"const": "a"}, {"const": "b"}]},
            "count": {"type": "integer", "exclusiveMinimum": 0, "maximum": 9}}});
    let projection = projected(&schema, "openai-strict", Toward::Wider);
    assert_eq!(
        projection.schema(),
        &json!({
            "type": "object",
            "properties": {
                "at": {
                    "description": "a place",
                    "type": "object",
                    "properties": {"x": {"type": "number"}, "label": {"type": ["string", "null"]}},
                    "required": ["x", "label"],
                    "additionalProperties": false},
                "kind": {"anyOf": [{"type": "string", "enum": ["a", "b"]}, {"type": "null"}]},
                "count": {"type": ["integer", "null"], "minimum": 1, "maximum": 9}},
            "required": ["at", "kind", "count"],
            "additionalProperties": false})
    );
    assert_eq!(
        (projection.relation(), projection.proof()),
        (Relation::Equal, Proof::Proven)
    );
    let answer = json!({"at": {"x": 1, "label": null}, "kind": null, "count": 2});
    assert_eq!(restored(&projection, answer), json!({"at": {"x": 1}, "count": 2}));
}

#[test]
fn bounds_lengths_and_formats_are_written_in_another_way_that_means_the_same() {
    let schema = json!({"type": "object", "required": ["stars", "name", "code", "at"], "properties": {
        "stars": {"type": "integer", "minimum": 1, "maximum": 5},
        "name": {"type": "string", "minLength": 1, "maxLength": 60},
        "code": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 8},
        "at": {"type": "array", "prefixItems": [{"type": "number"}, {"type": "number"}], "items": false, "minItems": 1}}});
    let projection = projected(&schema, "anthropic", Toward::Wider);
    let properties = &projection.schema()["properties"];
    assert_eq!(
        properties["stars"],
        json!({"type": "integer", "enum": [1, 2, 3, 4, 5]})
    );
    assert_eq!(
        properties["name"],
        json!({"type": "string", "pattern": "^[\\s\\S]{1,60}$"})
    );
    assert_eq!(
        properties["code"],
        json!({"type": "string", "pattern": "^[a-z]{1,8}$"})
    );
    assert_eq!(
        properties["at"],
        json!({"type": "array", "items": {"type": "number"}, "minItems": 1})
    );
    let losses: Vec<String> = projection.losses().iter().map(ToString::to_string).collect();
    assert_eq!(
        losses,
        ["#/properties/at/prefixItems: wider: `maxItems` is not enforced"]
    );
    assert_eq!(
        (projection.relation(), projection.proof()),
        (Relation::Wider, Proof::Proven)
    );
}

#[test]
fn maps_any_values_recursion_and_roots_are_recoded_and_restored() {
    let schema = json!({"$defs": {"tree": {"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}}},
        "type": "array", "items": {"type": "object", "required": ["tree"], "properties": {
            "tree": {"$ref": "#/$defs/tree"}, "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "extra": {}}}});
    let projection = projected(&schema, "anthropic", Toward::Wider);
    assert_eq!(projection.relation(), Relation::Equal);
    assert_eq!(projection.schema()["type"], "object", "the root is wrapped");
    let tree = json!({"name": "a", "children": ["{\"name\": \"b\"}"]});
    let labels = json!({"additional_properties": [{"key": "k", "value": "v"}]});
    let answer = json!({"value": [{"tree": tree, "labels": labels, "extra": "[1, {}]"}]});
    assert_eq!(
        restored(&projection, answer),
        json!([{"tree": {"name": "a", "children": [{"name": "b"}]}, "labels": {"k": "v"}, "extra": [1, {}]}])
    );
    let openai = projected(&schema, "openai-strict", Toward::Wider);
    assert!(
        openai.schema().to_string().contains("\"$ref\""),
        "recursion stays where it is taken"
    );
}

#[test]
fn a_property_that_may_be_null_or_absent_is_a_loss_where_all_are_required() {
    let schema = json!({"type": "object", "properties": {"a": {"type": ["string", "null"]}}});
    let projection = projected(&schema, "openai-strict", Toward::Wider);
    assert_eq!(projection.relation(), Relation::Narrower);
    assert_eq!(projection.proof(), Proof::Proven);
    assert_eq!(restored(&projection, json!({"a": null})), json!({"a": null}));
}

#[test]
fn narrower_projections_have_no_value_that_the_schema_does_not() {
    let schema = json!({"type": "object", "required": ["n"], "properties": {
        "n": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^(?=a)[a-z]+$"}, {"type": "null"}]},
        "list": {"type": "array", "uniqueItems": true, "items": {"type": "integer"}},
        "odd": {"type": "number", "multipleOf": 0.25}}, "additionalProperties": {"type": "string"}});
    for name in Profile::names() {
        let projection = projected(&schema, name, Toward::Narrower);
        assert!(
            projection
                .losses()
                .iter()
                .all(|loss| loss.effect == Effect::Narrower),
            "{name}"
        );
        let text = schema.to_string();
        let found = tested(
            &text,
            &projection,
            &Options::for_generation(),
            &Limits::default(),
            40,
            7,
        )
        .expect(name);
        assert_eq!(found.contradictions, [], "{name}");
        assert!(
            found.answers > 0 && found.valid == found.answers,
            "{name}: {found:?}"
        );
    }
    let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "number", "multipleOf": 0.3}}});
    let text = schema.to_string();
    let left = project(
        &text,
        &profile("gemini"),
        Toward::Narrower,
        &Options::for_generation(),
        &Limits::default(),
    );
    let error = left.expect_err("no number is left");
    assert!(
        error
            .to_string()
            .starts_with("#/properties/n/multipleOf: nothing narrower"),
        "{error}"
    );
}

#[test]
fn sizes_that_a_target_limits_are_kept() {
    let many: serde_json::Map<String, Value> = (0..40)
        .map(|at| (format!("p{at}"), json!({"type": "string"})))
        .collect();
    let schema = json!({"type": "object", "properties": many});
    let projection = projected(&schema, "anthropic", Toward::Wider);
    assert_eq!(projection.relation(), Relation::Equal);
    let answer = json!({"p0": "a", "other_properties": "{\"p39\": \"z\"}"});
    assert_eq!(restored(&projection, answer), json!({"p0": "a", "p39": "z"}));
    let mut deep = json!({"type": "string"});
    for _ in 0..14 {
        deep = json!({"type": "object", "properties": {"a": deep}, "required": ["a"]});
    }
    let projection = projected(&deep, "openai-strict", Toward::Wider);
    assert_eq!(projection.relation(), Relation::Equal);
    let values: Vec<Value> = (0..1200).map(|at| json!(format!("value {at}"))).collect();
    let long = json!({"type": "object", "properties": {"a": {"enum": values}}, "required": ["a"]});
    let projection = projected(&long, "openai-strict", Toward::Wider);
    assert_eq!(projection.relation(), Relation::Wider);
}

#[test]
fn answers_that_cannot_be_restored_say_where() {
    let schema = json!({"type": "object", "properties": {"a": {}, "m": {"type": "object", "additionalProperties": {"type": "integer"}}}});
    let projection = projected(&schema, "openai-strict", Toward::Wider);
    let pair = |key: &str| json!({"key": key, "value": 1});
    for (answer, message) in [
        (json!({"a": "{", "m": null}), "#/a: "),
        (
            json!({"a": "1", "m": {"additional_properties": [pair("k"), pair("k")]}}),
            "#/m/additional_properties/1: the key \"k\" is there twice",
        ),
        (
            json!({"a": "1", "m": {"additional_properties": [1]}}),
            "#/m/additional_properties/0: this must be an object",
        ),
    ] {
        let error = projection.restore(answer, &Limits::default()).expect_err(message);
        assert!(error.to_string().starts_with(message), "{error}");
    }
}

#[test]
fn schemas_without_values_and_wrong_references_are_errors() {
    let options = Options::for_generation();
    for (schema, message) in [
        ("{\"type\": \"string\", \"enum\": [1]}", "#"),
        (
            "{\"$ref\": \"#/$defs/a\", \"$defs\": {\"a\": {\"$ref\": \"#\"}}}",
            "#",
        ),
        ("{\"properties\": 3}", "#/properties"),
        ("{", "line 1"),
    ] {
        let error = project(
            schema,
            &profile("gemini"),
            Toward::Wider,
            &options,
            &Limits::default(),
        )
        .expect_err(schema);
        assert!(error.to_string().starts_with(message), "{error}");
    }
}

#[test]
fn refusals_name_what_a_target_does_not_take() {
    let schema =
        json!({"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}, "b": {"not": {}}}});
    let found = refusals(&schema.to_string(), &profile("openai-strict"), &Limits::default()).expect("JSON");
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "#/additionalProperties: `additionalProperties` must be there and be false",
            "#/required: every property must be required, and \"a\" is not",
            "#/properties/a/maxLength: the target does not take `maxLength` here",
            "#/properties/b: a `type` is missing",
            "#/properties/b/not: the target does not take `not` here",
            "#/properties/b/not: a `type` is missing",
        ]
    );
}

#[test]
fn random_schemas_are_projected_as_their_relation_says() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let (mut open, mut proven) = (0, 0);
    // The validator reads objects as the specification does.
    let options = Options {
        additional_properties: AdditionalProperties::Specified,
        ..Options::for_generation()
    };
    for case in 0..cases(60) {
        let schema = whole_schema(&mut dice, 2);
        let text = schema.to_string();
        for name in Profile::names() {
            let toward = if dice.roll(3) == 0 {
                Toward::Narrower
            } else {
                Toward::Wider
            };
            let Ok(projection) = project(&text, &profile(name), toward, &options, &Limits::default()) else {
                continue;
            };
            let written = projection.schema().to_string();
            let refused = refusals(&written, &profile(name), &Limits::default()).expect("JSON");
            assert_eq!(refused, [], "{name}: {schema} as {written}");
            match projection.proof() {
                Proof::Proven => proven += 1,
                Proof::Open => open += 1,
            }
            let found = tested(
                &text,
                &projection,
                &options,
                &Limits::default(),
                6,
                case as u64 + 1,
            );
            // Only the machine finds out that some schemas have no value.
            let Ok(found) = found else { continue };
            assert_eq!(
                found.contradictions,
                [],
                "{name} {toward:?} {:?}: {schema} as {written}",
                projection.losses()
            );
        }
    }
    assert!(proven > open, "{proven} proven, {open} open");
}

#[test]
fn what_is_proven_to_be_within_holds_of_all_small_values() {
    let mut dice = Dice(0x1234_5678_9abc_def1);
    let mut proven = 0;
    for _ in 0..cases(1500) {
        // Schemas of the same URI are never compared.
        let (inner, mut outer) = (whole_schema(&mut dice, 1), whole_schema(&mut dice, 1));
        outer = serde_json::from_str(&outer.to_string().replace("example.com", "example.org")).expect("JSON");
        let Ok(Inclusion::Proven) = inclusion(&inner, &outer, &Options::default(), &Limits::default()) else {
            continue;
        };
        proven += 1;
        let judge = |schema: &Value| jsonschema::validator_for(schema).ok();
        let (Some(within), Some(among)) = (judge(&inner), judge(&outer)) else {
            continue;
        };
        for _ in 0..60 {
            let value = instance(&mut dice, 2);
            assert!(
                !within.is_valid(&value) || among.is_valid(&value),
                "{inner} is not within {outer}: {value}"
            );
        }
    }
    assert!(proven > 50, "{proven} pairs were proven");
}

#[test]
fn answers_are_received_only_as_values_of_the_schema() {
    let schema = json!({"type": "object", "required": ["name", "age"], "additionalProperties": false, "properties": {
        "name": {"type": "string", "maxLength": 5}, "age": {"type": "integer", "minimum": 0, "maximum": 1000}, "note": {"type": "string"}}});
    let projection = std::sync::Arc::new(projected(&schema, "gemini", Toward::Wider));
    let receiver = Receiver::new(&schema.to_string(), projection, &Limits::default()).expect("a schema");
    let received = receiver
        .receive("{\"age\": 3, \"name\": \"Bob\"}")
        .expect("a valid answer");
    assert_eq!(
        (received.value, received.changes),
        (json!({"age": 3, "name": "Bob"}), vec![])
    );
    let received = receiver
        .receive("Sure: {name: 'Bob', age: 3, \"colour\": 1,}")
        .expect("an answer that can be repaired");
    assert_eq!(received.value, json!({"name": "Bob", "age": 3}));
    assert!(!received.changes.is_empty());
    let judge = jsonschema::validator_for(&schema).expect("a schema");
    for answer in [
        "{\"name\": \"a name that is too long\", \"age\": 3}",
        "{\"name\": 1}",
        "[]",
        "",
        "{\"name\": \"Bob\", \"age\": \"3\"}",
    ] {
        match receiver.receive(answer) {
            Ok(received) => assert!(
                judge.is_valid(&received.value),
                "{answer} became {}",
                received.value
            ),
            Err(rejected) => assert!(rejected.message_for_model().contains("Answer again"), "{answer}"),
        }
    }
}

#[test]
fn long_chains_and_doubling_definitions_end() {
    let mut double = serde_json::Map::new();
    let mut chain = serde_json::Map::new();
    for at in 0..60 {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        double.insert(
            format!("d{at}"),
            json!({"type": "object", "properties": {"a": next, "b": next}, "required": ["a"]}),
        );
    }
    for at in 0..3000 {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        chain.insert(format!("d{at}"), json!({"type": "array", "items": next}));
    }
    double.insert("d60".to_owned(), json!({"type": "string"}));
    chain.insert("d3000".to_owned(), json!({"type": "string"}));
    for definitions in [double, chain] {
        let text = json!({"$ref": "#/$defs/d0", "$defs": definitions}).to_string();
        for name in Profile::names() {
            let profile = profile(name);
            refusals(&text, &profile, &Limits::default()).expect("JSON");
            let _ = project(
                &text,
                &profile,
                Toward::Wider,
                &Options::for_generation(),
                &Limits::default(),
            );
        }
    }
}

/// Guards against schemas that nobody could read: definitions are written wherever they are used for a target
/// that has none.
#[test]
fn what_is_written_is_no_longer_than_a_source_may_be() {
    let mut definitions = serde_json::Map::new();
    for at in 0..12 {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        let properties = json!({"a": next, "b": next});
        definitions.insert(
            format!("d{at}"),
            json!({"type": "object", "properties": properties}),
        );
    }
    definitions.insert(
        "d12".to_owned(),
        json!({"type": "array", "items": {"type": "string"}}),
    );
    let text = json!({"$ref": "#/$defs/d0", "$defs": definitions}).to_string();
    let limits = Limits {
        source_bytes: 50_000,
        ..Limits::default()
    };
    let (outlines, options) = (profile("outlines"), Options::for_generation());
    let projection = project(&text, &outlines, Toward::Wider, &options, &limits).expect("it is written");
    assert!(projection.schema().to_string().len() <= limits.source_bytes);
    assert!(projection.recodings().iter().any(|recoding| recoding.is_text));
    assert_eq!(projection.relation(), Relation::Equal);
    let found = tested(&text, &projection, &options, &limits, 20, 1).expect("it compiles");
    assert!(found.contradictions.is_empty(), "{:?}", found.contradictions);
}

/// The seeds of the fuzz target `project`, with its checks.
#[test]
fn seeds_are_projected_to_all_targets_as_their_relation_says() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/project");
    let (options, limits) = (Options::for_generation(), Limits::default());
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the folder of seeds") {
        let path = entry.expect("a file").path();
        let text = std::fs::read_to_string(&path).expect("a text");
        let projector = Projector::new(&text, &options, &limits).expect("it compiles");
        for profile in Profile::names().map(profile) {
            for toward in [Toward::Wider, Toward::Narrower] {
                let told = format!("{} for {}", path.display(), profile.name);
                let alone = project(&text, &profile, toward, &options, &limits);
                let Ok(projection) = projector.project(&profile, toward, &limits) else {
                    assert!(alone.is_err(), "{told}");
                    continue;
                };
                assert_eq!(
                    alone.map(|alone| alone.schema().clone()).ok().as_ref(),
                    Some(projection.schema())
                );
                let written = projection.schema().to_string();
                let refused = refusals(&written, &profile, &limits).expect("JSON");
                assert!(refused.is_empty(), "{told}: {written}: {refused:?}");
                // What a target takes as it is has its objects closed by whoever reads it so.
                if projection.is_unchanged() {
                    continue;
                }
                let found = match tested(&text, &projection, &options, &limits, 20, 1) {
                    Ok(found) => found.contradictions,
                    // Some schemas can be projected, but are no grammars.
                    Err(error) => {
                        let mut kinds = error.problems.iter().map(|problem| problem.kind);
                        assert!(
                            kinds.all(|kind| kind == ProblemKind::Unsupported),
                            "{told}: {error}"
                        );
                        continue;
                    }
                };
                assert!(found.is_empty(), "{told}: {written}: {found:?}");
                count += 1;
            }
        }
    }
    assert!(count > 40, "{count} projections");
}
