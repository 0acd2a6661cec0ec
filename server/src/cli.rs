//! The command line with all its commands: this module has those that run a model, `lexiform-cli` the others.

use std::process::ExitCode;

use clap::Subcommand;
use lexiform_cli::failure::Outcome;
use lexiform_cli::program::{self, Commands};

mod callbacks;
pub mod config;
pub mod decode;
pub mod demo;
pub mod drafting;
pub mod drafts;
pub mod gateway;
pub mod generate;
pub mod manual;
pub mod model;
pub mod models;
mod output;
pub mod serve;
pub mod skip;
pub mod version;

/// The subcommands of `lexiform`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve a model over HTTP, speaking the OpenAI API
    Serve(Box<serve::Args>),
    /// Forward chats to a provider that takes less of JSON Schema, and check its answers
    Gateway(Box<gateway::Args>),
    /// Write one text under a constraint and print it
    Generate(Box<generate::Args>),
    /// List the models on this disk, and whether they can be run
    Models(models::Args),
    /// The commands that need no model.
    #[command(flatten)]
    WithoutModel(lexiform_cli::Command<Evaluation>),
    /// Measure how fast a model writes on this machine
    Bench(BenchArgs),
    /// Print the script with which a shell completes commands and flags
    Completions(manual::CompletionsArgs),
    /// Print the manual page, or write a page for each command into a folder
    Man(manual::ManArgs),
    /// Print the version with its commit, its libtorch and the usable devices
    Version(version::Args),
}

/// The collections of `lexiform eval` for which a model generates answers.
#[derive(Debug, Subcommand)]
pub enum Evaluation {
    /// Tool calls and documents, written with each kind of draft
    Drafts(Box<drafts::Args>),
}

/// The arguments of `lexiform bench`.
#[derive(Debug, clap::Args)]
pub struct BenchArgs {
    #[command(subcommand)]
    measured: Bench,
}

/// The subcommands of `lexiform bench`.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// The decode loop: tokens per second, time to the first token, share of the memory limit
    Decode(Box<decode::Args>),
}

impl Commands for Evaluation {
    fn is_json(&self) -> bool {
        let Evaluation::Drafts(args) = self;
        args.is_json()
    }

    fn run(self) -> Outcome {
        let Evaluation::Drafts(args) = self;
        drafts::run(&args)
    }
}

/// Parses the arguments, runs the subcommand, and reports errors.
pub fn main() -> ExitCode {
    let args: Vec<String> = std::env::args_os()
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect();
    program::main::<Command>(&args, |command| config::with_file(command, "serve", &args))
}

impl Commands for Command {
    fn is_json(&self) -> bool {
        match self {
            Command::Generate(args) => args.is_json(),
            Command::Models(args) => args.is_json(),
            Command::WithoutModel(command) => command.is_json(),
            Command::Bench(args) => {
                let Bench::Decode(args) = &args.measured;
                args.is_json()
            }
            Command::Version(args) => args.is_json(),
            Command::Serve(_) | Command::Gateway(_) | Command::Completions(_) | Command::Man(_) => false,
        }
    }

    fn run(self) -> Outcome {
        match self {
            Command::Serve(args) => serve::run(*args),
            Command::Gateway(args) => gateway::run(&args),
            Command::Generate(args) => generate::run(*args),
            Command::Models(args) => models::run(args),
            Command::WithoutModel(command) => command.run(),
            Command::Bench(args) => {
                let Bench::Decode(args) = args.measured;
                decode::run(&args)
            }
            Command::Completions(args) => manual::completions(args, program::definition::<Self>()),
            Command::Man(args) => manual::man(args, program::definition::<Self>()),
            Command::Version(args) => version::run(args),
        }
    }
}
