//! The command line: one file a subcommand, this file only names them.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

pub mod check;
pub mod eval;
pub mod expected;
pub mod file;
pub mod generate;
pub mod key;
pub mod mask;
pub mod serve;
pub mod source;
pub mod tokens;
pub mod twice;

/// What the arguments of `lexiform` say.
#[derive(Debug, Parser)]
#[command(name = "lexiform", version, about, long_about = None, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands of `lexiform`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve a model over HTTP, speaking the OpenAI API.
    Serve(Box<serve::Args>),
    /// Write one text under a constraint and print it.
    Generate(generate::Args),
    /// Compile a schema, regex or grammar and say of texts whether they belong to it.
    Check(check::Args),
    /// Show what may come next after a prefix.
    Mask(mask::Args),
    /// Make an API key and its entry for `serve --api-keys`.
    Key(key::Args),
    /// Measure the compiler and the masks on public test collections.
    Eval(eval::Args),
}

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

/// Reads the arguments, runs the subcommand, and says what failed.
pub fn main() -> ExitCode {
    let outcome = match parsed() {
        Ok(cli) => run(cli.command),
        Err(failure) => Err(failure),
    };
    outcome.unwrap_or_else(|failure| {
        eprintln!("error: {failure}");
        ExitCode::from(2)
    })
}

fn parsed() -> Result<Cli, Failure> {
    let args: Vec<String> = std::env::args_os()
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect();
    let command = file::with_file(Cli::command(), "serve", &args)?;
    let matches = command.get_matches();
    Cli::from_arg_matches(&matches).map_err(|error| error.exit())
}

fn run(command: Command) -> Outcome {
    match command {
        Command::Serve(args) => serve::run(*args),
        Command::Generate(args) => generate::run(args),
        Command::Check(args) => check::run(args),
        Command::Mask(args) => mask::run(args),
        Command::Key(args) => key::run(args),
        Command::Eval(args) => eval::run(args),
    }
}
