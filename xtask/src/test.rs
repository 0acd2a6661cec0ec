//! `cargo xtask test`: every test there is, and one closing line that counts them.
//! `cargo xtask test clients`: those with the programs of others alone; `cargo xtask test python`: those of
//! the Python package alone.

mod plugins;
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
    Ok(closed(tally))
}

/// The tests with real clients, browsers and the like alone.
pub(crate) fn clients() -> Result<ExitCode, Failure> {
    setup::ensure()?;
    Ok(closed(clients::run()?))
}

/// The tests of the Python package alone.
pub(crate) fn of_python() -> Result<ExitCode, Failure> {
    Ok(closed(python::test()?))
}

/// The tests of the plugins for engines alone, which are no part of the others: they fetch whole engines.
pub(crate) fn of_plugins() -> Result<ExitCode, Failure> {
    Ok(closed(plugins::test()?))
}

/// Prints the counts, and says whether all is well.
fn closed(tally: Tally) -> ExitCode {
    println!("{tally}");
    if tally.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Large test data is not part of the repository. Where a folder with it lies beside the checkout, it is
/// unpacked; where not, the tests that want it say so and are counted as skipped.
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
