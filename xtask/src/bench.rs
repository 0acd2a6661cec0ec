//! `cargo xtask bench`: runs the library's benchmarks, or with `peers` the comparisons with other engines.
//! They need no libtorch, so neither does this command. With `llama`, compares the service with llama.cpp's,
//! which needs libtorch.

use crate::process::{Failure, cargo, code, must_succeed, root, succeeds};
use crate::setup;
use std::fs;
use std::process::{Command, ExitCode};

/// The script that runs the service beside llama.cpp's.
const LLAMA: &str = "benches/llama/bench.py";
/// The arguments of cargo that run the comparison with other engines.
const PEERS: &str = "run --release --locked --manifest-path benches/peers/Cargo.toml --";

pub(crate) fn run(args: &[String]) -> Result<ExitCode, Failure> {
    let (mut command, args) = match args.split_first() {
        Some((first, rest)) if first == "llama" => (beside_llama()?, rest),
        // A separate package outside of the workspace: cargo needs its path.
        Some((first, rest)) if first == "peers" => (cargo(PEERS.split(' ')), rest),
        _ => (cargo(["bench", "--package", "lexiform", "--benches", "--"]), args),
    };
    command.args(args);
    succeeds(&mut command).map(code)
}

/// Builds what the comparison needs, and returns the script that runs both servers.
fn beside_llama() -> Result<Command, Failure> {
    setup::ensure()?;
    let build = "build --release --package lexiform-server --features kernels";
    must_succeed(&mut cargo(build.split(' ')))?;
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
