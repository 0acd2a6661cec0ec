//! The folder of a service: its configuration, its keys and its audit log.

use crate::process::{Failure, line};
use crate::traffic::service::Program;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// The models: one that always has requests, and two that change places.
pub(super) const STEADY: &str = "steady";
pub(super) const SWAPPED: [&str; 2] = ["left", "right"];
/// The number of them that may be in memory.
pub(super) const LOADED: usize = 2;

/// The time that the service has for what is open when it is told to end.
pub(super) const DRAIN: Duration = Duration::from_secs(120);

/// The owners of keys for clients.
const OWNERS: [&str; 4] = ["north", "east", "south", "west"];
/// The owner of the key that is added while the service runs.
const LATE: &str = "late";
const OPERATOR: &str = "operator";

/// A folder that is removed with this value.
pub(super) struct Place {
    folder: PathBuf,
    keys: std::cell::OnceCell<Vec<Key>>,
}

/// A key with its entry in the file of keys.
struct Key {
    name: &'static str,
    text: String,
    entry: String,
}

impl Place {
    pub(super) fn new() -> Result<Self, Failure> {
        let folder = std::env::temp_dir().join(format!("lexiform-soak-{}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(|error| Failure::io("could not create", &folder, &error))?;
        let keys = std::cell::OnceCell::new();
        Ok(Self { folder, keys })
    }

    /// Returns the arguments of `lexiform serve`.
    pub(super) fn args(&self) -> Vec<String> {
        let of = |name: &str| self.folder.join(name).display().to_string();
        let pairs = [
            ("--config", of("models.toml")),
            ("--api-keys", of("keys.toml")),
            ("--audit-log", self.audit().display().to_string()),
            ("--models-loaded", LOADED.to_string()),
            // However busy the machine is: whatever has begun is to come to its end.
            ("--drain-seconds", DRAIN.as_secs().to_string()),
            ("--queue-seconds", DRAIN.as_secs().to_string()),
            ("--compile-seconds", DRAIN.as_secs().to_string()),
            ("--log", "error".to_owned()),
        ];
        pairs
            .into_iter()
            .flat_map(|(flag, value)| [flag.to_owned(), value])
            .collect()
    }

    /// Writes the files, with new keys of this program.
    pub(super) fn write(&self, program: &Program) -> Result<(), Failure> {
        let owners = OWNERS.into_iter().chain([OPERATOR, LATE]);
        let keys: Result<Vec<Key>, Failure> = owners.map(|name| key(program, name)).collect();
        let _ = self.keys.set(keys?);
        let models: String = [STEADY]
            .into_iter()
            .chain(SWAPPED)
            .map(|name| format!("[[models]]\nmodel = \"demo\"\nname = \"{name}\"\ncache-memory = 64\n\n"))
            .collect();
        self.put("models.toml", &models)?;
        self.admit(|name| name != LATE)
    }

    /// Adds the key of the late owner to the file of keys.
    pub(super) fn admit_late(&self) -> Result<(), Failure> {
        self.admit(|_| true)
    }

    fn admit(&self, is_admitted: impl Fn(&str) -> bool) -> Result<(), Failure> {
        let keys = self.keys.get().into_iter().flatten();
        let entries: String = keys
            .filter(|key| is_admitted(key.name))
            .map(|key| key.entry.as_str())
            .collect();
        self.put("keys.toml", &entries)
    }

    fn put(&self, name: &str, text: &str) -> Result<(), Failure> {
        let path = self.folder.join(name);
        std::fs::write(&path, text).map_err(|error| Failure::io("could not write", &path, &error))
    }

    /// Returns the path of the audit log.
    pub(super) fn audit(&self) -> PathBuf {
        self.folder.join("audit.jsonl")
    }

    /// Returns the keys of clients.
    pub(super) fn keys(&self) -> Vec<String> {
        OWNERS.into_iter().map(|name| self.key(name)).collect()
    }

    pub(super) fn operator(&self) -> String {
        self.key(OPERATOR)
    }

    pub(super) fn late(&self) -> String {
        self.key(LATE)
    }

    fn key(&self, name: &str) -> String {
        let mut keys = self.keys.get().into_iter().flatten();
        let key = keys.find(|key| key.name == name);
        key.map(|key| key.text.clone()).unwrap_or_default()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // The system empties its folder of temporary files anyway.
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

/// Has the program make a key.
fn key(program: &Program, name: &'static str) -> Result<Key, Failure> {
    let mut command = program.command();
    command.args(["key", name, "--json"]);
    let output = command
        .output()
        .map_err(|error| Failure::new(format!("{}: {error}", line(&command))))?;
    let made: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let (Some(text), Some(hash)) = (made["key"].as_str(), made["sha256"].as_str()) else {
        return Err(Failure::new(format!("{} made no key", line(&command))));
    };
    let rights = if name == OPERATOR { "operator = true\n" } else { "" };
    Ok(Key {
        name,
        text: text.to_owned(),
        entry: format!("[[keys]]\nname = \"{name}\"\nsha256 = \"{hash}\"\n{rights}"),
    })
}
