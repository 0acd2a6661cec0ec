//! What the server counts, as Prometheus reads it.
//!
//! Routers and dashboards made for vLLM find its gauge names here; what only this server has is called `lexiform_*`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lexiform_engine::{Origin, Stats};

use crate::language::Rejected;
use crate::sample::Ended;

/// Upper bounds of the buckets for times, in seconds.
static SECONDS: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0,
];
/// The same for the server's own time, which is short.
static SHORT: [f64; 12] = [
    2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 2e-2,
];

/// Counts times in buckets.
#[derive(Debug)]
struct Histogram {
    bounds: &'static [f64; 12],
    buckets: [AtomicU64; 12],
    count: AtomicU64,
    nanos: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::of(&SECONDS)
    }
}

impl Histogram {
    fn of(bounds: &'static [f64; 12]) -> Self {
        Self {
            bounds,
            buckets: Default::default(),
            count: AtomicU64::new(0),
            nanos: AtomicU64::new(0),
        }
    }

    fn observe(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        if let Some(bucket) = self.bounds.iter().position(|bound| seconds <= *bound) {
            self.buckets[bucket].fetch_add(1, Relaxed);
        }
        self.count.fetch_add(1, Relaxed);
        self.nanos
            .fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    fn write(&self, name: &str, help: &str, labels: &str, out: &mut String) {
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} histogram");
        let mut sum = 0;
        for (bound, bucket) in self.bounds.iter().zip(&self.buckets) {
            sum += bucket.load(Relaxed);
            let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{bound}\"}} {sum}");
        }
        let count = self.count.load(Relaxed);
        let _ = writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {count}");
        let seconds = Duration::from_nanos(self.nanos.load(Relaxed)).as_secs_f64();
        let _ = writeln!(
            out,
            "{name}_sum{{{labels}}} {seconds}\n{name}_count{{{labels}}} {count}"
        );
    }
}

/// The server's own time, in short buckets.
#[derive(Debug)]
struct OwnTime {
    requests: Histogram,
    tokens: Histogram,
}

impl Default for OwnTime {
    fn default() -> Self {
        Self {
            requests: Histogram::of(&SHORT),
            tokens: Histogram::of(&SHORT),
        }
    }
}

/// How tokens come about, by the names that metrics give it.
const ORIGINS: [(Origin, &str); 3] = [
    (Origin::Sampled, "sampled"),
    (Origin::Drafted, "drafted"),
    (Origin::Forced, "forced"),
];

/// How the compiler stands at the moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Compiling {
    /// Bytes that the cached grammars are estimated to take.
    pub cache_bytes: u64,
    /// Grammars in the cache.
    pub cache_entries: u64,
    /// Compiles that are running.
    pub running: usize,
}

/// All counters of a served model.
#[derive(Debug, Default)]
pub struct Metrics {
    stopped: AtomicU64,
    cut: AtomicU64,
    answers: [AtomicU64; 6],
    panics: AtomicU64,
    abandoned: AtomicU64,
    invalid: AtomicU64,
    refused: Mutex<BTreeMap<&'static str, u64>>,
    /// Tokens by how they came about, in the order of [`ORIGINS`].
    tokens: [AtomicU64; 3],
    attempts: AtomicU64,
    steered: AtomicU64,
    first_token: Histogram,
    whole: Histogram,
    grammar_hits: AtomicU64,
    grammar_misses: AtomicU64,
    grammar_rejected: AtomicU64,
    grammar_called_off: AtomicU64,
    compile: Histogram,
    answer: Histogram,
    own: OwnTime,
}

impl Metrics {
    /// A sample has ended.
    pub fn finished(&self, ended: &Ended) {
        let counter = if ended.finish == "length" {
            &self.cut
        } else {
            &self.stopped
        };
        counter.fetch_add(1, Relaxed);
        self.steered.fetch_add(u64::from(ended.budget.is_some()), Relaxed);
        self.attempts.fetch_add(ended.sample.attempts as u64, Relaxed);
    }

    /// A token was handed to a client.
    pub fn token(&self, origin: Origin) {
        for (counter, (name, _)) in self.tokens.iter().zip(ORIGINS) {
            counter.fetch_add(u64::from(name == origin), Relaxed);
        }
    }

    /// A request was answered with this status; of a stream, its head.
    pub fn answered(&self, status: u16, time: Duration) {
        let class = usize::from(status / 100).min(self.answers.len() - 1);
        self.answers[class].fetch_add(1, Relaxed);
        self.answer.observe(time);
    }

    /// A client left before its answer was complete.
    pub fn abandoned(&self) {
        self.abandoned.fetch_add(1, Relaxed);
    }

    /// An independent check found an answer that does not obey its constraint. Must never happen.
    pub fn invalid_output(&self) {
        self.invalid.fetch_add(1, Relaxed);
    }

    /// A request was refused for this reason; reasons are names in this program, so there are few.
    pub fn refused(&self, reason: &'static str) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        *refused.entry(reason).or_default() += 1;
    }

    /// A request brought its first token.
    pub fn first_token(&self, time: Duration) {
        self.first_token.observe(time);
    }

    /// A request was answered to its end.
    pub fn whole(&self, time: Duration) {
        self.whole.observe(time);
    }

    /// What the server itself spent on a request, beside its tokens and without the model, masks and compiles.
    pub fn own_time_of_request(&self, time: Duration) {
        self.own.requests.observe(time);
    }

    /// What the server itself spent on a token of a stream.
    pub fn own_time_of_token(&self, time: Duration) {
        self.own.tokens.observe(time);
    }

    /// A request handler panicked.
    pub fn panicked(&self) {
        self.panics.fetch_add(1, Relaxed);
    }

    /// A grammar was in the cache.
    pub fn grammar_hit(&self) {
        self.grammar_hits.fetch_add(1, Relaxed);
    }

    /// A grammar was compiled, or refused, or given up because nobody waited for it any more.
    pub fn grammar_compiled(&self, time: Duration, rejected: Option<&Rejected>) {
        self.grammar_misses.fetch_add(1, Relaxed);
        match rejected {
            None => {}
            Some(rejected) if rejected.is_called_off() => {
                self.grammar_called_off.fetch_add(1, Relaxed);
            }
            Some(_) => {
                self.grammar_rejected.fetch_add(1, Relaxed);
            }
        }
        self.compile.observe(time);
    }

    /// The whole exposition.
    pub fn exposition(&self, model: &str, stats: &Stats, compiling: Compiling) -> String {
        let escaped = model
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        let labels = format!("model_name=\"{escaped}\",engine=\"0\"");
        let mut out = String::with_capacity(8 * 1024);
        engine(stats, &labels, &mut out);
        self.requests(&labels, &mut out);
        self.grammars(&labels, &mut out);
        let gauges = [
            (
                "lexiform_grammar_cache_bytes",
                "Bytes that the cached grammars are estimated to take.",
                compiling.cache_bytes,
            ),
            (
                "lexiform_grammar_cache_entries",
                "Grammars in the cache.",
                compiling.cache_entries,
            ),
            (
                "lexiform_grammar_compiles_running",
                "Compiles that are running.",
                compiling.running as u64,
            ),
        ];
        for (name, help, now) in gauges {
            value(name, "gauge", help, now, &labels, &mut out);
        }
        out
    }

    fn requests(&self, labels: &str, out: &mut String) {
        let name = "vllm:request_success_total";
        head(name, "counter", "Samples that came to their end.", out);
        for (reason, count) in [("stop", &self.stopped), ("length", &self.cut)] {
            let _ = writeln!(
                out,
                "{name}{{{labels},finished_reason=\"{reason}\"}} {}",
                count.load(Relaxed)
            );
        }
        let name = "lexiform_tokens_total";
        head(
            name,
            "counter",
            "Tokens by how they came about: forced ones by the grammar.",
            out,
        );
        for (count, (_, origin)) in self.tokens.iter().zip(ORIGINS) {
            let _ = writeln!(
                out,
                "{name}{{{labels},origin=\"{origin}\"}} {}",
                count.load(Relaxed)
            );
        }
        let help = "Attempts of all samples; the global law may need several for one.";
        let attempts = self.attempts.load(Relaxed);
        value("lexiform_attempts_total", "counter", help, attempts, labels, out);
        let name = "lexiform_http_answers_total";
        head(name, "counter", "Answers by the class of their status.", out);
        for class in 2..self.answers.len() {
            let _ = writeln!(
                out,
                "{name}{{{labels},status=\"{class}xx\"}} {}",
                self.answers[class].load(Relaxed)
            );
        }
        value(
            "lexiform_panics_total",
            "counter",
            "Panics in request handlers.",
            self.panics.load(Relaxed),
            labels,
            out,
        );
        let counters = [
            (
                "lexiform_disconnect_cancel_total",
                "Answers whose client left before the end.",
                &self.abandoned,
            ),
            (
                "lexiform_budget_steered_total",
                "Samples that were steered so that they are complete within max_tokens.",
                &self.steered,
            ),
            (
                "lexiform_invalid_output_total",
                "Answers that an independent check refuted; must stay 0.",
                &self.invalid,
            ),
        ];
        for (name, help, counter) in counters {
            value(name, "counter", help, counter.load(Relaxed), labels, out);
        }
        self.refusals(labels, out);
        let help = "Seconds from a request to its first token.";
        self.first_token
            .write("vllm:time_to_first_token_seconds", help, labels, out);
        let help = "Seconds from a request to the end of its answer.";
        self.whole
            .write("vllm:e2e_request_latency_seconds", help, labels, out);
        let help = "Seconds from a request to its answer, or to the head of its stream.";
        self.answer.write("lexiform_answer_seconds", help, labels, out);
        let help = "Seconds of the server's own work on a request: reading, template, tokens, writing.";
        self.own
            .requests
            .write("lexiform_own_seconds_per_request", help, labels, out);
        let help = "Seconds of the server's own work on a token of a stream.";
        self.own
            .tokens
            .write("lexiform_own_seconds_per_token", help, labels, out);
    }

    fn refusals(&self, labels: &str, out: &mut String) {
        let name = "lexiform_refused_total";
        head(
            name,
            "counter",
            "Requests refused, by the code of the error.",
            out,
        );
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        for (reason, count) in &*refused {
            let _ = writeln!(out, "{name}{{{labels},reason=\"{reason}\"}} {count}");
        }
    }

    fn grammars(&self, labels: &str, out: &mut String) {
        let counters = [
            (
                "lexiform_grammar_cache_hits_total",
                "Constraints found compiled.",
                &self.grammar_hits,
            ),
            (
                "lexiform_grammar_cache_misses_total",
                "Constraints that had to be compiled.",
                &self.grammar_misses,
            ),
            (
                "lexiform_grammar_compile_rejected_total",
                "Constraints that did not compile.",
                &self.grammar_rejected,
            ),
            (
                "lexiform_grammar_compile_called_off_total",
                "Compiles that were given up because nobody waited for them any more.",
                &self.grammar_called_off,
            ),
        ];
        for (name, help, counter) in counters {
            value(name, "counter", help, counter.load(Relaxed), labels, out);
        }
        self.compile.write(
            "lexiform_grammar_compile_seconds",
            "Seconds that a compile took.",
            labels,
            out,
        );
    }
}

/// What the engine tells of itself.
fn engine(stats: &Stats, labels: &str, out: &mut String) {
    let used = stats.blocks_used as f64 / (stats.blocks_total.max(1)) as f64;
    let gauge = "gauge";
    value(
        "vllm:num_requests_running",
        gauge,
        "Sequences that are being decoded.",
        stats.running,
        labels,
        out,
    );
    value(
        "vllm:num_requests_waiting",
        gauge,
        "Requests in the queue.",
        stats.waiting,
        labels,
        out,
    );
    value(
        "vllm:kv_cache_usage_perc",
        gauge,
        "Share of the cache in use, from 0 to 1.",
        used,
        labels,
        out,
    );
    let counters = [
        (
            "vllm:prompt_tokens_total",
            "Tokens of prompts.",
            stats.prompt_tokens,
        ),
        ("vllm:generation_tokens_total", "Tokens written.", stats.generated),
        (
            "vllm:prefix_cache_queries_total",
            "Tokens of prompts looked up in the cache.",
            stats.prompt_tokens,
        ),
        (
            "vllm:prefix_cache_hits_total",
            "Tokens of prompts found in the cache.",
            stats.cached_tokens,
        ),
        (
            "vllm:num_preemptions_total",
            "Sequences that lost their cache to others.",
            stats.preemptions,
        ),
        (
            "vllm:spec_decode_num_draft_tokens_total",
            "Tokens drafted ahead.",
            stats.drafted,
        ),
        (
            "vllm:spec_decode_num_accepted_tokens_total",
            "Drafted tokens that were kept.",
            stats.accepted,
        ),
        (
            "lexiform_engine_requests_total",
            "Sequences taken.",
            stats.requests,
        ),
        (
            "lexiform_engine_failed_total",
            "Sequences that failed or whose client left.",
            stats.failed,
        ),
        ("lexiform_engine_steps_total", "Passes of the model.", stats.steps),
        (
            "lexiform_engine_panics_total",
            "Panics in the decode loop.",
            stats.panics,
        ),
    ];
    for (name, help, count) in counters {
        value(name, "counter", help, count, labels, out);
    }
}

fn head(name: &str, kind: &str, help: &str, out: &mut String) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn value(name: &str, kind: &str, help: &str, value: impl std::fmt::Display, labels: &str, out: &mut String) {
    head(name, kind, help, out);
    let _ = writeln!(out, "{name}{{{labels}}} {value}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exposition_can_be_read_line_by_line() {
        let metrics = Metrics::default();
        metrics.answered(200, Duration::from_millis(3));
        metrics.grammar_compiled(Duration::from_secs(60), None);
        let text = metrics.exposition("a\"b\n", &Stats::default(), Compiling::default());
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (series, number) = line.rsplit_once(' ').expect("a series and a number");
            assert!(series.contains("model_name=\"a\\\"b\\n\""), "{line}");
            assert!(number.parse::<f64>().is_ok(), "{line}");
        }
        assert!(text.contains(
            "lexiform_answer_seconds_bucket{model_name=\"a\\\"b\\n\",engine=\"0\",le=\"0.005\"} 1"
        ));
        assert!(
            text.contains("lexiform_grammar_compile_seconds_sum{model_name=\"a\\\"b\\n\",engine=\"0\"} 60")
        );
        assert!(text.contains("vllm:num_requests_waiting{"));
    }
}
