//! A client that believes nothing: what came back is a whole answer, a refusal, or broken, and it says which.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long a client waits for the next bytes before it calls the answer broken; no test waits for it when
/// all is well.
pub(crate) const SILENCE: Duration = Duration::from_secs(300);

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// An answer with its end, and its text.
    Whole(String),
    /// A stream that ended with an error event of this code.
    Told(String),
    /// Another status than 200.
    Refused(u16),
    /// No connection, or one that broke before the end.
    Broken,
}

/// A request for so many letters a and b, told apart by its number: every other one is streamed.
pub(crate) fn letters(count: usize, number: usize) -> Value {
    json!({
        "model": "tiny", "messages": [{"role": "user", "content": format!("request {number}")}], "seed": number,
        "temperature": 1, "max_tokens": count + 2, "stream": number.is_multiple_of(2),
        "guided_regex": format!("[ab]{{{count}}}")
    })
}

/// Whether a text is what [`letters`] asked for.
pub(crate) fn obeys(text: &str, count: usize) -> bool {
    text.len() == count && text.bytes().all(|byte| byte == b'a' || byte == b'b')
}

/// A request on its way.
pub(crate) struct Asked(TcpStream);

impl Asked {
    /// Sends a request, if there is somebody to take it.
    pub(crate) fn send(address: &str, body: &Value) -> Option<Self> {
        let mut stream = TcpStream::connect(address).ok()?;
        stream.set_read_timeout(Some(SILENCE)).ok()?;
        let body = body.to_string();
        let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\
                    content-type: application/json";
        let request = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).ok()?;
        Some(Self(stream))
    }

    /// Waits for the first bytes of the answer, without taking them.
    pub(crate) fn begun(&self) {
        let mut first = [0];
        assert_eq!(self.0.peek(&mut first).ok(), Some(1), "an answer begins");
    }

    /// Reads to the end, whatever end it is.
    pub(crate) fn outcome(mut self) -> Outcome {
        let mut bytes = Vec::new();
        let ended = self.0.read_to_end(&mut bytes).is_ok();
        let text = String::from_utf8_lossy(&bytes);
        match text.split_once("\r\n\r\n") {
            Some((head, body)) if ended => judged(head, body),
            _ => Outcome::Broken,
        }
    }
}

/// Asks and waits.
pub(crate) fn ask(address: &str, body: &Value) -> Outcome {
    Asked::send(address, body).map_or(Outcome::Broken, Asked::outcome)
}

fn judged(head: &str, body: &str) -> Outcome {
    let head = head.to_ascii_lowercase();
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    match (status, length) {
        (Some(200), None) => joined(body).map_or(Outcome::Broken, |body| streamed(&body)),
        (Some(200), Some(length)) if length == body.len() => plain(body),
        (Some(200), Some(_)) | (None, _) => Outcome::Broken,
        (Some(other), _) => Outcome::Refused(other),
    }
}

/// The chunks of a body put together, if the last one is there. A proxy may cut them anywhere.
fn joined(mut body: &str) -> Option<String> {
    let mut whole = String::new();
    loop {
        let (size, rest) = body.split_once("\r\n")?;
        let size = usize::from_str_radix(size, 16).ok()?;
        if size == 0 {
            return (rest == "\r\n").then_some(whole);
        }
        whole.push_str(rest.get(..size)?);
        body = rest.get(size..)?.strip_prefix("\r\n")?;
    }
}

fn plain(body: &str) -> Outcome {
    let answer: Value = serde_json::from_str(body).unwrap_or_default();
    let content = answer["choices"][0]["message"]["content"].as_str();
    content.map_or(Outcome::Broken, |text| Outcome::Whole(text.to_owned()))
}

fn streamed(body: &str) -> Outcome {
    let (mut text, mut done) = (String::new(), false);
    for data in body.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let event: Value = serde_json::from_str(data).unwrap_or_default();
        if let Some(code) = event["error"]["code"].as_str() {
            return Outcome::Told(code.to_owned());
        }
        text.push_str(
            event["choices"][0]["delta"]["content"]
                .as_str()
                .unwrap_or_default(),
        );
        done |= data == "[DONE]";
    }
    if done {
        Outcome::Whole(text)
    } else {
        Outcome::Broken
    }
}

/// Clients that ask again and again until they are told to stop.
#[derive(Default)]
pub(crate) struct Crowd {
    outcomes: Mutex<Vec<Outcome>>,
    enough: AtomicBool,
}

impl Crowd {
    /// Asks for letters at this address with four clients while `meanwhile` does what it does; gives all
    /// outcomes.
    pub(crate) fn asks(address: &str, count: usize, meanwhile: impl FnOnce(&Self)) -> Vec<Outcome> {
        let crowd = Self::default();
        std::thread::scope(|scope| {
            for client in 0..4 {
                let crowd = &crowd;
                scope.spawn(move || crowd.client(address, count, client));
            }
            // A failing assertion in `meanwhile` must not leave the clients running: the scope would wait for
            // ever.
            let stopper = Stopper(&crowd.enough);
            meanwhile(&crowd);
            drop(stopper);
        });
        crowd.outcomes.into_inner().expect("no client panicked")
    }

    fn client(&self, address: &str, count: usize, client: usize) {
        let mut number = client;
        while !self.enough.load(Ordering::Acquire) {
            let outcome = ask(address, &letters(count, number));
            if outcome == Outcome::Broken {
                std::thread::sleep(Duration::from_millis(5));
            }
            self.outcomes.lock().expect("no client panicked").push(outcome);
            number += 5;
        }
    }

    /// Waits until so many more whole answers have come.
    pub(crate) fn until_answered(&self, more: usize) {
        let whole = || {
            let outcomes = self.outcomes.lock().expect("no client panicked");
            outcomes
                .iter()
                .filter(|it| matches!(it, Outcome::Whole(_)))
                .count()
        };
        let (wanted, begun) = (whole() + more, Instant::now());
        while whole() < wanted {
            assert!(begun.elapsed() < SILENCE, "nobody is answered");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

struct Stopper<'a>(&'a AtomicBool);

impl Drop for Stopper<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
