//! Why a mask is what it is, for people.

use super::{Grammar, State};
use crate::pushdown::{FINISHED, Way};

/// What may come next in a state, and why.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Explanation {
    /// Whether the text may end here.
    pub may_end: bool,
    /// The bytes that every completion goes on with.
    pub forced: Vec<u8>,
    /// The ways to go on that are shown.
    pub ways: Vec<Way>,
    /// How many readings of the text there are; each goes on in a way of its own. The work of a mask grows
    /// with this.
    pub readings: usize,
}

impl Grammar {
    /// What may come next and where in the source it stands: at most `most` ways.
    ///
    /// A way names what is expected, such as a fixed text or a word of a regular language, the bytes that it
    /// may begin with, and the rules that are being read. Where to find them would cost more than
    /// [`Limits::mask_work`](crate::limits::Limits::mask_work) there are none. O(ways shown · depth of the
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
