//! Sends an attack and waits for the answers.

use super::table::Sent;
use crate::traffic::driver::extended;
use crate::traffic::http::{self, Answer, CHAT, ask, connect, head};
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The time after which an answer is given up.
const PATIENCE: Duration = Duration::from_secs(60);
/// The time after which a client that does not wait for its answer leaves.
const LEAVES: Duration = Duration::from_secs(1);
/// The longest time that a connection whose body never ends may stay open.
const LONGEST_BODY: Duration = Duration::from_secs(90);

/// The answers, and whether `/live` was answered meanwhile.
pub(crate) struct Outcome {
    pub(crate) answers: Vec<Answer>,
    pub(crate) live: bool,
}

/// Sends an attack. `model` replaces the model in bodies.
pub(crate) fn send(address: &str, model: &str, sent: &Sent) -> Outcome {
    let answers = match sent {
        Sent::Posts(path, bodies) => posts(address, (path, bodies), model, PATIENCE),
        Sent::Left(path, bodies) => posts(address, (path, bodies), model, LEAVES),
        Sent::Text(path, body) => vec![post(address, path, body)],
        Sent::Ask(method, path) => vec![ask(address, method, path, PATIENCE)],
        Sent::Unfinished(count, bytes) => return unfinished(address, *count, *bytes),
        Sent::Dribble => vec![dribble(address)],
    };
    let live = is_live(address);
    Outcome { answers, live }
}

/// Posts bodies at once, and waits for the answers with this patience.
fn posts(address: &str, (path, bodies): (&str, &[Value]), model: &str, patience: Duration) -> Vec<Answer> {
    std::thread::scope(|scope| {
        let send = |body: &Value| {
            let body = extended(body.clone(), json!({"model": model})).to_string();
            scope.spawn(move || http::post(address, path, &body, |answer| answer.time < patience))
        };
        let threads: Vec<_> = bodies.iter().map(send).collect();
        let answers = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_default());
        answers.collect()
    })
}

/// Posts a body, and waits for the answer with patience.
fn post(address: &str, path: &str, body: &str) -> Answer {
    http::post(address, path, body, |answer| answer.time < PATIENCE)
}

/// Returns `true` if the service answers at all.
pub(super) fn is_live(address: &str) -> bool {
    ask(address, "GET", "/live", Duration::from_secs(5)).status == 200
}

/// Opens connections that send the beginning of a body. All must be closed in time, and `/live` must be
/// answered meanwhile.
fn unfinished(address: &str, count: usize, bytes: usize) -> Outcome {
    let begun = Instant::now();
    let part = head(CHAT, bytes + 10, "keep-alive") + &" ".repeat(bytes);
    let mut open: Vec<TcpStream> = (0..count)
        .filter_map(|_| connect(address).ok())
        .map(|mut stream| {
            drop(stream.set_write_timeout(Some(Duration::from_millis(300))));
            // A service that accepts no more of a body refuses it in some way.
            drop(stream.write_all(part.as_bytes()));
            drop(stream.set_nonblocking(true));
            stream
        })
        .collect();
    let live = is_live(address);
    while begun.elapsed() < LONGEST_BODY && !open.is_empty() {
        open.retain_mut(is_open);
        std::thread::sleep(Duration::from_millis(200));
    }
    Outcome {
        answers: vec![closed(begun, open.is_empty())],
        live,
    }
}

/// Sends a body at one byte a second.
fn dribble(address: &str) -> Answer {
    let begun = Instant::now();
    let Ok(mut stream) = connect(address) else {
        return closed(begun, false);
    };
    drop(stream.write_all(head(CHAT, 100_000, "keep-alive").as_bytes()));
    drop(stream.set_nonblocking(true));
    while begun.elapsed() < LONGEST_BODY && is_open(&mut stream) && stream.write_all(b" ").is_ok() {
        std::thread::sleep(Duration::from_secs(1));
    }
    closed(begun, begun.elapsed() < LONGEST_BODY)
}

/// Returns `true` if the other side may still send. Its answers are read and dropped.
fn is_open(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0; 4096]) {
        Ok(count) => count > 0,
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    }
}

/// Returns an answer for connections without one: the status is 408 if the service has closed them.
fn closed(begun: Instant, is_closed: bool) -> Answer {
    Answer {
        status: if is_closed { 408 } else { 0 },
        time: begun.elapsed(),
        ..Answer::default()
    }
}
