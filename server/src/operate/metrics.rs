//! The metrics: the counters of the server, for Prometheus.
//!
//! Routers and dashboards made for vLLM find its names here, where the server has a true value for them;
//! metrics that only this server has are called `lexiform_*`. `deploy/metrics.md` lists all of them, and the
//! ones that are not served, with the reasons.

mod exposition;
pub mod gauges;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lexiform_engine::{Histogram, Origin, Times};

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

/// The origins of tokens, with their names in metrics.
const ORIGINS: [(Origin, &str); 3] = [
    (Origin::Sampled, "sampled"),
    (Origin::Drafted, "drafted"),
    (Origin::Forced, "forced"),
];

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

/// The histograms of samples.
#[derive(Debug)]
struct SampleMetrics {
    prompt_tokens: Histogram,
    generation_tokens: Histogram,
    attempts: Histogram,
    queue: Histogram,
    prefill: Histogram,
    decode: Histogram,
    inference: Histogram,
    per_token: Histogram,
}

/// The histograms of requests.
#[derive(Debug)]
struct Requests {
    first_token: Histogram,
    whole: Histogram,
    answer: Histogram,
    own: Histogram,
    own_token: Histogram,
    samples: Histogram,
    max_tokens: Histogram,
    longest: Histogram,
}

impl Default for SampleMetrics {
    fn default() -> Self {
        let (tokens, seconds) = (|| Histogram::new(&TOKENS), || Histogram::new(&SECONDS));
        Self {
            prompt_tokens: tokens(),
            generation_tokens: tokens(),
            attempts: Histogram::new(&FEW),
            queue: seconds(),
            prefill: seconds(),
            decode: seconds(),
            inference: seconds(),
            per_token: seconds(),
        }
    }
}

impl Default for Requests {
    fn default() -> Self {
        let (tokens, seconds) = (|| Histogram::new(&TOKENS), || Histogram::new(&SECONDS));
        Self {
            first_token: seconds(),
            whole: seconds(),
            answer: seconds(),
            own: Histogram::new(&SHORT),
            own_token: Histogram::new(&SHORT),
            samples: Histogram::new(&FEW),
            max_tokens: tokens(),
            longest: tokens(),
        }
    }
}

/// All counters of a served model.
#[derive(Debug)]
pub struct Metrics {
    stopped: AtomicU64,
    cut: AtomicU64,
    answers: [AtomicU64; 6],
    panics: AtomicU64,
    /// The number of abandoned requests by phase, in the order of [`PHASES`].
    abandoned: [AtomicU64; 3],
    invalid: AtomicU64,
    steered: AtomicU64,
    refused: Mutex<BTreeMap<&'static str, u64>>,
    ignored: AtomicU64,
    /// The number of tokens by origin, in the order of [`ORIGINS`].
    tokens: [AtomicU64; 3],
    attempts: AtomicU64,
    samples: SampleMetrics,
    requests: Requests,
    grammar_hits: AtomicU64,
    grammar_misses: AtomicU64,
    grammar_rejected: AtomicU64,
    grammar_called_off: AtomicU64,
    /// The times of compilations by kind, in the order of [`GrammarKind::ALL`].
    compile: [Histogram; 6],
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            stopped: AtomicU64::default(),
            cut: AtomicU64::default(),
            answers: Default::default(),
            panics: AtomicU64::default(),
            abandoned: Default::default(),
            invalid: AtomicU64::default(),
            steered: AtomicU64::default(),
            refused: Mutex::default(),
            ignored: AtomicU64::default(),
            tokens: Default::default(),
            attempts: AtomicU64::default(),
            samples: SampleMetrics::default(),
            requests: Requests::default(),
            grammar_hits: AtomicU64::default(),
            grammar_misses: AtomicU64::default(),
            grammar_rejected: AtomicU64::default(),
            grammar_called_off: AtomicU64::default(),
            compile: GrammarKind::ALL.map(|_| Histogram::new(&SECONDS)),
        }
    }
}

impl Metrics {
    /// Counts a sample that has ended.
    pub fn finished(&self, ended: FinishedSample) {
        let counter = if ended.is_cut { &self.cut } else { &self.stopped };
        counter.fetch_add(1, Relaxed);
        self.steered.fetch_add(u64::from(ended.is_steered), Relaxed);
        self.attempts.fetch_add(ended.attempts as u64, Relaxed);
        let SampleMetrics {
            prompt_tokens,
            generation_tokens,
            attempts,
            queue,
            prefill,
            decode,
            inference,
            per_token,
        } = &self.samples;
        prompt_tokens.observe(ended.prompt_tokens as f64);
        generation_tokens.observe(ended.completion_tokens as f64);
        attempts.observe(ended.attempts as f64);
        queue.observe_time(ended.times.queued);
        prefill.observe_time(ended.times.prefill);
        decode.observe_time(ended.times.decode);
        inference.observe_time(ended.times.prefill + ended.times.decode);
        if let Some(gaps @ 1..) = ended.completion_tokens.checked_sub(1) {
            per_token.observe(ended.times.decode.as_secs_f64() / gaps as f64);
        }
    }

    /// Counts a token that was sent to a client.
    pub fn token(&self, origin: Origin) {
        for (counter, (name, _)) in self.tokens.iter().zip(ORIGINS) {
            counter.fetch_add(u64::from(name == origin), Relaxed);
        }
    }

    /// Counts a request that was answered with this status; for a stream, when its head is sent.
    pub fn answered(&self, status: u16, time: Duration) {
        let class = usize::from(status / 100).min(self.answers.len() - 1);
        self.answers[class].fetch_add(1, Relaxed);
        self.requests.answer.observe_time(time);
    }

    /// Counts a client that disconnected before its answer was complete.
    pub fn abandoned(&self, phase: Phase) {
        for (counter, known) in self.abandoned.iter().zip(PHASES) {
            counter.fetch_add(u64::from(known == phase), Relaxed);
        }
    }

    /// Counts an answer that failed an independent check of its constraint. Must never happen.
    pub fn invalid_output(&self) {
        self.invalid.fetch_add(1, Relaxed);
    }

    /// Counts a request that was refused for this reason; reasons are constants of this program, so there are
    /// few.
    pub fn refused(&self, reason: &'static str) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        *refused.entry(reason).or_default() += 1;
    }

    /// Counts the fields of a request that have no effect here, and that its answer named.
    pub fn ignored(&self, fields: usize) {
        self.ignored.fetch_add(fields as u64, Relaxed);
    }

    /// Records the time to the first token of a request.
    pub fn first_token(&self, time: Duration) {
        self.requests.first_token.observe_time(time);
    }

    /// Records the time of a request that was answered to its end, successfully or not.
    pub fn whole(&self, time: Duration) {
        self.requests.whole.observe_time(time);
    }

    /// Records the size of a request that was answered successfully.
    pub fn asked(&self, asked: RequestSize) {
        self.requests.samples.observe(asked.samples as f64);
        self.requests.longest.observe(asked.longest as f64);
        if let Some(max_tokens) = asked.max_tokens {
            self.requests.max_tokens.observe(max_tokens as f64);
        }
    }

    /// Records the time that the server itself spent on a request, besides its tokens and without the model,
    /// masks and compilations.
    pub fn own_time_of_request(&self, time: Duration) {
        self.requests.own.observe_time(time);
    }

    /// Records the time that the server itself spent on a token of a stream.
    pub fn own_time_of_token(&self, time: Duration) {
        self.requests.own_token.observe_time(time);
    }

    /// Counts a request handler that panicked.
    pub fn panicked(&self) {
        self.panics.fetch_add(1, Relaxed);
    }

    /// Counts a grammar that was in the cache.
    pub fn grammar_hit(&self) {
        self.grammar_hits.fetch_add(1, Relaxed);
    }

    /// Records a compilation that produced a grammar, was rejected, or was cancelled because no request
    /// waited any more.
    pub fn grammar_compiled(&self, kind: GrammarKind, time: Duration, outcome: CompileOutcome) {
        self.grammar_misses.fetch_add(1, Relaxed);
        match outcome {
            CompileOutcome::Compiled => {}
            CompileOutcome::CalledOff => {
                self.grammar_called_off.fetch_add(1, Relaxed);
            }
            CompileOutcome::Rejected => {
                self.grammar_rejected.fetch_add(1, Relaxed);
            }
        }
        for (histogram, known) in self.compile.iter().zip(GrammarKind::ALL) {
            if known == kind {
                histogram.observe_time(time);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::gauges::{BodyCounts, CompilerGauges, Gauges, TurnedAway};
    use super::*;
    use lexiform_engine::{Meters, Stats};

    #[test]
    fn the_exposition_can_be_read_line_by_line() {
        let metrics = Metrics::default();
        metrics.answered(200, Duration::from_millis(3));
        metrics.grammar_compiled(
            GrammarKind::Regex,
            Duration::from_secs(60),
            CompileOutcome::Compiled,
        );
        let (stats, meters) = (Stats::default(), Meters::default());
        let text = metrics.exposition(Gauges {
            model: "a\"b\n",
            stats: &stats,
            meters: &meters,
            compiling: CompilerGauges::default(),
            turned_away: TurnedAway::default(),
            traces: (0, 0),
            bodies: BodyCounts::default(),
            resident: Some(1),
        });
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (series, number) = line.rsplit_once(' ').expect("a series and a number");
            assert!(series.contains("model_name=\"a\\\"b\\n\""), "{line}");
            assert!(number.parse::<f64>().is_ok(), "{line}");
        }
        let labels = "model_name=\"a\\\"b\\n\",engine=\"0\"";
        for line in [
            format!("lexiform_answer_seconds_bucket{{{labels},le=\"0.005\"}} 1"),
            format!("lexiform_grammar_compile_seconds_sum{{{labels},kind=\"regex\"}} 60"),
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
