//! Hostile sources by family and size: grammars, schemas and prompts that are small to send and expensive to
//! read.

use serde_json::{Map, Value, json};

/// Returns a grammar of one leaf with `count` postfix operators.
pub(crate) fn postfixes(operator: &str, count: usize) -> String {
    format!("root ::= \"a\"{}", operator.repeat(count))
}

/// Returns rules that each call the next: `N` in the body stands for its name.
pub(crate) fn calls(body: &str, count: usize) -> String {
    let rule = |at: usize| format!("r{at} ::= {}\n", body.replace('N', &format!("r{}", at + 1)));
    let rules: String = (0..count).map(rule).collect();
    format!("root ::= r0\n{rules}r{count} ::= \"z\"")
}

/// Returns definitions that each refer to the next: `"N"` in the holder stands for the reference.
pub(crate) fn references(holder: &Value, count: usize) -> Value {
    let holder = holder.to_string();
    let to = |at: usize| format!("{{\"$ref\":\"#/$defs/a{at}\"}}");
    let mut defs = Map::new();
    for at in 0..count {
        let held = holder.replace("\"N\"", &to(at + 1));
        defs.insert(format!("a{at}"), serde_json::from_str(&held).unwrap_or_default());
    }
    defs.insert(format!("a{count}"), json!({"properties": {"x": {}}}));
    json!({"$ref": "#/$defs/a0", "$defs": defs, "unevaluatedProperties": false})
}

/// Returns `count` choices that all hold, under a keyword that depends on which properties were evaluated.
pub(crate) fn product(keyword: &str, typed: bool, count: usize) -> Value {
    let property = |name: String| {
        let value = if typed {
            json!({"type": "string"})
        } else {
            json!({})
        };
        json!({"properties": {name: value}})
    };
    let choice = |at: usize| json!({keyword: [property(format!("p{at}")), property(format!("q{at}"))]});
    let all: Vec<Value> = (0..count).map(choice).collect();
    json!({"allOf": all, "unevaluatedProperties": false})
}

/// Returns an object schema that requires `count` keys.
pub(crate) fn required(count: usize) -> Value {
    let keys: Vec<String> = (0..count).map(|at| format!("required key {at}")).collect();
    json!({"type": "object", "required": keys})
}

/// Returns an object schema with `count` properties.
pub(crate) fn properties(count: usize) -> Value {
    let all: Map<String, Value> = (0..count)
        .map(|at| (format!("k{at}"), json!({"type": "integer"})))
        .collect();
    json!({"type": "object", "properties": all})
}

/// Returns an object schema of this many required integers.
pub(crate) fn wide(count: usize) -> Value {
    let Value::Object(mut schema) = properties(count) else {
        return Value::Null;
    };
    let keys = (0..count).map(|at| Value::from(format!("k{at}"))).collect();
    schema.insert("required".to_owned(), keys);
    Value::Object(schema)
}

/// Returns a schema of lists of different items out of `count`, of which about a quarter are even: whether a
/// list can still be completed depends on which items it has.
pub(crate) fn counted_items(count: usize) -> Value {
    let (all, even): (Vec<usize>, Vec<usize>) = ((0..count).collect(), (0..count).step_by(2).collect());
    json!({"type": "array", "uniqueItems": true, "items": {"enum": all}, "contains": {"enum": even},
        "minContains": count / 4, "maxContains": count / 4 + 1, "minItems": count / 2})
}

/// Returns this many different words of `letters` letters.
pub(crate) fn labels(count: usize, letters: usize) -> Vec<String> {
    let letter =
        |number: usize, at: usize| (b'a' + (number / 7_usize.pow(at as u32) * 13 % 26) as u8) as char;
    let tail = |number: usize| (0..letters).map(|at| letter(number, at)).collect::<String>();
    (0..count)
        .map(|number| format!("{}{number}", tail(number)))
        .collect()
}

/// Returns a prompt of about `bytes` bytes.
pub(crate) fn prompt(piece: &str, bytes: usize) -> String {
    piece.repeat(bytes / piece.len())
}

/// Returns a value nested `depth` times in `before` and `after`.
pub(crate) fn deep(before: &str, core: &str, after: &str, depth: usize) -> String {
    [&before.repeat(depth), core, &after.repeat(depth)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_what_they_say() {
        assert_eq!(postfixes("{2}", 2), "root ::= \"a\"{2}{2}");
        assert_eq!(
            calls("(N \"x\")*", 1),
            "root ::= r0\nr0 ::= (r1 \"x\")*\nr1 ::= \"z\""
        );
        let schema = references(&json!({"allOf": ["N"]}), 1);
        assert_eq!(schema["$defs"]["a0"], json!({"allOf": [{"$ref": "#/$defs/a1"}]}));
        assert_eq!(
            product("oneOf", false, 3)["allOf"].as_array().map(Vec::len),
            Some(3)
        );
        assert_eq!(deep("[", "1", "]", 2), "[[1]]");
    }
}
