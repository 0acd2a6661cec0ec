//! The package for Node: `cargo xtask npm` builds it, and `cargo xtask test` builds it quickly and runs its
//! tests.
//!
//! The native part is built by cargo and lies beside the JavaScript, as `bindings/node/lexiform.node`. The
//! imports of the tests come from npm, in the versions of `bindings/node/package-lock.json`. Tests with
//! transformers.js, which is large, run if it is installed there, and are reported as skipped otherwise.

use crate::clients::prepare_node;
use crate::process::{Failure, cargo, each_line, must_succeed, quiet_output, root};
use crate::tally::{Tally, of_node};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The purpose of a build.
#[derive(Clone, Copy)]
enum Profile {
    /// For installation.
    Release,
    /// For tests.
    Dev,
}

/// Builds the package for users who install it.
pub(crate) fn pack() -> Result<ExitCode, Failure> {
    let package = build(Profile::Release)?;
    let packed = root().join("target/npm");
    fs::create_dir_all(&packed).map_err(|error| Failure::io("could not create", &packed, &error))?;
    let mut npm = Command::new("npm");
    npm.args(["pack", "--ignore-scripts", "--pack-destination"])
        .arg(&packed);
    must_succeed(npm.current_dir(package))?;
    println!("the package is in {}", packed.display());
    Ok(ExitCode::SUCCESS)
}

/// Runs the tests of the package, or reports why they are skipped.
pub(crate) fn test() -> Result<Tally, Failure> {
    let package = root().join("bindings/node");
    if let Err(why) = environment(&package) {
        println!("skipped: node tests: {why}");
        return Ok(Tally::SKIPPED);
    }
    build(Profile::Dev)?;
    let mut node = Command::new("node");
    node.args(["--test", "--test-reporter=tap"])
        .args(tests(&package)?)
        .current_dir(&package);
    let mut output = String::new();
    let finished_well = each_line(&mut node, |line| {
        output.push_str(line);
        output.push('\n');
    })?;
    Ok(of_node(&output, finished_well))
}

/// Installs the imports of the tests. The error is the reason why there are none.
fn environment(package: &Path) -> Result<(), String> {
    let mut is_new = Command::new("node");
    is_new.args(["-e", "process.exit(+(parseInt(process.versions.node) < 20))"]);
    if quiet_output(&mut is_new).is_none() {
        return Err("Node 20 or later is not there".to_owned());
    }
    prepare_node(package)
}

/// Returns the files of the tests, which are beside other files.
fn tests(package: &Path) -> Result<Vec<PathBuf>, Failure> {
    let folder = package.join("tests");
    let entries = fs::read_dir(&folder).map_err(|error| Failure::io("could not read", &folder, &error))?;
    let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut tests: Vec<PathBuf> = files
        .filter(|file| file.to_string_lossy().ends_with(".test.js"))
        .collect();
    tests.sort();
    Ok(tests)
}

/// Builds the native part, puts it beside the JavaScript, and returns the folder of the package.
fn build(profile: Profile) -> Result<PathBuf, Failure> {
    let (profile, folder) = match profile {
        Profile::Release => ("release", "release"),
        Profile::Dev => ("dev", "debug"),
    };
    must_succeed(&mut cargo([
        "build",
        "--locked",
        "--package",
        "lexiform-node",
        "--profile",
        profile,
    ]))?;
    let package = root().join("bindings/node");
    let (built, native) = (
        root().join("target").join(folder).join("liblexiform_node.so"),
        package.join("lexiform.node"),
    );
    // A process that has loaded the earlier one keeps it: the new one is another file.
    let _ = fs::remove_file(&native);
    fs::copy(&built, &native).map_err(|error| Failure::io("could not copy", &built, &error))?;
    Ok(package)
}
