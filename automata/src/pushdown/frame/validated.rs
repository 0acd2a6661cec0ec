//! The frames of validated languages, which read with the automaton of the prefixes of words and remember the
//! whole text.
//!
//! Everything that this automaton can read can be completed, so only the end of a word is in question, and
//! the validator decides it from the text since the word began. A frame has a number for its text, which only
//! real steps create; heads identify their text by the position in the path of their walk at which it
//! continues.

use std::sync::Arc;

use super::{FrameId, FrameKey, Frames};
use crate::grammar::Validator;
use crate::language::{Cursor, Terminal};
use crate::pushdown::intern::interner::NIL;

impl Frames {
    /// Returns the automaton of the prefixes of the words of a validated language.
    pub(crate) fn beginnings(&self, validated: u32) -> &Arc<Terminal> {
        self.terminal(self.nfa.validated[validated as usize].terminal)
    }

    pub(crate) fn validator(&self, validated: u32) -> Validator {
        self.nfa.validated[validated as usize].validator
    }

    pub(crate) fn validated_start(&self, validated: u32) -> FrameId {
        self.intern(FrameKey::Validated {
            validated,
            cursor: self.beginnings(validated).start(),
            text: NIL,
        })
    }

    pub(crate) fn is_word(&self, validated: u32, text: u32) -> bool {
        self.validator(validated).accepts(&self.texts.to_vec(text))
    }

    /// Returns the frame of a word that has continued with these bytes.
    pub(crate) fn validated_frame(&self, id: FrameId, cursor: Cursor, written: &[u8]) -> FrameId {
        match self.get(id).key {
            FrameKey::Validated { validated, text, .. } => {
                let text = self.add_text(text, written);
                self.intern(FrameKey::Validated {
                    validated,
                    cursor,
                    text,
                })
            }
            _ => unreachable!("asked only of the frames of validated languages"),
        }
    }

    /// Returns the validator of a frame and the text that it has read.
    pub(crate) fn validated_parts(&self, id: FrameId) -> (u32, Vec<u8>) {
        match self.get(id).key {
            FrameKey::Validated { validated, text, .. } => (validated, self.texts.to_vec(text)),
            _ => unreachable!("asked only of the frames of validated languages"),
        }
    }

    /// Returns `true` if the text of a frame followed by these bytes is a word.
    pub(crate) fn word_ends(&self, id: FrameId, written: &[u8]) -> bool {
        let (validated, mut text) = self.validated_parts(id);
        text.extend_from_slice(written);
        self.validator(validated).accepts(&text)
    }

    /// Returns the automaton of prefixes of the validated language of a frame.
    pub(crate) fn beginnings_of(&self, id: FrameId) -> &Arc<Terminal> {
        match self.get(id).key {
            FrameKey::Validated { validated, .. } => self.beginnings(validated),
            _ => unreachable!("asked only of the frames of validated languages"),
        }
    }
}
