//! The random source and the clock: identities, seeds and times, which do not depend on any input.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns a number that cannot be guessed from earlier ones: a keyed hash of a counter, with a key drawn by
/// the system.
pub fn seed() -> u64 {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    static KEY: std::sync::OnceLock<RandomState> = std::sync::OnceLock::new();
    let mut hasher = KEY.get_or_init(RandomState::new).build_hasher();
    hasher.write_u64(COUNTER.fetch_add(1, Ordering::Relaxed));
    hasher.finish()
}

/// Returns an identity that is unique among answers.
pub fn identity() -> String {
    format!("{:016x}{:016x}", seed(), seed())
}

/// Returns the seconds since 1970.
pub fn now() -> u64 {
    since_1970().as_secs()
}

/// Returns the nanoseconds since 1970.
pub fn nanoseconds() -> u64 {
    u64::try_from(since_1970().as_nanos()).unwrap_or(u64::MAX)
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_differ() {
        let mut all: Vec<String> = (0..1000).map(|_| identity()).collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 1000);
    }
}
