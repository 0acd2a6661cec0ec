//! Stretches of text that are read without a configuration behind each byte.
//!
//! A token has several bytes, and what may come between them nobody asks. As long as all frames that read stay within
//! themselves, each is a place that moves on by the byte, and only the last ones are made into frames and a configuration:
//!
//! ```text
//!   {│                  one configuration
//!     "na               places in the choice of members and in the language of other keys
//!        me│            one configuration
//! ```
//!
//! Whatever may call, end or go on with its callers ends a stretch, and so do two that come to the same place.

use smallvec::SmallVec;

use super::choice::Choosing;
use super::frame::{FrameId, FrameKey, Frames};
use super::stack::{ConfigId, Stacks};
use super::terminal::Cursor;

/// More frames than this are read byte by byte.
const FEW: usize = 4;

/// Where a frame that reads has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// At a node of a rule that reads and does nothing else.
    Node {
        rule: u32,
        node: u32,
    },
    Terminal(u32, Cursor),
    Choice(Choosing),
    /// In a key, which stood at the frame when the stretch began.
    Key(FrameId, Cursor),
    /// All others.
    Frame(FrameId),
}

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

    /// The configuration after as many of these bytes as one stretch has, and how many that are; `None` where they have to
    /// be read byte by byte.
    fn stretch(&self, config: ConfigId, bytes: &[u8]) -> Option<(ConfigId, usize)> {
        let readers = &self.fringe(config).readers;
        if readers.len() > FEW {
            return None;
        }
        let frames = &self.frames;
        let begun = readers
            .iter()
            .map(|&(frame, callers)| (frames.place(frame), callers));
        let begun: SmallVec<[(Place, ConfigId); FEW]> = begun.collect();
        let mut places = begun.clone();
        let mut read = 0;
        loop {
            read += 1;
            let written = &bytes[..read];
            places.retain(|(place, _)| match frames.read_place(*place, written) {
                Some(next) => {
                    *place = next;
                    true
                }
                None => false,
            });
            // Who comes back to where it was is the same configuration again, which is remembered for the byte.
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
    fn are_apart(&self, places: &[(Place, ConfigId)]) -> bool {
        let mut all = places.iter().enumerate();
        let is_new = |at: usize, place| places[..at].iter().all(|(other, _)| other != place);
        !places.is_empty()
            && all.all(|(at, (place, _))| self.frames.only_reads_at(place) && is_new(at, place))
    }
}

impl Frames {
    /// Where the frame stands.
    fn place(&self, frame: FrameId) -> Place {
        match &self.get(frame).key {
            FrameKey::TerminalStart(index) => Place::Terminal(*index, self.terminal(*index).start()),
            FrameKey::Terminal(index, cursor) => Place::Terminal(*index, *cursor),
            FrameKey::Choice(at) => Place::Choice(*at),
            FrameKey::Key { cursor, .. } => Place::Key(frame, *cursor),
            FrameKey::Rule { rule, nodes } => match nodes[..] {
                [node] if self.is_plain(*rule, node) => Place::Node { rule: *rule, node },
                _ => Place::Frame(frame),
            },
            _ => Place::Frame(frame),
        }
    }

    /// The place behind the last of the bytes of a stretch, or `None` if no text goes on so.
    fn read_place(&self, place: Place, written: &[u8]) -> Option<Place> {
        let &byte = written.last()?;
        match place {
            Place::Node { rule, node } => {
                let mut behind = self.behind(node, byte);
                let first = behind.next()?;
                match behind.next() {
                    None if self.is_plain(rule, first) => Some(Place::Node { rule, node: first }),
                    None => Some(Place::Frame(self.frame_at(rule, first))),
                    Some(second) => {
                        let nodes: SmallVec<[u32; 4]> = [first, second].into_iter().chain(behind).collect();
                        Some(self.place(self.rule_frame(rule, &nodes)))
                    }
                }
            }
            Place::Terminal(index, cursor) => {
                let cursor = self.terminal(index).next(cursor, byte)?;
                Some(Place::Terminal(index, cursor))
            }
            Place::Choice(at) => self.choose(&at, byte).map(Place::Choice),
            Place::Key(frame, cursor) => {
                let cursor = self.read_key(frame, cursor, written)?;
                Some(Place::Key(frame, cursor))
            }
            Place::Frame(frame) => Some(self.place(self.read(frame, byte)?)),
        }
    }

    /// Whether who has come there reads and can do nothing else.
    fn only_reads_at(&self, place: &Place) -> bool {
        match place {
            Place::Node { .. } => true,
            Place::Terminal(index, cursor) => !self.terminal(*index).is_accepting(*cursor),
            Place::Choice(at) => self.only_chooses(at),
            Place::Key(frame, cursor) => {
                let (series, rest, ..) = self.key_parts(*frame);
                !self.key_terminal(series, rest).is_accepting(*cursor)
            }
            Place::Frame(frame) => self.get(*frame).is_plain(),
        }
    }

    /// The frame at a place that the bytes of a stretch lead to.
    fn frame_of(&self, place: Place, written: &[u8]) -> FrameId {
        match place {
            Place::Node { rule, node } => self.frame_at(rule, node),
            Place::Terminal(index, cursor) => self.intern(FrameKey::Terminal(index, cursor)),
            Place::Choice(at) => self.intern(FrameKey::Choice(at)),
            Place::Key(frame, cursor) => self.key_frame(frame, cursor, written),
            Place::Frame(frame) => frame,
        }
    }
}
