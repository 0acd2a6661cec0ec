//! Keys that depend on the value of another one, which decides about all of them at once.

use lexiform::error::ProblemKind;
use serde_json::{Map, Value, json};

use super::random::{Dice, accepts, cases, compile, compiler};

const KEYS: [&str; 5] = ["a", "b", "c", "d", "e"];

fn values() -> [Value; 6] {
    [
        json!("x"),
        json!("y"),
        json!("z"),
        json!(1),
        json!(true),
        json!(null),
    ]
}

/// Some of the values, at least one.
fn some(dice: &mut Dice) -> Vec<Value> {
    let mut some: Vec<Value> = values().into_iter().filter(|_| dice.roll(3) == 0).collect();
    if some.is_empty() {
        some.push(dice.pick(&values()).clone());
    }
    some
}

/// What holds if a key is there: mostly a list of values for `type`, at times with more beside it.
fn consequence(dice: &mut Dice) -> Value {
    let listed = json!({"properties": {"type": {"enum": some(dice)}}});
    match dice.roll(9) {
        0 => json!({"properties": {"type": {"enum": some(dice)}, "a": {"const": 0}}}),
        1 => json!({"properties": {"type": {"enum": some(dice)}}, "required": ["type"]}),
        2 => json!({"properties": {"type": {"type": "string"}}}),
        3 => json!({"properties": {"other": {"enum": some(dice)}}}),
        _ => listed,
    }
}

fn random(dice: &mut Dice) -> Value {
    let mut properties = Map::new();
    for key in KEYS {
        properties.insert(key.into(), json!({}));
    }
    properties.insert("other".into(), json!({}));
    let own = match dice.roll(3) {
        0 => json!({"enum": some(dice)}),
        1 => json!({"type": ["string", "integer"]}),
        _ => json!({}),
    };
    properties.insert("type".into(), own);
    let count = 3 + dice.roll(3);
    let dependent: Map<String, Value> = KEYS[..count]
        .iter()
        .map(|&key| (key.to_owned(), consequence(dice)))
        .collect();
    let mut schema = json!({"type": "object", "properties": properties, "dependentSchemas": dependent});
    if dice.roll(2) == 0 {
        schema["additionalProperties"] = json!(false);
    }
    if dice.roll(3) == 0 {
        schema["required"] = json!(["type"]);
    }
    schema
}

/// All objects of these keys with and without `type` and `other`.
fn objects() -> impl Iterator<Item = Value> {
    let types = || values().into_iter().map(Some).chain([None]);
    (0..1u32 << KEYS.len()).flat_map(move |present| {
        types().enumerate().map(move |(at, kind)| {
            let there = KEYS.iter().enumerate().filter(|(bit, _)| present >> bit & 1 == 1);
            let mut object: Map<String, Value> = there.map(|(_, &key)| (key.to_owned(), json!(0))).collect();
            object.extend(kind.map(|kind| ("type".to_owned(), kind)));
            if (present as usize + at).is_multiple_of(2) {
                object.insert("other".into(), values()[at % 6].clone());
            }
            Value::Object(object)
        })
    })
}

#[test]
fn keys_that_depend_on_the_value_of_another_are_judged_alike() {
    let (mut dice, compiler, mut judged) = (Dice(0xdeb7_5e7d_e75d_7b1d), compiler(), 0);
    for _ in 0..cases(60) {
        let schema = random(&mut dice);
        let judge = jsonschema::draft202012::new(&schema).expect("a valid schema");
        let (grammar, narrower) = compile(&compiler, &schema).expect("an object without keys is left");
        assert!(!narrower, "{schema} is exact");
        for object in objects() {
            let (accepted, valid) = (accepts(&grammar, &object), judge.is_valid(&object));
            assert_eq!(accepted, valid, "{schema} and {object}");
            judged += usize::from(valid);
        }
    }
    assert!(judged > 1_000, "{judged} valid objects");
}

/// What is asked of an object: mostly the value of `type`, at times of another key, or more than that.
fn condition(dice: &mut Dice) -> Value {
    let listed = json!({"properties": {"type": {"enum": some(dice)}}});
    match dice.roll(9) {
        0 => json!({"properties": {"other": {"const": some(dice)[0]}}}),
        1 => json!({"properties": {"type": {"const": some(dice)[0]}, "a": {"const": 0}}}),
        2 => json!({"type": "object", "properties": {"type": {"enum": some(dice)}}, "required": ["type"]}),
        3 => json!({"properties": {"type": {"type": "string"}}}),
        7 => {
            json!({"properties": {"type": {"const": some(dice)[0]}, "other": {"const": some(dice)[0]}}, "required": ["type"]})
        }
        4..=6 => json!({"properties": {"type": {"const": some(dice)[0]}}, "required": ["type"]}),
        _ => listed,
    }
}

/// What follows: some of the keys must be there, or may not, or `type` has one of some values.
fn follows(dice: &mut Dice) -> Value {
    let key = *dice.pick(&KEYS);
    match dice.roll(5) {
        0 => json!({"properties": {key: false}}),
        1 => json!({"required": [key, "type"]}),
        2 => consequence(dice),
        _ => json!({"required": [key]}),
    }
}

#[test]
fn conditions_about_one_key_are_judged_alike() {
    let (mut dice, compiler, cases) = (Dice(0x1f7e_e15e_0dd5_7b1d), compiler(), cases(120));
    let (mut judged, mut refused) = (0, 0);
    for _ in 0..cases {
        let conditions = (0..3 + dice.roll(4)).map(|_| {
            let mut conditional = json!({"if": condition(&mut dice), "then": follows(&mut dice)});
            if dice.roll(3) == 0 {
                conditional["else"] = follows(&mut dice);
            }
            conditional
        });
        let conditions: Vec<Value> = conditions.collect();
        let mut schema = json!({"type": "object", "allOf": conditions});
        match dice.roll(3) {
            0 => schema["required"] = json!(["type"]),
            1 => schema["properties"] = json!({"type": {"enum": some(&mut dice)}}),
            _ => {}
        }
        let judge = jsonschema::draft202012::new(&schema).expect("a valid schema");
        let Ok((grammar, narrower)) = compile(&compiler, &schema) else {
            assert!(
                !objects().any(|object| judge.is_valid(&object)),
                "{schema} is refused"
            );
            refused += 1;
            continue;
        };
        assert!(!narrower, "{schema} is exact");
        for object in objects() {
            let (accepted, valid) = (accepts(&grammar, &object), judge.is_valid(&object));
            assert_eq!(accepted, valid, "{schema} and {object}");
            judged += usize::from(valid);
        }
    }
    assert!(
        judged > 10 * cases && refused < cases / 4,
        "{judged} valid objects, {refused} refused"
    );
}

/// Twenty keys that depend on one are as many cases as its values can be told apart, and not a million
/// objects.
#[test]
fn twenty_keys_may_depend_on_the_value_of_one() {
    let keys: Vec<String> = (0..20).map(|key| format!("k{key}")).collect();
    let consequence = |at: usize| json!({"properties": {"type": {"enum": ["all", format!("v{}", at % 7)]}}});
    let dependent: Map<String, Value> = keys
        .iter()
        .enumerate()
        .map(|(at, key)| (key.clone(), consequence(at)))
        .collect();
    let properties: Map<String, Value> = keys.iter().map(|key| (key.clone(), json!({}))).collect();
    let schema = json!({"type": "object", "properties": properties, "dependentSchemas": dependent});
    let (grammar, narrower) = compile(&compiler(), &schema).expect("it is no large union");
    assert!(!narrower, "nothing is left out");
    let with = |kind: &str, keys: &[&String]| {
        let mut object: Map<String, Value> = keys.iter().map(|key| ((*key).clone(), json!(0))).collect();
        object.insert("type".into(), json!(kind));
        accepts(&grammar, &Value::Object(object))
    };
    let all: Vec<&String> = keys.iter().collect();
    let third: Vec<&String> = keys
        .iter()
        .enumerate()
        .filter(|(at, _)| at % 7 == 3)
        .map(|(_, key)| key)
        .collect();
    assert!(with("all", &all) && with("v3", &third) && with("v4", &[]));
    assert!(!with("v3", &all) && !with("v4", &third) && !with("none", &third));
    let refused = json!({"type": "object", "dependentSchemas": dependent, "required": ["k0", "k1", "type"],
        "properties": {"type": {"const": "v0"}}});
    let error = compile(&compiler(), &refused).expect_err("k1 does not go with v0");
    assert!(
        error
            .problems
            .iter()
            .all(|problem| problem.kind == ProblemKind::Unsatisfiable),
        "{error}"
    );
}
