//! Receives answers of a target: restores, validates and, if need be, repairs them.
//!
//! ```text
//!   answer ─read─► JSON ─restore─► value ─ belongs to the schema? ─ yes ─► received
//!                                              └ no ─ nearest valid value ─► received, with its changes
//!                                                        └ too far ─► rejected, with a message for the model
//! ```

use std::sync::Arc;

use serde_json::Value;

use crate::compile::{Compiler, Options as CompileOptions, Source};
use crate::error::CompileError;
use crate::limits::Limits;
use crate::project::{Projection, RestoreError};
use crate::regex::Escapes;
use crate::repair::{Change, ChangeKind, Costs, Repair, RepairLimits};
use crate::schema::{KeyOrder, Numbers, Options, Whitespace};
use crate::vocab::{TokenKind, Vocabulary};
use lexiform_automata::matcher::Grammar;

/// Receives the answers of a target to one schema.
#[derive(Debug)]
pub struct Receiver {
    projection: Arc<Projection>,
    /// The texts of all values of the schema, in any spelling.
    grammar: Grammar,
    limits: Limits,
}

/// A value of the schema.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Received {
    /// The value.
    pub value: Value,
    /// What had to be changed; empty if the answer was right.
    pub changes: Vec<Change>,
}

/// The reason why an answer was not received.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// It is longer than the limit `source_bytes`.
    #[error("the answer has {length} bytes; at most {most} are read")]
    TooLong {
        /// Its length.
        length: usize,
        /// The limit.
        most: usize,
    },
    /// It is no JSON.
    #[error("the answer is no JSON: {0}")]
    NotJson(String),
    /// What is recoded in it cannot be restored.
    #[error("the answer cannot be read: {0}")]
    NotRestored(RestoreError),
    /// The schema does not allow it, and no value near it.
    #[error("the answer does not fit the schema: {0}")]
    NotValid(String),
}

impl Rejected {
    /// Returns a message that asks a model for another answer.
    pub fn message_for_model(&self) -> String {
        format!("{self}. Answer again with the whole JSON value, and nothing else.")
    }
}

/// The most that a repair may search, so that an answer takes milliseconds.
const REPAIR_NODES: usize = 200_000;

impl Receiver {
    /// Creates the receiver of answers to a schema that was projected.
    ///
    /// # Errors
    /// Fails if the schema does not compile.
    pub fn new(schema: &str, projection: Arc<Projection>, limits: &Limits) -> Result<Receiver, CompileError> {
        let options = CompileOptions {
            schema: Options {
                key_order: KeyOrder::Any,
                whitespace: Whitespace::Compact,
                escapes: Escapes::Minimal,
                numbers: Numbers::Any,
                ..Options::default()
            },
            limits: limits.clone(),
            ..CompileOptions::default()
        };
        let end = [(TokenKind::Text, b"<end>".to_vec())];
        let vocabulary = Vocabulary::new(&end, &[0]).expect("one end is a vocabulary");
        let compiler = Compiler::new(Arc::new(vocabulary));
        let (grammar, _) = compiler.compile(Source::JsonSchema(schema), &options)?;
        Ok(Receiver {
            projection,
            grammar,
            limits: limits.clone(),
        })
    }

    /// Returns the projection.
    pub fn projection(&self) -> &Projection {
        &self.projection
    }

    /// Returns an estimate of the memory of its grammar, in bytes. Answers do not change it.
    pub fn memory_usage(&self) -> usize {
        self.grammar.memory_usage()
    }

    /// Receives an answer.
    ///
    /// # Errors
    /// Fails if there is no value of the schema near it. Nothing that the schema does not allow is returned.
    pub fn receive(&self, answer: &str) -> Result<Received, Rejected> {
        let (length, most) = (answer.len(), self.limits.source_bytes);
        if length > most {
            return Err(Rejected::TooLong { length, most });
        }
        let read = serde_json::from_str::<Value>(answer);
        let value = match read {
            Ok(value) => self
                .projection
                .restore(value, &self.limits)
                .map_err(Rejected::NotRestored)?,
            // What is recoded cannot be told apart in a text that is no JSON.
            Err(error) if !self.projection.recodings().is_empty() => {
                return Err(Rejected::NotJson(error.to_string()));
            }
            Err(error) => {
                return self
                    .repaired(answer)
                    .ok_or_else(|| Rejected::NotJson(error.to_string()));
            }
        };
        let text = value.to_string();
        match self.is_valid(&text) {
            true => Ok(Received {
                value,
                changes: Vec::new(),
            }),
            false => self
                .repaired(&text)
                .ok_or_else(|| Rejected::NotValid(self.reason(&text))),
        }
    }

    fn is_valid(&self, text: &str) -> bool {
        // Each answer is read in a grammar of its own, so that no number of answers makes it grow.
        let grammar = self.grammar.fresh();
        let end = grammar.step_bytes(grammar.start(), text.as_bytes());
        end.is_some_and(|state| grammar.is_accepting(state))
    }

    fn repaired(&self, text: &str) -> Option<Received> {
        let limits = RepairLimits {
            nodes: REPAIR_NODES,
            ..RepairLimits::default()
        };
        let repair = Repair::of_json(&self.grammar, text, &Costs::default(), &limits).ok()?;
        let value = serde_json::from_str(&repair.text).ok()?;
        let mut changes = repair.changes;
        if changes.is_empty() && repair.text != text {
            // None of its values could be kept, only characters.
            changes.push(Change::new(ChangeKind::Respelled, String::new(), text));
        }
        self.is_valid(&repair.text).then_some(Received { value, changes })
    }

    /// Returns where a text leaves the schema.
    fn reason(&self, text: &str) -> String {
        let grammar = self.grammar.fresh();
        let mut state = grammar.start();
        for (at, byte) in text.bytes().enumerate() {
            match grammar.step_bytes(state, &[byte]) {
                Some(next) => state = next,
                None => {
                    let before = text.get(..at).unwrap_or_default();
                    let from = before.char_indices().rev().nth(40).map_or(0, |(from, _)| from);
                    return format!("it may not go on after `{}`", &before[from..]);
                }
            }
        }
        "it ends too early".to_owned()
    }
}
