//! What is asked of a repair, and what it answers.

use super::edits::Edit;
use lexiform_automata::error::Exhausted;
use lexiform_automata::limits::Cancel;

/// What edits cost; each at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Costs {
    /// To insert a character.
    pub insert: u32,
    /// To delete one.
    pub delete: u32,
    /// To put another character in the place of one.
    pub substitute: u32,
}

impl Default for Costs {
    /// The distance of Levenshtein: every edit costs 1.
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

/// What a repair may take.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RepairLimits {
    /// The bytes of the text.
    pub text_bytes: usize,
    /// The pairs of a configuration and a place that are looked at, each of which takes some hundred bytes;
    /// of two texts the pairs of places, which take none.
    pub nodes: usize,
    /// Ends the search, if somebody asks for it.
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

/// A valid text at the least cost from a given one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repair {
    /// The text.
    pub text: String,
    /// What its edits cost together.
    pub cost: u64,
    /// What was changed, in the order of the text. Edits that touch are one.
    pub edits: Vec<Edit>,
    /// What was done with the values of a text that was [repaired as JSON](Repair::of_json), at most 256 of
    /// them; empty where a text was repaired by its characters.
    pub changes: Vec<Change>,
}

/// What was done with a value of a text that was repaired as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// What.
    pub kind: ChangeKind,
    /// The value, as a JSON pointer of the given text; the value that holds it where it was added.
    pub pointer: String,
    /// The text that it is about, without its end if it is long.
    pub text: String,
}

/// The kinds of a [`Change`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    /// What stood before or behind the value was dropped, such as prose and fences.
    Around,
    /// The keys of an object were put in the order of the grammar.
    Reordered,
    /// A member or an item was dropped: the grammar does not allow it there.
    Dropped,
    /// What the grammar demands was added, in the shortest way.
    Added,
    /// A value is the same and was spelled in another way, such as `'a'` or `True`.
    Respelled,
}

impl ChangeKind {
    /// The name of the kind in JSON: the variant in small letters.
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

/// The characters of a text that a change repeats.
const TEXT_SHOWN: usize = 80;

impl Change {
    /// The most that are told of one text.
    pub(super) const MOST: usize = 256;

    /// A change at a JSON pointer.
    pub(super) fn new(kind: ChangeKind, pointer: String, text: &str) -> Change {
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

/// Why there is no repair.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RepairError {
    /// The text is too long.
    #[error("the text has {bytes} bytes; the limit `text_bytes` is {limit}")]
    TextTooLong {
        /// The bytes of the text.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A cost is out of range.
    #[error("the cost `{name}` is {value}; it must be from 1 to {GREATEST_COST}")]
    Cost {
        /// Which one.
        name: &'static str,
        /// What it is.
        value: u32,
    },
    /// The nearest valid text is too far away to be found.
    #[error(
        "the nearest valid text takes edits that cost more than {cost}; the search for it reached the limit `nodes`, which is {limit}"
    )]
    TooFar {
        /// No valid text is at this cost or below it.
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
    /// All texts of the language hold special tokens, which no text can write.
    #[error("no text without special tokens is valid")]
    NoText,
    /// A question to the grammar would have cost more than its limits allow.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
    /// Somebody called the search off.
    #[error("the repair was called off")]
    Cancelled,
}

/// A text to be repaired, within the limits of its length and of the costs.
pub(super) struct Task<'a> {
    pub(super) text: &'a str,
    pub(super) costs: &'a Costs,
    pub(super) limits: &'a RepairLimits,
}

impl<'a> Task<'a> {
    /// For this text.
    ///
    /// # Errors
    /// The text is too long, or a cost is out of range.
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
