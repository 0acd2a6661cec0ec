//! An HTTP/1.1 client directly on a TCP connection, so that no layer between it and the service hides a
//! mistake.
//!
//! ```text
//!   post, ask ─► exchange ─► connect ─► talk ─► Answer: status, body, times, and what broke it
//! ```
//!
//! A request never fails: the [`Answer`] holds what was received, and the error that ended the connection.
//! [`connect`] and [`head`] are also the parts of requests that are sent slowly or never finished.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// The path of a request for a text.
pub(crate) const CHAT: &str = "/v1/chat/completions";
/// The time within which a connection must be accepted.
const CONNECT: Duration = Duration::from_secs(5);
/// The longest time without progress while a request is written.
const WRITE: Duration = Duration::from_secs(60);
/// The interval at which a client that waits for bytes is asked whether it goes on.
const TICK: Duration = Duration::from_millis(100);

/// The answer to a request, as far as it was received.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// The status; 0 until the whole head is received.
    pub(crate) status: u16,
    /// The body without its chunk sizes; empty until the answer ends.
    pub(crate) body: String,
    /// The time from the start of the request to the first byte of the body.
    pub(crate) first: Option<Duration>,
    /// The time from the start of the request to the end of the answer, or to now.
    pub(crate) time: Duration,
    /// The error that ended the connection.
    pub(crate) broken: Option<std::io::Error>,
}

impl Answer {
    /// Returns the body as JSON, or `null` if it is none.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// Returns the machine-readable reason of an error.
    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

/// Sends a request without a body on a new connection; gives up after `patience`.
pub(crate) fn ask(address: &str, method: &str, path: &str, patience: Duration) -> Answer {
    let head = format!("{method} {path} HTTP/1.1\r\nhost: xtask\r\nconnection: close\r\n\r\n");
    exchange(address, &head, |answer| answer.time < patience)
}

/// Posts JSON on a new connection. Reads the answer until it ends, or until `goes_on` returns `false`.
pub(crate) fn post(address: &str, path: &str, body: &str, goes_on: impl Fn(&Answer) -> bool) -> Answer {
    exchange(address, &(head(path, body.len(), "close") + body), goes_on)
}

/// Returns the head of a request with a body of JSON.
pub(crate) fn head(path: &str, length: usize, connection: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: xtask\r\nconnection: {connection}\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n"
    )
}

/// Posts JSON as one of several clients, which a service that trusts this machine as a proxy tells apart by
/// their numbers.
pub(crate) fn post_as(
    client: usize,
    address: &str,
    (path, body): (&str, &str),
    goes_on: impl Fn(&Answer) -> bool,
) -> Answer {
    let request = as_client(client, &head(path, body.len(), "close")) + body;
    exchange(address, &request, goes_on)
}

/// Returns the head of a request with the address of a client, behind the first line.
pub(crate) fn as_client(client: usize, head: &str) -> String {
    let [_, high, middle, low] = (client as u32).to_be_bytes();
    with(head, &format!("x-forwarded-for: 10.{high}.{middle}.{low}"))
}

/// Returns the head of a request with an API key, behind the first line.
pub(crate) fn with_key(key: &str, head: &str) -> String {
    with(head, &format!("authorization: Bearer {key}"))
}

/// Returns the head of a request with a further line.
fn with(head: &str, line: &str) -> String {
    head.replacen("\r\n", &format!("\r\n{line}\r\n"), 1)
}

/// Connects to `HOST:PORT`.
pub(crate) fn connect(address: &str) -> std::io::Result<TcpStream> {
    let mut failed = ErrorKind::AddrNotAvailable.into();
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(TICK))?;
                stream.set_write_timeout(Some(WRITE))?;
                return Ok(stream);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Sends a whole request on a new connection. Reads the answer until it ends, or until `goes_on` returns
/// `false`.
pub(crate) fn exchange(address: &str, request: &str, goes_on: impl Fn(&Answer) -> bool) -> Answer {
    let begun = Instant::now();
    match connect(address) {
        Ok(mut stream) => talk(&mut stream, begun, request, goes_on),
        Err(error) => Answer {
            time: begun.elapsed(),
            broken: Some(error),
            ..Answer::default()
        },
    }
}

/// Sends a request, and reads until the answer is whole, the other side closes the connection, or `goes_on`
/// returns `false`. Times are counted from `begun`.
pub(crate) fn talk(
    stream: &mut TcpStream,
    begun: Instant,
    request: &str,
    goes_on: impl Fn(&Answer) -> bool,
) -> Answer {
    // A service may refuse a request before it has read all of it; its answer can still be read.
    let written = stream.write_all(request.as_bytes());
    let (mut answer, mut received, mut some) = (Answer::default(), Vec::new(), [0; 1 << 14]);
    let mut head = None;
    answer.broken = loop {
        answer.time = begun.elapsed();
        head = head.or_else(|| Head::read(&received));
        if let Some(head) = &head {
            answer.status = head.status;
            if received.len() > head.end {
                answer.first = answer.first.or(Some(answer.time));
            }
            if head
                .length
                .is_some_and(|length| received.len() >= head.end + length)
            {
                break None;
            }
        }
        if !goes_on(&answer) {
            break Some(ErrorKind::TimedOut.into());
        }
        match stream.read(&mut some) {
            Ok(0) => break None,
            Ok(count) => received.extend_from_slice(&some[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => break Some(error),
        }
    };
    if let Some(head) = head {
        answer.body = head.body(&received[head.end..]);
    } else if let Err(error) = written {
        answer.broken = Some(error);
    }
    answer
}

/// The head of an answer.
struct Head {
    status: u16,
    length: Option<usize>,
    is_chunked: bool,
    /// The number of its bytes.
    end: usize,
}

impl Head {
    /// Returns `None` until all of it is received.
    fn read(received: &[u8]) -> Option<Self> {
        let end = received.windows(4).position(|it| it == b"\r\n\r\n")? + 4;
        let text = String::from_utf8_lossy(&received[..end]).to_ascii_lowercase();
        let status = text
            .strip_prefix("http/1.1 ")
            .and_then(|rest| rest.get(..3)?.parse().ok());
        let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
        Some(Self {
            status: status.unwrap_or(0),
            length: length.and_then(|it| it.trim().parse().ok()),
            is_chunked: text.contains("\r\ntransfer-encoding: chunked\r\n"),
            end,
        })
    }

    fn body(&self, rest: &[u8]) -> String {
        let rest = &rest[..rest.len().min(self.length.unwrap_or(usize::MAX))];
        let joined = self.is_chunked.then(|| joined(rest));
        String::from_utf8_lossy(joined.as_deref().unwrap_or(rest)).into_owned()
    }
}

/// Returns the bytes of chunks without their sizes.
fn joined(mut chunks: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(line) = chunks.windows(2).position(|it| it == b"\r\n") {
        let size = String::from_utf8_lossy(&chunks[..line]);
        let size = usize::from_str_radix(&size, 16).unwrap_or(0);
        let chunk = &chunks[line + 2..];
        all.extend_from_slice(&chunk[..size.min(chunk.len())]);
        chunks = chunk.get(size + 2..).unwrap_or_default();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// Returns what is read of a connection on which these bytes are sent.
    fn answer(bytes: &'static [u8]) -> Answer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let service = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1 << 10]).unwrap();
            stream.write_all(bytes).unwrap();
        });
        let answer = ask(&address, "GET", "/", Duration::from_secs(60));
        service.join().unwrap();
        answer
    }

    #[test]
    fn an_answer_with_a_length_is_read() {
        let error = answer(
            b"HTTP/1.1 400 Bad Request\r\nContent-Length: 35\r\n\r\n{\"error\":{\"code\":\"limit_exceeded\"}} ignored",
        );
        assert_eq!((error.status, error.code().as_str()), (400, "limit_exceeded"));
        assert!(error.broken.is_none() && error.first.is_some());
    }

    #[test]
    fn chunks_are_joined_also_where_the_last_is_missing() {
        let chunked =
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\ndefghijklm\r\n0\r\n\r\n";
        assert_eq!(answer(chunked).body, "abcdefghijklm");
        assert_eq!(answer(&chunked[..60]).body, "abcde");
    }

    #[test]
    fn a_connection_without_an_answer_has_no_status() {
        assert_eq!(answer(b"").status, 0);
        assert_eq!(answer(b"HTTP/1.1 200 OK\r\n").status, 0);
        assert!(ask("127.0.0.1:1", "GET", "/", TICK).broken.is_some());
    }
}
