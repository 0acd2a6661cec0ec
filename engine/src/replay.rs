//! What an attempt saw, for the next attempt.
//!
//! Attempts of the global law begin at the same prompt and often go the same way for a while. Where they do, the rows
//! are those of the last attempt: no pass of the model is needed until the new attempt leaves the old one's path.
//!
//! ```text
//!   attempt 1   row0 ─a─ row1 ─b─ row2 ─c─ row3 ✗           rows kept: 0 1 2 3
//!   attempt 2   row0 ─a─ row1 ─b─ row2 ─d─ ?                drawn from rows 0 1 2; then the model is asked
//! ```

/// The most numbers kept, over all rows of a sequence.
const MOST: usize = 4 << 20;

/// The rows along one path, each before the token of the same number.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    rows: Vec<Vec<f32>>,
    tokens: Vec<u32>,
}

impl Replay {
    /// The row at this position of the answer, if it is known.
    pub(crate) fn row(&self, position: usize) -> Option<&[f32]> {
        self.rows.get(position).map(Vec::as_slice)
    }

    /// Notes the row before a position; the rows before it were noted or were taken from here.
    pub(crate) fn note_row(&mut self, position: usize, row: &[f32]) {
        if self.rows.len() == position && (position + 1) * row.len() <= MOST {
            self.rows.push(row.to_vec());
        }
    }

    /// Notes what was drawn at a position. If it is not what was drawn there before, what came after is forgotten.
    pub(crate) fn note_token(&mut self, position: usize, token: u32) {
        if self.tokens.get(position) != Some(&token) {
            self.tokens.truncate(position);
            self.rows.truncate(position + 1);
            if self.tokens.len() == position {
                self.tokens.push(token);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Replay;

    #[test]
    fn rows_are_known_as_far_as_the_paths_agree() {
        let mut replay = Replay::default();
        for (position, token) in [7, 8, 9].into_iter().enumerate() {
            replay.note_row(position, &[position as f32]);
            replay.note_token(position, token);
        }
        replay.note_row(3, &[3.0]);
        assert_eq!(replay.row(3), Some(&[3.0][..]));
        replay.note_token(0, 7);
        assert_eq!(replay.row(1), Some(&[1.0][..]));
        replay.note_token(1, 5);
        assert_eq!((replay.row(1), replay.row(2)), (Some(&[1.0][..]), None));
        replay.note_row(5, &[5.0]);
        assert_eq!(
            replay.row(5),
            None,
            "rows without those before them are of no use"
        );
    }
}
