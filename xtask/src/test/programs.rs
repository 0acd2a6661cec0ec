//! The tests in Rust: one build of all test programs, which then run side by side.
//!
//! `cargo test` runs one program after the other, and many of them have one long test, so that processors
//! idle. Here as many programs run at a time as there are processors. The output of a program is shown when
//! it has ended.

use crate::process::{Failure, cargo, each_line, line};
use crate::tally::{LibtestReader, Tally};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// The packages and features of the single build. maturin builds the wheel, `node.rs` what Node loads, and
/// the models of the lock-free tables run only under loom (`cargo xtask loom`).
pub(crate) const BUILT: [&str; 9] = [
    "--workspace",
    "--exclude",
    "lexiform-python",
    "--exclude",
    "lexiform-node",
    "--exclude",
    "lexiform-interning",
    "--features",
    "lexiform-c/llguidance,lexiform-engine/kernels,lexiform-server/kernels",
];

/// A test program that cargo built.
struct Program {
    name: String,
    executable: PathBuf,
    /// Tests run in the folder of their package, as under cargo.
    package: PathBuf,
}

/// Builds and runs all of them, and the examples in the documentation.
pub(super) fn test() -> Result<Tally, Failure> {
    let start = Instant::now();
    let Some(programs) = build()? else {
        return Ok(Tally::FAILED);
    };
    eprintln!(
        "built: {} test programs, {:.0} s",
        programs.len(),
        start.elapsed().as_secs_f64()
    );
    let mut tally = run(&programs);
    tally += examples()?;
    Ok(tally)
}

/// Builds the programs; `None` if the build failed, in which case cargo has printed the reason.
fn build() -> Result<Option<Vec<Program>>, Failure> {
    let mut command = cargo(["test", "--no-run", "--message-format=json-render-diagnostics"]);
    command.args(BUILT).stdin(Stdio::null()).stderr(Stdio::inherit());
    eprintln!("$ {}", line(&command));
    let output = command
        .output()
        .map_err(|error| Failure::new(format!("could not run cargo: {error}")))?;
    let messages = String::from_utf8_lossy(&output.stdout);
    let programs = messages.lines().filter_map(program).collect();
    Ok(output.status.success().then_some(programs))
}

/// Returns the test program that a cargo message reports, if it reports one.
fn program(message: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(message).ok()?;
    let is_test = message["profile"]["test"].as_bool()?;
    let package = Path::new(message["manifest_path"].as_str()?).parent()?;
    let target = &message["target"];
    let folder = package.file_name()?.to_string_lossy();
    is_test.then_some(Program {
        name: format!(
            "{folder}: {} ({})",
            target["name"].as_str()?,
            target["kind"][0].as_str()?
        ),
        executable: message["executable"].as_str()?.into(),
        package: package.to_owned(),
    })
}

/// Runs the programs, as many at a time as there are processors.
fn run(programs: &[Program]) -> Tally {
    let (next, sum) = (AtomicUsize::new(0), Mutex::new(Tally::default()));
    let work = || {
        while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (text, tally) = run_one(program);
            let mut sum = sum.lock().unwrap_or_else(|broken| broken.into_inner());
            println!("{text}");
            *sum += tally;
        }
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(work);
        }
    });
    sum.into_inner().unwrap_or_else(|broken| broken.into_inner())
}

/// Runs one program; returns its output and its counts.
fn run_one(program: &Program) -> (String, Tally) {
    let start = Instant::now();
    let mut command = Command::new(&program.executable);
    command
        .arg("--show-output")
        .current_dir(&program.package)
        .env("CARGO_MANIFEST_DIR", &program.package)
        .stdin(Stdio::null());
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            let text = format!("{}: could not run {}: {error}", program.name, line(&command));
            return (text, Tally::FAILED);
        }
    };
    let printed = String::from_utf8_lossy(&output.stdout);
    let mut reader = LibtestReader::default();
    printed.lines().for_each(|line| reader.read(line));
    let text = format!(
        "== {}, {:.0} s\n{printed}{}",
        program.name,
        start.elapsed().as_secs_f64(),
        String::from_utf8_lossy(&output.stderr)
    );
    (text, reader.finish(output.status.success()))
}

/// Runs the examples in the documentation, which only cargo can build.
fn examples() -> Result<Tally, Failure> {
    let mut command = cargo(["test", "--doc", "--no-fail-fast"]);
    command.args(BUILT).args(["--", "--show-output"]);
    let mut reader = LibtestReader::default();
    let finished_well = each_line(&mut command, |line| reader.read(line))?;
    Ok(reader.finish(finished_well))
}
