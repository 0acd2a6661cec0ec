//! Writes the text for the demo model, trains it, and measures it.
//!
//! ```text
//!  text, talk ──► writer ──► batches ──► train (model) ──► export ──► models/demo
//!                   ├─────► tokenizer                 └────► eval
//!                   └─────► heldout.jsonl
//! ```

mod batch;
mod cli;
mod error;
mod eval;
mod export;
mod model;
mod prompt;
mod random;
mod sample;
mod talk;
mod text;
mod tokenizer;
mod train;
mod writer;

use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
