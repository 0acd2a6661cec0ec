//! The program under attack, with its memory watched: it is killed before it can take down the machine.

use super::http;
use crate::process::Failure;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
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

/// A running service.
pub(crate) struct Service {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) model: String,
    peak: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
    watch: Option<JoinHandle<()>>,
}

impl Service {
    /// Starts the program on a free port of the loopback interface. It is killed if it exceeds `memory`
    /// bytes.
    pub(crate) fn start(program: &Path, port: Option<u16>, memory: u64) -> Result<Service, Failure> {
        let port = port.map_or_else(free_port, Ok)?;
        let mut command = Command::new(program);
        command.args(["serve", "--model", "demo", "--log", "error"]);
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
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
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
        while begun.elapsed() < START && self.is_alive() {
            let answer = http::ask(self.address, "GET", "/v1/models", Duration::from_secs(2));
            if answer.status == 200 {
                let list: serde_json::Value = serde_json::from_str(&answer.body).unwrap_or_default();
                list["data"][0]["id"]
                    .as_str()
                    .unwrap_or_default()
                    .clone_into(&mut self.model);
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err(Failure::new(format!(
            "the service does not answer at {}",
            self.address
        )))
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Returns the reason why it is no longer alive.
    pub(crate) fn end(&mut self) -> String {
        match self.child.try_wait() {
            Ok(Some(status)) => match status.signal() {
                Some(9) => "killed for its memory".to_owned(),
                Some(signal) => format!("died of signal {signal}"),
                None => format!("ended with {:?}", status.code()),
            },
            _ => "alive".to_owned(),
        }
    }

    /// Returns the present resident memory, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        resident(self.child.id()).unwrap_or(0)
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

fn resident(pid: u32) -> Option<u64> {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4096)
}

fn free_port() -> Result<u16, Failure> {
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    bound
        .map(|address| address.port())
        .map_err(|error| Failure::new(format!("no free port: {error}")))
}
