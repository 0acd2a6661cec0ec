//! Whose pass the next one is: that of all who are ready, or of those alone whose requests write one text.
//!
//! A request may have many branches: samples, particles, beams. Where a pass takes the longer the more is
//! fed, one text beside hundreds of branches would have each of its tokens after a pass of all of them. Its
//! client waits for one text and theirs for many, so they have *turns*: passes of single texts alone, until
//! these have taken as long as one pass of all, and then that one, in which single texts have their part too.
//!
//! ```text
//!                  turn                     turn
//!   single texts  ▌▌▌▌▌▌▌▌▌▌▌▌▌▌▌▌ ███████ ▌▌▌▌▌▌▌▌▌▌▌▌▌▌▌▌ ███████ …
//!   all others                     ███████                  ███████ …
//! ```
//!
//! So a single text takes twice as long as it does alone, and two passes of all in addition at most: the one
//! that is under way when it comes, and a last one. The others take twice as long as without it. This is the
//! guarantee of a deficit round robin of two classes ([Shreedhar and Varghese
//! 1996](https://doi.org/10.1109/90.502236)) with quanta of seconds. Where a pass of single texts would take
//! more than half as long as one of all, nobody has turns, because to sit out would gain little and cost a
//! pass: where most are single texts, and on a card, where a pass of many rows takes about as long as one of
//! one.

use super::pace::Pace;

/// How much shorter the passes of single texts have to be than those of all.
const WORTH: f64 = 2.0;
/// Seconds that a pass of all takes at least where there are turns. Beside shorter ones, what the loop does
/// between passes counts.
const SHORT_PASS: f64 = 2e-3;
/// Passes of a turn at most.
const MOST_PASSES: f64 = 64.0;

/// How far single texts have got in their turn.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turns {
    /// Seconds of passes of single texts since the last one of all, by what passes are expected to take.
    taken: f64,
}

impl Turns {
    /// Whether a pass of all is long enough for turns, if it would feed so many tokens.
    pub(crate) fn are_worth(all: usize, pace: Pace) -> bool {
        pace.seconds(all).is_some_and(|whole| whole >= SHORT_PASS)
    }

    /// Whether the next pass is of single texts alone, which would feed so many tokens of the tokens that all
    /// would feed.
    pub(crate) fn are_single(&mut self, singles: usize, all: usize, pace: Pace) -> bool {
        let seconds = |tokens| pace.seconds(tokens).filter(|_| singles > 0);
        let expected = seconds(singles).zip(seconds(all));
        let worth = expected.filter(|&(own, whole)| own * WORTH <= whole && Self::are_worth(all, pace));
        let Some((own, whole)) = worth.filter(|(_, whole)| self.taken < *whole) else {
            self.taken = 0.0;
            return false;
        };
        // Passes that are expected to take next to nothing would never end it.
        self.taken += own.max(whole / MOST_PASSES);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// What passes take, in microseconds: so many, and so many more for each token.
    fn pace(fixed: u64, each: u64) -> Pace {
        let mut pace = Pace::default();
        for tokens in (1..100).cycle().take(500) {
            pace.observe(tokens, Duration::from_micros(fixed + each * tokens as u64));
        }
        pace
    }

    /// The passes of each turn of single texts among so many passes, the first and the last one left out.
    fn turns(singles: usize, all: usize, pace: Pace) -> Vec<usize> {
        let mut turns = Turns::default();
        let passes: Vec<bool> = (0..500).map(|_| turns.are_single(singles, all, pace)).collect();
        let lengths: Vec<usize> = passes.split(|is_single| !is_single).map(<[bool]>::len).collect();
        lengths[1..lengths.len() - 1].to_vec()
    }

    #[test]
    fn single_texts_have_half_of_the_time() {
        let lengths = turns(1, 64, pace(0, 100));
        assert!(
            !lengths.is_empty() && lengths.iter().all(|&passes| (60..=64).contains(&passes)),
            "{lengths:?}"
        );
        let lengths = turns(2, 40, pace(1_000, 100));
        // (1 + 4) ms are those of 4 passes of 1.2 ms and a part of one more.
        assert!(
            !lengths.is_empty() && lengths.iter().all(|&passes| passes == 5),
            "{lengths:?}"
        );
    }

    #[test]
    fn a_turn_ends_whatever_passes_take() {
        let lengths = turns(1, 100_000, pace(0, 100));
        assert!(lengths.iter().all(|&passes| passes <= 64), "{lengths:?}");
    }

    #[test]
    fn nobody_sits_out_where_that_gains_little() {
        let none = |singles, all, pace| {
            let lengths = turns(singles, all, pace);
            assert!(lengths.iter().all(|&passes| passes == 0), "{lengths:?}");
        };
        none(1, 64, pace(10_000, 1));
        none(40, 64, pace(0, 100));
        none(64, 64, pace(0, 100));
        none(0, 64, pace(0, 100));
        none(1, 64, pace(0, 10));
        none(1, 64, Pace::default());
    }
}
