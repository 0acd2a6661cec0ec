//! `lexiform eval`: the correctness and the speed of the compiler and the masks, on collections by which
//! engines are compared.
//!
//! ```text
//!   maskbench   schemas with instances, walked token by token    ─┐
//!   generate    answers of an endpoint under schemas              │
//!   suite       the official test suite of JSON Schema            ├─► counts, what failed and why; --json: one object
//!   cases       grammars with texts to accept and to reject      ─┘
//! ```
//!
//! The format of the reports is stable, so that figures of different versions can be compared.

pub mod cases;
pub mod clock;
pub mod figures;
pub mod generate;
mod hash;
pub mod maskbench;
pub mod panics;
pub mod python_json;
mod report;
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
    Maskbench(maskbench::Args),
    /// Answers of any OpenAI-compatible endpoint under schemas: which it takes, which answers are valid, times
    ///
    /// DATA is a file of JSON lines with `schema` or `json_schema` and perhaps `name` (MaskBench,
    /// JSONSchemaBench), or a folder with a schema in each .json file. The endpoint is asked for each schema,
    /// and each answer is validated by the crate `jsonschema`.
    Generate(generate::Args),
    /// The official JSON Schema test suite
    ///
    /// DATA is a checkout of the suite: a folder with `tests/` and `remotes/`.
    Suite(suite::Args),
    /// Grammars, regular expressions or schemas with texts to accept and to reject
    ///
    /// DATA is a file of JSON lines with `regex`, `grammar` or `schema`, `accept`, `reject`, and perhaps
    /// `root`, or a folder of grammars, each in a folder of its own with grammar.ebnf, accept.txt and
    /// reject.txt.
    Cases(cases::Args),
    /// The collections that a program with more than the library adds.
    #[command(flatten)]
    More(E),
}

impl<E: Commands> Args<E> {
    /// Returns `true` if the answer is printed as JSON.
    pub fn is_json(&self) -> bool {
        match &self.collection {
            Collection::Maskbench(args) => args.publishing.is_json(),
            Collection::Generate(args) => args.output.json,
            Collection::Suite(args) => args.publishing.is_json(),
            Collection::Cases(args) => args.publishing.is_json(),
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
        Collection::Maskbench(args) => maskbench::report(&args)?.publish(&args.publishing),
        Collection::Generate(args) => generate::run(&args),
        Collection::Suite(args) => suite::report(&args)?.publish(&args.publishing),
        Collection::Cases(args) => cases::report(&args)?.publish(&args.publishing),
        Collection::More(more) => more.run(),
    }
}
