//! Reads the answer of a chat completion: a stream of events, or one JSON object where a server does not
//! stream.
//!
//! ```text
//!   data: {"choices": [{"delta": {"content": "{"}, "finish_reason": null}]}      … text, with its time
//!   data: {"choices": [], "usage": {"completion_tokens": 9}}
//!   data: [DONE]
//! ```

use std::io::{BufRead, Read as _};
use std::time::Duration;

use serde_json::Value;

use super::fault::{Fault, Kind};
use super::record::{Answer, Times};

/// The most bytes that are read of an answer.
pub(super) const ANSWER_BYTES: u64 = 16 << 20;

/// The time since the request was sent.
pub(super) type Clock<'a> = &'a dyn Fn() -> Duration;

/// Reads a stream of events to its end.
///
/// # Errors
/// The stream is cut, has an error, is endless, or is not in OpenAI's format.
pub(super) fn read(reader: impl BufRead, clock: Clock<'_>) -> Result<Answer, Fault> {
    let mut reader = reader.take(ANSWER_BYTES);
    let mut reading = Reading::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = match reader.read_until(b'\n', &mut line) {
            Ok(read) => read,
            // What comes after the reason for the end is of no use.
            Err(_) if reading.answer.finish.is_some() => break,
            Err(error) => return Err(broken(error)),
        };
        // A line that was not read to its end is no event.
        if read == 0 || reader.limit() == 0 || reading.line(&line, clock())? == Next::End {
            break;
        }
    }
    reading.end(reader.limit() == 0, clock())
}

/// Reads an answer that came in one piece.
///
/// # Errors
/// It is cut, or not in OpenAI's format.
pub(super) fn read_whole(reader: impl BufRead, clock: Clock<'_>) -> Result<Answer, Fault> {
    let mut text = Vec::new();
    reader.take(ANSWER_BYTES).read_to_end(&mut text).map_err(broken)?;
    let total = clock();
    let body: Value = serde_json::from_slice(&text).map_err(|_| foreign(&text))?;
    if body.get("error").is_some_and(|error| !error.is_null()) {
        return Err(Fault::of_event(&body));
    }
    let choice = body["choices"].get(0).ok_or_else(|| foreign(&text))?;
    let mut reading = Reading::default();
    let message = &choice["message"]["content"];
    reading.answer.text = message.as_str().unwrap_or_default().to_owned();
    reading.answer.finish = choice["finish_reason"].as_str().map(str::to_owned);
    reading.keep_figures(&body, choice);
    reading.answer.times.total_ms = milliseconds(total);
    Ok(reading.answer)
}

/// Whether more lines follow.
#[derive(PartialEq, Eq)]
enum Next {
    Line,
    End,
}

/// What was read of a stream so far.
#[derive(Default)]
struct Reading {
    answer: Answer,
    is_done: bool,
}

impl Reading {
    fn line(&mut self, line: &[u8], now: Duration) -> Result<Next, Fault> {
        let text = std::str::from_utf8(line).map_err(|_| foreign(line))?.trim();
        // An empty line ends an event, and a colon begins a comment, with which servers keep connections
        // open.
        let is_other = ["event:", "id:", "retry:", ":"];
        if text.is_empty() || is_other.iter().any(|start| text.starts_with(start)) {
            return Ok(Next::Line);
        }
        let data = text.strip_prefix("data:").ok_or_else(|| foreign(line))?.trim();
        if data == "[DONE]" {
            self.is_done = true;
            return Ok(Next::End);
        }
        let event: Value = serde_json::from_str(data).map_err(|_| foreign(line))?;
        self.event(&event, now)?;
        Ok(Next::Line)
    }

    fn event(&mut self, event: &Value, now: Duration) -> Result<(), Fault> {
        if event.get("error").is_some_and(|error| !error.is_null()) {
            return Err(Fault::of_event(event));
        }
        let choice = &event["choices"][0];
        let delta = &choice["delta"];
        let said = delta["content"].as_str().unwrap_or_default();
        let thought = ["reasoning_content", "reasoning"]
            .iter()
            .find_map(|field| delta[field].as_str());
        if !said.is_empty() || thought.is_some_and(|text| !text.is_empty()) {
            let now = milliseconds(now);
            self.answer.times.first_token_ms.get_or_insert(now);
            self.answer.times.last_token_ms = Some(now);
        }
        self.answer.text.push_str(said);
        if let Some(finish) = choice["finish_reason"].as_str() {
            self.answer.finish = Some(finish.to_owned());
        }
        self.keep_figures(event, choice);
        Ok(())
    }

    /// Keeps what the server says of its own work. The last word counts: some servers send sums so far.
    fn keep_figures(&mut self, event: &Value, choice: &Value) {
        let object = |value: Option<&Value>| value.filter(|it| it.is_object()).cloned();
        if let Some(usage) = object(event.get("usage")) {
            self.answer.usage = Some(usage);
        }
        for holder in [event, choice] {
            let Some(Value::Object(told)) = object(holder.get("lexiform")) else {
                continue;
            };
            let kept = self
                .answer
                .lexiform
                .get_or_insert_with(|| Value::Object(Default::default()));
            if let Some(kept) = kept.as_object_mut() {
                kept.extend(told);
            }
        }
    }

    fn end(mut self, is_full: bool, now: Duration) -> Result<Answer, Fault> {
        if self.is_done || self.answer.finish.is_some() {
            self.answer.times = Times {
                total_ms: milliseconds(now),
                ..self.answer.times
            };
            return Ok(self.answer);
        }
        let length = self.answer.text.len();
        Err(match is_full {
            true => Fault::new(Kind::Endless, format!("more than {ANSWER_BYTES} bytes")),
            false => Fault::new(
                Kind::Cut,
                format!("the stream ended after {length} bytes of text, without a finish_reason"),
            ),
        })
    }
}

fn broken(error: std::io::Error) -> Fault {
    let fault = Fault::from(ureq::Error::from(error));
    match fault.kind {
        Kind::Late => fault,
        _ => Fault::new(Kind::Cut, fault.reason),
    }
}

/// The characters of a foreign text that are quoted.
const QUOTED_CHARACTERS: usize = 80;

fn foreign(text: &[u8]) -> Fault {
    let text = String::from_utf8_lossy(text);
    let start: String = text.trim().chars().take(QUOTED_CHARACTERS).collect();
    Fault::new(
        Kind::NotTheApi,
        format!("not a chat completion in OpenAI's format: {start:?}"),
    )
}

fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use serde_json::json;

    /// Reads a stream; the clock ticks by a millisecond with every line.
    fn read_lines(lines: &[&str]) -> Result<Answer, Fault> {
        let ticks = Cell::new(0);
        let clock = || {
            ticks.set(ticks.get() + 1);
            Duration::from_millis(ticks.get())
        };
        read(lines.join("\n").as_bytes(), &clock)
    }

    fn kind(lines: &[&str]) -> Kind {
        read_lines(lines).expect_err("a fault").kind
    }

    #[test]
    fn text_figures_and_times_are_kept() {
        let answer = read_lines(&[
            ": open",
            r#"data: {"choices": [{"delta": {"role": "assistant", "content": ""}}], "usage": null}"#,
            r#"data: {"choices": [{"delta": {"content": "{"}}]}"#,
            r#"data:{"choices": [{"delta": {"content": "}"}, "finish_reason": "stop", "lexiform": {"drafted": 1}}]}"#,
            r#"data: {"choices": [], "usage": {"completion_tokens": 2}, "lexiform": {"accepted": 1}}"#,
            "data: [DONE]",
            "data: never read",
        ])
        .expect("an answer");
        assert_eq!(
            (answer.text.as_str(), answer.finish.as_deref()),
            ("{}", Some("stop"))
        );
        assert_eq!(answer.usage, Some(json!({"completion_tokens": 2})));
        assert_eq!(answer.lexiform, Some(json!({"drafted": 1, "accepted": 1})));
        let expected = Times {
            first_token_ms: Some(3.0),
            last_token_ms: Some(4.0),
            total_ms: 7.0,
        };
        assert_eq!(answer.times, expected);
    }

    #[test]
    fn thinking_counts_as_the_first_token_and_not_as_text() {
        let answer = read_lines(&[
            r#"data: {"choices": [{"delta": {"reasoning_content": "so"}}]}"#,
            r#"data: {"choices": [{"delta": {"content": "1"}, "finish_reason": "stop"}]}"#,
        ])
        .expect("an answer");
        assert_eq!(answer.text, "1");
        assert_eq!(answer.times.first_token_ms, Some(1.0));
    }

    #[test]
    fn a_stream_without_an_end_is_cut() {
        let text = r#"data: {"choices": [{"delta": {"content": "{"}}]}"#;
        assert_eq!(kind(&[text]), Kind::Cut);
        assert_eq!(kind(&[]), Kind::Cut);
        assert_eq!(kind(&[text, r#"data: {"choi"#]), Kind::NotTheApi);
    }

    #[test]
    fn what_is_no_stream_is_quoted() {
        let fault = read_lines(&["<html>hello</html>"]).expect_err("a fault");
        assert_eq!(fault.kind, Kind::NotTheApi);
        assert!(
            fault.reason.ends_with("\"<html>hello</html>\""),
            "{}",
            fault.reason
        );
    }

    #[test]
    fn an_error_within_the_stream_ends_it() {
        assert_eq!(
            kind(&[r#"data: {"error": {"message": "x", "code": 503}}"#]),
            Kind::Busy
        );
    }

    #[test]
    fn an_endless_answer_is_not_read_to_its_end() {
        let line = "data: {\"choices\": [{\"delta\": {\"content\": \"a\"}}]}\n";
        let endless = std::io::BufReader::new(Endless(line.as_bytes(), 0));
        let fault = read(endless, &|| Duration::ZERO).expect_err("a fault");
        assert_eq!(fault.kind, Kind::Endless, "{fault:?}");
    }

    struct Endless(&'static [u8], usize);

    impl std::io::Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let rest = &self.0[self.1..];
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            self.1 = (self.1 + count) % self.0.len();
            Ok(count)
        }
    }

    #[test]
    fn an_answer_in_one_piece_has_no_first_token() {
        let body =
            json!({"choices": [{"message": {"content": "1"}, "finish_reason": "length"}], "usage": null});
        let read = |text: &str| read_whole(text.as_bytes(), &|| Duration::from_millis(9));
        let answer = read(&body.to_string()).expect("an answer");
        assert_eq!((answer.text.as_str(), answer.is_truncated()), ("1", true));
        assert_eq!((answer.times.first_token_ms, answer.times.total_ms), (None, 9.0));
        assert_eq!(read("{}").expect_err("a fault").kind, Kind::NotTheApi);
    }
}
