//! `cargo xtask bench`: the library's benchmarks, or with `peers` the ones beside other engines. They need no
//! libtorch, so neither does this command.

use crate::process::{Failure, cargo, succeeds};
use std::process::ExitCode;

pub(crate) fn run(args: &[String]) -> Result<ExitCode, Failure> {
    let (mut command, args) = match args.split_first() {
        // A package of its own, outside of the workspace: cargo has to be told where it lies.
        Some((first, rest)) if first == "peers" => (
            cargo([
                "run",
                "--release",
                "--locked",
                "--manifest-path",
                "benches/peers/Cargo.toml",
                "--",
            ]),
            rest,
        ),
        _ => (cargo(["bench", "--package", "lexiform", "--benches", "--"]), args),
    };
    command.args(args);
    Ok(if succeeds(&mut command)? {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
