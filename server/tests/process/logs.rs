//! Logs that cannot be written: their reader has gone, hangs, or the disk is full. None of it stops the
//! service.

use std::fs::File;
use std::io::{Read, Write, pipe};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::asking::{Outcome, SILENCE, ask, letters, obeys};
use crate::program::{Service, get, model_folder, serving};
use crate::signals::{LONG, streams};

/// Starts a service whose standard error goes there.
fn start(name: &str, level: &str, log: impl Into<Stdio>) -> Service {
    let mut command = serving(0, &model_folder(name), &["--log", level, "--max-batch", "1"]);
    Service::spawned(command.stderr(log))
}

fn full_disk() -> File {
    File::options()
        .write(true)
        .open("/dev/full")
        .expect("a full device")
}

/// The number of lines of the log that were dropped.
fn dropped(service: &Service) -> u64 {
    let metrics = get(&service.address, "/metrics");
    let series = metrics
        .lines()
        .find(|line| line.starts_with("lexiform_log_lines_dropped_total{") && line.contains("messages"));
    let count = series.and_then(|line| line.rsplit(' ').next()?.parse().ok());
    count.unwrap_or_else(|| panic!("no count in {metrics}"))
}

/// Signals, a drain and requests go on as if there were a log.
fn goes_on(mut service: Service) {
    assert!(matches!(ask(&service.address, &letters(3, 1)), Outcome::Whole(_)));
    service.signal("-HUP");
    assert!(matches!(ask(&service.address, &letters(3, 2)), Outcome::Whole(_)));
    let streams = streams(&service, 3);
    service.signal("-TERM");
    for stream in streams {
        match stream.outcome() {
            Outcome::Whole(text) => assert!(obeys(&text, LONG), "{text}"),
            other => panic!("a stream was not served to its end: {other:?}"),
        }
    }
    assert!(service.ended_well());
}

#[test]
fn a_log_whose_reader_has_gone_stops_nothing() {
    for level in ["info", "warn"] {
        let (reader, writer) = pipe().expect("a pipe");
        let service = start(&format!("unheard-{level}"), level, writer);
        drop(reader);
        goes_on(service);
    }
}

#[test]
fn a_log_on_a_full_disk_stops_nothing_and_its_lines_are_counted() {
    let service = start("full", "info", full_disk());
    let begun = Instant::now();
    while dropped(&service) == 0 {
        assert!(begun.elapsed() < SILENCE, "no line was counted");
    }
    goes_on(service);
}

#[test]
fn a_log_that_nobody_reads_stops_nothing_and_its_lines_are_counted() {
    // More lines than the pipe and the queue before it hold together.
    const REQUESTS: usize = 8_000;
    let (reader, writer) = pipe().expect("a pipe");
    let service = start("unread", "info", writer);
    let mut stream = TcpStream::connect(&service.address).expect("the service listens");
    stream.set_read_timeout(Some(SILENCE)).expect("a limit");
    let asked = "GET /live HTTP/1.1\r\nhost: test\r\n\r\n".repeat(100);
    for _ in 0..REQUESTS / 100 {
        stream.write_all(asked.as_bytes()).expect("the requests are sent");
        let mut answers = String::new();
        while answers.matches("\"ok\"}").count() < 100 {
            let mut piece = [0; 4096];
            let read = stream.read(&mut piece).expect("an answer");
            assert!(read > 0, "{answers}");
            answers.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
    }
    assert!(dropped(&service) > 0);
    goes_on(service);
    drop(reader);
}

/// Guards against a start that fails because nobody can read that it succeeded.
#[test]
fn it_starts_where_nothing_can_be_written() {
    let free = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = free.local_addr().expect("an address");
    drop(free);
    let mut command = serving(address.port(), &model_folder("mute"), &["--log", "debug"]);
    let mut child = command
        .stdout(full_disk())
        .stderr(full_disk())
        .spawn()
        .expect("the program starts");
    let begun = Instant::now();
    while TcpStream::connect(address).is_err() {
        assert!(child.try_wait().expect("a state").is_none(), "it has ended");
        assert!(begun.elapsed() < SILENCE, "it does not listen");
        std::thread::sleep(Duration::from_millis(5));
    }
    let live = get(&address.to_string(), "/live");
    let _ = child.kill();
    let _ = child.wait();
    assert!(live.starts_with("HTTP/1.1 200"), "{live}");
}
