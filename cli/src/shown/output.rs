//! The forms of an answer, and printing it: one text at once, on a standard output that may be closed before
//! its end.

use std::io::{self, Write as _};

use serde_json::Value;

use crate::failure::Failure;

/// How the answer is printed.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct Output {
    /// Print one line of JSON
    #[arg(long, conflicts_with = "quiet")]
    pub json: bool,
    /// Print the bare result and no words; where the exit code is the result, nothing
    #[arg(long, short)]
    pub quiet: bool,
}

impl Output {
    /// Prints an answer in the form that was asked for; the text is for people, and what is quiet is the bare
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

/// Prints on standard output. A reader that has seen enough, such as `head`, is no failure.
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

/// Prints bytes on standard output as they are.
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

/// Prints on standard error. Nothing can be done where that fails.
pub fn err(text: &str) {
    let _ = anstream::stderr().write_all(text.as_bytes());
}
