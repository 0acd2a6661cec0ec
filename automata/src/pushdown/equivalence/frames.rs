//! Computes the representatives of frames: frames that allow the same tokens, above the same callers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use super::classes::{Class, Equivalence, Hidden, MANY_PLACES};
use super::suffix::Suffixes;
use super::token_facts::TokenFacts;
use crate::grammar::ItemOrder;
use crate::language::{Cursor, Terminal};
use crate::pushdown::frame::{FrameId, FrameKey, UNKNOWN_FRAME};
use crate::pushdown::intern::interner::NIL;
use crate::pushdown::object::key_set::KeySet;
use crate::pushdown::object::progress::{Bits, Progress, has_bit};
use crate::pushdown::plan::nfa::{Callee, Label};
use crate::pushdown::stack::ConfigId;

impl<F: TokenFacts> Equivalence<'_, F> {
    /// Returns the representative of a frame: one that allows the same tokens, above the same callers.
    pub(crate) fn of_frame(&self, id: FrameId) -> FrameId {
        let known = self.frames.get(id).representative.load(Ordering::Relaxed);
        if known != UNKNOWN_FRAME {
            return known;
        }
        let representative = match self.frames.get(id).key.clone() {
            FrameKey::ObjectList(object_list, progress)
                if self.frames.forgets(object_list, progress) && progress.started =>
            {
                let hidden = self.hidden(object_list);
                let properties = match progress.separated {
                    true => &hidden.anywhere,
                    false => &hidden.after_item,
                };
                let progress = self.without_properties(object_list, progress, (properties, &hidden.anywhere));
                let progress = self.without_keys(progress, hidden);
                self.frames.intern(FrameKey::ObjectList(object_list, progress))
            }
            FrameKey::Key {
                object_list,
                additional,
                progress,
                cursor,
                text,
            } if self.frames.forgets(object_list, progress) => {
                self.of_key((object_list, additional, progress), cursor, text)
            }
            FrameKey::NextKey(at) if self.frames.forgets(at.object_list, at.progress) && at.node != 0 => {
                let hidden = self.hidden(at.object_list);
                let mut properties = hidden.after_item.clone();
                for property in self.frames.properties_at(&at) {
                    clear_bit(&mut properties, property as usize);
                }
                let progress =
                    self.without_properties(at.object_list, at.progress, (&properties, &hidden.anywhere));
                let progress = self.without_keys(progress, hidden);
                self.frames
                    .intern(FrameKey::NextKey(self.frames.next_key_with(&at, progress)))
            }
            FrameKey::Rule { rule, nodes }
                if self.frames.analysis.recursive_group[rule as usize].is_none() =>
            {
                self.of_rule(id, rule, &nodes)
            }
            _ => id,
        };
        self.frames
            .get(representative)
            .representative
            .store(representative, Ordering::Relaxed);
        self.frames
            .get(id)
            .representative
            .store(representative, Ordering::Relaxed);
        representative
    }

    /// Splits a frame that can only make one call into that call and its continuation: if one property is
    /// left, its rule; if the only call is of a terminal that may be empty, that terminal at its start.
    pub(crate) fn unfolded(&self, id: FrameId) -> Option<(FrameId, FrameId)> {
        match &self.frames.get(id).key {
            FrameKey::NextKey(at) if at.node != 0 => {
                let mut ways = self.frames.open_ways(*at);
                let (way, node) = ways.next()?;
                ways.next().is_none().then(|| {
                    (
                        self.frames.standing(way.rule, node),
                        self.frames.frame_after_property(at, &way),
                    )
                })
            }
            FrameKey::Rule { rule, nodes }
                if self.frames.analysis.recursive_group[*rule as usize].is_none() =>
            {
                let (from, terminal, to) = nodes.iter().find_map(|&node| self.empty_word(node))?;
                let begun = FrameKey::Terminal(terminal, self.frames.terminal(terminal).start());
                let is_all = self.frames.closure(&[from])[..] == nodes[..];
                is_all.then(|| (self.frames.intern(begun), self.frames.rule_frame(*rule, &[to])))
            }
            _ => None,
        }
    }

    /// Returns the terminal that is all a node calls, if it may be empty, with both nodes.
    fn empty_word(&self, node: u32) -> Option<(u32, u32, u32)> {
        match &self.frames.nfa.nodes[node as usize][..] {
            [edge] => match edge.label {
                Label::Call(called @ Callee::Terminal(terminal))
                    if self.frames.analysis.is_nullable(called) =>
                {
                    Some((node, terminal, edge.to))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the first frame of a rule with the same continuation.
    fn of_rule(&self, id: FrameId, rule: u32, nodes: &[u32]) -> FrameId {
        if nodes.len() > MANY_PLACES {
            return id;
        }
        let suffix = |&node: &u32| self.suffix(rule, node);
        let mut suffixes: Vec<u32> = nodes.iter().map(suffix).collect();
        suffixes.sort_unstable();
        let class = Class::Suffixes(suffixes.into());
        *self.classes.first.entry(class).or_insert(id)
    }

    fn suffix(&self, rule: u32, node: u32) -> u32 {
        let suffixes = self
            .classes
            .suffixes
            .get_or_init(|| Suffixes::new(self.frames.nfa.nodes.len()));
        suffixes.of(&self.frames.nfa, &self.frames.analysis, rule, node)
    }

    /// Returns the pairs of a configuration without the frames that are covered by a key: until they end,
    /// other keys may continue like them, so tokens see nothing else of them.
    pub(crate) fn without_covered(
        &self,
        pairs: &[(FrameId, ConfigId)],
    ) -> SmallVec<[(FrameId, ConfigId); 2]> {
        let mut keys = pairs
            .iter()
            .filter_map(|&(frame, _)| match self.frames.get(frame).key {
                FrameKey::Key {
                    object_list,
                    additional,
                    cursor,
                    ..
                } => Some((self.frames.key_terminal(object_list, additional), cursor)),
                _ => None,
            });
        let key = (pairs.len() > 1).then(|| keys.next()).flatten();
        let is_covered = |frame: FrameId| key.is_some_and(|key| self.is_covered(frame, key));
        pairs
            .iter()
            .filter(|&&(frame, _)| !is_covered(frame))
            .copied()
            .collect()
    }

    /// Returns `true` if a frame reads only fixed text that continues like infinitely many keys, up to a byte
    /// that no token reaches.
    fn is_covered(&self, id: FrameId, (terminal, cursor): (&Arc<Terminal>, Cursor)) -> bool {
        let Some((_, closing)) = terminal.edges().filter(|_| terminal.is_infinite(cursor)) else {
            return false;
        };
        let is_far = |rule: u32, node: u32| {
            let left = self.text_left((rule, node), (terminal, cursor), closing);
            left.is_some_and(|left| !self.facts.begins(&left))
        };
        match &self.frames.get(id).key {
            FrameKey::Rule { rule, nodes } => matches!(nodes[..], [node] if is_far(*rule, node)),
            FrameKey::NextKey(at) => {
                let mut ways = self.frames.open_ways(*at);
                ways.all(|(way, node)| is_far(way.rule, node))
            }
            _ => false,
        }
    }

    fn of_key(
        &self,
        (object_list, additional, progress): (u32, u32, Progress),
        cursor: Cursor,
        text: u32,
    ) -> FrameId {
        let hidden = self.hidden(object_list);
        let progress = self.without_properties(object_list, progress, (&hidden.after_item, &hidden.anywhere));
        let key = |progress, text| FrameKey::Key {
            object_list,
            additional,
            progress,
            cursor,
            text,
        };
        let Some(held) = &hidden.keys else {
            return self.frames.intern(key(progress, text));
        };
        let begun = self.frames.texts.to_vec(text);
        let used = self.frames.used_keys(progress);
        if text != NIL && used.after(&begun).any(|left| self.facts.begins(left)) {
            return self.frames.intern(key(progress, text));
        }
        let progress = self.without_keys(progress, hidden);
        let taken = &self.frames.nfa.object_lists[object_list as usize].taken;
        let is_taken = || taken.after(&begun).any(|left| self.facts.begins(left));
        if text == NIL || held.after(&begun).next().is_some() || is_taken() {
            return self.frames.intern(key(progress, text));
        }
        // Nothing depends on the text: the first one represents all.
        let representative = || self.frames.intern(key(progress, text));
        let class = Class::Key(key(progress, NIL));
        *self.classes.first.entry(class).or_insert_with(representative)
    }

    /// Returns the progress with only those used keys that tokens contain.
    fn without_keys(&self, progress: Progress, hidden: &Hidden) -> Progress {
        let used = hidden
            .keys
            .as_ref()
            .map_or(progress.used, |held| self.held_keys(progress.used, held));
        Progress { used, ..progress }
    }

    /// Returns the part of a list of keys that tokens contain, which is the same for all object lists of a
    /// grammar. Usually the list is a known one with one more key.
    fn held_keys(&self, list: u32, held: &KeySet) -> u32 {
        let mut longer = Vec::new();
        let mut at = list;
        let mut found = loop {
            if let Some(known) = self.classes.held.get(&at) {
                break *known;
            }
            let Some((before, text)) = self.frames.keys.split_last(at) else {
                break NIL;
            };
            longer.push((at, text));
            at = before;
        };
        for (list, text) in longer.into_iter().rev() {
            if held.contains(&self.frames.texts.to_vec(text)) {
                found = self.frames.keys.push(found, text);
            }
            self.classes.held.insert(list, found);
        }
        found
    }

    /// Returns the progress in which all of these properties are written, except one that must be written if
    /// any of them must be, and one that may be written if any of them that is not hidden everywhere may be.
    fn without_properties(
        &self,
        object_list: u32,
        progress: Progress,
        (properties, anywhere): (&Bits, &Bits),
    ) -> Progress {
        let plan = &self.frames.nfa.object_lists[object_list as usize];
        if plan.order != ItemOrder::Any || properties.iter().all(|&word| word == 0) {
            return progress;
        }
        let written = self.frames.written.get(progress.done);
        let mut representative: Vec<u64> = written.to_vec();
        representative.resize(properties.len().max(written.len()), 0);
        let (mut first, mut is_left) = ([None; 2], [false; 2]);
        for index in (0..plan.properties.len()).filter(|&index| has_bit(properties, index)) {
            let required = plan.properties[index].required;
            if !required && has_bit(anywhere, index) {
                representative[index / 64] |= 1 << (index % 64);
                continue;
            }
            let kind = usize::from(required);
            first[kind].get_or_insert(index);
            is_left[kind] |= !has_bit(written, index);
            representative[index / 64] |= 1 << (index % 64);
        }
        for (first, _) in first.into_iter().zip(is_left).filter(|&(_, left)| left) {
            first.inspect(|&first| clear_bit(&mut representative, first));
        }
        // Sets of written properties are stored without trailing zero words.
        while representative.last() == Some(&0) {
            representative.pop();
        }
        Progress {
            done: self.frames.written.intern(representative.into()),
            ..progress
        }
    }
}

fn clear_bit(bits: &mut [u64], index: usize) {
    if let Some(word) = bits.get_mut(index / 64) {
        *word &= !(1 << (index % 64));
    }
}
