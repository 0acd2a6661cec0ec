//! Runs the tests with the clients that people really use, against a real running service.
//!
//! They are programs in `server/tests/clients/`: Python ones, run by `unittest` in virtual environments with
//! the versions that the `requirements.txt` beside them pins, and ones for Node, with the versions of a lock
//! file. `LEXIFORM_URL` holds the address of the service. Clients that cannot be installed are reported as
//! skipped.

use crate::process::{Failure, cargo, each_line, line, must_succeed, quiet_output, root};
use crate::tally::{Tally, of_node, of_unittest};
use crate::traffic::http;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The time within which a service must be ready; loading the demo model takes a second or two on an idle
/// machine.
const READY_WITHIN: Duration = Duration::from_secs(600);

/// The Python programs: the name of the environment, and the folder. Instructor needs an older version of the
/// client that the others use. `pages` looks at the pages in a real browser, which the system must provide;
/// `document` makes requests from the OpenAPI document; `manifest` reads the files deployed to Kubernetes.
const PYTHON: [(&str, &str); 5] = [
    ("openai", ""),
    ("instructor", "instructor"),
    ("pages", "pages"),
    ("document", "document"),
    ("manifest", "manifest"),
];

pub(crate) fn run() -> Result<Tally, Failure> {
    let tests = root().join("server/tests/clients");
    if !tests.is_dir() {
        return Ok(skipped("clients", "server/tests/clients is not there"));
    }
    // The same build as for the tests.
    let build = "build --package lexiform-server --bins --features kernels";
    must_succeed(&mut cargo(build.split(' ')))?;
    let mut service = Service::start()?;
    if let Err(why) = service.wait_until_ready() {
        println!("failed: client tests: {why}");
        return Ok(Tally::FAILED);
    }
    let mut tally = Tally::default();
    for (name, folder) in PYTHON {
        let folder = tests.join(folder);
        let environment = root().join(".venv").join(name);
        tally += match prepare(&environment, &folder.join("requirements.txt")) {
            Ok(()) => unittest(&environment, &folder, service.port)?,
            Err(why) => skipped(name, &why),
        };
    }
    let node = tests.join("node");
    tally += match prepare_node(&node) {
        Ok(()) => node_test(&node, service.port)?,
        Err(why) => skipped("node", &why),
    };
    Ok(tally)
}

fn skipped(name: &str, why: &str) -> Tally {
    println!("skipped: client tests: {name}: {why}");
    Tally::SKIPPED
}

fn unittest(environment: &Path, tests: &Path, port: u16) -> Result<Tally, Failure> {
    let mut command = Command::new("sh");
    // unittest reports on standard error; joining the two here keeps their order.
    command.args([
        "-c",
        "exec \"$0\" -m unittest discover --verbose --start-directory \"$1\" 2>&1",
    ]);
    command.arg(environment.join("bin/python")).arg(tests);
    let (output, finished_well) = watched(command.current_dir(root()), port)?;
    Ok(of_unittest(&output, finished_well))
}

/// Installs the packages of the lock file, unless they are already there. The error is the reason why they
/// are not.
pub(crate) fn prepare_node(folder: &Path) -> Result<(), String> {
    let lock = fs::read_to_string(folder.join("package-lock.json")).map_err(|error| error.to_string())?;
    let stamp = folder.join("node_modules/.lock");
    if fs::read_to_string(&stamp).is_ok_and(|made_for| made_for == lock) {
        return Ok(());
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--no-audit", "--no-fund", "--silent", "--ignore-scripts"])
        .current_dir(folder);
    quiet_step(&mut npm)?;
    fs::write(&stamp, lock).map_err(|error| format!("{}: {error}", stamp.display()))
}

fn node_test(folder: &Path, port: u16) -> Result<Tally, Failure> {
    let mut command = Command::new("node");
    command
        .args(["--test", "--test-reporter=tap"])
        .current_dir(folder);
    let (output, finished_well) = watched(&mut command, port)?;
    Ok(of_node(&output, finished_well))
}

/// Runs tests against the service on this port, and captures their output.
fn watched(command: &mut Command, port: u16) -> Result<(String, bool), Failure> {
    command.env("LEXIFORM_URL", format!("http://127.0.0.1:{port}"));
    let mut output = String::new();
    let finished_well = each_line(command, |line| {
        output.push_str(line);
        output.push('\n');
    })?;
    Ok((output, finished_well))
}

/// Creates the virtual environment, or reuses one created for the same requirements. The error is the reason
/// why there is none.
pub(crate) fn prepare(environment: &Path, requirements: &Path) -> Result<(), String> {
    let wanted =
        fs::read_to_string(requirements).map_err(|error| format!("{}: {error}", requirements.display()))?;
    let stamp = environment.join("requirements.txt");
    if fs::read_to_string(&stamp).is_ok_and(|made_for| made_for == wanted) {
        return Ok(());
    }
    quiet_step(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(environment),
    )?;
    let mut pip = Command::new(environment.join("bin/python"));
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--requirement",
    ])
    .arg(requirements);
    quiet_step(&mut pip)?;
    fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))
}

fn quiet_step(command: &mut Command) -> Result<(), String> {
    eprintln!("$ {}", line(command));
    quiet_output(command)
        .map(|_| ())
        .ok_or_else(|| format!("this did not work (offline?): {}", line(command)))
}

/// A service with the demo model on a free port; it is stopped when this value is dropped.
struct Service {
    child: Child,
    port: u16,
}

impl Service {
    fn start() -> Result<Self, Failure> {
        let port = free_port()?;
        let run = "run --quiet --package lexiform-server --bin lexiform-server -- serve --model demo";
        let mut command = cargo(run.split(' '));
        command.args(["--port", &port.to_string()]).stdin(Stdio::null());
        // What the pages show of drafts must not depend on what passes cost on this machine.
        command.args(["--draft-policy", "always"]);
        // Generous limits, so that a busy machine makes no request late.
        for limit in ["--queue-seconds", "--answer-seconds", "--compile-seconds"] {
            command.args([limit, "1800"]);
        }
        eprintln!("$ {}", line(&command));
        let child = command
            .spawn()
            .map_err(|error| Failure::new(format!("could not start the service: {error}")))?;
        Ok(Self { child, port })
    }

    fn wait_until_ready(&mut self) -> Result<(), String> {
        let start = Instant::now();
        while start.elapsed() < READY_WITHIN {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("the service ended early, {status}"));
            }
            if answers_ok(self.port, "/ready") {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Err(format!(
            "the service was not ready within {} s",
            READY_WITHIN.as_secs()
        ))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // `cargo run` has become the service itself, so this stops the service and leaves no process behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a port that was free a moment ago. The service could choose one itself, but would then have to
/// report it.
pub(crate) fn free_port() -> Result<u16, Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = listener.and_then(|it| it.local_addr());
    Ok(address
        .map_err(|error| Failure::new(format!("no free port on 127.0.0.1: {error}")))?
        .port())
}

/// Returns `true` if the service on this port answers with success.
pub(crate) fn answers_ok(port: u16, path: &str) -> bool {
    let patience = Duration::from_secs(5);
    http::ask(&format!("127.0.0.1:{port}"), "GET", path, patience).status == 200
}
