//! Fields that mean the same in a request that generates and in the part of another request that generates in
//! addition.

use std::time::Duration;

use serde_json::Value;

use crate::wire::fields::{Fields, Problems};

/// Reads `max_completion_tokens`, which takes precedence, or the older `max_tokens`.
pub(in crate::wire) fn max_tokens(fields: &mut Fields, problems: &mut Problems) -> Option<usize> {
    let limit = i64::from(u32::MAX);
    let old = fields.integer("max_tokens", 1, limit, problems);
    let new = fields.integer("max_completion_tokens", 1, limit, problems);
    new.or(old).map(|tokens| tokens as usize)
}

/// Reads the number of tokens before which nothing ends the output, which defaults to zero.
pub(in crate::wire) fn min_tokens(fields: &mut Fields, problems: &mut Problems) -> usize {
    let least = fields.integer("min_tokens", 0, i64::from(u32::MAX), problems);
    least.map_or(0, |least| least as usize)
}

/// Reads the number of tokens to choose among; `-1` means all, as in vLLM.
pub(in crate::wire) fn top_k(fields: &mut Fields, problems: &mut Problems) -> Option<u32> {
    let k = fields.integer("top_k", -1, i64::from(u32::MAX), problems);
    k.map(|k| k.max(0) as u32)
}

/// Reads the seed, which may be any 64-bit number.
pub(in crate::wire) fn seed(fields: &mut Fields, problems: &mut Problems) -> Option<u64> {
    let seed = fields.integer("seed", i64::MIN, i64::MAX, problems);
    seed.map(|seed| seed as u64)
}

/// Reads the timeout, which is at most a day.
pub(in crate::wire) fn timeout(fields: &mut Fields, problems: &mut Problems) -> Option<Duration> {
    let millis = fields.integer("timeout_ms", 1, 86_400_000, problems);
    millis.map(|millis| Duration::from_millis(millis.unsigned_abs()))
}

/// Reads a token id.
pub fn token_id(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|id| u32::try_from(id).ok())
}

/// Reads the priority, which defaults to zero.
pub(in crate::wire) fn priority(fields: &mut Fields, problems: &mut Problems) -> i32 {
    let priority = fields.integer("priority", i64::from(i32::MIN), i64::from(i32::MAX), problems);
    priority.map_or(0, |priority| priority as i32)
}
