//! The 200 schemas with recorded masks, shared with the tests of bindings.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

const SCHEMAS: usize = 200;

/// Returns the root of the repository, whatever package is tested.
fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let roots = package
        .ancestors()
        .filter(|folder| folder.join("schemas").is_dir());
    roots.last().expect("the repository").to_owned()
}

/// Reads a file of the repository.
pub(crate) fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the schemas of the corpus that compile, followed by those of the demo model's held-out texts, each
/// with its name.
pub(crate) fn all() -> Vec<(String, String)> {
    let corpus = root().join("schemas");
    let folders = fs::read_dir(corpus)
        .expect("schemas/")
        .map(|entry| entry.expect("an entry"));
    let mut names: Vec<String> = folders
        .map(|entry| entry.file_name().into_string().expect("a name"))
        .collect();
    names.sort();
    names.retain(|name| {
        !root()
            .join("schemas")
            .join(name)
            .join("expected_error.txt")
            .exists()
    });
    let corpus = names.into_iter().map(|name| {
        let schema = read(format!("schemas/{name}/schema.json"));
        (name, schema)
    });
    let mut schemas: Vec<(String, String)> = corpus.collect();
    for (line, text) in read("models/demo/heldout.jsonl").lines().enumerate() {
        let held_out: Value = serde_json::from_str(text).expect("a line of JSON");
        let Some(schema) = held_out.get("schema").map(Value::to_string) else {
            continue;
        };
        if !schemas.iter().any(|(_, known)| *known == schema) {
            schemas.push((format!("heldout {}", line + 1), schema));
        }
    }
    schemas.truncate(SCHEMAS);
    schemas
}
