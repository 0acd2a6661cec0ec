//! The outcome of a subcommand: an exit code, or the reason why it could not do its work. Each kind of
//! failure has one code in all commands.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};

/// The description of the exit codes, for `--help`.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  done, and the answer is yes
  1  the answer is no: a text does not belong, a prefix leaves the language, a case failed
  2  a wrong call, or a file that cannot be read
  3  a schema, regex or grammar does not compile
  4  it could not be carried out: no memory or tokens left, an address in use, a full disk
If several apply, the highest.";

/// An exit code. If several apply to a run, the largest is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Code {
    /// The command did its work, and the answer is yes.
    Fine = 0,
    /// The answer is no.
    No = 1,
    /// The call is wrong, or a file cannot be read.
    WrongCall = 2,
    /// A source does not compile.
    DoesNotCompile = 3,
    /// The request could not be carried out.
    Unable = 4,
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        ExitCode::from(code as u8)
    }
}

/// The reason why a subcommand could not do its work, printed on standard error.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A file could not be read.
    #[error("cannot read {}: {}", path.display(), reason(source))]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {}: {}", path.display(), reason(source))]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A wrong call, described in one or more full sentences.
    #[error("{0}")]
    Message(String),
    /// The request could not be carried out.
    #[error("{0}")]
    Unable(String),
    /// A source does not compile.
    #[error("{text}")]
    DoesNotCompile {
        /// Its problems, for people.
        text: String,
        /// The problems for programs.
        json: Value,
    },
    /// The answer is no, and nothing more can be done.
    #[error("{text}")]
    No {
        /// The reason, for people.
        text: String,
        /// The reason for programs.
        json: Value,
    },
}

impl Failure {
    /// Creates a failure for a wrong call, from its text.
    pub fn message(text: impl Into<String>) -> Self {
        Self::Message(text.into())
    }

    /// Returns the exit code of the program.
    pub fn code(&self) -> Code {
        match self {
            Self::Read { .. } | Self::Message(_) => Code::WrongCall,
            Self::Write { .. } | Self::Unable(_) => Code::Unable,
            Self::DoesNotCompile { .. } => Code::DoesNotCompile,
            Self::No { .. } => Code::No,
        }
    }

    /// Returns the failure as `--json` prints it.
    pub fn json(&self) -> Value {
        let mut object = json!({"ok": false, "exit": self.code() as u8});
        match self {
            Self::DoesNotCompile { json, .. } => object["source"] = json.clone(),
            Self::No { json, .. } => object["problem"] = json.clone(),
            other => object["error"] = json!(other.to_string()),
        }
        object
    }
}

/// Returns the system's description of an error, without the error number.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let plain = text.split(" (os error").next().unwrap_or_default();
    match error.kind() {
        io::ErrorKind::InvalidData => "it is not UTF-8 text".to_owned(),
        _ => plain.to_lowercase(),
    }
}

/// Reads a text file; an error names the file.
///
/// # Errors
/// The file is missing, unreadable, or not UTF-8.
pub fn read_text(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|source| Failure::Read {
        path: path.to_owned(),
        source,
    })
}

/// The result of a subcommand: an exit code, or the reason why it could not do its work.
pub type Outcome = Result<Code, Failure>;
