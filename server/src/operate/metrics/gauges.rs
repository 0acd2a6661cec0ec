//! The gauges: current values from other modules, collected when Prometheus asks.

/// The current state of the compiler.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompilerGauges {
    /// The estimated size of the cached grammars in bytes.
    pub cache_bytes: u64,
    /// The number of grammars in the cache.
    pub cache_entries: u64,
    /// The number of grammars that were evicted.
    pub evictions: u64,
    /// The number of running compilations.
    pub running: usize,
}

/// The current values of the process.
#[derive(Clone, Copy, Debug)]
pub struct ServerGauges {
    /// The state of the compiler.
    pub compiling: CompilerGauges,
    /// The number of traces that were sent, and of those that were not.
    pub traces: (u64, u64),
    /// The number of lines that could not be written, by log.
    pub lines_lost: [(&'static str, u64); 2],
    /// The state of the bodies that are arriving.
    pub bodies: BodyCounts,
    /// The bytes of memory that the process holds, if the system reports them.
    pub resident: Option<u64>,
}

/// The number of requests that the queues had no room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnedAway {
    /// The number refused because too many requests wait.
    pub requests: u64,
    /// The number refused because too many tokens of prompts wait.
    pub tokens: u64,
}

/// The state of request bodies.
#[derive(Clone, Copy, Debug, Default)]
pub struct BodyCounts {
    /// The bytes of the bodies that are arriving or being prepared.
    pub bytes: usize,
    /// The number of bodies that are arriving.
    pub unfinished: usize,
    /// The number of bodies that were refused while they arrived, by reason.
    pub refused: [(&'static str, u64); 3],
}
