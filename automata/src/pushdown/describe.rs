//! Describes in words what a configuration reads next.
//!
//! A reader is a frame with its callers. The frame determines the text that is read; the rules of the callers
//! determine its place in the source, from the inside out.

use rustc_hash::FxHashSet;

use super::frame::{FrameId, FrameKey, Frames, Guard};
use super::stack::{ConfigId, END, Stacks};
use crate::language::{ByteSet, Cursor, Terminal};
use crate::pushdown::object::next_key::{self, NextKeyState};
use crate::pushdown::plan::nfa::Label;

/// One way in which the text can continue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Way {
    /// The item that is read next.
    pub expected: Expected,
    /// The bytes that may come first, as ranges in order, both ends included.
    pub bytes: Vec<(u8, u8)>,
    /// The rules that are being read, from the inside out: rules of an EBNF grammar, or JSON pointers into a
    /// schema. A rule that continues within itself is named once; a rule with nothing left to read is
    /// omitted.
    pub rules: Vec<String>,
}

/// The item that is read next in one [`Way`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expected {
    /// A text, as far as it is fixed.
    Text(Vec<u8>),
    /// A choice of bytes.
    Bytes,
    /// A text of a regular language, such as a string or a number.
    Word {
        /// The shortest completion, or its first bytes if it is long; the lexicographically first if there
        /// are several.
        shortest: Vec<u8>,
        /// `true` if the text has begun.
        begun: bool,
    },
    /// The key of a further item, which must differ from the keys written before.
    Key {
        /// The shortest completion, as for a word.
        shortest: Vec<u8>,
        /// `true` if the key has begun.
        begun: bool,
    },
    /// A special token.
    Special(String),
}

/// The maximum length in bytes of fixed and shortest texts that are shown.
const SHOWN_BYTES: usize = 64;

/// The maximum number of properties with a common prefix that are shown.
const SHOWN_PROPERTIES: usize = 16;

/// The maximum number of rules that are named.
const SHOWN_RULES: usize = 32;

impl Stacks {
    /// Returns at most `most` ways in which a configuration continues, and the number of its readers. O(ways
    /// shown · (depth of their callers + length of their texts)).
    pub(crate) fn describe(&self, config: ConfigId, most: usize) -> (Vec<Way>, usize) {
        let readers = &self.closure(config).readers;
        // One reader may continue in several ways: properties of an object with a common prefix are one
        // reader.
        let ways = readers
            .iter()
            .flat_map(|&(frame, callers)| self.ways(frame, callers));
        (ways.take(most).collect(), readers.len())
    }

    fn ways(&self, frame: FrameId, callers: ConfigId) -> Vec<Way> {
        let rules = self.rules(frame, callers);
        let way = |(expected, bytes): (Expected, Vec<(u8, u8)>)| Way {
            expected,
            bytes,
            rules: rules.clone(),
        };
        self.frames.expected(frame).into_iter().map(way).collect()
    }

    /// Returns the names of the rules of a frame and of its callers, following the first of several callers.
    fn rules(&self, frame: FrameId, callers: ConfigId) -> Vec<String> {
        let mut rules: Vec<String> = Vec::new();
        let (mut frame, mut callers) = (frame, callers);
        while rules.len() < SHOWN_RULES {
            let name = self.frames.rule_name(frame);
            if !name.is_empty() && rules.last().is_none_or(|last| last != name) {
                rules.push(name.to_owned());
            }
            match self.pairs(callers).first() {
                Some(&(next, below)) if callers != END => (frame, callers) = (next, below),
                _ => break,
            }
        }
        rules
    }
}

impl Frames {
    /// Returns the name of the rule of a frame, or the empty string if the frame belongs to no rule.
    fn rule_name(&self, id: FrameId) -> &str {
        match &self.get(id).key {
            FrameKey::RuleStart(rule) | FrameKey::Rule { rule, .. } => &self.nfa.rules[*rule as usize].name,
            FrameKey::Guarded(frame, _) => self.rule_name(*frame),
            _ => "",
        }
    }

    /// Returns the items that a frame reads itself, each with the bytes that may come first.
    fn expected(&self, id: FrameId) -> Vec<(Expected, Vec<(u8, u8)>)> {
        match self.get(id).key {
            FrameKey::TerminalStart(index) => vec![word(self.terminal(index), None)],
            FrameKey::Terminal(index, cursor) => vec![word(self.terminal(index), Some(cursor))],
            FrameKey::Key { cursor, text, .. } => {
                let terminal = self.key_terminal_of(id);
                let shortest = terminal.shortest_word(cursor, SHOWN_BYTES);
                let begun = text != crate::pushdown::intern::interner::NIL;
                vec![(Expected::Key { shortest, begun }, terminal.ranges(cursor))]
            }
            FrameKey::Validated {
                validated,
                cursor,
                text,
            } => vec![self.expected_word(validated, cursor, text)],
            FrameKey::RuleStart(_) | FrameKey::Rule { .. } => self.expected_of_rule(id),
            FrameKey::NextKey(at) => self.expected_of_next_key(at),
            FrameKey::Guarded(frame, guard) => self.expected_after(frame, guard),
            FrameKey::Return | FrameKey::ObjectList(..) => Vec::new(),
        }
    }

    /// Returns the items that a frame reads after a word that some bytes must not follow.
    fn expected_after(&self, id: FrameId, guard: Guard) -> Vec<(Expected, Vec<(u8, u8)>)> {
        let blocked = self.guards.set(guard);
        let mut expected = self.expected(id);
        for (_, ranges) in &mut expected {
            let bytes = ranges.iter().flat_map(|&(first, last)| first..=last);
            let mut left = ByteSet::default();
            bytes
                .filter(|&byte| !blocked.contains(byte))
                .for_each(|byte| left.insert_range(byte, byte));
            *ranges = left.ranges();
        }
        // A special token has no bytes.
        expected.retain(|(item, ranges)| matches!(item, Expected::Special(_)) || !ranges.is_empty());
        expected
    }

    /// Returns a word of a validated language, with the shortest completion that its validator knows.
    fn expected_word(&self, validated: u32, cursor: Cursor, text: u32) -> (Expected, Vec<(u8, u8)>) {
        let written = self.texts.to_vec(text);
        let validator = self.validator(validated);
        let known = validator.completions(&written);
        let shortest = known.min_by_key(|(padding, end)| padding + end.len());
        let shortest = match shortest {
            Some((padding, end)) if !validator.accepts(&written) => [&vec![b'a'; padding], end].concat(),
            _ => Vec::new(),
        };
        let begun = text != crate::pushdown::intern::interner::NIL;
        let ranges = self.beginnings(validated).ranges(cursor);
        (Expected::Word { shortest, begun }, ranges)
    }

    /// Returns the properties that begin with the text read so far, as far as they are fixed.
    fn expected_of_next_key(&self, at: NextKeyState) -> Vec<(Expected, Vec<(u8, u8)>)> {
        let text = |(way, node): (next_key::Way, u32)| {
            let frame = self.rule_frame(way.rule, &[node]);
            let first = self
                .edge_list(frame)
                .iter()
                .map(|&(first, last, _)| (first, last));
            (Expected::Text(self.fixed_text(frame)), first.collect())
        };
        self.open_ways(at).take(SHOWN_PROPERTIES).map(text).collect()
    }

    fn expected_of_rule(&self, id: FrameId) -> Vec<(Expected, Vec<(u8, u8)>)> {
        let mut expected = Vec::new();
        let ranges: Vec<(u8, u8)> = self
            .edge_list(id)
            .iter()
            .map(|&(first, last, _)| (first, last))
            .collect();
        match ranges[..] {
            [] => {}
            [(first, last)] if first == last => expected.push((Expected::Text(self.fixed_text(id)), ranges)),
            _ => expected.push((Expected::Bytes, ranges)),
        }
        let specials =
            (0..self.nfa.specials.len() as u32).filter(|&special| self.read_special(id, special).is_some());
        let named = specials.map(|special| {
            let name = self.nfa.specials[special as usize].to_string();
            (Expected::Special(name), Vec::new())
        });
        expected.extend(named);
        expected
    }

    /// Returns the text with which a rule continues as long as it has no choice and calls nothing.
    fn fixed_text(&self, id: FrameId) -> Vec<u8> {
        let mut text = Vec::new();
        let mut at = id;
        while let [(first, last, next)] = self.edge_list(at)
            && first == last
            && text.len() < SHOWN_BYTES
        {
            text.push(*first);
            at = *next;
            if self.get(at).accepting || !self.calls(at).is_empty() || self.reads_special(at) {
                break;
            }
        }
        text
    }

    pub(crate) fn reads_special(&self, id: FrameId) -> bool {
        let leading;
        let nodes = match &self.get(id).key {
            FrameKey::Rule { nodes, .. } => &nodes[..],
            FrameKey::RuleStart(rule) => {
                leading = self.leading(*rule);
                &leading
            }
            _ => return false,
        };
        let mut edges = nodes.iter().flat_map(|&node| &self.nfa.nodes[node as usize]);
        edges.any(|edge| matches!(edge.label, Label::Special(_)))
    }
}

fn word(terminal: &Terminal, cursor: Option<Cursor>) -> (Expected, Vec<(u8, u8)>) {
    let at = cursor.unwrap_or(terminal.start());
    let shortest = terminal.shortest_word(at, SHOWN_BYTES);
    let begun = cursor.is_some();
    (Expected::Word { shortest, begun }, terminal.ranges(at))
}

/// The maximum number of places that are searched for a shortest word.
const SEARCHED: usize = 4096;

impl Terminal {
    /// Returns the shortest bytes that complete a word, the lexicographically first if there are several, cut
    /// off after `limit` bytes. Breadth-first.
    fn shortest_word(&self, from: Cursor, limit: usize) -> Vec<u8> {
        // Each place, with its predecessor and the byte between them.
        let mut found = vec![(from, 0, 0)];
        let mut seen = FxHashSet::from_iter([from]);
        let mut at = 0;
        while at < found.len() {
            let (cursor, ..) = found[at];
            if self.is_accepting(cursor) || found.len() > SEARCHED {
                break;
            }
            for byte in 0..=255 {
                if let Some(next) = self.next(cursor, byte).filter(|next| seen.insert(*next)) {
                    found.push((next, at, byte));
                }
            }
            at += 1;
        }
        let mut word = Vec::new();
        while at > 0 {
            let (_, before, byte) = found[at];
            word.push(byte);
            at = before;
        }
        word.reverse();
        word.truncate(limit);
        word
    }

    /// Returns the bytes that may come next, as ranges in order.
    fn ranges(&self, cursor: Cursor) -> Vec<(u8, u8)> {
        let mut ranges: Vec<(u8, u8)> = Vec::new();
        for byte in (0..=255).filter(|&byte| self.next(cursor, byte).is_some()) {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == byte => *last = byte,
                _ => ranges.push((byte, byte)),
            }
        }
        ranges
    }
}
