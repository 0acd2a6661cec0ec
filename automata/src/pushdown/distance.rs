//! Distances to the end: the fewest steps that complete a frame, a configuration or a head.
//!
//! A step is a byte or a special token. The distances of rules and object lists are one fixed point (Knuth's
//! generalisation of Dijkstra's algorithm to grammars, 1977), computed on first use:
//!
//! ```text
//!   node      min over edges:  bytes 1 + to     call  shortest(callee) + to     accept 0
//!   rule      its first node                    list     required items, the cheapest others, separators
//!   frame     from the above and its progress   configuration   min over pairs:  frame + callers
//! ```
//!
//! There are two tables, which are separate if they differ. *At least*: over all bytes, a lower bound.
//! *Achievable*: over the bytes that the vocabulary has a token for, an upper bound, and consistent: where it
//! is n > 0, some usable byte or special token leads to where it is n − 1 or less. So it bounds the number
//! of tokens of the shortest completion, and following it leads to an end.

mod bare;
mod calls;
mod free;
mod key;
mod list;
mod overshoot;
mod remembered;
mod solve;

use std::sync::Arc;

use dashmap::DashMap;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::frame::{FrameId, FrameKey, Frames};
use super::lookahead::At;
use super::stack::{ConfigId, Stacks};
use crate::grammar::Validator;
use crate::language::{ByteSet, Cursor, Lengths, NEVER, Terminal, length_of_many, plus};
use crate::pushdown::object::progress::Progress;
use crate::work::spend;
pub(crate) use key::KeyLengths;
pub(crate) use overshoot::OvershootBound;
use remembered::Remembered;

/// The fewest steps to the end from the frames and configurations of one grammar, over one set of bytes.
#[derive(Debug)]
pub struct Distances {
    usable: ByteSet,
    achievable: bool,
    words: Arc<[Option<Arc<Lengths>>]>,
    /// The distance from each node to the end of its own rule.
    nodes: Arc<Vec<u64>>,
    rules: Arc<Vec<u64>>,
    object_lists: Arc<Vec<u64>>,
    rule_of: Arc<[u32]>,
    /// For a left-recursive rule, the distance from the end of each rule in its group to its own end.
    ascents: DashMap<u32, FxHashMap<u32, u64>, FxBuildHasher>,
    /// For a terminal of keys and a number of taken keys, the greatest distance to the end of a free key.
    peaks: DashMap<(u32, usize), u64, FxBuildHasher>,
    /// For a place in a terminal and a number of distinct words, the distance to the last of them.
    many: Remembered<(u32, Cursor, usize)>,
    frames: Remembered<FrameId>,
    /// For an object list, its progress, and a number of keys that the progress does not include.
    lists: Remembered<(u32, Progress, usize)>,
    configs: Remembered<ConfigId>,
}

impl Distances {
    /// Returns the same distances for a [copy](Stacks::apart_whole) of the machine, in which frames and
    /// configurations have different numbers.
    pub(crate) fn apart(&self) -> Distances {
        Distances {
            usable: self.usable,
            achievable: self.achievable,
            words: self.words.clone(),
            nodes: self.nodes.clone(),
            rules: self.rules.clone(),
            object_lists: self.object_lists.clone(),
            rule_of: self.rule_of.clone(),
            ascents: DashMap::default(),
            peaks: DashMap::default(),
            many: Remembered::default(),
            frames: Remembered::default(),
            lists: Remembered::default(),
            configs: Remembered::default(),
        }
    }

    /// Returns the fewest steps that complete a configuration.
    pub fn of(&self, stacks: &Stacks, config: ConfigId) -> u64 {
        self.configs.or_find(stacks, config, |pairs, below| {
            let lengths = pairs
                .iter()
                .map(|&(frame, callers)| plus(self.of_frame(&stacks.frames, frame), below(callers)));
            lengths.min().unwrap_or(NEVER)
        })
    }

    /// Returns the fewest steps to the end from a reader.
    pub(crate) fn of_reader(&self, stacks: &Stacks, (frame, callers): (FrameId, ConfigId)) -> u64 {
        plus(self.of_frame(&stacks.frames, frame), self.of(stacks, callers))
    }

    /// Returns the fewest steps that complete a frame.
    pub(crate) fn of_frame(&self, frames: &Frames, frame: FrameId) -> u64 {
        if let Some(known) = self.frames.get(&frame) {
            return known;
        }
        let length = self.find_frame(frames, frame);
        self.frames.insert(frame, length);
        length
    }

    fn find_frame(&self, frames: &Frames, frame: FrameId) -> u64 {
        match &frames.get(frame).key {
            FrameKey::Return => 0,
            FrameKey::RuleStart(rule) => self.rules[*rule as usize],
            FrameKey::Rule { rule, nodes } => self.of_nodes(frames, *rule, nodes),
            FrameKey::TerminalStart(terminal) => {
                self.of_cursor(*terminal, frames.terminal(*terminal).start())
            }
            FrameKey::Terminal(terminal, cursor) => self.of_cursor(*terminal, *cursor),
            FrameKey::ObjectList(object_list, progress) => self.of_progress(frames, *object_list, *progress),
            FrameKey::NextKey(at) => self.of_next_key(frames, *at),
            FrameKey::Key { cursor, .. } => self.of_key(frames, frame, *cursor, Some(&[])),
            FrameKey::Validated { validated, text, .. } => {
                self.of_word(frames.validator(*validated), &frames.texts.to_vec(*text))
            }
            // What leads to the end may be blocked, but a space and then the frame may be read.
            FrameKey::Guarded(frame, _) => plus(self.of_frame(frames, *frame), u64::from(self.achievable)),
        }
    }

    /// Returns the fewest steps that complete a word of a validated language, of which `text` is written.
    /// *Achievable* distances cover only the completions that the validator lists, so another may be shorter.
    pub(crate) fn of_word(&self, validator: Validator, text: &[u8]) -> u64 {
        if validator.accepts(text) {
            return 0;
        }
        if !self.achievable {
            return 1;
        }
        let usable = |bytes: &[u8]| bytes.iter().all(|&byte| self.usable.contains(byte));
        let known = validator.completions(text);
        let known = known.filter(|&(padding, end)| usable(end) && (padding == 0 || usable(b"a")));
        known
            .map(|(padding, end)| (padding + end.len()) as u64)
            .min()
            .unwrap_or(NEVER)
    }

    /// Returns the fewest steps that complete the place of a head after a path.
    pub(crate) fn of_place(&self, frames: &Frames, at: At, path: &[u8]) -> u64 {
        match at {
            At::Frame(frame) => self.of_frame(frames, frame),
            At::Node { rule, node } => self.of_nodes(frames, rule, &[node]),
            At::Terminal(terminal, cursor) => self.of_cursor(terminal, cursor),
            At::Key { frame, cursor, start } => {
                self.of_key(frames, frame, cursor, path.get(start as usize..))
            }
            At::Validated { frame, start, .. } => {
                let (validated, mut text) = frames.validated_parts(frame);
                text.extend_from_slice(&path[start as usize..]);
                self.of_word(frames.validator(validated), &text)
            }
            At::NextKey { frame, node } => self.of_next_key(frames, frames.next_key_state(frame, node)),
            At::Way { frame, way } => {
                let after = frames.frame_after_way(&frames.next_key_state(frame, 0), way);
                self.of_frame(frames, after)
            }
            At::AfterKey(frame) => {
                let (object_list, additional, progress, _) = frames.key_parts(frame);
                self.after_item(frames, object_list, additional, progress)
            }
        }
    }

    /// Returns the fewest steps that complete a frame in a regular language whose cursor has moved to
    /// `cursor`. For a key, the number suffices whatever the key is.
    pub(crate) fn of_view(&self, stacks: &Stacks, frame: FrameId, cursor: Cursor) -> u64 {
        match stacks.frames.get(frame).key {
            FrameKey::TerminalStart(terminal) | FrameKey::Terminal(terminal, _) => {
                self.of_cursor(terminal, cursor)
            }
            FrameKey::Key { .. } => self.of_key(&stacks.frames, frame, cursor, None),
            _ => NEVER,
        }
    }

    /// Returns a bound on the distance from all places reached from the frame by tokens that stay in its
    /// regular language; [`NEVER`] if the frame is in none, or if no bound is known.
    pub(crate) fn peak_of(&self, stacks: &Stacks, frame: FrameId) -> u64 {
        let frames = &stacks.frames;
        match frames.get(frame).key {
            FrameKey::TerminalStart(terminal) => self.peak(terminal, frames.terminal(terminal).start()),
            FrameKey::Terminal(terminal, cursor) => self.peak(terminal, cursor),
            FrameKey::Key {
                object_list,
                additional,
                progress,
                cursor,
                ..
            } => {
                let key = frames.nfa.object_lists[object_list as usize].additional[additional as usize].key;
                let taken = if self.achievable {
                    frames.taken(frame, |_| true).len()
                } else {
                    0
                };
                let word = match (key, taken) {
                    (None, _) => NEVER,
                    (Some(key), 0) => self.peak(key, cursor),
                    (Some(key), taken) => self.peak_of_many(frames.terminal(key), key, taken),
                };
                plus(word, self.after_key(frames, object_list, additional, progress))
            }
            FrameKey::Validated { validated, .. } => {
                let terminal = frames.beginnings(validated);
                let mut bytes = ByteSet::default();
                terminal.add_bytes(terminal.start(), &mut bytes);
                // Without some of the bytes there is no bound.
                match bytes.is_within(&self.usable) {
                    true => frames.validator(validated).longest_completion() as u64,
                    false => NEVER,
                }
            }
            _ => NEVER,
        }
    }

    /// Returns the fewest steps from a cursor to the end of a word of the terminal.
    pub(crate) fn of_cursor(&self, terminal: u32, cursor: Cursor) -> u64 {
        let words = self.words[terminal as usize].as_ref();
        words.map_or(NEVER, |words| words.shortest(cursor, self.achievable))
    }

    /// Returns [`peak`](Self::peak) for a terminal of which `taken` words must not be written.
    fn peak_of_many(&self, terminal: &Terminal, index: u32, taken: usize) -> u64 {
        if terminal.bounds().is_some() {
            return NEVER;
        }
        let find = || {
            let cursors = (0..terminal.len() as u32).map(|state| Cursor { state, count: 0 });
            // At the end of a word, the word is a free one.
            let going = cursors.filter(|&cursor| !terminal.is_stuck(cursor));
            let many = going.map(|cursor| self.of_many(terminal, index, cursor, taken));
            many.max().unwrap_or(NEVER)
        };
        *self.peaks.entry((index, taken)).or_insert_with(find)
    }

    /// Returns the fewest steps within which more than `taken` words end.
    fn of_many(&self, terminal: &Terminal, index: u32, cursor: Cursor, taken: usize) -> u64 {
        if taken == 0 {
            return self.of_cursor(index, cursor);
        }
        if let Some(known) = self.many.get(&(index, cursor, taken)) {
            return known;
        }
        let length = length_of_many(terminal, cursor, &self.usable, taken);
        self.many.insert((index, cursor, taken), length);
        length
    }

    /// Returns a bound on the distance from all cursors that are reached from this one within the terminal.
    fn peak(&self, terminal: u32, cursor: Cursor) -> u64 {
        let words = self.words[terminal as usize].as_ref();
        words.map_or(NEVER, |words| words.peak(cursor))
    }

    /// Returns the distance of a key in progress with its item and the rest of its object list. `written`
    /// are the bytes of the key since the frame; with `None` the result holds for any bytes, and may be too
    /// large for some.
    fn of_key(&self, frames: &Frames, frame: FrameId, cursor: Cursor, written: Option<&[u8]>) -> u64 {
        let (object_list, additional, progress, _) = frames.key_parts(frame);
        let word = match frames.nfa.object_lists[object_list as usize].additional[additional as usize].key {
            None => 0,
            Some(key) if !self.achievable => self.of_cursor(key, cursor),
            Some(key) => self.of_free_key(frames, (frame, key), cursor, written),
        };
        plus(word, self.after_key(frames, object_list, additional, progress))
    }

    /// Returns the fewest steps that complete a key to one that was not written before.
    fn of_free_key(
        &self,
        frames: &Frames,
        (frame, key): (FrameId, u32),
        cursor: Cursor,
        written: Option<&[u8]>,
    ) -> u64 {
        let terminal = frames.terminal(key);
        let unwritable = written.and_then(|written| frames.unwritable_after(frame, written, usize::MAX));
        match unwritable {
            Some(unwritable) => self.of_free_word(terminal, key, cursor, &unwritable),
            None => self.of_many(terminal, key, cursor, frames.taken(frame, |_| true).len()),
        }
    }

    /// Returns the fewest steps to the end of a word of the terminal that is none of `unwritable`: the
    /// smallest number within which more words end than there are unwritable ones.
    fn of_free_word(&self, terminal: &Terminal, index: u32, cursor: Cursor, unwritable: &[Vec<u8>]) -> u64 {
        let usable = |word: &&Vec<u8>| word.iter().all(|&byte| self.usable.contains(byte));
        let unwritable = unwritable.iter().filter(usable);
        let mut lengths: Vec<u64> = unwritable
            .filter(|word| terminal.matches_from(cursor, word))
            .map(|word| word.len() as u64)
            .collect();
        lengths.sort_unstable();
        let mut passed = 0;
        loop {
            spend(1);
            let length = self.of_many(terminal, index, cursor, passed);
            let within = lengths.partition_point(|&word| word <= length);
            if within <= passed {
                return length;
            }
            passed = within;
        }
    }

    /// Returns the distance of the item after a key and the rest of its object list.
    pub(crate) fn after_key(
        &self,
        frames: &Frames,
        object_list: u32,
        additional: u32,
        progress: Progress,
    ) -> u64 {
        let item = frames.nfa.object_lists[object_list as usize].additional[additional as usize].item;
        plus(
            self.rules[item as usize],
            self.after_item(frames, object_list, additional, progress),
        )
    }

    /// Returns the distance of the rest of an object list after an item with a key.
    pub(crate) fn after_item(
        &self,
        frames: &Frames,
        object_list: u32,
        additional: u32,
        progress: Progress,
    ) -> u64 {
        let after = frames.after_additional(object_list, additional, progress);
        self.of_progress_with(frames, object_list, after, 1)
    }

    fn of_nodes(&self, frames: &Frames, rule: u32, nodes: &[u32]) -> u64 {
        if frames.analysis.recursive_group[rule as usize].is_none() {
            let lengths = nodes.iter().map(|&node| self.nodes[node as usize]);
            return lengths.min().unwrap_or(NEVER);
        }
        let ascents = self
            .ascents
            .entry(rule)
            .or_insert_with(|| self.find_ascents(frames, rule));
        let lengths = nodes.iter().map(|&node| {
            let ascent = ascents.get(&self.rule_of[node as usize]);
            plus(self.nodes[node as usize], ascent.copied().unwrap_or(NEVER))
        });
        lengths.min().unwrap_or(NEVER)
    }

    /// Returns the fewest steps from the end of a rule to the end of `goal`, for the rules that `goal` may
    /// begin with.
    fn find_ascents(&self, frames: &Frames, goal: u32) -> FxHashMap<u32, u64> {
        let (nfa, analysis) = (&frames.nfa, &frames.analysis);
        let group = analysis.recursive_group[goal as usize];
        let members =
            (0..nfa.rules.len() as u32).filter(|&rule| analysis.recursive_group[rule as usize] == group);
        let members: Vec<u32> = members.collect();
        let mut ascents = FxHashMap::from_iter([(goal, 0)]);
        // At most as many rounds as rules; groups are small.
        loop {
            spend(members.len());
            let mut changed = false;
            for &rule in &members {
                let after = analysis.left_corners.get(&nfa.rules[rule as usize].accept);
                let ways = after.into_iter().flatten().map(|&node| {
                    let ascent = ascents.get(&self.rule_of[node as usize]);
                    plus(self.nodes[node as usize], ascent.copied().unwrap_or(NEVER))
                });
                let best = ways.min().unwrap_or(NEVER);
                if best < ascents.get(&rule).copied().unwrap_or(NEVER) {
                    ascents.insert(rule, best);
                    changed = true;
                }
            }
            if !changed {
                return ascents;
            }
        }
    }
}
