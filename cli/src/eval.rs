//! `lexiform eval`: the correctness and the speed of the compiler and the masks, on collections by which
//! engines are compared.
//!
//! ```text
//!   maskbench   schemas with instances, walked token by token    ─┐
//!   suite       the official test suite of JSON Schema            ├─► counts, what failed and why; --json: one object
//!   cases       grammars with texts to accept and to reject      ─┘
//! ```
//!
//! `data` says where these collections come from, and what of them lies in a folder. The format of the
//! reports is stable, so that figures of different versions can be compared.

pub mod cases;
pub mod clock;
pub mod data;
pub mod figures;
pub mod maskbench;
pub mod panics;
pub mod python_json;
pub mod report;
pub mod suite;
mod verdict;

use clap::Subcommand;

use crate::failure::Outcome;
use crate::program::Commands;

/// The arguments of `lexiform eval`.
#[derive(Debug, clap::Args)]
pub struct Args<E: Commands> {
    #[command(subcommand)]
    collection: Collection<E>,
}

#[derive(Debug, Subcommand)]
enum Collection<E: Commands> {
    /// Schemas with instances (MaskBench): each is walked token by token, with a mask before every token
    ///
    /// DATA is a file of JSON lines with `name`, `schema` and `tests` (`valid`, `data`). Each schema is
    /// counted once: as right, or by the first thing that went wrong with it.
    Maskbench(Box<maskbench::Args>),
    /// The official JSON Schema test suite
    ///
    /// DATA is a checkout of the suite: a folder with `tests/` and `remotes/`.
    Suite(Box<suite::Args>),
    /// Grammars, regular expressions or schemas with texts to accept and to reject
    ///
    /// DATA is a file of JSON lines with `regex`, `grammar` or `schema`, `accept`, `reject`, and perhaps
    /// `root`, or a folder of grammars, each in a folder of its own with grammar.ebnf, accept.txt and
    /// reject.txt.
    Cases(Box<cases::Args>),
    /// The collections: what they are, their licences and where people get them
    ///
    /// With PATH, recognises and counts what lies there, names broken lines, and says with which command it
    /// can be used. Nothing is downloaded.
    Data(data::Args),
    /// The collections that a program with more than the library adds.
    #[command(flatten)]
    More(E),
}

impl<E: Commands> Args<E> {
    /// Returns `true` if the answer is printed as JSON.
    pub fn is_json(&self) -> bool {
        match &self.collection {
            Collection::Maskbench(args) => args.publishing.is_json(),
            Collection::Suite(args) => args.publishing.is_json(),
            Collection::Cases(args) => args.publishing.is_json(),
            Collection::Data(args) => args.is_json(),
            Collection::More(more) => more.is_json(),
        }
    }
}

/// Runs `lexiform eval`.
///
/// # Errors
/// The data or the tokenizer cannot be read, or the report cannot be written.
pub fn run<E: Commands>(args: Args<E>) -> Outcome {
    match args.collection {
        Collection::Maskbench(args) => {
            args.publishing.check()?;
            maskbench::report(&args)?.publish(&args.publishing)
        }
        Collection::Suite(args) => {
            args.publishing.check()?;
            suite::report(&args)?.publish(&args.publishing)
        }
        Collection::Cases(args) => {
            args.publishing.check()?;
            cases::report(&args)?.publish(&args.publishing)
        }
        Collection::Data(args) => data::run(&args),
        Collection::More(more) => more.run(),
    }
}
