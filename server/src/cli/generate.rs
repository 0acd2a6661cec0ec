//! `lexiform generate`: one prompt, one answer, no server.

use std::sync::Arc;

use clap::ArgGroup;
use lexiform::Options;
use serde_json::{Value, json};

use crate::cli::model::ModelArgs;
use crate::grammars::interest::Interest;
use crate::model::running::Running;
use crate::model::served::ServedModel;
use crate::routes::prepare;
use crate::wire::error::ApiError;
use lexiform_cli::failure::{Code, EXIT_CODES, Failure, Outcome, read_text};
use lexiform_cli::input::source::{Constraint, KINDS, Loaded, Meaning, Writing};
use lexiform_cli::input::stdin;
use lexiform_cli::shown::output::{self, Output};
use lexiform_cli::shown::paint::note;
use lexiform_cli::shown::problems;

/// Write a text under a constraint and print it.
#[derive(Debug, clap::Args)]
#[command(
    group = ArgGroup::new("constraint").args(KINDS),
    group = ArgGroup::new("asked").args(["prompt", "prompt_file"]).required(true),
    after_help = EXIT_CODES
)]
pub struct Args {
    /// The prompt for the model; `-` for standard input
    prompt: Option<String>,
    /// A file with the prompt for the model
    #[arg(long, value_name = "FILE")]
    prompt_file: Option<std::path::PathBuf>,
    #[command(flatten)]
    constraint: Constraint,
    #[command(flatten)]
    writing: Writing,
    #[command(flatten)]
    sampling: Sampling,
    #[command(flatten)]
    output: Output,
    #[command(flatten, next_help_heading = "Model")]
    model: ModelArgs,
}

/// How the texts are drawn.
#[derive(Debug, clap::Args)]
struct Sampling {
    /// The law to draw from: local (each token from those allowed at its place), global (the whole text,
    /// exactly), or an approximation of global by learning from earlier texts (asap), going back from errors
    /// (aprad), particles (smc, sir) or a Markov chain (mcmc)
    #[arg(long, default_value = LOCAL, value_parser = LAWS)]
    law: String,
    /// Search for likely texts instead: the name of a search, or a JSON object with its name (kind) and
    /// parameters
    #[arg(long, conflicts_with = "law", value_name = "SEARCH")]
    search: Option<String>,
    /// The number of texts
    #[arg(long, short, default_value_t = 1)]
    n: usize,
    /// The seed; the same seed gives the same texts
    #[arg(long, allow_hyphen_values = true)]
    seed: Option<i64>,
    /// The temperature; 0 takes the most likely token. By default the model's recommendation; if that is 0,
    /// laws other than local use 1, as they need a positive temperature
    #[arg(long)]
    temperature: Option<f64>,
    /// The maximum number of tokens to write
    #[arg(long)]
    max_tokens: Option<usize>,
    /// Continue the prompt as it is, without the model's chat template
    #[arg(long)]
    raw: bool,
}

const LOCAL: &str = "local";
const LAWS: [&str; 7] = [LOCAL, "global", "asap", "aprad", "smc", "sir", "mcmc"];

impl Args {
    /// Returns `true` if the output is JSON.
    pub fn is_json(&self) -> bool {
        self.output.json
    }

    /// Returns the options with which the service compiles this constraint.
    fn options(&self) -> Options {
        let writing = self.writing;
        Meaning {
            writing,
            ..Meaning::default()
        }
        .options_for_writing()
    }

    fn prompt(&self) -> Result<String, Failure> {
        match (&self.prompt, &self.prompt_file) {
            (Some(prompt), _) if prompt == stdin::DASH => stdin::text("PROMPT"),
            (Some(prompt), _) => Ok(prompt.clone()),
            (None, Some(file)) => read_text(file),
            // The command-line parser requires one of them.
            (None, None) => Err(Failure::message("name a prompt")),
        }
    }
}

/// Runs `lexiform generate`.
///
/// # Errors
/// Fails if a file cannot be read, the constraint does not compile, or the model cannot be loaded.
pub fn run(args: Args) -> Outcome {
    let source = args.constraint.load_if_given()?;
    if args.writing.fields().next().is_some() && !source.as_ref().is_some_and(Loaded::is_schema) {
        let message = "--additional-properties and --numbers are about schemas: name one with --schema";
        return Err(Failure::message(message));
    }
    let prompt = args.prompt()?;
    if let Some(source) = &source {
        // Before the model, which may take a long time to load.
        readable(&args, source)?;
    }
    let served = model(&args).open(None);
    let served = Arc::new(served.map_err(|error| Failure::message(error.to_string()))?);
    let body = request(&args, &served, source.as_ref(), prompt);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    let runtime = runtime.map_err(|error| Failure::Unable(format!("cannot start: {error}")))?;
    let raw = args.sampling.raw;
    let answer = runtime.block_on(answer(served.clone(), raw, body.to_string().as_bytes()));
    // If one sample failed, others may still be running.
    served.engine().stop();
    let answer = answer.map_err(|error| failure(&error, &args, source.as_ref(), &served))?;
    let parsed: Value = serde_json::from_str(&answer).unwrap_or_default();
    let texts = || texts(&parsed, raw);
    args.output.print(|| parsed.clone(), texts, texts)?;
    let choices = parsed["choices"].as_array().into_iter().flatten();
    if !args.output.quiet
        && choices
            .into_iter()
            .any(|choice| choice["finish_reason"] == "length")
    {
        output::err(&format!(
            "{} cut by the limit of tokens, --max-tokens\n",
            note("note:")
        ));
    }
    Ok(Code::Fine)
}

/// Returns the flags of the model, with a cache that fits the requested texts. Laws and searches with several
/// branches may fill a whole batch.
fn model(args: &Args) -> ModelArgs {
    let mut model = args.model.clone();
    if args.sampling.law == LOCAL && args.sampling.search.is_none() {
        model.run.max_batch = model.run.max_batch.min(args.sampling.n.max(1));
    }
    model
}

fn readable(args: &Args, source: &Loaded) -> Result<(), Failure> {
    let checked = source.check(&args.options());
    checked.map_err(|error| problems::failure(source, &error))
}

/// Returns the texts of an answer, one per line.
fn texts(answer: &Value, raw: bool) -> String {
    let choices = answer["choices"].as_array().into_iter().flatten();
    let text = |choice: &Value| match raw {
        true => choice["text"].as_str().unwrap_or_default().to_owned() + "\n",
        false => {
            choice["message"]["content"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
                + "\n"
        }
    };
    choices.map(text).collect()
}

/// Returns the request that a client would send: the command line can do the same as the service, in the same
/// way.
fn request(args: &Args, served: &ServedModel, source: Option<&Loaded>, prompt: String) -> Value {
    let sampling = &args.sampling;
    let mut body = json!({"model": served.name(), "law": sampling.law, "n": sampling.n});
    match sampling.raw {
        true => body["prompt"] = json!(prompt),
        false => body["messages"] = json!([{"role": "user", "content": prompt}]),
    }
    if let Some(search) = &sampling.search {
        body["search"] = serde_json::from_str(search).unwrap_or_else(|_| json!(search));
    }
    if let Some(source) = source {
        let field = match (source.is_schema(), source.is_grammar()) {
            (true, _) => "guided_json",
            (_, true) => "grammar",
            _ => "guided_regex",
        };
        body[field] = json!(source.text());
        if let Some(dialect) = source.dialect() {
            body["dialect"] = json!(dialect.name());
        }
        if let Some(notation) = source.notation() {
            body["notation"] = json!(notation.name());
        }
        for (field, chosen) in args.writing.fields() {
            body[field] = json!(chosen);
        }
    }
    let needs_one = sampling.law != LOCAL && served.text().defaults.temperature == 0.0;
    for (name, value) in [
        ("seed", sampling.seed.map(Value::from)),
        (
            "temperature",
            sampling.temperature.or(needs_one.then_some(1.0)).map(Value::from),
        ),
        ("max_tokens", sampling.max_tokens.map(Value::from)),
    ] {
        if let Some(value) = value {
            body[name] = value;
        }
    }
    body
}

async fn answer(served: Arc<ServedModel>, raw: bool, body: &[u8]) -> Result<String, ApiError> {
    let prepared = if raw {
        prepare::completion(&served, body, &Interest::default())?
    } else {
        prepare::chat(&served, body, &Interest::default())?
    };
    let running = Running::start(
        served.engine(),
        prepared.requests,
        served.limits().clone().alone(),
    )?;
    Ok(prepared.frame.collect(running).await?.json)
}

/// The fields of a request that are flags on the command line.
const FLAGS: [(&str, &str); 5] = [
    ("max_tokens", "--max-tokens"),
    ("temperature", "--temperature"),
    ("guided_json", "--schema"),
    ("guided_regex", "--regex"),
    ("ebnf", "--grammar"),
];

/// Converts an API error to a message in the terms of the command line.
fn failure(error: &ApiError, args: &Args, source: Option<&Loaded>, served: &ServedModel) -> Failure {
    if let Some(source) = source
        && let Err(error) = source.compile(served.vocabulary(), &args.options())
    {
        return problems::failure(source, &error);
    }
    let envelope = serde_json::to_value(error.envelope()).unwrap_or_default();
    let message = envelope["error"]["message"].as_str().unwrap_or_default();
    let message = in_flags(message);
    match error.status().as_u16() {
        400 => Failure::message(message),
        _ => Failure::Unable(message),
    }
}

/// Replaces the fields that a message names by flags.
fn in_flags(message: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut words = String::new();
    let mut rest = message;
    while !rest.is_empty() {
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(length);
        let flag = FLAGS.iter().find(|(field, _)| *field == word);
        words.push_str(flag.map_or(word, |(_, flag)| flag));
        let gap = after.find(is_part).unwrap_or(after.len());
        words.push_str(&after[..gap]);
        rest = &after[gap..];
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_named_as_flags_and_other_words_stay() {
        let message = "max_tokens is 5, but the shortest answer (max_tokens_2) takes 11";
        let expected = "--max-tokens is 5, but the shortest answer (max_tokens_2) takes 11";
        assert_eq!(in_flags(message), expected);
        assert_eq!(in_flags("'temperature'"), "'--temperature'");
        assert_eq!(in_flags(""), "");
    }
}
