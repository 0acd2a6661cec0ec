//! Reads stretches of text without a configuration after each byte.
//!
//! A token has several bytes, and the configurations between them are not needed. As long as all frames that
//! read stay within themselves, each is a place that moves from byte to byte, and only the last places are
//! turned into frames and a configuration:
//!
//! ```text
//!   {│                  one configuration
//!     "na               places among the properties and in the language of other keys
//!        me│            one configuration
//! ```
//!
//! A stretch ends at a place that may call, end or continue with its callers, and where two readers reach the
//! same place.

use smallvec::SmallVec;

use super::frame::{FrameId, FrameKey, Frames};
use super::lookahead::At;
use super::stack::{ConfigId, Stacks};
use crate::work::spend;

/// The maximum number of readers in a stretch; more are read byte by byte.
const FEW_FRAMES: usize = 4;

impl Stacks {
    /// Returns the configuration after these bytes, or `None` if no text continues with them.
    pub(crate) fn step_bytes(&self, config: ConfigId, bytes: &[u8]) -> Option<ConfigId> {
        let (mut at, mut left) = (config, bytes);
        while let Some((&byte, after)) = left.split_first() {
            let stretch = match after {
                [] => None,
                _ if self.is_known(at, byte) => None,
                _ => self.stretch(at, left),
            };
            (at, left) = match stretch {
                Some((next, read)) => (next, &left[read..]),
                None => (self.step(at, byte)?, after),
            };
        }
        Some(at)
    }

    /// Returns the configuration after the bytes of one stretch, and the number of these bytes; `None` if
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
            spend(1);
            read += 1;
            let written = &bytes[..read];
            places.retain(|(place, _)| match frames.read_at(*place, written) {
                Some(next) => {
                    *place = next;
                    true
                }
                None => false,
            });
            // If the readers return to where they were, the configuration is the same again, which is cached
            // for the byte.
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

    /// Returns `true` if there are places, all different, that can do nothing but read.
    fn are_apart(&self, places: &[(At, ConfigId)]) -> bool {
        let mut all = places.iter().enumerate();
        let is_new = |at: usize, place| places[..at].iter().all(|(other, _)| other != place);
        !places.is_empty()
            && all.all(|(at, (place, _))| self.frames.only_reads_at(*place) && is_new(at, place))
    }
}

impl Frames {
    /// Returns `true` if a reader at this place reads and can do nothing else.
    fn only_reads_at(&self, place: At) -> bool {
        match place {
            At::Node { .. } => true,
            At::Terminal(index, cursor) => !self.terminal(index).is_accepting(cursor),
            At::NextKey { frame, node } => self.only_reads_next_key(&self.next_key_state(frame, node)),
            At::Key { frame, cursor, .. } => {
                let (object_list, additional, ..) = self.key_parts(frame);
                !self.key_terminal(object_list, additional).is_accepting(cursor)
            }
            At::Frame(frame) => self.get(frame).is_plain(),
            // Whether a validated word ends depends on all of its bytes. At the other places nothing is read.
            At::Validated { .. } | At::Way { .. } | At::AfterKey(_) => false,
        }
    }

    /// Returns the frame at a place that the bytes of a stretch lead to.
    fn frame_of(&self, place: At, written: &[u8]) -> FrameId {
        match place {
            At::Node { rule, node } => self.frame_at(rule, node),
            At::Terminal(index, cursor) => self.intern(FrameKey::Terminal(index, cursor)),
            At::NextKey { frame, node } => self.intern(FrameKey::NextKey(self.next_key_state(frame, node))),
            At::Key { frame, cursor, .. } => self.key_frame(frame, cursor, written),
            At::Validated { frame, cursor, .. } => self.validated_frame(frame, cursor, written),
            At::Frame(frame) => frame,
            At::Way { .. } | At::AfterKey(_) => unreachable!("nothing is read there"),
        }
    }
}
