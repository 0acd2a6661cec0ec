//! The metrics: the counters of the server, for Prometheus.
//!
//! Routers and dashboards made for vLLM find its names here, where the server has a true value for them;
//! metrics that only this server has are called `lexiform_*`. `deploy/metrics.md` lists all of them, and the
//! ones that are not served, with the reasons.

pub mod exposition;
mod families;
pub mod gauges;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use lexiform_engine::{Origin, Times};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use families::{Always, Counters, Histograms, counted, registry};

/// The upper bounds of the buckets for times, in seconds.
static SECONDS: [f64; 16] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 600.0,
];
/// The upper bounds of the buckets for the server's own times, which are short.
static SHORT: [f64; 12] = [
    2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 2e-2,
];
/// The upper bounds of the buckets for numbers of tokens.
static TOKENS: [f64; 16] = [
    1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5,
];
/// The upper bounds of the buckets for numbers that are usually one.
static FEW: [f64; 10] = [1.0, 2.0, 3.0, 5.0, 10.0, 16.0, 32.0, 100.0, 300.0, 1000.0];

/// The classes of status codes.
const CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

/// The kind of constraint that makes up most of a compiled language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrammarKind {
    /// A JSON Schema.
    Schema,
    /// A regular expression.
    Regex,
    /// A grammar.
    Ebnf,
    /// A list of texts.
    Choice,
    /// Calls of tools, with any inputs.
    Tools,
    /// Structural tags.
    Tags,
}

impl GrammarKind {
    /// All kinds.
    pub const ALL: [GrammarKind; 6] = [
        GrammarKind::Schema,
        GrammarKind::Regex,
        GrammarKind::Ebnf,
        GrammarKind::Choice,
        GrammarKind::Tools,
        GrammarKind::Tags,
    ];

    /// Returns the name of the kind.
    pub fn name(self) -> &'static str {
        match self {
            GrammarKind::Schema => "json_schema",
            GrammarKind::Regex => "regex",
            GrammarKind::Ebnf => "ebnf",
            GrammarKind::Choice => "choice",
            GrammarKind::Tools => "tools",
            GrammarKind::Tags => "structural_tag",
        }
    }
}

/// The outcome of a compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompileOutcome {
    /// It produced a grammar.
    Compiled,
    /// Its source has problems.
    Rejected,
    /// It was cancelled, because no request waited for it any more.
    CalledOff,
}

/// The figures of a sample that has ended, for the counters.
#[derive(Clone, Copy, Debug)]
pub struct FinishedSample {
    /// `true` if the sample ended at its maximum length.
    pub is_cut: bool,
    /// `true` if its token budget steered it.
    pub is_steered: bool,
    /// The number of attempts at its text.
    pub attempts: usize,
    /// The number of tokens of its prompt.
    pub prompt_tokens: usize,
    /// The number of tokens written.
    pub completion_tokens: usize,
    /// The times that the sample took.
    pub times: Times,
}

/// The phase of a request when its client disconnected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The request was being read, or its constraint compiled.
    Prepare,
    /// The request had no token yet.
    Queue,
    /// The answer was being written.
    Decode,
}

/// The phases in their order.
const PHASES: [Phase; 3] = [Phase::Prepare, Phase::Queue, Phase::Decode];

impl Phase {
    /// Returns the name of the phase.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Prepare => "prepare",
            Phase::Queue => "queue",
            Phase::Decode => "decode",
        }
    }
}

/// The requested size and the actual size of a request, over all its samples.
#[derive(Clone, Copy, Debug)]
pub struct RequestSize {
    /// The number of samples of each prompt.
    pub samples: usize,
    /// The maximum number of tokens that it requested.
    pub max_tokens: Option<usize>,
    /// The number of tokens of its longest sample.
    pub longest: usize,
}

/// Declares the metrics: field, type and initial state, then name and help text. The library adds `_total` to
/// the names of counters, and a full stop to help texts.
macro_rules! metrics {
    ($($field:ident: $kind:ty = $initial:expr, $name:literal, $help:literal;)*) => {
        /// All counters of a served model.
        #[derive(Debug)]
        pub struct Metrics {
            model: String,
            registry: Registry,
            $($field: $kind,)*
        }

        impl Metrics {
            /// Creates the counters of the model with this name.
            pub fn new(model: &str) -> Self {
                let mut registry = registry(model);
                $(
                    let $field: $kind = $initial;
                    registry.register($name, $help, $field.clone());
                )*
                Self { model: model.to_owned(), registry, $($field),* }
            }
        }
    };
}

metrics! {
    ended: Counters = counted("finished_reason", [("stop", 0), ("length", 0)]),
        "vllm:request_success", "Samples that came to their end";
    prompt_tokens: Histogram = Histogram::new(TOKENS),
        "vllm:request_prompt_tokens", "Tokens of the prompt of a sample";
    generation_tokens: Histogram = Histogram::new(TOKENS),
        "vllm:request_generation_tokens", "Tokens written of a sample";
    sample_attempts: Histogram = Histogram::new(FEW),
        "lexiform_resample_attempts", "Attempts of a sample; the global law may need several";
    queue: Histogram = Histogram::new(SECONDS),
        "vllm:request_queue_time_seconds", "Seconds that a sample waited until it ran";
    prefill: Histogram = Histogram::new(SECONDS),
        "vllm:request_prefill_time_seconds", "Seconds from when a sample ran to its first token";
    decode: Histogram = Histogram::new(SECONDS),
        "vllm:request_decode_time_seconds", "Seconds from a sample's first token to its last";
    inference: Histogram = Histogram::new(SECONDS),
        "vllm:request_inference_time_seconds", "Seconds from when a sample ran to its last token";
    per_token: Histogram = Histogram::new(SECONDS),
        "vllm:request_time_per_output_token_seconds",
        "Seconds for each token of a sample but its first, on average";
    first_token: Histogram = Histogram::new(SECONDS),
        "vllm:time_to_first_token_seconds", "Seconds from a request to its first token";
    whole: Histogram = Histogram::new(SECONDS),
        "vllm:e2e_request_latency_seconds", "Seconds from a request to the end of its answer";
    samples: Histogram = Histogram::new(FEW),
        "vllm:request_params_n", "Samples that a request asked for";
    max_tokens: Histogram = Histogram::new(TOKENS),
        "vllm:request_params_max_tokens", "The tokens that a request allowed, where it said so";
    longest: Histogram = Histogram::new(TOKENS),
        "vllm:request_max_num_generation_tokens", "Tokens of a request's longest sample";
    answer: Histogram = Histogram::new(SECONDS),
        "lexiform_answer_seconds", "Seconds from a request to its answer, or to the head of its stream";
    own: Histogram = Histogram::new(SHORT),
        "lexiform_own_seconds_per_request",
        "Seconds of the server's own work on a request: reading, template, tokens, writing";
    own_token: Histogram = Histogram::new(SHORT),
        "lexiform_own_seconds_per_token", "Seconds of the server's own work on a token of a stream";
    tokens: Counters = counted("origin", [("sampled", 0), ("drafted", 0), ("forced", 0)]),
        "lexiform_tokens", "Tokens by how they came about: forced ones by the grammar";
    forced: Counter = Counter::default(),
        "lexiform_forced_tokens", "Tokens that the grammar forced, as in lexiform_tokens_total";
    attempts: Counter = Counter::default(),
        "lexiform_attempts", "Attempts of all samples; the global law may need several for one";
    steered: Counter = Counter::default(),
        "lexiform_budget_steered", "Samples that were steered so that they are complete within max_tokens";
    answers: Counters = counted("status", CLASSES.map(|class| (class, 0))),
        "lexiform_http_answers", "Answers by the class of their status";
    panics: Counter = Counter::default(),
        "lexiform_panics", "Panics in request handlers";
    invalid: Counter = Counter::default(),
        "lexiform_invalid_output", "Answers that an independent check refuted; must stay 0";
    ignored: Counter = Counter::default(),
        "lexiform_ignored_fields", "Fields of requests that mean nothing here, and that the answers named";
    abandoned: Counters = counted("phase", PHASES.map(|phase| (phase.name(), 0))),
        "lexiform_disconnect_cancel", "Requests whose client left before the end, by how far they were";
    refused: Always<Counters> = Always(Counters::default()),
        "lexiform_refused", "Requests refused, by the code of the error";
    grammar_hits: Counter = Counter::default(),
        "lexiform_grammar_cache_hits", "Constraints found compiled";
    grammar_misses: Counter = Counter::default(),
        "lexiform_grammar_cache_misses", "Constraints that had to be compiled";
    grammar_rejected: Counter = Counter::default(),
        "lexiform_grammar_compile_rejected", "Constraints that did not compile";
    grammar_called_off: Counter = Counter::default(),
        "lexiform_grammar_compile_called_off",
        "Compiles that were given up because nobody waited for them any more";
    compile: Histograms = compile_times(),
        "lexiform_grammar_compile_seconds", "Seconds that a compile took, by what it compiled";
    // An average does not show the one request that all others waited for.
    compile_longest: Gauge<f64, AtomicU64> = Gauge::default(),
        "lexiform_grammar_compile_longest_seconds", "Seconds of the longest compile since the start";
}

fn compile_times() -> Histograms {
    let histograms = Histograms::new_with_constructor(|| Histogram::new(SECONDS));
    for kind in GrammarKind::ALL {
        drop(histograms.get_or_create(&[("kind", kind.name())]));
    }
    histograms
}

impl Metrics {
    /// Counts a sample that has ended.
    pub fn finished(&self, ended: FinishedSample) {
        let reason = if ended.is_cut { "length" } else { "stop" };
        self.ended.get_or_create(&[("finished_reason", reason)]).inc();
        self.steered.inc_by(u64::from(ended.is_steered));
        self.attempts.inc_by(ended.attempts as u64);
        self.prompt_tokens.observe(ended.prompt_tokens as f64);
        self.generation_tokens.observe(ended.completion_tokens as f64);
        self.sample_attempts.observe(ended.attempts as f64);
        let Times {
            queued,
            prefill,
            decode,
        } = ended.times;
        self.queue.observe(queued.as_secs_f64());
        self.prefill.observe(prefill.as_secs_f64());
        self.decode.observe(decode.as_secs_f64());
        self.inference.observe((prefill + decode).as_secs_f64());
        if let Some(gaps @ 1..) = ended.completion_tokens.checked_sub(1) {
            self.per_token.observe(decode.as_secs_f64() / gaps as f64);
        }
    }

    /// Counts a token that was sent to a client.
    pub fn token(&self, origin: Origin) {
        let origin = match origin {
            Origin::Sampled => "sampled",
            Origin::Drafted => "drafted",
            Origin::Forced => "forced",
            Origin::Given => return,
        };
        self.tokens.get_or_create(&[("origin", origin)]).inc();
        self.forced.inc_by(u64::from(origin == "forced"));
    }

    /// Counts a request that was answered with this status; for a stream, when its head is sent.
    pub fn answered(&self, status: u16, time: Duration) {
        if let Some(class) = usize::from(status / 100).min(5).checked_sub(2) {
            self.answers.get_or_create(&[("status", CLASSES[class])]).inc();
        }
        self.answer.observe(time.as_secs_f64());
    }

    /// Counts a client that disconnected before its answer was complete.
    pub fn abandoned(&self, phase: Phase) {
        self.abandoned.get_or_create(&[("phase", phase.name())]).inc();
    }

    /// Counts an answer that failed an independent check of its constraint. Must never happen.
    pub fn invalid_output(&self) {
        self.invalid.inc();
    }

    /// Counts a request that was refused for this reason; reasons are constants of this program, so there are
    /// few.
    pub fn refused(&self, reason: &'static str) {
        self.refused.0.get_or_create(&[("reason", reason)]).inc();
    }

    /// Counts the fields of a request that have no effect here, and that its answer named.
    pub fn ignored(&self, fields: usize) {
        self.ignored.inc_by(fields as u64);
    }

    /// Records the time to the first token of a request.
    pub fn first_token(&self, time: Duration) {
        self.first_token.observe(time.as_secs_f64());
    }

    /// Records the time of a request that was answered to its end, successfully or not.
    pub fn whole(&self, time: Duration) {
        self.whole.observe(time.as_secs_f64());
    }

    /// Records the size of a request that was answered successfully.
    pub fn asked(&self, asked: RequestSize) {
        self.samples.observe(asked.samples as f64);
        self.longest.observe(asked.longest as f64);
        if let Some(max_tokens) = asked.max_tokens {
            self.max_tokens.observe(max_tokens as f64);
        }
    }

    /// Records the time that the server itself spent on a request, besides its tokens and without the model,
    /// masks and compilations.
    pub fn own_time_of_request(&self, time: Duration) {
        self.own.observe(time.as_secs_f64());
    }

    /// Records the time that the server itself spent on a token of a stream.
    pub fn own_time_of_token(&self, time: Duration) {
        self.own_token.observe(time.as_secs_f64());
    }

    /// Counts a request handler that panicked.
    pub fn panicked(&self) {
        self.panics.inc();
    }

    /// Counts a grammar that was in the cache.
    pub fn grammar_hit(&self) {
        self.grammar_hits.inc();
    }

    /// Records a compilation that produced a grammar, was rejected, or was cancelled because no request
    /// waited any more.
    pub fn grammar_compiled(&self, kind: GrammarKind, time: Duration, outcome: CompileOutcome) {
        self.grammar_misses.inc();
        match outcome {
            CompileOutcome::Compiled => {}
            CompileOutcome::CalledOff => {
                self.grammar_called_off.inc();
            }
            CompileOutcome::Rejected => {
                self.grammar_rejected.inc();
            }
        }
        let (seconds, label) = (time.as_secs_f64(), [("kind", kind.name())]);
        self.compile.get_or_create(&label).observe(seconds);
        // Values that are not negative are ordered like their bits.
        self.compile_longest.inner().fetch_max(seconds.to_bits(), Relaxed);
    }
}
