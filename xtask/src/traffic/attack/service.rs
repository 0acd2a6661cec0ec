//! The program under attack, with its memory watched: it is killed before it can take down the machine.

use crate::clients::free_port;
use crate::process::Failure;
use crate::traffic::{model, resident};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
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

/// A running service.
pub(crate) struct Service {
    child: Child,
    pub(crate) address: String,
    pub(crate) model: String,
    peak: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
    watch: Option<JoinHandle<()>>,
}

impl Service {
    /// Starts the program on a port of the loopback interface; 0 takes a free one. It is killed if it exceeds
    /// `memory` bytes.
    pub(crate) fn start(program: &Path, port: u16, memory: u64) -> Result<Service, Failure> {
        let port = if port == 0 { free_port()? } else { port };
        let mut command = Command::new(program);
        // So that the light client is another one than those that attack.
        command.args([
            "serve",
            "--model",
            "demo",
            "--log",
            "error",
            "--trusted-proxy",
            "127.0.0.1",
        ]);
        command.args(["--port", &port.to_string()]);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command
            .spawn()
            .map_err(|error| Failure::io("could not start", program, &error))?;
        let (peak, ended) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let watch = watch(child.id(), memory, peak.clone(), ended.clone());
        let mut service = Service {
            child,
            address: format!("127.0.0.1:{port}"),
            model: String::new(),
            peak,
            ended,
            watch: Some(watch),
        };
        service.await_ready()?;
        Ok(service)
    }

    fn await_ready(&mut self) -> Result<(), Failure> {
        let begun = Instant::now();
        while begun.elapsed() < START && self.end().is_none() {
            if let Ok(model) = model(&self.address) {
                self.model = model;
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let why = format!("the service does not answer at {}", self.address);
        Err(Failure::new(why))
    }

    /// Returns the reason why it is no longer alive, or `None` while it is.
    pub(crate) fn end(&mut self) -> Option<String> {
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
    pub(crate) fn memory(&self) -> u64 {
        resident(self.child.id()).unwrap_or(0)
    }

    /// Returns the processor time of all its threads since the start; zero if it has ended.
    pub(crate) fn processor_time(&self) -> Duration {
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
    pub(crate) fn take_peak(&self) -> u64 {
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
