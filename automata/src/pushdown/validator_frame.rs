//! The frames of judged languages, which read with the automaton of the prefixes of words and remember the
//! whole text.
//!
//! Everything that this automaton can read can be completed, so only the end of a word is in question, and
//! the judge decides it from the text since the word began. A frame has a number for its text, which only
//! real steps create; heads identify their text by the position in the path of their walk at which it
//! continues.

use std::sync::Arc;

use super::frame::{FrameId, FrameKey, Frames};
use crate::grammar::Judge;
use crate::language::{Cursor, Terminal};
use crate::pushdown::intern::interner::NIL;

impl Frames {
    /// Returns the automaton of the prefixes of the words of a judged language.
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

    /// Returns the frame of a word that has continued with these bytes.
    pub(crate) fn judged_frame(&self, id: FrameId, cursor: Cursor, written: &[u8]) -> FrameId {
        match self.get(id).key {
            FrameKey::Judged { judged, text, .. } => {
                let text = self.add_text(text, written);
                self.intern(FrameKey::Judged { judged, cursor, text })
            }
            _ => unreachable!("asked only of the frames of judged languages"),
        }
    }

    /// Returns the judge of a frame and the text that it has read.
    pub(crate) fn judged_parts(&self, id: FrameId) -> (u32, Vec<u8>) {
        match self.get(id).key {
            FrameKey::Judged { judged, text, .. } => (judged, self.texts.to_vec(text)),
            _ => unreachable!("asked only of the frames of judged languages"),
        }
    }

    /// Returns `true` if the text of a frame followed by these bytes is a word.
    pub(crate) fn word_ends(&self, id: FrameId, written: &[u8]) -> bool {
        let (judged, mut text) = self.judged_parts(id);
        text.extend_from_slice(written);
        self.judge(judged).accepts(&text)
    }

    /// Returns the automaton of prefixes of the judged language of a frame.
    pub(crate) fn beginnings_of(&self, id: FrameId) -> &Arc<Terminal> {
        match self.get(id).key {
            FrameKey::Judged { judged, .. } => self.beginnings(judged),
            _ => unreachable!("asked only of the frames of judged languages"),
        }
    }
}
