//! `cargo xtask card [--dev]`: creates the folder `.card/`, which runs the checks and timings that need a
//! card on a bare machine that has one.
//!
//! ```text
//!   engine's tests, example kernels, the service ─ cargo, strip ────┐
//!   sources of the kernels, scripts ────────────────────────────────┴─► .card/ ─ carried ─► sh .card/run.sh ─► a table, logs, JSON
//! ```
//!
//! The machine needs a driver and Python with torch, and neither Rust nor a network. `--dev` bundles the
//! programs with the profile of the tests, to check on a machine without a card that the bundle runs to its
//! end.

use crate::process::{Failure, cargo, line, root};
use crate::setup;
use crate::test::programs::BUILT;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

const FOLDER: &str = ".card";

/// The programs, and their names in the bundle.
const PROGRAMS: [(&str, &str, &str); 3] = [
    ("engine", "test", "engine_tests"),
    ("kernels", "example", "kernels"),
    ("lexiform-server", "bin", "lexiform-server"),
];

/// Files of the tree that are copied into the bundle.
const FILES: [(&str, &str); 9] = [
    ("xtask/src/check/card/run.sh", "run.sh"),
    ("xtask/src/check/card/constants.py", "constants.py"),
    ("xtask/src/check/kernels.py", "kernels.py"),
    // From the demo model: the tokenizer that models of random weights use.
    ("models/demo/config.json", "demo/config.json"),
    (
        "models/demo/generation_config.json",
        "demo/generation_config.json",
    ),
    ("models/demo/tokenizer.json", "demo/tokenizer.json"),
    ("models/demo/tokenizer_config.json", "demo/tokenizer_config.json"),
    ("kernels/sources/needs.txt", "sources/needs.txt"),
    ("kernels/sources/device.h", "sources/device.h"),
];

pub(crate) fn run(args: &[String]) -> Result<ExitCode, Failure> {
    let profile: &[&str] = match args {
        [] => &["--release"],
        [flag] if flag == "--dev" => &[],
        _ => return Err(Failure::new("usage: cargo xtask card [--dev]")),
    };
    setup::ensure()?;
    let programs = build(profile)?;
    let folder = root().join(FOLDER);
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| Failure::io("could not remove", &folder, &error))?;
    }
    for (target, _, name) in PROGRAMS {
        let program = programs
            .get(target)
            .ok_or_else(|| Failure::new(format!("cargo built no {target}")))?;
        copy(program, &folder.join(name))?;
        strip(&folder.join(name));
    }
    for (from, to) in FILES {
        copy(&root().join(from), &folder.join(to))?;
    }
    copy_sources(&folder.join("sources"))?;
    let built_at = folder.join("built_at");
    fs::write(&built_at, root().to_string_lossy().as_bytes())
        .map_err(|error| Failure::io("could not write", &built_at, &error))?;
    println!("{}: {:.0} MB", folder.display(), size(&folder) as f64 / 1e6);
    println!("on a machine with a card, in the root of a copy of this tree: sh {FOLDER}/run.sh RESULTS");
    Ok(ExitCode::SUCCESS)
}

/// Builds the programs, and returns their paths.
fn build(profile: &[&str]) -> Result<BTreeMap<&'static str, PathBuf>, Failure> {
    let mut programs = BTreeMap::new();
    // Cargo's `test` would make tests of examples.
    for (command, kinds) in [
        (["test", "--no-run"].as_slice(), ["test"].as_slice()),
        (&["build"], &["example", "bin"]),
    ] {
        let mut command = cargo(command.iter().copied());
        command
            .arg("--message-format=json-render-diagnostics")
            .args(BUILT)
            .args(profile);
        for (target, kind, _) in PROGRAMS.iter().filter(|(_, kind, _)| kinds.contains(kind)) {
            command.args([&format!("--{kind}"), *target]);
        }
        programs.extend(built(&mut command)?);
    }
    Ok(programs)
}

/// Returns the programs of the bundle that a command of cargo builds.
fn built(command: &mut Command) -> Result<Vec<(&'static str, PathBuf)>, Failure> {
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    eprintln!("$ {}", line(command));
    let output = command
        .output()
        .map_err(|error| Failure::new(format!("could not run cargo: {error}")))?;
    if !output.status.success() {
        return Err(Failure::new("what the bundle is made of does not build"));
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    Ok(messages.lines().filter_map(program).collect())
}

/// Returns the program of the bundle that a cargo message reports, if it reports one.
fn program(message: &str) -> Option<(&'static str, PathBuf)> {
    let message: Value = serde_json::from_str(message).ok()?;
    let target = &message["target"];
    let (name, kind) = (target["name"].as_str()?, target["kind"][0].as_str()?);
    let found = PROGRAMS
        .iter()
        .find(|(target, of_kind, _)| *target == name && *of_kind == kind)?;
    Some((found.0, message["executable"].as_str()?.into()))
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(|error| Failure::io("could not make", folder, &error))?;
    }
    fs::copy(from, to)
        .map(|_| ())
        .map_err(|error| Failure::io("could not copy", from, &error))
}

/// Copies all sources of kernels.
fn copy_sources(to: &Path) -> Result<(), Failure> {
    let folder = root().join("kernels/sources");
    let entries = fs::read_dir(&folder).map_err(|error| Failure::io("could not read", &folder, &error))?;
    let paths = entries.flatten().map(|entry| entry.path());
    for path in paths.filter(|path| path.extension().is_some_and(|it| it == "cu")) {
        copy(&path, &to.join(path.file_name().unwrap_or_default()))?;
    }
    Ok(())
}

/// Strips a program: symbols are half of it. If there is no `strip`, they are kept.
fn strip(program: &Path) {
    let stripped = Command::new("strip").arg(program).status();
    if !stripped.is_ok_and(|status| status.success()) {
        eprintln!("xtask: {} was not stripped", program.display());
    }
}

/// Returns the total size of all files below a folder, in bytes.
fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(data) if data.is_dir() => size(&entry.path()),
        Ok(data) => data.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

#[cfg(test)]
mod tests;
