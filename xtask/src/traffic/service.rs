//! The program as a process of its own, with its memory watched: it is killed before it can take down the
//! machine.

use super::http::ask;
use super::resident;
use crate::clients::free_port;
use crate::options::Options;
use crate::process::{Failure, cargo, must_succeed, root};
use crate::setup;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The interval at which its memory is checked.
const LOOK: Duration = Duration::from_millis(10);
/// The time within which it must first answer.
const START: Duration = Duration::from_secs(60);

/// The unit of processor times that Linux reports.
const TICKS_A_SECOND: u64 = 100;

/// A program that can be started, and started again at the same address.
pub(super) struct Program {
    path: PathBuf,
    port: u16,
    /// The resident memory beyond which it is killed, in bytes.
    memory: u64,
    args: Vec<String>,
}

impl Program {
    /// Reads `--program`, `--port` and `--memory`, and builds the program if none is named. Without a port
    /// it takes a free one. `args` are the arguments of `lexiform serve`.
    pub(super) fn read(options: &Options, args: &[&str]) -> Result<Self, Failure> {
        let port = u16::try_from(options.number("--port", 0)).map_err(|_| options.wrong("--port"))?;
        Ok(Self {
            path: options
                .get("--program")
                .map_or_else(built, |program| Ok(program.into()))?,
            port: if port == 0 { free_port()? } else { port },
            memory: (options.number("--memory", 2_000) as u64) << 20,
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        })
    }

    /// Returns `HOST:PORT`.
    pub(super) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns a command of the program.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.stdin(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Starts the program, and returns when it is ready.
    pub(super) fn start(&self) -> Result<Service, Failure> {
        let mut command = self.command();
        command
            .args(["serve", "--port", &self.port.to_string()])
            .args(&self.args);
        let child = command
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| Failure::io("could not start", &self.path, &error))?;
        let (peak, ended) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let watch = watch(child.id(), self.memory, peak.clone(), ended.clone());
        let mut service = Service {
            child,
            address: self.address(),
            peak,
            ended,
            watch: Some(watch),
        };
        service.await_ready()?;
        Ok(service)
    }
}

fn built() -> Result<PathBuf, Failure> {
    setup::ensure()?;
    let build = "build --release --package lexiform-server --bins --features kernels";
    must_succeed(&mut cargo(build.split(' ')))?;
    Ok(root().join("target/release/lexiform-server"))
}

/// A running service.
pub(super) struct Service {
    child: Child,
    pub(super) address: String,
    peak: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
    watch: Option<JoinHandle<()>>,
}

impl Service {
    fn await_ready(&mut self) -> Result<(), Failure> {
        let begun = Instant::now();
        while begun.elapsed() < START && self.end().is_none() {
            if ask(&self.address, "GET", "/ready", START).status == 200 {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let why = format!("the service does not answer at {}", self.address);
        Err(Failure::new(why))
    }

    /// Sends a signal, as `-TERM`.
    pub(super) fn signal(&self, signal: &str) -> Result<(), Failure> {
        // The process is a child that was not waited for, so the number still belongs to it.
        must_succeed(Command::new("kill").args([signal, &self.child.id().to_string()]))
    }

    /// Waits until the process has ended; `None` if it has not within this time.
    pub(super) fn ended_within(&mut self, time: Duration) -> Option<ExitStatus> {
        let begun = Instant::now();
        while begun.elapsed() < time {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            std::thread::sleep(LOOK);
        }
        None
    }

    /// Returns the reason why it is no longer alive, or `None` while it is.
    pub(super) fn end(&mut self) -> Option<String> {
        let status = match self.child.try_wait() {
            Ok(None) => return None,
            Ok(Some(status)) => status,
            Err(error) => return Some(format!("was lost: {error}")),
        };
        Some(match status.signal() {
            Some(9) => "killed for its memory".to_owned(),
            Some(signal) => format!("died of signal {signal}"),
            None => format!("ended with {:?}", status.code()),
        })
    }

    /// Returns the present resident memory, in bytes.
    pub(super) fn memory(&self) -> u64 {
        resident(self.child.id()).unwrap_or(0)
    }

    /// Returns the processor time of all its threads since the start; zero if it has ended.
    pub(super) fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        // The fields after the name, which stands in parentheses: user and system time are the 12th and 13th.
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let ticks: u64 = fields
            .skip(11)
            .take(2)
            .filter_map(|field| field.parse::<u64>().ok())
            .sum();
        Duration::from_millis(ticks * 1_000 / TICKS_A_SECOND)
    }

    /// Returns the largest resident memory since the last call.
    pub(super) fn take_peak(&self) -> u64 {
        self.peak.swap(0, Relaxed).max(self.memory())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.ended.store(true, Relaxed);
        // It may have ended by itself; nothing else has to be done.
        drop(self.child.kill());
        drop(self.child.wait());
        drop(self.watch.take().map(JoinHandle::join));
    }
}

fn watch(pid: u32, most: u64, peak: Arc<AtomicU64>, ended: Arc<AtomicBool>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        while !ended.load(Relaxed) {
            let Some(now) = resident(pid) else { return };
            peak.fetch_max(now, Relaxed);
            if now > most {
                // The process is a child that was not waited for, so the number still belongs to it.
                drop(Command::new("kill").args(["-KILL", &pid.to_string()]).status());
                return;
            }
            std::thread::sleep(LOOK);
        }
    })
}
