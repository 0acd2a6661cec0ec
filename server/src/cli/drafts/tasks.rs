//! The tasks: the prompts, and the form of the answers.

use std::path::Path;

use lexiform_cli::failure::{Failure, read_text};
use serde_json::{Value, json};

/// A task: one line of the data.
#[derive(Debug)]
pub(super) struct Task {
    /// The file and the line.
    pub(super) place: String,
    messages: Value,
    wanted: Wanted,
    /// The text that the answer is expected to repeat; `Null` for none.
    prediction: Value,
    /// The maximum number of tokens of the answer; `None` for that of the command line.
    max_tokens: Option<u64>,
}

#[derive(Debug)]
enum Wanted {
    Tools(Value),
    Schema(Value),
    /// Any text.
    Text,
}

impl Task {
    /// Returns the body of a request to `/v1/chat/completions`.
    pub(super) fn body(&self, model: &str, temperature: f64, max_tokens: usize) -> Value {
        let mut body = json!({
            "model": model,
            "messages": self.messages,
            "temperature": temperature,
            "max_completion_tokens": self.max_tokens.unwrap_or(max_tokens as u64),
            "seed": 1,
        });
        if let Value::String(text) = &self.prediction {
            body["prediction"] = json!({"type": "content", "content": text});
        }
        match &self.wanted {
            Wanted::Tools(tools) => {
                body["tools"] = tools.clone();
                body["tool_choice"] = json!("required");
                body["parallel_tool_calls"] = json!(false);
            }
            Wanted::Schema(schema) => {
                let format = json!({"name": "answer", "schema": schema});
                body["response_format"] = json!({"type": "json_schema", "json_schema": format});
            }
            Wanted::Text => {}
        }
        body
    }
}

/// Reads the first tasks of a file.
///
/// # Errors
/// Fails if the file cannot be read, or if a line of it is not a task.
pub(super) fn read(path: &Path, limit: usize) -> Result<Vec<Task>, Failure> {
    let text = read_text(path)?;
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty());
    let tasks = lines.take(limit).map(|(number, line)| {
        let place = format!("{}:{}", path.display(), number + 1);
        let value: Value =
            serde_json::from_str(line).map_err(|error| Failure::message(format!("{place}: {error}")))?;
        task(&value, &place).map_err(|wanted| Failure::message(format!("{place}: {wanted}")))
    });
    let tasks = tasks.collect::<Result<Vec<_>, _>>()?;
    match tasks.is_empty() {
        true => Err(Failure::message(format!("{}: no tasks", path.display()))),
        false => Ok(tasks),
    }
}

/// Offers the tools of the first `count` tasks in all tasks that have tools.
pub(super) fn share_tools(tasks: &mut [Task], count: usize) {
    let mut shared: Vec<Value> = Vec::new();
    for task in tasks.iter().take(count) {
        if let Wanted::Tools(Value::Array(tools)) = &task.wanted {
            let is_new = |tool: &&Value| {
                shared
                    .iter()
                    .all(|known| known["function"]["name"] != tool["function"]["name"])
            };
            let new: Vec<Value> = tools.iter().filter(is_new).cloned().collect();
            shared.extend(new);
        }
    }
    for task in tasks {
        if let Wanted::Tools(tools) = &mut task.wanted {
            *tools = Value::Array(shared.clone());
        }
    }
}

fn task(value: &Value, place: &str) -> Result<Task, &'static str> {
    let messages = match (&value["messages"], &value["question"], &value["prompt"]) {
        (messages @ Value::Array(_), _, _) => messages.clone(),
        (_, Value::Array(turns), _) => turns.first().cloned().unwrap_or_default(),
        (_, _, Value::String(prompt)) => json!([{"role": "user", "content": prompt}]),
        _ => return Err("expected messages, question or prompt"),
    };
    let wanted = match (&value["tools"], &value["schema"]) {
        (Value::Array(tools), _) => Wanted::Tools(tools.iter().map(tool).collect()),
        (_, Value::Null) => Wanted::Text,
        (_, schema) => Wanted::Schema(schema.clone()),
    };
    Ok(Task {
        place: place.to_owned(),
        messages,
        wanted,
        prediction: value["prediction"].clone(),
        max_tokens: value["max_tokens"].as_u64(),
    })
}

/// Converts a tool to the form of requests; names of the leaderboard have dots, which requests do not allow.
fn tool(tool: &Value) -> Value {
    let mut function = match &tool["function"] {
        Value::Null => tool.clone(),
        function => function.clone(),
    };
    if let Some(name) = function["name"].as_str() {
        function["name"] = json!(name.replace('.', "_"));
    }
    json!({"type": "function", "function": function})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_each_kind_are_requests() {
        let line = json!({"question": [[{"role": "user", "content": "q"}]], "tools": [{"name": "a.b", "parameters": {}}]});
        let body = task(&line, "f:1").unwrap().body("m", 0.5, 9);
        assert_eq!(body["tools"][0]["function"]["name"], "a_b");
        assert_eq!(body["messages"][0]["content"], "q");
        let line = json!({"prompt": "p", "schema": {"type": "integer"}});
        let body = task(&line, "f:2").unwrap().body("m", 0.0, 9);
        assert_eq!(
            body["response_format"]["json_schema"]["schema"]["type"],
            "integer"
        );
        let line = json!({"prompt": "p", "prediction": "a text", "max_tokens": 7});
        let body = task(&line, "f:3").unwrap().body("m", 0.0, 9);
        assert_eq!(body["prediction"]["content"], "a text");
        assert_eq!(body["max_completion_tokens"], 7);
        assert_eq!(
            task(&json!({"tools": []}), "f:4").unwrap_err(),
            "expected messages, question or prompt"
        );
    }
}
