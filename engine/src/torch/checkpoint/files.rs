//! A model's files: in a folder, inside the program, or made up, with weights that are random.

use super::random::{CONFIG, Shape};
use crate::error::LoadError;
use serde_json::Value;
use std::io::{Cursor, Error, ErrorKind, Read, Seek};
use std::path::{Path, PathBuf};

/// The most bytes of a configuration or index that are read.
const MAX_TEXT: u64 = 64 << 20;

/// Something to read weights from.
pub(crate) trait Source: Read + Seek {}
impl<T: Read + Seek> Source for T {}

/// A Hugging Face model folder on disk, the same files embedded in the program, or those of a model with random weights.
#[derive(Clone, Debug)]
pub struct ModelFiles {
    root: PathBuf,
    embedded: Option<&'static [(&'static str, &'static [u8])]>,
    random: Option<Random>,
}

/// What takes the place of files.
#[derive(Clone, Debug)]
struct Random {
    /// The text of config.json.
    config: String,
}

impl ModelFiles {
    /// The files of a folder.
    pub fn folder(path: impl AsRef<Path>) -> Self {
        ModelFiles {
            root: path.as_ref().to_path_buf(),
            embedded: None,
            random: None,
        }
    }

    /// The files at a path: a Hugging Face folder.
    ///
    /// # Errors
    /// It is a file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        match path.as_ref().is_file() {
            true => Err(LoadError::Unsupported {
                file: path.as_ref().to_path_buf(),
                what: "a model",
                found: "a file".to_owned(),
                supported: "Hugging Face folders",
            }),
            false => Ok(Self::folder(path)),
        }
    }

    /// Files inside the program, by name; `root` is what messages call their folder.
    pub fn embedded(root: &str, files: &'static [(&'static str, &'static [u8])]) -> Self {
        ModelFiles {
            root: PathBuf::from(root),
            embedded: Some(files),
            random: None,
        }
    }

    /// These files without their config.json and weights: the model has this shape and random weights, which are made in memory
    /// when it is loaded. Its tokenizer and its end tokens are those of the files.
    ///
    /// # Errors
    /// A config.json that is there is not JSON.
    pub fn with_random_weights(self, shape: Shape) -> Result<Self, LoadError> {
        let eos = match self.has(CONFIG) {
            true => serde_json::from_str::<Value>(&self.text(CONFIG)?)
                .map_err(|error| self.malformed(CONFIG, format!("not JSON: {error}")))?["eos_token_id"]
                .take(),
            false => Value::Null,
        };
        let config = shape.config(eos).to_string();
        Ok(ModelFiles {
            random: Some(Random { config }),
            ..self
        })
    }

    /// Whether there are no weights to be read.
    pub(crate) fn is_random(&self) -> bool {
        self.random.is_some()
    }

    /// What messages call a file.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Whether there is such a file.
    pub fn has(&self, name: &str) -> bool {
        if self.random.is_some() && name == CONFIG {
            return true;
        }
        match self.embedded {
            Some(files) => files.iter().any(|(file, _)| *file == name),
            None => self.path(name).is_file(),
        }
    }

    /// A whole text file, of a bounded size.
    pub fn text(&self, name: &str) -> Result<String, LoadError> {
        let mut text = String::new();
        let read = self.source(name)?.take(MAX_TEXT + 1).read_to_string(&mut text);
        read.map_err(|source| self.unreadable(name, source))?;
        if text.len() as u64 > MAX_TEXT {
            return Err(self.malformed(name, format!("longer than {MAX_TEXT} bytes")));
        }
        Ok(text)
    }

    /// A whole file, however large.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn bytes(&self, name: &str) -> Result<Vec<u8>, LoadError> {
        let mut bytes = Vec::new();
        let read = self.source(name)?.read_to_end(&mut bytes);
        read.map_err(|source| self.unreadable(name, source))?;
        Ok(bytes)
    }

    pub(crate) fn source(&self, name: &str) -> Result<Box<dyn Source>, LoadError> {
        if let (Some(random), CONFIG) = (&self.random, name) {
            return Ok(Box::new(Cursor::new(random.config.clone().into_bytes())));
        }
        match self.embedded {
            Some(files) => match files.iter().find(|(file, _)| *file == name) {
                Some((_, bytes)) => Ok(Box::new(Cursor::new(*bytes))),
                None => Err(self.unreadable(name, Error::from(ErrorKind::NotFound))),
            },
            None => match std::fs::File::open(self.path(name)) {
                Ok(file) => Ok(Box::new(file)),
                Err(source) => Err(self.unreadable(name, source)),
            },
        }
    }

    pub(crate) fn unreadable(&self, name: &str, source: Error) -> LoadError {
        LoadError::Unreadable {
            file: self.path(name),
            source,
        }
    }

    pub(crate) fn malformed(&self, name: &str, message: impl Into<String>) -> LoadError {
        LoadError::Malformed {
            file: self.path(name),
            message: message.into(),
        }
    }
}
