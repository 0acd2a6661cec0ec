//! The exposition of the metrics for Prometheus: its text format, version 0.0.4.

use std::fmt::Write as _;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use lexiform_engine::{Histogram, Meters, Stats};

use super::gauges::{BodyCounts, CompilerGauges, Gauges, TurnedAway};
use super::{GrammarKind, Metrics, ORIGINS, PHASES};

/// The text so far, with the labels of every series.
struct Page {
    labels: String,
    out: String,
}

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Writes a series with one more label.
    fn labelled(&mut self, name: &str, label: (&str, &str), value: impl std::fmt::Display) {
        let labels = &self.labels;
        let (key, label) = label;
        let _ = writeln!(self.out, "{name}{{{labels},{key}=\"{label}\"}} {value}");
    }

    fn value(&mut self, name: &str, kind: &str, help: &str, value: impl std::fmt::Display) {
        self.head(name, kind, help);
        let labels = &self.labels;
        let _ = writeln!(self.out, "{name}{{{labels}}} {value}");
    }

    fn counters<const N: usize>(&mut self, counters: [(&str, &str, u64); N]) {
        for (name, help, count) in counters {
            self.value(name, "counter", help, count);
        }
    }

    fn histograms<const N: usize>(&mut self, histograms: [(&str, &str, &Histogram); N]) {
        for (name, help, histogram) in histograms {
            self.head(name, "histogram", help);
            self.series(name, "", histogram);
        }
    }

    /// Writes the series of a histogram, with more labels that begin with a comma.
    fn series(&mut self, name: &str, more: &str, histogram: &Histogram) {
        let labels = format!("{}{more}", self.labels);
        for (bound, count) in histogram.buckets() {
            let _ = writeln!(self.out, "{name}_bucket{{{labels},le=\"{bound}\"}} {count}");
        }
        let (count, sum) = (histogram.count(), histogram.sum());
        let _ = writeln!(
            self.out,
            "{name}_bucket{{{labels},le=\"+Inf\"}} {count}\n{name}_sum{{{labels}}} {sum}\n{name}_count{{{labels}}} {count}"
        );
    }
}

impl Metrics {
    /// Returns the whole exposition.
    pub fn exposition(&self, now: Gauges<'_>) -> String {
        let model = now.model.replace('\\', "\\\\").replace('"', "\\\"");
        let model = model.replace('\n', "\\n");
        let mut page = Page {
            labels: format!("model_name=\"{model}\",engine=\"0\""),
            out: String::with_capacity(32 * 1024),
        };
        engine(now.stats, &mut page);
        meters(now.meters, &mut page);
        turned_away(now.turned_away, &mut page);
        self.samples(&mut page);
        self.requests(&mut page);
        self.tokens(&mut page);
        self.ends(&mut page);
        self.grammars(now.compiling, &mut page);
        self.longest(now.meters, &mut page);
        bodies(now.bodies, &mut page);
        if let Some(bytes) = now.resident {
            let help = "Bytes of physical memory that the process holds.";
            page.value("lexiform_resident_bytes", "gauge", help, bytes);
        }
        page.counters([
            (
                "lexiform_traces_sent_total",
                "Traces that the collector took.",
                now.traces.0,
            ),
            (
                "lexiform_traces_dropped_total",
                "Traces that the collector did not take, or that found no room.",
                now.traces.1,
            ),
        ]);
        page.out
    }

    fn samples(&self, page: &mut Page) {
        let name = "vllm:request_success_total";
        page.head(name, "counter", "Samples that came to their end.");
        for (reason, count) in [("stop", &self.stopped), ("length", &self.cut)] {
            page.labelled(name, ("finished_reason", reason), count.load(Relaxed));
        }
        let samples = &self.samples;
        page.histograms([
            (
                "vllm:request_prompt_tokens",
                "Tokens of the prompt of a sample.",
                &samples.prompt_tokens,
            ),
            (
                "vllm:request_generation_tokens",
                "Tokens written of a sample.",
                &samples.generation_tokens,
            ),
            (
                "lexiform_resample_attempts",
                "Attempts of a sample; the global law may need several.",
                &samples.attempts,
            ),
            (
                "vllm:request_queue_time_seconds",
                "Seconds that a sample waited until it ran.",
                &samples.queue,
            ),
            (
                "vllm:request_prefill_time_seconds",
                "Seconds from when a sample ran to its first token.",
                &samples.prefill,
            ),
            (
                "vllm:request_decode_time_seconds",
                "Seconds from a sample's first token to its last.",
                &samples.decode,
            ),
            (
                "vllm:request_inference_time_seconds",
                "Seconds from when a sample ran to its last token.",
                &samples.inference,
            ),
            (
                "vllm:request_time_per_output_token_seconds",
                "Seconds for each token of a sample but its first, on average.",
                &samples.per_token,
            ),
        ]);
    }

    fn requests(&self, page: &mut Page) {
        let requests = &self.requests;
        page.histograms([
            (
                "vllm:time_to_first_token_seconds",
                "Seconds from a request to its first token.",
                &requests.first_token,
            ),
            (
                "vllm:e2e_request_latency_seconds",
                "Seconds from a request to the end of its answer.",
                &requests.whole,
            ),
            (
                "vllm:request_params_n",
                "Samples that a request asked for.",
                &requests.samples,
            ),
            (
                "vllm:request_params_max_tokens",
                "The tokens that a request allowed, where it said so.",
                &requests.max_tokens,
            ),
            (
                "vllm:request_max_num_generation_tokens",
                "Tokens of a request's longest sample.",
                &requests.longest,
            ),
            (
                "lexiform_answer_seconds",
                "Seconds from a request to its answer, or to the head of its stream.",
                &requests.answer,
            ),
            (
                "lexiform_own_seconds_per_request",
                "Seconds of the server's own work on a request: reading, template, tokens, writing.",
                &requests.own,
            ),
            (
                "lexiform_own_seconds_per_token",
                "Seconds of the server's own work on a token of a stream.",
                &requests.own_token,
            ),
        ]);
    }

    fn tokens(&self, page: &mut Page) {
        let name = "lexiform_tokens_total";
        page.head(
            name,
            "counter",
            "Tokens by how they came about: forced ones by the grammar.",
        );
        let mut forced = 0;
        for (count, (_, origin)) in self.tokens.iter().zip(ORIGINS) {
            forced = count.load(Relaxed);
            page.labelled(name, ("origin", origin), forced);
        }
        page.counters([
            (
                "lexiform_forced_tokens_total",
                "Tokens that the grammar forced, as in lexiform_tokens_total.",
                forced,
            ),
            (
                "lexiform_attempts_total",
                "Attempts of all samples; the global law may need several for one.",
                self.attempts.load(Relaxed),
            ),
            (
                "lexiform_budget_steered_total",
                "Samples that were steered so that they are complete within max_tokens.",
                self.steered.load(Relaxed),
            ),
        ]);
    }

    fn ends(&self, page: &mut Page) {
        let name = "lexiform_http_answers_total";
        page.head(name, "counter", "Answers by the class of their status.");
        for class in 2..self.answers.len() {
            let count = self.answers[class].load(Relaxed);
            page.labelled(name, ("status", &format!("{class}xx")), count);
        }
        page.counters([
            (
                "lexiform_panics_total",
                "Panics in request handlers.",
                self.panics.load(Relaxed),
            ),
            (
                "lexiform_invalid_output_total",
                "Answers that an independent check refuted; must stay 0.",
                self.invalid.load(Relaxed),
            ),
        ]);
        page.counters([(
            "lexiform_ignored_fields_total",
            "Fields of requests that mean nothing here, and that the answers named.",
            self.ignored.load(Relaxed),
        )]);
        let name = "lexiform_disconnect_cancel_total";
        let help = "Requests whose client left before the end, by how far they were.";
        page.head(name, "counter", help);
        for (count, phase) in self.abandoned.iter().zip(PHASES) {
            page.labelled(name, ("phase", phase.name()), count.load(Relaxed));
        }
        let name = "lexiform_refused_total";
        page.head(name, "counter", "Requests refused, by the code of the error.");
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        for (reason, count) in &*refused {
            page.labelled(name, ("reason", reason), count);
        }
    }

    /// Writes the maximum times since the start: an average does not show the one request that all others
    /// waited for.
    fn longest(&self, meters: &Meters, page: &mut Page) {
        let compile = self.compile.iter().map(Histogram::longest).fold(0.0, f64::max);
        for (name, help, seconds) in [
            (
                "lexiform_grammar_compile_longest_seconds",
                "Seconds of the longest compile since the start.",
                compile,
            ),
            (
                "lexiform_mask_longest_seconds",
                "Seconds of the longest mask since the start.",
                meters.masks.longest(),
            ),
        ] {
            page.value(name, "gauge", help, seconds);
        }
    }

    fn grammars(&self, compiling: CompilerGauges, page: &mut Page) {
        page.counters([
            (
                "lexiform_grammar_cache_hits_total",
                "Constraints found compiled.",
                self.grammar_hits.load(Relaxed),
            ),
            (
                "lexiform_grammar_cache_misses_total",
                "Constraints that had to be compiled.",
                self.grammar_misses.load(Relaxed),
            ),
            (
                "lexiform_grammar_cache_evictions_total",
                "Compiled constraints that gave way to others.",
                compiling.evictions,
            ),
            (
                "lexiform_grammar_compile_rejected_total",
                "Constraints that did not compile.",
                self.grammar_rejected.load(Relaxed),
            ),
            (
                "lexiform_grammar_compile_called_off_total",
                "Compiles that were given up because nobody waited for them any more.",
                self.grammar_called_off.load(Relaxed),
            ),
        ]);
        let name = "lexiform_grammar_compile_seconds";
        page.head(
            name,
            "histogram",
            "Seconds that a compile took, by what it compiled.",
        );
        for (histogram, kind) in self.compile.iter().zip(GrammarKind::ALL) {
            page.series(name, &format!(",kind=\"{}\"", kind.name()), histogram);
        }
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
            page.value(name, "gauge", help, now);
        }
    }
}

/// Writes the metrics of the bodies that are arriving.
fn bodies(bodies: BodyCounts, page: &mut Page) {
    let gauges = [
        (
            "lexiform_body_bytes",
            "Bytes of request bodies that arrive or are being read.",
            bodies.bytes,
        ),
        (
            "lexiform_bodies_unfinished",
            "Request bodies that arrive.",
            bodies.unfinished,
        ),
    ];
    for (name, help, now) in gauges {
        page.value(name, "gauge", help, now);
    }
    let name = "lexiform_bodies_refused_total";
    page.head(name, "counter", "Request bodies refused while they arrived.");
    for (reason, count) in bodies.refused {
        page.labelled(name, ("reason", reason), count);
    }
}

/// Writes the number of requests that the queues had no room for, under vLLM's names for the limits.
fn turned_away(turned_away: TurnedAway, page: &mut Page) {
    let name = "vllm:admission_rejections_total";
    page.head(name, "counter", "Requests that the queues had no room for.");
    page.labelled(name, ("reason", "max_num_queued_reqs"), turned_away.requests);
    page.labelled(name, ("reason", "max_num_queued_tokens"), turned_away.tokens);
}

/// Writes the metrics of the engine.
fn engine(stats: &Stats, page: &mut Page) {
    let gauge = "gauge";
    page.value(
        "vllm:num_requests_running",
        gauge,
        "Sequences that are being decoded.",
        stats.running,
    );
    page.value(
        "vllm:num_requests_waiting",
        gauge,
        "Requests in the queue.",
        stats.waiting,
    );
    let name = "vllm:num_requests_waiting_by_reason";
    page.head(
        name,
        gauge,
        "Requests in the queue by what they wait for: always room.",
    );
    page.labelled(name, ("reason", "capacity"), stats.waiting);
    page.value(
        "vllm:kv_cache_usage_perc",
        gauge,
        "Share of the cache in use, from 0 to 1.",
        stats.blocks_used as f64 / (stats.blocks_total.max(1)) as f64,
    );
    let name = "vllm:cache_config_info";
    page.head(name, gauge, "The size of the cache; the value says nothing.");
    let (size, blocks) = (stats.block_size, stats.blocks_total);
    page.labelled(
        name,
        ("block_size", &format!("{size}\",num_gpu_blocks=\"{blocks}")),
        1,
    );
    traffic(stats, page);
    speculation(stats, page);
}

fn traffic(stats: &Stats, page: &mut Page) {
    page.counters([
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
            "lexiform_engine_steps_ahead_total",
            "Passes of the model that began behind the draws of the pass before.",
            stats.steps_ahead,
        ),
        (
            "lexiform_engine_steps_unused_total",
            "Passes that began so and of which no row was used.",
            stats.steps_unused,
        ),
        (
            "lexiform_engine_panics_total",
            "Panics in the decode loop.",
            stats.panics,
        ),
    ]);
}

fn speculation(stats: &Stats, page: &mut Page) {
    page.counters([
        (
            "vllm:spec_decode_num_drafts_total",
            "Passes of a sequence that verified a draft.",
            stats.drafts,
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
    ]);
    let name = "vllm:spec_decode_num_accepted_tokens_per_pos_total";
    page.head(
        name,
        "counter",
        "Drafted tokens that were kept, by their place in the draft.",
    );
    for (position, count) in stats.accepted_at.iter().enumerate() {
        page.labelled(name, ("position", &position.to_string()), count);
    }
    page.counters([(
        "lexiform_draft_stores_failed_total",
        "Stores of earlier answers that were given up because drafting from them failed.",
        stats.draft_stores_failed,
    ), (
        "lexiform_draft_saves_failed_total",
        "Times that earlier answers could not be written to the folder in which they are kept over a restart.",
        stats.draft_saves_failed,
    )]);
    page.value(
        "lexiform_draft_store_bytes",
        "gauge",
        "Bytes of what was learned from earlier answers, to draft from.",
        stats.draft_store_bytes,
    );
    page.value(
        "lexiform_draft_corpus_bytes",
        "gauge",
        "Bytes of the texts that the operator has named to draft from.",
        stats.draft_corpus_bytes,
    );
    let name = "lexiform_draft_rejected_total";
    let help = "Drafted tokens that were not kept. The grammar rejects none: what it does not allow is never drafted.";
    page.head(name, "counter", help);
    page.labelled(
        name,
        ("by", "model"),
        stats.drafted.saturating_sub(stats.accepted),
    );
}

/// Writes the times that steps in the engine take.
fn meters(meters: &Meters, page: &mut Page) {
    page.histograms([
        ("lexiform_mask_seconds", "Seconds for one mask.", &meters.masks),
        (
            "lexiform_mask_wait_on_gpu_seconds",
            "Seconds that a pass waited for its masks after the model was done, on whatever device.",
            &meters.mask_waits,
        ),
        (
            "vllm:iteration_tokens_total",
            "Tokens fed in one pass of the model.",
            &meters.pass_tokens,
        ),
        (
            "vllm:inter_token_latency_seconds",
            "Seconds between passes that brought tokens of the same sample.",
            &meters.gaps,
        ),
    ]);
}
