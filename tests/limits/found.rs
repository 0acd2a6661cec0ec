//! Inputs that fuzzing and attacks found, and those that once ended the service: each is read, compiled and
//! walked in a process of its own, on a thread with the stack of the service, with every byte that it holds
//! counted.
//!
//! A case is a file of `fuzz/cases/READER/`. The readers are those of the fuzz targets. What a case costs in
//! time is not looked at here, but that it ends: counted limits have tests of their own, and
//! `cargo xtask fuzz` has a clock.

mod clock;
#[allow(
    dead_code,
    unreachable_pub,
    reason = "shared with the package that fuzzes, which uses all of it"
)]
#[path = "../../fuzz/src/meter.rs"]
pub(crate) mod meter;
#[allow(unreachable_pub, reason = "as above")]
#[path = "../../fuzz/src/readers.rs"]
mod readers;
#[allow(unreachable_pub, reason = "as above")]
#[path = "../../fuzz/src/walk.rs"]
mod walk;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Names the case to a child process.
const CASE: &str = "LEXIFORM_FOUND_CASE";
/// The stack of the service's threads.
const STACK: usize = 2 << 20;
/// What a case may hold.
const MEMORY: usize = 256 << 20;
/// Nothing takes as long but what never ends.
const PATIENCE: Duration = Duration::from_secs(120);
/// Reads whatever bytes it gets.
type Reader = fn(&[u8]);
/// Each reader with the name of its folder.
const READERS: [(&str, Reader); 7] = [
    ("schema", readers::schema),
    ("regex", readers::regex),
    ("ecma", readers::ecma),
    ("ebnf", readers::ebnf),
    ("tags", readers::tags),
    ("tokenizer", readers::tokenizer),
    ("tiktoken", readers::tiktoken),
];

#[test]
fn no_input_that_was_found_ends_or_fattens_the_process() {
    if let Some(path) = std::env::var_os(CASE) {
        return read(Path::new(&path));
    }
    let cases = cases();
    assert!(!cases.is_empty(), "there are no cases");
    let harmful: Vec<String> = cases.iter().filter_map(|path| harm(path)).collect();
    let (count, all) = (harmful.len(), cases.len());
    assert!(
        harmful.is_empty(),
        "{count} of {all} cases:\n{}",
        harmful.join("\n")
    );
}

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/cases");
    let mut all = Vec::new();
    for (reader, _) in READERS {
        let entries = std::fs::read_dir(folder.join(reader))
            .into_iter()
            .flatten()
            .flatten();
        all.extend(entries.map(|entry| entry.path()));
    }
    all.sort();
    all
}

/// Reads a case as a child process does: a panic, an overflow or too much memory is its end.
fn read(path: &Path) {
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
    let reader = READERS
        .iter()
        .find(|(name, _)| folder == *name)
        .expect("a folder of a reader")
        .1;
    let input = std::fs::read(path).expect("the file of a case");
    meter::allow(MEMORY);
    let thread = std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(move || reader(&input));
    thread.expect("a thread").join().expect("the reader returns");
}

/// How a case harmed its process; nothing if it did not.
fn harm(path: &Path) -> Option<String> {
    let program = std::env::current_exe().expect("the path of this program");
    let mut child = Command::new(program)
        .args([
            "--exact",
            "found::no_input_that_was_found_ends_or_fattens_the_process",
        ])
        .env(CASE, path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("this program starts");
    let begun = Instant::now();
    let status: Option<ExitStatus> = loop {
        match child.try_wait().expect("the child's status") {
            Some(status) => break Some(status),
            None if begun.elapsed() > PATIENCE => break None,
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    if status.is_none() {
        child.kill().expect("the child can be ended");
        child.wait().expect("the child has ended");
    }
    match status {
        Some(status) if status.success() => None,
        Some(status) => Some(format!("{}: {status}", path.display())),
        None => Some(format!("{}: it does not end", path.display())),
    }
}
