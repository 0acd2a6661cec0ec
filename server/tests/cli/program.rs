//! Running `lexiform` on the data of these tests.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// A folder that is not there.
const NO_FOLDER: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/no-cache");

/// What a run of the program left behind.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs `lexiform` with these arguments and nothing on standard input.
pub(crate) fn lexiform(args: &[&str]) -> Run {
    run(program().args(args))
}

/// The program in this folder, with the environment that prints as to a file.
pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lexiform"));
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    // Where no model is named, the demo model is meant, whatever the user has fetched.
    command
        .env_remove("LEXIFORM_MODEL")
        .env("XDG_CACHE_HOME", NO_FOLDER);
    command.stdin(Stdio::null());
    command
}

/// Runs it to its end.
pub(crate) fn run(command: &mut Command) -> Run {
    ended(command.output().expect("the program starts"))
}

/// Runs it with a pipe that holds this text as standard input.
pub(crate) fn run_with(command: &mut Command, input: &str) -> Run {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    // A program that reads nothing closes the pipe, which is its right.
    drop(
        child
            .stdin
            .take()
            .map(|mut pipe| pipe.write_all(input.as_bytes())),
    );
    ended(child.wait_with_output().expect("the program ends"))
}

fn ended(output: Output) -> Run {
    Run {
        code: output.status.code().expect("the program ends by itself"),
        out: String::from_utf8(output.stdout).expect("output is UTF-8"),
        err: String::from_utf8(output.stderr).expect("messages are UTF-8"),
    }
}

/// A file of the tests' own data.
pub(crate) fn data(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/cli")
        .join(name);
    path.to_string_lossy().into_owned()
}
