//! What one client sends does not keep others waiting.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lexiform_engine::EngineConfig;
use lexiform_server::model::limits::RequestLimits;
use lexiform_server::operate::keys::{Keys, hashed};
use lexiform_server::routes::state::Settings;
use serde_json::{Value, json};

use super::operations::very_slow_schema;
use super::service::{Answer, PATIENCE, Service, chat, roomy};

/// Compiles of the heavy client: many more than there are threads.
const COMPILES: usize = 40;

/// A service with a key for each of these.
fn keyed(names: [&str; 2]) -> Service {
    keyed_with(names, roomy())
}

fn keyed_with(names: [&str; 2], config: EngineConfig) -> Service {
    let key = |name| format!("[[keys]]\nname = \"{name}\"\nsha256 = \"{}\"\n", hashed(name));
    let settings = Settings {
        keys: Keys::parse(&names.map(key).concat()).expect("a file of keys"),
        ..Settings::default()
    };
    Service::operated(config, settings, RequestLimits::default())
}

fn ask(service: &Service, key: &str, more: Value) -> Answer {
    let head = "POST /v1/chat/completions HTTP/1.1\r\ncontent-type: application/json";
    let body = chat("echo x", more).to_string();
    service.exchange(&format!("{head}\r\nauthorization: Bearer {key}"), body.as_bytes())
}

/// As vLLM has it: the lower number is the more urgent one. What it takes the place of goes on later.
#[test]
fn a_lower_priority_number_goes_before_a_higher_one_of_the_same_key() {
    let config = EngineConfig {
        max_running: 1,
        ..roomy()
    };
    let service = keyed_with(["batch", "other"], config);
    // On a busy machine the long one may be over before the urgent one has come.
    let preempts = |tokens: &u64| preempted_by_an_urgent_one(&service, *tokens) == 1;
    assert!(
        [2_000, 8_000, 32_000].iter().any(preempts),
        "it did not wait for the long one"
    );
    for wrong in [json!("high"), json!(1.5), json!(1_u64 << 31)] {
        let answer = ask(&service, "batch", json!({"priority": wrong}));
        assert_eq!(
            (answer.status, answer.json()["error"]["param"].clone()),
            (400, json!("priority"))
        );
    }
}

/// Has an urgent request come while one of so many tokens runs; how often that had to make room.
fn preempted_by_an_urgent_one(service: &Service, tokens: u64) -> u64 {
    std::thread::scope(|scope| {
        let long = scope.spawn(|| {
            let more = json!({"priority": 1, "max_tokens": tokens, "messages": [{"role": "user", "content": "forever"}]});
            ask(service, "batch", more)
        });
        let before = service.served().engine().stats();
        service.until("the first runs", |stats| {
            stats.running == 1 && stats.generated > before.generated
        });
        assert_eq!(ask(service, "batch", json!({"priority": -3})).status, 200);
        let after = service.served().engine().stats();
        let long = long.join().expect("an answer");
        assert_eq!(
            (long.status, long.json()["usage"]["completion_tokens"].clone()),
            (200, json!(tokens))
        );
        after.preemptions - before.preemptions
    })
}

/// Guards against compiles of one key that keep all threads from the requests of another.
#[test]
fn compiles_of_one_key_do_not_keep_another_waiting() {
    let service = keyed(["heavy", "light"]);
    let (schema, ended) = (very_slow_schema(), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for number in 0..COMPILES {
            let schema = json!({"title": number.to_string(), "allOf": [schema]});
            let (service, ended) = (&service, &ended);
            scope.spawn(move || {
                ask(service, "heavy", json!({"guided_json": schema}));
                ended.fetch_add(1, Ordering::AcqRel);
            });
        }
        let begun = Instant::now();
        while service.app.in_flight() + ended.load(Ordering::Acquire) < COMPILES {
            assert!(begun.elapsed() < PATIENCE, "they are not begun");
            std::thread::sleep(Duration::from_millis(1));
        }
        let before = ended.load(Ordering::Acquire);
        let light = ask(&service, "light", json!({"guided_choice": ["x", "y"]}));
        let after = ended.load(Ordering::Acquire);
        assert_eq!(light.status, 200);
        assert!(
            before == COMPILES || after - before <= COMPILES / 4,
            "{} compiles ended before it was its turn",
            after - before
        );
    });
}
