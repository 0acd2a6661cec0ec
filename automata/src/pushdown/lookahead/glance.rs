//! The properties of a reader that are known without reading further.

use super::Lookahead;
use super::head::{At, Head};
use crate::language::ByteSet;
use crate::language::{Cursor, Terminal};
use crate::pushdown::frame::FrameId;

impl<'a> Lookahead<'a> {
    /// Adds the bytes that a reader may read, and to `sure` those that it reads whatever was written before.
    /// For keys and counted languages, the other bytes may lead nowhere.
    pub(crate) fn add_bytes(&self, reader: &Head, bytes: &mut ByteSet, sure: &mut ByteSet) {
        let frames = &self.stacks.frames;
        match reader.at {
            At::Frame(frame) => {
                let own = frames.bytes(frame);
                bytes.unite(own);
                if !frames.is_guarded(frame) {
                    sure.unite(own);
                }
            }
            At::Node { node, .. } => {
                for (first, last) in frames.ranges(node) {
                    bytes.insert_range(first, last);
                    sure.insert_range(first, last);
                }
            }
            At::Terminal(index, cursor) => {
                let terminal = frames.terminal(index);
                let [all, _] = terminal.bytes_of(cursor.state);
                bytes.unite(all);
                if !terminal.is_counted() {
                    sure.unite(all);
                }
            }
            At::Key { frame, cursor, .. } => {
                let terminal = frames.key_terminal_of(frame);
                let [all, endless] = terminal.bytes_of(cursor.state);
                bytes.unite(all);
                if !terminal.is_counted() {
                    sure.unite(endless);
                }
            }
            At::Validated { frame, cursor, .. } => frames.beginnings_of(frame).add_bytes(cursor, bytes),
            At::NextKey { frame, node } => {
                let at = frames.next_key_state(frame, node);
                bytes.unite(frames.next_key_automaton(at.object_list).bytes(node));
            }
            At::Way { .. } | At::AfterKey(_) => {}
        }
    }

    /// Returns the terminal that a reader is in, unless it is a key.
    pub(crate) fn terminal(&self, reader: &Head) -> Option<(&'a Terminal, Cursor)> {
        match reader.at {
            At::Terminal(index, cursor) => Some((self.stacks.frames.terminal(index), cursor)),
            _ => None,
        }
    }

    /// Returns the terminal that a reader is in, if the reader may stay as long as bytes lead back to the
    /// state: within `horizon` more bytes no bound can be reached, and if it is in a key, infinitely many
    /// keys continue.
    pub(crate) fn home(&self, reader: &Head, horizon: u64) -> Option<(&'a Terminal, u32)> {
        let frames = &self.stacks.frames;
        let (terminal, cursor) = match reader.at {
            At::Terminal(index, cursor) => (frames.terminal(index), cursor),
            At::Key { frame, cursor, .. } => {
                let terminal = frames.key_terminal_of(frame);
                (terminal.is_infinite(cursor)).then_some((terminal, cursor))?
            }
            _ => return None,
        };
        terminal
            .is_plain(cursor, horizon)
            .then_some((terminal, cursor.state))
    }

    /// Returns the key that a reader is in, if infinitely many keys continue from its position.
    pub(crate) fn key(&self, reader: &Head) -> Option<KeyReader<'a>> {
        let At::Key { frame, cursor, start } = reader.at else {
            return None;
        };
        let terminal = self.stacks.frames.key_terminal_of(frame);
        terminal.is_infinite(cursor).then_some(KeyReader {
            terminal,
            cursor,
            frame,
            start: start as usize,
        })
    }

    /// Returns the texts of at most `longest` bytes that complete a key in progress, after `written`, to one
    /// that may not be written; `None` if not all of them are known.
    pub(crate) fn unwritable_after(
        &self,
        key: &KeyReader<'_>,
        written: &[u8],
        longest: usize,
    ) -> Option<Vec<Vec<u8>>> {
        self.stacks.frames.unwritable_after(key.frame, written, longest)
    }
}

/// A reader in a key.
pub(crate) struct KeyReader<'a> {
    pub(crate) terminal: &'a Terminal,
    pub(crate) cursor: Cursor,
    frame: FrameId,
    /// The length of the path at which the key was at the frame.
    pub(crate) start: usize,
}
