//! Write a text under a constraint.

use super::{Failure, Outcome};

/// The arguments of `lexiform generate`.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs `lexiform generate`.
///
/// # Errors
/// This command is not part of this build.
pub fn run(_: Args) -> Outcome {
    Err(Failure::message("this command is not part of this build"))
}
