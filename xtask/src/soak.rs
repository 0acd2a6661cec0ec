//! `cargo xtask soak`: the property tests of the library with many more cases than a test run has time for.
//! They are compared with the brute-force oracle as always; a failing case is printed shrunk.
//!
//! `cargo xtask soak drafts`: a million requests through what the engine learns from answers, with a table of
//! what it counts and what the process holds.

use crate::process::{Failure, cargo, succeeds};
use std::process::ExitCode;

/// Random cases of each property where the caller names no number.
const CASES: &str = "20000";

pub(crate) fn run(args: &[String]) -> Result<ExitCode, Failure> {
    if let [drafts, requests @ ..] = args
        && drafts == "drafts"
    {
        return run_drafts(requests);
    }
    let cases = match args {
        [] => CASES,
        [cases] if cases.parse::<u32>().is_ok() => cases,
        _ => {
            return Err(Failure::new(
                "soak takes the number of cases, or the word drafts and a number of requests",
            ));
        }
    };
    let mut command = cargo(["test", "--release", "--package", "lexiform", "--no-fail-fast"]);
    command.env("PROPTEST_CASES", cases);
    Ok(if succeeds(&mut command)? {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Requests through the stores of drafts where the caller names no number.
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
    Ok(match succeeds(&mut command)? {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
