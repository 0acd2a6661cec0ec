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
pub(in crate::eval) struct Given {
    /// The index of the task.
    pub(super) task: usize,
    /// The way of asking, or the program that answered.
    pub(super) arm: String,
    pub(super) text: String,
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
