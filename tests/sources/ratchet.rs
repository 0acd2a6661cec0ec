//! A ratchet over a data suite: the known failures, with their reasons, in one small file.
//!
//! With `RATCHET=write` in the environment, the section of the file is written anew instead of being
//! compared.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

/// The reason that no ratchet file may contain: a wrongly accepted case is fixed, or gets a specific reason.
pub(crate) const ACCEPTED_WRONGLY: &str = "accepted wrongly";

/// One section of a ratchet file while its suite runs.
pub(crate) struct Ratchet {
    path: PathBuf,
    section: &'static str,
    passed: usize,
    failed: BTreeMap<String, String>,
}

impl Ratchet {
    /// Opens a section of a file in `tests/data/ratchet`.
    pub(crate) fn open(file: &str, section: &'static str) -> Self {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("tests/data/ratchet")
            .join(file);
        Ratchet {
            path,
            section,
            passed: 0,
            failed: BTreeMap::new(),
        }
    }

    /// Counts one case.
    pub(crate) fn note(&mut self, name: &str, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => self.passed += 1,
            Err(reason) => {
                self.failed.insert(name.to_owned(), reason);
            }
        }
    }

    /// Compares with the file, or writes it.
    pub(crate) fn close(self) {
        println!(
            "{}: {} passed, {} failed",
            self.section,
            self.passed,
            self.failed.len()
        );
        let wider: Vec<&String> = self
            .failed
            .iter()
            .filter(|(_, reason)| *reason == ACCEPTED_WRONGLY)
            .map(|(name, _)| name)
            .collect();
        assert!(wider.is_empty(), "{}: accepted wrongly: {wider:?}", self.section);
        let text = std::fs::read_to_string(&self.path).unwrap_or_else(|_| "{}".into());
        let mut file: Map<String, Value> = serde_json::from_str(&text).expect("the ratchet file is JSON");
        let found = json!({ "passed": self.passed, "failed": self.failed });
        if std::env::var("RATCHET").is_ok_and(|value| value == "write") {
            file.insert(self.section.to_owned(), found);
            file.sort_keys();
            let text = serde_json::to_string_pretty(&file).expect("a map is JSON");
            std::fs::write(&self.path, text + "\n").expect("the ratchet file can be written");
            return;
        }
        let known = file.get(self.section).cloned().unwrap_or_default();
        assert_eq!(
            found, known,
            "{}: outcomes differ from the ratchet file",
            self.section
        );
    }
}
