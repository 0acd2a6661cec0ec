//! Which requests the next pass serves: all that are ready, or only those that write one text.
//!
//! A request may have many branches: samples, particles, beams. Where a pass takes longer the more it feeds,
//! a single text beside hundreds of branches would wait for a pass of all of them for each of its tokens. Its
//! client waits for one text and the others' clients for many, so they take *turns*: passes of single texts
//! alone, until these have taken as long as one pass of all, and then that pass, which includes the single
//! texts too.
//!
//! ```text
//!                  turn                     turn
//!   single texts  ▌▌▌▌▌▌▌▌▌▌▌▌▌▌▌▌ ███████ ▌▌▌▌▌▌▌▌▌▌▌▌▌▌▌▌ ███████ …
//!   all others                     ███████                  ███████ …
//! ```
//!
//! So a single text takes twice as long as it does alone, plus at most two passes of all: the one that is in
//! progress when it arrives, and a last one. The others take twice as long as without it. This is the
//! guarantee of a deficit round robin of two classes ([Shreedhar and Varghese
//! 1996](https://doi.org/10.1109/90.502236)) with quanta of seconds. Where a pass of single texts would take
//! more than half as long as one of all, there are no turns, because sitting out would gain little and cost a
//! pass: this is so where most requests are single texts, and on a GPU, where a pass of many rows takes about
//! as long as a pass of one.

use super::pace::Pace;

/// How many times shorter the passes of single texts have to be than those of all.
const WORTH: f64 = 2.0;
/// The least seconds of a pass of all for which there are turns. Beside shorter passes, the work of the loop
/// between passes matters.
const SHORT_PASS: f64 = 2e-3;
/// The most passes of a turn.
const MOST_PASSES: f64 = 64.0;

/// The progress of single texts in their turn.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turns {
    /// The expected seconds of the passes of single texts since the last pass of all.
    taken: f64,
}

impl Turns {
    /// Returns `true` if a pass of all sequences, which would feed `all` tokens, is long enough for turns.
    pub(crate) fn are_worth(all: usize, pace: Pace) -> bool {
        pace.seconds(all).is_some_and(|whole| whole >= SHORT_PASS)
    }

    /// Returns `true` if the next pass is of single texts alone. Such a pass would feed `singles` tokens, and
    /// one of all sequences `all`.
    pub(crate) fn are_single(&mut self, singles: usize, all: usize, pace: Pace) -> bool {
        let seconds = |tokens| pace.seconds(tokens).filter(|_| singles > 0);
        let expected = seconds(singles).zip(seconds(all));
        let worth = expected.filter(|&(own, whole)| own * WORTH <= whole && Self::are_worth(all, pace));
        let Some((own, whole)) = worth.filter(|(_, whole)| self.taken < *whole) else {
            self.taken = 0.0;
            return false;
        };
        // Passes that are expected to take almost no time would never end the turn.
        self.taken += own.max(whole / MOST_PASSES);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Returns the pace of passes that take `fixed` microseconds, and `each` more for each token.
    fn pace(fixed: u64, each: u64) -> Pace {
        let mut pace = Pace::default();
        for tokens in (1..100).cycle().take(500) {
            pace.observe(tokens, Duration::from_micros(fixed + each * tokens as u64));
        }
        pace
    }

    /// Returns the number of passes of each turn of single texts among 500 passes, without the first and the
    /// last turn.
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
        // (1 + 4) ms is the time of 4 passes of 1.2 ms and a part of one more.
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
