//! The records of a file: JSON lines, a JSON array, or an object whose `examples` are the records.

use std::path::Path;

use serde_json::Value;

use crate::failure::{Failure, read_text};

/// The most defects that are told at once.
const TOLD: usize = 5;

/// A record of a file.
pub(super) struct Record {
    /// The place, as `file.jsonl, line 3`.
    pub(super) place: String,
    /// The number of the record, from 1.
    pub(super) number: usize,
    pub(super) value: Value,
}

/// Returns the records of a file, and the name that the file gives itself.
pub(super) fn records(path: &Path) -> Result<(Vec<Record>, Option<String>), Failure> {
    let text = read_text(path)?;
    if let Ok(whole) = serde_json::from_str::<Value>(&text) {
        return of_whole(path, whole);
    }
    let lines: Vec<(usize, &str)> = (1..)
        .zip(text.lines())
        .filter(|(_, it)| !it.trim().is_empty())
        .collect();
    let mut records = Vec::new();
    let mut defects = Vec::new();
    for (line, text) in lines {
        let place = format!("{}, line {line}", path.display());
        match serde_json::from_str(text) {
            Ok(value) => records.push(Record {
                place,
                number: line,
                value,
            }),
            Err(error) => {
                let error = error.to_string();
                // The position within the line; the line is named already.
                let error = error.replace(" at line 1 column", ", column");
                defects.push(format!("{place}: {error}"));
            }
        }
    }
    match defects.is_empty() {
        true => Ok((records, None)),
        false => Err(Failure::message(told(&defects))),
    }
}

/// Returns the records of a file that is one JSON value.
fn of_whole(path: &Path, whole: Value) -> Result<(Vec<Record>, Option<String>), Failure> {
    let title = whole["name"].as_str().map(str::to_owned);
    let (items, pointer, title) = match whole {
        Value::Array(items) => (items, "", None),
        Value::Object(mut object) if object.get("examples").is_some_and(Value::is_array) => {
            match object.remove("examples") {
                Some(Value::Array(items)) => (items, "/examples", title),
                _ => (Vec::new(), "", title),
            }
        }
        Value::Object(object) => {
            let record = Record {
                place: format!("{}, line 1", path.display()),
                number: 1,
                value: Value::Object(object),
            };
            return Ok((vec![record], None));
        }
        _ => {
            let reason = "neither JSON lines of objects, nor an array, nor an object with `examples`";
            return Err(Failure::message(format!("{}: {reason}", path.display())));
        }
    };
    let record = |(index, value)| Record {
        place: format!("{}, at {pointer}/{index}", path.display()),
        number: index + 1,
        value,
    };
    Ok((items.into_iter().enumerate().map(record).collect(), title))
}

/// Returns the first defects of a file, one a line.
pub(super) fn told(defects: &[String]) -> String {
    let mut lines: Vec<String> = defects.iter().take(TOLD).cloned().collect();
    let more = defects.len().saturating_sub(TOLD);
    lines.extend((more > 0).then(|| format!("and {more} more broken records")));
    lines.join("\n")
}
