//! What a configuration reads next, in words that a person can use.
//!
//! A reader is a frame with its callers. The frame says what is read; the rules of the callers say where in
//! the source that is, from the inside out.

use rustc_hash::FxHashSet;

use super::frame::{FrameId, FrameKey, Frames};
use super::stack::{ConfigId, END, Stacks};
use crate::language::{Cursor, Terminal};
use crate::pushdown::object::next_key::{self, Choosing};
use crate::pushdown::plan::nfa::Label;

/// One way in which the text can go on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Way {
    /// What is read.
    pub expected: Expected,
    /// The bytes that may come first, as ranges in order, both ends included.
    pub bytes: Vec<(u8, u8)>,
    /// The rules that are being read, from the inside out: rules of an EBNF grammar, or JSON pointers into a
    /// schema. A rule that goes on in itself is named once, and one in which nothing is left to be read is
    /// not named.
    pub rules: Vec<String>,
}

/// What is read next in one [`Way`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expected {
    /// This text, as far as it is fixed.
    Text(Vec<u8>),
    /// A choice of bytes.
    Bytes,
    /// A text of a regular language, such as a string or a number: the shortest bytes that complete it, and
    /// whether it has begun.
    Word {
        /// The shortest completion, or its first bytes where it is long; of several the first in order.
        shortest: Vec<u8>,
        /// Whether some of it is written.
        begun: bool,
    },
    /// The key of a further item, which must differ from those written before.
    Key {
        /// As in a word.
        shortest: Vec<u8>,
        /// Whether some of it is written.
        begun: bool,
    },
    /// A special token.
    Special(String),
}

/// Fixed and shortest texts are shown up to this length in bytes.
const SHOWN_BYTES: usize = 64;

/// The most members of a series that are shown of those that begin alike.
const SHOWN_MEMBERS: usize = 16;

/// Rules are named up to this depth.
const SHOWN_RULES: usize = 32;

impl Stacks {
    /// The ways in which a configuration goes on, at most `most` of them, and how many there are. O(ways
    /// shown · (depth of their callers + length of their texts)).
    pub(crate) fn describe(&self, config: ConfigId, most: usize) -> (Vec<Way>, usize) {
        let readers = &self.closure(config).readers;
        // One reader may go on in several ways: members of an object that begin alike are one.
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

    /// The names of the rules of a frame and of its callers; where there are several callers, of the first.
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
    /// The name of the rule of a frame; what has no rule of its own is named by its caller.
    fn rule_name(&self, id: FrameId) -> &str {
        match &self.get(id).key {
            FrameKey::RuleStart(rule) | FrameKey::Rule { rule, .. } => &self.nfa.rules[*rule as usize].name,
            _ => "",
        }
    }

    /// What a frame reads itself, each with the bytes that may come first.
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
            FrameKey::Judged { judged, cursor, text } => vec![self.expected_word(judged, cursor, text)],
            FrameKey::RuleStart(_) | FrameKey::Rule { .. } => self.expected_of_rule(id),
            FrameKey::Choice(at) => self.expected_of_choice(at),
            FrameKey::Return | FrameKey::Series(..) => Vec::new(),
        }
    }

    /// A word of a judged language, with the shortest completion that its judge knows.
    fn expected_word(&self, judged: u32, cursor: Cursor, text: u32) -> (Expected, Vec<(u8, u8)>) {
        let written = self.texts.to_vec(text);
        let judge = self.judge(judged);
        let known = judge.completions(&written);
        let shortest = known.min_by_key(|(padding, end)| padding + end.len());
        let shortest = match shortest {
            Some((padding, end)) if !judge.accepts(&written) => [&vec![b'a'; padding], end].concat(),
            _ => Vec::new(),
        };
        let begun = text != crate::pushdown::intern::interner::NIL;
        let ranges = self.beginnings(judged).ranges(cursor);
        (Expected::Word { shortest, begun }, ranges)
    }

    /// The members that begin like this, as far as they are fixed.
    fn expected_of_choice(&self, at: Choosing) -> Vec<(Expected, Vec<(u8, u8)>)> {
        let text = |(way, node): (next_key::Way, u32)| {
            let frame = self.rule_frame(way.rule, &[node]);
            let first = self
                .edge_list(frame)
                .iter()
                .map(|&(first, last, _)| (first, last));
            (Expected::Text(self.fixed_text(frame)), first.collect())
        };
        self.open_ways(at).take(SHOWN_MEMBERS).map(text).collect()
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

    /// The text that a rule goes on with as long as it has no choice and calls nothing.
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

    fn reads_special(&self, id: FrameId) -> bool {
        let FrameKey::Rule { nodes, .. } = &self.get(id).key else {
            return false;
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

/// More places than this are not looked at for a shortest word.
const SEARCHED: usize = 4096;

impl Terminal {
    /// The shortest bytes that complete a word, of several the first in order; the first of them where they
    /// are longer than `limit`. Breadth first.
    fn shortest_word(&self, from: Cursor, limit: usize) -> Vec<u8> {
        // Each place with the one that it was found from and the byte between.
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

    /// The bytes that may come next, as ranges in order.
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
