//! `cargo xtask container`: builds the image that `deploy/Containerfile` describes, starts it unchanged, and
//! sends the demo model in it a question.
//!
//! It uses buildah, which builds and runs without a daemon, and with `BUILDAH_ISOLATION=chroot` without any
//! privilege other than that of a root user, so inside another container too. It is no part of the tests: the
//! build compiles everything again and needs base images from a registry.

use crate::clients::{answers_ok, free_port};
use crate::process::{Failure, line, must_succeed, quiet_output, root};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

const IMAGE: &str = "localhost/lexiform";
/// libtorch is half a gigabyte, which may have to be read from a slow disk.
const READY_WITHIN: Duration = Duration::from_secs(120);
/// The text that the model must answer to the question of `.ci/request.json`, as it appears inside the JSON
/// of the answer.
const ANSWER: &str = r#"{\"name\":\"Maria Keller\",\"age\":34,\"city\":\"Vienna\"}"#;

pub(crate) fn run() -> Result<ExitCode, Failure> {
    if quiet_output(Command::new("buildah").arg("--version")).is_none() {
        println!("skipped: container: buildah is not installed");
        return Ok(ExitCode::SUCCESS);
    }
    let mut build = Command::new("buildah");
    build.args([
        "build",
        "--layers",
        "--file",
        "deploy/Containerfile",
        "--tag",
        IMAGE,
        ".",
    ]);
    must_succeed(build.current_dir(root()))?;
    let port = free_port()?;
    let mut container = Container::start(port)?;
    container.wait_until_ready()?;
    let mut ask = Command::new("curl");
    ask.args(["-sS", "--max-time", "120", "-H", "content-type: application/json"]);
    ask.args(["--data-binary", "@.ci/request.json"]);
    ask.arg(format!("http://127.0.0.1:{port}/v1/chat/completions"));
    let answer = quiet_output(ask.current_dir(root())).unwrap_or_default();
    if answer.contains(ANSWER) {
        println!("passed: container: the demo model answered right in the image");
        Ok(ExitCode::SUCCESS)
    } else {
        Err(Failure::new(format!(
            "the answer is not the one expected: {answer}"
        )))
    }
}

/// A container of the image with the service running in it; both are removed when this value is dropped.
struct Container {
    name: String,
    service: Child,
    port: u16,
}

impl Container {
    fn start(port: u16) -> Result<Self, Failure> {
        let name = quiet_output(Command::new("buildah").args(["from", "--pull-never", IMAGE]))
            .ok_or_else(|| Failure::new(format!("buildah could not make a container of {IMAGE}")))?;
        let name = name.trim().to_owned();
        let mut command = Command::new("buildah");
        command.args(["run", "--network", "host", "--env"]);
        command.args([&format!("LEXIFORM_PORT={port}"), &name, "--"]);
        command.args(["lexiform", "serve", "--model", "demo"]);
        eprintln!("$ {}", line(&command));
        let service = command.stdin(Stdio::null()).spawn();
        let service = service.map_err(|error| Failure::new(format!("could not run buildah: {error}")))?;
        Ok(Self { name, service, port })
    }

    fn wait_until_ready(&mut self) -> Result<(), Failure> {
        let start = Instant::now();
        while !answers_ok(self.port, "/ready") {
            if let Ok(Some(status)) = self.service.try_wait() {
                return Err(Failure::new(format!(
                    "the service in the image ended early, {status}"
                )));
            }
            if start.elapsed() > READY_WITHIN {
                let limit = READY_WITHIN.as_secs();
                return Err(Failure::new(format!(
                    "the service was not ready within {limit} s"
                )));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // The service ends with the buildah that runs it. If buildah were killed, it could not clean up.
        let _ = quiet_output(Command::new("kill").arg(self.service.id().to_string()));
        let _ = self.service.wait();
        let _ = quiet_output(Command::new("buildah").args(["rm", &self.name]));
    }
}
