//! The Python package: `cargo xtask wheel` builds it, and `cargo xtask test` builds it quickly, installs it
//! into a virtual environment and runs its tests there.
//!
//! maturin and the imports of the tests come from PyPI, in the versions that
//! `bindings/python/tests/requirements.txt` pins. Tests of packages outside that list, such as torch and
//! transformers, run if the package is installed in `.venv/python`, and are reported as skipped otherwise.

use crate::clients::prepare;
use crate::process::{Failure, each_line, must_succeed, quiet_output, root};
use crate::tally::{Tally, of_pytest};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The purpose of a wheel.
#[derive(Clone, Copy)]
enum Profile {
    /// For installation.
    Release,
    /// For tests.
    Dev,
}

/// Builds the wheel for users who install it.
pub(crate) fn wheel() -> Result<ExitCode, Failure> {
    println!("the wheel is {}", wheel_for_users()?.display());
    Ok(ExitCode::SUCCESS)
}

/// Builds the wheel for users, and returns its path.
pub(crate) fn wheel_for_users() -> Result<PathBuf, Failure> {
    let environment = environment().map_err(Failure::new)?;
    build(&environment, Profile::Release, &root().join("target/wheels"))
}

/// Runs the tests of the package, or reports why they are skipped.
pub(crate) fn test() -> Result<Tally, Failure> {
    let environment = match environment() {
        Ok(environment) => environment,
        Err(why) => {
            println!("skipped: python tests: {why}");
            return Ok(Tally::SKIPPED);
        }
    };
    let wheel = wheel_for_tests(&environment)?;
    let mut pip = Command::new(environment.join("bin/python"));
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-index",
    ]);
    pip.args(["--force-reinstall", "--no-deps"]).arg(&wheel);
    must_succeed(&mut pip)?;
    let mut pytest = Command::new(environment.join("bin/python"));
    pytest
        .args(["-m", "pytest", "-rs", "--color=no", "bindings/python"])
        .current_dir(root());
    let mut output = String::new();
    let finished_well = each_line(&mut pytest, |line| {
        output.push_str(line);
        output.push('\n');
    })?;
    Ok(of_pytest(&output, finished_well))
}

/// Builds the wheel quickly, and returns its path.
pub(super) fn wheel_for_tests(environment: &Path) -> Result<PathBuf, Failure> {
    build(environment, Profile::Dev, &root().join("target/wheels/dev"))
}

/// Creates the virtual environment with maturin and the imports of the tests.
pub(super) fn environment() -> Result<PathBuf, String> {
    let mut is_new = Command::new("python3");
    is_new.args(["-c", "import sys; sys.exit(sys.version_info < (3, 11))"]);
    if quiet_output(&mut is_new).is_none() {
        return Err("Python 3.11 or later is not there".to_owned());
    }
    let environment = root().join(".venv/python");
    prepare(
        &environment,
        &root().join("bindings/python/tests/requirements.txt"),
    )?;
    Ok(environment)
}

/// Builds the wheel into a folder, and returns its path.
fn build(environment: &Path, profile: Profile, wheels: &Path) -> Result<PathBuf, Failure> {
    let mut maturin = Command::new(environment.join("bin/maturin"));
    maturin.args([
        "build",
        "--quiet",
        "--locked",
        "--manifest-path",
        "bindings/python/Cargo.toml",
    ]);
    maturin.args(match profile {
        Profile::Release => ["--profile", "release"],
        Profile::Dev => ["--profile", "dev"],
    });
    maturin.arg("--interpreter").arg(environment.join("bin/python"));
    must_succeed(maturin.arg("--out").arg(wheels).current_dir(root()))?;
    let entries = std::fs::read_dir(wheels).map_err(|error| Failure::io("could not read", wheels, &error))?;
    let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let built = files.filter(|file| file.extension().is_some_and(|extension| extension == "whl"));
    // A wheel of an earlier version may be beside it.
    built
        .max_by_key(|file| file.metadata().and_then(|about| about.modified()).ok())
        .ok_or_else(|| Failure::new(format!("maturin left no wheel in {}", wheels.display())))
}
