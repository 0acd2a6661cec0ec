//! Show what may come next after a prefix.

use super::{Failure, Outcome};

/// The arguments of `lexiform mask`.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs `lexiform mask`.
///
/// # Errors
/// This command is not part of this build.
pub fn run(_: Args) -> Outcome {
    Err(Failure::message("this command is not part of this build"))
}
