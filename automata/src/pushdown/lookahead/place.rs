//! Converts frames to places, which can read on without interning anything. Multi-byte steps
//! (`multibyte_step`) use them too.

use super::Lookahead;
use super::head::{At, Head};
use crate::pushdown::frame::{FrameId, FrameKey, Frames};
use crate::pushdown::plan::nfa::Callee;

impl Frames {
    /// Returns a frame that reads as a place that can read on without interning.
    pub(crate) fn place(&self, frame: FrameId, written: usize) -> At {
        match self.get(frame).key {
            FrameKey::TerminalStart(index) => At::Terminal(index, self.terminal(index).start()),
            FrameKey::Terminal(index, cursor) => At::Terminal(index, cursor),
            FrameKey::NextKey(at) => At::NextKey { frame, node: at.node },
            FrameKey::Key { cursor, .. } => At::Key {
                frame,
                cursor,
                start: written as u32,
            },
            FrameKey::Validated { cursor, .. } => At::Validated {
                frame,
                cursor,
                start: written as u32,
            },
            _ => self.place_in_rule(frame),
        }
    }

    /// Returns the frame of a rule as a node, if it is at a node that only reads.
    pub(crate) fn place_in_rule(&self, frame: FrameId) -> At {
        match &self.get(frame).key {
            FrameKey::Rule { rule, nodes } => match nodes[..] {
                [node] if self.is_plain(*rule, node) => At::Node { rule: *rule, node },
                _ => At::Frame(frame),
            },
            // A guarded frame has read its first byte.
            FrameKey::Terminal(index, cursor) => At::Terminal(*index, *cursor),
            _ => At::Frame(frame),
        }
    }

    /// Returns the frame of a reader that has read nothing since it was a frame; see [`place`](Self::place).
    pub(crate) fn frame_of_reader(&self, at: At) -> FrameId {
        match at {
            At::Node { rule, node } => self.frame_at(rule, node),
            At::Terminal(index, cursor) if cursor == self.terminal(index).start() => {
                self.intern(FrameKey::TerminalStart(index))
            }
            At::Terminal(index, cursor) => self.intern(FrameKey::Terminal(index, cursor)),
            At::NextKey { frame, node } => self.intern(FrameKey::NextKey(self.next_key_state(frame, node))),
            At::Frame(frame) | At::Key { frame, .. } | At::Validated { frame, .. } => frame,
            At::Way { frame, .. } | At::AfterKey(frame) => frame,
        }
    }

    /// Returns the place in a rule of which another reader has read the beginning, or nothing yet.
    pub(crate) fn place_along(&self, rule: u32, node: u32) -> At {
        match self.begins(rule, node) {
            true => At::Frame(self.start(Callee::Rule(rule))),
            false => self.place_at(rule, node),
        }
    }

    /// Returns the place within a rule at one of its nodes.
    fn place_at(&self, rule: u32, node: u32) -> At {
        match self.is_plain(rule, node) {
            true => At::Node { rule, node },
            false => At::Frame(self.frame_at(rule, node)),
        }
    }

    /// Returns the place after a byte from a node that only reads.
    fn read_node(&self, rule: u32, node: u32, byte: u8) -> Option<At> {
        let mut after = self.after(node, byte);
        let first = after.next()?;
        match after.next() {
            None => Some(self.place_at(rule, first)),
            Some(second) => {
                let nodes = [first, second].into_iter().chain(after).collect::<Vec<u32>>();
                Some(self.place_in_rule(self.rule_frame(rule, &nodes)))
            }
        }
    }

    /// Returns the place after the last byte of a path, or `None` if no text continues with it.
    pub(crate) fn read_at(&self, at: At, path: &[u8]) -> Option<At> {
        let byte = *path.last()?;
        match at {
            At::Frame(frame) => Some(self.place_in_rule(self.read(frame, byte)?)),
            At::Node { rule, node } => self.read_node(rule, node, byte),
            At::Terminal(index, cursor) => {
                Some(At::Terminal(index, self.terminal(index).next(cursor, byte)?))
            }
            At::Key { frame, cursor, start } => {
                let cursor = self.read_key(frame, cursor, &path[start as usize..])?;
                Some(At::Key { frame, cursor, start })
            }
            At::Validated { frame, cursor, start } => {
                let cursor = self.beginnings_of(frame).next(cursor, byte)?;
                Some(At::Validated { frame, cursor, start })
            }
            At::NextKey { frame, node } => {
                let node = self.read_next_key(&self.next_key_state(frame, node), byte)?.node;
                Some(At::NextKey { frame, node })
            }
            At::Way { .. } | At::AfterKey(_) => None,
        }
    }
}

impl Lookahead<'_> {
    /// Returns the head after a byte if the reader is in fixed text and stays there; `None` for all others.
    #[inline]
    pub(crate) fn read_on(&self, reader: &Head, byte: u8) -> Option<Head> {
        let At::Node { rule, node } = reader.at else {
            return None;
        };
        let frames = &self.stacks.frames;
        let mut after = frames.after(node, byte);
        let (node, None) = (after.next()?, after.next()) else {
            return None;
        };
        let at = At::Node { rule, node };
        frames.is_plain(rule, node).then_some(Head { at, ..*reader })
    }
}
