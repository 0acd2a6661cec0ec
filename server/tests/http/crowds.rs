//! Many clients at once, each of whom wants many texts of one request: particles and beams.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use lexiform_engine::{DraftStores, EngineConfig};
use serde_json::{Value, json};

use super::service::{Answer, PATIENCE, Service, roomy};

const CLIENTS: usize = 64;
/// Answers of each request.
const ANSWERS: usize = 8;

/// The texts that `x[bc]{1,6}` matches.
fn matches(text: &str) -> bool {
    let rest = text.strip_prefix('x').unwrap_or_default();
    (1..=6).contains(&rest.len()) && rest.bytes().all(|byte| b"bc".contains(&byte))
}

/// Asks until the queue has room, as clients do.
fn patiently(service: &Service, body: &Value) -> Answer {
    let begun = Instant::now();
    loop {
        let answer = service.chat("echo x", body.clone());
        if answer.status != 429 {
            return answer;
        }
        assert_eq!(answer.error_code(), "queue_full");
        assert!(answer.header("retry-after").is_some());
        assert!(begun.elapsed() < PATIENCE, "nobody may be refused for ever");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Sends all requests at the same moment, each from a thread of its own, and gives the answers in their
/// order.
fn at_once(service: &Service, bodies: &[Value]) -> Vec<Answer> {
    let barrier = Barrier::new(bodies.len());
    std::thread::scope(|scope| {
        let ask = |body: &Value| {
            let (barrier, body) = (&barrier, body.clone());
            scope.spawn(move || {
                barrier.wait();
                patiently(service, &body)
            })
        };
        let clients: Vec<_> = bodies.iter().map(ask).collect();
        let answers = clients
            .into_iter()
            .map(|client| client.join().expect("an answer"));
        answers.collect()
    })
}

/// A particle filter or a beam search of width eight, by the number of the client.
fn body(client: usize) -> Value {
    let ask = match client % 2 {
        0 => json!({"law": "smc", "particles": ANSWERS, "temperature": 1}),
        _ => json!({"search": {"kind": "beam", "width": ANSWERS}}),
    };
    let mut body = json!({"guided_regex": "x[bc]{1,6}", "n": ANSWERS, "seed": client, "max_tokens": 8});
    if let (Value::Object(body), Value::Object(ask)) = (&mut body, ask) {
        body.extend(ask);
    }
    body
}

/// Sixty-four clients want eight texts each, by particles and by beams: more than run at a time, and more
/// than the queue of the usual sizes holds, which counts texts. In the second service the queue holds all,
/// and the cache has room for some. All are answered as each alone would be, and nothing of them is left.
#[test]
fn particles_and_beams_of_a_crowd_are_all_answered() {
    let tight = EngineConfig {
        // A text takes two blocks or three.
        blocks: 96,
        max_running: 16,
        max_waiting: CLIENTS * ANSWERS,
        ..roomy()
    };
    for config in [roomy(), tight] {
        let (service, alone) = (Service::with(config, 1 << 20), Service::start());
        let bodies: Vec<Value> = (0..CLIENTS).map(body).collect();
        for _ in 0..3 {
            let answers = at_once(&service, &bodies);
            for (client, answer) in answers.iter().enumerate() {
                is_right(client, answer);
            }
            for client in [0, 1, CLIENTS - 2, CLIENTS - 1] {
                let expected = alone.chat("echo x", bodies[client].clone());
                assert_eq!(texts(&answers[client]), texts(&expected), "client {client}");
            }
            service.until("the end of the crowd", |stats| {
                (stats.running, stats.waiting, stats.blocks_used) == (0, 0, 0)
            });
            let stats = service.served().engine().stats();
            assert_eq!((stats.failed, stats.panics), (0, 0), "{stats:?}");
            // What is learned from answers stays, for so many owners; here every connection is one.
            let stores = DraftStores::default();
            assert!(
                stats.draft_store_bytes <= stores.owners * stores.bytes,
                "{stats:?}"
            );
        }
        assert_eq!(service.metric("lexiform_panics_total"), 0);
    }
}

fn texts(answer: &Answer) -> Vec<String> {
    let choices = answer.json()["choices"].as_array().expect("choices").clone();
    let text = |choice: &Value| choice["message"]["content"].as_str().expect("a text").to_owned();
    choices.iter().map(text).collect()
}

fn is_right(client: usize, answer: &Answer) {
    assert_eq!(answer.status, 200, "client {client}: {}", answer.text());
    let texts = texts(answer);
    assert_eq!(texts.len(), ANSWERS, "client {client}: {texts:?}");
    assert!(
        texts.iter().all(|text| matches(text)),
        "client {client}: {texts:?}"
    );
    let told = &answer.json()["choices"][0]["lexiform"];
    match client % 2 {
        // Where a seed is named, particles are resampled after each token, whatever others have taught the
        // service to draft.
        0 => assert_eq!(
            (&told["law"], &told["particles"], &told["drafted"]),
            (&json!("smc"), &json!(ANSWERS), &json!(0))
        ),
        _ => {
            assert_eq!(told["law"], "beam");
            let mut distinct = texts.clone();
            distinct.sort_unstable();
            distinct.dedup();
            assert_eq!(distinct.len(), ANSWERS, "a beam finds each text once: {texts:?}");
        }
    }
}
