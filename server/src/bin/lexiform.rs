//! The `lexiform` program that users run. It runs the commands that need no model itself; for the others it
//! becomes `lexiform-server`, which is installed in the same folder.
//!
//! ```text
//!   lexiform check …   ─► here, in a few milliseconds
//!   lexiform serve …   ─► exec lexiform-server serve …     (libtorch takes a third of a second to load)
//! ```
//!
//! It uses nothing of `lexiform_server`, or it would link libtorch as well.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::{self, ExitCode};

use clap::Subcommand;
use lexiform_cli::failure::{Failure, Outcome, reason};
use lexiform_cli::program::{self, Commands};

// The same allocator as in `lexiform-server`, so that compilation takes as long in both.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The program that has all commands.
const SERVER: &str = "lexiform-server";

/// The subcommands, as `lexiform --help` lists them. The ones without arguments here are run by the other
/// program, which also defines their arguments.
#[derive(Debug, Subcommand)]
enum Command {
    /// Serve a model over HTTP, speaking the OpenAI API
    Serve,
    /// Forward chats to a provider that takes less of JSON Schema, and check its answers
    Gateway,
    /// Write one text under a constraint and print it
    Generate,
    /// List the models on this disk, and whether they can be run
    Models,
    /// The commands that need no model.
    #[command(flatten)]
    WithoutModel(lexiform_cli::Command<Evaluation>),
    /// Measure how fast a model writes on this machine
    Bench,
    /// Print the script with which a shell completes commands and flags
    Completions,
    /// Print the manual page, or write a page for each command into a folder
    Man,
    /// Print the version with its commit, its libtorch and the usable devices
    Version,
}

/// The collections of `lexiform eval` that the other program runs.
#[derive(Debug, Subcommand)]
enum Evaluation {
    /// Tool calls and documents, written with each kind of draft
    Drafts,
}

impl Commands for Evaluation {
    fn is_json(&self) -> bool {
        false
    }

    fn run(self) -> Outcome {
        Err(become_server(&std::env::args_os().collect::<Vec<_>>()))
    }
}

/// The subcommands that the other program runs.
const ELSEWHERE: [&str; 8] = [
    "serve",
    "gateway",
    "generate",
    "models",
    "bench",
    "completions",
    "man",
    "version",
];

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let texts: Vec<String> = args
        .iter()
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect();
    if is_elsewhere(&texts) {
        return program::ended(Err(become_server(&args)), false);
    }
    program::main::<Command>(&texts, Ok)
}

/// Returns `true` if the other program runs these arguments, as decided by the first words, or by the words
/// that `help` is given.
fn is_elsewhere(args: &[String]) -> bool {
    let mut words = ArgumentWords(args.get(1..).unwrap_or_default()).filter(|word| *word != "help");
    match words.next() {
        Some("eval") => words.next() == Some("drafts"),
        word => word.is_some_and(|word| ELSEWHERE.contains(&word)),
    }
}

/// The arguments that are neither flags nor the value of `--color`, the only flag that may precede a
/// subcommand.
struct ArgumentWords<'a>(&'a [String]);

impl<'a> Iterator for ArgumentWords<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        loop {
            let (first, rest) = self.0.split_first()?;
            self.0 = rest;
            match first.as_str() {
                "--color" => self.0 = rest.get(1..).unwrap_or_default(),
                flag if flag.starts_with('-') => {}
                word => return Some(word),
            }
        }
    }
}

/// Replaces this process by the other program. Returns only if that fails.
fn become_server(args: &[OsString]) -> Failure {
    let here = match std::env::current_exe() {
        Ok(path) => path,
        Err(error) => return Failure::Unable(format!("cannot find {SERVER}: {}", reason(&error))),
    };
    let path = here.with_file_name(SERVER);
    let error = process::Command::new(&path).args(args.iter().skip(1)).exec();
    Failure::Unable(format!(
        "this command needs the engine, which is in {SERVER}; {} cannot be started: {}",
        path.display(),
        reason(&error)
    ))
}

impl Commands for Command {
    fn is_json(&self) -> bool {
        match self {
            Command::WithoutModel(command) => command.is_json(),
            _ => false,
        }
    }

    fn run(self) -> Outcome {
        match self {
            Command::WithoutModel(command) => command.run(),
            // These commands were passed to the other program before anything was parsed.
            _ => Err(become_server(&std::env::args_os().collect::<Vec<_>>())),
        }
    }
}
