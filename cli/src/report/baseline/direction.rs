//! Which figures are better when they are higher, and which when they are lower.
//!
//! A figure is judged by its name alone. One that is in no table here is shown and never judged.

/// How two values of a figure are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// More is better, and any difference counts.
    More,
    /// Less is better, and any difference counts.
    Less,
    /// More is better, by more than the tolerance.
    MoreOrSo,
    /// Less is better, by more than the tolerance.
    LessOrSo,
    /// Nobody knows what is better.
    Unknown,
    /// The names of such figures come from the data, so that each may be missing.
    Tally,
}

/// Counts and shares of what is right.
const MORE: [&str; 11] = [
    "right",
    "correct",
    "accuracy",
    "coverage",
    "declared_coverage",
    "empirical_coverage",
    "true_coverage",
    "declared",
    "empirical",
    "compliance",
    "valid",
];

/// Counts of what is wrong.
const LESS: [&str; 20] = [
    "compile_errors",
    "valid_rejected",
    "invalid_accepted",
    "rejected_wrongly",
    "accepted_wrongly",
    "refused",
    "wrong",
    "invalid",
    "not_json",
    "wrapped",
    "truncated",
    "too_long",
    "keys_twice",
    "valid_refused",
    "out_of_bounds",
    "unanswered",
    "failed",
    "panics",
    "timeouts",
    "client_errors",
];

/// Speeds.
const MORE_OR_SO: [&str; 4] = ["tokens_a_second", "tokens_a_pass", "speedup", "processor_speedup"];

/// The parts of a summary that are judged. Others, such as the maximum, depend on single samples.
const SUMMARY: [&str; 3] = ["mean", "p50", "p99"];

/// The ends of the names of times.
const TIMES: [&str; 4] = ["_ns", "_us", "_ms", "_seconds"];

/// Objects whose keys come from the data: reasons with the number of cases.
const TALLIES: [&str; 5] = ["errors", "faults", "finish", "reasons", "retried"];

/// Returns the direction of a figure, from the names of the objects that it is in and its own.
pub(super) fn direction(path: &[String]) -> Direction {
    let Some((name, objects)) = path.split_last() else {
        return Direction::Unknown;
    };
    let is_in = |table: &[&str]| table.contains(&name.as_str());
    let has_end = |name: &str, ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    if objects.iter().any(|object| TALLIES.contains(&object.as_str())) {
        return Direction::Tally;
    }
    match objects.last() {
        Some(object) if has_end(object, &TIMES) && is_in(&SUMMARY) => Direction::LessOrSo,
        _ if is_in(&MORE) => Direction::More,
        _ if is_in(&LESS) => Direction::Less,
        _ if is_in(&MORE_OR_SO) => Direction::MoreOrSo,
        _ if has_end(name, &["_bytes"]) => Direction::LessOrSo,
        _ => Direction::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_is_better() {
        let of = |path: &str| direction(&path.split('.').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(of("by_split.Github_easy.right"), Direction::More);
        assert_eq!(of("invalid_accepted"), Direction::Less);
        assert_eq!(of("mask_us.p99"), Direction::LessOrSo);
        assert_eq!(of("vocabulary_bytes"), Direction::LessOrSo);
        assert_eq!(of("arms.0.tokens_a_second"), Direction::MoreOrSo);
        // One sample decides about these.
        assert_eq!(
            [of("mask_us.max"), of("mask_us.p999"), of("vocabulary_us")],
            [Direction::Unknown; 3]
        );
        assert_eq!(
            [of("schemas"), of("mask_us.count"), of("p99"), of("")],
            [Direction::Unknown; 4]
        );
        assert_eq!(of("errors.right"), Direction::Tally);
        // Those of answers and of engines side by side.
        assert_eq!(of("both.empirical"), Direction::More);
        assert_eq!(of("constrained.truncated"), Direction::Less);
        assert_eq!(of("lexiform.valid_refused"), Direction::Less);
        assert_eq!(of("lexiform.mask_cold_us.p99"), Direction::LessOrSo);
        assert_eq!(of("both.finish.stop"), Direction::Tally);
    }
}
