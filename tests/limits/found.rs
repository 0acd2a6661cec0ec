//! Inputs that fuzzing and attacks found, and those that once ended the service: each is read, compiled and
//! walked in a separate process, on a thread with the stack size of the service, with every byte that it
//! holds counted.
//!
//! A case is a file of `fuzz/cases/READER/`. The readers are those of the fuzz targets. The time of a case is
//! not checked here, only that it ends: counted limits have separate tests, and `cargo xtask fuzz` has a
//! clock.

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

/// The environment variable that names the case to a child process.
const CASE: &str = "LEXIFORM_FOUND_CASE";
/// The stack size of the service's threads.
const STACK: usize = 2 << 20;
/// The maximum number of bytes that a case may hold.
const MEMORY: usize = 256 << 20;
/// The timeout, which only a case that never ends reaches.
const PATIENCE: Duration = Duration::from_secs(120);
/// A function that reads arbitrary bytes.
type Reader = fn(&[u8]);
/// The readers with the names of their folders.
const READERS: [(&str, Reader); 8] = [
    ("schema", readers::schema),
    ("regex", readers::regex),
    ("ecma", readers::ecma),
    ("ebnf", readers::ebnf),
    ("notations", readers::notations),
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

/// Reads a case in a child process, which a panic, an overflow or too much memory ends.
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

/// Returns the harm that a case did to its process, or `None`.
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
