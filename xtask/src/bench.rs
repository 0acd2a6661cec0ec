//! `cargo xtask bench`: runs the library's benchmarks, or with `peers` the comparisons with other engines.
//! They need no libtorch, so neither does this command. With `llama`, compares the service with llama.cpp's,
//! which needs libtorch; with `drafts`, writes the answers of `benches/drafts` with each kind of draft.

use crate::process::{Failure, cargo, code, must_succeed, root, succeeds};
use crate::setup;
use std::fs;
use std::process::{Command, ExitCode};

/// The script that runs the service beside llama.cpp's.
const LLAMA: &str = "benches/llama/bench.py";
/// The arguments of cargo that run the comparison with other engines.
const PEERS: &str = "run --release --locked --manifest-path benches/peers/Cargo.toml --";

/// The folder with the tasks of the comparison of drafts, a file for each kind of answer.
const DRAFTS: &str = "benches/drafts";
/// The temperatures at which they are written.
const TEMPERATURES: [&str; 2] = ["0", "0.8"];
/// The build of the service.
const SERVICE: &str = "build --release --package lexiform-server --features kernels";

pub(crate) fn run(args: &[String]) -> Result<ExitCode, Failure> {
    if let Some((first, rest)) = args.split_first()
        && first == "drafts"
    {
        return drafts(rest);
    }
    let (mut command, args) = match args.split_first() {
        Some((first, rest)) if first == "llama" => (beside_llama()?, rest),
        // A separate package outside of the workspace: cargo needs its path.
        Some((first, rest)) if first == "peers" => (cargo(PEERS.split(' ')), rest),
        _ => (cargo(["bench", "--package", "lexiform", "--benches", "--"]), args),
    };
    command.args(args);
    succeeds(&mut command).map(code)
}

/// Writes the answers of each kind with each kind of draft, on the model that `cargo xtask serve` serves
/// unless the arguments name another one. Further arguments are those of `lexiform eval drafts`.
fn drafts(args: &[String]) -> Result<ExitCode, Failure> {
    setup::ensure()?;
    must_succeed(&mut cargo(SERVICE.split(' ')))?;
    let folder = root().join(DRAFTS);
    let files = fs::read_dir(&folder).map_err(|error| Failure::io("could not read", &folder, &error))?;
    let mut files: Vec<_> = files.filter_map(Result::ok).map(|file| file.path()).collect();
    files.sort();
    let mut all = true;
    for file in files {
        for temperature in TEMPERATURES {
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            println!("\n{name}, temperature {temperature}");
            let mut command = Command::new(root().join("target/release/lexiform-server"));
            command.args(["eval", "drafts", "--data"]).arg(&file);
            command
                .args(["--in-turn", "--temperature", temperature])
                .args(args);
            all &= succeeds(&mut command)?;
        }
    }
    Ok(code(all))
}

/// Builds what the comparison needs, and returns the script that runs both servers.
fn beside_llama() -> Result<Command, Failure> {
    setup::ensure()?;
    must_succeed(&mut cargo(SERVICE.split(' ')))?;
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
