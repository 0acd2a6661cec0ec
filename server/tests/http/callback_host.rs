//! A host in the test that is asked about texts, over HTTP or HTTPS.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lexiform_server::operate::callbacks::{Allowed, Callbacks};
use serde_json::{Value, json};

/// What the host does with a question.
pub(crate) enum Reply {
    /// Answers with this JSON.
    Json(Value),
    /// Sends these bytes and closes the connection.
    Raw(String),
    /// Keeps silent.
    Silence,
}

/// A host that is asked, and what it was asked.
pub(crate) struct Host {
    pub(crate) address: SocketAddr,
    pub(crate) asked: Arc<Mutex<Vec<Value>>>,
    pub(crate) connections: Arc<Mutex<usize>>,
}

impl Host {
    /// A host that answers by this function.
    pub(crate) fn of(answer: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Self {
        Self::over(None, answer)
    }

    /// The same over HTTPS, if there is a configuration for it.
    pub(crate) fn over(
        tls: Option<Arc<rustls::ServerConfig>>,
        answer: impl Fn(&Value) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let host = Host {
            address: listener.local_addr().expect("an address"),
            asked: Arc::default(),
            connections: Arc::default(),
        };
        let (asked, connections, answer) = (host.asked.clone(), host.connections.clone(), Arc::new(answer));
        // It ends with the test.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                *connections.lock().expect("no panic") += 1;
                let (asked, answer, tls) = (asked.clone(), answer.clone(), tls.clone());
                std::thread::spawn(move || match tls {
                    None => serve(&mut { stream }, &asked, &*answer),
                    Some(tls) => {
                        let server = rustls::ServerConnection::new(tls).expect("a configuration");
                        serve(&mut rustls::StreamOwned::new(server, stream), &asked, &*answer);
                    }
                });
            }
        });
        host
    }

    /// A host that gives a verdict about each text, given the text and whether it is whole.
    pub(crate) fn judging(verdict: impl Fn(&str, bool) -> Value + Send + Sync + 'static) -> Self {
        Self::of(move |question| Reply::Json(json!({"verdicts": each(question, &verdict)})))
    }

    /// A host that scores each text.
    pub(crate) fn scoring(score: impl Fn(&str, bool) -> Value + Send + Sync + 'static) -> Self {
        Self::of(move |question| Reply::Json(json!({"scores": each(question, &score)})))
    }

    /// The callback `schema`, which this host is.
    pub(crate) fn callbacks(&self) -> Callbacks {
        self.within(super::service::PATIENCE)
    }

    /// The same, which may take so long.
    pub(crate) fn within(&self, patience: Duration) -> Callbacks {
        named(
            &[("schema", format!("http://{}/judge", self.address))],
            patience,
            None,
        )
    }

    /// Returns what it was asked so far.
    pub(crate) fn questions(&self) -> Vec<Value> {
        self.asked.lock().expect("no panic").clone()
    }

    /// Returns all texts that it was asked about.
    pub(crate) fn texts(&self) -> Vec<String> {
        let questions = self.questions();
        let texts = questions
            .iter()
            .flat_map(|question| question["texts"].as_array().expect("texts"));
        texts
            .map(|text| text.as_str().expect("a text").to_owned())
            .collect()
    }
}

/// Callbacks with these names and addresses.
pub(crate) fn named(all: &[(&str, String)], patience: Duration, authorities: Option<&Path>) -> Callbacks {
    let allowed = all
        .iter()
        .map(|(name, url)| format!("{name}={url}").parse().expect("a callback"));
    let allowed: Vec<Allowed> = allowed.collect();
    Callbacks::new(&allowed, patience, authorities).expect("callbacks")
}

fn each(question: &Value, answer: &impl Fn(&str, bool) -> Value) -> Vec<Value> {
    let texts = question["texts"].as_array().expect("texts").iter();
    let done = question["done"].as_array().expect("done").iter();
    texts
        .zip(done)
        .map(|(text, done)| answer(text.as_str().expect("a text"), done.as_bool().expect("a boolean")))
        .collect()
}

/// Answers the questions of one connection.
fn serve<S: Read + Write>(stream: &mut S, asked: &Mutex<Vec<Value>>, answer: &dyn Fn(&Value) -> Reply) {
    while let Some(question) = question(stream) {
        asked.lock().expect("no panic").push(question.clone());
        let text = match answer(&question) {
            Reply::Json(json) => {
                let body = json.to_string();
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
            }
            Reply::Raw(text) => {
                let _ = stream.write_all(text.as_bytes());
                return;
            }
            Reply::Silence => loop {
                std::thread::park();
            },
        };
        if stream
            .write_all(text.as_bytes())
            .and_then(|()| stream.flush())
            .is_err()
        {
            return;
        }
    }
}

/// Reads a question; `None` at the end of the connection.
fn question<S: Read>(stream: &mut S) -> Option<Value> {
    // Byte by byte: nothing after the body may be taken.
    let mut reader = BufReader::with_capacity(1, stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().ok()?;
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}
