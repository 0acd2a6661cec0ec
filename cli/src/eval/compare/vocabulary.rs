//! The tokenizer of a comparison, and the files from which workers read it.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use lexiform::vocab::{TokenKind, Tokenizer, Vocabulary};
use serde_json::json;

use super::protocol::{Question, VocabularyFile};
use crate::failure::Failure;
use crate::input::tokenizer::TokenizerArgs;

/// A folder for the files of one run, which is removed at its end.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// Makes the folder.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn new() -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("lexiform-compare-{}", std::process::id()));
        let made = std::fs::create_dir_all(&path);
        made.map_err(|source| Failure::Write {
            path: path.clone(),
            source,
        })?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, Failure> {
        let path = self.0.join(name);
        match std::fs::write(&path, bytes) {
            Ok(()) => Ok(path),
            Err(source) => Err(Failure::Write { path, source }),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The system empties the folder of temporary files in time.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A tokenizer that is named on the command line: `FILE`, or `FILE:ROWS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) path: PathBuf,
    pub(super) rows: Option<usize>,
}

impl FromStr for Named {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text
            .rsplit_once(':')
            .and_then(|(path, rows)| Some((path, rows.parse().ok()?)));
        let (path, rows) = parts.map_or((text, None), |(path, rows)| (path, Some(rows)));
        Ok(Self {
            path: path.into(),
            rows,
        })
    }
}

/// A vocabulary with which engines are compared.
pub(super) struct Subject {
    name: String,
    tokenizer: Tokenizer,
    vocabulary: Arc<Vocabulary>,
    load: Question,
}

impl Subject {
    /// Reads a tokenizer, adds unused tokens up to the number of rows, and writes the files for the workers.
    ///
    /// # Errors
    /// The tokenizer cannot be used, has more tokens than rows, or the files cannot be written.
    pub(super) fn new(args: &TokenizerArgs, rows: Option<usize>, scratch: &Scratch) -> Result<Self, Failure> {
        let (tokenizer, vocabulary) = args.load()?;
        let vocabulary = match rows {
            None => vocabulary,
            Some(rows) => {
                let padded = tokenizer.vocabulary_with_rows(vocabulary.eos(), rows);
                Arc::new(padded.map_err(|error| Failure::message(error.to_string()))?)
            }
        };
        let name = name(args.file());
        let file = json!(file(&vocabulary)).to_string();
        let load = Question::Load {
            tokenizer: scratch.write("tokenizer.json", &args.bytes()?)?,
            vocabulary: scratch.write("vocabulary.json", file.as_bytes())?,
        };
        Ok(Self {
            name,
            tokenizer,
            vocabulary,
            load,
        })
    }

    /// Returns the name of the tokenizer: that of its folder.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    pub(super) fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// Returns the question with which a worker begins.
    pub(super) fn load(&self) -> &Question {
        &self.load
    }
}

fn name(file: Option<&Path>) -> String {
    let Some(file) = file else {
        return "demo".to_owned();
    };
    let folder = file
        .parent()
        .and_then(Path::file_name)
        .unwrap_or(file.as_os_str());
    folder.to_string_lossy().into_owned()
}

fn file(vocabulary: &Vocabulary) -> VocabularyFile {
    let tokens = (0..vocabulary.len() as u32).map(|token| match vocabulary.kind(token) {
        TokenKind::Text => vocabulary
            .bytes(token)
            .iter()
            .map(|byte| char::from(*byte))
            .collect(),
        _ => String::new(),
    });
    VocabularyFile {
        eos: vocabulary.eos().first().copied().unwrap_or(0),
        tokens: tokens.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_the_number_behind_the_last_colon() {
        let named = |text: &str| text.parse::<Named>().map(|it| (it.path, it.rows));
        assert_eq!(named("a/b.json"), Ok(("a/b.json".into(), None)));
        assert_eq!(named("a/b.json:262144"), Ok(("a/b.json".into(), Some(262_144))));
        assert_eq!(named("c:a.json"), Ok(("c:a.json".into(), None)));
    }

    #[test]
    fn the_file_has_bytes_of_text_alone() {
        let tokens: [(TokenKind, &[u8]); 4] = [
            (TokenKind::Text, b"a\xff"),
            (TokenKind::Special, b"<s>"),
            (TokenKind::Unused, b""),
            (TokenKind::Special, b"<end>"),
        ];
        let vocabulary = Vocabulary::new(&tokens, &[3]).expect("a vocabulary");
        let file = file(&vocabulary);
        assert_eq!(
            (file.eos, &file.tokens[..]),
            (3, &["a\u{ff}", "", "", ""].map(str::to_owned)[..])
        );
    }
}
