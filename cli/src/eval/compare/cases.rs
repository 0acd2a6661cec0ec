//! The schemas and the token sequences that all engines walk.

use std::collections::BTreeSet;
use std::path::Path;

use lexiform::vocab::{Tokenizer, TokenizerError};
use serde_json::Value;

use crate::eval::maskbench::keywords;
use crate::eval::python_json::dumps;
use crate::eval::verdict::parse_line;
use crate::failure::{Failure, read_text};

/// A schema with the instances that are walked through it.
#[derive(Clone, Debug, Default)]
pub(super) struct Case {
    /// The name of the schema in the collection.
    pub(super) name: String,
    /// The schema as text.
    pub(super) schema: String,
    /// The keywords that assert something, each once.
    pub(super) keywords: BTreeSet<String>,
    pub(super) instances: Vec<Instance>,
}

/// One instance of a schema.
#[derive(Clone, Debug, Default)]
pub(super) struct Instance {
    /// Whether the collection says that the instance is valid.
    pub(super) valid: bool,
    pub(super) tokens: Vec<u32>,
}

/// The lines of a collection that are read.
#[derive(Clone, Debug)]
pub(super) struct Choice<'a> {
    /// So many schemas, spread evenly over the file.
    pub(super) schemas: Option<usize>,
    /// Moves the first of them.
    pub(super) seed: usize,
    /// The schemas of these names alone.
    pub(super) only: &'a [String],
}

/// Reads the chosen schemas, and cuts their instances into tokens.
///
/// # Errors
/// The file cannot be read, a line is not JSON, an instance cannot be cut into tokens, or a name that was
/// asked for is not there.
pub(super) fn read(path: &Path, choice: &Choice<'_>, tokenizer: &Tokenizer) -> Result<Vec<Case>, Failure> {
    let text = read_text(path)?;
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let cases = chosen(&lines, choice).into_iter().map(|index| {
        let entry = parse_line(path, index + 1, lines[index])?;
        case(&entry, tokenizer)
            .map_err(|error| Failure::message(format!("{}, line {}: {error}", path.display(), index + 1)))
    });
    let cases: Vec<Case> = cases.collect::<Result<_, _>>()?;
    let missing = choice
        .only
        .iter()
        .find(|name| !cases.iter().any(|case| case.name == **name));
    match missing {
        Some(name) => Err(Failure::message(format!(
            "{} has no schema named {name}",
            path.display()
        ))),
        None if cases.is_empty() => Err(Failure::message(format!("{} has no schemas", path.display()))),
        None => Ok(cases),
    }
}

fn chosen(lines: &[&str], choice: &Choice<'_>) -> Vec<usize> {
    if !choice.only.is_empty() {
        let named = |line: &str| choice.only.iter().any(|name| line.contains(name.as_str()));
        return (0..lines.len())
            .filter(|&index| named(lines[index]))
            .filter(|&index| {
                let entry: Option<Value> = serde_json::from_str(lines[index]).ok();
                entry.is_some_and(|entry| choice.only.iter().any(|name| entry["name"] == **name))
            })
            .collect();
    }
    spread(lines.len(), choice.schemas.unwrap_or(lines.len()), choice.seed)
}

/// Returns so many of the numbers below `all`, evenly spread.
fn spread(all: usize, wanted: usize, seed: usize) -> Vec<usize> {
    let wanted = wanted.min(all);
    let stride = all.checked_div(wanted).unwrap_or(1);
    (0..wanted).map(|it| it * all / wanted + seed % stride).collect()
}

fn case(entry: &Value, tokenizer: &Tokenizer) -> Result<Case, TokenizerError> {
    let tests = entry["tests"].as_array().map_or(&[][..], Vec::as_slice);
    let instance = |test: &Value| {
        Ok::<_, TokenizerError>(Instance {
            valid: test["valid"] == Value::Bool(true),
            tokens: tokenizer.encode(&dumps(&test["data"]))?,
        })
    };
    Ok(Case {
        name: entry["name"].as_str().unwrap_or("without a name").to_owned(),
        schema: entry["schema"].to_string(),
        keywords: keywords::of(&entry["schema"]),
        instances: tests.iter().map(instance).collect::<Result<_, _>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_covers_the_file_and_stays_inside_it() {
        assert_eq!(spread(10, 5, 0), [0, 2, 4, 6, 8]);
        assert_eq!(spread(10, 5, 3), [1, 3, 5, 7, 9]);
        assert_eq!(spread(10, 3, 2), [2, 5, 8]);
        assert_eq!(spread(3, 9, 7), [0, 1, 2]);
        assert_eq!(spread(0, 9, 7), [0_usize; 0]);
    }

    #[test]
    fn schemas_are_chosen_by_their_whole_names() {
        let lines = [
            r#"{"name":"a1"}"#,
            r#"{"name":"a","note":"a1"}"#,
            r#"{"name":"b"}"#,
        ];
        let only = ["a1".to_owned()];
        let choice = Choice {
            schemas: None,
            seed: 0,
            only: &only,
        };
        assert_eq!(chosen(&lines, &choice), [0]);
    }
}
