//! The seeds of fuzzing: the cases of this repository, each as the input of the targets that can read it.

use crate::process::{Failure, root};
use std::fs;
use std::path::{Path, PathBuf};

/// The longest seed, in bytes: longer inputs find little and cost much.
const LONGEST: u64 = 16_000;

/// Copies the seeds of a target into a folder.
pub(crate) fn lay(target: &str, folder: &Path) -> Result<(), Failure> {
    let reader = target.trim_end_matches("_shapes");
    let places: Vec<(&str, &str)> = match target {
        "schema" | "project" => vec![("schemas", "json")],
        "ebnf" => vec![("grammars", "ebnf")],
        "tokenizer" => vec![("tests/data/tokenizers", "json")],
        "tiktoken" => vec![("tests/data/tokenizers", "tiktoken")],
        "template" => vec![("models", "jinja"), ("server/tests", "jinja")],
        _ => Vec::new(),
    };
    let mut paths = Vec::new();
    for (place, end) in places {
        files_below(&root().join(place), Some(end), &mut paths);
    }
    files_below(&root().join("fuzz/seeds").join(target), None, &mut paths);
    if reader == target {
        files_below(&root().join("fuzz/cases").join(target), None, &mut paths);
    }
    for (number, path) in paths.iter().enumerate() {
        let to = folder.join(format!("{number:04}"));
        fs::copy(path, &to).map_err(|error| Failure::io("could not copy", path, &error))?;
    }
    Ok(())
}

fn files_below(folder: &Path, end: Option<&str>, paths: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut here: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    here.sort();
    for path in here {
        let is_wanted = end.is_none_or(|end| path.extension().is_some_and(|it| it == end));
        if path.is_dir() {
            files_below(&path, end, paths);
        } else if is_wanted && fs::metadata(&path).is_ok_and(|it| it.len() <= LONGEST) {
            paths.push(path);
        }
    }
}
