//! The window of lookahead decoding: guesses at the next tokens, which a single pass corrects all at once.
//!
//! ```text
//!   text … a │ level 0   b  c  d      one text after a, as far as it is known
//!            │ level 1   b' c' d'     what came after  a b · a b c · a b c d      when these were guessed
//!            │ level 2   b" c" d"     what came after  a b b' · a b c c' · a b c d d'
//!              column    0  1  2
//!
//!   branches  a b b' b" · a b c c' c" · a b c d d' d"        a tree, whose nodes are fed beside the drafts of a pass
//!   rows after them   ─► the next level, and one phrase a column:  b b' b" and what came after
//! ```
//!
//! This is a Jacobi iteration: every position of the text is recomputed from the guesses before it, so that
//! correct guesses stay correct. Its trajectories are phrases that the model itself would write, which a pool
//! ([`Phrases`](super::Phrases)) keeps to draft from. So a model can draft phrases that it has not written
//! before ([Fu et al. 2024](https://arxiv.org/abs/2402.02057)).
//!
//! The window is independent of models: its caller decides which token comes after a branch. Guesses are not
//! drafts, because the constraint may not allow them; they become no text, and only what a pool offers of
//! them is verified.

use super::Text;

/// Guesses at the tokens after a text, by level and column.
///
/// Once all its levels exist, the window has the number of columns that it was created with; until then it
/// has one more column for each missing level. Each pass adds a level and removes the first column. A pass
/// moves the window by one token, however many were accepted, as the reference implementation does: guesses
/// that have fallen behind the text are corrected like others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JacobiWindow {
    /// All levels are equally long, and there is at least one.
    levels: Vec<Vec<u32>>,
    most: usize,
}

impl JacobiWindow {
    /// Creates a window of one level, whose guesses are the last tokens of a text, in their order and
    /// repeated if they are few; `None` for an empty text. Once filled it has `columns` columns, at least 1,
    /// and gives phrases of `length` tokens, at least 2.
    pub fn new(columns: usize, length: usize, text: Text<'_>) -> Option<Self> {
        let most = length.max(2) - 1;
        let width = columns.max(1) + most - 1;
        let begin = text.len().saturating_sub(width);
        let recent = begin..text.len();
        let first: Vec<u32> = recent
            .clone()
            .cycle()
            .take(width)
            .map(|place| text.at(place))
            .collect();
        (!first.is_empty()).then(|| JacobiWindow {
            levels: vec![first],
            most,
        })
    }

    /// Returns the number of branches.
    pub fn columns(&self) -> usize {
        self.levels.first().map_or(0, Vec::len)
    }

    /// Replaces guesses by tokens that are known to come next, such as those that a constraint forces.
    pub fn know(&mut self, next: &[u32]) {
        for (number, level) in self.levels.iter_mut().enumerate() {
            let known = next.get(number..).unwrap_or_default();
            level
                .iter_mut()
                .zip(known)
                .for_each(|(guess, &known)| *guess = known);
        }
    }

    /// Returns the tokens of each branch: those after the text down to the last guess of each column.
    pub fn branches(&self) -> impl Iterator<Item = Vec<u32>> + '_ {
        (0..self.columns()).map(|column| {
            let before = self.levels.iter().take(1).flat_map(|first| &first[..column]);
            before.copied().chain(self.column(column)).collect()
        })
    }

    fn column(&self, column: usize) -> impl Iterator<Item = u32> + '_ {
        self.levels.iter().map(move |level| level[column])
    }

    /// Advances by the token that came after each branch, `None` if it is unknown. Returns the phrases
    /// guessed: the tokens of each column and the token that came after them. A column whose token is unknown
    /// keeps its last guess; if all are unknown, nothing moves.
    pub fn advance(&mut self, next: &[Option<u32>]) -> Vec<Vec<u32>> {
        if next.iter().all(Option::is_none) {
            return Vec::new();
        }
        let next = |column: usize| next.get(column).copied().flatten();
        let phrase = |column| Some(self.column(column).chain([next(column)?]).collect());
        let phrases = (0..self.columns()).filter_map(phrase).collect();
        let last = self.levels.last().map_or(&[][..], Vec::as_slice);
        let newest = last.iter().enumerate();
        let newest = newest
            .map(|(column, &guess)| next(column).unwrap_or(guess))
            .collect();
        self.levels.push(newest);
        if self.levels.len() > self.most {
            self.levels.remove(0);
        } else {
            self.levels.iter_mut().for_each(|level| {
                level.remove(0);
            });
        }
        phrases
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn window(columns: usize, length: usize, text: &[u32]) -> JacobiWindow {
        let (prompt, answer) = text.split_at(text.len() / 2);
        JacobiWindow::new(columns, length, Text { prompt, answer }).expect("a text")
    }

    fn branches(window: &JacobiWindow) -> Vec<Vec<u32>> {
        window.branches().collect()
    }

    #[test]
    fn branches_share_the_first_level() {
        let mut window = window(2, 4, &[7, 8]);
        assert_eq!(branches(&window), [&[7][..], &[7, 8], &[7, 8, 7], &[7, 8, 7, 8]]);
        let phrases = window.advance(&[Some(1), Some(2), Some(3), None]);
        assert_eq!(phrases, [[7, 1], [8, 2], [7, 3]]);
        assert_eq!(branches(&window), [&[8, 2][..], &[8, 7, 3], &[8, 7, 8, 8]]);
        window.advance(&[Some(4), Some(5), Some(6)]);
        assert_eq!(branches(&window), [&[7, 3, 5][..], &[7, 8, 8, 6]]);
        assert_eq!(window.advance(&[Some(9), None]), [[7, 3, 5, 9]]);
        assert_eq!(branches(&window), [&[3, 5, 9][..], &[3, 8, 6, 6]]);
        window.know(&[1, 2]);
        assert_eq!(branches(&window), [&[1, 2, 9][..], &[1, 2, 6, 6]]);
        assert_eq!(window.advance(&[None, None]), [] as [Vec<u32>; 0]);
        assert_eq!(branches(&window), [&[1, 2, 9][..], &[1, 2, 6, 6]]);
        assert_eq!(JacobiWindow::new(2, 4, Text::default()), None);
    }

    /// Returns the token that comes after a text, one of 50.
    fn model(factor: u32, text: &[u32]) -> u32 {
        let mix = |state: u32, &token: &u32| state.wrapping_mul(31 * factor).wrapping_add(token + 1) % 8191;
        text.iter().fold(7, mix) % 50
    }

    proptest! {
        #[test]
        fn phrases_are_what_the_model_says_and_right_guesses_stay_right(
            (columns, length) in (1usize..6, 2usize..6),
            mut text in prop::collection::vec(0u32..50, 1..9),
            factor in 1u32..50,
            known in any::<bool>(),
        ) {
            let mut window = window(columns, length, &text);
            for _ in 0..3 * length {
                let mut written = text.clone();
                (0..columns + 2 * length).for_each(|_| written.push(model(factor, &written)));
                if known && window.levels.len() == 1 {
                    window.know(&written[text.len()..]);
                }
                let branches = branches(&window);
                let after = |branch: &Vec<u32>| Some(model(factor, &[&text[..], branch].concat()));
                let next: Vec<Option<u32>> = branches.iter().map(after).collect();
                let phrases = window.advance(&next);
                prop_assert_eq!(phrases.len(), branches.len());
                for (branch, phrase) in branches.iter().zip(phrases) {
                    let all = [&text[..], branch].concat();
                    prop_assert!(!known || written.starts_with(&all));
                    prop_assert_eq!(model(factor, &all), phrase[phrase.len() - 1]);
                    prop_assert!(branch.ends_with(&phrase[..phrase.len() - 1]));
                }
                text.push(model(factor, &text));
            }
            prop_assert_eq!((window.columns(), window.levels.len()), (columns, length - 1));
        }
    }
}
