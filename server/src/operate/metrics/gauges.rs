//! Gauges: what others than the metrics know of the present, as they tell it when Prometheus asks.

use lexiform_engine::{Meters, Stats};

/// How the compiler stands at the moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompilerGauges {
    /// Bytes that the cached grammars are estimated to take.
    pub cache_bytes: u64,
    /// Grammars in the cache.
    pub cache_entries: u64,
    /// Grammars that gave way to others.
    pub evictions: u64,
    /// Compiles that are running.
    pub running: usize,
}

/// What others than the server's own counters know at the moment.
#[derive(Clone, Copy, Debug)]
pub struct Gauges<'a> {
    /// The name of the model.
    pub model: &'a str,
    /// What the engine tells of itself.
    pub stats: &'a Stats,
    /// How long things take in it.
    pub meters: &'a Meters,
    /// How the compiler stands.
    pub compiling: CompilerGauges,
    /// What the queues had no room for.
    pub turned_away: TurnedAway,
    /// Traces that were sent, and those that were not.
    pub traces: (u64, u64),
    /// How the bodies stand that arrive.
    pub bodies: BodyCounts,
    /// Bytes of memory that the process holds, where the system tells.
    pub resident: Option<u64>,
}

/// Requests that the queues had no room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnedAway {
    /// Because too many wait.
    pub requests: u64,
    /// Because too many tokens of prompts wait.
    pub tokens: u64,
}

/// How the bodies stand.
#[derive(Clone, Copy, Debug, Default)]
pub struct BodyCounts {
    /// Bytes of the bodies that arrive or are being prepared.
    pub bytes: usize,
    /// Bodies that arrive.
    pub unfinished: usize,
    /// Bodies that were refused while they arrived, by reason.
    pub refused: [(&'static str, u64); 3],
}
