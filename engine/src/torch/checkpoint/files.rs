//! A model's files: in a folder, in GGUF, embedded in the program, or with random weights.

use super::random::{CONFIG, Shape};
use crate::error::LoadError;
use crate::torch::gguf::file::Gguf;
use crate::torch::gguf::{has_text, text};
use serde_json::Value;
use std::io::{Cursor, Error, ErrorKind, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most bytes of a configuration or index that are read.
const MAX_TEXT: u64 = 64 << 20;

/// A source to read weights from.
pub(crate) trait Source: Read + Seek {}
impl<T: Read + Seek> Source for T {}

/// The files of a Hugging Face model folder: on disk, embedded in the program, made from a GGUF file, or of a
/// model with random weights.
#[derive(Clone, Debug)]
pub struct ModelFiles {
    root: PathBuf,
    origin: Origin,
    random: Option<Random>,
}

/// The origin of the files.
#[derive(Clone, Debug)]
enum Origin {
    Folder,
    Embedded(&'static [(&'static str, &'static [u8])]),
    Gguf(Arc<Gguf>),
}

/// The replacement of files in a model with random weights.
#[derive(Clone, Debug)]
struct Random {
    /// The text of config.json.
    config: String,
}

impl ModelFiles {
    /// Returns the files of a folder.
    pub fn folder(path: impl AsRef<Path>) -> Self {
        ModelFiles {
            root: path.as_ref().to_path_buf(),
            origin: Origin::Folder,
            random: None,
        }
    }

    /// Returns files embedded in the program, by name; messages call their folder `root`.
    pub fn embedded(root: &str, files: &'static [(&'static str, &'static [u8])]) -> Self {
        ModelFiles {
            root: PathBuf::from(root),
            origin: Origin::Embedded(files),
            random: None,
        }
    }

    /// Opens a path: a Hugging Face model folder, or a GGUF file, which may be the first of several.
    ///
    /// # Errors
    /// The path does not exist, or is a file that is not a model in GGUF or not one that the engine can run.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        let path = path.as_ref();
        if path.is_dir() {
            return Ok(ModelFiles::folder(path));
        }
        Ok(ModelFiles {
            root: path.to_path_buf(),
            origin: Origin::Gguf(Arc::new(Gguf::open(path)?)),
            random: None,
        })
    }

    /// Returns the GGUF file, if the files are made from one and its weights are used.
    pub(crate) fn gguf(&self) -> Option<&Gguf> {
        match &self.origin {
            Origin::Gguf(gguf) if self.random.is_none() => Some(gguf),
            _ => None,
        }
    }

    /// Replaces config.json and the weights: the model has this shape and random weights, which are made in
    /// memory when it is loaded. It keeps the tokenizer and the end tokens of the files.
    ///
    /// # Errors
    /// There is a config.json, but it is not JSON.
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

    /// Returns `true` if the weights are random.
    pub(crate) fn is_random(&self) -> bool {
        self.random.is_some()
    }

    /// Returns the path of a file for messages.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Returns `true` if there is a file with this name.
    pub fn has(&self, name: &str) -> bool {
        if self.random.is_some() && name == CONFIG {
            return true;
        }
        match &self.origin {
            Origin::Embedded(files) => files.iter().any(|(file, _)| *file == name),
            Origin::Gguf(_) => has_text(name),
            Origin::Folder => self.path(name).is_file(),
        }
    }

    /// Reads a whole text file, of a bounded size.
    pub fn text(&self, name: &str) -> Result<String, LoadError> {
        let mut text = String::new();
        let read = self.reader(name)?.take(MAX_TEXT + 1).read_to_string(&mut text);
        read.map_err(|source| self.unreadable(name, source))?;
        if text.len() as u64 > MAX_TEXT {
            return Err(self.malformed(name, format!("longer than {MAX_TEXT} bytes")));
        }
        Ok(text)
    }

    /// Reads a whole file, however large.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn bytes(&self, name: &str) -> Result<Vec<u8>, LoadError> {
        let mut bytes = Vec::new();
        let read = self.reader(name)?.read_to_end(&mut bytes);
        read.map_err(|source| self.unreadable(name, source))?;
        Ok(bytes)
    }

    pub(crate) fn reader(&self, name: &str) -> Result<Box<dyn Source>, LoadError> {
        if let (Some(random), CONFIG) = (&self.random, name) {
            return Ok(Box::new(Cursor::new(random.config.clone().into_bytes())));
        }
        let missing = || self.unreadable(name, Error::from(ErrorKind::NotFound));
        match &self.origin {
            Origin::Embedded(files) => match files.iter().find(|(file, _)| *file == name) {
                Some((_, bytes)) => Ok(Box::new(Cursor::new(*bytes))),
                None => Err(missing()),
            },
            Origin::Gguf(gguf) => {
                let text = text(gguf, name)?.ok_or_else(missing)?;
                Ok(Box::new(Cursor::new(text.into_bytes())))
            }
            Origin::Folder => match std::fs::File::open(self.path(name)) {
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
