//! The exposition of the metrics for Prometheus: its text format, version 0.0.4.

use std::collections::HashMap;
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
use super::gauges::{ServerGauges, TurnedAway};

/// The current values of a model.
#[derive(Clone, Copy, Debug)]
pub struct ModelGauges<'a> {
    /// The counters of the model.
    pub metrics: &'a Metrics,
    /// The statistics of its engine, and the times that steps in it take, as long as the model is loaded.
    pub engine: Option<(&'a Stats, &'a Meters)>,
    /// The bytes of its weights, as long as it is loaded.
    pub weight_bytes: u64,
    /// The requests that its queues had no room for.
    pub turned_away: TurnedAway,
}

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

/// Returns the whole exposition. What is about no model has the name of the first one.
pub fn exposition(models: &[ModelGauges<'_>], now: &ServerGauges) -> String {
    let mut families = Families::default();
    for (place, model) in models.iter().enumerate() {
        let mut registry = registry(&model.metrics.model);
        if let Some((stats, steps)) = model.engine {
            engine(stats, &mut registry);
            drafts(stats, &mut registry);
            meters(steps, &mut registry);
        }
        weights(model.weight_bytes, &mut registry);
        queues(model.turned_away, &mut registry);
        if place == 0 {
            server(now, &mut registry);
        }
        let mut text = String::with_capacity(64 * 1024);
        for registry in [&registry, &model.metrics.registry] {
            // Writing to a text cannot fail.
            let _ = prometheus_text::encode(&mut text, registry);
        }
        families.add(&text);
    }
    decimals(&families.text())
}

/// Metrics with the series of all models, in the order in which they came: the format wants all lines of a
/// metric in one group.
#[derive(Default)]
struct Families {
    /// The comments of each metric, and its series.
    all: Vec<(String, String)>,
    /// The places by the name of the metric.
    places: HashMap<String, usize>,
}

impl Families {
    /// Adds the metrics of a text.
    fn add(&mut self, text: &str) {
        let mut place = None;
        for line in text.split_inclusive('\n') {
            if let Some(about) = line.strip_prefix("# HELP ") {
                let name = about.split(' ').next().unwrap_or_default();
                let next = self.all.len();
                let at = *self.places.entry(name.to_owned()).or_insert(next);
                if at == next {
                    self.all.push(Default::default());
                }
                place = Some((at, at == next));
            }
            let Some((at, is_new)) = place else {
                continue;
            };
            let (comments, series) = &mut self.all[at];
            match line.starts_with('#') {
                true if is_new => comments.push_str(line),
                true => {}
                false => series.push_str(line),
            }
        }
    }

    fn text(self) -> String {
        let families = self.all.into_iter();
        families.map(|(comments, series)| comments + &series).collect()
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

/// Registers the size of a model.
fn weights(bytes: u64, registry: &mut Registry) {
    register! { registry, ConstGauge::new;
        "lexiform_weight_bytes",
        "Bytes of the weights of the model and of its draft model; 0 while it is not in memory", bytes;
    }
}

/// Registers what the queues of a model had no room for.
fn queues(away: TurnedAway, registry: &mut Registry) {
    // vLLM's names for the limits.
    let away = [
        ("max_num_queued_reqs", away.requests),
        ("max_num_queued_tokens", away.tokens),
    ];
    register! { registry, identity;
        "vllm:admission_rejections", "Requests that the queues had no room for", counted("reason", away);
    }
}

/// Registers the state of bodies, the compiler and the process.
fn server(now: &ServerGauges, registry: &mut Registry) {
    let (compiling, bodies) = (now.compiling, now.bodies);
    register! { registry, identity;
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::gauges::{BodyCounts, CompilerGauges};
    use super::super::{CompileOutcome, GrammarKind};
    use super::*;

    fn idle_server() -> ServerGauges {
        ServerGauges {
            compiling: CompilerGauges::default(),
            traces: (0, 0),
            lines_lost: [("messages", 0), ("audit", 0)],
            bodies: BodyCounts::default(),
            resident: Some(1),
        }
    }

    /// Guards against a page that Prometheus refuses: all lines of a metric are one group, whatever the
    /// number of models and whether they are loaded.
    #[test]
    fn the_series_of_all_models_are_in_one_group() {
        let (a, b) = (Metrics::new("a"), Metrics::new("b"));
        let (stats, meters) = (Stats::default(), Meters::default());
        let of = |metrics, engine| ModelGauges {
            metrics,
            engine,
            weight_bytes: 0,
            turned_away: TurnedAway::default(),
        };
        let text = exposition(&[of(&a, None), of(&b, Some((&stats, &meters)))], &idle_server());
        let mut seen = std::collections::HashSet::new();
        let mut family = "";
        for line in text.lines() {
            if let Some(about) = line.strip_prefix("# HELP ") {
                family = about.split(' ').next().expect("a name");
                assert!(seen.insert(family), "{family} is told of twice");
            } else if !line.starts_with('#') {
                assert!(line.starts_with(family), "{line} is not of {family}");
            }
        }
        let count = |name: &str| text.lines().filter(|line| line.starts_with(name)).count();
        assert_eq!(count("lexiform_panics_total{"), 2);
        assert_eq!(count("vllm:num_requests_running{model_name=\"b\""), 1);
        assert_eq!(
            count("vllm:num_requests_running{"),
            1,
            "a model that is not loaded has no engine"
        );
        assert_eq!(
            count("lexiform_resident_bytes{model_name=\"a\""),
            1,
            "there is one process"
        );
        assert_eq!(count("lexiform_resident_bytes{"), 1);
    }

    #[test]
    fn the_exposition_can_be_read_line_by_line() {
        let metrics = Metrics::new("a\"b\n");
        metrics.answered(200, Duration::from_millis(3));
        metrics.grammar_compiled(
            GrammarKind::Regex,
            Duration::from_secs(60),
            CompileOutcome::Compiled,
        );
        let (stats, meters) = (Stats::default(), Meters::default());
        let text = exposition(
            &[ModelGauges {
                metrics: &metrics,
                engine: Some((&stats, &meters)),
                weight_bytes: 1 << 40,
                turned_away: TurnedAway::default(),
            }],
            &idle_server(),
        );
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (series, number) = line.rsplit_once(' ').expect("a series and a number");
            assert!(series.contains("model_name=\"a\\\"b\\n\""), "{line}");
            assert!(number.parse::<f64>().is_ok(), "{line}");
        }
        let labels = "model_name=\"a\\\"b\\n\",engine=\"0\"";
        for line in [
            format!("lexiform_answer_seconds_bucket{{{labels},le=\"0.005\"}} 1"),
            format!("lexiform_mask_seconds_bucket{{{labels},le=\"0.00000025\"}} 0"),
            format!("lexiform_own_seconds_per_token_bucket{{{labels},le=\"0.00005\"}} 0"),
            format!("lexiform_grammar_compile_seconds_sum{{{labels},kind=\"regex\"}} 60.0"),
            format!("lexiform_grammar_compile_seconds_count{{{labels},kind=\"ebnf\"}} 0"),
        ] {
            assert!(text.contains(&line), "{line} is missing in {text}");
        }
        let helps: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("# HELP "))
            .collect();
        let mut names: Vec<&str> = helps.iter().filter_map(|help| help.split(' ').next()).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all, "every metric is told of once");
    }
}
