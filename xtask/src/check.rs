//! `cargo xtask check`: everything that a reviewer should not have to look for.

pub(crate) mod card;
pub(crate) mod counts;
pub(crate) mod docs;
mod kernels;
mod licences;
pub(crate) mod loom;

use crate::process::{Failure, cargo, code, line, quiet_output, succeeds};
use crate::setup;
use crate::tally::Tally;
use crate::test::programs::BUILT;
use std::process::ExitCode;
use std::time::Instant;

/// One check: its name in the report, and the function that runs it.
type Check = (&'static str, fn() -> Result<Tally, Failure>);

/// The features with which the engine and the service are checked.
const KERNELS: &str = "lexiform-engine/kernels,lexiform-server/kernels";

const CHECKS: [Check; 11] = [
    ("formatting", || formatting().map(Tally::from)),
    ("clippy", || clippy().map(Tally::from)),
    ("the service builds without kernels", || {
        without_kernels().map(Tally::from)
    }),
    ("documentation", || documentation().map(Tally::from)),
    ("layering and house rules", || layering().map(Tally::from)),
    ("instructions of compiles and masks", counts::check),
    ("lock-free tables under all orders of threads", || {
        loom::check().map(Tally::from)
    }),
    ("the library builds alone, and without libtorch", || {
        library_alone().map(Tally::from)
    }),
    ("licences and sources of dependencies", || {
        licences::check().map(Tally::from)
    }),
    ("the library could be published", || publish().map(Tally::from)),
    ("kernels for sm_90", kernels::check),
];

/// Runs one of the checks alone.
pub(crate) fn only(name: &str) -> Result<ExitCode, Failure> {
    match name {
        "kernels" => kernels::run(),
        "publish" => publish().map(code),
        _ => Err(Failure::new(format!(
            "there is no check {name:?} that runs alone; there are: kernels, publish"
        ))),
    }
}

pub(crate) fn run() -> Result<ExitCode, Failure> {
    setup::ensure()?;
    let mut tally = Tally::default();
    for (name, check) in CHECKS {
        let start = Instant::now();
        let found = check()?;
        let told = match found {
            Tally::PASSED => "ok",
            Tally::SKIPPED => "skipped",
            _ => "FAILED",
        };
        eprintln!("{told}: {name}, {:.0} s", start.elapsed().as_secs_f64());
        tally += found;
    }
    Ok(tally.close())
}

fn formatting() -> Result<bool, Failure> {
    succeeds(&mut cargo(["fmt", "--all", "--check"]))
}

fn clippy() -> Result<bool, Failure> {
    succeeds(&mut cargo([
        "clippy",
        "--workspace",
        "--features",
        KERNELS,
        "--all-targets",
        "--",
        "--deny",
        "warnings",
    ]))
}

/// Checks the build without kernels. Tests and clippy enable the kernels everywhere; a build without them
/// must work, too.
fn without_kernels() -> Result<bool, Failure> {
    succeeds(&mut cargo([
        "clippy",
        "--package",
        "lexiform-engine",
        "--package",
        "lexiform-server",
        "--lib",
        "--bins",
        "--",
        "--deny",
        "warnings",
    ]))
}

fn documentation() -> Result<bool, Failure> {
    let mut command = cargo(["doc", "--no-deps", "--workspace", "--features", KERNELS]);
    succeeds(command.env("RUSTDOCFLAGS", "--deny warnings"))
}

fn layering() -> Result<bool, Failure> {
    let mut command = cargo(["test", "--test", "rules"]);
    succeeds(command.args(BUILT))
}

/// Checks that the library, `lexiform --help` and the kernels do without libtorch: users who embed the
/// library must never compile it, and `--help` must not load it. `cargo tree` fails if the package is not in
/// the graph, so success would be the failure here; a query for a known package detects a graph that cannot
/// be read at all.
fn library_alone() -> Result<bool, Failure> {
    let has = |root: &str, package: &str| {
        let mut command = cargo(["tree", "--package", root, "--all-features", "--edges", "all"]);
        command.args(["--invert", package]);
        eprintln!("$ {}", line(&command));
        quiet_output(&mut command).is_some_and(|tree| tree.starts_with(package))
    };
    let is_light = |root| has(root, "regex-syntax") && !has(root, "tch") && !has(root, "actix-web");
    // Tests are built for the whole workspace at once, where another package may enable its features.
    let mut alone = cargo(["check", "--package", "lexiform", "--no-default-features"]);
    let are_light = ["lexiform", "lexiform-cli", "lexiform-kernels"]
        .into_iter()
        .all(is_light);
    Ok(are_light && succeeds(&mut alone)?)
}

/// The crates of the library, in the order in which they would be published.
const PUBLISHED: [&str; 4] = ["lexiform-automata", "lexiform-syntax", "lexiform-law", "lexiform"];

/// Packages the crates of the library as for a registry, without building them again. Nothing is written to a
/// registry.
fn publish() -> Result<bool, Failure> {
    let mut command = cargo(["publish", "--dry-run", "--no-verify", "--allow-dirty"]);
    command.args(["--registry", "crates-io"]);
    command.args(PUBLISHED.iter().flat_map(|name| ["--package", name]));
    succeeds(&mut command)
}
