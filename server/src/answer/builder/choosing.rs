//! The builder's part in the choice of answers: it records which samples failed and which have ended, and
//! reads the values that they wrote.

use lexiform_engine::Event;
use serde_json::{Map, Value};

use super::choice::{Candidate, Place};
use super::{AnswerBuilder, Growing, whole};
use crate::answer::parts::Part;
use crate::answer::writer::Whole;
use crate::model::running::Running;
use crate::wire::error::ApiError;
use crate::wire::generation::Choose;

impl AnswerBuilder {
    /// Returns `true` if the tokens of a prompt are counted with this sample, which has ended: with the first
    /// that has among those that were chosen among, otherwise with the first sample of the prompt.
    pub(super) fn counts_prompt(&self, index: usize) -> bool {
        let first = index - index % self.per_prompt;
        let is_over = |growing: &Growing| growing.ended.is_some();
        index == first || self.chooses && !self.samples[first..index].iter().any(is_over)
    }

    /// Takes the event of a sample that failed, if the answers are chosen among others; returns the event
    /// otherwise. Returns `None` as well for a sample that nobody waits for.
    pub(super) fn unless_failed(&mut self, index: usize, event: Event) -> Option<Event> {
        let Some((choice, growing)) = self.choice.as_mut().zip(self.samples.get_mut(index)) else {
            return Some(event);
        };
        if growing.place == Place::LeftOut {
            return None;
        }
        let Event::Failed(error) = event else {
            return Some(event);
        };
        growing.place = Place::LeftOut;
        choice.failed.get_or_insert_with(|| ApiError::engine(&error));
        None
    }

    /// Records that a sample has ended. If the first ones are chosen and there are enough, the other samples
    /// of the prompt are cancelled.
    pub(super) fn note_ended(&mut self, index: usize, finish: &'static str, running: &mut Running) {
        let Some(choice) = self.choice.as_mut().filter(|_| finish == "stop") else {
            return;
        };
        choice.finished.push(index);
        let first = index - index % self.per_prompt;
        let of_prompt = first..first + self.per_prompt;
        let finished = choice
            .finished
            .iter()
            .filter(|&index| of_prompt.contains(index))
            .count();
        if choice.by == Choose::First && finished >= choice.answers {
            for (index, growing) in self.samples.iter_mut().enumerate() {
                if of_prompt.contains(&index) && growing.ended.is_none() {
                    growing.place = Place::LeftOut;
                    running.cancel(index);
                }
            }
        }
    }

    /// Chooses the answers among the samples, if there is a choice.
    ///
    /// # Errors
    /// Fails if too few samples of a prompt have ended.
    pub(super) fn choose(&mut self, parts: &[Vec<Part>]) -> Result<(), ApiError> {
        let Some(choice) = self.choice.take() else {
            return Ok(());
        };
        let mut candidates = Vec::new();
        for (index, (growing, parts)) in self.samples.iter_mut().zip(parts).enumerate() {
            growing.place = Place::LeftOut;
            let candidate = growing.ended.map(|ended| {
                let value = value(whole(index, &self.reading, parts.clone(), ended));
                Candidate::new(index, value, ended)
            });
            candidates.push(candidate);
        }
        for (prompt, candidates) in candidates.chunks_mut(self.per_prompt).enumerate() {
            let there: Vec<Candidate> = candidates.iter_mut().filter_map(Option::take).collect();
            if there.len() < choice.answers {
                return Err(choice.failed.unwrap_or_else(ApiError::internal));
            }
            for (rank, (index, support)) in choice.among(&there).into_iter().enumerate() {
                let growing = &mut self.samples[index];
                growing.place = Place::Told(prompt * choice.answers + rank, support);
                if let Some(ended) = &mut growing.ended {
                    (ended.sample.law, ended.sample.log_weight) = (choice.by.law(), None);
                }
            }
        }
        Ok(())
    }
}

/// Returns the value that a sample wrote: its content as JSON if it is, otherwise its text; with the calls of
/// tools, if there are any. A thought is no part of it.
fn value(whole: Whole) -> Value {
    let parsed = |text: String| serde_json::from_str(&text).unwrap_or(Value::String(text));
    if whole.calls.is_empty() {
        return parsed(whole.content);
    }
    let calls = whole.calls.into_iter().map(|call| {
        let arguments = match call.custom {
            true => Value::String(call.input),
            false => parsed(call.input),
        };
        Value::Object(object([
            ("name", Value::String(call.name)),
            ("arguments", arguments),
        ]))
    });
    let calls = Value::Array(calls.collect());
    Value::Object(object([
        ("content", Value::String(whole.content)),
        ("calls", calls),
    ]))
}

fn object<const N: usize>(entries: [(&str, Value); N]) -> Map<String, Value> {
    entries
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}
