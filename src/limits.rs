//! The limits of a compile, by name.
//!
//! Sources are untrusted. Each limit stops one way of being expensive, each has a default that no real schema of
//! JSONSchemaBench reaches, and an error that a limit causes names it and its value.

/// What a compile may cost.
///
/// ```
/// use lexiform::limits::Limits;
/// let strict = Limits { source_bytes: 64 * 1024, ..Limits::default() };
/// assert!(strict.nesting > 0);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// The length of a source in bytes. Example: a schema of 2 MiB is refused before it is parsed.
    pub source_bytes: usize,
    /// How deep a source may nest: brackets of a regular expression or grammar, objects and arrays of a schema.
    pub nesting: usize,
    /// The expressions of the grammar that a source becomes. Example: an `enum` of 2,000,000 values is refused.
    pub exprs: usize,
    /// The greatest count in a repetition that has to be unrolled, as in `(ab){500}`.
    pub repeat: u32,
    /// The states of one regular language after determinisation.
    pub regular_states: usize,
    /// The bytes of one automaton while it is being built.
    pub regular_bytes: usize,
    /// The states of the rules before determinisation.
    pub rule_states: usize,
    /// The memory for the masks of one grammar, which are dropped and found again beyond it. Services give new
    /// sequences a fresh grammar where the states it has read pass it too.
    pub grammar_bytes: usize,
    /// Steps of the schema algebra (intersections, complements, subset tests).
    pub fuel: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            source_bytes: 1 << 20,
            nesting: 512,
            exprs: 1_000_000,
            repeat: 100_000,
            regular_states: 200_000,
            regular_bytes: 16 << 20,
            rule_states: 4_000_000,
            grammar_bytes: 64 << 20,
            fuel: 300_000,
        }
    }
}
