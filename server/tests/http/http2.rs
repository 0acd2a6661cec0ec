//! HTTP/2: a client that frames requests itself, over TLS.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use h2::client::{ResponseFuture, SendRequest};
use hyper::body::Bytes;
use hyper::http::{Method, Request, Response};
use lexiform_server::operate::tls::Certificate;
use lexiform_server::request::body::BodyLimits;
use lexiform_server::routes::state::Settings;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::security::certify;
use super::service::{PATIENCE, Service, chat};

/// A service over TLS, and whom its clients trust.
fn start(name: &str, settings: Settings, keep_alive: Duration) -> (Service, CertificateDer<'static>) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = |kind: &str| folder.join(format!("http2-{name}-{kind}.pem"));
    let root = certify(&path("cert"), &path("key"));
    let certificate = Certificate::read(&path("cert"), &path("key")).expect("a certificate");
    let tls = certificate.config().expect("a configuration");
    (Service::secured(tls, settings, keep_alive), root)
}

fn usual(name: &str) -> (Service, CertificateDer<'static>) {
    start(name, Settings::default(), PATIENCE)
}

/// Runs a test of this service, in time.
fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let test = async { tokio::time::timeout(PATIENCE, test).await.expect("in time") };
    runtime.expect("a runtime").block_on(test)
}

/// A connection on which the server wants to speak HTTP/2.
async fn secured(service: &Service, root: &CertificateDer<'static>) -> TlsStream<TcpStream> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(root.clone()).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let stream = TcpStream::connect(service.address).await.expect("it listens");
    let name = ServerName::try_from("localhost").expect("a name");
    let stream = TlsConnector::from(Arc::new(tls)).connect(name, stream).await;
    let stream = stream.expect("a handshake");
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    stream
}

/// A connection.
struct Client {
    send: SendRequest<Bytes>,
    connection: JoinHandle<Result<(), h2::Error>>,
}

impl Client {
    async fn connect(service: &Service, root: &CertificateDer<'static>) -> Self {
        let stream = secured(service, root).await;
        // A stream that nobody reads is not to take the room of the others.
        let mut client = h2::client::Builder::new();
        let client = client.initial_connection_window_size(16 << 20).handshake(stream);
        let (send, connection) = client.await.expect("HTTP/2");
        Self {
            send,
            connection: tokio::spawn(connection),
        }
    }

    /// Sends a request with this body, and the end of it unless more is to follow.
    async fn begin(
        &mut self,
        head: Request<()>,
        body: Option<&str>,
    ) -> (ResponseFuture, Option<h2::SendStream<Bytes>>) {
        let mut send = self.send.clone().ready().await.expect("room for a stream");
        let (answer, mut stream) = send
            .send_request(head, body.is_some_and(str::is_empty))
            .expect("a stream");
        match body {
            Some("") => (answer, None),
            Some(body) => {
                let body = Bytes::from(body.to_owned());
                stream.send_data(body, true).expect("a body");
                (answer, None)
            }
            None => (answer, Some(stream)),
        }
    }

    async fn ask(&mut self, method: Method, path: &str, body: &str) -> (u16, String) {
        let (answer, _) = self.begin(head(method, path), Some(body)).await;
        read(answer.await.expect("an answer")).await
    }

    async fn chat(&mut self, more: Value) -> (u16, String) {
        let body = chat("echo hello", more).to_string();
        self.ask(Method::POST, "/v1/chat/completions", &body).await
    }
}

fn head(method: Method, path: &str) -> Request<()> {
    let head = Request::builder()
        .method(method)
        .uri(format!("https://localhost{path}"))
        .header("content-type", "application/json");
    head.body(()).expect("a head")
}

/// Reads an answer to its end.
async fn read(answer: Response<h2::RecvStream>) -> (u16, String) {
    let status = answer.status().as_u16();
    let mut body = answer.into_body();
    let mut text = Vec::new();
    while let Some(data) = body.data().await {
        let data = data.expect("data");
        body.flow_control()
            .release_capacity(data.len())
            .expect("capacity");
        text.extend_from_slice(&data);
    }
    (status, String::from_utf8(text).expect("text"))
}

fn forever(stream: bool) -> String {
    chat("forever", json!({"stream": stream})).to_string()
}

#[test]
fn requests_share_a_connection_and_are_answered_as_over_http_1() {
    let (service, root) = usual("plain");
    run(async {
        let mut client = Client::connect(&service, &root).await;
        let (status, text) = client.chat(json!({})).await;
        assert_eq!(status, 200, "{text}");
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(answer["choices"][0]["message"]["content"], "hello");
        let (status, text) = client.chat(json!({"stream": true})).await;
        assert_eq!(status, 200);
        let events: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .collect();
        assert_eq!(events.last(), Some(&"[DONE]"), "{text}");
        let words = events
            .iter()
            .filter_map(|event| serde_json::from_str::<Value>(event).ok());
        let words: String = words
            .filter_map(|event| Some(event["choices"][0]["delta"]["content"].as_str()?.to_owned()))
            .collect();
        assert_eq!(words, "hello");
        let (status, text) = client.chat(json!({"n": 0})).await;
        assert!(status == 400 && text.contains("invalid_value"), "{status} {text}");
        let (status, text) = client.ask(Method::GET, "/nowhere", "").await;
        assert!(status == 404 && text.contains("error"), "{status} {text}");
        let (answer, _) = client.begin(head(Method::HEAD, "/live"), Some("")).await;
        let answer = answer.await.expect("an answer");
        assert!(answer.headers()["content-length"] == "15" && answer.headers().contains_key("x-request-id"));
        assert_eq!(read(answer).await, (200, String::new()));
        // Many at once, and one of them does not end before the others.
        let (slow, _) = client
            .begin(head(Method::POST, "/v1/chat/completions"), Some(&forever(true)))
            .await;
        let slow = slow.await.expect("a head");
        for _ in 0..3 {
            assert_eq!(client.chat(json!({})).await.0, 200);
        }
        drop(slow);
        // The client sends that nobody reads while this waits.
        while service.served().engine().stats().running > 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
}

/// Guards against a client that opens more streams than a connection may have, or with heads that fill the
/// memory.
#[test]
fn streams_and_heads_are_limited() {
    let (service, root) = usual("limits");
    run(async {
        let mut client = Client::connect(&service, &root).await;
        assert_eq!(client.ask(Method::GET, "/live", "").await.0, 200);
        assert_eq!(client.send.current_max_send_streams(), 100);
        let large = |bytes: usize| {
            let mut head = head(Method::GET, "/live");
            let value = "x".repeat(bytes).parse().expect("a value");
            head.headers_mut().insert("x-large", value);
            head
        };
        for (bytes, status) in [(32 << 10, 200), (80 << 10, 431)] {
            let (answer, _) = client.begin(large(bytes), Some("")).await;
            assert_eq!(answer.await.expect("an answer").status().as_u16(), status);
        }
    });
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short frame").to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend_from_slice(&[kind, flags]);
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// Guards against the attack that opens streams and resets them at once (CVE-2023-44487): its connection
/// ends, and others do not notice.
#[test]
fn streams_that_are_reset_at_once_end_the_connection() {
    const HEADERS: u8 = 1;
    const RST_STREAM: u8 = 3;
    const SETTINGS: u8 = 4;
    const GOAWAY: u8 = 7;
    let (service, root) = usual("reset");
    run(async {
        let mut stream = secured(&service, &root).await;
        let mut sent = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        sent.extend(frame(SETTINGS, 0, 0, &[]));
        // `:method: GET`, `:scheme: https`, `:path: /` and `:authority: localhost`, as HPACK writes them.
        let head = b"\x82\x87\x84\x41\x09localhost";
        for number in 0..200 {
            sent.extend(frame(HEADERS, 5, 2 * number + 1, head));
            sent.extend(frame(RST_STREAM, 0, 2 * number + 1, &8_u32.to_be_bytes()));
        }
        stream.write_all(&sent).await.expect("frames");
        let reason = loop {
            let mut head = [0; 9];
            stream.read_exact(&mut head).await.expect("a frame");
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let mut payload = vec![0; length];
            stream.read_exact(&mut payload).await.expect("its payload");
            if head[3] == GOAWAY {
                break u32::from_be_bytes([payload[4], payload[5], payload[6], payload[7]]);
            }
        };
        assert_eq!(reason, u32::from(h2::Reason::ENHANCE_YOUR_CALM));
        let mut other = Client::connect(&service, &root).await;
        assert_eq!(other.chat(json!({})).await.0, 200);
    });
}

#[test]
fn a_body_that_does_not_arrive_is_given_up() {
    let bodies = BodyLimits {
        time: Duration::from_millis(50),
        ..BodyLimits::default()
    };
    let settings = Settings {
        bodies,
        ..Settings::default()
    };
    let (service, root) = start("slow", settings, PATIENCE);
    run(async {
        let mut client = Client::connect(&service, &root).await;
        let (answer, stream) = client
            .begin(head(Method::POST, "/v1/chat/completions"), None)
            .await;
        let mut stream = stream.expect("a body");
        stream.send_data(Bytes::from_static(b"{"), false).expect("data");
        let (status, text) = read(answer.await.expect("an answer")).await;
        assert_eq!(status, 408, "{text}");
        assert_eq!(client.ask(Method::GET, "/live", "").await.0, 200);
    });
}

#[test]
fn a_connection_without_a_stream_is_told_to_go() {
    let (service, root) = start("idle", Settings::default(), Duration::from_millis(50));
    run(async {
        let client = Client::connect(&service, &root).await;
        let ended = client.connection.await.expect("a task");
        assert!(ended.is_ok() || ended.is_err_and(|error| error.is_go_away() || error.is_io()));
    });
}

/// Guards against clients that learn of the stop of a server from broken connections, and against a stop that
/// waits for connections on which nothing happens.
#[test]
fn a_server_that_stops_says_so_and_ends_its_streams() {
    let (service, root) = usual("drain");
    run(async {
        let mut busy = Client::connect(&service, &root).await;
        let mut idle = Client::connect(&service, &root).await;
        assert_eq!(idle.ask(Method::GET, "/live", "").await.0, 200);
        let long = chat("echo hello", json!({"stream": true})).to_string();
        let (answer, stream) = busy.begin(head(Method::POST, "/v1/chat/completions"), None).await;
        // The request is there, and its body is not: the stream is open while the server stops.
        while service.app.bodies.counts().unfinished == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        service.app.close();
        let ended = idle.connection.await.expect("a task");
        assert!(ended.is_ok() || ended.is_err_and(|error| error.is_go_away() || error.is_io()));
        let mut stream = stream.expect("a body");
        stream.send_data(Bytes::from(long), true).expect("data");
        let (status, text) = read(answer.await.expect("an answer")).await;
        assert!(status == 200 && text.contains("[DONE]"), "{status} {text}");
        let refused = busy.send.clone().ready().await;
        let refused = match refused {
            Err(_) => true,
            Ok(mut send) => match send.send_request(head(Method::GET, "/live"), true) {
                Err(_) => true,
                Ok((answer, _)) => answer.await.is_err(),
            },
        };
        assert!(refused, "a stream began after the server had said that it stops");
        // It ends by itself, or the test does not.
        let _ = busy.connection.await;
    });
}
