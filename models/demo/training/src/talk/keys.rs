//! Keys that the prompt names: in a sentence, as a list, or by an example of the object.

use super::systems;
use crate::prompt::{Prompt, Turn, python};
use crate::sample::{Kind, Sample};
use crate::text::any_scene;
use crate::text::people::listed;
use crate::text::scene::{Fact, KeyStyle, Manner, Node, Questioner, Scene};
use crate::text::values::Values;
use serde_json::{Map, Value, json};

const ASKS: &[&str] = &[
    "Return JSON with the keys {keys}.",
    "Extract {keys} as JSON.",
    "Give me {keys} as a JSON object.",
    "Answer in JSON with the keys {keys}.",
    "Return a JSON object with {keys} keys.",
    "Respond with JSON that has the fields {keys}.",
    "The JSON must have the keys {keys}.",
    "Reply with a JSON object with the fields {keys}.",
    "Extract the fields {keys}. Answer with JSON only.",
    "Which are {keys}? Answer in JSON.",
    "Keys: {keys}. Format: JSON.",
    "Return the following as JSON: {keys}.",
    "Use JSON and the keys {keys}.",
];
const LISTS: &[&str] = &[
    "Return a JSON object with these keys:",
    "Extract these fields as JSON:",
    "Fields:",
    "Answer in JSON with the following fields:",
];
const EXAMPLES: &[&str] = &[
    "Answer with JSON of this form:",
    "Return JSON like this:",
    "Output format:",
    "Use this format:",
    "The answer must look like this:",
    "Example of the output:",
    "Respond in this JSON format:",
];

/// A text, and keys that a message of the user or of the system names.
pub(crate) fn keys(values: &mut Values) -> Sample {
    let mut scene = any_scene(values);
    let by_example = values.random.chance(30);
    if !by_example {
        flatten(&mut scene);
    }
    let style = if values.random.chance(75) {
        KeyStyle::Snake
    } else {
        KeyStyle::Camel
    };
    let asked = Questioner {
        random: &mut values.random,
        style,
        manner: Manner::Named,
    }
    .ask(&scene);
    let request = match by_example {
        true => example(values, &asked.answer),
        false => named(values, &asked.answer),
    };
    let mut turns = Vec::new();
    match values.random.below(10) {
        0..=3 => {
            let request = match values.random.chance(40) {
                true => format!("{} {request}", systems::of_length(values, 0)),
                false => request,
            };
            turns.push(Turn::System(request));
            turns.push(Turn::User(scene.text));
        }
        4 | 5 => turns.push(Turn::User(format!("{request}\n\n{}", scene.text))),
        6 => turns.push(Turn::User(format!("{request} {}", scene.text))),
        7 => turns.push(Turn::User(format!("{}\n\n{request}", scene.text))),
        _ => turns.push(Turn::User(format!("{} {request}", scene.text))),
    }
    let sketch = values.random.chance(75).then(|| "object".to_owned());
    Sample {
        kind: Kind::Keys,
        schema: sketch.is_some().then(|| json!({"type": "object"})),
        prompt: Prompt {
            tools: Vec::new(),
            turns,
            sketch,
        },
        answer: asked.answer.to_string(),
    }
}

/// Leaves what a bare key can ask for: no objects, and no words that stand for others.
fn flatten(scene: &mut Scene) {
    let flat = |fact: &Fact| !matches!(fact.node, Node::Object(_) | Node::Rows(_));
    if scene.said.iter().any(flat) {
        scene.said.retain(flat);
    }
}

fn names(answer: &Value) -> Vec<String> {
    answer
        .as_object()
        .map(|map| map.keys().cloned().collect())
        .unwrap_or_default()
}

fn named(values: &mut Values, answer: &Value) -> String {
    let names = names(answer);
    if values.random.chance(25) {
        let lead = *values.random.pick(LISTS);
        let mark = *values.random.pick(&["- ", "* ", ""]);
        let lines: Vec<String> = names.iter().map(|name| format!("\n{mark}{name}")).collect();
        return format!("{lead}{}", lines.concat());
    }
    let mark = *values.random.pick(&["", "", "", "`", "'", "\""]);
    let marked: Vec<String> = names.iter().map(|name| format!("{mark}{name}{mark}")).collect();
    let keys = match values.random.chance(25) {
        true => marked.join(", "),
        false => listed(&marked),
    };
    values.random.pick(ASKS).replace("{keys}", &keys)
}

/// The object with something in place of each value.
fn example(values: &mut Values, answer: &Value) -> String {
    let manner = values.random.below(4);
    let blank = blanked(answer, manner);
    let text = match values.random.below(3) {
        0 => blank.to_string(),
        1 => serde_json::to_string_pretty(&blank).unwrap_or_default(),
        _ => python(&blank),
    };
    let lead = *values.random.pick(EXAMPLES);
    format!("{lead}{}{text}", values.random.pick(&[" ", "\n"]))
}

fn blanked(value: &Value, manner: usize) -> Value {
    match value {
        Value::Object(map) => {
            let entries = map
                .iter()
                .map(|(key, value)| (key.clone(), blanked(value, manner)));
            Value::Object(entries.collect::<Map<_, _>>())
        }
        Value::Array(items) => match items.first() {
            Some(first) => json!([blanked(first, manner)]),
            None => json!([]),
        },
        Value::String(_) => json!(["...", "string", "", "text"][manner]),
        Value::Number(number) => match manner {
            1 if number.is_f64() => json!("number"),
            1 => json!("integer"),
            2 => json!(0),
            _ => json!(1),
        },
        Value::Bool(_) if manner == 1 => json!("boolean"),
        other => other.clone(),
    }
}
