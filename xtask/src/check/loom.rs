//! `cargo xtask loom`: checks the lock-free tables of the library, and the threads of the engine that share a
//! pass, under all orders of their threads (tests/interning/).
//!
//! With `--cfg loom`, Loom replaces atomics and locks, which changes every crate, so its builds have a
//! separate target folder.

use crate::process::{Failure, cargo, code, succeeds};
use std::process::ExitCode;

pub(crate) fn run() -> Result<ExitCode, Failure> {
    check().map(code)
}

/// Returns `true` if all models hold.
pub(crate) fn check() -> Result<bool, Failure> {
    let test = "test --package lexiform-interning --target-dir target/loom";
    let mut command = cargo(test.split(' '));
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    command.env("RUSTFLAGS", format!("{flags} --cfg loom"));
    succeeds(&mut command)
}
