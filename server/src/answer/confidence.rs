//! The model's confidence in each value that it wrote: each string, number and word of a JSON text.
//!
//! The probability of a value is the product over the tokens that hold a byte of it, as the model itself gave
//! it before the constraint; for a number, also over the byte after it, which decides that the number ends.
//! Tokens often hold more than the value (`","` ends one and begins the next); they count whole. Beside it is
//! the mass on allowed tokens there, after temperature and filters: where it is small, the constraint decided
//! more than the model. Where the constraint leaves few values, [`closed`] lists them.

pub mod closed;
pub mod value_options;

use lexiform_syntax::answer::{JsonEvent, JsonValues};
use serde_json::Value;

use crate::answer::parts::Part;
use crate::wire::response::{Confidence, finite};

/// A token of an answer: the end of its text, and its log-probability and log-mass.
#[derive(Clone, Copy, Debug)]
struct TokenStep {
    token: u32,
    end: usize,
    logprob: f64,
    log_mass: f64,
}

/// The place of a value in the written text: its bytes, and the end of the bytes that decide that it ends
/// there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    begin: usize,
    end: usize,
    decided: usize,
}

/// The tokens of an answer with their probabilities.
#[derive(Debug, Default)]
pub struct Trace {
    bytes: Vec<u8>,
    steps: Vec<TokenStep>,
}

impl Trace {
    /// Records a token and the bytes that it wrote.
    pub fn push(&mut self, (token, bytes): (u32, &[u8]), logprob: f32, log_mass: f32) {
        self.bytes.extend_from_slice(bytes);
        self.steps.push(TokenStep {
            token,
            end: self.bytes.len(),
            logprob: logprob.into(),
            log_mass: log_mass.into(),
        });
    }

    /// Returns the confidence in each value of the content of an answer and of the arguments of its calls.
    pub fn confidence(&self, parts: &[Part]) -> Vec<Confidence> {
        self.located(parts).into_iter().map(|located| located.0).collect()
    }

    /// Returns the confidence in each value, with its place.
    fn located(&self, parts: &[Part]) -> Vec<(Confidence, Span)> {
        let (written, mut from) = (self.readable(), 0);
        let mut told = Vec::new();
        let mut calls = 0;
        for (kind, text) in joined(parts) {
            let Some(at) = written[from..].find(&text) else {
                return told;
            };
            let begin = from + at;
            from = begin + text.len();
            let call = (kind == ValueKind::Call).then(|| {
                calls += 1;
                calls - 1
            });
            if kind != ValueKind::Thought {
                told.extend(self.values(begin, &text, call));
            }
        }
        told
    }

    /// Returns the answer up to the first byte that is not UTF-8; after it, the parts no longer match the
    /// bytes.
    fn readable(&self) -> &str {
        let whole = self.bytes.utf8_chunks().next();
        whole.map_or("", |chunk| chunk.valid())
    }

    /// Returns the values of a text that begins at this byte, if it is JSON.
    fn values(&self, begin: usize, text: &str, call: Option<usize>) -> Vec<(Confidence, Span)> {
        if serde_json::from_str::<Value>(text).is_err() {
            return Vec::new();
        }
        let mut progress = JsonValues::default();
        let mut found = progress.push(text);
        found.extend(progress.finish());
        let value = |found| match found {
            JsonEvent::Opened(..) | JsonEvent::Key(..) => None,
            JsonEvent::Whole(path, bytes) => {
                let open = !text[bytes.clone()].ends_with(['"', ']', '}']);
                let end = (bytes.end + usize::from(open)).min(text.len());
                let span = Span {
                    begin: begin + bytes.start,
                    end: begin + bytes.end,
                    decided: begin + end,
                };
                Some((self.value(path, call, span), span))
            }
        };
        found.into_iter().filter_map(value).collect()
    }

    fn value(&self, path: String, call: Option<usize>, span: Span) -> Confidence {
        let first = self.steps.partition_point(|step| step.end <= span.begin);
        let last = self.steps.partition_point(|step| step.end < span.decided);
        let steps = self.steps.get(first..=last).unwrap_or_default();
        let sum = |number: fn(&TokenStep) -> f64| finite(steps.iter().map(number).sum());
        let (logprob, log_mass) = (sum(|step| step.logprob), sum(|step| step.log_mass));
        Confidence {
            path,
            call,
            probability: logprob.exp(),
            logprob,
            mass: log_mass.exp(),
            tokens: steps.len(),
            options: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueKind {
    Thought,
    Content,
    Call,
}

/// Joins the parts of each text of an answer.
fn joined(parts: &[Part]) -> Vec<(ValueKind, String)> {
    let mut texts: Vec<(ValueKind, String)> = Vec::new();
    for part in parts {
        let (kind, text) = match part {
            Part::Reasoning(text) => (ValueKind::Thought, text.as_str()),
            Part::Content(text) => (ValueKind::Content, text.as_str()),
            Part::Opened(_) => {
                texts.push((ValueKind::Call, String::new()));
                continue;
            }
            Part::Input(text) => (ValueKind::Call, text.as_str()),
            Part::Closed => continue,
        };
        match texts.last_mut().filter(|(last, _)| *last == kind) {
            Some((_, before)) => before.push_str(text),
            None => texts.push((kind, text.to_owned())),
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a trace of tokens, each with a probability and a mass.
    fn trace(tokens: &[(&str, f32, f32)]) -> Trace {
        let mut trace = Trace::default();
        for (text, probability, mass) in tokens {
            trace.push((0, text.as_bytes()), probability.ln(), mass.ln());
        }
        trace
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-6
    }

    #[test]
    fn a_value_has_the_probability_of_its_tokens() {
        let trace = trace(&[
            ("{\"n\":", 0.5, 1.0),
            ("\"A", 0.5, 0.5),
            ("da", 0.5, 1.0),
            ("\",\"a\":", 0.8, 1.0),
            ("3", 0.9, 1.0),
            ("4", 0.5, 0.25),
            ("}", 0.5, 1.0),
        ]);
        let told = trace.confidence(&[Part::Content("{\"n\":\"Ada\",\"a\":34}".to_owned())]);
        assert_eq!(
            told.iter().map(|it| it.path.as_str()).collect::<Vec<_>>(),
            ["/n", "/a"]
        );
        // The name: `"A`, `da` and the token that closes it.
        assert!(
            close(told[0].probability, 0.5 * 0.5 * 0.8) && close(told[0].mass, 0.5),
            "{told:?}"
        );
        // The age: `3`, `4`, and the bracket that decides that it is not 340.
        assert!(
            close(told[1].probability, 0.9 * 0.5 * 0.5) && close(told[1].mass, 0.25),
            "{told:?}"
        );
        assert_eq!((told[0].tokens, told[1].tokens), (3, 3));
    }

    #[test]
    fn thoughts_are_passed_over_and_calls_are_told_apart() {
        let trace = trace(&[
            ("<think>1</think>", 0.5, 1.0),
            ("[1]", 0.5, 1.0),
            ("{\"a\":2}", 0.25, 1.0),
        ]);
        let parts = [
            Part::Reasoning("1".to_owned()),
            Part::Content("[1]".to_owned()),
            Part::Opened(0),
            Part::Input("{\"a\":2}".to_owned()),
            Part::Closed,
        ];
        let told = trace.confidence(&parts);
        let places: Vec<_> = told.iter().map(|it| (it.path.as_str(), it.call)).collect();
        assert_eq!(places, [("/0", None), ("/a", Some(0))]);
        assert!(close(told[0].probability, 0.5) && close(told[1].probability, 0.25));
    }

    /// Guards against a search that restarts at every letter: quadratic in the length, some minutes here.
    #[test]
    fn long_runs_of_one_letter_are_read_once() {
        let letters = "a".repeat(300_000);
        let trace = trace(&[(letters.as_str(), 0.5, 1.0), ("a[1]", 0.5, 1.0)]);
        let told = trace.confidence(&[
            Part::Reasoning(format!("{}b", letters)),
            Part::Content("[1]".to_owned()),
        ]);
        assert!(told.is_empty(), "the thought was not written: {told:?}");
        let told = trace.confidence(&[Part::Content("[1]".to_owned())]);
        assert_eq!(told.len(), 1);
    }

    #[test]
    fn bytes_that_are_no_text_end_what_can_be_told() {
        let mut trace = trace(&[("[1]", 0.5, 1.0)]);
        trace.push((0, b"\xff"), -1.0, 0.0);
        let told = trace.confidence(&[Part::Content("[1]".to_owned())]);
        assert_eq!(told.len(), 1);
    }

    #[test]
    fn what_is_not_json_has_no_values() {
        let trace = trace(&[("hello 1", 0.5, 1.0)]);
        assert!(
            trace
                .confidence(&[Part::Content("hello 1".to_owned())])
                .is_empty()
        );
    }
}
