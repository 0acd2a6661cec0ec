//! `cargo xtask soak`: the property tests of the library with many more cases than a test run has time for. They are
//! compared with the brute-force oracle as always; a failing case is printed shrunk.

use crate::process::{Failure, cargo, succeeds};
use std::process::ExitCode;

/// Random cases of each property where the caller names no number.
const CASES: &str = "20000";

pub(crate) fn run(args: &[String]) -> Result<ExitCode, Failure> {
    let cases = match args {
        [] => CASES,
        [cases] if cases.parse::<u32>().is_ok() => cases,
        _ => return Err(Failure::new("soak takes the number of cases and nothing else")),
    };
    let mut command = cargo(["test", "--release", "--package", "lexiform", "--no-fail-fast"]);
    command.env("PROPTEST_CASES", cases);
    Ok(if succeeds(&mut command)? {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
