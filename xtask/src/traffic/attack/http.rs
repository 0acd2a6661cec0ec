//! A minimal HTTP client: it sends exactly the bytes of an attack, whole or in pieces.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The most bytes of an answer that are kept: attacks look only at its beginning.
const KEPT: usize = 1 << 20;

/// The answer to a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    /// The status; 0 if the connection ended without an answer.
    pub(crate) status: u16,
    pub(crate) body: String,
    pub(crate) time: Duration,
}

impl Answer {
    /// Returns the machine-readable reason of an error.
    pub(crate) fn code(&self) -> String {
        let body: serde_json::Value = serde_json::from_str(&self.body).unwrap_or_default();
        body["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

/// Connects, and gives up if the service does not accept the connection.
pub(crate) fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Posts JSON.
pub(crate) fn post(address: SocketAddr, path: &str, body: &str, patience: Duration) -> Answer {
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: attack\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    exchange(address, &[head.as_bytes(), body.as_bytes()].concat(), patience)
}

/// Requests a path by a method without a body.
pub(crate) fn ask(address: SocketAddr, method: &str, path: &str, patience: Duration) -> Answer {
    let head = format!("{method} {path} HTTP/1.1\r\nhost: attack\r\nconnection: close\r\n\r\n");
    exchange(address, head.as_bytes(), patience)
}

/// Sends these bytes and reads until the other side closes the connection.
pub(crate) fn exchange(address: SocketAddr, bytes: &[u8], patience: Duration) -> Answer {
    let begun = Instant::now();
    let received = connect(address).map(|mut stream| {
        drop(stream.set_write_timeout(Some(patience)));
        // A service may refuse before it has read everything; its answer can still be read.
        drop(stream.write_all(bytes));
        until_closed(&mut stream, patience)
    });
    let mut answer = parsed(&received.unwrap_or_default());
    answer.time = begun.elapsed();
    answer
}

fn until_closed(stream: &mut TcpStream, patience: Duration) -> Vec<u8> {
    let (begun, mut all, mut some) = (Instant::now(), Vec::new(), vec![0; 1 << 16]);
    drop(stream.set_read_timeout(Some(Duration::from_millis(500))));
    while begun.elapsed() < patience {
        match stream.read(&mut some) {
            Ok(0) => break,
            Ok(count) if all.len() < KEPT => all.extend_from_slice(&some[..count]),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
    }
    all
}

fn parsed(bytes: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(bytes);
    let status = text
        .strip_prefix("HTTP/1.1 ")
        .and_then(|rest| rest.get(..3)?.parse().ok());
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    Answer {
        status: status.unwrap_or(0),
        body: body.to_owned(),
        time: Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_an_error_is_read() {
        let answer =
            parsed(b"HTTP/1.1 400 Bad Request\r\na: b\r\n\r\n{\"error\":{\"code\":\"limit_exceeded\"}}");
        assert_eq!((answer.status, answer.code().as_str()), (400, "limit_exceeded"));
        assert_eq!(parsed(b"").status, 0);
    }
}
