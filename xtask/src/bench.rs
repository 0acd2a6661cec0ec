//! `cargo xtask bench`: the library's benchmarks. They need no libtorch, so neither does this command.

use crate::process::{Failure, cargo, succeeds};
use std::process::ExitCode;

pub(crate) fn run(args: &[String]) -> Result<ExitCode, Failure> {
    let mut command = cargo(["bench", "--package", "lexiform", "--benches", "--"]);
    command.args(args);
    Ok(if succeeds(&mut command)? {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
