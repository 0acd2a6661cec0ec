//! Frames directly after a word that some bytes must not follow.
//!
//! A lexer takes the longest match, so a name is not followed by a letter. The frames that may read after
//! the name are wrapped; after their first byte they are themselves again:
//!
//! ```text
//!   (name: ab, ⟨ rest ⟩)   ─ readers ─►   name: ab            any letter
//!                                         Guarded(rest)       what rest reads, but no letter
//! ```
//!
//! So guarded frames are readers of closures only, and no configuration is made of them.

use super::{FrameId, FrameKey, Frames, Guard};
use crate::language::ByteSet;

impl Frames {
    /// Returns the guard after a frame, if the frame is at the end of a word that some bytes must not
    /// follow.
    pub(crate) fn guard(&self, id: FrameId) -> Option<Guard> {
        match self.get(id).key {
            FrameKey::Terminal(terminal, cursor) => self.guards.of(terminal, cursor.state),
            _ => None,
        }
    }

    /// Returns `true` for a guarded frame.
    pub(crate) fn is_guarded(&self, id: FrameId) -> bool {
        matches!(self.get(id).key, FrameKey::Guarded(..))
    }

    /// Returns a frame that reads as it is after a guard: itself if it reads none of the blocked bytes,
    /// `None` if it reads nothing else.
    pub(crate) fn guarded(&self, id: FrameId, guard: Guard) -> Option<FrameId> {
        let (bytes, blocked) = (self.first_bytes(id), self.guards.set(guard));
        match bytes.common(blocked).is_empty() {
            true => Some(id),
            false if bytes.is_within(blocked) && !self.reads_special(id) => None,
            false => Some(self.intern(FrameKey::Guarded(id, guard))),
        }
    }

    /// Returns the bytes that a frame that reads may read next. Near bounds, some of them may lead nowhere.
    pub(crate) fn first_bytes(&self, id: FrameId) -> ByteSet {
        let mut bytes = ByteSet::default();
        match self.get(id).key {
            FrameKey::TerminalStart(index) => {
                let terminal = self.terminal(index);
                terminal.add_bytes(terminal.start(), &mut bytes);
            }
            FrameKey::Terminal(index, cursor) => self.terminal(index).add_bytes(cursor, &mut bytes),
            FrameKey::Key { cursor, .. } => self.key_terminal_of(id).add_bytes(cursor, &mut bytes),
            FrameKey::Validated { cursor, .. } => self.beginnings_of(id).add_bytes(cursor, &mut bytes),
            FrameKey::NextKey(at) => bytes.unite(self.next_key_automaton(at.object_list).bytes(at.node)),
            _ => bytes.unite(self.bytes(id)),
        }
        bytes
    }
}
