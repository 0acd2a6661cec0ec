//! `cargo xtask card [--dev]`: creates `.card/lexiform-card.sh`, one file that runs the checks and timings
//! that need a card on a bare machine that has one.
//!
//! ```text
//!   engine's tests, example kernels, the service ─ cargo, strip ─┐
//!   sources of the kernels, scripts, fixtures, the demo model ───┴─► .card/bundle ─ xz ─► .card/lexiform-card.sh
//!                                                       there: sh lexiform-card.sh RESULTS [STEP…] ─► a table, logs, JSON
//! ```
//!
//! The machine needs a driver and Python with torch 2.11, and neither Rust nor a network nor this tree.
//! `--dev` bundles the programs with the profile of the tests, to check on a machine without a card that the
//! bundle runs to its end: `CARD_DEVICE=cpu` runs its decode loops on the processor.

use crate::process::{Failure, cargo, line, must_succeed, root};
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
const FILES: [(&str, &str); 11] = [
    ("xtask/src/check/card/run.sh", "run.sh"),
    ("xtask/src/check/card/fails.sh", "fails.sh"),
    ("xtask/src/check/card/constants.py", "constants.py"),
    ("xtask/src/check/kernels.py", "kernels.py"),
    ("kernels/sources/needs.txt", "sources/needs.txt"),
    ("kernels/sources/device.h", "sources/device.h"),
    // The demo model, which tests run, and whose tokenizer models of random weights use.
    ("models/demo/config.json", "tree/models/demo/config.json"),
    (
        "models/demo/generation_config.json",
        "tree/models/demo/generation_config.json",
    ),
    (
        "models/demo/model.safetensors",
        "tree/models/demo/model.safetensors",
    ),
    ("models/demo/tokenizer.json", "tree/models/demo/tokenizer.json"),
    (
        "models/demo/tokenizer_config.json",
        "tree/models/demo/tokenizer_config.json",
    ),
];

/// The folder of the tree that the engine's tests read.
const FIXTURES: &str = "engine/tests/fixtures";

/// The file that is carried to the machine with a card.
const BUNDLE: &str = "lexiform-card.sh";

/// The largest size of the file, in bytes.
const MOST: u64 = 60 << 20;

/// The beginning of the file, before the archive.
const UNPACK: &str = r#"#!/bin/sh
# Unpacks the archive behind this text, and runs it: sh lexiform-card.sh [FOLDER_FOR_RESULTS [STEP...]]
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
tail -n +9 "$0" | python3 -c 'import sys, tarfile; tarfile.open(fileobj=sys.stdin.buffer, mode="r|xz").extractall(sys.argv[1])' "$folder" || exit 1
out=${1:-${OUT:-results}}; [ $# -gt 0 ] && shift
sh "$folder/run.sh" "$out" "$@"
exit $?
"#;

pub(crate) fn run(args: &[String]) -> Result<ExitCode, Failure> {
    let profile: &[&str] = match args {
        [] => &["--release"],
        [flag] if flag == "--dev" => &[],
        _ => return Err(Failure::new("usage: cargo xtask card [--dev]")),
    };
    setup::ensure()?;
    let programs = build(profile)?;
    let whole = root().join(FOLDER);
    if whole.exists() {
        fs::remove_dir_all(&whole).map_err(|error| Failure::io("could not remove", &whole, &error))?;
    }
    let folder = whole.join("bundle");
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
    copy_all("kernels/sources", Some("cu"), &folder.join("sources"))?;
    copy_all(FIXTURES, None, &folder.join("tree").join(FIXTURES))?;
    let built_at = folder.join("built_at");
    fs::write(&built_at, root().to_string_lossy().as_bytes())
        .map_err(|error| Failure::io("could not write", &built_at, &error))?;
    let file = whole.join(BUNDLE);
    let size = pack(&folder, &file)?;
    println!("{}: {:.0} MB", file.display(), size as f64 / 1e6);
    println!("on a machine with a card: sh {BUNDLE} RESULTS [STEP…]");
    if size > MOST {
        let most = MOST >> 20;
        return Err(Failure::new(format!("{BUNDLE} is larger than {most} MiB")));
    }
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

/// Copies the files below a folder of the tree, or those whose names end like this.
fn copy_all(from: &str, extension: Option<&str>, to: &Path) -> Result<(), Failure> {
    let folder = root().join(from);
    let entries = fs::read_dir(&folder).map_err(|error| Failure::io("could not read", &folder, &error))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() {
            copy_all(
                &format!("{from}/{}", name.to_string_lossy()),
                extension,
                &to.join(name),
            )?;
        } else if extension.is_none_or(|wanted| path.extension().is_some_and(|it| it == wanted)) {
            copy(&path, &to.join(name))?;
        }
    }
    Ok(())
}

/// Writes a folder as a program that unpacks itself, and returns its size in bytes.
fn pack(folder: &Path, file: &Path) -> Result<u64, Failure> {
    let archive = folder.with_extension("tar.xz");
    let write = "import sys, tarfile; tarfile.open(sys.argv[1], \"w:xz\").add(sys.argv[2], \".\")";
    let mut python = Command::new("python3");
    must_succeed(python.args(["-c", write]).arg(&archive).arg(folder))?;
    let mut bytes = UNPACK.as_bytes().to_vec();
    let packed = fs::read(&archive).map_err(|error| Failure::io("could not read", &archive, &error))?;
    bytes.extend(packed);
    fs::write(file, &bytes).map_err(|error| Failure::io("could not write", file, &error))?;
    fs::remove_file(&archive).map_err(|error| Failure::io("could not remove", &archive, &error))?;
    Ok(bytes.len() as u64)
}

/// Strips a program: symbols are half of it. If there is no `strip`, they are kept.
fn strip(program: &Path) {
    let stripped = Command::new("strip").arg(program).status();
    if !stripped.is_ok_and(|status| status.success()) {
        eprintln!("xtask: {} was not stripped", program.display());
    }
}

#[cfg(test)]
mod tests;
