//! Runs other programs, prints their command lines, and reports their failures.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// The reason why a command of this program ended early, as a sentence for the user.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// Creates a failure of a file operation with its path, which an I/O error does not contain.
    pub(crate) fn io(action: &str, path: &Path, error: &std::io::Error) -> Self {
        Self(format!("{action} {}: {error}", path.display()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the exit status of a command.
pub(crate) fn code(is_success: bool) -> ExitCode {
    match is_success {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Returns the root of this checkout.
pub(crate) fn root() -> PathBuf {
    // Cargo sets the path of a running package; the compile-time value is for a binary that was started by
    // hand.
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    package
        .parent()
        .map_or_else(|| package.clone(), Path::to_path_buf)
}

/// Returns a command for the cargo that started this program, in the root of the checkout.
pub(crate) fn cargo<'a>(args: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root());
    command
}

/// Returns the command as a person would type it.
pub(crate) fn line(command: &Command) -> String {
    let program = Path::new(command.get_program())
        .file_name()
        .unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Prints a command, runs it, and returns `true` if it succeeded.
pub(crate) fn succeeds(command: &mut Command) -> Result<bool, Failure> {
    eprintln!("$ {}", line(command));
    let status = command.status().map_err(|error| not_started(command, &error))?;
    Ok(status.success())
}

/// Like [`succeeds`], for steps whose failure ends the command.
pub(crate) fn must_succeed(command: &mut Command) -> Result<(), Failure> {
    if succeeds(command)? {
        Ok(())
    } else {
        Err(Failure::new(format!("this failed: {}", line(command))))
    }
}

/// Runs a command quietly and returns what it wrote to standard output, or `None` if it failed or is not
/// installed.
pub(crate) fn quiet_output(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Prints a command, runs it, and passes on each line of its standard output after printing it.
pub(crate) fn each_line(command: &mut Command, mut line_read: impl FnMut(&str)) -> Result<bool, Failure> {
    eprintln!("$ {}", line(command));
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| not_started(command, &error))?;
    if let Some(stdout) = child.stdout.take() {
        let mut reader = BufReader::new(stdout);
        let mut bytes = Vec::new();
        // Lines are read as bytes: a test may print output that is not UTF-8, which must not end the run.
        while reader.read_until(b'\n', &mut bytes).unwrap_or(0) != 0 {
            let text = String::from_utf8_lossy(&bytes);
            print!("{text}");
            line_read(text.trim_end());
            bytes.clear();
        }
    }
    let status = child.wait().map_err(|error| not_started(command, &error))?;
    Ok(status.success())
}

fn not_started(command: &Command, error: &std::io::Error) -> Failure {
    Failure::new(format!("could not run {:?}: {error}", command.get_program()))
}
