//! The fields that all generating routes share: length, sampling, law, streaming, constraint.

pub(in crate::wire) mod caching;
mod choose;
mod contrast;
mod drafts;
mod effects;
mod ending;
mod filters;
mod lossy;
mod penalties;
mod samples;
mod schemas;
mod stop;
mod task;
mod tilt;
pub(in crate::wire) mod values;

use std::sync::Arc;
use std::time::Duration;

use lexiform_engine::{Feature, Law, conflicts};
use serde_json::Value;

use super::constraint::monitors::Monitor;
use super::constraint::{self, Constraint, Source};
use super::fields::{Fields, Problems};

pub use choose::Choose;
pub use contrast::{Contrast, Other};
pub use drafts::Drafts;
pub use filters::Filters;
pub use penalties::PenaltyScope;
pub use stop::Stop;
pub use task::Task;
pub use tilt::Tilt;
pub use values::token_id;

/// The maximum of `n` and of `best_of`.
const SAMPLES: i64 = 16;
/// The maximum number of most likely tokens that are listed for each position.
pub(super) const TOP_LOGPROBS: i64 = 20;

/// The minimum and maximum of `repetition_penalty`; 1 is no penalty.
const REPETITION: (f64, f64) = (0.01, 100.0);

/// The maximum number of biased tokens.
const BIASED_TOKENS: usize = 1_024;

/// The treatment of an answer that may not fit into `max_tokens`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnBudget {
    /// A constrained answer is steered so that it is complete in time; free text is cut.
    Complete,
    /// The answer is cut.
    Truncate,
    /// The request fails.
    Error,
}

/// The distribution that reported log-probabilities belong to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogprobsMode {
    /// The model's own distribution, before sampling settings and constraint.
    #[default]
    Raw,
    /// The distribution of the tokens that may be drawn, after both.
    Processed,
}

impl LogprobsMode {
    /// Returns the log-probability to report: the token's own, or its share among the allowed tokens.
    pub fn of(self, own: f32, share: f32) -> f32 {
        match self {
            LogprobsMode::Raw => own,
            LogprobsMode::Processed => share,
        }
    }
}

/// The policy for describing the constraint to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaInPrompt {
    /// A schema is described in the place that the model's chat template has for it, or else as the server
    /// sees fit.
    Auto,
    /// The constraint is not described.
    Never,
    /// The constraint is always described: in the template's place for it, or else in the system message.
    Always,
}

/// The part of its constraint's enforcement that an answer reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// The keywords that are not enforced exactly.
    #[default]
    Inexact,
    /// All keywords.
    Whole,
}

/// The options of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamOptions {
    /// `true` if the last chunk reports the usage.
    pub include_usage: bool,
    /// `true` if every chunk reports the usage so far.
    pub continuous_usage: bool,
    /// `true` if chunks report the growth of the content's JSON value as operations of JSON Patch.
    pub json_patch: bool,
    /// `true` if the stream can be resumed over another connection.
    pub resumable: bool,
}

/// The settings of a request for generation. Absent sampling values are the model's own defaults.
#[derive(Clone, Debug)]
pub struct Generation {
    /// The requested model.
    pub model: String,
    /// The maximum number of tokens to write.
    pub max_tokens: Option<usize>,
    /// The number of tokens before which nothing ends the output where another token may come.
    pub min_tokens: usize,
    /// `true` if the model's end tokens do not end the output.
    pub ignore_eos: bool,
    /// The number of samples.
    pub n: usize,
    /// The number of candidates that the samples are the best of, if there are more candidates than samples.
    pub best_of: Option<usize>,
    /// How the samples are chosen among the candidates.
    pub choose: Choose,
    /// `true` if the weight of each sample with respect to the global law is requested.
    pub weights: bool,
    /// The temperature.
    pub temperature: Option<f32>,
    /// The probability of the nucleus.
    pub top_p: Option<f32>,
    /// The number of tokens to choose among; zero means all.
    pub top_k: Option<u32>,
    /// The minimum probability, as a share of the most likely token's.
    pub min_p: Option<f32>,
    /// The other filters.
    pub filters: Filters,
    /// The seed.
    pub seed: Option<u64>,
    /// The divisor of the positive logits of all tokens of the prompt and the output; negative logits are
    /// multiplied by it.
    pub repetition_penalty: Option<f32>,
    /// The number subtracted from the logit of every token that the output already contains.
    pub presence_penalty: f32,
    /// The number subtracted from a token's logit for every time that the output contains it.
    pub frequency_penalty: f32,
    /// The tokens that these three concern; if absent, the constraint decides.
    pub penalty_scope: Option<PenaltyScope>,
    /// The tokens whose logits are biased, each with the number that is added.
    pub logit_bias: Vec<(u32, f32)>,
    /// The texts and tokens that stop the output.
    pub stop: Stop,
    /// The options of the stream if the answer is streamed.
    pub stream: Option<StreamOptions>,
    /// The constraint that the output must obey.
    pub constraint: Option<Constraint>,
    /// The additional constraints that the output must obey, token by token.
    pub monitors: Vec<Monitor>,
    /// The score by which texts weigh more or less.
    pub tilt: Option<Tilt>,
    /// The way in which the output is generated.
    pub task: Task,
    /// `true` if the answer reports all texts that it was drawn from.
    pub return_particles: bool,
    /// The treatment of an answer that may not fit into `max_tokens`.
    pub on_budget: OnBudget,
    /// The distribution that log-probabilities belong to, if they are requested.
    pub logprobs_mode: LogprobsMode,
    /// The policy for describing the constraint to the model.
    pub schema_in_prompt: SchemaInPrompt,
    /// The drafts that are allowed. They never change the law of the answer, nor the text of a seed, unless
    /// they are [lossy](Law::Lossy).
    pub draft: Drafts,
    /// `true` if the same seed must give the same text whatever else is computed. If that cannot be
    /// promised, the request is refused.
    pub batch_invariant: bool,
    /// The time for which the client is willing to wait.
    pub timeout: Option<Duration>,
    /// The priority among the requests of one client: the lowest number goes first, as in vLLM.
    pub priority: i32,
    /// What separates the prompts of the request from others of its client in the prompt cache.
    pub cache_salt: Option<Arc<str>>,
    /// The identity of a registered constraint, given instead of a constraint.
    pub grammar_id: Option<String>,
    /// `true` if an independent program is to check the answer again.
    pub certificate: bool,
    /// `true` if the answer reports how sure the model was of each value.
    pub confidence: bool,
    /// `true` if the answer also reports the probability of each value where the constraint leaves few.
    pub enum_scores: bool,
    /// The part of its constraint's enforcement that the answer reports.
    pub extent: Extent,
}

/// Fields that promise nothing about the output, or that request what happens anyway.
const PASSED_OVER: &[&str] = &[
    "user",
    "metadata",
    "store",
    "service_tier",
    "safety_identifier",
    "prompt_cache_retention",
    "prompt_cache_options",
    "verbosity",
    "moderation",
    "request_id",
    "skip_special_tokens",
    "spaces_between_special_tokens",
];

/// Fields that this server knows but cannot honour, with the values that change nothing.
const NEUTRAL: &[(&str, &[&str])] = &[
    ("bad_words", &["[]"]),
    ("allowed_token_ids", &[]),
    ("prompt_logprobs", &["0"]),
    ("truncate_prompt_tokens", &[]),
];

/// Reads the shared fields.
pub fn read(fields: &mut Fields, problems: &mut Problems) -> Generation {
    let model = fields.string("model", problems);
    let constraint = constraint::fields::read(fields, problems);
    let (task, return_particles) = task::read(fields, problems);
    let wants_drafts = fields.has("draft");
    let generation = Generation {
        model: model.unwrap_or_default(),
        max_tokens: values::max_tokens(fields, problems),
        min_tokens: values::min_tokens(fields, problems),
        ignore_eos: fields.boolean("ignore_eos", problems).unwrap_or(false),
        n: fields
            .integer("n", 1, SAMPLES, problems)
            .map_or(1, |n| n as usize),
        choose: choose::read(fields, problems),
        best_of: fields
            .integer("best_of", 1, SAMPLES, problems)
            .map(|best_of| best_of as usize),
        weights: fields.boolean("weights", problems).unwrap_or(false),
        temperature: fields.number("temperature", 0.0, 2.0, problems),
        top_p: fields.number("top_p", 0.0, 1.0, problems),
        top_k: values::top_k(fields, problems),
        min_p: fields.number("min_p", 0.0, 1.0, problems),
        filters: Filters::read(fields, problems),
        seed: values::seed(fields, problems),
        repetition_penalty: fields.number("repetition_penalty", REPETITION.0, REPETITION.1, problems),
        presence_penalty: fields
            .number("presence_penalty", -2.0, 2.0, problems)
            .unwrap_or(0.0),
        frequency_penalty: fields
            .number("frequency_penalty", -2.0, 2.0, problems)
            .unwrap_or(0.0),
        penalty_scope: penalties::read(fields, problems),
        logit_bias: logit_bias(fields, problems),
        stop: Stop::read(fields, problems),
        stream: stream(fields, problems),
        constraint,
        monitors: constraint::monitors::read(fields, problems),
        tilt: tilt::read(fields, &task, problems),
        task,
        return_particles,
        on_budget: on_budget(fields, problems),
        logprobs_mode: logprobs_mode(fields, problems),
        schema_in_prompt: schema_in_prompt(fields, problems),
        draft: Drafts::read(fields, problems),
        batch_invariant: fields.boolean("batch_invariant", problems).unwrap_or(false),
        timeout: values::timeout(fields, problems),
        priority: values::priority(fields, problems),
        cache_salt: caching::salt(fields, problems),
        grammar_id: fields.string("grammar_id", problems),
        certificate: fields.boolean("certificate", problems).unwrap_or(false),
        confidence: fields.boolean("field_confidence", problems).unwrap_or(false),
        enum_scores: fields.boolean("enum_scores", problems).unwrap_or(false),
        extent: match fields.boolean("enforcement_report", problems) {
            Some(true) => Extent::Whole,
            _ => Extent::Inexact,
        },
    };
    fields.ignore(PASSED_OVER);
    fields.only_neutral(NEUTRAL, problems);
    contradictions(&generation, problems);
    generation.note_ineffective(wants_drafts, fields, problems);
    generation
}

/// Returns the features of a request that the engine's table of conflicts lists.
fn features(generation: &Generation) -> Vec<Feature> {
    let features = [
        (generation.best_of.is_some(), Feature::BestOf),
        (!generation.monitors.is_empty(), Feature::Monitors),
        (generation.tilt.is_some(), Feature::Tilt),
        (generation.filters.mirostat.is_some(), Feature::Mirostat),
        (generation.on_budget != OnBudget::Complete, Feature::Cut),
        (generation.weights, Feature::Weights),
        (generation.draft.is_off(), Feature::Undrafted),
    ];
    let there = features.into_iter().filter(|(is_there, _)| *is_there);
    there.map(|(_, feature)| feature).collect()
}

/// Reports the settings that cannot be honoured together.
fn contradictions(generation: &Generation, problems: &mut Problems) {
    let free = (generation.seed.is_some(), generation.batch_invariant);
    generation.draft.contradictions(free, problems);
    let (method, name) = generation.task.method();
    for conflict in conflicts(method, &name, &features(generation)) {
        problems.invalid(conflict.field, conflict.reason);
    }
    match &generation.task {
        Task::Search(search) => {
            search.contradictions((generation.n, generation.temperature), problems);
        }
        Task::Draw(
            Law::Smc { particles, .. }
            | Law::Sir {
                candidates: particles,
                ..
            },
        ) if *particles < generation.n => problems.invalid("particles", "must be at least n"),
        Task::Draw(_) => (),
    }
    if !generation.monitors.is_empty() && generation.constraint.is_none() && generation.grammar_id.is_none() {
        let message = "requires a constraint (response_format, structured_outputs, ebnf …) or grammar_id, which the monitors narrow";
        problems.invalid("monitors", message);
    }
    generation.check_choice(problems);
    generation.check_end(problems);
    if generation.enum_scores && generation.stream.is_some() {
        let message = "enum_scores cannot be streamed: the values are weighed when the answer is whole";
        problems.invalid("enum_scores", message);
    }
    if let Some(constraint) = &generation.constraint {
        let what = format!("the text of {}", constraint.param);
        generation.ends_whole(&what, problems);
    }
    let is_json = |constraint: &Constraint| matches!(constraint.source, Source::Schema(_));
    let may_be_json = generation.grammar_id.is_some() || generation.constraint.as_ref().is_some_and(is_json);
    if generation.stream.is_some_and(|options| options.json_patch) && !may_be_json {
        let message = "requires a JSON constraint";
        problems.invalid("stream_options.json_patch", message);
    }
    if generation.grammar_id.is_some() {
        generation.ends_whole("the text of grammar_id", problems);
        if let Some(constraint) = &generation.constraint {
            let message = format!(
                "only one constraint is allowed; {} is another one",
                constraint.param
            );
            problems.invalid("grammar_id", message);
        }
    }
}

impl Generation {
    /// Returns the constraints that the request contains.
    pub fn constraints(&self) -> impl Iterator<Item = &Constraint> {
        let monitors = self.monitors.iter().filter_map(Monitor::constraint);
        self.constraint.iter().chain(monitors)
    }

    /// Returns the settings of a request that gives nothing but the model.
    pub fn plain(model: &str) -> Self {
        Self {
            model: model.to_owned(),
            max_tokens: None,
            min_tokens: 0,
            ignore_eos: false,
            n: 1,
            best_of: None,
            choose: Choose::default(),
            weights: false,
            temperature: None,
            top_p: None,
            top_k: None,
            min_p: None,
            filters: Filters::default(),
            seed: None,
            repetition_penalty: None,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            penalty_scope: None,
            logit_bias: Vec::new(),
            stop: Stop::default(),
            stream: None,
            constraint: None,
            monitors: Vec::new(),
            tilt: None,
            task: Task::default(),
            return_particles: false,
            on_budget: OnBudget::Complete,
            logprobs_mode: LogprobsMode::Raw,
            schema_in_prompt: SchemaInPrompt::Auto,
            draft: Drafts::default(),
            batch_invariant: false,
            timeout: None,
            priority: 0,
            cache_salt: None,
            grammar_id: None,
            certificate: false,
            confidence: false,
            enum_scores: false,
            extent: Extent::Inexact,
        }
    }

    /// Refuses the options that only chats support.
    pub(crate) fn not_a_chat(&self, problems: &mut Problems) {
        if self.stream.is_some_and(|options| options.json_patch) {
            problems.unsupported("stream_options.json_patch", "requires a chat completion");
        }
    }
}

/// Reads the log-probabilities that the chat route requests: a flag and a count.
pub fn chat_logprobs(fields: &mut Fields, problems: &mut Problems) -> Option<u8> {
    let wanted = fields.boolean("logprobs", problems).unwrap_or(false);
    let top = fields.integer("top_logprobs", 0, TOP_LOGPROBS, problems);
    if top.is_some_and(|top| top > 0) && !wanted {
        problems.invalid("top_logprobs", "requires logprobs: true");
    }
    wanted.then_some(top.unwrap_or(0) as u8)
}

/// Reads the log-probabilities that the completions route requests: a count.
pub fn completion_logprobs(fields: &mut Fields, problems: &mut Problems) -> Option<u8> {
    fields
        .integer("logprobs", 0, TOP_LOGPROBS, problems)
        .map(|top| top as u8)
}

fn on_budget(fields: &mut Fields, problems: &mut Problems) -> OnBudget {
    let words = [
        ("complete", OnBudget::Complete),
        ("truncate", OnBudget::Truncate),
        ("error", OnBudget::Error),
    ];
    fields
        .word("on_budget", &words, problems)
        .unwrap_or(OnBudget::Complete)
}

/// Reads `logprobs_mode`, whose values are vLLM's. Its modes for logits, which are not probabilities, are
/// not supported.
fn logprobs_mode(fields: &mut Fields, problems: &mut Problems) -> LogprobsMode {
    let words = [
        ("raw_logprobs", LogprobsMode::Raw),
        ("processed_logprobs", LogprobsMode::Processed),
    ];
    fields
        .word("logprobs_mode", &words, problems)
        .unwrap_or(LogprobsMode::Raw)
}

/// Reads `schema_in_prompt`, which defaults to `auto`.
pub(super) fn schema_in_prompt(fields: &mut Fields, problems: &mut Problems) -> SchemaInPrompt {
    let words = [
        ("auto", SchemaInPrompt::Auto),
        ("never", SchemaInPrompt::Never),
        ("always", SchemaInPrompt::Always),
    ];
    fields
        .word("schema_in_prompt", &words, problems)
        .unwrap_or(SchemaInPrompt::Auto)
}

fn stream(fields: &mut Fields, problems: &mut Problems) -> Option<StreamOptions> {
    let streamed = fields.boolean("stream", problems).unwrap_or(false);
    let mut options = StreamOptions::default();
    let given = fields.has("stream_options");
    if let Some(mut inner) = fields.object("stream_options", problems) {
        options.include_usage = inner.boolean("include_usage", problems).unwrap_or(false);
        options.continuous_usage = inner.boolean("continuous_usage_stats", problems).unwrap_or(false);
        options.json_patch = inner.boolean("json_patch", problems).unwrap_or(false);
        options.resumable = inner.boolean("resumable", problems).unwrap_or(false);
        inner.ignore(&["include_obfuscation"]);
        inner.finish(problems);
    }
    if given && !streamed {
        problems.invalid("stream_options", "requires stream: true");
    }
    streamed.then_some(options)
}

fn logit_bias(fields: &mut Fields, problems: &mut Problems) -> Vec<(u32, f32)> {
    let map = match fields.take("logit_bias") {
        None => return Vec::new(),
        Some(Value::Object(map)) => map,
        Some(_) => serde_json::Map::from_iter([(String::new(), Value::Null)]),
    };
    let entry = |(token, bias): (&String, &Value)| {
        let bias = bias.as_f64().filter(|bias| (-100.0..=100.0).contains(bias))?;
        Some((token.parse::<u32>().ok()?, bias as f32))
    };
    let entries: Vec<(u32, f32)> = map.iter().filter_map(entry).collect();
    if entries.len() != map.len() || map.len() > BIASED_TOKENS {
        let expected =
            format!("expected an object of up to {BIASED_TOKENS} token numbers with biases from -100 to 100");
        problems.invalid("logit_bias", expected);
    }
    entries
}
