//! A JSON Schema that stands in the prompt, as pydantic and others write it.

use super::systems;
use crate::prompt::{Prompt, Turn, python};
use crate::sample::{Kind, Sample};
use crate::text::scene::Asked;
use crate::text::values::{Values, capital};
use crate::text::{any_scene, asked};
use lexiform_syntax::schema::sketch::sketch;
use serde_json::{Map, Value, json};

/// What stands around the schema; PydanticAI's own words are among them.
const FRAMES: &[&str] = &[
    "\nAlways respond with a JSON object that's compatible with this schema:\n\n{schema}\n\nDon't include any text or Markdown fencing before or after.\n",
    "Always respond with a JSON object that's compatible with this schema:\n\n{schema}\n\nDon't include any text or Markdown fencing before or after.",
    "Answer with JSON that obeys this JSON Schema:\n{schema}",
    "Answer in JSON. The schema is:\n```json\n{schema}\n```",
    "Return a JSON object for this schema: {schema}",
    "Here is the JSON schema of the output:\n{schema}\nReturn only the JSON.",
    "The output should be formatted as a JSON instance that conforms to the JSON schema below.\n```\n{schema}\n```",
    "Extract the data according to this schema.\n\n{schema}",
    "<schema>\n{schema}\n</schema>\nRespond with JSON for the schema above.",
];

/// A text, and a schema in a message.
pub(crate) fn prompted(values: &mut Values) -> Sample {
    let scene = any_scene(values);
    let asked = asked(values, &scene);
    let instruction = instruction(values, &asked.schema);
    let mut turns = placed(values, instruction, scene.text);
    let mut answer = asked.answer.clone();
    if values.random.chance(12) {
        again(values, &mut turns, &asked);
        answer = asked.answer;
    }
    let sketch = match values.random.below(10) {
        0..=5 => Some("object".to_owned()),
        6 | 7 => Some(sketch(&asked.schema)),
        _ => None,
    };
    let schema = match sketch.as_deref() {
        Some("object") => Some(json!({"type": "object"})),
        Some(_) => Some(asked.schema),
        None => None,
    };
    Sample {
        kind: Kind::Prompted,
        prompt: Prompt {
            tools: Vec::new(),
            turns,
            sketch,
        },
        schema,
        answer: answer.to_string(),
    }
}

/// The words that show a schema.
pub(crate) fn instruction(values: &mut Values, schema: &Value) -> String {
    let titled = values.random.chance(40);
    let name = *values.random.pick(&[
        "Person", "Order", "Event", "Ticket", "Answer", "Record", "Output", "Data", "Response",
    ]);
    let mut writer = PromptedWriter {
        defs: Map::new(),
        titled,
        values,
    };
    let mut root = writer.schema(schema, name, true);
    let defs = std::mem::take(&mut writer.defs);
    if !defs.is_empty()
        && let Some(map) = root.as_object_mut()
    {
        map.shift_insert(0, "$defs".to_owned(), Value::Object(defs));
    }
    let text = match values.random.below(10) {
        0 | 1 => serde_json::to_string_pretty(&root).unwrap_or_default(),
        2 => root.to_string(),
        _ => python(&root),
    };
    values.random.pick(FRAMES).replace("{schema}", &text)
}

/// Most of the time the instruction is a system message, with or without words before it.
fn placed(values: &mut Values, instruction: String, text: String) -> Vec<Turn> {
    match values.random.below(10) {
        0..=4 => vec![Turn::System(instruction), Turn::User(text)],
        5 | 6 => {
            let system = systems::system(values);
            vec![
                Turn::System(format!("{system}\n\n{}", instruction.trim())),
                Turn::User(text),
            ]
        }
        7 => {
            let system = systems::system(values);
            vec![Turn::System(system), Turn::System(instruction), Turn::User(text)]
        }
        8 => vec![Turn::User(format!("{}\n\n{text}", instruction.trim()))],
        _ => vec![Turn::User(format!("{text}\n\n{}", instruction.trim()))],
    }
}

/// A first answer that misses something, and the words by which frameworks ask again.
fn again(values: &mut Values, turns: &mut Vec<Turn>, asked: &Asked) {
    let Some(map) = asked.answer.as_object() else {
        return;
    };
    let Some(lost) = map.keys().nth(values.random.below(map.len().max(1))) else {
        return;
    };
    let mut wrong = map.clone();
    let (kind, message) = match values.random.chance(50) {
        true => {
            wrong.shift_remove(lost);
            ("missing", "Field required")
        }
        false => {
            wrong.insert(lost.clone(), json!({}));
            ("string_type", "Input should be a valid string")
        }
    };
    let problem = json!([{"type": kind, "loc": [lost], "msg": message}]);
    let complaint = match values.random.below(3) {
        0 => format!(
            "Your previous response failed the application's validation (this is automated feedback, not a message from the \
             user):\n<pyai:validation_errors>\n{problem}\n</pyai:validation_errors>"
        ),
        1 => format!(
            "1 validation error:\n```json\n{}\n```\n\nFix the errors and try again.",
            serde_json::to_string_pretty(&problem).unwrap_or_default()
        ),
        _ => format!("Validation feedback:\n{lost}: {message}\n\nFix the errors and try again."),
    };
    turns.push(Turn::Assistant(Value::Object(wrong).to_string()));
    turns.push(Turn::User(complaint));
}

/// Writes schemas with references, titles and descriptions, where the questions have none.
struct PromptedWriter<'a> {
    defs: Map<String, Value>,
    titled: bool,
    values: &'a mut Values,
}

impl PromptedWriter<'_> {
    fn schema(&mut self, schema: &Value, name: &str, is_root: bool) -> Value {
        if let Some(branches) = schema["anyOf"].as_array() {
            let written: Vec<Value> = branches
                .iter()
                .map(|branch| self.schema(branch, name, false))
                .collect();
            return json!({"anyOf": written});
        }
        match schema["type"].as_str() {
            Some("object") if schema["properties"].is_object() => self.object(schema, name, is_root),
            Some("array") => {
                json!({"items": self.schema(&schema["items"], &singular(name), false), "type": "array"})
            }
            _ => match schema.get("enum") {
                Some(choices) => json!({"enum": choices, "type": "string"}),
                None => schema.clone(),
            },
        }
    }

    fn object(&mut self, schema: &Value, name: &str, is_root: bool) -> Value {
        let mut properties = Map::new();
        for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
            let title = spaced(key);
            let mut written = self.schema(inner, &title.replace(' ', ""), false);
            if let Some(map) = written.as_object_mut().filter(|map| !map.contains_key("$ref")) {
                if self.values.random.chance(8) {
                    map.insert(
                        "description".to_owned(),
                        json!(format!("The {}.", title.to_lowercase())),
                    );
                }
                if self.titled {
                    map.insert("title".to_owned(), json!(title));
                }
            }
            properties.insert(key.clone(), written);
        }
        let mut object = json!({"properties": properties, "required": schema["required"], "title": name, "type": "object"});
        if self.values.random.chance(20) {
            object["description"] = json!(format!("A {}.", name.to_lowercase()));
        }
        if is_root {
            return object;
        }
        self.defs.insert(name.to_owned(), object);
        json!({"$ref": format!("#/$defs/{name}")})
    }
}

/// `dueDate` and `due_date` as a title: `Due Date`.
fn spaced(key: &str) -> String {
    let mut words = String::new();
    for letter in key.chars() {
        match letter {
            '_' | '-' => words.push(' '),
            _ if letter.is_ascii_uppercase() => words.extend([' ', letter]),
            _ => words.push(letter),
        }
    }
    words.split(' ').map(capital).collect::<Vec<_>>().join(" ")
}

fn singular(name: &str) -> String {
    match name.strip_suffix('s') {
        Some(one) => one.to_owned(),
        None => format!("{name}Item"),
    }
}
