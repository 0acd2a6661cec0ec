//! Compile a schema, regex or grammar and say of texts whether they belong to it.

use super::{Failure, Outcome};

/// The arguments of `lexiform check`.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs `lexiform check`.
///
/// # Errors
/// This command is not part of this build.
pub fn run(_: Args) -> Outcome {
    Err(Failure::message("this command is not part of this build"))
}
