//! The frame of a program: it reads the arguments, runs a subcommand, and says what failed.

use std::process::ExitCode;

use clap::error::{ContextKind, ErrorKind};
use clap::{ColorChoice, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::failure::{Code, EXIT_CODES, Failure, Outcome};
use crate::shown::{output, paint};

/// The subcommands of a program.
pub trait Commands: Subcommand {
    /// Whether the answer, and so what failed, is to be printed as JSON.
    fn is_json(&self) -> bool;

    /// Runs the subcommand.
    ///
    /// # Errors
    /// It could not do its work.
    fn run(self) -> Outcome;
}

/// What the arguments of `lexiform` say.
#[derive(Debug, Parser)]
#[command(name = "lexiform", bin_name = "lexiform", version, long_about = None, after_help = EXIT_CODES)]
#[command(
    about = "Texts that obey a JSON Schema, a regular expression or a grammar: check, measure, generate and serve them"
)]
pub struct Cli<C: Subcommand> {
    /// When to print in colour; `auto` is on a terminal, unless NO_COLOR or CLICOLOR=0 is set
    #[arg(long, value_name = "WHEN", global = true, default_value = "auto")]
    pub color: ColorChoice,
    /// What to do.
    #[command(subcommand)]
    pub command: C,
}

/// The definition of a program: its flags, its subcommands, their help.
pub fn definition<C: Commands>() -> clap::Command {
    Cli::<C>::command()
}

/// Runs a program. `prepare` may change its definition after it has seen the arguments, as defaults out of a
/// file do.
pub fn main<C: Commands>(
    args: &[String],
    prepare: impl FnOnce(clap::Command) -> Result<clap::Command, Failure>,
) -> ExitCode {
    if args.len() < 2 {
        // Nothing was asked for and nothing failed: whoever types the bare name wants to read what there is.
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

/// Ends the program with what clap says where the arguments are wrong, or ask for help.
fn parsed<C: Commands>(command: clap::Command, args: &[String]) -> Cli<C> {
    let matches = command.try_get_matches_from(args);
    let matches = matches.unwrap_or_else(|error| without_dashes(error).exit());
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// The error without the tip to write an unknown flag after `--`: whoever misspells a flag does not mean a
/// text.
fn without_dashes(mut error: clap::Error) -> clap::Error {
    if error.kind() == ErrorKind::UnknownArgument && error.get(ContextKind::SuggestedArg).is_none() {
        error.remove(ContextKind::Suggested);
    }
    error
}

/// Says what failed, to people and, where they asked for JSON, to programs.
pub fn ended(outcome: Outcome, is_json: bool) -> ExitCode {
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
