//! A provider in the test, which answers by a script, and a gateway in front of it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use actix_web::dev::ServerHandle;
use lexiform::project::Profile;
use lexiform_server::gateway::server::{Listening, server};
use lexiform_server::gateway::upstream::{Bounds, Upstream};
use lexiform_server::gateway::{Gateway, Limits};
use serde_json::{Value, json};

use crate::service::{Answer, PATIENCE};

/// A request that the provider got.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// What the provider does with a request.
pub(crate) enum Reply {
    /// Answers with this status and JSON.
    Json(u16, Value),
    /// Sends these bytes and closes the connection.
    Raw(String),
    /// Sends these bytes, and then waits until the gateway has left.
    Hangs(String),
}

/// The answer of a chat with this message.
pub(crate) fn said(message: Value) -> Reply {
    let finish = match message.get("tool_calls") {
        Some(_) => "tool_calls",
        None => "stop",
    };
    Reply::Json(
        200,
        chat(json!([{"index": 0, "message": message, "logprobs": null, "finish_reason": finish}])),
    )
}

/// A chat with these choices.
pub(crate) fn chat(choices: Value) -> Value {
    json!({"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": choices,
           "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}})
}

/// A stream of these choices and further events, up to its end.
pub(crate) fn stream(events: &[Value]) -> String {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let events: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    format!("{head}{events}")
}

/// A piece of a stream with what is new in one choice.
pub(crate) fn piece(index: usize, delta: Value, finish: Value) -> Value {
    json!({"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m",
           "choices": [{"index": index, "delta": delta, "finish_reason": finish}]})
}

/// A provider, what it was asked, and how many of its connections the gateway has left early.
pub(crate) struct Provider {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    left: Arc<AtomicUsize>,
}

impl Provider {
    /// A provider that answers by this function of a request and the number of those before it.
    pub(crate) fn of(answer: impl Fn(&Asked, usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let provider = Self {
            address: listener.local_addr().expect("an address"),
            asked: Arc::default(),
            left: Arc::default(),
        };
        let (asked, left, answer) = (provider.asked.clone(), provider.left.clone(), Arc::new(answer));
        // It ends with the test.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (asked, left, answer) = (asked.clone(), left.clone(), answer.clone());
                std::thread::spawn(move || serve(stream, &asked, &left, &*answer));
            }
        });
        provider
    }

    /// A provider that says these messages, one after the other.
    pub(crate) fn saying(messages: &[Value]) -> Self {
        let messages = messages.to_vec();
        Self::of(move |_, number| said(messages[number.min(messages.len() - 1)].clone()))
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("no panic").clone()
    }

    /// Waits until it was asked so often.
    pub(crate) fn until_asked(&self, times: usize) {
        self.until("it was not asked", || self.asked().len() >= times);
    }

    /// Waits until the gateway has left so many connections early.
    pub(crate) fn until_left(&self, times: usize) {
        self.until("nobody left", || self.left.load(Ordering::Acquire) >= times);
    }

    fn until(&self, what: &str, condition: impl Fn() -> bool) {
        let begun = Instant::now();
        while !condition() {
            assert!(begun.elapsed() < PATIENCE, "{what}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Answers the requests of one connection.
fn serve(
    mut stream: TcpStream,
    asked: &Mutex<Vec<Asked>>,
    left: &AtomicUsize,
    answer: &dyn Fn(&Asked, usize) -> Reply,
) {
    while let Some(request) = request(&mut stream) {
        let number = {
            let mut asked = asked.lock().expect("no panic");
            asked.push(request.clone());
            asked.len() - 1
        };
        match answer(&request, number) {
            Reply::Json(status, json) => {
                let body = json.to_string();
                let head = format!(
                    "HTTP/1.1 {status} X\r\nretry-after: 7\r\ncontent-length: {}",
                    body.len()
                );
                if stream
                    .write_all(format!("{head}\r\n\r\n{body}").as_bytes())
                    .is_err()
                {
                    return;
                }
            }
            Reply::Raw(text) => {
                let _ = stream.write_all(text.as_bytes());
                return;
            }
            Reply::Hangs(text) => {
                let _ = stream.write_all(text.as_bytes());
                let _ = stream.read_to_end(&mut Vec::new());
                left.fetch_add(1, Ordering::Release);
                return;
            }
        }
    }
}

/// Reads a request; `None` at the end of the connection.
fn request(stream: &mut TcpStream) -> Option<Asked> {
    // Byte by byte: nothing after the body may be taken.
    let mut reader = BufReader::with_capacity(1, stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.to_owned())),
            None => break,
        }
    }
    let asked = Asked {
        path,
        headers,
        body: Value::Null,
    };
    let length = asked.header("content-length").map_or(Ok(0), str::parse).ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = serde_json::from_slice(&body).unwrap_or_default();
    Some(Asked { body, ..asked })
}

/// A running gateway; it ends with this value.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    handle: ServerHandle,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Running {
    /// A gateway to a provider that takes strict schemas of OpenAI.
    pub(crate) fn to(provider: &Provider) -> Self {
        Self::within(provider.address, Limits::default(), Bounds::default())
    }

    /// The same with other limits.
    pub(crate) fn within(address: SocketAddr, limits: Limits, bounds: Bounds) -> Self {
        let upstream = Upstream::new(&format!("http://{address}/v1/"), None, None, bounds);
        let profile = Profile::named("openai-strict").expect("a profile");
        let gateway = Arc::new(Gateway::new(upstream.expect("an address"), profile, limits));
        let (sender, receiver) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            actix_web::rt::System::new().block_on(async move {
                let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
                let address = listener.local_addr().expect("an address");
                let listening = Listening {
                    workers: 2,
                    connections: 64,
                    drain_seconds: 1,
                    keep_alive: PATIENCE,
                };
                let server = server(gateway, listener, listening).expect("a server");
                sender.send((server.handle(), address)).expect("the test waits");
                server.await.expect("the server ends well");
            });
        });
        let (handle, address) = receiver.recv().expect("the server starts");
        Self {
            address,
            handle,
            thread: Some(thread),
        }
    }

    /// Sends a request and leaves the answer on the connection.
    pub(crate) fn begin(&self, head: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        let length = body.len();
        let sent = format!(
            "{head}\r\nhost: test\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(sent.as_bytes()).expect("the request is sent");
        stream
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        Answer::read(self.begin(&format!("GET {path} HTTP/1.1"), ""))
    }

    /// Begins a chat with more fields.
    pub(crate) fn begin_chat(&self, more: &Value) -> TcpStream {
        let body = crate::service::chat("hi", more.clone()).to_string();
        self.begin(
            "POST /v1/chat/completions HTTP/1.1\r\nauthorization: Bearer of-the-client",
            &body,
        )
    }

    /// A chat with more fields.
    pub(crate) fn chat(&self, more: &Value) -> Answer {
        Answer::read(self.begin_chat(more))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.handle.stop(false));
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(
                ended.is_ok() || std::thread::panicking(),
                "the gateway's thread panicked"
            );
        }
    }
}
