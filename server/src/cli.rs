//! The command line: one file a subcommand, this file only names them.

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

pub mod check;
pub mod demo;
pub mod eval;
pub mod expected;
pub mod failure;
pub mod file;
pub mod generate;
pub mod key;
pub mod mask;
pub mod model;
pub mod serve;
pub mod source;
pub mod tokens;
pub mod twice;

use failure::{Failure, Outcome};

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
