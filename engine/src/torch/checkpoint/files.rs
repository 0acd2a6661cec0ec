//! A model's files, in a folder or inside the program.

use crate::error::LoadError;
use std::io::{Cursor, Error, ErrorKind, Read, Seek};
use std::path::{Path, PathBuf};

/// The most bytes of a configuration or index that are read.
const MAX_TEXT: u64 = 64 << 20;

/// Something to read weights from.
pub(crate) trait Source: Read + Seek {}
impl<T: Read + Seek> Source for T {}

/// A Hugging Face model folder on disk, or the same files embedded in the program.
#[derive(Clone, Debug)]
pub struct ModelFiles {
    root: PathBuf,
    embedded: Option<&'static [(&'static str, &'static [u8])]>,
}

impl ModelFiles {
    /// The files of a folder.
    pub fn folder(path: impl AsRef<Path>) -> Self {
        ModelFiles {
            root: path.as_ref().to_path_buf(),
            embedded: None,
        }
    }

    /// Files inside the program, by name; `root` is what messages call their folder.
    pub fn embedded(root: &str, files: &'static [(&'static str, &'static [u8])]) -> Self {
        ModelFiles {
            root: PathBuf::from(root),
            embedded: Some(files),
        }
    }

    /// What messages call a file.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Whether there is such a file.
    pub fn has(&self, name: &str) -> bool {
        match self.embedded {
            Some(files) => files.iter().any(|(file, _)| *file == name),
            None => self.path(name).is_file(),
        }
    }

    /// A whole text file, of a bounded size.
    pub fn text(&self, name: &str) -> Result<String, LoadError> {
        let mut text = String::new();
        let read = self.open(name)?.take(MAX_TEXT + 1).read_to_string(&mut text);
        read.map_err(|source| self.unreadable(name, source))?;
        if text.len() as u64 > MAX_TEXT {
            return Err(self.malformed(name, format!("longer than {MAX_TEXT} bytes")));
        }
        Ok(text)
    }

    pub(crate) fn open(&self, name: &str) -> Result<Box<dyn Source>, LoadError> {
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
