//! The service that the examples ask: the program with a model on a free port.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// A running service.
pub(crate) struct Service {
    child: Child,
    /// Kept open, as a terminal would be.
    _output: BufReader<ChildStdout>,
    /// Its address, as `http://127.0.0.1:40001`.
    pub(crate) address: String,
}

impl Service {
    pub(crate) fn start(model: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lexiform"));
        command.args(["serve", "--model", model, "--port", "0", "--threads", "1"]);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        output.read_line(&mut line).expect("a first line");
        let address = line.find("http://").map(|at| line[at..].trim_end());
        let address = address.and_then(|url| url.strip_suffix("/v1"));
        let address = address
            .unwrap_or_else(|| panic!("no address in {line:?}"))
            .to_owned();
        Self {
            child,
            _output: output,
            address,
        }
    }

    /// Runs a script as a reader of the docs would, in a folder of its own; what it writes to standard
    /// output.
    pub(crate) fn run(&self, script: &str, folder: &Path) -> String {
        let program = Path::new(env!("CARGO_BIN_EXE_lexiform"));
        let programs = program.parent().expect("a folder").to_string_lossy().into_owned();
        let path = std::env::var("PATH").unwrap_or_default();
        let output = Command::new("bash")
            .args(["-c", &script.replace("http://127.0.0.1:8000", &self.address)])
            .env("PATH", format!("{programs}:{path}"))
            // The examples show what the demo model writes, whatever model was fetched for this user.
            .env("LEXIFORM_MODEL", "demo")
            .current_dir(folder)
            .stdin(Stdio::null())
            .output()
            .expect("bash runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
