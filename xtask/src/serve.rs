//! `cargo xtask serve`: from an empty checkout to a running service.

use crate::process::{Failure, cargo, line};
use crate::setup;
use std::os::unix::process::CommandExt;
use std::process::ExitCode;

pub(crate) fn run(args: &[String]) -> Result<ExitCode, Failure> {
    setup::ensure()?;
    let mut command = cargo(["run", "--package", "lexiform-server", "--bin", "lexiform-server"]);
    let args = match args.split_first() {
        // What tests have built is there at once, and slower.
        Some((first, rest)) if first == "--dev" => rest,
        _ => {
            command.arg("--release");
            args
        }
    };
    command.args(["--", "serve"]).args(args);
    eprintln!("$ {}", line(&command));
    // This process becomes cargo, and cargo becomes the service: a signal sent to it by a supervisor or a script
    // reaches the service, which no parent in between would hand on.
    let error = command.exec();
    Err(Failure::new(format!("could not run {}: {error}", line(&command))))
}
