//! The command line.

use crate::error::{self, Error};
use crate::eval;
use crate::export;
use crate::model::{Model, POSITIONS, Shape};
use crate::prompt::Prompt;
use crate::sample::{Kind, Sample};
use crate::text::Words;
use crate::tokenizer;
use crate::train::{self, Length, Plan, Rates};
use crate::writer::Writer;
use clap::{Parser, Subcommand};
use serde_json::{Value, json};
use std::path::PathBuf;
use tokenizers::Tokenizer;

/// Writes the text for the demo model, trains it, and measures it.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print samples of the training text.
    Text {
        #[arg(long, default_value_t = 20)]
        n: usize,
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Use only names that training never shows.
        #[arg(long)]
        unseen: bool,
    },
    /// Learn the vocabulary and write the tokenizer's files; the tokens of a tokenizer that is there already
    /// are kept.
    Tokenizer {
        #[arg(long)]
        out: PathBuf,
        #[arg(long, default_value_t = 20_000)]
        samples: usize,
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Train a model.
    Train(Train),
    /// Write the model of a checkpoint into a folder; tokens that it does not know are added.
    Export {
        #[arg(long)]
        checkpoint: PathBuf,
        #[arg(long)]
        out: PathBuf,
        /// Where the tokenizer is, if not in the folder itself.
        #[arg(long)]
        tokenizer: Option<PathBuf>,
        #[arg(long)]
        draft: bool,
    },
    /// Write the mean of several checkpoints.
    Average {
        /// A checkpoint and how much it counts, as FILE=SHARE; several of them.
        #[arg(required = true, value_parser = part)]
        parts: Vec<(f64, PathBuf)>,
        #[arg(long)]
        out: PathBuf,
        #[arg(long)]
        draft: bool,
    },
    /// Count the held-out prompts that a model answers exactly, greedily and without constraint.
    Eval {
        #[arg(long)]
        model: PathBuf,
        /// Weights to read instead of the folder's.
        #[arg(long)]
        checkpoint: Option<PathBuf>,
        #[arg(long, default_value_t = 200)]
        n: usize,
        #[arg(long, default_value_t = 99)]
        seed: u64,
        /// How many wrong answers to show.
        #[arg(long, default_value_t = 0)]
        show: usize,
        /// Only this kind of samples.
        #[arg(long)]
        kind: Option<String>,
    },
    /// Answer one text.
    Ask {
        #[arg(long)]
        model: PathBuf,
        #[arg(long)]
        checkpoint: Option<PathBuf>,
        /// The sketch of a schema.
        #[arg(long)]
        sketch: Option<String>,
        text: String,
    },
    /// Write held-out samples with their schemas and answers, half of them with names that training never
    /// shows.
    Heldout {
        #[arg(long, default_value_t = 500)]
        n: usize,
        #[arg(long, default_value_t = 99)]
        seed: u64,
        #[arg(long)]
        out: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
struct Train {
    /// The folder of the model.
    #[arg(long)]
    out: PathBuf,
    /// Where the tokenizer is, if not in the folder itself.
    #[arg(long)]
    tokenizer: Option<PathBuf>,
    #[command(flatten)]
    length: LengthArgs,
    #[arg(long, default_value_t = 1)]
    threads: i32,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Train the draft model's shape.
    #[arg(long)]
    draft: bool,
    /// Tokens in one step.
    #[arg(long, default_value_t = 2048)]
    batch: usize,
    /// Tokens of the longest sample.
    #[arg(long, default_value_t = 700)]
    longest: usize,
    /// A file for the weights, written every three minutes.
    #[arg(long)]
    checkpoint: Option<PathBuf>,
    /// Weights to go on from.
    #[arg(long)]
    resume: Option<PathBuf>,
    #[arg(long, default_value_t = 0.02)]
    muon: f64,
    #[arg(long, default_value_t = 0.004)]
    adam: f64,
    #[arg(long, default_value_t = 0.1)]
    decay: f64,
    /// The share of the time during which simple samples fade out.
    #[arg(long, default_value_t = 0.15)]
    simple: f64,
    /// The share of the time in which the rates go down to nothing.
    #[arg(long, default_value_t = 0.5)]
    fall: f64,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct LengthArgs {
    /// Train for so long.
    #[arg(long)]
    minutes: Option<f64>,
    /// Train on so many tokens.
    #[arg(long)]
    tokens: Option<usize>,
}

/// Does what the command line says.
pub(crate) fn run() -> Result<(), Error> {
    match Cli::parse().command {
        Command::Text { n, seed, unseen } => show(n, seed, if unseen { Words::Unseen } else { Words::Seen }),
        Command::Tokenizer { out, samples, seed } => tokenizer::make(&out, samples, seed, POSITIONS)?,
        Command::Train(train) => start(train)?,
        Command::Export {
            checkpoint,
            out,
            tokenizer,
            draft,
        } => {
            let model = export::load_grown(shape(draft), &checkpoint)?;
            train::finish(&model, tokenizer.as_ref().unwrap_or(&out), &out)?;
        }
        Command::Average { parts, out, draft } => {
            export::save_checkpoint(&export::average(shape(draft), &parts)?, &out)?;
        }
        Command::Eval {
            model,
            checkpoint,
            n,
            seed,
            show,
            kind,
        } => {
            let (model, tokenizer) = open(model, checkpoint)?;
            let wanted = |of: &Kind| kind.as_ref().is_none_or(|name| name == of.name());
            for kind in Kind::ALL.into_iter().filter(wanted) {
                measure(&model, &tokenizer, kind, (n, seed, show))?;
            }
        }
        Command::Ask {
            model,
            checkpoint,
            sketch,
            text,
        } => {
            let (loaded, tokenizer) = open(model, checkpoint)?;
            let prompt = Prompt::of(text, sketch).render();
            println!("{}", eval::answer(&loaded, &tokenizer, &prompt, 300)?);
        }
        Command::Heldout { n, seed, out } => heldout(n, seed, out)?,
    }
    Ok(())
}

/// A checkpoint and how much it counts.
fn part(text: &str) -> Result<(f64, PathBuf), String> {
    let (path, share) = text.rsplit_once('=').ok_or("expected FILE=SHARE")?;
    let share: f64 = share.parse().map_err(|_| "expected a number after =")?;
    Ok((share, path.into()))
}

fn shape(draft: bool) -> Shape {
    if draft { Shape::DRAFT } else { Shape::DEMO }
}

fn show(n: usize, seed: u64, words: Words) {
    let mut writer = Writer::new(seed, words);
    for _ in 0..n {
        let sample = writer.sample(0);
        println!(
            "[{}] {}{}\n",
            sample.kind.name(),
            sample.prompt.render(),
            sample.answer
        );
    }
}

fn start(args: Train) -> Result<(), Error> {
    tch::set_num_threads(args.threads);
    train::train(&Plan {
        shape: shape(args.draft),
        tokenizer: args.tokenizer.unwrap_or_else(|| args.out.clone()),
        out: args.out,
        checkpoint: args.checkpoint,
        resume: args.resume,
        length: match (args.length.minutes, args.length.tokens) {
            (Some(minutes), _) => Length::Minutes(minutes),
            (None, tokens) => Length::Tokens(tokens.unwrap_or_default()),
        },
        seed: args.seed,
        batch: args.batch,
        longest: args.longest,
        rates: Rates {
            muon: args.muon,
            adam: args.adam,
            decay: args.decay,
        },
        simple: args.simple,
        fall: args.fall,
    })
}

fn open(folder: PathBuf, checkpoint: Option<PathBuf>) -> Result<(Model, Tokenizer), Error> {
    tch::set_num_threads(1);
    let tokenizer = tokenizer::open(&folder)?;
    let model = match checkpoint {
        Some(path) => {
            export::load_weights(Shape::DEMO, &path).or_else(|_| export::load_weights(Shape::DRAFT, &path))?
        }
        None => export::load(&folder)?,
    };
    Ok((model, tokenizer))
}

fn measure(
    model: &Model,
    tokenizer: &Tokenizer,
    kind: Kind,
    (n, seed, show): (usize, u64, usize),
) -> Result<(), Error> {
    for (name, words) in [("seen", Words::Seen), ("unseen", Words::Unseen)] {
        let score = eval::measure(model, tokenizer, &eval::samples(n, seed, words, kind), show)?;
        let percent = 100.0 * score.right as f64 / score.of.max(1) as f64;
        println!(
            "{}, {name} words: {} of {} answers are exact ({percent:.1} %)",
            kind.name(),
            score.right,
            score.of
        );
    }
    Ok(())
}

/// Of the extractions only those with a schema are of use: the service answers under it.
fn heldout(n: usize, seed: u64, out: PathBuf) -> Result<(), Error> {
    let mut lines = String::new();
    for kind in Kind::ALL {
        for (name, words) in [("seen", Words::Seen), ("unseen", Words::Unseen)] {
            let samples = eval::samples(n * 2, seed, words, kind).into_iter();
            let useful = samples.filter(|sample| kind != Kind::Extraction || sample.schema.is_some());
            for (number, sample) in useful.take(n).enumerate() {
                let id = format!("{}-{name}-{number}", kind.name());
                lines += &(line(&id, &sample).to_string() + "\n");
            }
        }
    }
    error::write(&out, lines.as_bytes())
}

fn line(id: &str, sample: &Sample) -> Value {
    let mut line = json!({"id": id, "kind": sample.kind.name(), "messages": sample.prompt.messages()});
    if !sample.prompt.tools.is_empty() {
        line["tools"] = json!(sample.prompt.tools);
    }
    if let Some(schema) = &sample.schema {
        line["schema"] = schema.clone();
    }
    line["answer"] = json!(sample.answer);
    line
}
