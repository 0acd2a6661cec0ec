//! A server that does what a test tells it.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

/// What a server does with a request.
pub(super) enum Reaction {
    /// Sends these bytes and closes the connection.
    Send(String),
    /// Waits until the client is gone.
    Wait,
}

/// A server that reacts to a request by the title of its schema and the number of times that this was asked
/// for before.
pub(super) struct Scripted {
    pub(super) address: SocketAddr,
    /// The bodies of all requests, in order.
    pub(super) bodies: Arc<Mutex<Vec<Value>>>,
}

impl Scripted {
    pub(super) fn new(script: impl Fn(&str, usize) -> Reaction + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&bodies);
        let script = Arc::new(script);
        thread::spawn(move || {
            let asked = Arc::new(Mutex::new(HashMap::new()));
            for stream in listener.incoming() {
                let stream = stream.expect("a connection");
                let (script, kept, asked) = (Arc::clone(&script), Arc::clone(&kept), Arc::clone(&asked));
                thread::spawn(move || {
                    let Some(body) = body_of(&stream) else { return };
                    let title = title(&body);
                    kept.lock().expect("the bodies").push(body);
                    let before = {
                        let mut asked = asked.lock().expect("the counts");
                        let count: &mut usize = asked.entry(title.clone()).or_default();
                        *count += 1;
                        *count - 1
                    };
                    react(stream, script(&title, before));
                });
            }
        });
        Self { address, bodies }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(super) fn titles(&self) -> Vec<String> {
        self.bodies
            .lock()
            .expect("the bodies")
            .iter()
            .map(title)
            .collect()
    }
}

fn body_of(stream: &TcpStream) -> Option<Value> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

/// Returns the title of the schema in a request, which every prompt of these tests contains.
pub(super) fn title(body: &Value) -> String {
    let prompt = body["messages"][1]["content"].as_str().unwrap_or("{}");
    let schema: Value = serde_json::from_str(prompt).expect("a schema");
    schema["title"].as_str().unwrap_or_default().to_owned()
}

fn react(mut stream: TcpStream, reaction: Reaction) {
    match reaction {
        // A client that does not want the rest closes first.
        Reaction::Send(bytes) => drop(stream.write_all(bytes.as_bytes())),
        Reaction::Wait => drop(stream.read(&mut [0])),
    }
}

pub(super) fn response(status: &str, media: &str, rest: &str) -> Reaction {
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: {media}\r\nconnection: close\r\n");
    Reaction::Send(format!("{head}{rest}"))
}

pub(super) fn refused(status: &str, error: Value) -> Reaction {
    let body = json!({"error": error}).to_string();
    response(
        status,
        "application/json",
        &format!("content-length: {}\r\n\r\n{body}", body.len()),
    )
}

/// A stream with this text, in two pieces, and further events.
pub(super) fn streamed(text: &str, finish: &str, more: &[&str]) -> Reaction {
    let half = text.chars().count() / 2;
    let (first, second): (String, String) = (
        text.chars().take(half).collect(),
        text.chars().skip(half).collect(),
    );
    let piece = |text: &str, finish: Value| {
        let choice = json!({"delta": {"content": text}, "finish_reason": finish});
        format!("data: {}\n\n", json!({"choices": [choice]}))
    };
    let mut events = piece(&first, Value::Null) + &piece(&second, json!(finish));
    for event in more {
        events += &format!("data: {event}\n\n");
    }
    response(
        "200 OK",
        "text/event-stream",
        &format!("\r\n{events}data: [DONE]\n\n"),
    )
}
