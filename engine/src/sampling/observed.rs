//! The lessons of a sequence's stores from the rows of a pass: the store of its owner, and the store of its
//! request's samples.
//!
//! Stores learn from the row of the text, from those of the accepted drafts, and, as far as a pass has few
//! rows, from those of drafts that were not accepted: which tokens the model found likely there, what the
//! grammar left of them, and what was drawn. If a device drew by itself, its likeliest tokens are requested
//! for these rows before the rows are gone ([`wanted`]); where the next pass began before the host could
//! ask, only the drawn tokens are learned. A mask that the answer's token budget has narrowed differs from
//! the mask of its state, and says nothing about other answers.
//!
//! Cost: two scans of each of these rows, which look at blocks of 32 tokens and only at the few that are
//! likely enough, token by token. In a pass of many rows the sequences take [turns](Turn): the amount
//! learned per pass is bounded, and so is its cost, while the number of rows per second grows with the pass.

use crate::grammar::masks::Bounds;
use crate::model::logits::Row;
use crate::sampling::{Found, Likely};
use crate::sequence::Sequence;
use crate::speculation::draft::{Draft, path};
use lexiform_law::draft::{Constraint, Context, NodeId, Observation, Text};

/// The number of tokens learned from a row, which is what stores keep of one.
pub(crate) const LIKELIEST: usize = 8;

/// The approximate number of rows of a pass that are learned from.
const ROWS: usize = 8;

/// The number of rows of a sequence up to which those of refused drafts are learned from, too.
const FEW_ROWS: usize = 4;

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

/// The state of a sequence that must be saved before its drafts become text.
pub(crate) struct Before {
    /// The states after the text and after each draft, as numbered in stores.
    states: Vec<Option<u64>>,
    /// The tokens between the text and each of the first rows, of which some may be those of refused drafts.
    paths: Vec<Vec<u32>>,
    /// The number of tokens of the answer.
    answer: usize,
}

/// Returns the positions of the rows of a pass; `None` if nothing is learned, or if it is the turn of
/// others.
pub(crate) fn before(sequence: &Sequence, turn: Turn) -> Option<Before> {
    if !teaches(sequence, turn) {
        return None;
    }
    let drafts = &sequence.draft.drafts;
    let states = std::iter::once(sequence.grammar.state).chain(drafts.iter().map(|draft| draft.state));
    let grammar = sequence.request.constraints.grammar.as_ref();
    let key = |state| grammar.zip(state).map(|(grammar, state)| grammar.key(state));
    // Others than the taken rows are learned from only where few rows are taken.
    let paths = (0..drafts.len().min(2 * FEW_ROWS)).map(|node| tokens_to(drafts, node));
    Some(Before {
        states: states.map(key).collect(),
        paths: std::iter::once(Vec::new()).chain(paths).collect(),
        answer: sequence.generated().len(),
    })
}

/// Returns `true` if a sequence has a store that learns, and it is its turn.
fn teaches(sequence: &Sequence, turn: Turn) -> bool {
    turn.is_of(sequence.id.number) && sequence.teaches().next().is_some()
}

/// Returns the tokens from the text to a draft.
fn tokens_to(drafts: &[Draft], node: NodeId) -> Vec<u32> {
    let path = path(drafts, Some(node)).into_iter();
    path.map(|node| drafts[node].token).collect()
}

/// Returns how many of the first rows of a sequence are worth asking a device for their likeliest tokens:
/// none if nothing is learned from them.
pub(crate) fn wanted(sequence: &Sequence, turn: Turn) -> usize {
    match teaches(sequence, turn) {
        true => (1 + sequence.draft.drafts.len()).min(ROWS),
        false => 0,
    }
}

/// A row of a pass from which stores learn.
struct Lesson<'a> {
    row: usize,
    path: &'a [u32],
    drawn: Option<u32>,
}

/// Returns the rows to learn from: those of the text and of the accepted drafts, each with the token that
/// was drawn, and then others, as long as there are few.
fn lessons<'a>(before: &'a Before, drawn: &'a [u32], accepted: &[NodeId], rows: usize) -> Vec<Lesson<'a>> {
    let taken: Vec<usize> = std::iter::once(0)
        .chain(accepted.iter().map(|node| node + 1))
        .take(drawn.len())
        .collect();
    let own = taken.iter().enumerate().map(|(number, &row)| Lesson {
        row,
        path: &drawn[..number],
        drawn: Some(drawn[number]),
    });
    let others = (0..rows.min(before.paths.len())).filter(|row| !taken.contains(row));
    let others = others.map(|row| Lesson {
        row,
        path: &before.paths[row],
        drawn: None,
    });
    let most = FEW_ROWS.max(taken.len());
    own.chain(others).take(most).collect()
}

/// Learns from a pass in which a sequence has drawn. `left` is the text of an attempt that has failed.
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
    let rows = match found {
        Found::Rows(rows) => rows.len(),
        Found::Drawn { likely, .. } => likely.len(),
    };
    for lesson in lessons(before, drawn, accepted, rows) {
        let mask = masks.and_then(|masks| masks.get(lesson.row));
        let is_of_state = mask.is_none_or(|mask| !mask.is_steered());
        let state = before.states.get(lesson.row).copied().flatten();
        let at = Context {
            text: Text { prompt, answer },
            path: lesson.path,
            state: state.filter(|_| is_of_state),
        };
        let (likely, allowed) = match found {
            Found::Rows(rows) => (
                likeliest(&rows[lesson.row], None),
                mask.map(|mask| likeliest(&rows[lesson.row], Some(mask))),
            ),
            Found::Drawn { likely, .. } => {
                let likely = likely.get(lesson.row).cloned().unwrap_or_default();
                let allowed = mask.map(|mask| inside(&likely, mask));
                (likely, allowed)
            }
        };
        let seen = Observation {
            likely: &likely,
            allowed: allowed.as_ref().unwrap_or(&likely),
            drawn: lesson.drawn,
        };
        let scale = match found {
            Found::Rows(rows) => rows[lesson.row].measured.map_or(1.0, |measured| measured.scale),
            Found::Drawn { .. } => 1.0,
        };
        sequence
            .teaches()
            .for_each(|store| store.learn(&at, &seen, scale));
    }
}

/// Returns the likely tokens that a mask allows, with their probabilities among each other.
fn inside(likely: &Likely, mask: &Bounds) -> Likely {
    let allowed = likely.iter().filter(|(token, _)| mask.mask.contains(*token));
    let whole: f32 = allowed.clone().map(|(_, chance)| chance).sum();
    allowed.map(|&(token, chance)| (token, chance / whole)).collect()
}

/// The number of tokens of a block, as many as a word of a mask has bits.
const BLOCK: usize = 32;

/// The distance below the largest logit up to which a logit counts: all beyond are less than a fiftieth of a
/// percent of a row of 2,000, and two percent of one of 200,000.
const FAR_LOGITS: f32 = 16.0;

/// Returns the likeliest tokens of a row with their probabilities, of all tokens or of those that a mask
/// allows.
///
/// These only determine what to draft, so `f32` and the largest logits suffice. The probabilities are those
/// of the request's temperature if the model took the sums of the row, which saves most of the time.
fn likeliest(row: &Row<'_>, mask: Option<&Bounds>) -> Likely {
    let words = mask.map(|mask| mask.mask.words());
    let blocks = || {
        let word = |number: usize| words.map_or(u32::MAX, |words| words.get(number).copied().unwrap_or(0));
        let blocks = row.logits.chunks(BLOCK).enumerate();
        blocks
            .map(move |(number, block)| (number, word(number), block))
            .filter(|(_, word, _)| *word != 0)
    };
    let mut best = Best::default();
    blocks().for_each(|(number, word, block)| best.look_at(number * BLOCK, word, block));
    let Some(&(_, peak)) = best.0.first() else {
        return Likely::new();
    };
    let (scale, from) = row
        .measured
        .map_or((1.0, peak), |measured| (measured.scale as f32, measured.peak));
    let weight = |logit: f32| (scale * (logit - from)).exp();
    let whole: f32 = blocks()
        .map(|(number, word, block)| match row.measured {
            Some(measured) if word == u32::MAX => measured.sums[number] as f32,
            _ => {
                let near = allowed(word, block).filter(|(_, logit)| *logit > peak - FAR_LOGITS);
                near.map(|(_, logit)| weight(logit)).sum()
            }
        })
        .sum();
    let share = |(token, logit): (u32, f32)| (token, weight(logit) / whole);
    match whole > 0.0 {
        true => best.0.into_iter().map(share).collect(),
        // Nothing that is allowed is near the peak of the whole row.
        false => Likely::new(),
    }
}

/// Returns the tokens of a block that a word of a mask allows, with their logits.
fn allowed(word: u32, block: &[f32]) -> impl Iterator<Item = (u32, f32)> {
    let tokens = (0_u32..).zip(block.iter().copied());
    tokens.filter(move |(bit, _)| word >> bit & 1 == 1)
}

/// The tokens with the largest logits so far, the largest first.
#[derive(Default)]
struct Best(Vec<(u32, f32)>);

impl Best {
    /// Looks at a block of tokens that begins with the token `first`.
    fn look_at(&mut self, first: usize, word: u32, block: &[f32]) {
        let least = match self.0.len() < LIKELIEST {
            true => f32::NEG_INFINITY,
            false => self.0.last().map_or(f32::NEG_INFINITY, |(_, least)| *least),
        };
        // Without NaN, which a row does not contain, this is one instruction for several logits.
        let largest = block.iter().fold(
            f32::NEG_INFINITY,
            |most, &logit| if logit > most { logit } else { most },
        );
        if largest <= least {
            return;
        }
        for (bit, logit) in allowed(word, block) {
            self.add(first as u32 + bit, logit);
        }
    }

    fn add(&mut self, token: u32, logit: f32) {
        let is_full = self.0.len() == LIKELIEST;
        if logit == f32::NEG_INFINITY || is_full && self.0.last().is_some_and(|(_, least)| logit <= *least) {
            return;
        }
        let at = self.0.partition_point(|(_, other)| *other >= logit);
        self.0.insert(at, (token, logit));
        self.0.truncate(LIKELIEST);
    }
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
        let found = likeliest(&Row::from(&logits[..]), None);
        assert_eq!(found.len(), LIKELIEST);
        for ((token, chance), (expected, log)) in found.into_iter().zip(exact) {
            assert_eq!(token, expected);
            assert!((f64::from(chance) / log.exp() - 1.0).abs() < 1e-3, "{chance}");
        }
        assert!(likeliest(&Row::from(&[f32::NEG_INFINITY][..]), None).is_empty());
        assert!(likeliest(&Row::from(&[][..]), None).is_empty());
    }

    /// A measured row takes the sums of the model, at the scale of the request.
    #[test]
    fn sums_of_the_model_replace_those_of_a_scan() {
        let logits: Vec<f32> = (0..200).map(|token| ((token * 53 % 89) as f32) / 11.0).collect();
        let (peak, scale) = (8.0_f32, 1.25_f64);
        let weight = |logit: f32| (scale * f64::from(logit - peak)).exp();
        let sums: Vec<f64> = logits
            .chunks(BLOCK)
            .map(|block| block.iter().map(|&logit| weight(logit)).sum())
            .collect();
        let row = Row {
            logits: &logits,
            measured: Some(lexiform_law::Measured {
                peak,
                scale,
                sums: &sums,
            }),
        };
        let whole: f64 = sums.iter().sum();
        let mut exact: Vec<(u32, f64)> = (0..)
            .zip(logits.iter().map(|&logit| weight(logit) / whole))
            .collect();
        exact.sort_by(|one, other| other.1.total_cmp(&one.1));
        for ((token, chance), (expected, exact)) in likeliest(&row, None).into_iter().zip(exact) {
            assert_eq!(token, expected);
            assert!(
                (f64::from(chance) / exact - 1.0).abs() < 1e-4,
                "{chance}, {exact}"
            );
        }
    }

    /// Guards against stores that learn nothing from drafts that were not accepted: the matrix of Token
    /// Recycling learns from every row of a tree.
    #[test]
    fn rows_of_refused_drafts_are_lessons_too() {
        let before = Before {
            states: vec![None; 4],
            paths: vec![vec![], vec![5], vec![5, 6], vec![7]],
            answer: 0,
        };
        let rows = |drawn: &[u32], accepted: &[NodeId]| -> Vec<(usize, Vec<u32>, Option<u32>)> {
            let lessons = lessons(&before, drawn, accepted, 4);
            lessons
                .into_iter()
                .map(|lesson| (lesson.row, lesson.path.to_vec(), lesson.drawn))
                .collect()
        };
        assert_eq!(
            rows(&[5, 9], &[0]),
            [
                (0, vec![], Some(5)),
                (1, vec![5], Some(9)),
                (2, vec![5, 6], None),
                (3, vec![7], None)
            ]
        );
        assert_eq!(
            rows(&[9], &[])[1..],
            [(1, vec![5], None), (2, vec![5, 6], None), (3, vec![7], None)]
        );
    }
}
