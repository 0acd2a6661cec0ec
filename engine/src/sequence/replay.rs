//! The rows that an attempt saw, kept for the next attempt.
//!
//! Attempts of the global law begin at the same prompt and often share their first tokens. As far as they do,
//! the rows are those of the last attempt: no pass of the model is needed until the new attempt leaves the
//! old one's path.
//!
//! ```text
//!   attempt 1   row0 ─a─ row1 ─b─ row2 ─c─ row3 ✗           rows kept: 0 1 2 3
//!   attempt 2   row0 ─a─ row1 ─b─ row2 ─d─ ?                drawn from rows 0 1 2; then the model is asked
//! ```

use crate::State;
use crate::grammar::masks::Bounds;

/// The maximum number of logits kept, over all rows of a sequence.
const MOST_NUMBERS: usize = 4 << 20;

/// The rows along one path, each before the token of the same number, with the grammar state there and the
/// tokens that it allows: following the path again needs no grammar work.
#[derive(Default)]
pub(crate) struct Replay {
    rows: Vec<Known>,
    tokens: Vec<u32>,
}

/// The known row and grammar state of a position.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) row: Vec<f32>,
    pub(crate) state: State,
    pub(crate) bounds: Bounds,
}

impl Replay {
    /// Returns the known row at this position of the answer.
    pub(crate) fn at(&self, position: usize) -> Option<&Known> {
        self.rows.get(position)
    }

    /// Records the row before a position; the rows before it were recorded or taken from here.
    pub(crate) fn note_row(&mut self, position: usize, row: &[f32], (state, bounds): (State, &Bounds)) {
        if self.rows.len() == position && (position + 1) * row.len() <= MOST_NUMBERS {
            self.rows.push(Known {
                row: row.to_vec(),
                state,
                bounds: bounds.clone(),
            });
        }
    }

    /// Records the token drawn at a position. If it differs from the token drawn there before, later rows are
    /// discarded.
    pub(crate) fn note_token(&mut self, position: usize, token: u32) {
        if self.tokens.get(position) != Some(&token) {
            self.tokens.truncate(position);
            self.rows.truncate(position + 1);
            if self.tokens.len() == position {
                self.tokens.push(token);
            }
        }
    }

    /// Discards everything: the states belong to a grammar that was replaced.
    pub(crate) fn forget(&mut self) {
        *self = Replay::default();
    }
}

#[cfg(test)]
mod tests {
    use super::Replay;
    use crate::grammar::left::Left;
    use crate::grammar::masks::Finder;
    use lexiform::vocab::{TokenKind, Vocabulary};
    use std::sync::Arc;

    #[test]
    fn rows_are_known_as_far_as_the_paths_agree() {
        let vocabulary = Arc::new(Vocabulary::new(&[(TokenKind::Text, "a")], &[]).unwrap());
        let source = lexiform::Source::Regex("a*");
        let (grammar, _) = lexiform::compile(source, &vocabulary, &lexiform::Options::default()).unwrap();
        let bounds = Finder::default()
            .bounds(&grammar, grammar.start(), (Left::default(), false))
            .unwrap();
        let at = (grammar.start(), &bounds);
        let mut replay = Replay::default();
        for (position, token) in [7, 8, 9].into_iter().enumerate() {
            replay.note_row(position, &[position as f32], at);
            replay.note_token(position, token);
        }
        replay.note_row(3, &[3.0], at);
        let row = |replay: &Replay, position| replay.at(position).map(|known| known.row[0]);
        assert_eq!(row(&replay, 3), Some(3.0));
        replay.note_token(0, 7);
        assert_eq!(row(&replay, 1), Some(1.0));
        replay.note_token(1, 5);
        assert_eq!((row(&replay, 1), row(&replay, 2)), (Some(1.0), None));
        replay.note_row(5, &[5.0], at);
        assert_eq!(
            row(&replay, 5),
            None,
            "rows without those before them are of no use"
        );
    }
}
