//! Sends an attack and waits for the answers.

use super::http::{Answer, ask, connect, exchange, post};
use super::table::Sent;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The time after which an answer is given up.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest time that a connection whose body never ends may stay open.
const LONGEST_BODY: Duration = Duration::from_secs(90);

/// The answers, and whether `/live` was answered meanwhile.
pub(crate) struct Outcome {
    pub(crate) answers: Vec<Answer>,
    pub(crate) live: bool,
}

/// Sends an attack. `model` replaces the model in bodies.
pub(crate) fn send(address: SocketAddr, model: &str, sent: &Sent) -> Outcome {
    let answers = match sent {
        Sent::Posts(path, bodies) => std::thread::scope(|scope| {
            let threads: Vec<_> = bodies
                .iter()
                .map(|body| {
                    let mut body = body.clone();
                    body["model"] = model.into();
                    scope.spawn(move || post(address, path, &body.to_string(), PATIENCE))
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_default())
                .collect()
        }),
        Sent::Text(path, body) => vec![post(address, path, body, PATIENCE)],
        Sent::Ask(method, path) => vec![ask(address, method, path, PATIENCE)],
        Sent::Unfinished(count, bytes) => return unfinished(address, *count, *bytes),
        Sent::Dribble => vec![dribble(address)],
    };
    Outcome {
        answers,
        live: is_live(address),
    }
}

fn is_live(address: SocketAddr) -> bool {
    ask(address, "GET", "/live", Duration::from_secs(5)).status == 200
}

fn head(length: usize) -> String {
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: attack\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    )
}

/// Opens connections that send the beginning of a body. All must be closed in time, and `/live` must be
/// answered meanwhile.
fn unfinished(address: SocketAddr, count: usize, bytes: usize) -> Outcome {
    let begun = Instant::now();
    let part = [head(bytes + 10).as_bytes(), &vec![b' '; bytes]].concat();
    let mut open: Vec<TcpStream> = Vec::new();
    for _ in 0..count {
        let Ok(mut stream) = connect(address) else {
            continue;
        };
        drop(stream.set_write_timeout(Some(Duration::from_millis(300))));
        // A service that accepts no more of a body refuses it in some way.
        drop(stream.write_all(&part));
        drop(stream.set_nonblocking(true));
        open.push(stream);
    }
    let live = is_live(address);
    while begun.elapsed() < LONGEST_BODY && !open.is_empty() {
        open.retain_mut(is_open);
        std::thread::sleep(Duration::from_millis(200));
    }
    let status = if open.is_empty() { 408 } else { 0 };
    Outcome {
        answers: vec![Answer {
            status,
            body: String::new(),
            time: begun.elapsed(),
        }],
        live,
    }
}

/// Returns `true` if the other side may still send. Its answers are read and dropped.
fn is_open(stream: &mut TcpStream) -> bool {
    let mut some = [0; 4096];
    match stream.read(&mut some) {
        Ok(0) => false,
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
    }
}

/// Sends a body at one byte a second.
fn dribble(address: SocketAddr) -> Answer {
    let begun = Instant::now();
    let mut answer = Answer::default();
    if let Ok(mut stream) = connect(address) {
        drop(stream.write_all(head(100_000).as_bytes()));
        drop(stream.set_nonblocking(true));
        while begun.elapsed() < LONGEST_BODY && is_open(&mut stream) && stream.write_all(b" ").is_ok() {
            std::thread::sleep(Duration::from_secs(1));
        }
        answer.status = if begun.elapsed() < LONGEST_BODY { 408 } else { 0 };
    }
    answer.time = begun.elapsed();
    answer
}

/// Returns `true` if the service answers raw bytes at all; used once at the beginning.
pub(crate) fn answers(address: SocketAddr) -> bool {
    exchange(
        address,
        b"GET /live HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
        Duration::from_secs(5),
    )
    .status
        == 200
}
