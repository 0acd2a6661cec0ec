//! Random schemas, compared with an independent validator in both directions: every text that the masks lead
//! to is valid, and a text is accepted if and only if its value is valid. Guards against wrong masks, which
//! only a comparison reveals (D4 of the complaints about other engines).
//!
//! Schemas, walks and instances come from a small generator with a fixed seed, so a failure is reproducible;
//! the message contains the schema.

mod dependent;
mod drafts;
mod rivals;

use crate::random;
use std::path::Path;

use lexiform::Compiler;
use lexiform::Grammar;
use lexiform::error::CompileError;
use lexiform::error::ProblemKind;
use lexiform::schema::Draft;
use random::{
    Dice, accepts, accepts_plain, cases, compile, compiler, definitions, instance, judged_alike, schema,
    whole_schema,
};
use serde_json::{Value, json};

/// Returns `true` if the text has a number with more digits than the judge, which computes in doubles, can
/// distinguish. The specification means exact numbers, and so do the masks.
fn is_beyond_doubles(text: &str) -> bool {
    let digits = |run: &str| run.bytes().filter(u8::is_ascii_digit).count();
    text.split(|c: char| !c.is_ascii_digit() && c != '.')
        .any(|run| digits(run) > 15)
}

/// Walks through masks with random choices; returns `None` if it did not end. The longer the walk, the more
/// it prefers bytes that close something.
fn walk(grammar: &Grammar, dice: &mut Dice) -> Option<String> {
    let mut state = grammar.start();
    let mut text = Vec::new();
    for step in 0..400 {
        let mask = grammar.mask(state);
        let allowed: Vec<u32> = mask.iter().collect();
        assert!(
            !allowed.is_empty(),
            "a dead end behind {:?}",
            String::from_utf8_lossy(&text)
        );
        let closing: Vec<u32> = allowed
            .iter()
            .copied()
            .filter(|token| is_closing(*token))
            .collect();
        let token = if !closing.is_empty() && dice.roll(60) < 10 + step {
            *dice.pick(&closing)
        } else {
            *dice.pick(&allowed)
        };
        if token == 0 {
            return Some(String::from_utf8(text).expect("the masks lead to UTF-8"));
        }
        text.push((token - 1) as u8);
        state = grammar
            .step(state, token)
            .expect("a token of the mask is allowed");
    }
    None
}

fn is_closing(token: u32) -> bool {
    token == 0 || b"\"]}".contains(&((token - 1) as u8))
}

#[test]
fn masks_lead_to_valid_values_and_valid_values_are_accepted() {
    let (mut dice, compiler) = (Dice(0x5eed_1234_5678_9abc), compiler());
    let (mut compiled, mut walked, mut refused) = (0, 0, 0);
    let cases = cases(900);
    for _ in 0..cases {
        let schema = whole_schema(&mut dice, 2);
        let judge = jsonschema::draft202012::new(&schema).expect("a valid schema");
        let (grammar, narrower) = match compile(&compiler, &schema) {
            Ok(compiled) => compiled,
            Err(error) => {
                check_refusal(&error, &schema, &judge, &mut dice);
                refused += 1;
                continue;
            }
        };
        compiled += 1;
        for _ in 0..3 {
            if let Some(text) = walk(&grammar, &mut dice) {
                walked += 1;
                let value: Value = serde_json::from_str(&text).expect("the masks lead to JSON");
                if is_beyond_doubles(&text) {
                    continue;
                }
                assert!(judge.is_valid(&value), "{schema} does not allow {text}");
            }
        }
        judge_instances((&grammar, narrower), &schema, &judge, &mut dice);
    }
    assert!(
        compiled > cases * 4 / 9 && walked > cases * 8 / 9,
        "{compiled} compiled, {refused} refused, {walked} walked"
    );
}

/// A place that only automata know to be empty ends a tuple, so that one which needs more items is never
/// begun.
#[test]
fn no_array_is_begun_that_an_empty_place_makes_too_short() {
    let nothing = json!({"type": "string", "maxLength": 0, "not": {"const": ""}});
    let (mut dice, compiler) = (Dice(0x7a11_0c4e_0000_5eed), compiler());
    for demand in [json!({"minItems": 2}), json!({"contains": {"const": 1}})] {
        let array = json!({"type": "array", "prefixItems": [{"type": "string"}, nothing], "allOf": [demand]});
        let schema = json!({"anyOf": [array, {"type": "null"}]});
        let (grammar, _) = compile(&compiler, &schema).expect("null is left");
        for _ in 0..10 {
            assert_eq!(walk(&grammar, &mut dice).as_deref(), Some("null"), "{schema}");
        }
    }
}

/// Random values are accepted if they are valid, and only then; a grammar that says it is narrower may refuse
/// some.
fn judge_instances(
    (grammar, narrower): (&Grammar, bool),
    schema: &Value,
    judge: &jsonschema::Validator,
    dice: &mut Dice,
) {
    for _ in 0..20 {
        let value = instance(dice, 2);
        judged_alike((grammar, narrower), &value, (judge, schema));
    }
}

/// The older drafts, of which two have no suite here: each keyword as its draft has it, or as one that is not
/// known.
#[test]
fn older_drafts_are_judged_alike() {
    type Judge = fn(&Value) -> Result<jsonschema::Validator, jsonschema::ValidationError<'static>>;
    let judges: [(Draft, Judge); 4] = [
        (Draft::D4, |schema| jsonschema::draft4::new(schema)),
        (Draft::D6, |schema| jsonschema::draft6::new(schema)),
        (Draft::D7, |schema| jsonschema::draft7::new(schema)),
        (Draft::D2019, |schema| jsonschema::draft201909::new(schema)),
    ];
    let (mut dice, compiler, cases) = (Dice(0x01d0_d4af_7500_1357), compiler(), cases(300));
    for (draft, judge) in judges {
        let mut judged = 0;
        for _ in 0..cases {
            let schema = drafts::spelled(&whole_schema(&mut dice, 2), draft);
            // In 2019-09 what is contained is not evaluated; the other validator takes it for 2020-12 here.
            let text = schema.to_string();
            if draft == Draft::D2019 && text.contains("\"contains\"") && text.contains("unevaluatedItems") {
                continue;
            }
            let Ok(judge) = judge(&schema) else { continue };
            let (grammar, narrower) = match compile(&compiler, &schema) {
                Ok(compiled) => compiled,
                Err(error) => {
                    check_refusal(&error, &schema, &judge, &mut dice);
                    continue;
                }
            };
            judge_instances((&grammar, narrower), &schema, &judge, &mut dice);
            judged += 1;
        }
        assert!(judged > cases / 3, "{draft:?}: {judged} judged");
    }
}

/// A schema is refused because it is not supported, or because nothing satisfies it.
fn check_refusal(error: &CompileError, schema: &Value, judge: &jsonschema::Validator, dice: &mut Dice) {
    for problem in &error.problems {
        match problem.kind {
            ProblemKind::Unsupported | ProblemKind::Limit => return,
            ProblemKind::Unsatisfiable => {}
            _ => panic!("{schema}: {problem}"),
        }
    }
    for _ in 0..50 {
        let value = instance(dice, 2);
        assert!(!judge.is_valid(&value), "{schema} allows {value}, but: {error}");
    }
}

/// Two schemas allow the same, as far as random values tell; what is narrower may refuse more.
fn assert_alike(compiler: &Compiler, left: &Value, right: &Value, dice: &mut Dice) -> bool {
    let compiled = |schema: &Value| match compile(compiler, schema) {
        Ok((grammar, false)) => Some(Some(grammar)),
        Err(error) if is_unsatisfiable(&error) => Some(None),
        _ => None,
    };
    let (Some(first), Some(second)) = (compiled(left), compiled(right)) else {
        return false;
    };
    for _ in 0..15 {
        let value = instance(dice, 2);
        let judged = |grammar: &Grammar| accepts(grammar, &value) || accepts_plain(grammar, &value);
        assert_eq!(
            first.as_ref().is_some_and(judged),
            second.as_ref().is_some_and(judged),
            "{left} and {right} differ on {value}"
        );
    }
    true
}

fn is_unsatisfiable(error: &CompileError) -> bool {
    let mut problems = error.problems.iter();
    problems.all(|problem| problem.kind == ProblemKind::Unsatisfiable)
}

/// A schema below keywords that combine schemas, with the definitions where references look for them.
fn around(definitions: &Value, wrap: impl FnOnce() -> Value) -> Value {
    let mut schema = wrap();
    schema["$defs"] = definitions.clone();
    schema
}

#[test]
fn the_laws_of_an_algebra_of_sets_hold() {
    let mut dice = Dice(0x1a35_0f5e_7b16_cafe);
    let compiler = compiler();
    let (mut alike, mut empty) = (0, 0);
    let cases = cases(70);
    for _ in 0..cases {
        let (left, right) = (schema(&mut dice, 1), schema(&mut dice, 1));
        let definitions = definitions(json!({"type": ["integer", "object"]}), json!({"minLength": 1}));
        let law = |one: Value, other: Value, dice: &mut Dice| {
            let (one, other) = (around(&definitions, || one), around(&definitions, || other));
            usize::from(assert_alike(&compiler, &one, &other, dice))
        };
        let (a, b) = (&left, &right);
        alike += law(json!({"allOf": [a]}), json!({"not": {"not": a}}), &mut dice);
        alike += law(json!({"allOf": [a, b]}), json!({"allOf": [b, a]}), &mut dice);
        alike += law(json!({"anyOf": [a, b]}), json!({"anyOf": [b, a]}), &mut dice);
        alike += law(json!({"allOf": [a, a]}), json!({"anyOf": [a, a]}), &mut dice);
        alike += law(
            json!({"not": {"allOf": [a, b]}}),
            json!({"anyOf": [{"not": a}, {"not": b}]}),
            &mut dice,
        );
        alike += law(
            json!({"oneOf": [a, b]}),
            json!({"if": a, "then": {"not": b}, "else": b}),
            &mut dice,
        );
        let nothing = around(&definitions, || json!({"allOf": [a, {"not": a}]}));
        match compile(&compiler, &nothing) {
            Ok((_, narrower)) => assert!(narrower, "{nothing} allows something"),
            Err(error) => empty += usize::from(is_unsatisfiable(&error)),
        }
    }
    assert!(
        alike > cases * 4 && empty > cases / 2,
        "{alike} laws tried, {empty} found empty"
    );
}

/// The form that is printed of a schema is that of the schema said twice, but for its name.
#[test]
fn normalising_what_is_normal_changes_nothing() {
    let mut dice = Dice(0xfeed_beef_0000_1111);
    let options = lexiform::Options::default();
    let form = |schema: &Value| {
        let form =
            lexiform_syntax::schema::normal_form(&schema.to_string(), &options.schema, &options.limits)
                .ok()?;
        Some(form.split_once('\n')?.1.to_owned())
    };
    let mut compared = 0;
    for _ in 0..200 {
        let schema = whole_schema(&mut dice, 1);
        assert_eq!(form(&schema), form(&schema), "{schema}");
        let definitions = schema.get("$defs").cloned().unwrap_or_default();
        let mut twice = around(&definitions, || json!({"$ref": "#/$defs/it"}));
        twice["$defs"]["it"] = json!({"allOf": [{"$ref": "#/$defs/self"}, {"$ref": "#/$defs/self"}]});
        twice["$defs"]["self"] = schema.clone();
        let (once, again) = (form(&schema), form(&twice));
        let scalar = |form: &Option<String>| form.as_ref().is_some_and(|form| !form.contains('#'));
        if scalar(&once) && scalar(&again) {
            compared += 1;
            assert_eq!(once, again, "{schema}");
        }
    }
    assert!(compared > 30, "{compared} compared");
}

/// Returns a value with one change somewhere in it.
fn mutated(value: &Value, dice: &mut Dice) -> Value {
    let mut value = value.clone();
    match &mut value {
        Value::Array(list) if !list.is_empty() => {
            let at = dice.roll(list.len());
            match dice.roll(4) {
                0 => drop(list.remove(at)),
                1 => list.push(list[at].clone()),
                2 => list[at] = instance(dice, 1),
                _ => list[at] = mutated(&list[at], dice),
            }
        }
        Value::Object(map) if !map.is_empty() => {
            let key = map.keys().nth(dice.roll(map.len())).cloned().unwrap_or_default();
            match dice.roll(4) {
                0 => drop(map.remove(&key)),
                1 => drop(map.insert("more".into(), instance(dice, 1))),
                2 => drop(map.insert(key, instance(dice, 1))),
                _ => drop(map.insert(key.clone(), mutated(&map[&key], dice))),
            }
        }
        _ => value = instance(dice, 1),
    }
    value
}

/// Values of the official suite, and what becomes of them with something changed, are judged as the other
/// validator does.
#[test]
fn mutated_values_of_the_suite_are_judged_alike() {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(".data/json-schema-test-suite/tests/draft2020-12");
    let Ok(files) = std::fs::read_dir(folder) else {
        println!("skipped: mutated values: .data/json-schema-test-suite is not there");
        return;
    };
    let (mut dice, compiler, mut judged) = (Dice(0x0dd_ba11_c0de_5eed), compiler(), 0);
    let mut paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    paths.sort();
    for path in paths
        .iter()
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
    {
        let text = std::fs::read_to_string(path).expect("a file of the suite");
        let groups: Vec<Value> = serde_json::from_str(&text).expect("a list of groups");
        for group in groups
            .iter()
            .filter(|group| !group["schema"].to_string().contains("//localhost"))
        {
            let Ok(judge) = jsonschema::draft202012::new(&group["schema"]) else {
                continue;
            };
            let Ok((grammar, narrower)) = compile(&compiler, &group["schema"]) else {
                continue;
            };
            for test in group["tests"].as_array().into_iter().flatten() {
                for _ in 0..8 {
                    let value = mutated(&test["data"], &mut dice);
                    if is_beyond_doubles(&value.to_string()) {
                        continue;
                    }
                    let (accepted, valid) = (accepts(&grammar, &value), judge.is_valid(&value));
                    let schema = &group["schema"];
                    assert!(
                        accepted == valid || valid && (narrower || accepts_plain(&grammar, &value)),
                        "{schema} and {value}, valid: {valid}"
                    );
                    judged += 1;
                }
            }
        }
    }
    assert!(judged > 5_000, "{judged} values were judged");
}

/// The items of arrays in which no two may be equal.
const UNIQUE_ITEMS: [&str; 8] = [
    "true",
    r#"{"type": ["object", "integer"], "properties": {"a": {"type": "integer"}, "b": {"type": "array"}}}"#,
    r#"{"properties": {"a": {"minimum": 1}, "b": {"enum": ["a", "b", null]}}, "additionalProperties": false}"#,
    r#"{"type": "array", "items": {"type": ["boolean", "integer"]}}"#,
    r#"{"type": "object", "properties": {"a": {"properties": {"b": {"type": "string"}}, "required": ["b"]}}, "required": ["a"]}"#,
    r#"{"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": {"type": ["integer", "string"]}, "b": {"type": "string"}}, "type": "object"}"#,
    r#"{"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "type": "object"}"#,
    r#"{"oneOf": [{"properties": {"a": {"const": "a"}}, "required": ["a"]}, {"properties": {"a": {"const": "b"}}, "required": ["a"]}], "type": "object"}"#,
];

/// Walks the masks so many times and judges what they lead to. How many walks came to an end.
fn walked_are_valid(
    grammar: &Grammar,
    (judge, schema): (&jsonschema::Validator, &Value),
    dice: &mut Dice,
    times: usize,
) -> usize {
    let texts = (0..times).filter_map(|_| walk(grammar, dice));
    let judged = texts.inspect(|text| {
        let value: Value = serde_json::from_str(text).expect("the masks lead to JSON");
        assert!(
            is_beyond_doubles(text) || judge.is_valid(&value),
            "{schema} and {text}"
        );
    });
    judged.count()
}

/// What the masks of unique items lead to has no two equal items, and so has whatever is accepted.
#[test]
fn unique_items_are_unique() {
    let (mut dice, compiler) = (Dice(0x0451_ce5e_ed01_2345), compiler());
    let (mut walked, mut accepted) = (0, 0);
    for items in UNIQUE_ITEMS {
        let items: Value = serde_json::from_str(items).expect("a schema");
        let schema =
            json!({"type": "array", "uniqueItems": true, "items": items, "minItems": 2, "maxItems": 4});
        let judge = jsonschema::draft202012::new(&schema).expect("a valid schema");
        let (grammar, _) = compile(&compiler, &schema).expect("unique items");
        walked += walked_are_valid(&grammar, (&judge, &schema), &mut dice, 40);
        let mut pool: Vec<Value> = (0..40).map(|_| instance(&mut dice, 2)).collect();
        pool.extend([
            json!({"a": 1, "b": "a"}),
            json!({"b": "a", "a": 1}),
            json!({"a": 2}),
            json!({"a": {"b": "x"}}),
        ]);
        for _ in 0..400 {
            let value: Vec<Value> = (0..2 + dice.roll(2)).map(|_| dice.pick(&pool).clone()).collect();
            let value = Value::Array(value);
            if accepts(&grammar, &value) {
                assert!(judge.is_valid(&value), "{schema} and {value}");
                accepted += 1;
            }
        }
    }
    assert!(
        walked > 150 && accepted > 100,
        "{walked} walked, {accepted} accepted"
    );
}

/// The same of random items, with all that they ask of themselves.
#[test]
fn unique_items_of_random_schemas_are_judged_alike() {
    let (mut dice, compiler, cases) = (Dice(0x0dd5_0c45_0f1e_7e45), compiler(), cases(300));
    let (mut compiled, mut accepted) = (0, 0);
    for _ in 0..cases {
        let kinds = [
            json!("array"),
            json!("object"),
            json!(["array", "object", "integer"]),
        ];
        let kinds = dice.pick(&kinds);
        let items = json!({"type": kinds, "allOf": [schema(&mut dice, 1)]});
        let mut schema = json!({"type": "array", "uniqueItems": true, "items": items});
        schema["$defs"] = definitions(json!({"type": "array"}), json!({"maxProperties": 1}));
        let judge = jsonschema::draft202012::new(&schema).expect("a valid schema");
        let (grammar, narrower) = match compile(&compiler, &schema) {
            Ok(compiled) => compiled,
            Err(error) => {
                check_refusal(&error, &schema, &judge, &mut dice);
                continue;
            }
        };
        compiled += 1;
        if let Some(text) = walk(&grammar, &mut dice) {
            let value: Value = serde_json::from_str(&text).expect("the masks lead to JSON");
            assert!(
                is_beyond_doubles(&text) || judge.is_valid(&value),
                "{schema} and {text}"
            );
        }
        for _ in 0..20 {
            let value: Vec<Value> = (0..dice.roll(4)).map(|_| instance(&mut dice, 1)).collect();
            let value = Value::Array(value);
            let here = judged_alike((&grammar, narrower), &value, (&judge, &schema));
            accepted += usize::from(here);
        }
    }
    assert!(
        compiled > cases / 2 && accepted > cases,
        "{compiled} compiled, {accepted} accepted"
    );
}

/// What arrays ask for besides two equal items, and whether all such arrays are allowed.
const EQUAL_ITEMS: [(&str, bool); 14] = [
    (
        r#"{"items": {"type": ["string", "number", "boolean", "null"]}}"#,
        false,
    ),
    (
        r#"{"items": {"type": "string", "pattern": "^[ab]*$"}, "maxItems": 3}"#,
        false,
    ),
    (r#"{"items": {"type": "integer"}, "minItems": 3}"#, false),
    (
        r#"{"items": {"enum": ["a", "b", 1, {"a": 1}, [2.0], null]}}"#,
        true,
    ),
    (r#"{"items": {"type": "boolean"}, "maxItems": 2}"#, true),
    (
        r#"{"prefixItems": [{"enum": ["a", 1]}, {"type": "string"}], "items": {"enum": ["a", "b"]}, "maxItems": 3}"#,
        true,
    ),
    (
        r#"{"prefixItems": [{"enum": ["a", 1, 0.5]}], "items": {"type": ["string", "number"]}}"#,
        false,
    ),
    (
        r#"{"prefixItems": [{"type": "string"}, {"const": "a"}, {"type": "boolean"}], "items": false}"#,
        true,
    ),
    (
        r#"{"items": {"enum": ["a", "b", 1, 2, null]}, "contains": {"const": 1}, "maxContains": 1}"#,
        true,
    ),
    (
        r#"{"items": {"type": ["integer", "string"]}, "contains": {"type": "string"}}"#,
        false,
    ),
    (
        r#"{"prefixItems": [{"type": "string"}, {"type": "string"}]}"#,
        false,
    ),
    (r#"{"items": {"multipleOf": 2, "type": "integer"}}"#, false),
    (
        r#"{"items": {"properties": {"a": {"type": "integer"}}, "additionalProperties": false, "type": ["object", "string"]}}"#,
        false,
    ),
    ("{}", false),
];

/// What the masks lead to has two equal items; where nothing is said to be left out, each such array is
/// accepted.
#[test]
fn items_of_which_two_are_equal() {
    let (mut dice, compiler) = (Dice(0x2e4a_7ed1_7e35_0001), compiler());
    let (mut walked, mut accepted) = (0, 0);
    for (items, exact) in EQUAL_ITEMS {
        let mut schema: Value = serde_json::from_str(items).expect("a schema");
        schema["type"] = json!("array");
        schema["not"] = json!({"uniqueItems": true});
        let judge = jsonschema::draft202012::new(&schema).expect("a valid schema");
        let (grammar, narrower) = compile(&compiler, &schema).expect("equal items");
        assert_eq!(narrower, !exact, "{schema}");
        walked += walked_are_valid(&grammar, (&judge, &schema), &mut dice, 30);
        for _ in 0..400 {
            let mut value: Vec<Value> = (0..1 + dice.roll(3)).map(|_| instance(&mut dice, 0)).collect();
            value.insert(dice.roll(value.len() + 1), dice.pick(&value.clone()).clone());
            let value = Value::Array(value);
            let here = judged_alike((&grammar, narrower), &value, (&judge, &schema));
            accepted += usize::from(here);
        }
    }
    assert!(
        walked > 300 && accepted > 500,
        "{walked} walked, {accepted} accepted"
    );
}
