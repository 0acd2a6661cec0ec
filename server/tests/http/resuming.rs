//! Streams whose connection is lost, and that are read on over another.

use std::io::BufReader;
use std::time::{Duration, Instant};

use lexiform_server::answer::resume::ResumeLimits;
use lexiform_server::routes::state::Settings;
use serde_json::{Value, json};

use super::service::{Answer, PATIENCE, Service, chat, read_chunk, read_head, roomy, unhurried};

fn keeping(bytes: usize, time: Duration) -> Service {
    let settings = Settings {
        keeping: ResumeLimits { bytes, time },
        ..Settings::default()
    };
    Service::operated(roomy(), settings, unhurried())
}

fn resumable() -> Value {
    json!({"stream": true, "stream_options": {"resumable": true}})
}

/// The numbered events of a body: numbers, and what stands in them.
fn numbered(body: &str) -> Vec<(usize, Value)> {
    let read = |event: &str| {
        let (number, data) = event.strip_prefix("id: ")?.split_once("\ndata: ")?;
        let data = serde_json::from_str(data).unwrap_or_else(|_| json!(data));
        Some((number.parse().ok()?, data))
    };
    body.split_terminator("\n\n").filter_map(read).collect()
}

fn rest(service: &Service, id: &str, last: &str) -> Answer {
    service.exchange(
        &format!("GET /v1/streams/{id} HTTP/1.1\r\nlast-event-id: {last}"),
        b"",
    )
}

/// Begins a resumable stream, reads a little, and loses the connection.
fn lost(service: &Service, content: &str) -> (String, String) {
    let mut reader = BufReader::new(service.begin("/v1/chat/completions", &chat(content, resumable())));
    let (status, headers) = read_head(&mut reader);
    assert_eq!(status, 200);
    let id = headers.iter().find(|(name, _)| name == "x-lexiform-stream");
    let mut seen = String::new();
    while numbered(&seen).len() < 3 {
        let chunk = read_chunk(&mut reader).expect("more");
        seen.push_str(std::str::from_utf8(&chunk).expect("UTF-8"));
    }
    (id.expect("the identity of the stream").1.clone(), seen)
}

/// Waits until a stream that nobody reads is gone.
fn until_forgotten(service: &Service, id: &str) {
    let begun = Instant::now();
    let mut pause = Duration::from_millis(200);
    while rest(service, id, "0").status != 404 {
        // Every look is a reader, so the looks must be rarer than what they wait for, however late that is on
        // a busy machine.
        std::thread::sleep(pause);
        pause = pause * 3 / 2;
        assert!(begun.elapsed() < PATIENCE, "the stream is still there");
    }
}

#[test]
fn a_lost_stream_is_read_on_without_a_gap() {
    let service = Service::start();
    let text = "a text of some length that is read in two parts";
    let (id, seen) = lost(&service, &format!("echo {text}"));
    let mut events = numbered(&seen);
    let last = events.last().expect("events").0;
    let answer = rest(&service, &id, &last.to_string());
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    events.extend(numbered(answer.text()));
    let numbers: Vec<usize> = events.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (0..events.len()).collect::<Vec<_>>());
    let content: String = events
        .iter()
        .filter_map(|(_, event)| event["choices"][0]["delta"]["content"].as_str())
        .collect();
    assert_eq!(content, text);
    assert_eq!(
        events.last().map(|(_, event)| event.clone()),
        Some(json!("[DONE]"))
    );
    // From the beginning, and as often as one likes.
    let again = service.get(&format!("/v1/streams/{id}"));
    assert_eq!(numbered(again.text()), events);
}

#[test]
fn a_stream_that_nobody_comes_back_for_is_forgotten_and_its_sequence_ends() {
    let service = keeping(1 << 20, Duration::from_millis(50));
    let (id, _) = lost(&service, "forever");
    service.until("the sequence is freed", |stats| {
        stats.running == 0 && stats.blocks_used == 0
    });
    until_forgotten(&service, &id);
    assert_eq!(rest(&service, &id, "0").error_code(), "stream_not_found");
}

#[test]
fn what_is_kept_is_bounded() {
    let service = keeping(4_000, Duration::from_secs(60));
    let answer = service.chat("forever", resumable());
    let events = numbered(answer.text());
    let end = &events.last().expect("events").1;
    assert_eq!(end["error"]["code"], "streams_full", "{end}");
    assert!(answer.body.len() < 8_000);
    service.until("the sequence is freed", |stats| stats.running == 0);
    let none = keeping(1 << 20, Duration::ZERO);
    let answer = none.chat("echo x", resumable());
    assert_eq!(
        (answer.status, answer.error_code().as_str()),
        (429, "streams_full")
    );
    none.until("nothing runs", |stats| stats.running == 0);
}

/// The error that ends a stream is kept too, whether there is room or not; it must be given back with the
/// rest.
#[test]
fn a_stream_that_found_no_room_gives_back_all_that_it_took() {
    let service = keeping(4_000, Duration::from_millis(50));
    for _ in 0..3 {
        let answer = service.chat("forever", resumable());
        let id = answer.header("x-lexiform-stream").expect("there is room");
        let last = &numbered(answer.text()).pop().expect("events").1;
        assert_eq!(last["error"]["code"], "streams_full", "{last}");
        until_forgotten(&service, id);
    }
    let answer = service.chat("echo some text", resumable());
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(
        numbered(answer.text()).pop().map(|(_, event)| event),
        Some(json!("[DONE]"))
    );
}

#[test]
fn numbers_that_are_none_are_refused() {
    let service = Service::start();
    let (id, _) = lost(&service, "echo some text");
    for wrong in ["x", "-1", "18446744073709551615"] {
        let answer = rest(&service, &id, wrong);
        assert_eq!(
            (answer.status, answer.error_code().as_str()),
            (400, "invalid_value")
        );
    }
    assert_eq!(rest(&service, &id, "1000000").text(), "");
    assert_eq!(rest(&service, "st_none", "0").status, 404);
}
