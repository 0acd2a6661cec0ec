//! What a model is asked, and how an answer is judged.
//!
//! A collection becomes a list of items. The runner knows nothing about collections: it asks, and lets the
//! item judge.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use crate::eval::tasks::{Arm, Message};

/// A question to a model, with its judge.
pub(crate) struct Item {
    /// The name, which occurs once in a collection.
    pub(crate) name: String,
    /// The part of the collection that it belongs to.
    pub(crate) split: String,
    /// The keywords of its schema.
    pub(crate) keywords: BTreeSet<String>,
    /// The conversation in which the model is not told the schema.
    pub(crate) untold: Vec<Message>,
    /// The conversation in which it is.
    pub(crate) told: Vec<Message>,
    /// The schema that constrains the answer. Without one, all arms leave the answer free.
    pub(crate) schema: Option<Arc<Value>>,
    pub(crate) judge: Judge,
}

/// The function that judges the text of an answer.
pub(crate) type Judge = Box<dyn Fn(&str) -> Judged + Send + Sync>;

/// The verdict on an answer, with the place and the reason if it is not valid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Judged {
    pub(crate) verdict: Verdict,
    /// The JSON pointer of the first error; empty for the whole answer.
    pub(crate) place: String,
    pub(crate) reason: String,
}

/// The verdict on an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Valid,
    /// A valid value in a block of Markdown or between sentences, which a program must find first.
    Wrapped,
    Invalid,
    NotJson,
    /// The judge cannot tell.
    Unjudged,
}

impl Judged {
    pub(crate) fn valid() -> Self {
        Self::new(Verdict::Valid, "", "")
    }

    pub(crate) fn new(verdict: Verdict, place: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            verdict,
            place: place.into(),
            reason: reason.into(),
        }
    }
}

impl Item {
    /// Returns the conversation of an arm.
    pub(crate) fn messages(&self, arm: Arm) -> &[Message] {
        match arm.tells() {
            true => &self.told,
            false => &self.untold,
        }
    }
}

impl fmt::Debug for Item {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Item({})", self.name)
    }
}
