//! Rows keyed by the constraint's state: keys, enums and names of tools, learned across requests.

use super::context::mixed;
use super::rows::{Lesson, RowRule, Rows};
use super::{Context, Observation};
use crate::draft::Origin;
use std::ops::RangeInclusive;

/// The average of the model's masked rows at a state of the constraint, after the last few tokens.
///
/// A state of a grammar determines where in the document a text is, which the last tokens do not: after `":
/// "` comes a different value for each key. So the tokens at a place of a schema are learned from all texts
/// that reached it, however different they were before. Rows are stored after the mask, because the mask is a
/// function of the state; each slot holds only tokens that may be drawn. The context is the state with the
/// last 2, 1 or 0 tokens, the longest known one first: in free text the state is the same everywhere, and the
/// tokens decide.
///
/// A state has the same key in every compile of an equal constraint and in every process, so what is learned
/// serves all requests with the same tools or the same schema, and may be saved across restarts.
pub type StateKeyed = Rows<StateRows>;

/// The rule of [`StateKeyed`].
pub enum StateRows {}

impl RowRule for StateRows {
    // The number changes with the definition of context keys, which `tests/masks/state_keys.rs` detects: rows
    // under old keys would never be found.
    const KEPT_AS: &'static str = "state-keyed 2";
    const ORIGIN: Origin = Origin::Keyed;
    const CONTEXTS: RangeInclusive<usize> = 0..=2;

    fn key(at: &Context<'_>, length: usize) -> Option<u64> {
        Some(mixed(at.state?, at.suffix(length)?))
    }

    fn lesson<'s>(seen: &Observation<'s>) -> Lesson<'s> {
        Lesson::Average(seen.allowed)
    }
}
