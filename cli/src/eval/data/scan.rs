//! What lies in a folder: files are read, their records recognised and counted, and broken lines named.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::kind::Kind;
use crate::eval::suite::json_files;
use crate::failure::{Failure, read_text, reason};
use crate::input::folder::Folder;

/// The folders that are entered, one in the other: more is no collection but a disk.
const DEPTH: usize = 6;

/// Everything that was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) parts: Vec<Part>,
    /// Places that are broken, each with the reason.
    pub(super) broken: Vec<String>,
    /// Files that are not read, each with what to do.
    pub(super) unread: Vec<String>,
}

/// A file, or the files of a folder, with records of one kind.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    pub(super) files: usize,
    pub(super) records: usize,
    /// The instances, texts or tasks of all records.
    pub(super) cases: usize,
}

/// Files in one folder with one record each are counted together, by the folder and their kind.
type Gathered = BTreeMap<(PathBuf, Kind), (usize, usize)>;

/// Looks at a file or a folder.
///
/// # Errors
/// It cannot be read.
pub(super) fn scan(path: &Path) -> Result<Found, Failure> {
    let mut found = Found::default();
    if path.is_dir() {
        found.folder(path, DEPTH)?;
    } else {
        fs::metadata(path).map_err(|source| Failure::Read {
            path: path.to_owned(),
            source,
        })?;
        let mut gathered = Gathered::new();
        found.file(path, &mut gathered);
        found.gather(gathered, true);
    }
    found
        .parts
        .sort_by(|one, other| (&one.path, one.kind).cmp(&(&other.path, other.kind)));
    Ok(found)
}

/// The endings of files that are packed or in a binary form, and what to do with them.
const BINARY: [(&str, &str); 6] = [
    (
        "parquet",
        "Parquet is not read; export its rows as JSON lines, with pandas: read_parquet(FILE).to_json(\"rows.jsonl\", orient=\"records\", lines=True)",
    ),
    ("arrow", "Arrow is not read; export its rows as JSON lines"),
    ("zst", "packed; unpack it with zstd -d"),
    ("gz", "packed; unpack it with gunzip"),
    ("zip", "packed; unpack it with unzip"),
    ("tar", "packed; unpack it with tar -xf"),
];

fn ending(path: &Path) -> &str {
    path.extension()
        .and_then(|ending| ending.to_str())
        .unwrap_or_default()
}

impl Found {
    fn folder(&mut self, folder: &Path, depth: usize) -> Result<(), Failure> {
        if folder.join("tests").is_dir() && folder.join("remotes").is_dir() {
            return self.suite(folder);
        }
        let unreadable = |source| Failure::Read {
            path: folder.to_owned(),
            source,
        };
        let entries = fs::read_dir(folder).map_err(unreadable)?;
        let paths: Result<Vec<PathBuf>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
        let mut paths = paths.map_err(unreadable)?;
        paths.sort();
        if paths.iter().any(|path| is_grammar(path)) {
            self.grammar(folder);
            return Ok(());
        }
        let mut gathered = Gathered::new();
        for path in &paths {
            let is_hidden = path
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with('.'));
            match path.is_dir() {
                _ if is_hidden => {}
                true if depth > 0 => self.folder(path, depth - 1)?,
                true => self.unread.push(format!("{}: too deep", path.display())),
                false => self.file(path, &mut gathered),
            }
        }
        self.gather(gathered, false);
        Ok(())
    }

    /// Adds what was counted by folder.
    fn gather(&mut self, gathered: Gathered, is_one_file: bool) {
        for ((path, kind), (records, cases)) in gathered {
            self.parts.push(Part {
                path,
                kind,
                files: if is_one_file { 1 } else { records },
                records,
                cases,
            });
        }
    }

    fn file(&mut self, path: &Path, gathered: &mut Gathered) {
        let ending = ending(path);
        if let Some((_, what)) = BINARY.iter().find(|(name, _)| *name == ending) {
            self.unread.push(format!("{}: {what}", path.display()));
            return;
        }
        if !["json", "jsonl", "ndjson"].contains(&ending) {
            return;
        }
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => {
                self.broken
                    .push(format!("{}: {}", path.display(), reason(&error)));
                return;
            }
        };
        match serde_json::from_str(&text) {
            // A whole file of one record; JSON lines with a single line are a list of it.
            Ok(record @ Value::Object(_)) if ending == "json" => self.whole(path, &record, gathered),
            Ok(Value::Array(records)) => self.records(path, records.iter()),
            _ => self.lines(path, &text),
        }
    }

    /// Counts a file that is one record, together with others of its folder.
    fn whole(&mut self, path: &Path, record: &Value, gathered: &mut Gathered) {
        match Kind::of(record) {
            Some(kind) => {
                let folder = path.parent().unwrap_or(path).to_owned();
                let place = if kind == Kind::ShuffledObjects {
                    path.to_owned()
                } else {
                    folder
                };
                let (records, cases) = gathered.entry((place, kind)).or_default();
                *records += 1;
                *cases += kind.cases(record);
            }
            None => self
                .unread
                .push(format!("{}: of no known collection", path.display())),
        }
    }

    /// Counts the lines of a file.
    fn lines(&mut self, path: &Path, text: &str) {
        let mut records = Vec::new();
        let before = self.broken.len();
        for (index, line) in text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty())
        {
            match serde_json::from_str::<Value>(line) {
                Ok(record) => records.push(record),
                Err(error) => self
                    .broken
                    .push(format!("{}, line {}: {error}", path.display(), index + 1)),
            }
        }
        if records.is_empty() && ending(path) == "json" && self.broken.len() > before {
            // It is not JSON lines either: the error of the whole file says more.
            self.broken.truncate(before);
            let error = serde_json::from_str::<Value>(text).err();
            let error = error.map_or_else(|| "empty".to_owned(), |error| error.to_string());
            self.broken.push(format!("{}: {error}", path.display()));
            return;
        }
        self.records(path, records.iter());
    }

    /// Counts the records of a file by kind.
    fn records<'a>(&mut self, path: &Path, records: impl Iterator<Item = &'a Value>) {
        let mut kinds: BTreeMap<Kind, (usize, usize)> = BTreeMap::new();
        let mut unknown = 0;
        for record in records {
            match Kind::of(record) {
                Some(kind) => {
                    let (records, cases) = kinds.entry(kind).or_default();
                    *records += 1;
                    *cases += kind.cases(record);
                }
                None => unknown += 1,
            }
        }
        if unknown > 0 {
            self.unread.push(format!(
                "{}: {unknown} records of no known collection",
                path.display()
            ));
        }
        for (kind, (records, cases)) in kinds {
            self.parts.push(Part {
                path: path.to_owned(),
                kind,
                files: 1,
                records,
                cases,
            });
        }
    }

    /// Counts the folder of a grammar with its texts.
    fn grammar(&mut self, folder: &Path) {
        match Folder::read(folder) {
            Ok(read) => self.parts.push(Part {
                path: folder.to_owned(),
                kind: Kind::Cases,
                files: 1,
                records: 1,
                cases: read.cases.len(),
            }),
            Err(failure) => self.broken.push(failure.to_string()),
        }
    }

    /// Counts the tests of each draft of the official suite.
    fn suite(&mut self, folder: &Path) -> Result<(), Failure> {
        for draft in ["4", "6", "7", "2019-09", "2020-12"] {
            let tests = folder.join("tests").join(format!("draft{draft}"));
            if !tests.is_dir() {
                continue;
            }
            let (mut groups, mut cases) = (0, 0);
            let files = json_files(&tests)?;
            for file in &files {
                let parsed: Result<Value, _> = serde_json::from_str(&read_text(file)?);
                let list = match &parsed {
                    Ok(Value::Array(list)) => list,
                    Ok(_) => {
                        self.broken
                            .push(format!("{}: expected a list of schemas", file.display()));
                        continue;
                    }
                    Err(error) => {
                        self.broken.push(format!("{}: {error}", file.display()));
                        continue;
                    }
                };
                groups += list.len();
                cases += list
                    .iter()
                    .filter_map(|group| group["tests"].as_array())
                    .map(Vec::len)
                    .sum::<usize>();
            }
            self.parts.push(Part {
                path: tests,
                kind: Kind::Suite,
                files: files.len(),
                records: groups,
                cases,
            });
        }
        Ok(())
    }
}

/// Returns `true` for the file that marks the folder of a grammar.
fn is_grammar(path: &Path) -> bool {
    path.file_stem().is_some_and(|stem| stem == "grammar") && path.is_file() && ending(path) != "json"
}
