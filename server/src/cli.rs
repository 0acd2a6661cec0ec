//! The command line: one file a subcommand, this file only names them.
//!
//! ```text
//!   input ─► a command ─► verdict, shown ─► standard output, exit code (failure)
//! ```

use std::process::ExitCode;

use clap::{ColorChoice, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

pub mod check;
pub mod eval;
pub mod failure;
pub mod generate;
pub mod input;
pub mod key;
pub mod manual;
pub mod mask;
pub mod model;
pub mod serve;
pub mod shown;
pub mod tokens;
pub mod verdict;
pub mod version;

use failure::{Code, EXIT_CODES, Failure, Outcome};
use input::config;
use shown::{output, paint};

/// What the arguments of `lexiform` say.
#[derive(Debug, Parser)]
#[command(name = "lexiform", version, about, long_about = None, after_help = EXIT_CODES)]
pub struct Cli {
    /// When to print in colour; `auto` is on a terminal, unless NO_COLOR or CLICOLOR=0 is set
    #[arg(long, value_name = "WHEN", global = true, default_value = "auto")]
    pub color: ColorChoice,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands of `lexiform`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve a model over HTTP, speaking the OpenAI API
    Serve(Box<serve::Args>),
    /// Write one text under a constraint and print it
    Generate(Box<generate::Args>),
    /// Check a schema, regex or grammar, and test texts against it
    Check(check::Args),
    /// Show what may come next after a prefix
    Mask(mask::Args),
    /// Show how a tokenizer cuts texts
    Tokens(tokens::Args),
    /// Make an API key and its entry for `serve --api-keys`
    Key(key::Args),
    /// Measure the compiler and the masks on public test collections
    Eval(eval::Args),
    /// Print what a shell needs to complete commands and flags
    Completions(manual::CompletionsArgs),
    /// Print the manual page, or write a page for each command into a folder
    Man(manual::ManArgs),
    /// Print the version with its commit, its libtorch and the devices that it can use
    Version(version::Args),
}

/// Reads the arguments, runs the subcommand, and says what failed.
pub fn main() -> ExitCode {
    let args: Vec<String> = std::env::args_os()
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect();
    if args.len() < 2 {
        // Nothing was asked for and nothing failed: whoever types the bare name wants to read what there is.
        let help = Cli::command().render_help();
        return ended(
            output::out(&format!("{}", help.ansi())).map(|()| Code::Fine),
            false,
        );
    }
    match parsed(&args) {
        Ok(cli) => {
            paint_as(cli.color);
            let is_json = cli.command.is_json();
            ended(run(cli.command), is_json)
        }
        Err(failure) => ended(Err(failure), false),
    }
}

/// Says what failed, to people and, where they asked for JSON, to programs.
fn ended(outcome: Outcome, is_json: bool) -> ExitCode {
    let code = outcome.unwrap_or_else(|failure| {
        output::err(&format!("{} {failure}\n", paint::bad("error:")));
        if is_json {
            // Nothing is left to say where this fails, too.
            let _ = output::out(&format!("{}\n", failure.json()));
        }
        failure.code()
    });
    code.into()
}

fn paint_as(color: ColorChoice) {
    let choice = match color {
        ColorChoice::Auto => anstream::ColorChoice::Auto,
        ColorChoice::Always => anstream::ColorChoice::Always,
        ColorChoice::Never => anstream::ColorChoice::Never,
    };
    choice.write_global();
}

fn parsed(args: &[String]) -> Result<Cli, Failure> {
    let command = config::with_file(Cli::command(), "serve", args)?;
    let matches = command.get_matches();
    Cli::from_arg_matches(&matches).map_err(|error| error.exit())
}

impl Command {
    fn is_json(&self) -> bool {
        match self {
            Command::Generate(args) => args.is_json(),
            Command::Check(args) => args.is_json(),
            Command::Mask(args) => args.is_json(),
            Command::Tokens(args) => args.is_json(),
            Command::Key(args) => args.is_json(),
            Command::Eval(args) => args.is_json(),
            Command::Version(args) => args.is_json(),
            Command::Serve(_) | Command::Completions(_) | Command::Man(_) => false,
        }
    }
}

fn run(command: Command) -> Outcome {
    match command {
        Command::Serve(args) => serve::run(*args),
        Command::Generate(args) => generate::run(*args),
        Command::Check(args) => check::run(args),
        Command::Mask(args) => mask::run(args),
        Command::Tokens(args) => tokens::run(args),
        Command::Key(args) => key::run(args),
        Command::Eval(args) => eval::run(args),
        Command::Completions(args) => manual::completions(args, Cli::command()),
        Command::Man(args) => manual::man(args, Cli::command()),
        Command::Version(args) => version::run(args),
    }
}
