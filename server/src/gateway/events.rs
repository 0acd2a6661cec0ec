//! Server-sent events of the upstream.

use serde_json::{Map, Value};

use crate::gateway::failure::Failure;
use crate::gateway::upstream::{Reply, too_large};
use crate::wire::chat::upstream;
use crate::wire::error::ApiError;

/// The data of the event that ends a stream.
const DONE: &str = "[DONE]";

/// A stream of events, which is still coming.
pub(super) struct Events {
    reply: Reply,
    buffer: EventBuffer,
}

impl Events {
    /// Creates the stream of an answer's events.
    pub(super) fn new(reply: Reply) -> Self {
        let buffer = EventBuffer::new(reply.most_bytes());
        Self { reply, buffer }
    }

    /// Returns the JSON of the next event; `None` at the end of the stream.
    ///
    /// # Errors
    /// Fails if the stream is cut, silent for too long or no stream of JSON, and with an error of the
    /// upstream in it.
    pub(super) async fn next(&mut self) -> Result<Option<Map<String, Value>>, Failure> {
        let data = loop {
            if let Some(data) = self.buffer.take()? {
                break data;
            }
            match self.reply.piece().await? {
                Some(bytes) => self.buffer.push(&bytes),
                // A last event without the empty line after it is not complete.
                None => return Ok(None),
            }
        };
        if data == DONE {
            return Ok(None);
        }
        let event = upstream::object(data.as_bytes())?;
        match event.get("error").is_some_and(|error| !error.is_null()) {
            true => Err(Failure::in_stream(&event)),
            false => Ok(Some(event)),
        }
    }
}

/// The bytes of a stream that have not been read as events yet.
struct EventBuffer {
    bytes: Vec<u8>,
    /// How many of these bytes have no line break among them.
    scanned: usize,
    /// The data of the event that is being read.
    data: Option<String>,
    most: usize,
}

impl EventBuffer {
    fn new(most: usize) -> Self {
        Self {
            bytes: Vec::new(),
            scanned: 0,
            data: None,
            most,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes the data of the next event that is complete.
    fn take(&mut self) -> Result<Option<String>, ApiError> {
        let mut read = 0;
        let mut found = None;
        while let Some(length) = self.bytes[self.scanned..].iter().position(|&byte| byte == b'\n') {
            let line = &self.bytes[read..self.scanned + length];
            self.scanned += length + 1;
            read = self.scanned;
            let line = std::str::from_utf8(line).map_err(|_| ApiError::upstream_answer("it is not UTF-8"))?;
            let line = line.strip_suffix('\r').unwrap_or(line);
            if line.is_empty() {
                // Without data, as after a comment, there is no event.
                found = self.data.take();
                if found.is_some() {
                    break;
                }
            } else if let Some(data) = line.strip_prefix("data:") {
                let data = data.strip_prefix(' ').unwrap_or(data);
                match &mut self.data {
                    Some(all) => {
                        all.push('\n');
                        all.push_str(data);
                    }
                    None => self.data = Some(data.to_owned()),
                }
            }
        }
        self.bytes.drain(..read);
        self.scanned = match found.is_some() {
            true => 0,
            false => self.bytes.len(),
        };
        let held = self.bytes.len() + self.data.as_ref().map_or(0, String::len);
        match held > self.most {
            true => Err(too_large(self.most)),
            false => Ok(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_wherever_the_bytes_are_cut() {
        let text = ": hello\n\ndata: {\"a\":1}\n\nevent: x\nid: 3\ndata:{\r\ndata: }\r\n\r\n\ndata: [DONE]\n\ndata: lost";
        for size in 1..text.len() {
            let mut buffer = EventBuffer::new(100);
            let mut found = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                buffer.push(piece);
                while let Some(data) = buffer.take().expect("events") {
                    found.push(data);
                }
            }
            assert_eq!(found, ["{\"a\":1}", "{\n}", "[DONE]"], "{size}");
        }
    }

    #[test]
    fn an_event_without_an_end_reaches_the_limit() {
        for line in ["data: 0123456789\n", "0123456789"] {
            let mut buffer = EventBuffer::new(25);
            let pushed = (0..3).map(|_| {
                buffer.push(line.as_bytes());
                buffer.take().map(|found| assert_eq!(found, None))
            });
            let results: Vec<bool> = pushed.map(|taken| taken.is_ok()).collect();
            assert_eq!(results, [true, true, false], "{line}");
        }
        let mut buffer = EventBuffer::new(100);
        buffer.push(b"data: \xff\n\n");
        assert!(buffer.take().is_err());
    }
}
