//! The questions that a worker is asked and its answers: one JSON object a line, on standard input and
//! output.
//!
//! ```text
//!   load ─► loaded       judge ─► judged: times, outcomes, a sum for each mask
//!                        mask, takes, complete, threads: about the schema that was judged last
//!   refused answers any of them: what the library said when it failed
//! ```
//!
//! The object has one member, named like the question or the answer, with its fields. Lexiform's worker is
//! `worker.rs`, that of the engines in Python `python/worker.py`. A mask holds the text
//! tokens and the end of a sequence; special tokens are cleared on both sides.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A question to a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Question {
    /// Read the vocabulary and get ready for schemas.
    Load {
        tokenizer: PathBuf,
        /// A file with a [`VocabularyFile`].
        vocabulary: PathBuf,
    },
    /// Compile a schema and walk its instances; with `check` also sum up the masks.
    Judge {
        schema: String,
        instances: Vec<Vec<u32>>,
        check: bool,
    },
    /// The mask after so many tokens of an instance.
    Mask { instance: usize, position: usize },
    /// Which of these tokens are accepted there, whatever the mask says.
    Takes {
        instance: usize,
        position: usize,
        tokens: Vec<u32>,
    },
    /// A whole text that goes on there with this token, of at most so many tokens. Each further token is the
    /// first of the preferred ones that is allowed, or else the lowest.
    Complete {
        instance: usize,
        position: usize,
        token: u32,
        prefer: Vec<u32>,
        most: usize,
    },
    /// What two threads get done on one grammar where one gets 1 done.
    Threads {},
}

/// An answer of a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    Loaded(Loaded),
    Judged(Judged),
    Refused {
        reason: String,
    },
    /// Words in little endian, in hexadecimal; nothing if the engine does not get there.
    Mask {
        words: Option<String>,
    },
    Takes {
        taken: Vec<bool>,
    },
    Completed {
        tokens: Option<Vec<u32>>,
    },
    Threads {
        ratio: Option<f64>,
    },
}

/// An engine that is ready for schemas.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Loaded {
    pub(super) version: String,
    /// The bytes by which the process grew.
    pub(super) resident: u64,
    /// The time from the vocabulary to an engine that is ready, in microseconds.
    pub(super) once_us: f64,
    /// The time that a look at the clock adds to every sample, in microseconds.
    pub(super) clock_us: f64,
    /// The time of an empty call in the language of the worker, in microseconds.
    pub(super) call_us: f64,
}

/// What an engine makes of a schema. Times are in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Judged {
    pub(super) compile_us: f64,
    /// The time of the first mask, without the compile.
    pub(super) first_us: f64,
    pub(super) walks: Vec<Walk>,
    /// The bytes of memory that the process holds.
    pub(super) resident: u64,
}

/// What an engine makes of an instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Walk {
    /// Whether all tokens and then the end were allowed.
    pub(super) accepted: bool,
    /// The time of each step with the mask after it, on a grammar that was just compiled.
    pub(super) cold: Vec<f64>,
    /// The same once more.
    pub(super) warm: Vec<f64>,
    /// The [`sum`] of the mask before each token and at the end, as far as the engine gets.
    pub(super) masks: Vec<String>,
}

/// The file from which workers read the vocabulary.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct VocabularyFile {
    /// The token that ends a sequence.
    pub(super) eos: u32,
    /// The bytes of each text token as the characters U+0000 to U+00FF; empty for other tokens.
    pub(super) tokens: Vec<String>,
}

/// Returns the sum of a mask, by which masks are compared.
pub(super) fn sum(words: &[u32]) -> String {
    let mut hasher = Sha256::new();
    for chunk in words.chunks(256) {
        let bytes: Vec<u8> = chunk.iter().flat_map(|word| word.to_le_bytes()).collect();
        hasher.update(&bytes);
    }
    let sum = hasher.finalize();
    sum.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the words of a mask in little endian, in hexadecimal.
pub(super) fn to_hex(words: &[u32]) -> String {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

/// Reads what [`to_hex`] wrote; `None` if it is anything else.
pub(super) fn from_hex(text: &str) -> Option<Vec<u32>> {
    let word = |digits: &[u8]| {
        let digits = std::str::from_utf8(digits).ok()?;
        Some(u32::from_str_radix(digits, 16).ok()?.swap_bytes())
    };
    let digits = text.as_bytes();
    digits.len().is_multiple_of(8).then_some(())?;
    digits.chunks(8).map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_survive_the_protocol_and_the_sum_is_that_of_the_python_worker() {
        let words = [1, 0x8000_0000, 0xdead_beef];
        assert_eq!(to_hex(&words), "0100000000000080efbeadde");
        assert_eq!(from_hex(&to_hex(&words)), Some(words.to_vec()));
        assert_eq!(from_hex("01"), None);
        assert_eq!(from_hex("zzzzzzzz"), None);
        // hashlib.sha256(bytes.fromhex("0100000000000080efbeadde")).hexdigest()[:16]
        assert_eq!(sum(&words), "9923ca3542979fac");
    }

    #[test]
    fn lines_are_read_as_they_are_written() {
        let question = Question::Mask {
            instance: 1,
            position: 7,
        };
        let line = serde_json::to_string(&question).expect("a line");
        assert_eq!(line, r#"{"mask":{"instance":1,"position":7}}"#);
        let judged = r#"{"judged":{"compile_us":1.5,"first_us":2,"walks":[],"resident":4096}}"#;
        let expected = Judged {
            compile_us: 1.5,
            first_us: 2.0,
            walks: Vec::new(),
            resident: 4096,
        };
        let answer: Answer = serde_json::from_str(judged).expect("an answer");
        assert_eq!(answer, Answer::Judged(expected));
        let refused: Answer = serde_json::from_str(r#"{"refused":{"reason":"no"}}"#).expect("an answer");
        let reason = "no".to_owned();
        assert_eq!(refused, Answer::Refused { reason });
    }
}
