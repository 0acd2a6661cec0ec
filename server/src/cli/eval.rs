//! Measure the compiler and the masks.

use super::{Failure, Outcome};

/// The arguments of `lexiform eval`.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs `lexiform eval`.
///
/// # Errors
/// This command is not part of this build.
pub fn run(_: Args) -> Outcome {
    Err(Failure::message("this command is not part of this build"))
}
