//! `lexiform eval`: how right and how fast the compiler and the masks are, on collections that people compare
//! engines by.
//!
//! ```text
//!   maskbench   schemas with instances, walked token by token    ─┐
//!   suite       the official test suite of JSON Schema            ├─► one JSON object on standard output
//!   cases       grammars with texts to accept and to reject      ─┘
//! ```
//!
//! The form of the reports is fixed: figures of one version are compared with those of another.

pub mod cases;
pub mod clock;
pub mod figures;
pub mod maskbench;
pub mod panics;
pub mod python_json;
pub mod suite;
mod verdict;

use std::path::Path;
use std::process::ExitCode;

use clap::Subcommand;
use serde_json::Value;

use crate::cli::failure::{Failure, Outcome};

/// The arguments of `lexiform eval`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    collection: Collection,
}

#[derive(Debug, Subcommand)]
enum Collection {
    /// Schemas with instances (MaskBench): each is walked token by token, with a mask before every token.
    Maskbench(maskbench::Args),
    /// The official JSON Schema test suite.
    Suite(suite::Args),
    /// Grammars, regular expressions or schemas with texts to accept and to reject.
    Cases(cases::Args),
}

/// Runs `lexiform eval`.
///
/// # Errors
/// The data or the tokenizer cannot be read, or the report cannot be written.
pub fn run(args: Args) -> Outcome {
    let (report, file) = match &args.collection {
        Collection::Maskbench(args) => (maskbench::report(args)?, &args.json),
        Collection::Suite(args) => (suite::report(args)?, &args.json),
        Collection::Cases(args) => (cases::report(args)?, &args.json),
    };
    publish(&report, file.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

fn publish(report: &Value, file: Option<&Path>) -> Result<(), Failure> {
    println!("{report:#}");
    let Some(path) = file else { return Ok(()) };
    std::fs::write(path, format!("{report:#}\n")).map_err(|source| Failure::Write {
        path: path.to_owned(),
        source,
    })
}
