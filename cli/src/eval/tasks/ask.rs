//! The ways of asking a task: whether the answer is constrained by the schema, and whether the model is
//! told the schema.
//!
//! | arm | constrained | told |
//! |---|---|---|
//! | `free` | | |
//! | `told` | | yes |
//! | `constrained` | yes | |
//! | `both` | yes | yes |

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::task::{Message, Task};

/// A way of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Arm {
    /// The schema is in the prompt, and constrains the answer
    Both,
    /// The schema constrains the answer, and the model is not told it
    Constrained,
    /// The schema is in the prompt only
    Told,
    /// Instructions only
    Free,
}

/// A task as it is asked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Question {
    pub(crate) name: String,
    pub(crate) arm: Arm,
    pub(crate) messages: Vec<Message>,
    /// The schema that constrains the answer.
    pub(crate) schema: Option<Value>,
}

impl Arm {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Told => "told",
            Self::Constrained => "constrained",
            Self::Both => "both",
        }
    }

    /// Returns `true` if the schema is in the prompt.
    pub(crate) fn tells(self) -> bool {
        matches!(self, Self::Told | Self::Both)
    }

    /// Returns `true` if the schema constrains the answer.
    pub(crate) fn constrains(self) -> bool {
        matches!(self, Self::Constrained | Self::Both)
    }
}

impl Question {
    /// Returns the question for programs.
    pub(crate) fn json(&self) -> Value {
        let messages: Vec<Value> = self.messages.iter().map(Message::json).collect();
        json!({"name": self.name, "arm": self.arm.name(), "messages": messages, "schema": self.schema})
    }
}

/// Asks each task in this way.
pub(crate) fn questions(tasks: &[Task], arm: Arm) -> impl Iterator<Item = Question> {
    tasks.iter().map(move |task| question(task, arm))
}

fn question(task: &Task, arm: Arm) -> Question {
    let mut messages = task.messages.clone();
    if !task.tools.is_empty() {
        instruct(&mut messages, &about_tools(&task.tools));
    }
    if let (true, Some(schema)) = (arm.tells(), &task.schema)
        && let Some(last) = messages.iter_mut().rfind(|it| it.role == "user")
    {
        last.content += &format!("\n\nAnswer with JSON that is valid under this JSON Schema:\n{schema}");
    }
    Question {
        name: task.name.clone(),
        arm,
        messages,
        schema: task.schema.clone().filter(|_| arm.constrains()),
    }
}

/// Adds instructions to the system message, which is the first one.
fn instruct(messages: &mut Vec<Message>, text: &str) {
    match messages.first_mut().filter(|it| it.role == "system") {
        Some(system) => system.content += &format!("\n\n{text}"),
        None => messages.insert(
            0,
            Message {
                role: "system".to_owned(),
                content: text.to_owned(),
            },
        ),
    }
}

fn about_tools(tools: &[Value]) -> String {
    let tools: Vec<String> = tools.iter().map(ToString::to_string).collect();
    format!(
        "You can call these tools:\n{}\n\nAnswer with a JSON object \
         {{\"calls\": [{{\"name\": NAME, \"arguments\": {{…}}}}]}} that has the calls which do what the user asks \
         for, and no others. If no tool fits, the list is empty.",
        tools.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(tools: &Value) -> Task {
        let task = json!({
            "name": "t", "kind": "k",
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
            "tools": tools, "schema": {"type": "object"}, "answer": {"exact": "x"},
        });
        Task::read(&task).expect("a task")
    }

    #[test]
    fn arms_differ_in_what_is_told_and_what_constrains() {
        let tasks = [task(&json!([]))];
        for (arm, told, constrained) in [
            (Arm::Free, false, false),
            (Arm::Told, true, false),
            (Arm::Constrained, false, true),
            (Arm::Both, true, true),
        ] {
            let question = questions(&tasks, arm).next().expect("a question");
            let user = &question.messages[1].content;
            assert_eq!(
                (user.contains(r#"{"type":"object"}"#), question.schema.is_some()),
                (told, constrained)
            );
            assert_eq!(user == "Hi", !told);
            assert_eq!(question.json()["arm"], arm.name());
        }
    }

    #[test]
    fn tools_are_shown_in_every_arm() {
        let tasks = [task(&json!([{"name": "f"}]))];
        let free = questions(&tasks, Arm::Free).next().expect("a question");
        assert!(free.messages[0].content.starts_with("Be brief.\n\nYou can call"));
        assert!(free.messages[0].content.contains("{\"name\":\"f\"}"));
    }
}
