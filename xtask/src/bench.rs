//! `cargo xtask bench`: the library's benchmarks, or with `peers` the ones beside other engines. They need no
//! libtorch, so neither does this command. With `llama`, the service beside llama.cpp's, which needs it.

use crate::process::{Failure, cargo, must_succeed, root, succeeds};
use crate::setup;
use std::fs;
use std::process::{Command, ExitCode};

/// What runs the service beside llama.cpp's.
const LLAMA: &str = "benches/llama/bench.py";

pub(crate) fn run(args: &[String]) -> Result<ExitCode, Failure> {
    let (mut command, args) = match args.split_first() {
        Some((first, rest)) if first == "llama" => (beside_llama()?, rest),
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

/// Both servers, and the script that asks them.
fn beside_llama() -> Result<Command, Failure> {
    setup::ensure()?;
    must_succeed(&mut cargo([
        "build",
        "--release",
        "--package",
        "lexiform-server",
        "--features",
        "kernels",
    ]))?;
    let (script, folder) = (root().join(LLAMA), root().join(".venv/llama"));
    let python = folder.join("bin/python");
    let text = fs::read_to_string(&script).map_err(|error| Failure::io("could not read", &script, &error))?;
    let package = text
        .lines()
        .find_map(|line| line.strip_prefix("XLLAMACPP = \""))
        .and_then(|line| line.strip_suffix('"'))
        .unwrap_or("xllamacpp");
    if !python.exists() {
        must_succeed(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    }
    must_succeed(Command::new(&python).args(["-m", "pip", "install", "--quiet", package]))?;
    let mut command = Command::new(python);
    command.arg(script);
    command
        .arg("--server")
        .arg(root().join("target/release/lexiform-server"));
    Ok(command)
}
