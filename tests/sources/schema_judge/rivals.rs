//! Alternatives of which one must hold, told apart by the values of a key, by keys of their own, or not at
//! all.

use serde_json::{Map, Value, json};

use super::random::{Dice, cases, compile, compiler, judged_alike};

const KEYS: [&str; 3] = ["kind", "a", "b"];

fn values() -> [Value; 7] {
    [
        json!("x"),
        json!("y"),
        json!(1),
        json!(1.0),
        json!(2),
        json!(true),
        json!(null),
    ]
}

/// What is said of the value of a key: mostly a list.
fn said(dice: &mut Dice) -> Value {
    let listed: Vec<Value> = (0..1 + dice.roll(2))
        .map(|_| dice.pick(&values()).clone())
        .collect();
    match dice.roll(8) {
        0 => json!({"type": "string"}),
        1 => json!({"$ref": "#/$defs/listed"}),
        2 => json!({"allOf": [{"const": listed[0]}]}),
        3 => json!({}),
        4 => json!({"const": listed[0]}),
        5 => json!({"type": ["integer", "boolean"], "enum": listed}),
        _ => json!({"enum": listed}),
    }
}

fn alternative(dice: &mut Dice) -> Value {
    if dice.roll(8) == 0 {
        return said(dice);
    }
    let mut properties = Map::new();
    for key in KEYS {
        if dice.roll(3) > 0 {
            properties.insert(key.into(), said(dice));
        }
    }
    let mut schema = json!({"properties": properties});
    let required: Vec<&str> = KEYS.into_iter().filter(|_| dice.roll(2) == 0).collect();
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if dice.roll(2) == 0 {
        schema["type"] = json!("object");
    }
    if dice.roll(3) == 0 {
        schema["additionalProperties"] = json!(dice.roll(4) == 0);
        if dice.roll(2) == 0 {
            schema["patternProperties"] = json!({"^[am]": {}});
        }
    }
    match dice.roll(6) {
        0 => json!({"allOf": [schema, alternative(dice)]}),
        1 => json!({"anyOf": [schema, alternative(dice)]}),
        2 => json!({"oneOf": [schema, alternative(dice)], "required": ["a"]}),
        _ => schema,
    }
}

fn instance(dice: &mut Dice) -> Value {
    let value = |dice: &mut Dice| dice.pick(&values()).clone();
    if dice.roll(5) == 0 {
        return value(dice);
    }
    let mut object = Map::new();
    for key in KEYS.into_iter().chain(["more"]) {
        if dice.roll(2) == 0 {
            object.insert(key.into(), value(dice));
        }
    }
    Value::Object(object)
}

#[test]
fn exactly_one_of_many_is_judged_alike() {
    let (mut dice, compiler, cases) = (Dice(0x0a17_e4a7_1be5_5eed), compiler(), cases(400));
    let (mut compiled, mut accepted) = (0, 0);
    for _ in 0..cases {
        let list: Vec<Value> = (0..3 + dice.roll(5)).map(|_| alternative(&mut dice)).collect();
        let one = json!({ "oneOf": list });
        let mut schema = match dice.roll(5) {
            0 => json!({"not": one}),
            1 => json!({"allOf": [one], "unevaluatedProperties": false}),
            _ => one,
        };
        schema["$defs"] = json!({"listed": {"enum": ["x", 2]}});
        let judge = jsonschema::draft202012::new(&schema).expect("a valid schema");
        let Ok((grammar, narrower)) = compile(&compiler, &schema) else {
            let some = (0..100)
                .map(|_| instance(&mut dice))
                .find(|value| judge.is_valid(value));
            assert_eq!(some, None, "{schema} is refused");
            continue;
        };
        compiled += 1;
        for _ in 0..40 {
            let value = instance(&mut dice);
            let here = judged_alike((&grammar, narrower), &value, (&judge, &schema));
            accepted += usize::from(here);
        }
    }
    assert!(
        compiled > cases * 3 / 4 && accepted > cases * 4,
        "{compiled} compiled, {accepted} accepted"
    );
}
