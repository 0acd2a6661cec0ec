//! Running `lexiform` on the data of these tests.

use std::path::PathBuf;
use std::process::Command;

/// What a run of the program left behind.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs `lexiform` with these arguments.
pub(crate) fn lexiform(args: &[&str]) -> Run {
    let output = Command::new(env!("CARGO_BIN_EXE_lexiform"))
        .args(args)
        .output()
        .expect("the program starts");
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
