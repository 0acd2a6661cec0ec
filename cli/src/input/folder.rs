//! A folder with a grammar and texts to accept and to reject, one JSON string a line: the layout of
//! `grammars/`.
//!
//! ```text
//!   json/grammar.ebnf    json/accept.txt    json/reject.txt         (or grammar.lark, grammar.gbnf …)
//! ```

use std::path::{Path, PathBuf};

use lexiform::grammar::Notation;

use crate::failure::{Failure, read_text};

/// Returns the file that marks the folder of a grammar: `grammar.ebnf`, `grammar.lark` and so on.
fn grammar_of(folder: &Path) -> PathBuf {
    let endings = Notation::all().map(|notation| format!("grammar.{}", notation.name()));
    let mut files = endings.map(|file| folder.join(file));
    files
        .find(|file| file.is_file())
        .unwrap_or_else(|| folder.join("grammar.ebnf"))
}

/// A text with the verdict that its folder expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The place of the text: `accept.txt:3`.
    pub name: String,
    /// The text.
    pub text: String,
    /// `true` if it belongs to the grammar.
    pub accept: bool,
}

/// The content of a folder.
#[derive(Clone, Debug)]
pub struct Folder {
    /// The file of the grammar.
    pub grammar: PathBuf,
    /// The text of the grammar.
    pub source: String,
    /// The texts.
    pub cases: Vec<Case>,
}

impl Folder {
    /// Returns the notation of the grammar, which the ending of its file names.
    pub fn notation(&self) -> Option<Notation> {
        self.grammar.extension()?.to_str()?.parse().ok()
    }

    /// Reads a folder.
    ///
    /// # Errors
    /// There is no grammar, no list of texts, or a line of a list is not a JSON string.
    pub fn read(folder: &Path) -> Result<Self, Failure> {
        let grammar = grammar_of(folder);
        let source = read_text(&grammar)?;
        let mut cases = Vec::new();
        for (file, accept) in [("accept.txt", true), ("reject.txt", false)] {
            let path = folder.join(file);
            if path.is_file() {
                cases.extend(list(&path, accept)?);
            }
        }
        if cases.is_empty() {
            let folder = folder.display();
            let message =
                format!("{folder} has no texts; accept.txt and reject.txt hold one JSON string a line");
            return Err(Failure::message(message));
        }
        Ok(Self {
            grammar,
            source,
            cases,
        })
    }

    /// Returns the folders of grammars in this place, sorted by name: the place itself, or the folders
    /// directly in it.
    ///
    /// # Errors
    /// The place cannot be read, or it has no such folder.
    pub fn all(place: &Path) -> Result<Vec<PathBuf>, Failure> {
        if grammar_of(place).is_file() {
            return Ok(vec![place.to_owned()]);
        }
        let unreadable = |source| Failure::Read {
            path: place.to_owned(),
            source,
        };
        let entries = std::fs::read_dir(place).map_err(unreadable)?;
        let paths: Result<Vec<PathBuf>, _> = entries.map(|entry| entry.map(|it| it.path())).collect();
        let mut folders = paths.map_err(unreadable)?;
        folders.retain(|folder| grammar_of(folder).is_file());
        folders.sort();
        if folders.is_empty() {
            let place = place.display();
            return Err(Failure::message(format!(
                "neither {place} nor a folder in it has a grammar.ebnf"
            )));
        }
        Ok(folders)
    }
}

fn list(path: &Path, accept: bool) -> Result<Vec<Case>, Failure> {
    let text = read_text(path)?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty());
    let file = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let case = |(index, line): (usize, &str)| {
        let text = serde_json::from_str(line).map_err(|_| {
            Failure::message(format!(
                "{}:{}: a line is one JSON string",
                path.display(),
                index + 1
            ))
        })?;
        let name = format!("{file}:{}", index + 1);
        Ok(Case { name, text, accept })
    };
    lines.map(case).collect()
}
