//! Writes the text for the demo model, trains it, and measures it.
//!
//! ```text
//!  text ──► tokenizer (bpe) ──► batches ──► train (model, optim) ──► export ──► models/demo
//!    └────► heldout.jsonl                                     └─────► eval
//! ```

mod batch;
mod bpe;
mod cli;
mod error;
mod eval;
mod export;
mod model;
mod optim;
mod random;
mod text;
mod tokenizer;
mod train;

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
