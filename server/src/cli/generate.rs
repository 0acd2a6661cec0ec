//! `lexiform generate`: one prompt, one answer, no server.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::cli::failure::{Failure, Outcome, read_text};
use crate::cli::model::ModelArgs;
use crate::grammars::interest::Interest;
use crate::model::running::Running;
use crate::model::served::ServedModel;
use crate::routes::prepare;
use crate::wire::error::ApiError;

/// Write a text under a constraint and print it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to ask the model
    prompt: String,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    constraint: ConstraintArgs,
    /// The law to draw from: local (each token from what is allowed there) or global (the whole text, exactly)
    #[arg(long, default_value = "local", value_parser = ["local", "global"])]
    law: String,
    /// How many texts
    #[arg(long, short, default_value_t = 1)]
    n: usize,
    /// The seed; the same seed gives the same texts
    #[arg(long)]
    seed: Option<i64>,
    /// The temperature; 0 takes the most likely token. By default what the model recommends
    #[arg(long)]
    temperature: Option<f64>,
    /// The most tokens to write
    #[arg(long)]
    max_tokens: Option<usize>,
    /// Continue the prompt as it is, without the model's chat template
    #[arg(long)]
    raw: bool,
    /// Print the whole answer as JSON, with the law, the probabilities and the tokens used
    #[arg(long)]
    json: bool,
}

/// What the text must obey; at most one.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct ConstraintArgs {
    /// A file with a JSON Schema
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// A regular expression for the whole text
    #[arg(long, value_name = "PATTERN")]
    regex: Option<String>,
    /// A file with a grammar in EBNF
    #[arg(long, value_name = "FILE")]
    grammar: Option<PathBuf>,
}

/// Runs `lexiform generate`.
///
/// # Errors
/// A file cannot be read, the constraint does not compile, or the model cannot be loaded.
pub fn run(args: Args) -> Outcome {
    let served = args
        .model
        .open(None)
        .map_err(|error| Failure::message(error.to_string()))?;
    let body = request(&args, served.name())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| Failure::message(format!("cannot start: {error}")))?;
    let served = Arc::new(served);
    let answer = runtime.block_on(answer(served.clone(), args.raw, body.to_string().as_bytes()));
    // Where one sample failed, others may still be computed.
    served.engine().stop();
    let answer = answer.map_err(|error| Failure::message(error.to_string()))?;
    if args.json {
        println!("{answer}");
        return Ok(ExitCode::SUCCESS);
    }
    let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
    for choice in answer["choices"].as_array().into_iter().flatten() {
        let text = if args.raw {
            &choice["text"]
        } else {
            &choice["message"]["content"]
        };
        println!("{}", text.as_str().unwrap_or_default());
        if choice["finish_reason"] == "length" {
            eprintln!("note: the text was cut by the limit of tokens");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The same request that a client would send: the command line can do what the service can do, in the same way.
fn request(args: &Args, model: &str) -> Result<Value, Failure> {
    let mut body = json!({"model": model, "law": args.law, "n": args.n});
    if args.raw {
        body["prompt"] = json!(args.prompt);
    } else {
        body["messages"] = json!([{"role": "user", "content": args.prompt}]);
    }
    if let Some(file) = &args.constraint.schema {
        body["guided_json"] = json!(read_text(file)?);
    }
    if let Some(pattern) = &args.constraint.regex {
        body["guided_regex"] = json!(pattern);
    }
    if let Some(file) = &args.constraint.grammar {
        body["ebnf"] = json!(read_text(file)?);
    }
    for (name, value) in [
        ("seed", args.seed.map(Value::from)),
        ("temperature", args.temperature.map(Value::from)),
        ("max_tokens", args.max_tokens.map(Value::from)),
    ] {
        if let Some(value) = value {
            body[name] = value;
        }
    }
    Ok(body)
}

async fn answer(served: Arc<ServedModel>, raw: bool, body: &[u8]) -> Result<String, ApiError> {
    let prepared = if raw {
        prepare::completion(&served, body, &Interest::default())?
    } else {
        prepare::chat(&served, body, &Interest::default())?
    };
    let running = Running::start(served.engine(), prepared.requests, served.limits().clone())?;
    prepared.frame.collect(running).await
}
