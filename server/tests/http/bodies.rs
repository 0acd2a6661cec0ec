//! Bodies that do not arrive: each is given up in time, all together take no more than their room, and
//! whoever asks something small is answered meanwhile.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use lexiform_server::request::body::BodyLimits;
use lexiform_server::routes::state::Settings;
use serde_json::json;

use super::service::{PATIENCE, Service, roomy, unhurried};

fn service(limits: BodyLimits) -> Service {
    let settings = Settings {
        body_limit: 1 << 20,
        bodies: limits,
        ..Settings::default()
    };
    Service::operated(roomy(), settings, unhurried())
}

/// Sends the head of a body of this size and a part of it.
fn unfinished(service: &Service, path: &str, declared: usize, part: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(service.address).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    let head = format!("POST {path} HTTP/1.1\r\nhost: t\r\ncontent-length: {declared}\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("the head is sent");
    let _ = stream.write_all(part);
    stream
}

/// What the server says until it closes the connection.
fn rest(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// Guards against a connection that is held for ever by a body of which a byte comes now and then.
#[test]
fn a_body_that_comes_byte_by_byte_is_given_up() {
    let service = service(BodyLimits {
        time: Duration::from_secs(1),
        ..BodyLimits::default()
    });
    let mut stream = unfinished(&service, "/v1/chat/completions", 100_000, b"{");
    let begun = Instant::now();
    while stream.write_all(b" ").is_ok() {
        assert!(begun.elapsed() < PATIENCE, "it is still open");
        std::thread::sleep(Duration::from_millis(100));
    }
    let stream = unfinished(&service, "/v1/chat/completions", 100_000, b"{");
    let told = rest(stream);
    assert!(
        told.starts_with("HTTP/1.1 408") && told.contains("body_timeout"),
        "{told}"
    );
    service.until_metric("lexiform_bodies_unfinished", 0);
    service.until_metric("lexiform_body_bytes", 0);
}

/// Guards against unfinished bodies that hold gigabytes between them.
#[test]
fn bodies_have_so_many_bytes_between_them() {
    let service = service(BodyLimits {
        total_bytes: 2 << 20,
        // The first stays for as long as the test takes.
        time: PATIENCE,
        ..BodyLimits::default()
    });
    let part = vec![b' '; 900_000];
    let first = unfinished(&service, "/v1/chat/completions", 1 << 20, &part);
    while service.metric("lexiform_body_bytes") < 900_000 {
        std::thread::sleep(Duration::from_millis(2));
    }
    let told = rest(unfinished(&service, "/v1/chat/completions", 1 << 20, &part));
    assert!(
        told.starts_with("HTTP/1.1 503") && told.contains("overloaded"),
        "{told}"
    );
    // A small one still finds room.
    let answer = service.chat("echo x", json!({"guided_choice": ["x"]}));
    assert_eq!(answer.status, 200, "{}", answer.text());
    drop(first);
    service.until_metric("lexiform_body_bytes", 0);
}

/// Guards against connections with unfinished bodies that keep everybody else out.
#[test]
fn a_crowd_of_unfinished_bodies_displaces_itself() {
    let service = service(BodyLimits {
        unfinished: 8,
        ..BodyLimits::default()
    });
    let crowd: Vec<TcpStream> = (0..60)
        .map(|_| unfinished(&service, "/v1/chat/completions", 1 << 20, b"{"))
        .collect();
    for path in ["/live", "/ready", "/metrics"] {
        assert_eq!(service.get(path).status, 200, "{path}");
    }
    assert!(service.metric("lexiform_bodies_unfinished") <= 8);
    assert_eq!(
        service.chat("echo x", json!({"guided_choice": ["x"]})).status,
        200
    );
    let mut ended = 0;
    for stream in crowd.into_iter().take(40) {
        let told = rest(stream);
        ended += usize::from(told.starts_with("HTTP/1.1 503") && told.contains("overloaded"));
    }
    assert!(ended >= 30, "{ended}");
}

/// Guards against bodies that nobody reads, at routes that take none or to those who have no right to ask.
#[test]
fn a_body_that_nobody_wants_holds_no_connection() {
    let service = Service::start();
    for path in ["/live", "/nowhere", "/v1/models"] {
        let told = rest(unfinished(&service, path, 1 << 20, b"{"));
        assert!(told.starts_with("HTTP/1.1 4"), "{path}: {told}");
    }
}
