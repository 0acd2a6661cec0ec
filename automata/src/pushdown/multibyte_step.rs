//! Stretches of text that are read without a configuration after each byte.
//!
//! A token has several bytes, and what may come between them nobody asks. As long as all frames that read
//! stay within themselves, each is a place that moves on by the byte, and only the last ones are made into
//! frames and a configuration:
//!
//! ```text
//!   {│                  one configuration
//!     "na               places in the choice of members and in the language of other keys
//!        me│            one configuration
//! ```
//!
//! Whatever may call, end or go on with its callers ends a stretch, and so do two that come to the same
//! place.

use smallvec::SmallVec;

use super::frame::{FrameId, FrameKey, Frames};
use super::lookahead::At;
use super::stack::{ConfigId, Stacks};

/// More frames than this are read byte by byte.
const FEW_FRAMES: usize = 4;

impl Stacks {
    /// The configuration after these bytes, or `None` if no text goes on with them.
    pub(crate) fn step_bytes(&self, config: ConfigId, bytes: &[u8]) -> Option<ConfigId> {
        let (mut at, mut left) = (config, bytes);
        while let Some((&byte, behind)) = left.split_first() {
            let stretch = match behind {
                [] => None,
                _ if self.is_known(at, byte) => None,
                _ => self.stretch(at, left),
            };
            (at, left) = match stretch {
                Some((next, read)) => (next, &left[read..]),
                None => (self.step(at, byte)?, behind),
            };
        }
        Some(at)
    }

    /// The configuration after as many of these bytes as one stretch has, and how many that are; `None` where
    /// they have to be read byte by byte.
    fn stretch(&self, config: ConfigId, bytes: &[u8]) -> Option<(ConfigId, usize)> {
        let readers = &self.closure(config).readers;
        if readers.len() > FEW_FRAMES {
            return None;
        }
        let frames = &self.frames;
        let begun = readers
            .iter()
            .map(|&(frame, callers)| (frames.place(frame, 0), callers));
        let begun: SmallVec<[(At, ConfigId); FEW_FRAMES]> = begun.collect();
        let mut places = begun.clone();
        let mut read = 0;
        loop {
            read += 1;
            let written = &bytes[..read];
            places.retain(|(place, _)| match frames.read_at(*place, written) {
                Some(next) => {
                    *place = next;
                    true
                }
                None => false,
            });
            // Who comes back to where it was is the same configuration again, which is remembered for the
            // byte.
            let goes_on = read < bytes.len() && places != begun && self.are_apart(&places);
            if !goes_on {
                break;
            }
        }
        let written = &bytes[..read];
        let next = places
            .iter()
            .map(|&(place, callers)| (frames.frame_of(place, written), callers));
        let next = self.settle(next)?;
        if read == 1 {
            self.remember(config, bytes[0], next);
        }
        Some((next, read))
    }

    /// Whether there are places, all different, that can do nothing but read.
    fn are_apart(&self, places: &[(At, ConfigId)]) -> bool {
        let mut all = places.iter().enumerate();
        let is_new = |at: usize, place| places[..at].iter().all(|(other, _)| other != place);
        !places.is_empty()
            && all.all(|(at, (place, _))| self.frames.only_reads_at(*place) && is_new(at, place))
    }
}

impl Frames {
    /// Whether who has come there reads and can do nothing else.
    fn only_reads_at(&self, place: At) -> bool {
        match place {
            At::Node { .. } => true,
            At::Terminal(index, cursor) => !self.terminal(index).is_accepting(cursor),
            At::Choice { frame, node } => self.only_chooses(&self.choosing(frame, node)),
            At::Key { frame, cursor, .. } => {
                let (series, rest, ..) = self.key_parts(frame);
                !self.key_terminal(series, rest).is_accepting(cursor)
            }
            At::Frame(frame) => self.get(frame).is_plain(),
            // Whether a judged word ends depends on all of its bytes. Nothing is read at the others.
            At::Judged { .. } | At::Way { .. } | At::AfterKey(_) => false,
        }
    }

    /// The frame at a place that the bytes of a stretch lead to.
    fn frame_of(&self, place: At, written: &[u8]) -> FrameId {
        match place {
            At::Node { rule, node } => self.frame_at(rule, node),
            At::Terminal(index, cursor) => self.intern(FrameKey::Terminal(index, cursor)),
            At::Choice { frame, node } => self.intern(FrameKey::Choice(self.choosing(frame, node))),
            At::Key { frame, cursor, .. } => self.key_frame(frame, cursor, written),
            At::Judged { frame, cursor, .. } => self.judged_frame(frame, cursor, written),
            At::Frame(frame) => frame,
            At::Way { .. } | At::AfterKey(_) => unreachable!("nothing is read there"),
        }
    }
}
