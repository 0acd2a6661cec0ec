//! `cargo xtask soak`: runs the property tests of the library with many more cases than a test run has time
//! for. They are compared with the brute-force oracle as always; a failing case is printed shrunk.
//!
//! `cargo xtask soak drafts`: runs a million requests through the stores that the engine fills from answers,
//! and prints a table of their counters and of the memory of the process.
//!
//! `cargo xtask soak service`: streams for minutes while the service is killed, drained and reloaded.

use crate::process::{Failure, cargo, code, succeeds};
use crate::traffic;
use std::process::ExitCode;

/// The number of random cases of each property, unless the caller gives one.
const CASES: &str = "20000";

pub(crate) fn run(args: &[String]) -> Result<ExitCode, Failure> {
    let cases = match args {
        [] => CASES,
        [what, more @ ..] if what == "drafts" => return run_drafts(more),
        [what, more @ ..] if what == "service" => return traffic::soak::run(more),
        [cases] if cases.parse::<u32>().is_ok() => cases,
        _ => {
            return Err(Failure::new(
                "soak takes the number of cases, the word drafts and a number of requests, or the word service",
            ));
        }
    };
    let mut command = cargo(["test", "--release", "--package", "lexiform", "--no-fail-fast"]);
    command.env("PROPTEST_CASES", cases);
    succeeds(&mut command).map(code)
}

/// The number of requests through the stores of drafts, unless the caller gives one.
const REQUESTS: &str = "1000000";

fn run_drafts(args: &[String]) -> Result<ExitCode, Failure> {
    let requests = match args {
        [] => REQUESTS,
        [requests] if requests.parse::<u32>().is_ok() => requests,
        _ => {
            return Err(Failure::new(
                "soak drafts takes a number of requests and nothing else",
            ));
        }
    };
    let mut command = cargo(["test", "--release", "--package", "lexiform-engine", "--lib"]);
    command.args(["--", "--nocapture", "speculation::store::soak"]);
    command.env("LEXIFORM_DRAFT_REQUESTS", requests);
    succeeds(&mut command).map(code)
}
