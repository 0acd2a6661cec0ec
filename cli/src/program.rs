//! The frame of a program: reads the arguments, runs a subcommand, and reports failures.

use std::process::ExitCode;

use clap::error::{ContextKind, ErrorKind};
use clap::{ColorChoice, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::failure::{Code, EXIT_CODES, Failure, Outcome};
use crate::shown::{output, paint};

/// The subcommands of a program.
pub trait Commands: Subcommand {
    /// Returns `true` if the answer, and any failure, is to be printed as JSON.
    fn is_json(&self) -> bool;

    /// Runs the subcommand.
    ///
    /// # Errors
    /// The subcommand could not do its work.
    fn run(self) -> Outcome;
}

/// The arguments of `lexiform`.
#[derive(Debug, Parser)]
#[command(name = "lexiform", bin_name = "lexiform", version, long_about = None, after_help = EXIT_CODES)]
#[command(
    about = "Texts that obey a JSON Schema, a regular expression or a grammar: check, measure, generate and serve them"
)]
pub struct Cli<C: Subcommand> {
    /// When to print in colour; `auto` is on a terminal, unless NO_COLOR or CLICOLOR=0 is set
    #[arg(long, value_name = "WHEN", global = true, default_value = "auto")]
    pub color: ColorChoice,
    /// The subcommand.
    #[command(subcommand)]
    pub command: C,
}

/// Returns the definition of a program: its flags, its subcommands, their help.
pub fn definition<C: Commands>() -> clap::Command {
    Cli::<C>::command()
}

/// Runs a program. `prepare` may change its definition after it has seen the arguments, for example to set
/// defaults from a file.
pub fn main<C: Commands>(
    args: &[String],
    prepare: impl FnOnce(clap::Command) -> Result<clap::Command, Failure>,
) -> ExitCode {
    if args.len() < 2 {
        // A call without arguments is no failure: a user who types the bare name wants an overview.
        let help = definition::<C>().render_help();
        return ended(
            output::out(&format!("{}", help.ansi())).map(|()| Code::Fine),
            false,
        );
    }
    match prepare(definition::<C>()) {
        Ok(command) => {
            let cli = parsed::<C>(command, args);
            paint_as(cli.color);
            let is_json = cli.command.is_json();
            ended(cli.command.run(), is_json)
        }
        Err(failure) => ended(Err(failure), false),
    }
}

/// Parses the arguments; ends the program with clap's message if they are wrong or request help.
fn parsed<C: Commands>(command: clap::Command, args: &[String]) -> Cli<C> {
    let matches = command.try_get_matches_from(args);
    let matches = matches.unwrap_or_else(|error| without_dashes(error).exit());
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// Removes the tip to write an unknown flag after `--`: a user who misspells a flag does not mean a text.
fn without_dashes(mut error: clap::Error) -> clap::Error {
    if error.kind() == ErrorKind::UnknownArgument && error.get(ContextKind::SuggestedArg).is_none() {
        error.remove(ContextKind::Suggested);
    }
    error
}

/// Reports a failure to people and, if JSON was requested, to programs.
pub fn ended(outcome: Outcome, is_json: bool) -> ExitCode {
    let code = outcome.unwrap_or_else(|failure| {
        output::err(&format!("{} {failure}\n", paint::bad("error:")));
        if is_json {
            // If this fails too, there is no way left to report it.
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
