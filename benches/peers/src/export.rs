//! Exports the data that programs in other languages need to walk the same tokens: a file of JSON lines.
//!
//! ```text
//!   {"vocabulary": [token, …], "eos": 128009}   bytes as the characters U+0000 to U+00FF; "" writes no text
//!   {"name": …, "schema": "…", "compile_us": …, "first_us": …,
//!    "instances": [{"valid": true, "tokens": […], "accepted": true, "cold": [µs, …], "warm": [µs, …]}, …]}
//! ```
//!
//! The times are Lexiform's, so that the reader of the file can compare its own with them, token by token.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use lexiform::vocab::{TokenKind, Vocabulary};
use serde_json::{Value, json};

use crate::Failure;
use crate::cases::Case;
use crate::walk::{Record, Walked};

/// The file being written.
pub struct Export(BufWriter<File>);

impl Export {
    /// Creates the file and writes the vocabulary.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn new(path: &Path, vocabulary: &Vocabulary) -> Result<Self, Failure> {
        let file = File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut export = Self(BufWriter::new(file));
        let tokens: Vec<String> = (0..vocabulary.len() as u32)
            .map(|token| spelling(vocabulary, token))
            .collect();
        let eos = vocabulary.eos().first();
        export.line(&json!({"vocabulary": tokens, "eos": eos}))?;
        Ok(export)
    }

    /// Adds a schema with Lexiform's results.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn add(&mut self, case: &Case, ours: &Record) -> Result<(), Failure> {
        let nothing = Walked::default();
        let instances: Vec<Value> = case
            .instances
            .iter()
            .enumerate()
            .map(|(index, it)| {
                let cold = ours.cold.get(index).unwrap_or(&nothing);
                let warm = ours.warm.get(index).unwrap_or(&nothing);
                json!({
                    "valid": it.valid,
                    "tokens": it.tokens,
                    "accepted": cold.accepted,
                    "cold": cold.mask_us,
                    "warm": warm.mask_us,
                })
            })
            .collect();
        self.line(&json!({
            "name": case.name,
            "schema": case.text,
            "compiled": ours.refusal.is_none(),
            "compile_us": ours.compile_us,
            "first_us": ours.first_us,
            "instances": instances,
        }))
    }

    /// Writes the buffered rest.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn finish(mut self) -> Result<(), Failure> {
        Ok(self.0.flush()?)
    }

    fn line(&mut self, value: &Value) -> Result<(), Failure> {
        Ok(writeln!(self.0, "{value}")?)
    }
}

fn spelling(vocabulary: &Vocabulary, token: u32) -> String {
    match vocabulary.kind(token) {
        TokenKind::Text => vocabulary
            .bytes(token)
            .iter()
            .map(|byte| char::from(*byte))
            .collect(),
        _ => String::new(),
    }
}
