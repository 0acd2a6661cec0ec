//! The commands of Lexiform that need no model, and the code that all its commands share: one file for each
//! command.
//!
//! ```text
//!   input ─► a command ─► verdict, shown ─► standard output, exit code (failure)
//! ```
//!
//! Two programs are built from it, both in `lexiform-server`. People type `lexiform`: it runs the commands
//! of this crate itself, in milliseconds. For the commands that run a model it becomes `lexiform-server`,
//! which has all commands and links libtorch: loading libtorch takes a third of a second, even in a
//! program that never calls it.

#![forbid(unsafe_code)]

pub mod check;
pub mod convert;
pub mod eval;
pub mod failure;
pub mod input;
pub mod key;
pub mod mask;
pub mod program;
pub mod project;
pub mod repair;
pub mod report;
pub mod shown;
pub mod tokens;
pub mod verdict;

use clap::Subcommand;

use failure::Outcome;
use program::Commands;

/// The subcommands that need no model.
#[derive(Debug, Subcommand)]
pub enum Command<E: Commands> {
    /// Check a schema, regex or grammar, and test texts against it
    Check(check::Args),
    /// Show what may come next after a prefix
    Mask(mask::Args),
    /// Print the nearest texts that belong to a schema, regex or grammar
    ///
    /// An edit inserts, deletes or replaces one character. No text that belongs has a lower cost of edits,
    /// and a text that belongs is not changed. The texts go to standard output, each followed by a line
    /// break, and the changes to standard error.
    Repair(repair::Args),
    /// Print a grammar in another notation
    ///
    /// The grammar that is printed has the same texts, or the parts that the notation does not have are
    /// named. Rules whose names the notation does not allow get other names.
    Convert(convert::Args),
    /// Rewrite schemas into what a provider or engine takes, and restore values from its answers
    ///
    /// The schema goes to standard output. How it relates to the original, what it loses and what is
    /// written in another shape go to standard error.
    Project(project::Args),
    /// Report which providers and engines refuse which tools, and why
    Lint(project::lint::Args),
    /// Show how a tokenizer cuts texts
    Tokens(tokens::Args),
    /// Make an API key and its entry for `serve --api-keys`
    Key(key::Args),
    /// Measure the compiler and the masks on public test collections
    Eval(eval::Args<E>),
}

impl<E: Commands> Commands for Command<E> {
    fn is_json(&self) -> bool {
        match self {
            Command::Check(args) => args.is_json(),
            Command::Mask(args) => args.is_json(),
            Command::Repair(args) => args.is_json(),
            Command::Convert(args) => args.is_json(),
            Command::Project(args) => args.is_json(),
            Command::Lint(args) => args.is_json(),
            Command::Tokens(args) => args.is_json(),
            Command::Key(args) => args.is_json(),
            Command::Eval(args) => args.is_json(),
        }
    }

    fn run(self) -> Outcome {
        match self {
            Command::Check(args) => check::run(args),
            Command::Mask(args) => mask::run(args),
            Command::Repair(args) => repair::run(args),
            Command::Convert(args) => convert::run(args),
            Command::Project(args) => project::run(args),
            Command::Lint(args) => project::lint::run(args),
            Command::Tokens(args) => tokens::run(args),
            Command::Key(args) => key::run(args),
            Command::Eval(args) => eval::run(args),
        }
    }
}
