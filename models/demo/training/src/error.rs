//! What can go wrong, with the file that it went wrong with.

use std::path::{Path, PathBuf};

/// A reason for stopping.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{path}: {source}")]
    File { path: PathBuf, source: std::io::Error },
    #[error("{path}: {reason}")]
    Content { path: PathBuf, reason: String },
    #[error("the tokenizer: {0}")]
    Tokenizer(#[from] tokenizers::Error),
    #[error("libtorch: {0}")]
    Torch(#[from] tch::TchError),
    #[error("{0}")]
    Json(#[from] serde_json::Error),
}

impl Error {
    pub(crate) fn content(path: &Path, reason: impl ToString) -> Self {
        Self::Content {
            path: path.to_owned(),
            reason: reason.to_string(),
        }
    }
}

/// Reads a file, naming it where that fails.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|source| Error::File {
        path: path.to_owned(),
        source,
    })
}

/// Writes a file whole or not at all: a reader never sees half of it.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let wrong = |source| Error::File {
        path: path.to_owned(),
        source,
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(wrong)?;
    }
    let unfinished = path.with_extension("part");
    std::fs::write(&unfinished, bytes).map_err(wrong)?;
    std::fs::rename(&unfinished, path).map_err(wrong)
}
