//! Reads the answers that somebody has collected.

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;

use super::records::{records, told};
use super::task::{Defect, Fields, Task};
use crate::failure::Failure;

/// The way of asking of answers that name none.
const UNNAMED: &str = "answers";

/// An answer to a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    /// The index of the task.
    pub(crate) task: usize,
    /// The way of asking, or the program that answered.
    pub(crate) arm: String,
    pub(crate) text: String,
}

/// Reads answers from JSON lines with `name`, `text` and perhaps `arm`. Other fields are for their owner.
///
/// # Errors
/// The file cannot be read, or lines are broken, name no task of the collection, or answer a task again.
pub(super) fn given(path: &Path, tasks: &[Task]) -> Result<Vec<Given>, Failure> {
    let indices: HashMap<&str, usize> = (0..)
        .zip(tasks)
        .map(|(index, it)| (it.name.as_str(), index))
        .collect();
    let mut seen: HashMap<(usize, String), String> = HashMap::new();
    let mut answers = Vec::new();
    let mut defects = Vec::new();
    for record in records(path)?.0 {
        match one(&record.value, &indices) {
            Ok(answer) => {
                let key = (answer.task, answer.arm.clone());
                if let Some(first) = seen.insert(key, record.place.clone()) {
                    let place = &record.place;
                    defects.push(format!(
                        "{place}: {first} has an answer to this task in this arm too"
                    ));
                }
                answers.push(answer);
            }
            Err(defect) => defects.push(format!("{}: {defect}", record.place)),
        }
    }
    match defects.is_empty() {
        true => Ok(answers),
        false => Err(Failure::message(told(&defects))),
    }
}

fn one(record: &Value, indices: &HashMap<&str, usize>) -> Result<Given, Defect> {
    let mut fields = Fields::of(record, "")?;
    let name = fields.text("name")?;
    let task = indices.get(name.as_str());
    let task = task.ok_or_else(|| fields.defect("name", &format!("no task is named {name:?}")))?;
    let arm = match fields.get("arm") {
        None => UNNAMED.to_owned(),
        Some(_) => fields.text("arm")?,
    };
    let text = fields.required("text")?.as_str();
    let text = text.ok_or_else(|| fields.defect("text", "is no text"))?;
    Ok(Given {
        task: *task,
        arm,
        text: text.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(test: &str, text: &str) -> Result<Vec<Given>, String> {
        let record = json!({"name": "t", "kind": "k", "prompt": "p", "answer": {"exact": "x"}});
        let tasks = [Task::read(&record).expect("a task")];
        let path = std::env::temp_dir().join(format!("lexiform-given-{}-{test}", std::process::id()));
        std::fs::write(&path, text).expect("written");
        let answers = given(&path, &tasks);
        std::fs::remove_file(&path).expect("removed");
        let place = path.display().to_string();
        answers.map_err(|failure| failure.to_string().replace(&place, "FILE"))
    }

    #[test]
    fn answers_have_a_task_an_arm_and_a_text() {
        let text = "{\"name\": \"t\", \"text\": \"\", \"tokens\": 7}\n\n{\"name\": \"t\", \"arm\": \"free\", \"text\": \"x\"}\n";
        let answers = read("good", text).expect("answers");
        let arms: Vec<(&str, &str)> = answers
            .iter()
            .map(|it| (it.arm.as_str(), it.text.as_str()))
            .collect();
        assert_eq!(arms, [("answers", ""), ("free", "x")]);
    }

    #[test]
    fn broken_answers_are_named_by_their_lines() {
        let good = r#"{"name": "t", "text": "x"}"#;
        for (test, line, told) in [
            ("cut", "{\"name\": ", "FILE, line 2: "),
            (
                "unknown",
                r#"{"name": "u", "text": "x"}"#,
                "FILE, line 2: /name: no task is named \"u\"",
            ),
            ("missing", r#"{"name": "t"}"#, "FILE, line 2: `text` is missing"),
            (
                "number",
                r#"{"name": "t", "text": 1}"#,
                "FILE, line 2: /text: is no text",
            ),
            (
                "arm",
                r#"{"name": "t", "arm": 1, "text": "x"}"#,
                "FILE, line 2: /arm: is no text",
            ),
            (
                "twice",
                good,
                "FILE, line 2: FILE, line 1 has an answer to this task in this arm too",
            ),
        ] {
            let found = read(test, &format!("{good}\n{line}\n")).expect_err(test);
            assert!(found.starts_with(told), "{test}: {found}");
        }
    }
}
