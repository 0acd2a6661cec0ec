//! Clients that leave, crowds, and requests that break.

use std::io::BufReader;
use std::net::Shutdown;

use lexiform_engine::EngineConfig;
use serde_json::json;

use super::service::{Service, chat, read_chunk, read_head, roomy};

/// Guards against answers that go on when nobody reads them (I1); so do the next two.
#[test]
fn a_client_that_leaves_a_stream_frees_its_sequence() {
    let service = Service::start();
    let stream = service.begin(
        "/v1/chat/completions",
        &chat("forever", json!({"stream": true, "n": 2})),
    );
    let mut reader = BufReader::new(stream);
    assert_eq!(read_head(&mut reader).0, 200);
    assert!(read_chunk(&mut reader).is_some());
    service.until("both samples run", |stats| stats.running == 2);
    drop(reader);
    service.until("the sequences are freed", |stats| {
        stats.running == 0 && stats.blocks_used == 0
    });
}

#[test]
fn a_client_that_does_not_wait_for_its_answer_frees_its_sequence() {
    let service = Service::start();
    for half_closed in [false, true] {
        let stream = service.begin("/v1/chat/completions", &chat("forever", json!({})));
        service.until("the request runs", |stats| stats.running == 1);
        if half_closed {
            // Only our direction is closed: to the server this looks like a client that has gone, too.
            stream
                .shutdown(Shutdown::Write)
                .expect("half of the connection closes");
        } else {
            drop(stream);
        }
        service.until("the sequence is freed", |stats| {
            stats.running == 0 && stats.blocks_used == 0
        });
    }
}

#[test]
fn a_client_that_leaves_the_queue_frees_its_place() {
    let config = EngineConfig {
        max_running: 1,
        max_waiting: 1,
        ..roomy()
    };
    let service = Service::with(config, 1 << 20);
    let running = service.begin("/v1/chat/completions", &chat("forever", json!({})));
    service.until("the first runs", |stats| stats.running == 1);
    let waiting = service.begin("/v1/chat/completions", &chat("forever", json!({})));
    service.until("the second waits", |stats| stats.waiting == 1);
    let refused = service.chat("echo x", json!({}));
    assert_eq!(
        (refused.status, refused.error_code().as_str()),
        (429, "queue_full")
    );
    assert_eq!(
        (refused.header("retry-after"), refused.header("retry-after-ms")),
        (Some("1"), Some("1000"))
    );
    // Whoever fills the queue must not take the server from the router, and so from everybody.
    assert_eq!(
        (service.get("/ready").status, service.get("/live").status),
        (200, 200)
    );
    drop(waiting);
    service.until("the place is free", |stats| stats.waiting == 0);
    drop(running);
    service.until("the sequence is freed", |stats| stats.running == 0);
    assert_eq!(service.chat("echo x", json!({})).status, 200);
}

#[test]
fn a_crowd_is_answered_each_with_its_own() {
    let service = Service::start();
    std::thread::scope(|scope| {
        for number in 0..24 {
            let service = &service;
            scope.spawn(move || {
                let text = format!("number {number}");
                let body = service.chat(&format!("echo {text}"), json!({"stream": number % 2 == 0}));
                assert_eq!(body.status, 200);
                let answered = if number % 2 == 0 {
                    let events = body.events();
                    events
                        .iter()
                        .filter_map(|event| event["choices"][0]["delta"]["content"].as_str())
                        .collect()
                } else {
                    body.json()["choices"][0]["message"]["content"]
                        .as_str()
                        .unwrap_or_default()
                        .to_owned()
                };
                assert_eq!(answered, text);
            });
        }
    });
    service.until("all are done", |stats| stats.running == 0 && stats.waiting == 0);
}

/// Guards against one broken request that ends the engine (A3).
#[test]
fn a_model_that_breaks_is_one_request_s_trouble() {
    let service = Service::start();
    let answer = service.chat("panic", json!({}));
    assert_eq!(
        (answer.status, answer.error_code().as_str()),
        (500, "internal_error")
    );
    assert_eq!(
        service.chat("echo fine", json!({})).json()["choices"][0]["message"]["content"],
        "fine"
    );
}
