//! Reads the Berkeley Function-Calling Leaderboard, in two forms.
//!
//! ```text
//!   BFCL_v3_simple.json                  {"id", "question": [[message, …]], "function": [tool, …]}
//!   possible_answer/BFCL_v3_simple.json  {"id", "ground_truth": [{tool: {argument: [value, …]}}, …]}
//! ```
//!
//! An argument has a list of values that are right; an empty text among them says that it may be absent.
//! Types of arguments are those of Python, such as `dict`. The other form has the tools as JSON Schema and
//! the calls in the record (`tools`, `calls`); there, an argument that its tool does not require may be
//! absent.
//!
//! Texts are compared by their letters and digits in any case, as that leaderboard does, and calls in any
//! order.

use std::collections::HashMap;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::difference::Wanted;
use super::records::records;
use super::task::{Answer, Checker, Defect, Fields, Message, Parts, Task};
use crate::failure::Failure;

/// Returns what is right by the id of its question, from the folder beside a file.
///
/// # Errors
/// The file is missing or broken. Files of questions that no tool fits need none.
pub(super) fn possible_answers(path: &Path) -> Result<HashMap<String, Value>, Failure> {
    let name = path.file_name().unwrap_or_default();
    let answers = path.with_file_name("possible_answer").join(name);
    if !answers.is_file() && name.to_string_lossy().contains("irrelevance") {
        return Ok(HashMap::new());
    }
    let (records, _) = records(&answers)?;
    let mut right = HashMap::new();
    for record in records {
        let place = record.place;
        let read = || -> Result<(String, Value), Defect> {
            let mut fields = Fields::of(&record.value, "")?;
            Ok((fields.text("id")?, fields.required("ground_truth")?.clone()))
        };
        let (id, calls) = read().map_err(|defect| Failure::message(format!("{place}: {defect}")))?;
        right.insert(id, calls);
    }
    Ok(right)
}

/// Reads a record of the published form.
pub(super) fn published(record: &Value, right: &HashMap<String, Value>, kind: &str) -> Result<Task, Defect> {
    let mut fields = Fields::of(record, "")?;
    let name = fields.text("id")?;
    let messages = conversation(&mut fields)?;
    let mut tools = Vec::new();
    for (index, tool) in fields.list("function")?.unwrap_or_default().iter().enumerate() {
        let mut tool = tool.clone();
        if let Some(parameters) = tool.get_mut("parameters") {
            to_json_schema(parameters, &format!("/function/{index}/parameters"))?;
        }
        tools.push(tool);
    }
    let mut wanted = Wanted::default();
    let calls = match right.get(&name) {
        Some(calls) => {
            let list = calls.as_array().map_or(&[][..], Vec::as_slice);
            let calls: Result<Vec<Value>, Defect> = list
                .iter()
                .enumerate()
                .map(|(index, call)| published_call(call, &format!("/calls/{index}"), &mut wanted))
                .collect();
            calls?
        }
        None if right.is_empty() => Vec::new(),
        None => {
            return Err(Defect::new(
                "/id",
                "the folder possible_answer has nothing with this id",
            ));
        }
    };
    task(name, kind, messages, tools, calls, wanted)
}

/// Reads a record with tools as JSON Schema and the right calls.
pub(super) fn with_calls(record: &Value, kind: &str) -> Result<Task, Defect> {
    let mut fields = Fields::of(record, "")?;
    let name = fields.text("id")?;
    let messages = conversation(&mut fields)?;
    let tools = fields.list("tools")?.unwrap_or_default().to_vec();
    let given = fields.list("calls")?;
    let given = given.ok_or_else(|| Defect::new("", "`calls` is missing"))?;
    let mut wanted = Wanted::default();
    let mut calls = Vec::new();
    for (index, call) in given.iter().enumerate() {
        let mut call = Fields::of(call, &format!("/calls/{index}"))?;
        let name = call.text("name")?;
        let arguments = call.required("arguments")?;
        let tool = tools.iter().find(|it| it["name"] == name.as_str());
        let required = tool.and_then(|it| it["parameters"]["required"].as_array());
        for argument in arguments.as_object().into_iter().flat_map(Map::keys) {
            let is_required = required.is_some_and(|it| it.iter().any(|it| it == argument));
            if !is_required {
                wanted.optional.insert(place_of(index, argument));
            }
        }
        calls.push(json!({"name": name, "arguments": arguments}));
    }
    task(name, kind, messages, tools, calls, wanted)
}

fn place_of(call: usize, argument: &str) -> String {
    format!("/calls/{call}/arguments/{}", step(argument))
}

/// Returns a key as a step of a JSON pointer.
fn step(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn task(
    name: String,
    kind: &str,
    messages: Vec<Message>,
    tools: Vec<Value>,
    calls: Vec<Value>,
    mut wanted: Wanted,
) -> Result<Task, Defect> {
    wanted.value = json!({"calls": calls});
    wanted.unordered.insert("/calls".to_owned());
    wanted.fold = true;
    Task::new(Parts {
        name,
        kind: kind.to_owned(),
        level: None,
        messages,
        tools,
        schema: None,
        answer: Answer {
            checker: Checker::Json(Box::new(wanted)),
            at: None,
        },
    })
}

/// Reads the messages of a question, which has one turn.
fn conversation(fields: &mut Fields) -> Result<Vec<Message>, Defect> {
    let turns = fields.list("question")?.unwrap_or_default();
    let [Value::Array(messages)] = turns else {
        let reason = "has several turns, or none; the calls of one turn can be judged";
        return Err(Defect::new("/question", reason));
    };
    let message = |(index, it)| Message::read(it, &format!("/question/0/{index}"));
    messages.iter().enumerate().map(message).collect()
}

/// Reads a call that is right: `{tool: {argument: [value, …]}}`.
fn published_call(call: &Value, place: &str, wanted: &mut Wanted) -> Result<Value, Defect> {
    let mut members = call.as_object().into_iter().flatten();
    let (Some((name, Value::Object(arguments))), None) = (members.next(), members.next()) else {
        return Err(Defect::new(
            "",
            "`ground_truth` has an item that is no call {tool: {argument: […]}}",
        ));
    };
    let arguments = members_of(arguments, &format!("{place}/arguments"), wanted);
    Ok(json!({"name": name, "arguments": arguments}))
}

/// Returns the members of an object whose values are lists of values that are right.
fn members_of(members: &Map<String, Value>, place: &str, wanted: &mut Wanted) -> Map<String, Value> {
    let mut right = Map::new();
    for (key, values) in members {
        let place = format!("{place}/{}", step(key));
        let Some(values) = values.as_array() else {
            right.insert(key.clone(), values.clone());
            continue;
        };
        let is_absent = |it: &&Value| it.as_str() == Some("");
        let mut present = values.iter().filter(|it| !is_absent(it));
        // An argument that can only be absent is not wanted.
        let Some(first) = present.next() else { continue };
        let others: Vec<Value> = present.map(plain).collect();
        if !others.is_empty() {
            wanted.or.insert(place.clone(), others);
        }
        if values.iter().any(|it| is_absent(&it)) {
            wanted.optional.insert(place.clone());
        }
        right.insert(key.clone(), nested(first, &place, wanted));
    }
    right
}

/// Returns a value in which objects, and objects of lists, have lists of values that are right.
fn nested(value: &Value, place: &str, wanted: &mut Wanted) -> Value {
    match value {
        Value::Object(members) => Value::Object(members_of(members, place, wanted)),
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items
                .map(|(index, it)| nested(it, &format!("{place}/{index}"), wanted))
                .collect()
        }
        other => other.clone(),
    }
}

/// Returns the first of all right values.
fn plain(value: &Value) -> Value {
    nested(value, "", &mut Wanted::default())
}

/// Replaces the types of Python by those of JSON Schema.
fn to_json_schema(schema: &mut Value, place: &str) -> Result<(), Defect> {
    let Some(object) = schema.as_object_mut() else {
        return Err(Defect::new(place, "is no JSON object"));
    };
    if let Some(named) = object.get("type").cloned() {
        match json_type(named.as_str().unwrap_or_default()) {
            Some("any") => drop(object.remove("type")),
            Some(json_type) => drop(object.insert("type".to_owned(), json_type.into())),
            None => {
                let reason =
                    format!("{named} is no type of Python; files for Java and JavaScript are not read");
                return Err(Defect::new(format!("{place}/type"), reason));
            }
        }
    }
    // A mark of the leaderboard, which no draft of JSON Schema has.
    object.remove("optional");
    if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) {
        for (key, property) in properties {
            to_json_schema(property, &format!("{place}/properties/{}", step(key)))?;
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(part) = object.get_mut(key).filter(|it| it.is_object()) {
            to_json_schema(part, &format!("{place}/{key}"))?;
        }
    }
    Ok(())
}

fn json_type(python: &str) -> Option<&'static str> {
    Some(match python {
        "dict" | "object" => "object",
        "tuple" | "list" | "array" => "array",
        "float" | "double" | "number" => "number",
        "int" | "integer" | "long" => "integer",
        "str" | "string" => "string",
        "bool" | "boolean" => "boolean",
        "null" => "null",
        "any" => "any",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Value {
        json!({
            "id": "simple_0",
            "question": [[{"role": "user", "content": "The area?"}]],
            "function": [{"name": "geo.area", "parameters": {
                "type": "dict",
                "properties": {
                    "base": {"type": "float"}, "unit": {"type": "string", "optional": true},
                    "at": {"type": "dict", "properties": {"x": {"type": "integer"}}},
                    "tags": {"type": "tuple", "items": {"type": "any"}},
                },
                "required": ["base"],
            }}],
        })
    }

    fn right(calls: Value) -> HashMap<String, Value> {
        HashMap::from([("simple_0".to_owned(), calls)])
    }

    fn scores(task: &Task, cases: &[(Value, bool)]) {
        for (arguments, is_right) in cases {
            let text = json!({"calls": [{"name": "geo.area", "arguments": arguments}]}).to_string();
            let verdict = task.judge(&text);
            assert_eq!(verdict.is_right(), *is_right, "{arguments}: {verdict:?}");
        }
    }

    #[test]
    fn lists_have_values_that_are_right_and_perhaps_absence() {
        let calls = json!([{"geo.area": {
            "base": [10, 10.5], "unit": ["Metres", "m", ""], "at": [{"x": [1, 2], "y": ["", 3]}], "tags": [["a", "b"]],
            "never": [""],
        }}]);
        let task = published(&record(), &right(calls), "simple").expect("a task");
        let whole = json!({"base": 10, "unit": "m", "at": {"x": 2}, "tags": ["A", "b"]});
        let with = |key: &str, value: Value| {
            let mut arguments = whole.clone();
            arguments[key] = value;
            arguments
        };
        scores(
            &task,
            &[
                (whole.clone(), true),
                (with("base", json!(10.5)), true),
                (with("base", json!(11)), false),
                (with("unit", Value::Null), true),
                (with("unit", json!("km")), false),
                (with("at", json!({"x": 1, "y": 3})), true),
                (with("at", json!({"x": 3})), false),
                (with("tags", json!(["b", "a"])), false),
                (with("never", json!(1)), false),
            ],
        );
        assert_eq!(
            task.schema.as_ref().map(|it| it
                .pointer("/properties/calls/items/anyOf/0/properties/arguments/properties/base/type")
                .cloned()),
            Some(Some(json!("number")))
        );
    }

    #[test]
    fn calls_come_in_any_order() {
        let calls = json!([{"geo.area": {"base": [1]}}, {"geo.area": {"base": [2]}}]);
        let task = published(&record(), &right(calls), "parallel").expect("a task");
        let call = |base: u64| json!({"name": "geo.area", "arguments": {"base": base}});
        assert!(
            task.judge(&json!({"calls": [call(2), call(1)]}).to_string())
                .is_right()
        );
        assert!(
            !task
                .judge(&json!({"calls": [call(2), call(2)]}).to_string())
                .is_right()
        );
        assert!(!task.judge(&json!({"calls": [call(1)]}).to_string()).is_right());
    }

    #[test]
    fn questions_that_no_tool_fits_have_no_calls() {
        let task = published(&record(), &HashMap::new(), "irrelevance").expect("a task");
        assert!(task.judge(r#"{"calls": []}"#).is_right());
        assert!(
            !task
                .judge(r#"{"calls": [{"name": "geo.area", "arguments": {"base": 1}}]}"#)
                .is_right()
        );
        let possible = possible_answers(Path::new("nowhere/BFCL_v3_irrelevance.json"));
        assert!(possible.expect("none").is_empty());
        assert!(possible_answers(Path::new("nowhere/BFCL_v3_simple.json")).is_err());
    }

    #[test]
    fn what_cannot_be_judged_is_refused() {
        let refused = |change: (&str, Value), calls: Value| {
            let mut record = record();
            record[change.0] = change.1;
            published(&record, &right(calls), "k")
                .expect_err("refused")
                .to_string()
        };
        let several = refused(("question", json!([[], []])), json!([]));
        assert!(several.starts_with("/question: has several turns"), "{several}");
        let java = refused(
            (
                "function",
                json!([{"name": "f", "parameters": {"type": "HashMap"}}]),
            ),
            json!([]),
        );
        assert!(
            java.starts_with("/function/0/parameters/type: \"HashMap\" is no type"),
            "{java}"
        );
        let id = refused(("id", json!("simple_1")), json!([]));
        assert!(id.starts_with("/id: the folder"), "{id}");
        let call = refused(("x", json!(1)), json!(["f(1)"]));
        assert!(call.contains("no call"), "{call}");
    }

    #[test]
    fn with_calls_in_the_record_what_is_not_required_may_be_absent() {
        let record = json!({
            "id": "s", "question": [[{"role": "user", "content": "q"}]],
            "tools": [{"name": "geo.area", "parameters": {
                "type": "object", "properties": {"base": {"type": "number"}, "unit": {"type": "string"}}, "required": ["base"],
            }}],
            "calls": [{"name": "geo.area", "arguments": {"base": 10, "unit": "units"}, "valid": true}],
        });
        let task = with_calls(&record, "k").expect("a task");
        scores(
            &task,
            &[
                (json!({"base": 10}), true),
                (json!({"base": 10, "unit": "Units"}), true),
                (json!({"base": 10, "unit": "m"}), false),
                (json!({"unit": "units"}), false),
            ],
        );
    }
}
