//! A conversation, and the text by which the model reads it: the very text that the chat template writes.
//!
//! ```text
//!  <|tools|>get_weather {city:string,unit?:"c"|"f"} Say the weather.     one line a tool: name, sketch, description
//!  <|system|>Be brief.<|user|>Is it warm in Rome?
//!  <|assistant|><tool_call>
//!  {"name": "get_weather", "arguments": {"city":"Rome"}}
//!  </tool_call><|end|><|tool|>{"degrees": 31}<|assistant|>
//! ```
//!
//! Where the answer obeys a schema, `<|schema|>` and the sketch of it stand before the last `<|assistant|>`.

use lexiform_syntax::schema::sketch::sketch;
use serde_json::{Value, json};

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    /// The tool's name.
    pub(crate) name: String,
    /// An object of arguments.
    pub(crate) arguments: Value,
}

/// One message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Turn {
    /// How to behave.
    System(String),
    /// What the user says.
    User(String),
    /// What the assistant said before.
    Assistant(String),
    /// What the assistant called before.
    Calls(Vec<Call>),
    /// What a tool gave back.
    Tool(String),
}

/// A conversation up to the answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Prompt {
    /// The tools, as the API has them:
    /// `{"type": "function", "function": {"name", "description", "parameters"}}`.
    pub(crate) tools: Vec<Value>,
    /// The messages.
    pub(crate) turns: Vec<Turn>,
    /// The sketch of the schema that the answer obeys.
    pub(crate) sketch: Option<String>,
}

impl Prompt {
    /// A single message of the user.
    pub(crate) fn of(text: impl Into<String>, sketch: Option<String>) -> Self {
        Self {
            tools: Vec::new(),
            turns: vec![Turn::User(text.into())],
            sketch,
        }
    }

    /// The text that the model reads.
    pub(crate) fn render(&self) -> String {
        let mut out = String::new();
        if !self.tools.is_empty() {
            let lines: Vec<String> = self.tools.iter().map(line).collect();
            out += &format!("<|tools|>{}", lines.join("\n"));
        }
        for turn in &self.turns {
            out += &match turn {
                Turn::System(text) => format!("<|system|>{text}"),
                Turn::User(text) => format!("<|user|>{text}"),
                Turn::Assistant(text) => format!("<|assistant|>{text}<|end|>"),
                Turn::Calls(calls) => format!("<|assistant|>{}<|end|>", written(calls, python)),
                Turn::Tool(text) => format!("<|tool|>{text}"),
            };
        }
        if let Some(sketch) = &self.sketch {
            out += &format!("<|schema|>{sketch}");
        }
        out + "<|assistant|>"
    }

    /// The messages as the API has them.
    pub(crate) fn messages(&self) -> Value {
        let mut calls_before = 0;
        let mut results = 0;
        let mut message = |turn: &Turn| match turn {
            Turn::System(text) => json!({"role": "system", "content": text}),
            Turn::User(text) => json!({"role": "user", "content": text}),
            Turn::Assistant(text) => json!({"role": "assistant", "content": text}),
            Turn::Calls(calls) => {
                let calls = calls.iter().enumerate().map(|(number, call)| {
                    json!({
                        "id": format!("call_{}", calls_before + number), "type": "function",
                        "function": {"name": call.name, "arguments": call.arguments.to_string()},
                    })
                });
                let calls: Vec<Value> = calls.collect();
                calls_before += calls.len();
                json!({"role": "assistant", "content": null, "tool_calls": calls})
            }
            Turn::Tool(text) => {
                results += 1;
                json!({"role": "tool", "tool_call_id": format!("call_{}", results - 1), "content": text})
            }
        };
        self.turns.iter().map(&mut message).collect()
    }
}

/// What the prompt says of a tool.
fn line(tool: &Value) -> String {
    let function = &tool["function"];
    let name = function["name"].as_str().unwrap_or_default();
    let description = function["description"].as_str().unwrap_or_default();
    let first = description.split('\n').next().unwrap_or_default();
    let parameters = function.get("parameters").and_then(Value::as_object);
    let sketch = match parameters.is_none_or(serde_json::Map::is_empty) {
        true => "object".to_owned(),
        false => sketch(&function["parameters"]),
    };
    if first.is_empty() {
        format!("{name} {sketch}")
    } else {
        format!("{name} {sketch} {first}")
    }
}

/// Calls as the model writes them, in the frame that the service reads; `write` writes the arguments.
pub(crate) fn written(calls: &[Call], write: fn(&Value) -> String) -> String {
    let each = calls.iter().map(|call| {
        let (name, arguments) = (Value::from(call.name.as_str()), write(&call.arguments));
        format!("<tool_call>\n{{\"name\": {name}, \"arguments\": {arguments}}}\n</tool_call>")
    });
    each.collect::<Vec<_>>().join("\n")
}

/// JSON as Python's `json.dumps` spaces it.
pub(crate) fn python(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(python).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) => {
            let entry =
                |(key, value): (&String, &Value)| format!("{}: {}", Value::from(key.as_str()), python(value));
            let entries: Vec<String> = map.iter().map(entry).collect();
            format!("{{{}}}", entries.join(", "))
        }
        // Digits that change nothing, as in 7.50, are not kept.
        Value::Number(number) if number.to_string().contains('.') => number
            .as_f64()
            .map_or_else(|| number.to_string(), |number| number.to_string()),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Call, Prompt, Turn, python};
    use serde_json::json;

    #[test]
    fn a_single_message_is_short() {
        let prompt = Prompt::of("Hello", Some("{a:date}".to_owned()));
        assert_eq!(prompt.render(), "<|user|>Hello<|schema|>{a:date}<|assistant|>");
    }

    #[test]
    fn tools_calls_and_results_have_their_places() {
        let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}});
        let tool = json!({"name": "weather", "description": "Say it.\nMore.", "parameters": parameters});
        let call = Call {
            name: "weather".to_owned(),
            arguments: json!({"city": "Rome", "days": 2}),
        };
        let prompt = Prompt {
            tools: vec![json!({"type": "function", "function": tool})],
            turns: vec![
                Turn::System("Be brief.".to_owned()),
                Turn::User("Rome?".to_owned()),
                Turn::Calls(vec![call]),
                Turn::Tool("31".to_owned()),
            ],
            sketch: None,
        };
        let want = "<|tools|>weather {city?:string} Say it.<|system|>Be brief.<|user|>Rome?<|assistant|><tool_call>\n\
                    {\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\", \"days\": 2}}\n</tool_call><|end|>\
                    <|tool|>31<|assistant|>";
        assert_eq!(prompt.render(), want);
        assert_eq!(
            prompt.messages()[3]["tool_call_id"],
            prompt.messages()[2]["tool_calls"][0]["id"]
        );
    }

    #[test]
    fn json_is_spaced_as_python_spaces_it() {
        assert_eq!(
            python(&json!({"a": [1, {"b": null}], "c": "é"})),
            r#"{"a": [1, {"b": null}], "c": "é"}"#
        );
    }
}
