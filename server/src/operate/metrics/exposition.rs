//! The exposition of the metrics for Prometheus: its text format, version 0.0.4.

use std::convert::identity;
use std::fmt;
use std::sync::LazyLock;

use lexiform_engine::{Histogram, Meters, Stats};
use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet, prometheus_text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use regex::{Captures, Regex};

use super::Metrics;
use super::families::{Always, counted, registry};
use super::gauges::Gauges;

/// The values of a histogram of the engine at one moment.
#[derive(Debug)]
struct Reading {
    sum: f64,
    count: u64,
    buckets: Vec<(f64, u64)>,
}

impl From<&Histogram> for Reading {
    fn from(histogram: &Histogram) -> Self {
        let mut before = 0;
        Self {
            sum: histogram.sum(),
            count: histogram.count(),
            buckets: histogram
                .buckets()
                .map(|(bound, count)| (bound, count - std::mem::replace(&mut before, count)))
                .collect(),
        }
    }
}

impl EncodeMetric for Reading {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        encoder.encode_histogram::<NoLabelSet>(self.sum, self.count, &self.buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

/// Registers current values: name and help text as in `metrics!`, then the value.
macro_rules! register {
    ($registry:expr, $kind:expr; $($name:literal, $help:literal, $now:expr;)*) => {
        $($registry.register($name, $help, $kind($now));)*
    };
}

impl Metrics {
    /// Returns the whole exposition.
    pub fn exposition(&self, now: Gauges<'_>) -> String {
        let mut registry = registry(&self.model);
        engine(now.stats, &mut registry);
        drafts(now.stats, &mut registry);
        meters(now.meters, &mut registry);
        server(now, &mut registry);
        let mut text = String::with_capacity(64 * 1024);
        for registry in [&registry, &self.registry] {
            // Writing to a text cannot fail.
            let _ = prometheus_text::encode(&mut text, registry);
        }
        decimals(&text)
    }
}

/// Writes all bounds of buckets as decimals. The library gives those below 0.0001 an exponent, as Go does;
/// but a series whose bound is spelled differently is another series to some databases.
fn decimals(text: &str) -> String {
    static BOUND: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(",le=\"([0-9.]+e-[0-9]+)\"} ").expect("a regular expression"));
    let decimal = |found: &Captures<'_>| match found[1].parse::<f64>() {
        Ok(bound) => format!(",le=\"{bound}\"}} "),
        Err(_) => found[0].to_owned(),
    };
    BOUND.replace_all(text, decimal).into_owned()
}

/// Registers the state of the engine.
fn engine(stats: &Stats, registry: &mut Registry) {
    let used = stats.blocks_used as f64 / (stats.blocks_total.max(1)) as f64;
    let cache = [
        ("block_size", stats.block_size),
        ("num_gpu_blocks", stats.blocks_total),
    ];
    register! { registry, ConstGauge::new;
        "vllm:num_requests_running", "Sequences that are being decoded", stats.running;
        "vllm:num_requests_waiting", "Requests in the queue", stats.waiting;
        "vllm:kv_cache_usage_perc", "Share of the cache in use, from 0 to 1", used;
    }
    let waiting = registry.sub_registry_with_label(("reason".into(), "capacity".into()));
    register! { waiting, ConstGauge::new;
        "vllm:num_requests_waiting_by_reason",
        "Requests in the queue by what they wait for: always room", stats.waiting;
    }
    register! { registry, identity;
        "vllm:cache_config", "The size of the cache; the value says nothing", Info::new(cache);
    }
    register! { registry, ConstCounter::new;
        "vllm:prompt_tokens", "Tokens of prompts", stats.prompt_tokens;
        "vllm:generation_tokens", "Tokens written", stats.generated;
        "vllm:prefix_cache_queries", "Tokens of prompts looked up in the cache", stats.prompt_tokens;
        "vllm:prefix_cache_hits", "Tokens of prompts found in the cache", stats.cached_tokens;
        "vllm:num_preemptions", "Sequences that lost their cache to others", stats.preemptions;
        "lexiform_engine_requests", "Sequences taken", stats.requests;
        "lexiform_engine_failed", "Sequences that failed or whose client left", stats.failed;
        "lexiform_engine_steps", "Passes of the model", stats.steps;
        "lexiform_engine_steps_ahead",
        "Passes of the model that began behind the draws of the pass before", stats.steps_ahead;
        "lexiform_engine_steps_unused",
        "Passes that began so and of which no row was used", stats.steps_unused;
        "lexiform_engine_panics", "Panics in the decode loop", stats.panics;
    }
}

/// Registers what became of drafts.
fn drafts(stats: &Stats, registry: &mut Registry) {
    let places = counted("position", (0u64..).zip(stats.accepted_at.iter().copied()));
    register! { registry, ConstCounter::new;
        "vllm:spec_decode_num_drafts", "Passes of a sequence that verified a draft", stats.drafts;
        "vllm:spec_decode_num_draft_tokens", "Tokens drafted ahead", stats.drafted;
        "vllm:spec_decode_num_accepted_tokens", "Drafted tokens that were kept", stats.accepted;
        "lexiform_draft_stores_failed",
        "Stores of earlier answers that were given up because drafting from them failed",
        stats.draft_stores_failed;
        "lexiform_draft_saves_failed",
        "Times that earlier answers could not be written to the folder in which they are kept over a restart",
        stats.draft_saves_failed;
    }
    register! { registry, identity;
        "vllm:spec_decode_num_accepted_tokens_per_pos",
        "Drafted tokens that were kept, by their place in the draft", Always(places);
        "lexiform_draft_rejected",
        "Drafted tokens that were not kept. The grammar rejects none: what it does not allow is never drafted",
        counted("by", [("model", stats.drafted.saturating_sub(stats.accepted))]);
    }
    register! { registry, ConstGauge::new;
        "lexiform_draft_store_bytes",
        "Bytes of what was learned from earlier answers, to draft from", stats.draft_store_bytes;
        "lexiform_draft_corpus_bytes",
        "Bytes of the texts that the operator has named to draft from", stats.draft_corpus_bytes;
    }
}

/// Registers the times that steps in the engine take.
fn meters(meters: &Meters, registry: &mut Registry) {
    register! { registry, Reading::from;
        "lexiform_mask_seconds", "Seconds for one mask", &meters.masks;
        "lexiform_mask_wait_on_gpu_seconds",
        "Seconds that a pass waited for its masks after the model was done, on whatever device",
        &meters.mask_waits;
        "vllm:iteration_tokens_total", "Tokens fed in one pass of the model", &meters.pass_tokens;
        "vllm:inter_token_latency_seconds",
        "Seconds between passes that brought tokens of the same sample", &meters.gaps;
    }
    register! { registry, ConstGauge::new;
        "lexiform_mask_longest_seconds",
        "Seconds of the longest mask since the start", meters.masks.longest();
    }
}

/// Registers the state of queues, bodies, the compiler and the process.
fn server(now: Gauges<'_>, registry: &mut Registry) {
    let (away, compiling, bodies) = (now.turned_away, now.compiling, now.bodies);
    // vLLM's names for the limits.
    let away = [
        ("max_num_queued_reqs", away.requests),
        ("max_num_queued_tokens", away.tokens),
    ];
    register! { registry, identity;
        "vllm:admission_rejections", "Requests that the queues had no room for", counted("reason", away);
        "lexiform_bodies_refused",
        "Request bodies refused while they arrived", counted("reason", bodies.refused);
        "lexiform_log_lines_dropped",
        "Lines of logs that could not be written", counted("log", now.lines_lost);
    }
    register! { registry, ConstCounter::new;
        "lexiform_grammar_cache_evictions",
        "Compiled constraints that gave way to others", compiling.evictions;
        "lexiform_traces_sent", "Traces that the collector took", now.traces.0;
        "lexiform_traces_dropped",
        "Traces that the collector did not take, or that found no room", now.traces.1;
    }
    register! { registry, ConstGauge::new;
        "lexiform_grammar_cache_bytes",
        "Bytes that the cached grammars are estimated to take", compiling.cache_bytes;
        "lexiform_grammar_cache_entries", "Grammars in the cache", compiling.cache_entries;
        "lexiform_grammar_compiles_running", "Compiles that are running", compiling.running;
        "lexiform_body_bytes", "Bytes of request bodies that arrive or are being read", bodies.bytes;
        "lexiform_bodies_unfinished", "Request bodies that arrive", bodies.unfinished;
    }
    if let Some(bytes) = now.resident {
        let help = "Bytes of physical memory that the process holds";
        registry.register("lexiform_resident_bytes", help, ConstGauge::new(bytes));
    }
}
