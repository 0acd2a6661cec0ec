//! The schemas of a collection: a file with one on each line, or a folder with a file for each, as MaskBench
//! has them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::eval::suite::json_files;
use crate::eval::verdict::parse_line;
use crate::failure::{Failure, read_text};

/// The text of a schema with its instances.
pub(super) struct Entry {
    path: PathBuf,
    /// The number of its line, unless it is a whole file.
    line: Option<usize>,
    text: String,
}

impl Entry {
    /// Parses the entry. Where it does not say its name, that is the name of its file.
    ///
    /// # Errors
    /// It is not JSON.
    pub(super) fn parse(&self) -> Result<Value, Failure> {
        let mut entry = match self.line {
            Some(line) => parse_line(&self.path, line, &self.text)?,
            None => serde_json::from_str(&self.text)
                .map_err(|error| Failure::message(format!("{}: {error}", self.path.display())))?,
        };
        if let (None, Some(fields), Some(name)) = (self.line, entry.as_object_mut(), self.path.file_stem()) {
            let name = json!(name.to_string_lossy());
            fields.entry("name").or_insert(name);
        }
        Ok(entry)
    }
}

/// Reads the entries of a file or folder.
///
/// # Errors
/// It cannot be read, or the folder has no such files.
pub(super) fn read(data: &Path) -> Result<Vec<Entry>, Failure> {
    if data.is_dir() {
        let files = json_files(data)?;
        if files.is_empty() {
            let message = format!("{}: expected files that end in .json", data.display());
            return Err(Failure::message(message));
        }
        return files.into_iter().map(whole_file).collect();
    }
    let text = read_text(data)?;
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty());
    let entries = lines.map(|(index, line)| Entry {
        path: data.to_owned(),
        line: Some(index + 1),
        text: line.to_owned(),
    });
    Ok(entries.collect())
}

fn whole_file(path: PathBuf) -> Result<Entry, Failure> {
    Ok(Entry {
        text: read_text(&path)?,
        path,
        line: None,
    })
}

/// Returns the entries with these names.
///
/// # Errors
/// An entry is not JSON, or no entry has one of the names.
pub(super) fn named(entries: Vec<Entry>, names: &[String]) -> Result<Vec<Entry>, Failure> {
    let mut missing: Vec<&String> = names.iter().collect();
    let mut wanted = Vec::new();
    for entry in entries {
        // Most lines are not wanted; those are not parsed.
        if !names.iter().any(|name| entry.may_be(name)) {
            continue;
        }
        let value = entry.parse()?;
        let name = value["name"].as_str().unwrap_or_default();
        if names.iter().any(|wanted| wanted == name) {
            missing.retain(|wanted| *wanted != name);
            wanted.push(entry);
        }
    }
    match missing.first() {
        None => Ok(wanted),
        Some(name) => Err(Failure::message(format!(
            "--only {name}: the collection has no schema with this name"
        ))),
    }
}

impl Entry {
    /// Returns `false` if the entry certainly has another name.
    fn may_be(&self, name: &str) -> bool {
        let is_in_text = self.text.contains(name) || self.text.contains('\\');
        is_in_text || self.line.is_none() && self.path.file_stem().is_some_and(|stem| stem == name)
    }
}
