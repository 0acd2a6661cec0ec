//! Where a text that is only tried can stand: a place, and what it returns to.

use crate::language::Cursor;
use crate::pushdown::frame::FrameId;

/// A configuration of the stacks, or a local set: its number with the highest bit set.
pub(crate) type Callers = u32;

/// The bit of local sets.
pub(crate) const LOCAL: u32 = 1 << 31;

/// A head of the graph-structured stack while a text is only tried: where it stands and what it returns to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Head {
    pub(crate) at: At,
    pub(crate) callers: Callers,
}

/// The place of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum At {
    Frame(FrameId),
    /// At one node of a rule that only reads bytes, as within fixed text, for which no frame need be made.
    Node {
        rule: u32,
        node: u32,
    },
    Terminal(u32, Cursor),
    /// In a key that stood at the frame when the path had `start` bytes.
    Key {
        frame: FrameId,
        cursor: Cursor,
        start: u32,
    },
    /// In a word that is judged, which stood at the frame when the path had `start` bytes.
    Judged {
        frame: FrameId,
        cursor: Cursor,
        start: u32,
    },
    /// Among the members of a series as far as they begin alike; the frame is that of the beginning.
    Choice {
        frame: FrameId,
        node: u32,
    },
    /// After a member that was written in this way, which the frame of the beginning offered.
    Way {
        frame: FrameId,
        way: u32,
    },
    /// After the item of a key of the frame. What comes there may depend on the whole key, and to know it is
    /// to remember it: heads go on with the progress of a list that is in doubt about the key, as far as that
    /// makes no difference; see [`Lookahead::take_lost`](super::Lookahead::take_lost).
    AfterKey(FrameId),
}
