//! The outcome of a subcommand: an exit code, or why it could not do its work.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Why a subcommand could not do its work. Printed on standard error; the process then exits with 2.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Anything else, said in one or more full sentences.
    #[error("{0}")]
    Message(String),
}

impl Failure {
    /// A failure that is said by its text alone.
    pub fn message(text: impl Into<String>) -> Self {
        Self::Message(text.into())
    }
}

/// Reads a text file, naming it when that fails.
///
/// # Errors
/// The file is missing, unreadable, or not UTF-8.
pub fn read_text(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|source| Failure::Read {
        path: path.to_owned(),
        source,
    })
}

/// What a subcommand returns: an exit code of its own, or why it could not do its work.
pub type Outcome = Result<ExitCode, Failure>;
