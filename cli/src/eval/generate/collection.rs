//! Reads collections of schemas in the layouts in which people have them.
//!
//! ```text
//!   FILE.jsonl   {"name": "Github_easy---o1", "schema": {…}, "tests": […]}        MaskBench
//!                {"unique_id": "o1", "json_schema": "{…}"}                        JSONSchemaBench, as rows
//!   FOLDER       Github_easy/o1.json, a schema in each file                       JSONSchemaBench, as files
//! ```

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::item::{Arm, Item, Judged, Message};
use super::judge;
use crate::eval::maskbench::keywords;
use crate::eval::tasks::{self, Task, questions};
use crate::failure::{Failure, read_text};
use crate::input::hash;
use crate::report::Data;

/// The system line of prompts that contain the schema; the user's line is the schema alone. It is that of
/// JSONSchemaBench.
const TOLD: &str = "You need to generate a JSON object that matches the schema below.";
/// The user's line of prompts without the schema.
const UNTOLD: &str = "Generate a JSON object.";

/// A collection.
#[derive(Debug)]
pub(super) struct Collection {
    pub(super) data: Data,
    /// The items, in an order that depends only on the seed and their names.
    pub(super) items: Vec<Item>,
    /// The tasks that the items ask, if their answers can be right or wrong.
    pub(super) tasks: Vec<Task>,
}

/// A schema with its name, its part of the collection, and the place from which it was read.
struct Entry {
    name: String,
    split: String,
    schema: Value,
    place: String,
}

/// Reads a collection.
///
/// # Errors
/// A file cannot be read, or a line is broken; two schemas have the same name, or there are none.
pub(super) fn read(path: &Path, seed: u64) -> Result<Collection, Failure> {
    let (entries, data) = match path.is_dir() {
        true => of_folder(path)?,
        false => of_lines(path)?,
    };
    if entries.is_empty() {
        return Err(Failure::message(format!("{} has no schemas", path.display())));
    }
    let mut places = HashMap::new();
    for entry in &entries {
        if let Some(other) = places.insert(&entry.name, &entry.place) {
            let (name, place) = (&entry.name, &entry.place);
            return Err(Failure::message(format!(
                "{place}: the name {name:?} is taken by {other}; answers are kept by name"
            )));
        }
    }
    let items = entries.into_iter().map(item).collect();
    Ok(Collection {
        data,
        items: shuffled(items, seed),
        tasks: Vec::new(),
    })
}

/// Reads tasks, whose answers can be right or wrong.
///
/// # Errors
/// A file cannot be read or has broken records, or there are no tasks.
pub(super) fn read_tasks(path: &Path, seed: u64) -> Result<Collection, Failure> {
    let tasks = tasks::load(path, None)?.tasks;
    if tasks.is_empty() {
        return Err(Failure::message(format!("{} has no tasks", path.display())));
    }
    let items = tasks.iter().map(item_of_task).collect();
    Ok(Collection {
        data: Data::summed(path)?,
        items: shuffled(items, seed),
        tasks,
    })
}

fn shuffled(mut items: Vec<Item>, seed: u64) -> Vec<Item> {
    items.sort_by_cached_key(|item| hash::sum(format!("{seed}:{}", item.name).as_bytes()));
    items
}

/// Asks a task. Whether its answer is right is judged later, over all answers; here only whether it is valid.
fn item_of_task(task: &Task) -> Item {
    let messages = |arm| {
        let mut asked = questions(std::slice::from_ref(task), arm);
        asked.next().map(|question| question.messages).unwrap_or_default()
    };
    let schema = task.schema.clone().map(Arc::new);
    Item {
        name: task.name.clone(),
        split: task.kind.clone(),
        keywords: schema.as_deref().map(keywords::of).unwrap_or_default(),
        untold: messages(Arm::Free),
        told: messages(Arm::Told),
        judge: match &schema {
            Some(schema) => judge::of_schema(Arc::clone(schema)),
            None => Box::new(|_| Judged::valid()),
        },
        schema,
    }
}

fn item(entry: Entry) -> Item {
    let schema = Arc::new(entry.schema);
    Item {
        name: entry.name,
        split: entry.split,
        keywords: keywords::of(&schema),
        untold: vec![Message::user(UNTOLD)],
        told: vec![Message::system(TOLD), Message::user(schema.to_string())],
        judge: judge::of_schema(Arc::clone(&schema)),
        schema: Some(schema),
    }
}

fn of_lines(path: &Path) -> Result<(Vec<Entry>, Data), Failure> {
    let text = read_text(path)?;
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    let entries =
        lines.map(|(line, number)| of_line(line, format!("{}, line {number}", path.display()), number));
    let entries = entries.collect::<Result<_, _>>()?;
    let data = Data {
        path: path.display().to_string(),
        bytes: text.len() as u64,
        sha256: hash::hex(text.as_bytes()),
    };
    Ok((entries, data))
}

fn of_line(line: &str, place: String, number: usize) -> Result<Entry, Failure> {
    let broken = |what: String| Failure::message(format!("{place}: {what}"));
    let row: Value = serde_json::from_str(line).map_err(|error| broken(error.to_string()))?;
    let named = |fields: &[&str]| fields.iter().find_map(|field| row.get(field)?.as_str());
    let schema = match (row.get("schema"), row.get("json_schema")) {
        (Some(schema), _) | (None, Some(schema)) => schema.clone(),
        (None, None) => return Err(broken("neither `schema` nor `json_schema`".to_owned())),
    };
    // JSONSchemaBench has its schemas as texts. No schema is a string, so that cannot be confused.
    let schema = match schema.as_str() {
        None => schema,
        Some(text) => {
            serde_json::from_str(text).map_err(|error| broken(format!("the text of the schema: {error}")))?
        }
    };
    check_kind(&schema).map_err(&broken)?;
    let name = named(&["name", "unique_id", "id"]).map_or_else(|| format!("line {number}"), str::to_owned);
    let split = named(&["split", "dataset", "subset"]).map_or_else(|| split_of(&name), str::to_owned);
    Ok(Entry {
        name,
        split,
        schema,
        place,
    })
}

fn check_kind(schema: &Value) -> Result<(), String> {
    match schema {
        Value::Object(_) | Value::Bool(_) => Ok(()),
        _ => Err("a schema is an object, `true` or `false`".to_owned()),
    }
}

fn of_folder(folder: &Path) -> Result<(Vec<Entry>, Data), Failure> {
    let mut files = Vec::new();
    json_files(folder, &mut files)?;
    files.sort();
    let (mut bytes, mut sums) = (0, String::new());
    let mut entries = Vec::new();
    for path in files {
        let text = read_text(&path)?;
        bytes += text.len() as u64;
        sums += &hash::hex(text.as_bytes());
        entries.push(of_file(folder, &path, &text)?);
    }
    let data = Data {
        path: folder.display().to_string(),
        bytes,
        sha256: hash::hex(sums.as_bytes()),
    };
    Ok((entries, data))
}

fn of_file(folder: &Path, path: &Path, text: &str) -> Result<Entry, Failure> {
    let broken = |what: String| Failure::message(format!("{}: {what}", path.display()));
    let schema: Value = serde_json::from_str(text).map_err(|error| broken(error.to_string()))?;
    check_kind(&schema).map_err(&broken)?;
    let inside = path.strip_prefix(folder).unwrap_or(path).with_extension("");
    let name = inside.to_string_lossy().into_owned();
    let split = match name.split_once(std::path::MAIN_SEPARATOR) {
        Some((split, _)) => split.to_owned(),
        None => split_of(&name),
    };
    Ok(Entry {
        name,
        split,
        schema,
        place: path.display().to_string(),
    })
}

/// Lists the JSON files in a folder and the folders in it.
fn json_files(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let unreadable = |source| Failure::Read {
        path: folder.to_owned(),
        source,
    };
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let path = entry.path();
        // A link to a folder above would never end.
        if entry.file_type().map_err(unreadable)?.is_dir() {
            json_files(&path, files)?;
        } else if path.extension().is_some_and(|it| it == "json") {
            files.push(path);
        }
    }
    Ok(())
}

/// Returns the part of the collection that a name of MaskBench belongs to: `Github_easy` for
/// `Github_easy---o123`, `BFCL` for `BFCL_java_0`.
fn split_of(name: &str) -> String {
    let part = name.split_once("---").or_else(|| name.split_once('_'));
    part.map_or("", |(part, _)| part).to_owned()
}
