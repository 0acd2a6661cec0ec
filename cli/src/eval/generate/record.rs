//! What became of an item: a line of the file of answers.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fault::{Fault, Kind};
use super::item::{Arm, Judged};

/// The outcome of asking for one item in one arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) arm: Arm,
    /// The SHA-256 sum of the body of the request.
    pub(crate) request: String,
    pub(crate) outcome: Outcome,
    /// The failures before the last attempt.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(crate) retried: Vec<Kind>,
}

/// The end of the last attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Answered { judged: Judged, answer: Box<Answer> },
    Failed(Fault),
}

/// The answer of an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) text: String,
    /// The reason why it ended, as `stop` or `length`; `None` if the endpoint did not say.
    pub(crate) finish: Option<String>,
    /// `usage`, as it was sent.
    pub(crate) usage: Option<Value>,
    /// `lexiform`, the fields that our service adds, as they were sent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) lexiform: Option<Value>,
    pub(crate) times: Times,
}

/// The times of an answer in milliseconds, from the moment at which the request was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Times {
    /// The time to the first text; `None` if the answer came in one piece or has no text.
    pub(crate) first_token_ms: Option<f64>,
    /// The time to the last text.
    pub(crate) last_token_ms: Option<f64>,
    /// The time to the end.
    pub(crate) total_ms: f64,
}

impl Record {
    /// Returns `true` if asking again may have another outcome: a later run of the same file does.
    pub(crate) fn is_open(&self) -> bool {
        matches!(&self.outcome, Outcome::Failed(fault) if !fault.kind.is_about_item())
    }
}

impl Answer {
    /// Returns `true` if the answer ended because the limit of tokens was reached.
    pub(crate) fn is_truncated(&self) -> bool {
        self.finish.as_deref() == Some("length")
    }

    /// Returns a count of `usage`, which may be in an object of details: `["prompt_tokens"]`.
    pub(crate) fn used(&self, path: &[&str]) -> Option<u64> {
        let usage = self.usage.as_ref()?;
        path.iter().try_fold(usage, |at, field| at.get(field))?.as_u64()
    }

    /// Returns the mean time of a token after the first, in milliseconds.
    pub(crate) fn token_ms(&self) -> Option<f64> {
        let after_first = self.used(&["completion_tokens"])?.checked_sub(1)?;
        let between = self.times.last_token_ms? - self.times.first_token_ms?;
        (after_first > 0).then(|| between / after_first as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_token_takes_the_time_between_the_first_and_the_last() {
        let answer = |usage: Option<Value>| Answer {
            usage,
            times: Times {
                first_token_ms: Some(10.0),
                last_token_ms: Some(40.0),
                total_ms: 50.0,
            },
            ..Answer::default()
        };
        assert_eq!(
            answer(Some(json!({"completion_tokens": 4}))).token_ms(),
            Some(10.0)
        );
        for unknown in [
            None,
            Some(json!({})),
            Some(json!({"completion_tokens": 1})),
            Some(json!({"completion_tokens": 0})),
        ] {
            assert_eq!(answer(unknown).token_ms(), None);
        }
    }
}
