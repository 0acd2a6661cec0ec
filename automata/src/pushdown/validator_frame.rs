//! How the frames of judged languages go on: by the automaton of how words begin, and their whole text.
//!
//! Whatever that automaton can read can be completed, so that nothing but the end of a word is a question,
//! and the judge answers it by the text since the word began. A frame has a number for its text, which only
//! real steps make; heads know it by where in the path of their walk it goes on.

use std::sync::Arc;

use super::frame::{FrameId, FrameKey, Frames};
use crate::grammar::Judge;
use crate::language::{Cursor, Terminal};
use crate::pushdown::intern::interner::NIL;

impl Frames {
    /// How the words of a judged language begin.
    pub(crate) fn beginnings(&self, judged: u32) -> &Arc<Terminal> {
        self.terminal(self.nfa.judged[judged as usize].terminal)
    }

    pub(crate) fn judge(&self, judged: u32) -> Judge {
        self.nfa.judged[judged as usize].judge
    }

    pub(crate) fn judged_start(&self, judged: u32) -> FrameId {
        self.intern(FrameKey::Judged {
            judged,
            cursor: self.beginnings(judged).start(),
            text: NIL,
        })
    }

    pub(crate) fn is_word(&self, judged: u32, text: u32) -> bool {
        self.judge(judged).accepts(&self.texts.to_vec(text))
    }

    /// The frame of a word that has gone on with these bytes.
    pub(crate) fn judged_frame(&self, id: FrameId, cursor: Cursor, written: &[u8]) -> FrameId {
        match self.get(id).key {
            FrameKey::Judged { judged, text, .. } => {
                let text = self.add_text(text, written);
                self.intern(FrameKey::Judged { judged, cursor, text })
            }
            _ => unreachable!("asked only of the frames of judged languages"),
        }
    }

    /// The judge of a frame and the text that it has read.
    pub(crate) fn judged_parts(&self, id: FrameId) -> (u32, Vec<u8>) {
        match self.get(id).key {
            FrameKey::Judged { judged, text, .. } => (judged, self.texts.to_vec(text)),
            _ => unreachable!("asked only of the frames of judged languages"),
        }
    }

    /// Whether the text of a frame with these bytes after it is a word.
    pub(crate) fn word_ends(&self, id: FrameId, written: &[u8]) -> bool {
        let (judged, mut text) = self.judged_parts(id);
        text.extend_from_slice(written);
        self.judge(judged).accepts(&text)
    }

    /// The same automaton by the frame.
    pub(crate) fn beginnings_of(&self, id: FrameId) -> &Arc<Terminal> {
        match self.get(id).key {
            FrameKey::Judged { judged, .. } => self.beginnings(judged),
            _ => unreachable!("asked only of the frames of judged languages"),
        }
    }
}
