//! Heads, the positions of a text that is only tried: a place, and the callers that it returns to.

use crate::language::Cursor;
use crate::pushdown::frame::FrameId;

/// The callers of a head: a configuration of the stacks, or a local set, whose number has the highest bit
/// set.
pub(crate) type Callers = u32;

/// The bit that marks local sets.
pub(crate) const LOCAL: u32 = 1 << 31;

/// A head of the graph-structured stack of a text that is only tried: its place and its callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Head {
    pub(crate) at: At,
    pub(crate) callers: Callers,
}

/// The place of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum At {
    Frame(FrameId),
    /// At one node of a rule that only reads bytes, as within fixed text, which needs no frame.
    Node {
        rule: u32,
        node: u32,
    },
    Terminal(u32, Cursor),
    /// In a key that was at the frame when the path had `start` bytes.
    Key {
        frame: FrameId,
        cursor: Cursor,
        start: u32,
    },
    /// In a validated word that was at the frame when the path had `start` bytes.
    Validated {
        frame: FrameId,
        cursor: Cursor,
        start: u32,
    },
    /// Among the properties of an object list that begin with the same text; `frame` is where the key began.
    NextKey {
        frame: FrameId,
        node: u32,
    },
    /// After a property that was written in this way, one of those that `frame` offered.
    Way {
        frame: FrameId,
        way: u32,
    },
    /// After the item of a key of the frame. The continuation may depend on the whole key, which only
    /// remembering it would tell: heads continue with the progress of a list that is in doubt about the key,
    /// as long as that makes no difference; see [`Lookahead::take_lost`](super::Lookahead::take_lost).
    AfterKey(FrameId),
}
