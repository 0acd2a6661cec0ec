//! Two servers behind a proxy that others wrote, which is configured as `deploy/haproxy.cfg` shows.

use std::io::{Read, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::asking::{Crowd, Outcome, SILENCE, obeys};
use crate::program::{Service, get, model_folder};

/// A running proxy; it ends with this value.
struct Proxy {
    child: Child,
    address: String,
}

impl Proxy {
    /// In front of these servers, or nothing if haproxy is not installed.
    fn start(servers: [&str; 2]) -> Option<Self> {
        // The socket itself is handed over: a port that was free a moment ago may be that of another test
        // now.
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/haproxy.cfg");
        // Debian puts it where only the system's own programs are looked for.
        let path = format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new("haproxy");
        command
            .arg("-db")
            .arg("-f")
            .arg(config)
            .env("PATH", path)
            .env("LISTEN", "fd@0")
            .env("FIRST", servers[0])
            .env("SECOND", servers[1]);
        command.stdin(OwnedFd::from(listener)).stderr(Stdio::piped());
        let child = command.spawn().ok()?;
        Some(Self { child, address })
    }

    fn until_it_answers(&mut self) {
        while !says_that_it_is_ready(&self.address) {
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

fn says_that_it_is_ready(address: &str) -> bool {
    let ask = |mut stream: TcpStream| -> std::io::Result<String> {
        stream.write_all(b"GET /ready HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map(|_| answer)
    };
    let answer = TcpStream::connect(address).and_then(ask);
    answer.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until the proxy has found out that a server is ready: until that has answered some of those who ask.
fn until_it_is_asked(server: &Service) {
    let begun = Instant::now();
    let answers =
        |line: &str| line.starts_with("vllm:e2e_request_latency_seconds_count") && !line.ends_with(" 0");
    while !get(&server.address, "/metrics").lines().any(answers) {
        assert!(begun.elapsed() < SILENCE, "the proxy leaves the new server out");
        std::thread::sleep(Duration::from_millis(10));
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
    proxy.until_it_answers();
    let mut replaced = Vec::new();
    let outcomes = Crowd::asks(&proxy.address, 60, |crowd| {
        for (mut server, port) in servers.into_iter().zip(ports) {
            crowd.until_answered(12);
            server.signal("-TERM");
            assert!(server.ended_well());
            crowd.until_answered(12);
            replaced.push(start(port));
            until_it_is_asked(replaced.last().expect("a server"));
        }
    });
    let lost = |outcome: &&Outcome| !matches!(outcome, Outcome::Whole(text) if obeys(text, 60));
    let lost: Vec<&Outcome> = outcomes.iter().filter(lost).collect();
    assert!(lost.is_empty(), "of {} requests: {lost:?}", outcomes.len());
}
