//! The inputs and the result of a repair.

use super::edits::Edit;
use lexiform_automata::error::Exhausted;
use lexiform_automata::limits::Cancel;

/// The costs of edits; each is at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Costs {
    /// The cost of inserting a character.
    pub insert: u32,
    /// The cost of deleting a character.
    pub delete: u32,
    /// The cost of replacing a character by another one.
    pub substitute: u32,
}

impl Default for Costs {
    /// The costs of the Levenshtein distance: every edit costs 1.
    fn default() -> Self {
        Costs {
            insert: 1,
            delete: 1,
            substitute: 1,
        }
    }
}

/// The greatest cost of an edit.
const GREATEST_COST: u32 = 1_000;

/// The limits of a repair.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RepairLimits {
    /// The maximum length of the text, in bytes.
    pub text_bytes: usize,
    /// The maximum number of pairs of a configuration and a place that are examined, each of which takes some
    /// hundred bytes. When two texts are compared, the maximum number of pairs of places, which take no
    /// memory.
    pub nodes: usize,
    /// Cancels the search on request.
    pub cancel: Cancel,
}

impl Default for RepairLimits {
    fn default() -> Self {
        RepairLimits {
            text_bytes: 1 << 18,
            nodes: 1 << 21,
            cancel: Cancel::default(),
        }
    }
}

/// A valid text with the lowest cost from a given one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repair {
    /// The valid text.
    pub text: String,
    /// The total cost of the edits.
    pub cost: u64,
    /// The edits, in the order of the text. Adjacent edits are merged.
    pub edits: Vec<Edit>,
    /// The changes to the values of a text that was [repaired as JSON](Repair::of_json), at most 256 of them;
    /// empty if a text was repaired by its characters.
    pub changes: Vec<Change>,
}

/// A change to a value of a text that was repaired as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The kind of change.
    pub kind: ChangeKind,
    /// The JSON pointer of the value in the given text; for an added value, of the value that contains it.
    pub pointer: String,
    /// The text that was changed, cut off at its end if it is long.
    pub text: String,
}

/// The kinds of a [`Change`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    /// Text before or after the value was dropped, such as prose and fences.
    Around,
    /// The keys of an object were put in the order of the grammar.
    Reordered,
    /// A member or an item was dropped: the grammar does not allow it there.
    Dropped,
    /// Something that the grammar requires was added, in the shortest way.
    Added,
    /// A value was written in another spelling than, for example, `'a'` or `True`.
    Respelled,
}

impl ChangeKind {
    /// Returns the name of the kind in JSON: the variant in lower case.
    pub fn name(self) -> &'static str {
        match self {
            ChangeKind::Around => "around",
            ChangeKind::Reordered => "reordered",
            ChangeKind::Dropped => "dropped",
            ChangeKind::Added => "added",
            ChangeKind::Respelled => "respelled",
        }
    }
}

/// The most characters of a text that a change repeats.
const TEXT_SHOWN: usize = 80;

impl Change {
    /// The most changes that are reported for one text.
    pub(super) const MOST: usize = 256;

    /// Returns a change at a JSON pointer.
    pub(crate) fn new(kind: ChangeKind, pointer: String, text: &str) -> Change {
        let end = text
            .char_indices()
            .nth(TEXT_SHOWN)
            .map_or(text.len(), |(at, _)| at);
        let text = if end < text.len() {
            format!("{}…", &text[..end])
        } else {
            text.to_owned()
        };
        Change { kind, pointer, text }
    }
}

/// The reason why there is no repair.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RepairError {
    /// The text is too long.
    #[error("the text has {bytes} bytes; the limit `text_bytes` is {limit}")]
    TextTooLong {
        /// The length of the text, in bytes.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A cost is out of range.
    #[error("the cost `{name}` is {value}; it must be from 1 to {GREATEST_COST}")]
    Cost {
        /// The name of the cost.
        name: &'static str,
        /// The value of the cost.
        value: u32,
    },
    /// The nearest valid text is too far away to be found.
    #[error(
        "the nearest valid text takes edits that cost more than {cost}; the search for it reached the limit `nodes`, which is {limit}"
    )]
    TooFar {
        /// No valid text has this cost or a lower one.
        cost: u64,
        /// The limit.
        limit: usize,
    },
    /// Two texts are too long to be compared.
    #[error("to compare the texts takes {pairs} pairs of places; the limit `nodes` is {limit}")]
    TooManyPairs {
        /// The product of their lengths.
        pairs: usize,
        /// The limit.
        limit: usize,
    },
    /// All texts of the language contain special tokens, which no text can express.
    #[error("no text without special tokens is valid")]
    NoText,
    /// A query on the grammar would have cost more than its limits allow.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
    /// The search was cancelled.
    #[error("the repair was called off")]
    Cancelled,
}

/// A text to be repaired, whose length and costs have been checked.
pub(super) struct Task<'a> {
    pub(super) text: &'a str,
    pub(super) costs: &'a Costs,
    pub(super) limits: &'a RepairLimits,
}

impl<'a> Task<'a> {
    /// Returns a task for this text.
    ///
    /// # Errors
    /// Returns an error if the text is too long, or if a cost is out of range.
    pub(super) fn new(
        text: &'a str,
        costs: &'a Costs,
        limits: &'a RepairLimits,
    ) -> Result<Task<'a>, RepairError> {
        let (bytes, limit) = (text.len(), limits.text_bytes.min(u32::MAX as usize - 1));
        if bytes > limit {
            return Err(RepairError::TextTooLong { bytes, limit });
        }
        let all = [
            ("insert", costs.insert),
            ("delete", costs.delete),
            ("substitute", costs.substitute),
        ];
        match all
            .into_iter()
            .find(|(_, cost)| !(1..=GREATEST_COST).contains(cost))
        {
            Some((name, value)) => Err(RepairError::Cost { name, value }),
            None => Ok(Task { text, costs, limits }),
        }
    }
}
