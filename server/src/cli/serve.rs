//! Serve a model over HTTP.

use super::{Failure, Outcome};

/// The arguments of `lexiform serve`.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs `lexiform serve`.
///
/// # Errors
/// This command is not part of this build.
pub fn run(_: Args) -> Outcome {
    Err(Failure::message("this command is not part of this build"))
}
