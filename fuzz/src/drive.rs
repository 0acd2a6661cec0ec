//! The program around the targets: libFuzzer, one target, and the limits of a run.
//!
//! ```text
//!   FUZZ_TARGET=ebnf library CORPUS… -timeout=20        libFuzzer chooses inputs and watches what code they reach
//!        └─ each input ─► a thread with the stack of the service ─► the target, with time and memory counted
//!   FUZZ_TARGET=ebnf_shapes library --show FILE          what source the target makes of an input, and nothing else
//! ```
//!
//! `main` is ours and not libFuzzer's, because Rust's own start notices an overflow of any thread's stack and
//! says so.

use std::ffi::{CString, c_char, c_int};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;

use crate::meter;

/// The stack that the service's threads have.
const STACK: usize = 2 << 20;
/// The bytes that one input may make the process hold beyond what it held before.
const MEMORY: usize = 256 << 20;

/// A target: its name, what it does with an input, and the source that it makes of one, where it makes any.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// As it is called on the command line.
    pub name: &'static str,
    /// Reads an input. It returns whatever the input is; findings are panics.
    pub run: fn(&[u8]),
    /// The text that the readers see, where that is not the input itself.
    pub shown: Option<fn(&[u8]) -> String>,
}

impl Target {
    /// A target whose inputs are what its reader sees.
    pub const fn plain(name: &'static str, run: fn(&[u8])) -> Target {
        Target {
            name,
            run,
            shown: None,
        }
    }

    /// A target that makes a source of an input.
    pub const fn shaped(name: &'static str, run: fn(&[u8]), shown: fn(&[u8]) -> String) -> Target {
        Target {
            name,
            run,
            shown: Some(shown),
        }
    }
}

static CHOSEN: OnceLock<Target> = OnceLock::new();
/// Where each input is written before it is read. An overflow of the stack ends the process before libFuzzer
/// can write the input: its handler needs more stack than signals have.
static LAST: OnceLock<PathBuf> = OnceLock::new();

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    if let Some(target) = CHOSEN.get() {
        if let Some(path) = LAST.get() {
            // Without the file the finding is lost where libFuzzer cannot write it; the run goes on all the
            // same.
            drop(std::fs::write(path, input));
        }
        run_limited(target, input);
    }
});

fn run_limited(target: &Target, input: &[u8]) {
    meter::allow(MEMORY);
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name(target.name.to_owned())
            .stack_size(STACK);
        let run = thread.spawn_scoped(scope, || (target.run)(input));
        // A panic has ended the process before this.
        drop(run.map(std::thread::ScopedJoinHandle::join));
    });
    meter::lift();
}

unsafe extern "C" {
    fn LLVMFuzzerRunDriver(
        count: *mut c_int,
        arguments: *mut *mut *mut c_char,
        run: unsafe extern "C" fn(*const u8, usize) -> c_int,
    ) -> c_int;
}

/// What libFuzzer calls with each input.
///
/// # Safety
/// `data` points to `size` bytes.
unsafe extern "C" fn one(data: *const u8, size: usize) -> c_int {
    // SAFETY: the caller keeps the contract, which is the same.
    unsafe { libfuzzer_sys::test_input_wrap(data, size) }
}

/// Runs the program: `--list` names the targets; otherwise `FUZZ_TARGET` chooses one and the arguments are
/// libFuzzer's.
pub fn main(targets: &[Target]) -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.iter().any(|it| it == "--list") {
        targets.iter().for_each(|target| println!("{}", target.name));
        return ExitCode::SUCCESS;
    }
    let wanted = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let Some(target) = targets.iter().find(|target| target.name == wanted) else {
        eprintln!("FUZZ_TARGET must name a target; --list names them");
        return ExitCode::FAILURE;
    };
    if let [_, show, path] = &arguments[..]
        && show == "--show"
    {
        return show_source(target, path);
    }
    CHOSEN.get_or_init(|| *target);
    if let Some(path) = artifact(&arguments) {
        LAST.get_or_init(|| path);
    }
    fuzz(arguments)
}

/// The file that findings go to. While libFuzzer minimises, it takes a file that is there for a finding.
fn artifact(arguments: &[String]) -> Option<PathBuf> {
    if arguments.iter().any(|it| it.starts_with("-minimize_crash")) {
        return None;
    }
    let path = arguments
        .iter()
        .find_map(|it| it.strip_prefix("-exact_artifact_path="));
    path.map(PathBuf::from)
}

fn show_source(target: &Target, path: &str) -> ExitCode {
    match (target.shown, std::fs::read(path)) {
        (Some(shown), Ok(input)) => {
            print!("{}", shown(&input));
            ExitCode::SUCCESS
        }
        _ => ExitCode::FAILURE,
    }
}

fn fuzz(arguments: Vec<String>) -> ExitCode {
    let texts: Vec<CString> = arguments
        .into_iter()
        .filter_map(|it| CString::new(it).ok())
        .collect();
    let mut pointers: Vec<*mut c_char> = texts.iter().map(|it| it.as_ptr().cast_mut()).collect();
    let mut count = pointers.len() as c_int;
    pointers.push(std::ptr::null_mut());
    let mut arguments = pointers.as_mut_ptr();
    // SAFETY: count and arguments are those of a C program, with a null pointer at the end, and outlive the
    // call.
    let code = unsafe { LLVMFuzzerRunDriver(&mut count, &mut arguments, one) };
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
