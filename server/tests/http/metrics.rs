//! What `/metrics` says: that it is all that the page promises, and that it is true.

use std::collections::BTreeSet;
use std::io::BufReader;

use lexiform_engine::EngineConfig;
use lexiform_server::model::limits::RequestLimits;
use lexiform_server::routes::state::Settings;
use serde_json::json;

use super::service::{PATIENCE, Service, chat, read_chunk, read_head, roomy};

impl Service {
    /// The value of a series with these labels beside those of all, or nothing.
    fn series(&self, name: &str, more: &str) -> Option<f64> {
        let labels = format!("{name}{{model_name=\"m\",engine=\"0\"{more}}} ");
        let text = self.get("/metrics").text().to_owned();
        let value = |line: &str| line.strip_prefix(&labels)?.parse().ok();
        text.lines().find_map(value)
    }

    fn until_series(&self, name: &str, more: &str, wanted: f64) {
        let begun = std::time::Instant::now();
        while self.series(name, more) != Some(wanted) {
            let now = self.series(name, more);
            assert!(begun.elapsed() < PATIENCE, "{name}{more} is {now:?}");
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }
}

#[test]
fn the_page_lists_all_metrics_and_no_others() {
    let page = include_str!("../../../deploy/metrics.md");
    let (served, _) = page.split_once("## What is not served").expect("the last part");
    let cells = served
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    let listed: BTreeSet<&str> = cells
        .flat_map(|cell| cell.split(", "))
        .map(|name| name.trim_matches('`'))
        .collect();
    let service = Service::start();
    let text = service.get("/metrics").text().to_owned();
    let told: BTreeSet<&str> = (text.lines())
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .collect();
    assert_eq!(listed, told);
}

#[test]
fn times_and_tokens_are_of_every_sample_that_ended() {
    let service = Service::start();
    let answer = service.chat(
        "echo abcd",
        json!({"guided_regex": "[a-z]*", "n": 2, "max_tokens": 9, "draft": false}),
    );
    assert_eq!(answer.status, 200, "{}", answer.text());
    service.until("all passes are told of", |stats| stats.running == 0);
    let tokens = answer.json()["usage"]["completion_tokens"]
        .as_f64()
        .expect("a number");
    let series = |name: &str| {
        service
            .series(name, "")
            .unwrap_or_else(|| panic!("{name} is missing"))
    };
    for name in ["queue", "prefill", "decode", "inference"] {
        assert_eq!(
            series(&format!("vllm:request_{name}_time_seconds_count")),
            2.0,
            "{name}"
        );
    }
    assert_eq!(series("vllm:request_time_per_output_token_seconds_count"), 2.0);
    let parts =
        series("vllm:request_prefill_time_seconds_sum") + series("vllm:request_decode_time_seconds_sum");
    assert!((series("vllm:request_inference_time_seconds_sum") - parts).abs() < 1e-6);
    assert!(
        series("vllm:request_queue_time_seconds_sum") + parts
            <= 2.0 * series("vllm:e2e_request_latency_seconds_sum")
    );
    assert_eq!(series("vllm:request_generation_tokens_sum"), tokens);
    assert_eq!(series("vllm:request_max_num_generation_tokens_sum"), tokens / 2.0);
    assert_eq!(series("vllm:request_params_n_sum"), 2.0);
    assert_eq!(series("vllm:request_params_max_tokens_sum"), 9.0);
    assert_eq!(series("lexiform_resample_attempts_sum"), 2.0);
    // Each token was drawn in a pass of its own, from a mask; the first of each sample follows no other.
    assert_eq!(series("lexiform_mask_seconds_count"), tokens);
    assert_eq!(series("vllm:inter_token_latency_seconds_count"), tokens - 2.0);
    assert!(series("lexiform_mask_wait_on_gpu_seconds_count") >= 1.0);
    assert!(series("vllm:iteration_tokens_total_sum") >= tokens);
    assert_eq!(
        service.series("lexiform_grammar_compile_seconds_count", ",kind=\"regex\""),
        Some(1.0)
    );
    assert_eq!(
        service.series("lexiform_grammar_compile_seconds_count", ",kind=\"json_schema\""),
        Some(0.0)
    );
}

#[test]
fn drafts_are_counted_by_place() {
    let service = Service::start();
    let answer = service.chat("echo forced", json!({"guided_regex": "forced[a-z]*"}));
    assert_eq!(answer.status, 200, "{}", answer.text());
    // The engine tells of a pass after it has handed out what the pass brought.
    service.until("it is told of", |stats| stats.running == 0 && stats.accepted > 0);
    let accepted = service.metric("vllm:spec_decode_num_accepted_tokens_total");
    assert!(accepted > 0 && service.metric("vllm:spec_decode_num_drafts_total") > 0);
    let place = |place: usize| {
        service.series(
            "vllm:spec_decode_num_accepted_tokens_per_pos_total",
            &format!(",position=\"{place}\""),
        )
    };
    let sum: f64 = (0..32).filter_map(place).sum();
    assert_eq!(sum as u64, accepted);
    let drafted = service.metric("vllm:spec_decode_num_draft_tokens_total");
    assert_eq!(
        service.series("lexiform_draft_rejected_total", ",by=\"model\""),
        Some((drafted - accepted) as f64)
    );
}

#[test]
fn requests_without_room_are_counted_by_what_is_full_and_did_not_leave() {
    let config = EngineConfig {
        max_running: 1,
        max_waiting: 1,
        ..roomy()
    };
    let settings = Settings::default();
    let limits = RequestLimits::new(PATIENCE, PATIENCE, 100);
    let service = Service::operated(config, settings, limits);
    let away = |reason: &str| {
        service.series(
            "vllm:admission_rejections_total",
            &format!(",reason=\"{reason}\""),
        )
    };
    let running = service.begin("/v1/chat/completions", &chat("forever", json!({})));
    service.until("the first runs", |stats| stats.running == 1);
    let waiting = service.begin("/v1/chat/completions", &chat("forever", json!({})));
    service.until("the second waits", |stats| stats.waiting == 1);
    assert_eq!(service.chat("echo x", json!({})).status, 429);
    assert_eq!(
        (away("max_num_queued_reqs"), away("max_num_queued_tokens")),
        (Some(1.0), Some(0.0))
    );
    assert_eq!(service.chat(&"echo x".repeat(40), json!({})).status, 429);
    assert_eq!(
        (away("max_num_queued_reqs"), away("max_num_queued_tokens")),
        (Some(1.0), Some(1.0))
    );
    let left = |phase: &str| format!(",phase=\"{phase}\"");
    let name = "lexiform_disconnect_cancel_total";
    for phase in ["prepare", "queue", "decode"] {
        assert_eq!(service.series(name, &left(phase)), Some(0.0), "{phase}");
    }
    assert_eq!(
        service.series("vllm:num_requests_waiting_by_reason", ",reason=\"capacity\""),
        Some(1.0)
    );
    drop(waiting);
    service.until_series(name, &left("queue"), 1.0);
    drop(running);
    service.until_series(name, &left("decode"), 1.0);
}

/// A request that ends in an error, because its time is over, has not been left by its client.
#[test]
fn clients_that_leave_are_counted_by_phase_and_errors_are_not() {
    let service = Service::start();
    let name = "lexiform_disconnect_cancel_total";
    assert_eq!(service.chat("forever", json!({"timeout_ms": 50})).status, 408);
    let stream = service.begin("/v1/chat/completions", &chat("forever", json!({"stream": true})));
    let mut reader = BufReader::new(stream);
    assert_eq!(read_head(&mut reader).0, 200);
    // The head of the stream comes before any token does.
    while !String::from_utf8_lossy(&read_chunk(&mut reader).expect("more")).contains("\"content\":\"a") {}
    assert_eq!(service.series(name, ",phase=\"decode\""), Some(0.0));
    drop(reader);
    service.until_series(name, ",phase=\"decode\"", 1.0);
    assert_eq!(service.series(name, ",phase=\"queue\""), Some(0.0));
}
