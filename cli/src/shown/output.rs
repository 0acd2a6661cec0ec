//! The formats of an answer, and printing it: the whole text at once, to a standard output that may be closed
//! early.

use std::io::{self, Write as _};

use serde_json::Value;

use crate::failure::Failure;

/// The format in which the answer is printed.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct Output {
    /// Print one line of JSON
    #[arg(long, conflicts_with = "quiet")]
    pub json: bool,
    /// Print the bare result without any words, or nothing if the exit code is the result
    #[arg(long, short)]
    pub quiet: bool,
}

impl Output {
    /// Prints an answer in the requested format; the text is for people, and the quiet format is the bare
    /// result.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn print(
        self,
        json: impl FnOnce() -> Value,
        text: impl FnOnce() -> String,
        bare: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        match (self.json, self.quiet) {
            (true, _) => out(&format!("{}\n", json())),
            (_, true) => out(&bare()),
            _ => out(&text()),
        }
    }
}

/// Prints on standard output. A reader that stops early, such as `head`, is no failure.
///
/// # Errors
/// Standard output cannot be written.
pub fn out(text: &str) -> Result<(), Failure> {
    written(
        anstream::stdout()
            .write_all(text.as_bytes())
            .and_then(|()| anstream::stdout().flush()),
    )
}

/// Prints bytes on standard output unchanged.
///
/// # Errors
/// Standard output cannot be written.
pub fn raw(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout();
    written(stdout.write_all(bytes).and_then(|()| stdout.flush()))
}

fn written(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::Write {
            path: "standard output".into(),
            source: error,
        }),
        _ => Ok(()),
    }
}

/// Prints on standard error. Failures are ignored.
pub fn err(text: &str) {
    let _ = anstream::stderr().write_all(text.as_bytes());
}
