//! Explains a state to people: what may come next, and why.

use super::{Grammar, State};
use crate::pushdown::{FINISHED, Way};

/// The ways in which a text may continue, and the rules that allow them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Explanation {
    /// `true` if the text may end here.
    pub may_end: bool,
    /// The bytes with which every completion begins.
    pub forced: Vec<u8>,
    /// The ways to continue, up to the number asked for.
    pub ways: Vec<Way>,
    /// The number of parses of the text so far; each continues in a way of its own. The work of a mask grows
    /// with this number.
    pub readings: usize,
}

impl Grammar {
    /// Explains what may come next, and which rules allow it, with at most `most` ways.
    ///
    /// Each way names the expected item, such as a fixed text or a word of a regular language, the bytes that
    /// it may begin with, and the rules that are being read. If finding the ways would cost more than
    /// [`Limits::mask_work`](crate::limits::Limits::mask_work), there are none. O(ways shown · depth of the
    /// state).
    pub fn explain(&self, state: State, most: usize) -> Explanation {
        if state.0 == FINISHED {
            return Explanation {
                may_end: false,
                forced: Vec::new(),
                ways: Vec::new(),
                readings: 0,
            };
        }
        let described = self.ask(|| self.inner.machine.stacks().describe(state.0, most));
        let (ways, readings) = described.unwrap_or_default();
        Explanation {
            may_end: self.is_accepting(state),
            forced: self.forced(state),
            ways,
            readings,
        }
    }
}
