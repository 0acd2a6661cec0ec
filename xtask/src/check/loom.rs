//! `cargo xtask loom`: the lock-free tables of the library, and the threads of the engine that share a pass,
//! under all orders of their threads (tests/interning/).
//!
//! Loom takes the place of atomics and locks where `--cfg loom` is set, which changes every crate: so what is
//! built for it lies in a folder of its own.

use crate::process::{Failure, cargo, succeeds};
use std::process::ExitCode;

pub(crate) fn run() -> Result<ExitCode, Failure> {
    Ok(if check()? {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Whether all models hold.
pub(crate) fn check() -> Result<bool, Failure> {
    let mut command = cargo([
        "test",
        "--package",
        "lexiform-interning",
        "--target-dir",
        "target/loom",
    ]);
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    command.env("RUSTFLAGS", format!("{flags} --cfg loom"));
    succeeds(&mut command)
}
