//! The distance to the end by brute force: all token sequences are tried, round by round.

use std::collections::HashSet;

use lexiform::{Grammar, State};

/// Token sequences are tried up to this length.
pub(crate) const ROUNDS: usize = 7;
/// Where more states than this are met, the rounds end there and distances beyond are not compared.
const STATES: usize = 3000;

/// The fewest tokens to the end, the end token among them, as far as brute force got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Distance {
    Exactly(usize),
    /// More than this.
    Beyond(usize),
    /// There is no way.
    Never,
}

/// The distance from a state. It is counted in a copy of the grammar that has met nothing yet: the states of
/// many counts would use up what a grammar may take (`grammar_bytes`), and from then on all that is compared
/// would be refused.
pub(crate) fn distance(grammar: &Grammar, from: State) -> Distance {
    let counted = grammar.fresh();
    let from = counted.adopt(grammar, from).expect("it is the same grammar");
    brute_force(&counted, from)
}

fn brute_force(grammar: &Grammar, from: State) -> Distance {
    let mut seen = HashSet::from([from]);
    let mut round = vec![from];
    for length in 1..=ROUNDS {
        if round.iter().any(|&state| grammar.is_accepting(state)) {
            return Distance::Exactly(length);
        }
        let mut next = Vec::new();
        for &state in &round {
            for token in 0..grammar.vocabulary().len() as u32 {
                // A step that costs more than a step may is refused at the end of its work: a thousand of
                // them take minutes.
                let Ok(step) = grammar.try_step_of_bytes(state, token) else {
                    return Distance::Beyond(length);
                };
                next.extend(step.filter(|&state| seen.insert(state)));
            }
        }
        if next.is_empty() {
            return Distance::Never;
        }
        if seen.len() > STATES {
            return Distance::Beyond(length);
        }
        round = next;
    }
    Distance::Beyond(ROUNDS)
}
