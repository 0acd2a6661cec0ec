//! `cargo xtask test`: runs every test, and prints one closing line that counts them. `cargo xtask test
//! clients` runs only the tests with third-party programs; `cargo xtask test python` only those of the Python
//! package, and `cargo xtask test node` those of the package for Node.

pub(crate) mod node;
pub(crate) mod plugins;
pub(crate) mod programs;
pub(crate) mod python;

use crate::process::{Failure, root, succeeds};
use crate::tally::Tally;
use crate::{clients, setup};
use std::process::{Command, ExitCode};

pub(crate) fn run() -> Result<ExitCode, Failure> {
    setup::ensure()?;
    unpack_data()?;
    if let Err(why) = setup::bring_model() {
        eprintln!("xtask: tests with a real model say that it is missing: {why}");
    }
    let mut tally = Tally::default();
    tally += programs::test()?;
    tally += clients::run()?;
    tally += python::test()?;
    tally += node::test()?;
    Ok(tally.close())
}

/// Runs only the tests with real clients, browsers and the like.
pub(crate) fn clients() -> Result<ExitCode, Failure> {
    setup::ensure()?;
    Ok(clients::run()?.close())
}

/// Runs only the tests of the Python package.
pub(crate) fn of_python() -> Result<ExitCode, Failure> {
    Ok(python::test()?.close())
}

/// Runs only the tests of the package for Node.
pub(crate) fn of_node() -> Result<ExitCode, Failure> {
    Ok(node::test()?.close())
}

/// Runs only the tests of the plugins for engines, which are no part of the others: they fetch whole engines.
pub(crate) fn of_plugins() -> Result<ExitCode, Failure> {
    Ok(plugins::test()?.close())
}

/// Unpacks the large test data, which is not part of the repository, from a folder beside the checkout.
/// Without that folder, tests that need the data report it and are counted as skipped.
fn unpack_data() -> Result<(), Failure> {
    let unpack = root().join("../shared/unpack");
    if !unpack.exists() {
        eprintln!("xtask: no data is unpacked: {} is not there", unpack.display());
        return Ok(());
    }
    let has_zstd = Command::new("zstd")
        .arg("--version")
        .output()
        .is_ok_and(|it| it.status.success());
    if !has_zstd {
        eprintln!("xtask: no data is unpacked: zstd is not installed (package zstd)");
        return Ok(());
    }
    if !succeeds(Command::new(&unpack).arg(".data").current_dir(root()))? {
        eprintln!("xtask: the data was not unpacked whole; tests that miss some will say so");
    }
    Ok(())
}
