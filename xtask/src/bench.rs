//! `cargo xtask bench`: runs the library's benchmarks, or with `peers` the comparisons with other engines.
//! They need no libtorch, so neither does this command. With `llama`, compares the service with llama.cpp's,
//! which needs libtorch; with `servers`, also with vLLM and transformers, by their answers; with `drafts`,
//! writes the answers of `benches/drafts` with each kind of draft.

use crate::process::{Failure, cargo, code, must_succeed, root, succeeds};
use crate::setup;
use crate::test::plugins;
use crate::test::python::wheel_for_users;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// The script that runs the service beside llama.cpp's.
const LLAMA: &str = "benches/llama/bench.py";
/// The script that asks servers the same.
const SERVERS: &str = "benches/servers/bench.py";
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
        Some((first, rest)) if first == "servers" => (servers()?, rest),
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
    let service = service()?;
    let folder = root().join(DRAFTS);
    let files = fs::read_dir(&folder).map_err(|error| Failure::io("could not read", &folder, &error))?;
    let mut files: Vec<_> = files.filter_map(Result::ok).map(|file| file.path()).collect();
    files.sort();
    let mut all = true;
    for file in files {
        for temperature in TEMPERATURES {
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            println!("\n{name}, temperature {temperature}");
            let mut command = Command::new(&service);
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
    let (server, python) = (service()?, llama()?);
    let mut command = Command::new(python);
    command.arg(root().join(LLAMA)).arg("--server").arg(server);
    Ok(command)
}

/// Builds the service, installs the other servers, and returns the script that asks all of them.
fn servers() -> Result<Command, Failure> {
    let plugins = root().join(".venv/plugins");
    let (service, llama, wheel) = (service()?, llama()?, wheel_for_users()?);
    plugins::install(&plugins, &wheel).map_err(Failure::new)?;
    let mut command = Command::new("python3");
    command.arg(root().join(SERVERS)).arg("--lexiform").arg(service);
    command.arg("--plugins").arg(plugins).arg("--llama").arg(llama);
    command.arg("--model").arg(setup::bring_model()?);
    Ok(command)
}

/// Builds the service, and returns its path.
fn service() -> Result<PathBuf, Failure> {
    setup::ensure()?;
    must_succeed(&mut cargo(SERVICE.split(' ')))?;
    Ok(root().join("target/release/lexiform-server"))
}

/// Installs llama.cpp's server, and returns the Python that has it.
fn llama() -> Result<PathBuf, Failure> {
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
    Ok(python)
}
