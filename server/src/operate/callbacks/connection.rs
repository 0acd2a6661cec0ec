//! A connection to a host: HTTP/1.1 as far as the answers to small questions need it.

use std::fmt;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::address::Address;

/// The most bytes of the head of an answer, and of its body.
const MOST_HEAD: usize = 16 << 10;
const MOST_BODY: usize = 8 << 20;

/// A connection that can be used for one question after the other.
pub(super) struct Connection {
    stream: Stream,
    /// What was read and not used yet.
    read: Vec<u8>,
    /// `true` once a byte of the answer to the last question has come.
    has_answered: bool,
    stays_open: bool,
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Stream {
    fn socket(&self) -> &TcpStream {
        match self {
            Stream::Plain(socket) => socket,
            Stream::Tls(stream) => &stream.sock,
        }
    }

    /// Lets the next read or write take until the deadline.
    fn until(&self, deadline: Instant) -> Result<()> {
        let left = left(deadline)?;
        self.socket().set_read_timeout(Some(left))?;
        self.socket().set_write_timeout(Some(left))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Stream::Plain(socket) => socket.write_all(bytes),
            Stream::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }

    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        match self {
            Stream::Plain(socket) => socket.read(into),
            Stream::Tls(stream) => stream.read(into),
        }
    }
}

/// Returns the time until a deadline.
fn left(deadline: Instant) -> Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    match left.is_zero() {
        true => Err(Error::new(ErrorKind::TimedOut, "its time is over")),
        false => Ok(left),
    }
}

/// Returns an error about an answer.
fn wrong(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidData, message.into())
}

impl Connection {
    /// Connects to a host.
    pub(super) fn open(
        address: &Address,
        tls: Option<&Arc<ClientConfig>>,
        deadline: Instant,
    ) -> Result<Self> {
        let host = address.host.trim_matches(['[', ']']);
        let mut failed = wrong("the host has no address");
        let mut connected = None;
        for place in (host, address.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&place, left(deadline)?) {
                Ok(socket) => {
                    connected = Some(socket);
                    break;
                }
                Err(error) => failed = error,
            }
        }
        let socket = connected.ok_or(failed)?;
        socket.set_nodelay(true)?;
        let stream = match tls {
            None => Stream::Plain(socket),
            Some(config) => {
                let name = ServerName::try_from(host.to_owned()).map_err(Error::other)?;
                let client = ClientConnection::new(config.clone(), name).map_err(Error::other)?;
                Stream::Tls(Box::new(StreamOwned::new(client, socket)))
            }
        };
        Ok(Connection {
            stream,
            read: Vec::new(),
            has_answered: false,
            stays_open: true,
        })
    }

    /// Returns `true` if the connection can be used again.
    pub(super) fn stays_open(&self) -> bool {
        self.stays_open && self.read.is_empty()
    }

    /// Returns `true` if a byte of the last answer has come.
    pub(super) fn has_answered(&self) -> bool {
        self.has_answered
    }

    /// Sends a body, and returns the body of the answer.
    ///
    /// # Errors
    /// Fails if there is none with status 200 before the deadline.
    pub(super) fn post(&mut self, address: &Address, body: &str, deadline: Instant) -> Result<Vec<u8>> {
        self.has_answered = false;
        let Address { host, port, path, .. } = address;
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: {host}:{port}\r\ncontent-type: application/json\r\naccept: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.until(deadline)?;
        self.stream.write(request.as_bytes())?;
        let head = self.head(deadline)?;
        self.stays_open = head.stays_open;
        if head.status != 200 {
            return Err(wrong(format!("it answered with status {}", head.status)));
        }
        match head.length {
            Length::Known(length) => self.take(length, deadline),
            Length::Chunked => self.chunks(deadline),
            Length::ToTheEnd => self.rest(deadline),
        }
    }

    /// Reads more; returns `false` at the end of the connection.
    fn more(&mut self, deadline: Instant) -> Result<bool> {
        let mut buffer = [0; 8192];
        self.stream.until(deadline)?;
        let length = match self.stream.read(&mut buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => left(deadline).map(|_| None),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
            Ok(length) => Ok(Some(length)),
        }?;
        if let Some(length) = length {
            self.has_answered |= length > 0;
            self.read.extend_from_slice(&buffer[..length]);
        }
        Ok(length != Some(0))
    }

    fn head(&mut self, deadline: Instant) -> Result<Head> {
        loop {
            let mut headers = [httparse::EMPTY_HEADER; 64];
            let mut response = httparse::Response::new(&mut headers);
            let parsed = response.parse(&self.read);
            let parsed = parsed.map_err(|error| wrong(format!("its answer is not HTTP: {error}")))?;
            if let httparse::Status::Complete(length) = parsed {
                let head = Head::of(&response)?;
                self.read.drain(..length);
                return Ok(head);
            }
            if self.read.len() > MOST_HEAD {
                return Err(wrong("the head of its answer is too long"));
            }
            if !self.more(deadline)? {
                return Err(wrong("it closed the connection before its answer"));
            }
        }
    }

    /// Takes so many bytes.
    fn take(&mut self, length: usize, deadline: Instant) -> Result<Vec<u8>> {
        if length > MOST_BODY {
            return Err(wrong(format!("its answer has more than {MOST_BODY} bytes")));
        }
        while self.read.len() < length {
            if !self.more(deadline)? {
                return Err(wrong("it closed the connection inside its answer"));
            }
        }
        let rest = self.read.split_off(length);
        Ok(std::mem::replace(&mut self.read, rest))
    }

    fn rest(&mut self, deadline: Instant) -> Result<Vec<u8>> {
        while self.more(deadline)? {
            if self.read.len() > MOST_BODY {
                return Err(wrong(format!("its answer has more than {MOST_BODY} bytes")));
            }
        }
        Ok(std::mem::take(&mut self.read))
    }

    fn chunks(&mut self, deadline: Instant) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.line(deadline)?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(|_| wrong("its answer has a broken chunk"))?;
            if size == 0 {
                break;
            }
            let whole = size.saturating_add(body.len());
            if whole > MOST_BODY {
                return Err(wrong(format!("its answer has more than {MOST_BODY} bytes")));
            }
            body.extend(self.take(size, deadline)?);
            if !self.line(deadline)?.is_empty() {
                return Err(wrong("its answer has a broken chunk"));
            }
        }
        // Fields after the chunks, which end with an empty line.
        while !self.line(deadline)?.is_empty() {}
        Ok(body)
    }

    fn line(&mut self, deadline: Instant) -> Result<String> {
        loop {
            if let Some(length) = self.read.windows(2).position(|pair| pair == b"\r\n") {
                let line: Vec<u8> = self.read.drain(..length + 2).collect();
                return Ok(String::from_utf8_lossy(&line[..length]).into_owned());
            }
            if self.read.len() > MOST_HEAD {
                return Err(wrong("its answer has a broken chunk"));
            }
            if !self.more(deadline)? {
                return Err(wrong("it closed the connection inside its answer"));
            }
        }
    }
}

/// What the head of an answer says.
struct Head {
    status: u16,
    length: Length,
    stays_open: bool,
}

/// How the end of a body is found.
enum Length {
    Known(usize),
    Chunked,
    ToTheEnd,
}

impl Head {
    fn of(response: &httparse::Response<'_, '_>) -> Result<Head> {
        let (mut length, mut stays_open) = (Length::ToTheEnd, response.version == Some(1));
        let mut is_chunked = false;
        for header in response.headers.iter() {
            let value = String::from_utf8_lossy(header.value).trim().to_ascii_lowercase();
            match header.name.to_ascii_lowercase().as_str() {
                "content-length" => {
                    let number = value.parse::<usize>();
                    length = Length::Known(number.map_err(|_| wrong("its answer has a broken length"))?);
                }
                "transfer-encoding" if value == "chunked" => is_chunked = true,
                "transfer-encoding" | "content-encoding" if value != "identity" => {
                    return Err(wrong(format!("its answer is encoded as {value}")));
                }
                "connection" => stays_open = value != "close" && (stays_open || value == "keep-alive"),
                _ => (),
            }
        }
        if is_chunked {
            length = Length::Chunked;
        }
        stays_open &= !matches!(length, Length::ToTheEnd);
        Ok(Head {
            status: response.code.unwrap_or(0),
            length,
            stays_open,
        })
    }
}
