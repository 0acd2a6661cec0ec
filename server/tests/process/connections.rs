//! Connections as proxies hold them: on a socket file, kept open, and with the address of who stands behind.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Instant;

use lexiform_server::operate::keys::hashed;

use crate::asking::SILENCE;
use crate::program::{Service, model_folder, serving, shown};

/// Starts a service on a socket file and waits until it listens.
fn start_on_socket(folder: &Path, socket: &Path) -> Child {
    let socket = socket.display().to_string();
    let mut child = serving(
        0,
        folder,
        &["--unix-socket", &socket, "--unix-socket-mode", "600"],
    )
    .stdout(Stdio::piped())
    .spawn()
    .expect("the program starts");
    let told = BufReader::new(child.stdout.take().expect("a pipe"));
    let line = told
        .lines()
        .map_while(Result::ok)
        .find(|line| line.starts_with("Socket: "));
    assert_eq!(line, Some(format!("Socket: {socket}")));
    child
}

fn is_live(socket: &Path) {
    let mut stream = UnixStream::connect(socket).expect("the service listens");
    let request = "GET /live HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("the request is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

fn signal(child: &Child, name: &str) {
    let told = std::process::Command::new("kill")
        .args([name, &child.id().to_string()])
        .status();
    assert!(told.is_ok_and(|status| status.success()), "the signal was sent");
}

#[test]
fn a_socket_file_is_served_and_removed_and_replaced_after_a_kill() {
    let folder = model_folder("socket");
    // The path of a socket has at most 107 bytes.
    let socket = PathBuf::from(format!("/tmp/lexiform-test-{}.sock", std::process::id()));
    let mut killed = start_on_socket(&folder, &socket);
    is_live(&socket);
    let mode = std::fs::metadata(&socket).expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let refused = serving(0, &folder, &["--unix-socket", &socket.display().to_string()]).output();
    let refused = refused.expect("the program runs");
    assert_eq!(refused.status.code(), Some(4), "{}", shown(&refused.stderr));
    assert!(
        shown(&refused.stderr).contains("another process"),
        "{}",
        shown(&refused.stderr)
    );
    signal(&killed, "-KILL");
    let _ = killed.wait();
    assert!(socket.exists());
    let mut next = start_on_socket(&folder, &socket);
    is_live(&socket);
    signal(&next, "-TERM");
    assert!(next.wait().is_ok_and(|status| status.success()));
    assert!(!socket.exists());
}

fn ask_on(stream: &mut TcpStream) {
    let request = "GET /live HTTP/1.1\r\nhost: test\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("the request is sent");
    let mut answer = String::new();
    while !answer.ends_with('}') {
        let mut piece = [0; 1024];
        let read = stream.read(&mut piece).expect("an answer");
        assert!(read > 0, "{answer}");
        answer.push_str(&shown(&piece[..read]));
    }
}

#[test]
fn an_idle_connection_is_closed_after_the_time_of_the_operator() {
    let service = Service::start_with(&model_folder("idle"), &["--keep-alive-seconds", "1"]);
    let mut stream = TcpStream::connect(&service.address).expect("the service listens");
    stream.set_read_timeout(Some(SILENCE)).expect("a limit");
    ask_on(&mut stream);
    assert_eq!(stream.read(&mut [0]).ok(), Some(0), "the service closes it");
}

/// Guards against a stop that waits for connections on which nothing happens.
#[test]
fn idle_connections_do_not_hold_up_a_stop() {
    let mut service = Service::start_with(&model_folder("held"), &["--keep-alive-seconds", "100000"]);
    let mut stream = TcpStream::connect(&service.address).expect("the service listens");
    ask_on(&mut stream);
    let begun = Instant::now();
    service.signal("-TERM");
    assert!(service.ended_well());
    // The test gives 600 s to drain.
    assert!(begun.elapsed() < SILENCE);
    drop(stream);
}

#[test]
fn the_log_names_the_client_behind_a_proxy_and_its_key() {
    let folder = model_folder("named");
    let keys = folder.join("keys.toml");
    let entry = format!("[[keys]]\nname = \"shop\"\nsha256 = \"{}\"\n", hashed("secret"));
    std::fs::write(&keys, entry).expect("a file of keys");
    let keys = keys.display().to_string();
    let more = [
        "--log",
        "info",
        "--api-keys",
        &keys,
        "--trusted-proxy",
        "127.0.0.0/8,10.0.0.1",
    ];
    let mut service = Service::spawned(serving(0, &folder, &more).stderr(Stdio::piped()));
    let log = BufReader::new(service.child.stderr.take().expect("a pipe"));
    for headers in [
        "x-forwarded-for: 1.2.3.4, 10.0.0.1\r\nauthorization: Bearer secret",
        "x-forwarded-for: 1.2.3.5",
        "authorization: Bearer secret",
    ] {
        let mut stream = TcpStream::connect(&service.address).expect("the service listens");
        let request = format!("GET /v1/models HTTP/1.1\r\nhost: t\r\nconnection: close\r\n{headers}\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("the request is sent");
        stream.read_to_string(&mut String::new()).expect("an answer");
    }
    service.signal("-TERM");
    assert!(service.ended_well());
    let lines: Vec<String> = log
        .lines()
        .map_while(Result::ok)
        .filter(|line| line.contains("/v1/models"))
        .collect();
    let [first, second, third] = lines.as_slice() else {
        panic!("{lines:?}")
    };
    assert!(first.contains("client=\"1.2.3.4\" key=\"shop\""), "{first}");
    assert!(
        second.contains("client=\"1.2.3.5\"") && !second.contains("key="),
        "{second}"
    );
    assert!(third.contains("client=\"127.0.0.1\" key=\"shop\""), "{third}");
}
