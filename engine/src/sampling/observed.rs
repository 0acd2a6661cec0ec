//! The lessons of a sequence's stores from the rows of a pass: the store of its owner, and the store of its
//! request's samples.
//!
//! Stores learn from the row of the text and those of the accepted drafts: which tokens the model found
//! likely there, what the grammar left of them, and what was drawn. If a device drew by itself, the rows are
//! not in memory, and only the drawn tokens are learned. A mask that the answer's token budget has narrowed
//! differs from the mask of its state, and says nothing about other answers.
//!
//! Cost: two scans of each of these rows, and exponentials of the few likely tokens. In a pass of many rows
//! the sequences take [turns](Turn): the amount learned per pass is bounded, and so is its cost, while the
//! number of rows per second grows with the pass.

use crate::grammar::masks::Bounds;
use crate::model::logits::Row;
use crate::sampling::Found;
use crate::sequence::Sequence;
use lexiform_law::draft::{Constraint, Context, NodeId, Observation, Text};

/// The number of tokens learned from a row, which is what stores keep of one.
const LIKELIEST: usize = 8;

/// The approximate number of rows of a pass that are learned from.
const ROWS: usize = 8;

/// The turn of the sequences that stores learn from in a pass: one of every `of`, a different one each time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pass: u64,
    of: u64,
}

impl Turn {
    /// Returns the turn for pass number `pass` with `rows` rows.
    pub(crate) fn new(pass: u64, rows: usize) -> Turn {
        let of = rows.div_ceil(ROWS).max(1) as u64;
        Turn { pass, of }
    }

    /// Returns `true` if it is the turn of the sequence with this identity.
    fn is_of(self, sequence: u64) -> bool {
        sequence.wrapping_add(self.pass).is_multiple_of(self.of)
    }
}

/// Tokens with their probabilities, the likeliest first.
type Likely = Vec<(u32, f32)>;

/// The state of a sequence that must be saved before its drafts become text.
pub(crate) struct Before {
    /// The states after the text and after each draft, as numbered in stores.
    states: Vec<Option<u64>>,
    /// The number of tokens of the answer.
    answer: usize,
}

/// Returns the positions of the rows of a pass; `None` if nothing is learned, or if it is the turn of others.
pub(crate) fn before(sequence: &Sequence, turn: Turn) -> Option<Before> {
    sequence
        .teaches()
        .next()
        .filter(|_| turn.is_of(sequence.id.number))?;
    let drafted = sequence.draft.drafts.iter().map(|draft| draft.state);
    let states = std::iter::once(sequence.grammar.state).chain(drafted);
    let grammar = sequence.request.constraints.grammar.as_ref();
    let key = |state| grammar.zip(state).map(|(grammar, state)| grammar.key(state));
    Some(Before {
        states: states.map(key).collect(),
        answer: sequence.generated().len(),
    })
}

/// Learns from a pass in which a sequence has drawn: from the row of the text and from those of the accepted
/// drafts. `left` is the text of an attempt that has failed.
pub(crate) fn teach(
    sequence: &Sequence,
    before: &Before,
    (found, masks): (Found<'_>, Option<&[Bounds]>),
    (accepted, left): (&[NodeId], Option<&[u32]>),
) {
    let tokens = left.unwrap_or(&sequence.text.tokens);
    let (prompt, answer) = tokens.split_at(sequence.request.prompt.tokens.len());
    let Some((answer, drawn)) = answer.split_at_checked(before.answer) else {
        return;
    };
    let rows = std::iter::once(0).chain(accepted.iter().map(|node| node + 1));
    for (number, row) in rows.take(drawn.len()).enumerate() {
        let at = Context {
            text: Text { prompt, answer },
            path: &drawn[..number],
            state: before.states.get(row).copied().flatten(),
        };
        let mask = masks.and_then(|masks| masks.get(row));
        let (likely, allowed) = match found {
            Found::Rows(rows) => likeliest(&rows[row], mask),
            Found::Drawn(_) => (vec![(drawn[number], 1.0)], vec![(drawn[number], 1.0)]),
        };
        let is_of_state = mask.is_none_or(|mask| !mask.is_steered());
        let seen = Observation {
            likely: &likely,
            allowed: if is_of_state { &allowed } else { &[] },
            drawn: Some(drawn[number]),
        };
        sequence.teaches().for_each(|store| store.learn(&at, &seen));
    }
}

/// Returns the likeliest tokens of a row, before the mask and inside it.
fn likeliest(row: &Row<'_>, mask: Option<&Bounds>) -> (Likely, Likely) {
    let all = row.logits.iter().copied().zip(0_u32..);
    let likely = likeliest_of(all);
    let allowed =
        match mask {
            None => likely.clone(),
            Some(bounds) => {
                let blocks = row.logits.chunks(32).zip(bounds.mask.words()).zip(0_u32..);
                let is_allowed = |word: u32, bit: &u32| word >> bit & 1 == 1;
                likeliest_of(blocks.filter(|((_, word), _)| **word != 0).flat_map(
                    |((block, &word), number)| {
                        let tokens = block.iter().copied().zip(0_u32..);
                        tokens
                            .filter(move |(_, bit)| is_allowed(word, bit))
                            .map(move |(logit, bit)| (logit, 32 * number + bit))
                    },
                ))
            }
        };
    (likely, allowed)
}

/// The distance below the largest logit up to which a logit counts: all beyond are less than a fiftieth of a
/// percent of a row of 2,000, and two percent of one of 200,000.
const FAR_LOGITS: f32 = 16.0;

/// Returns the likeliest of these tokens, with their probabilities among them. These only determine what to
/// draft, so `f32` and the largest logits suffice; a full scan of a row would take as long as drawing from
/// it.
fn likeliest_of(tokens: impl Iterator<Item = (f32, u32)> + Clone) -> Likely {
    let peak = tokens
        .clone()
        .fold(f32::NEG_INFINITY, |peak, (logit, _)| peak.max(logit));
    if !peak.is_finite() {
        return Vec::new();
    }
    let (mut whole, mut best) = (0.0_f32, Likely::with_capacity(LIKELIEST + 1));
    for (logit, token) in tokens.filter(|(logit, _)| *logit > peak - FAR_LOGITS) {
        let weight = (logit - peak).exp();
        whole += weight;
        if best.len() == LIKELIEST && best.last().is_some_and(|(_, last)| weight <= *last) {
            continue;
        }
        let at = best.partition_point(|(_, other)| *other >= weight);
        best.insert(at, (token, weight));
        best.truncate(LIKELIEST);
    }
    best.iter_mut().for_each(|(_, weight)| *weight /= whole);
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use lexiform_law::Distribution;

    /// Guards against sequences that never have their turn, and against passes in which all have it.
    #[test]
    fn in_passes_of_many_rows_sequences_teach_in_turns() {
        for (rows, least, most) in [(1, 64, 64), (8, 64, 64), (9, 32, 32), (64, 8, 8), (100, 4, 5)] {
            let mut turns = [0; 64];
            let mut passes = 0;
            for pass in 0..1000_u64 {
                let turn = Turn::new(pass, rows);
                let teaching = (0..64).filter(|&sequence| turn.is_of(sequence));
                let before: u64 = turns.iter().sum();
                teaching.for_each(|sequence| turns[sequence as usize] += 1);
                let now = turns.iter().sum::<u64>() - before;
                assert!((least..=most).contains(&now), "{rows} rows: {now} sequences");
                passes += 1;
            }
            let fair = passes / rows.div_ceil(ROWS) as u64;
            assert!(turns.iter().all(|&turns| turns.abs_diff(fair) <= 1), "{turns:?}");
        }
    }

    #[test]
    fn the_likeliest_are_those_of_the_distribution() {
        let logits: Vec<f32> = (0..300).map(|token| ((token * 37 % 101) as f32) / 9.0).collect();
        let exact = Distribution::new(&logits).unwrap().top(LIKELIEST);
        let found = likeliest_of(logits.iter().copied().zip(0..));
        assert_eq!(found.len(), LIKELIEST);
        for ((token, chance), (expected, log)) in found.into_iter().zip(exact) {
            assert_eq!(token, expected);
            assert!((f64::from(chance) / log.exp() - 1.0).abs() < 1e-3, "{chance}");
        }
        assert!(likeliest_of([(f32::NEG_INFINITY, 1)].into_iter()).is_empty());
        assert!(likeliest_of(std::iter::empty()).is_empty());
    }
}
