//! How often a part is repeated, as the operators after a part say in many notations.
//!
//! ```text
//!   x?   x*   x+   x{3}   x{3,}   x{,5}   x{3,5}
//! ```

use pest::RuleType;
use pest::iterators::Pair;

use crate::notation::lower::Problems;
use lexiform_automata::error::ProblemKind;

/// The least and the greatest number of repetitions.
pub(crate) type Counts = (u32, Option<u32>);

/// Reads an operator whose counts, if it has any, are the pairs within its only pair: numbers, and a comma.
pub(crate) fn operator<R: RuleType>(operator: Pair<'_, R>, problems: &mut Problems) -> Option<Counts> {
    let at = operator.as_span().start();
    match operator.as_str().trim_end() {
        "?" => return Some((0, Some(1))),
        "*" => return Some((0, None)),
        "+" => return Some((1, None)),
        _ => {}
    }
    let mut numbers: [Option<u32>; 2] = [None, None];
    let mut slot = 0;
    for pair in operator.into_inner().flat_map(Pair::into_inner) {
        match pair.as_str() {
            "," => slot = 1,
            digits => numbers[slot] = Some(number(digits, pair.as_span().start(), problems)?),
        }
    }
    let min = numbers[0].unwrap_or(0);
    let max = if slot == 0 { Some(min) } else { numbers[1] };
    in_order((min, max), at, problems)
}

/// Returns the counts if the greatest is not below the least.
pub(crate) fn in_order((min, max): Counts, at: usize, problems: &mut Problems) -> Option<Counts> {
    if max.is_some_and(|max| max < min) {
        problems.syntax(at, "the minimum of a repetition is greater than its maximum");
        return None;
    }
    Some((min, max))
}

/// Reads a count.
pub(crate) fn number(digits: &str, at: usize, problems: &mut Problems) -> Option<u32> {
    match digits.parse::<u32>() {
        Ok(number) if number < u32::MAX => Some(number),
        _ => {
            problems.add(ProblemKind::Limit, at, "the repetition count is too large");
            None
        }
    }
}
