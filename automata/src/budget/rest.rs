//! Counts the tokens of the rest of a long object, property by property.
//!
//! The shortest completion of an object in which 300 properties are missing has thousands of bytes, and after
//! each property it is another one. So far from the end, it is spelled only up to the end of the current
//! property, and each missing property after that counts as many tokens as it takes alone:
//!
//! ```text
//!   {"f0": 1, "f1│": 0 │ , "f2": 0 │ , "f3": 0 │ … │ , "f299": 0 │ } ──► end
//!                spelled     6           6       …       6         spelled
//! ```
//!
//! A token that would span two properties counts as two, which makes the number an upper bound: less than one
//! token too many for each property. The path that is spelled keeps to it, since its properties are the
//! missing ones, in some order, each as the shortest text that comes first in byte order.

use super::spell::{Measured, Rest, Spelling};
use crate::language::NEVER;
use crate::pushdown::{ConfigId, Distances, FrameId, Stacks};
use crate::work::spend;

/// The distance to the end in steps from which on the rest of an object is counted by properties.
const FAR: u64 = 512;

impl Spelling {
    /// Returns the rest of the object of which the configuration is between two properties, if the end is far
    /// away. O(properties of the object).
    pub(super) fn rest(&self, measured: Measured<'_>, config: ConfigId) -> Option<Rest> {
        let (_, stacks, shortest) = measured;
        let length = shortest.of(stacks, config);
        if length <= FAR || length == NEVER || stacks.has_guards() {
            return None;
        }
        let (list, missing, then) = between(stacks, shortest, config)?;
        spend(missing.len());
        let each = missing
            .iter()
            .map(|&index| self.tokens(measured, stacks.before_property(list, index)));
        let tokens = each.fold(0, u64::saturating_add);
        (tokens != NEVER).then_some(Rest { tokens, then })
    }
}

/// Returns the object list of which the configuration is between two properties, the properties that are
/// missing, and the configuration after it.
fn between(
    stacks: &Stacks,
    shortest: &Distances,
    mut config: ConfigId,
) -> Option<(u32, Vec<usize>, ConfigId)> {
    let length = shortest.of(stacks, config);
    loop {
        spend(1);
        let on_path = |&&reader: &&(FrameId, ConfigId)| shortest.of_reader(stacks, reader) == length;
        let mut open = stacks.pairs(config).iter().filter(on_path);
        let list = |&(frame, then): &(FrameId, ConfigId)| {
            let (list, missing) = stacks.missing_properties(frame)?;
            Some((list, missing, then))
        };
        if let Some(found) = open.clone().find_map(list) {
            return Some(found);
        }
        // A value that may end here.
        config = open.find(|(_, then)| shortest.of(stacks, *then) == length)?.1;
    }
}
