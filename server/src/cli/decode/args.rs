//! The flags of `lexiform bench decode`.

use std::path::PathBuf;

use lexiform_cli::failure::EXIT_CODES;
use lexiform_cli::report::Destinations;
use lexiform_cli::shown::output::Output;
use lexiform_engine::Shape;

use super::arms::ARMS;
use crate::cli::model::ModelArgs;

/// The programs that can be measured for comparison.
pub(super) const PEERS: [&str; 1] = ["transformers"];

/// Measure how fast the decode loop writes: tokens per second, time to the first token, share of the memory
/// limit
///
/// Every combination of --answers, --prompts and --temperatures is measured with every arm. The share of the
/// memory limit is the number of bytes that a pass reads (weights, keys and values, according to the model's
/// configuration) over its time, divided by the memory bandwidth, which is measured in the same run on the
/// same device with as many threads. A model that fits into the caches of the processor can exceed 1.
#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Args {
    /// Answers that are generated at a time
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [1, 8, 64])]
    pub(super) answers: Vec<usize>,
    /// Tokens of each prompt
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [32])]
    pub(super) prompts: Vec<usize>,
    /// Temperatures
    #[arg(long, value_name = "T,…", value_delimiter = ',', default_values_t = [1.0])]
    pub(super) temperatures: Vec<f64>,
    /// The text to generate: free text, the same with top-p 0.9 and a penalty, a list under a schema, the
    /// same list with drafts, a record under the local and under the global law. By default all of them
    #[arg(long, value_name = "ARM,…", value_delimiter = ',', value_parser = ARMS.map(|arm| arm.name))]
    pub(super) arms: Vec<String>,
    /// Tokens of each answer; for a record, the maximum
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(super) tokens: usize,
    /// How often everything is measured; the first round does not count
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(super) rounds: usize,
    /// A model of this shape with random weights, created in memory: tiny, 135m, 1b, 3b or 8b. It uses
    /// the tokenizer of --model, whose weights are not needed
    #[arg(long)]
    pub(super) shape: Option<Shape>,
    /// Also measure another program, on the same weights and prompts
    #[arg(long, value_parser = PEERS)]
    pub(super) peer: Option<String>,
    /// The Python interpreter that has transformers
    #[arg(long, value_name = "FILE", default_value = "python3")]
    pub(super) python: PathBuf,
    /// Write what --json prints to this file too
    #[arg(long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
    #[command(flatten)]
    pub(super) output: Output,
    #[command(flatten)]
    pub(super) destinations: Destinations,
    #[command(flatten, next_help_heading = "Model")]
    pub(super) model: ModelArgs,
}

impl Args {
    /// Returns `true` if the output is JSON.
    pub fn is_json(&self) -> bool {
        self.output.json
    }
}
