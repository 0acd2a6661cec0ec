//! The mask of a configuration from the factors of its frames.

use std::ops::Range;

use super::cache::Tables;
use super::factor::Factor;
use super::set::Mask;
use crate::machine::{ConfigId, END, FrameId, KeyView, Machine, Stacks};
use crate::vocab::{Node, Trie};

/// Adds all text tokens that may come next in a configuration to the mask.
pub(crate) fn fill(machine: &Machine, tables: &Tables, config: ConfigId, mask: &mut Mask) {
    let fill = Fill {
        machine,
        stacks: machine.stacks(),
        tables,
        trie: tables.vocabulary().trie(),
    };
    fill.configuration(config, mask);
}

struct Fill<'a> {
    machine: &'a Machine,
    stacks: &'a Stacks,
    tables: &'a Tables,
    trie: &'a Trie,
}

impl Fill<'_> {
    fn configuration(&self, config: ConfigId, mask: &mut Mask) {
        let mut walked = Vec::new();
        for &(frame, callers) in &self.stacks.fringe(config).readers {
            if let Some((terminal, cursor)) = self.machine.terminal_view(frame) {
                let factor = self.tables.factor(terminal, cursor);
                factor.inner.add_to(mask);
                self.escapes(&factor, callers, mask);
                continue;
            }
            match self.shared_key(frame) {
                Some(key) if key.used.is_empty() => self.key((frame, callers), &key, mask),
                Some(key) => {
                    // Written keys are taken out again, and must not take out what other frames allow.
                    let mut own = Mask::empty(self.tables.vocabulary().len());
                    self.key((frame, callers), &key, &mut own);
                    mask.unite(&own);
                }
                None => walked.push((frame, callers)),
            }
        }
        if !walked.is_empty() {
            let whole = 0..self.trie.nodes().len();
            self.walk_plain(self.stacks.intern(walked), whole, mask);
        }
    }

    /// The key that a frame is writing, where the shared walks for keys are exact: they need to know where a key
    /// ends, and that keys do not run out.
    fn shared_key(&self, frame: FrameId) -> Option<KeyView<'_>> {
        let shared = |key: &KeyView<'_>| {
            key.terminal.is_prefix_code() && (key.used.is_empty() || key.terminal.is_endless())
        };
        self.machine.key_view(frame).filter(shared)
    }

    /// The tokens that leave a terminal where it may end and go on in its callers.
    fn escapes(&self, factor: &Factor, callers: ConfigId, mask: &mut Mask) {
        for (byte, nodes) in &factor.escapes {
            if let Some(config) = self.stacks.step(callers, *byte) {
                for &node in nodes {
                    self.subtree(config, node, mask);
                }
            }
        }
    }

    /// The tokens at a node that has just been entered, and those below it.
    fn subtree(&self, config: ConfigId, node: u32, mask: &mut Mask) {
        let entered = &self.trie.nodes()[node as usize];
        mask.insert_all(self.trie.tokens_at(entered));
        self.walk(config, node as usize + 1..entered.end as usize, mask);
    }

    /// All tokens in a range of siblings and their subtrees, read from a configuration.
    ///
    /// A configuration that writes a key remembers its text, so there would be one for every text that a token
    /// could write: keys are walked apart, without configurations.
    fn walk(&self, config: ConfigId, range: Range<usize>, mask: &mut Mask) {
        if range.is_empty() || !self.stacks.fringe(config).writes_key {
            return self.walk_plain(config, range, mask);
        }
        let mut others = Vec::new();
        for &(frame, callers) in &self.stacks.fringe(config).readers {
            match self.shared_key(frame) {
                Some(key) => self.walk_key((frame, callers), &key, range.clone(), mask),
                None => others.push((frame, callers)),
            }
        }
        if !others.is_empty() {
            self.walk_plain(self.stacks.intern(others), range, mask);
        }
    }

    /// A walk from a configuration that writes no key (though it may come to write one).
    fn walk_plain(&self, config: ConfigId, range: Range<usize>, mask: &mut Mask) {
        if range.is_empty() {
            return;
        }
        let nodes = &self.trie.nodes()[..range.end];
        let base = nodes[range.start].depth as usize;
        let mut configs = vec![config];
        let mut at = range.start;
        while at < range.end {
            let node: &Node = &nodes[at];
            let depth = node.depth as usize - base;
            configs.truncate(depth + 1);
            let Some(next) = self.stacks.step(configs[depth], node.byte) else {
                at = node.end as usize;
                continue;
            };
            mask.insert_all(self.trie.tokens_at(node));
            if node.end as usize > at + 1 && self.stacks.fringe(next).writes_key {
                // As deep as a token has keys at most.
                self.walk(next, at + 1..node.end as usize, mask);
                at = node.end as usize;
            } else {
                configs.push(next);
                at += 1;
            }
        }
    }

    /// The tokens of a range that write on a key.
    fn walk_key(&self, pair: (FrameId, ConfigId), key: &KeyView<'_>, range: Range<usize>, mask: &mut Mask) {
        let nodes = self.trie.nodes();
        let base = nodes[range.start].depth as usize;
        let item = self.stacks.intern(vec![(key.item, END)]);
        let mut cursors = vec![key.cursor];
        let mut bytes = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let node = &nodes[at];
            let depth = node.depth as usize - base;
            cursors.truncate(depth + 1);
            bytes.truncate(depth);
            let next = key.terminal.next(cursors[depth], node.byte);
            bytes.push(node.byte);
            match next {
                Some(cursor) if key.terminal.is_accepting(cursor) => {
                    if !is_used(key, &bytes) {
                        mask.insert_all(self.trie.tokens_at(node));
                        self.behind(pair, &bytes, item, at as u32, mask);
                    }
                    at = node.end as usize;
                }
                Some(cursor) => {
                    cursors.push(cursor);
                    mask.insert_all(self.trie.tokens_at(node));
                    at += 1;
                }
                None => at = node.end as usize,
            }
        }
    }

    /// A key in progress: tokens that stay within it, tokens that complete it with a key that was not written
    /// before, and those that go on behind it.
    fn key(&self, pair: (FrameId, ConfigId), key: &KeyView<'_>, mask: &mut Mask) {
        let factor = self.tables.factor(key.terminal, key.cursor);
        factor.inner.add_to(mask);
        let item = self.stacks.intern(vec![(key.item, END)]);
        for (end, bytes) in &factor.ends {
            let entered = &self.trie.nodes()[*end as usize];
            if is_used(key, bytes) {
                mask.remove_all(self.trie.tokens_at(entered));
            } else {
                self.behind(pair, bytes, item, *end, mask);
            }
        }
    }

    /// Adds the tokens that go on behind a complete key, which ends at a node.
    fn behind(&self, pair: (FrameId, ConfigId), bytes: &[u8], item: ConfigId, end: u32, mask: &mut Mask) {
        let range = end as usize + 1..self.trie.nodes()[end as usize].end as usize;
        if range.is_empty() || self.behind_key(item, end, mask) {
            return;
        }
        let read = |config, &byte| self.stacks.step(config, byte);
        if let Some(config) = bytes.iter().try_fold(self.stacks.intern(vec![pair]), read) {
            self.walk(config, range, mask);
        }
    }

    /// Adds the tokens that go on behind a complete key, read as if nothing were below the item; false where a
    /// token completes the whole item too, so that only the real configuration knows how it goes on.
    ///
    /// A real configuration remembers the key, so there is one for every key that a token could complete; this walk
    /// spares finding them all.
    fn behind_key(&self, item: ConfigId, end: u32, mask: &mut Mask) -> bool {
        let nodes = self.trie.nodes();
        let base = nodes[end as usize].depth as usize + 1;
        let mut configs = vec![item];
        let mut at = end as usize + 1;
        while at < nodes[end as usize].end as usize {
            let node = &nodes[at];
            let depth = node.depth as usize - base;
            configs.truncate(depth + 1);
            if self.stacks.fringe(configs[depth]).accepting {
                return false;
            }
            match self.stacks.step(configs[depth], node.byte) {
                Some(next) => {
                    configs.push(next);
                    mask.insert_all(self.trie.tokens_at(node));
                    at += 1;
                }
                None => at = node.end as usize,
            }
        }
        true
    }
}

/// Whether the key that these bytes complete was written before.
fn is_used(key: &KeyView<'_>, bytes: &[u8]) -> bool {
    let whole = key.text.len() + bytes.len();
    let same =
        |used: &[u8]| used.len() == whole && used.starts_with(key.text) && used[key.text.len()..] == *bytes;
    key.used.iter().any(|used| same(used))
}
