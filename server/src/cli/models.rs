//! `lexiform models`: the models on this disk, and whether they can be run.

use std::fmt::Write as _;

use lexiform_engine::{ModelConfig, ModelFiles, describe};
use serde_json::{Value, json};

use crate::cli::demo;
use crate::model::source::{self, Inventory, Listed, Place, Stores};
use lexiform_cli::failure::{Code, EXIT_CODES, Outcome};
use lexiform_cli::shown::output::Output;

/// List the models on this disk, and whether they can be run.
///
/// Models are looked for where programs keep them: those that `cargo xtask serve` has fetched, the Hugging
/// Face cache (HF_HUB_CACHE, HF_HOME) and Ollama's store (OLLAMA_MODELS). The first column is the value for
/// --model. No weights are loaded: a model that is listed as runnable may still be too large for the memory,
/// or broken.
#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Args {
    #[command(flatten)]
    output: Output,
}

impl Args {
    /// Returns `true` if the output is JSON.
    pub fn is_json(&self) -> bool {
        self.output.json
    }
}

/// Runs `lexiform models`.
///
/// # Errors
/// Fails if standard output cannot be written.
pub fn run(args: Args) -> Outcome {
    let Inventory { models, cut } = source::inventory(&Stores::of_user());
    let rows: Vec<ModelRow> = models.into_iter().filter_map(ModelRow::of).collect();
    args.output.print(
        || {
            let cut: Vec<Value> = cut.iter().map(|(store, most)| json!({"store": store, "listed": most})).collect();
            json!({"ok": true, "exit": 0, "models": rows.iter().map(ModelRow::json).collect::<Vec<_>>(), "cut": cut})
        },
        || {
            let mut text = table(&rows);
            for (store, most) in &cut {
                let _ = writeln!(text, "{store} has more models than these {most}.");
            }
            text
        },
        || {
            let running = rows.iter().filter(|row| row.described.is_ok());
            running.map(|row| format!("{}\n", row.word)).collect()
        },
    )?;
    Ok(Code::Fine)
}

/// A model with the engine's description of it.
struct ModelRow {
    word: String,
    store: &'static str,
    bytes: Option<u64>,
    format: Option<&'static str>,
    described: Result<ModelConfig, String>,
}

impl ModelRow {
    /// Returns `None` for the demo model if this program does not have it.
    fn of(listed: Listed) -> Option<Self> {
        let Listed { word, store, found } = listed;
        let described = |files: &ModelFiles| describe(files).map_err(|error| error.to_string());
        let (bytes, format, described) = match &found {
            Err(error) => (None, None, Err(error.to_string())),
            Ok(Place::BuiltIn) => {
                let files = demo::model()?;
                (Some(demo::bytes()), Some(SAFETENSORS), described(&files))
            }
            Ok(place @ Place::Disk(path)) => {
                let format = if path.is_dir() { SAFETENSORS } else { "GGUF" };
                let files = ModelFiles::open(path).map_err(|error| error.to_string());
                let described = files.and_then(|files| described(&files));
                (Some(place.bytes()), Some(format), described)
            }
        };
        Some(ModelRow {
            word,
            store,
            bytes,
            format,
            described,
        })
    }

    fn json(&self) -> Value {
        let mut row = json!({
            "model": self.word,
            "store": self.store,
            "bytes": self.bytes,
            "format": self.format,
            "runs": self.described.is_ok(),
        });
        match &self.described {
            Ok(config) => {
                row["architecture"] = json!(config.family);
                row["vocabulary"] = json!(config.vocab_size);
                row["context"] = json!(config.max_positions);
            }
            Err(problem) => row["problem"] = json!(problem),
        }
        row
    }
}

const SAFETENSORS: &str = "safetensors";

/// Formats the models that can be run as a table, followed by the others, each with the reason.
fn table(rows: &[ModelRow]) -> String {
    let (mut cells, mut problems) = (
        vec![["--model", "size", "format", "architecture", "context", "where"].map(str::to_owned)],
        String::new(),
    );
    for row in rows {
        match &row.described {
            Err(problem) => {
                let _ = writeln!(problems, "  {}  {problem}", row.word);
            }
            Ok(config) => cells.push([
                row.word.clone(),
                size(row.bytes.unwrap_or(0)),
                row.format.unwrap_or_default().to_owned(),
                config.family.clone(),
                config.max_positions.to_string(),
                row.store.to_owned(),
            ]),
        }
    }
    let mut text = String::new();
    let lengths = |column: usize| cells.iter().map(move |row| row[column].chars().count());
    let widths: Vec<usize> = (0..6).map(|column| lengths(column).max().unwrap_or(0)).collect();
    for row in &cells {
        let padded = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}"));
        let line = padded.collect::<Vec<_>>().join("  ");
        let _ = writeln!(text, "{}", line.trim_end());
    }
    if !problems.is_empty() {
        let _ = write!(text, "\nThese cannot be run:\n{problems}");
    }
    text
}

/// Formats a number of bytes for reading.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{} kB", bytes.div_ceil(1_000)),
        1_000_000..1_000_000_000 => format!("{:.0} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}
