//! Predictors that are one table of rows: each differs in the key of a row and in what a row learns.

use super::table::Table;
use super::{Candidate, Context, Observation, Predictor};
use crate::draft::Origin;
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeInclusive;

/// The rule of a table of rows: its keys, and what its rows learn.
pub trait RowRule: 'static {
    /// The name under which the rows are saved.
    const KEPT_AS: &'static str;
    /// The origin of the tokens that it offers.
    const ORIGIN: Origin;
    /// The numbers of tokens in a context. The longest known context is looked up first.
    const CONTEXTS: RangeInclusive<usize>;

    /// Returns the key of the context of this length; `None` if there is no such context.
    fn key(at: &Context<'_>, length: usize) -> Option<u64> {
        at.suffix(length)
    }

    /// Returns what a row learns from what was seen at its place.
    fn lesson<'s>(seen: &Observation<'s>) -> Lesson<'s>;
}

/// An observation in the form in which a row learns it.
pub enum Lesson<'s> {
    /// Tokens with their probabilities, to be averaged with the earlier ones.
    Average(&'s [(u32, f32)]),
    /// Tokens with their probabilities, in place of the earlier ones.
    Replace(&'s [(u32, f32)]),
    /// The token that was drawn, to be counted; nothing if none was.
    Count(Option<u32>),
}

/// A bounded table of rows under keys that a rule computes from the context.
pub struct Rows<R> {
    rows: Table,
    rule: PhantomData<fn() -> R>,
}

impl<R> Rows<R> {
    /// Creates an empty table of at most `bytes` bytes.
    pub fn new(bytes: usize) -> Self {
        Rows {
            rows: Table::new(bytes),
            rule: PhantomData,
        }
    }
}

impl<R> Clone for Rows<R> {
    fn clone(&self) -> Self {
        Rows {
            rows: self.rows.clone(),
            rule: PhantomData,
        }
    }
}

impl<R: RowRule> fmt::Debug for Rows<R> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple(R::KEPT_AS).field(&self.rows).finish()
    }
}

impl<R: RowRule> Predictor for Rows<R> {
    fn predict(&self, at: &Context<'_>, found: &mut Vec<Candidate>) {
        let mut rows = R::CONTEXTS
            .rev()
            .filter_map(|length| self.rows.get(R::key(at, length)?));
        if let Some(row) = rows.next() {
            row.candidates(R::ORIGIN, found);
        }
    }

    fn learn(&mut self, at: &Context<'_>, seen: &Observation<'_>) {
        for length in R::CONTEXTS {
            let Some(key) = R::key(at, length) else {
                continue;
            };
            match R::lesson(seen) {
                // Without the row, only the drawn token is known: one token in a row of several.
                Lesson::Average([]) | Lesson::Replace([]) => {
                    seen.drawn
                        .into_iter()
                        .for_each(|token| self.rows.learn(key).count(token));
                }
                Lesson::Average(tokens) => self.rows.learn(key).average(tokens),
                Lesson::Replace(tokens) => self.rows.learn(key).replace(tokens),
                Lesson::Count(Some(token)) => self.rows.learn(key).count(token),
                Lesson::Count(None) => (),
            }
        }
    }

    fn save(&self, keep: &mut dyn FnMut(&'static str, Vec<u8>)) {
        keep(R::KEPT_AS, self.rows.save());
    }

    fn restore(&mut self, name: &str, part: &[u8]) -> bool {
        name == R::KEPT_AS && self.rows.restore(part)
    }

    fn bytes(&self) -> usize {
        self.rows.bytes()
    }
}
