//! What an operator relies on: times, the queue of tokens, draining, metrics.

use std::io::BufReader;
use std::time::{Duration, Instant};

use lexiform_engine::EngineConfig;
use lexiform_server::model::limits::RequestLimits;
use lexiform_server::routes::state::Settings;
use serde_json::json;

use super::service::{PATIENCE, Service, chat, read_chunk, read_head, roomy, unhurried};

fn patient(config: EngineConfig, limits: RequestLimits) -> Service {
    Service::operated(config, Settings::default(), limits)
}

/// Guards against requests that wait for ever behind a long one.
#[test]
fn a_request_that_waits_too_long_is_told_so() {
    let config = EngineConfig {
        max_running: 1,
        ..roomy()
    };
    let service = patient(
        config,
        RequestLimits::new(Duration::from_millis(200), PATIENCE, 1 << 20),
    );
    let running = service.begin("/v1/chat/completions", &chat("forever", json!({"stream": true})));
    service.until("the first runs", |stats| stats.running == 1);
    let late = service.chat("echo x", json!({}));
    assert_eq!(
        (late.status, late.error_code().as_str()),
        (408, "request_timeout")
    );
    assert_eq!(late.header("x-should-retry"), Some("true"));
    service.until("it left the queue", |stats| stats.waiting == 0);
    let streamed = service.chat("echo x", json!({"stream": true}));
    let events = streamed.events();
    assert_eq!(
        events.last().map(|event| event["error"]["code"].clone()),
        Some(json!("request_timeout"))
    );
    drop(running);
    service.until("all is free", |stats| stats.running == 0);
}

#[test]
fn an_answer_without_an_end_is_ended() {
    let service = Service::start();
    let late = service.chat("forever", json!({"timeout_ms": 300}));
    assert_eq!(
        (late.status, late.error_code().as_str()),
        (408, "request_timeout")
    );
    assert_eq!(late.header("x-should-retry"), Some("false"));
    service.until("the sequence is freed", |stats| {
        stats.running == 0 && stats.blocks_used == 0
    });
}

/// Guards against a search that is called off as if it waited, though it is at work: it tells nothing until
/// its end.
#[test]
fn a_search_without_an_end_is_told_what_to_set() {
    let service = Service::start();
    let more = json!({"guided_regex": "(a|b)+", "search": {"kind": "beam", "width": 4}, "timeout_ms": 300});
    let late = service.chat("forever", more);
    assert_eq!(
        (late.status, late.error_code().as_str()),
        (408, "request_timeout")
    );
    let message = "The search found no end within 0.3 s; set max_tokens.";
    assert_eq!(late.json()["error"]["message"], message);
    assert_eq!(late.header("x-should-retry"), Some("false"));
}

/// Guards against schemas that take minutes (B1), and against clients that send such a schema again at once.
#[test]
fn a_compile_that_takes_too_long_is_given_up_and_not_to_be_sent_again() {
    let service = patient(
        roomy(),
        RequestLimits::default().compiling(Duration::from_millis(1)),
    );
    let schema = slow_schema();
    let late = service.chat("echo x", json!({"guided_json": schema}));
    assert_eq!(
        (late.status, late.error_code().as_str()),
        (408, "grammar_compile_timeout")
    );
    assert_eq!(late.header("x-should-retry"), Some("false"));
    let lint = service.post("/v1/grammars/lint", &json!({"guided_json": schema}).to_string());
    assert_eq!(lint.status, 408);
    assert_eq!(service.get("/ready").status, 200);
}

/// Guards against compiles that go on for nobody: the thread is free again soon after the answer.
#[test]
fn a_compile_whose_time_is_over_is_called_off() {
    let service = patient(
        roomy(),
        RequestLimits::default().compiling(Duration::from_millis(50)),
    );
    let called_off = "lexiform_grammar_compile_called_off_total";
    let begun = Instant::now();
    // On a busy machine the time may be over before a thread has begun.
    while service.metric(called_off) == 0 {
        let late = service.chat("echo x", json!({"guided_json": very_slow_schema()}));
        assert_eq!(late.error_code(), "grammar_compile_timeout");
        service.until_metric("lexiform_grammar_compiles_running", 0);
        assert!(begun.elapsed() < PATIENCE, "no compile was called off");
    }
    assert_eq!(service.metric("lexiform_grammar_compile_rejected_total"), 0);
}

/// Guards against storms of compiles that pile up without a bound (the theme of compile storms).
#[test]
fn requests_that_wait_to_be_compiled_are_bounded() {
    let service = patient(roomy(), unhurried().preparing(1));
    let begun = Instant::now();
    // The compile may have ended by itself before another came.
    loop {
        let slow = service.begin(
            "/v1/chat/completions",
            &chat("echo x", json!({"guided_json": very_slow_schema()})),
        );
        service.until_any_metric("lexiform_grammar_compiles_running");
        let refused = service.chat("echo x", json!({}));
        drop(slow);
        service.until_metric("lexiform_grammar_compiles_running", 0);
        if refused.status == 429 {
            assert_eq!(refused.error_code(), "queue_full");
            assert!(refused.header("retry-after").is_some());
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "nobody was refused");
    }
    // Its place is free a moment after the compile has ended.
    while service.chat("echo x", json!({})).status != 200 {
        assert!(begun.elapsed() < PATIENCE, "the place was not given back");
    }
}

#[test]
fn a_compile_whose_client_leaves_is_called_off() {
    let service = Service::start();
    let body = chat("echo x", json!({"guided_json": very_slow_schema()}));
    let (running, called_off) = (
        "lexiform_grammar_compiles_running",
        "lexiform_grammar_compile_called_off_total",
    );
    let begun = Instant::now();
    // The compile may have ended by itself before we looked.
    while service.metric(called_off) == 0 {
        let compiled = service.metric("lexiform_grammar_cache_misses_total");
        let client = service.begin("/v1/chat/completions", &body);
        while service.metric(running) == 0
            && service.metric("lexiform_grammar_cache_misses_total") == compiled
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(client);
        service.until_metric(running, 0);
        assert!(begun.elapsed() < PATIENCE, "no compile was called off");
    }
    // The threads that compiled are free for others.
    let next = service.chat("echo yes", json!({"guided_choice": ["yes", "no"]}));
    assert_eq!(next.status, 200);
}

/// Patterns for keys that must be told apart two by two, with a good deal of work for each pair.
pub(crate) fn very_slow_schema() -> serde_json::Value {
    let pattern = |number: usize| {
        (
            format!("^{number}x(a|b)*a(a|b){{9}}$"),
            json!({"type": "integer"}),
        )
    };
    let patterns: serde_json::Map<String, serde_json::Value> = (0..200).map(pattern).collect();
    json!({"allOf": [slow_schema(), {"patternProperties": patterns}]})
}

/// A schema that is refused only after the whole fuel of the compiler is burnt: a long time beside a
/// millisecond.
fn slow_schema() -> serde_json::Value {
    let one = |number: usize| {
        json!({"if": {"properties": {format!("k{number}"): {"const": 1}}, "required": [format!("k{number}")]},
               "then": {"required": [format!("r{number}")]}, "else": {"required": [format!("s{number}")]}})
    };
    json!({"allOf": (0..24).map(one).collect::<Vec<_>>()})
}

/// What the server itself costs, beside the model, the masks and compiles, is counted by request and by
/// token.
#[test]
fn the_server_s_own_time_is_counted() {
    let service = Service::start();
    assert_eq!(service.chat("echo abc", json!({"stream": true})).status, 200);
    assert_eq!(service.chat("echo abc", json!({})).status, 200);
    let metrics = service.get("/metrics");
    let labels = "{model_name=\"m\",engine=\"0\"}";
    for (name, count) in [("request", 2), ("token", 3)] {
        let line = format!("lexiform_own_seconds_per_{name}_count{labels} {count}\n");
        assert!(metrics.text().contains(&line), "{line}{}", metrics.text());
    }
}

#[test]
fn prompts_that_wait_are_bounded_by_their_tokens() {
    let config = EngineConfig {
        max_running: 1,
        ..roomy()
    };
    let service = patient(config, RequestLimits::new(PATIENCE, PATIENCE, 200));
    let mut reader =
        BufReader::new(service.begin("/v1/chat/completions", &chat("forever", json!({"stream": true}))));
    assert_eq!(read_head(&mut reader).0, 200);
    // The role comes at once; the first text says that the request left the queue.
    assert!(read_chunk(&mut reader).is_some() && read_chunk(&mut reader).is_some());
    let waiting = service.begin(
        "/v1/chat/completions",
        &chat(&format!("echo {}", "x".repeat(150)), json!({})),
    );
    service.until("the second waits", |stats| stats.waiting == 1);
    let refused = service.chat(&format!("echo {}", "y".repeat(150)), json!({}));
    assert_eq!(
        (refused.status, refused.error_code().as_str()),
        (429, "queue_full")
    );
    assert!(refused.header("retry-after").is_some());
    drop(waiting);
    service.until("the place is free", |stats| stats.waiting == 0);
    drop(reader);
    service.until("all is free", |stats| stats.running == 0);
    assert_eq!(
        service
            .chat(&format!("echo {}", "y".repeat(150)), json!({}))
            .status,
        200
    );
}

#[test]
fn draining_lets_running_answers_end_and_takes_no_new_ones() {
    let service = Service::start();
    let text = "a text that is on its way";
    let mut reader = BufReader::new(service.begin(
        "/v1/chat/completions",
        &chat(&format!("echo {text}"), json!({"stream": true})),
    ));
    assert_eq!(read_head(&mut reader).0, 200);
    service.app.close();
    let ready = service.get("/ready");
    assert_eq!(
        (ready.status, ready.error_code().as_str()),
        (503, "shutting_down")
    );
    assert_eq!(service.get("/live").status, 200);
    let refused = service.chat("echo x", json!({}));
    assert_eq!(refused.status, 503);
    assert!(refused.header("retry-after").is_some());
    let mut body = Vec::new();
    while let Some(chunk) = read_chunk(&mut reader) {
        body.extend(chunk);
    }
    let body = String::from_utf8(body).expect("UTF-8");
    assert!(
        body.contains("\"finish_reason\":\"stop\"") && body.ends_with("data: [DONE]\n\n"),
        "{body}"
    );
}

#[test]
fn what_has_not_ended_when_draining_is_over_ends_with_an_error_event() {
    let service = Service::start();
    let mut reader =
        BufReader::new(service.begin("/v1/chat/completions", &chat("forever", json!({"stream": true}))));
    assert_eq!(read_head(&mut reader).0, 200);
    service.until("it runs", |stats| stats.running == 1);
    assert_eq!(service.app.in_flight(), 1);
    service.served().limits().stop();
    let mut last = Vec::new();
    while let Some(chunk) = read_chunk(&mut reader) {
        last = chunk;
    }
    let last = String::from_utf8(last).expect("UTF-8");
    assert!(last.contains("shutting_down"), "{last}");
    service.until("the sequence is freed", |stats| stats.running == 0);
}

#[test]
fn routers_and_dashboards_find_their_metrics() {
    let service = Service::start();
    assert_eq!(service.chat("echo x", json!({"guided_regex": "x"})).status, 200);
    assert_eq!(service.chat("echo x", json!({"guided_regex": "("})).status, 400);
    let metrics = service.get("/metrics");
    let tokens = |origin: &str| {
        let name = format!("lexiform_tokens_total{{model_name=\"m\",engine=\"0\",origin=\"{origin}\"}} ");
        let line = metrics
            .text()
            .lines()
            .find_map(|line| line.strip_prefix(&name)?.parse::<u64>().ok());
        line.unwrap_or_else(|| panic!("{name} is missing"))
    };
    assert_eq!(tokens("sampled") + tokens("drafted") + tokens("forced"), 1);
    for name in [
        "lexiform_attempts_total{model_name=\"m\",engine=\"0\"} 1",
        "vllm:num_requests_running{",
        "vllm:num_requests_waiting{",
        "vllm:kv_cache_usage_perc{",
        "vllm:time_to_first_token_seconds_bucket{",
        "vllm:e2e_request_latency_seconds_count{",
        "lexiform_grammar_cache_bytes{",
        "lexiform_invalid_output_total{model_name=\"m\",engine=\"0\"} 0",
        "lexiform_refused_total{model_name=\"m\",engine=\"0\",reason=\"invalid_grammar\"} 1",
    ] {
        assert!(
            metrics.text().lines().any(|line| line.starts_with(name)),
            "{name} is missing"
        );
    }
}
