//! Messages to the service manager that started the process, in the protocol of systemd (`sd_notify(3)`): the
//! service is ready, takes up its files anew, or stops.
//!
//! The protocol is a line of text in a datagram, less code than a binding to a library.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use rustix::time::{ClockId, clock_gettime};

/// The variable in which the service manager names its socket.
const SOCKET: &str = "NOTIFY_SOCKET";

/// The service manager, if there is one. A message that it does not take is lost: it is no reason to stop.
#[derive(Debug)]
pub struct Supervisor {
    to: Option<(UnixDatagram, SocketAddr)>,
}

impl Supervisor {
    /// Finds the service manager by the environment of the process.
    pub fn of_environment() -> Self {
        let address = std::env::var_os(SOCKET).filter(|address| !address.is_empty());
        let to = address.and_then(|address| {
            let opened = open(&address);
            opened
                .inspect_err(|error| {
                    tracing::warn!("the service manager of {SOCKET} cannot be told: {error}")
                })
                .ok()
        });
        Self { to }
    }

    /// Says that the service accepts requests, and describes it.
    pub fn ready(&self, status: &str) {
        self.send(&format!("READY=1\nSTATUS={status}"));
    }

    /// Says that the service takes up its files anew; [`ready`](Self::ready) ends it.
    pub fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let microseconds = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={microseconds}"));
    }

    /// Says that the service stops.
    pub fn stopping(&self) {
        self.send("STOPPING=1\nSTATUS=Running requests have time to end");
    }

    fn send(&self, message: &str) {
        let Some((socket, address)) = &self.to else { return };
        if let Err(error) = socket.send_to_addr(message.as_bytes(), address) {
            tracing::warn!("the service manager was not told {message:?}: {error}");
        }
    }
}

fn open(address: &OsStr) -> io::Result<(UnixDatagram, SocketAddr)> {
    // A name that begins so is not that of a file.
    let address = match address.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(address)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    Ok((socket, address))
}
