//! Where a thread stands, named so that nothing need be interned to read on.

use super::{At, Thread, Threads};
use crate::machine::frame::{FrameId, FrameKey};
use crate::machine::nfa::Callee;

impl Threads<'_> {
    /// A frame that reads, as a place that needs no interning to read on.
    pub(super) fn place(&self, frame: FrameId, written: usize) -> At {
        let frames = &self.stacks.frames;
        match frames.get(frame).key {
            FrameKey::TerminalStart(index) => At::Terminal(index, frames.terminal(index).start()),
            FrameKey::Terminal(index, cursor) => At::Terminal(index, cursor),
            FrameKey::Choice(at) => At::Choice { frame, node: at.node },
            FrameKey::Key { cursor, .. } => At::Key {
                frame,
                cursor,
                start: written as u32,
            },
            FrameKey::Judged { cursor, .. } => At::Judged {
                frame,
                cursor,
                start: written as u32,
            },
            _ => self.place_in_rule(frame),
        }
    }

    /// The frame of a rule as a node, where it is at one that only reads.
    pub(super) fn place_in_rule(&self, frame: FrameId) -> At {
        let frames = &self.stacks.frames;
        match &frames.get(frame).key {
            FrameKey::Rule { rule, nodes } => match nodes[..] {
                [node] if frames.is_plain(*rule, node) => At::Node { rule: *rule, node },
                _ => At::Frame(frame),
            },
            _ => At::Frame(frame),
        }
    }

    /// In a rule of which another reader has read the beginning, or nothing yet.
    pub(super) fn standing(&self, rule: u32, node: u32) -> At {
        let frames = &self.stacks.frames;
        match frames.begins(rule, node) {
            true => At::Frame(frames.start(Callee::Rule(rule))),
            false => self.place_at(rule, node),
        }
    }

    /// Within a rule, at one of its nodes.
    pub(super) fn place_at(&self, rule: u32, node: u32) -> At {
        let frames = &self.stacks.frames;
        match frames.is_plain(rule, node) {
            true => At::Node { rule, node },
            false => At::Frame(frames.frame_at(rule, node)),
        }
    }

    /// The place behind a byte from a node that only reads.
    pub(super) fn read_node(&self, rule: u32, node: u32, byte: u8) -> Option<At> {
        let frames = &self.stacks.frames;
        let mut behind = frames.behind(node, byte);
        let first = behind.next()?;
        match behind.next() {
            None => Some(self.place_at(rule, first)),
            Some(second) => {
                let nodes = [first, second].into_iter().chain(behind).collect::<Vec<u32>>();
                Some(self.place_in_rule(frames.rule_frame(rule, &nodes)))
            }
        }
    }

    /// The thread behind a byte of one that is in fixed text and stays there; `None` for all others.
    #[inline]
    pub(crate) fn read_on(&self, reader: &Thread, byte: u8) -> Option<Thread> {
        let At::Node { rule, node } = reader.at else {
            return None;
        };
        let frames = &self.stacks.frames;
        let mut behind = frames.behind(node, byte);
        let (node, None) = (behind.next()?, behind.next()) else {
            return None;
        };
        let at = At::Node { rule, node };
        frames.is_plain(rule, node).then_some(Thread { at, ..*reader })
    }
}
