//! The command line.

use crate::error::{self, Error};
use crate::eval;
use crate::export;
use crate::model::{POSITIONS, Shape};
use crate::optim::Rates;
use crate::text::{Words, Writer};
use crate::tokenizer;
use crate::train::{self, Plan};
use clap::{Parser, Subcommand};
use serde_json::json;
use std::path::PathBuf;

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
    /// Learn the vocabulary and write the tokenizer's files.
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
    /// Write the model of a checkpoint into a folder.
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
    /// Write held-out samples with their schemas and answers, half of them with names that training never shows.
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
    #[arg(long)]
    minutes: f64,
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
            let model = export::load_weights(shape(draft), &checkpoint)?;
            train::finish(&model, tokenizer.as_ref().unwrap_or(&out), &out)?;
        }
        Command::Eval {
            model,
            checkpoint,
            n,
            seed,
            show,
        } => measure(model, checkpoint, n, seed, show)?,
        Command::Ask {
            model,
            checkpoint,
            sketch,
            text,
        } => {
            let (loaded, tokenizer) = open(model, checkpoint)?;
            println!(
                "{}",
                eval::answer(
                    &loaded,
                    &tokenizer,
                    &tokenizer::prompt(&text, sketch.as_deref()),
                    300
                )?
            );
        }
        Command::Heldout { n, seed, out } => heldout(n, seed, out)?,
    }
    Ok(())
}

fn shape(draft: bool) -> Shape {
    if draft { Shape::DRAFT } else { Shape::DEMO }
}

fn show(n: usize, seed: u64, words: Words) {
    let mut writer = Writer::new(seed, words);
    for _ in 0..n {
        let sample = writer.sample(0);
        println!(
            "{}\n  {}\n  {}",
            sample.text,
            sample.sketch.unwrap_or_default(),
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
        minutes: args.minutes,
        seed: args.seed,
        batch: args.batch,
        rates: Rates {
            muon: args.muon,
            adam: args.adam,
            decay: args.decay,
        },
        simple: args.simple,
        fall: args.fall,
    })
}

fn open(
    folder: PathBuf,
    checkpoint: Option<PathBuf>,
) -> Result<(crate::model::Model, tokenizers::Tokenizer), Error> {
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
    folder: PathBuf,
    checkpoint: Option<PathBuf>,
    n: usize,
    seed: u64,
    show: usize,
) -> Result<(), Error> {
    let (model, tokenizer) = open(folder, checkpoint)?;
    for (name, words) in [("seen", Words::Seen), ("unseen", Words::Unseen)] {
        let score = eval::measure(&model, &tokenizer, &eval::samples(n, seed, words), show)?;
        let percent = 100.0 * score.right as f64 / score.of.max(1) as f64;
        println!(
            "{name} words: {} of {} answers are exact ({percent:.1} %)",
            score.right, score.of
        );
    }
    Ok(())
}

fn heldout(n: usize, seed: u64, out: PathBuf) -> Result<(), Error> {
    let mut lines = String::new();
    for (words, count) in [(Words::Seen, n - n / 2), (Words::Unseen, n / 2)] {
        let samples = eval::samples(count * 2, seed, words)
            .into_iter()
            .filter(|sample| sample.schema.is_some());
        for sample in samples.take(count) {
            let line = json!({
                "text": sample.text, "schema": sample.schema, "sketch": sample.sketch, "answer": sample.answer,
                "words": if words == Words::Seen { "seen" } else { "unseen" },
            });
            lines += &(line.to_string() + "\n");
        }
    }
    error::write(&out, lines.as_bytes())
}
