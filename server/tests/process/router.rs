//! Two servers behind a proxy that others wrote, which is configured as `deploy/haproxy.cfg` shows.

use std::io::Read;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::asking::{Crowd, Outcome, obeys};
use crate::program::{Service, model_folder};

/// A running proxy; it ends with this value.
struct Proxy {
    child: Child,
    address: String,
}

impl Proxy {
    /// In front of these servers, or nothing if haproxy is not installed.
    fn start(servers: [&str; 2]) -> Option<Self> {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
        let address = free.expect("a free port").to_string();
        let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/haproxy.cfg");
        // Debian puts it where only the system's own programs are looked for.
        let path = format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new("haproxy");
        command
            .arg("-db")
            .arg("-f")
            .arg(config)
            .env("PATH", path)
            .env("LISTEN", &address)
            .env("FIRST", servers[0])
            .env("SECOND", servers[1]);
        let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().ok()?;
        Some(Self { child, address })
    }

    fn until_it_listens(&mut self) {
        while std::net::TcpStream::connect(&self.address).is_err() {
            if !matches!(self.child.try_wait(), Ok(None)) {
                let mut said = String::new();
                let stderr = self.child.stderr.take();
                stderr.map(|mut it| it.read_to_string(&mut said));
                panic!("haproxy ended: {said}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Guards against requests that are lost when servers are replaced one after the other.
#[test]
fn behind_a_proxy_servers_are_replaced_one_by_one_and_no_request_is_lost() {
    let folder = model_folder("routed");
    let start = |port| Service::start_on(port, &folder, &[]);
    let servers = [start(0), start(0)];
    let ports = servers.each_ref().map(Service::port);
    let Some(mut proxy) = Proxy::start([&servers[0].address, &servers[1].address]) else {
        println!("skipped: router: haproxy is not installed (package haproxy)");
        return;
    };
    proxy.until_it_listens();
    let mut replaced = Vec::new();
    let outcomes = Crowd::asks(&proxy.address, 60, |crowd| {
        for (mut server, port) in servers.into_iter().zip(ports) {
            crowd.until_answered(12);
            server.signal("-TERM");
            assert!(server.ended_well());
            crowd.until_answered(12);
            replaced.push(start(port));
            // The proxy asks ten times a second who is ready.
            crowd.until_answered(24);
            std::thread::sleep(Duration::from_millis(500));
        }
    });
    let lost = |outcome: &&Outcome| !matches!(outcome, Outcome::Whole(text) if obeys(text, 60));
    let lost: Vec<&Outcome> = outcomes.iter().filter(lost).collect();
    assert!(lost.is_empty(), "of {} requests: {lost:?}", outcomes.len());
}
