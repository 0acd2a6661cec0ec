//! The mask of a configuration from the factors of its frames.

use super::cache::Tables;
use super::factor::{Factor, Rests};
use super::set::Mask;
use super::walk::Walk;
use crate::machine::{ByteSet, ConfigId, Cursor, FrameId, Machine, Stacks, Terminal, Thread, View};

/// Adds all text tokens that may come next in a configuration to an empty mask.
pub(crate) fn fill(machine: &Machine, tables: &Tables, config: ConfigId, mask: &mut Mask) {
    let stacks = machine.stacks();
    let mut fill = Fill {
        stacks,
        tables,
        walk: Walk::new(stacks),
        lost: Vec::new(),
    };
    fill.configuration(config, mask);
}

struct Fill<'a> {
    stacks: &'a Stacks,
    tables: &'a Tables,
    walk: Walk<'a>,
    /// Tokens of the reader at hand of which only their own bytes can tell.
    lost: Vec<u32>,
}

impl Fill<'_> {
    fn configuration(&mut self, config: ConfigId, mask: &mut Mask) {
        let mut walked = Vec::new();
        let mut fresh = true;
        for &(frame, callers) in &self.stacks.fringe(config).readers {
            let part = match self.stacks.view(frame) {
                View::Terminal(terminal, cursor) => Part::terminal(terminal, cursor),
                View::Key(terminal, cursor) => match self.key(frame, terminal, cursor) {
                    Some(part) => part,
                    None => {
                        walked.push(self.walk.threads.reader(frame, callers, 0));
                        continue;
                    }
                },
                View::Rule => {
                    walked.push(self.walk.threads.reader(frame, callers, 0));
                    continue;
                }
            };
            if std::mem::take(&mut fresh) {
                self.add((frame, callers), &part, mask);
            } else {
                // A part takes back what it cannot stand for, and must not take back what others allow.
                let mut own = Mask::empty(self.tables.vocabulary().len());
                self.add((frame, callers), &part, &mut own);
                mask.unite(&own);
            }
        }
        if !walked.is_empty() {
            self.walk_all(&walked, mask);
        }
    }

    /// The key that a frame is writing, where the factor of its language says what it allows: it must be clear where
    /// a key ends, and keys must not run out.
    fn key<'t>(&self, frame: FrameId, terminal: &'t Terminal, cursor: Cursor) -> Option<Part<'t>> {
        let taken = self.stacks.taken(frame);
        let shared = terminal.is_prefix_code() && (taken.is_empty() || terminal.is_endless());
        shared.then_some(Part {
            terminal,
            cursor,
            key: true,
            taken,
        })
    }

    /// A walk through the whole trie, by first bytes.
    fn walk_all(&mut self, readers: &[Thread], mask: &mut Mask) {
        let trie = self.tables.vocabulary().trie();
        let bytes = self.walk.bytes(readers);
        for (byte, range) in trie.roots() {
            if bytes.contains(byte) {
                self.walk.tokens(trie, range, readers, mask, &mut self.lost);
            }
        }
    }

    /// Adds what one frame allows to a mask that holds nothing else.
    fn add(&mut self, (frame, callers): (FrameId, ConfigId), part: &Part<'_>, mask: &mut Mask) {
        let factor = self.tables.factor(part.terminal, part.cursor);
        let behind = match part.key {
            true => self.walk.threads.behind_key(frame, callers),
            false => self.walk.threads.readers_of(callers, 0),
        };
        let bytes = self.walk.bytes(&behind);
        if let Some(base) = &factor.base {
            self.add_factor(base, &behind, &bytes, mask);
            mask.remove_all(&factor.except);
        }
        self.add_factor(&factor, &behind, &bytes, mask);
        self.take_out(&part.taken, mask);
        self.find_lost(self.walk.threads.reader(frame, callers, 0), mask);
    }

    fn add_factor(&mut self, factor: &Factor, behind: &[Thread], bytes: &ByteSet, mask: &mut Mask) {
        factor.inner.add_to(mask);
        for rests in &factor.rests {
            if bytes.contains(rests.byte) {
                self.add_rests(rests, behind, mask);
            }
        }
    }

    fn add_rests(&mut self, rests: &Rests, behind: &[Thread], mask: &mut Mask) {
        let trie = rests.trie(self.tables.vocabulary().trie());
        self.walk
            .tokens(trie, 0..trie.nodes().len(), behind, mask, &mut self.lost);
    }

    /// Takes out the tokens that would complete a key which was written before.
    fn take_out(&self, taken: &[Vec<u8>], mask: &mut Mask) {
        let trie = self.tables.vocabulary().trie();
        for bytes in taken {
            if let Some(node) = trie.find(bytes) {
                mask.remove_all(trie.tokens_below(node));
            }
        }
    }

    /// Judges the lost tokens of a reader by their bytes: they write a key, its item, and go on behind it.
    fn find_lost(&mut self, reader: Thread, mask: &mut Mask) {
        let vocab = self.tables.vocabulary();
        for token in std::mem::take(&mut self.lost) {
            if self.walk.allows(reader, vocab.bytes(token)) {
                mask.insert(token);
            }
        }
    }
}

/// A frame that is in a regular language.
struct Part<'t> {
    terminal: &'t Terminal,
    cursor: Cursor,
    /// Whether it writes a key.
    key: bool,
    /// What is missing of the keys that must not be written again.
    taken: Vec<Vec<u8>>,
}

impl<'t> Part<'t> {
    fn terminal(terminal: &'t Terminal, cursor: Cursor) -> Part<'t> {
        Part {
            terminal,
            cursor,
            key: false,
            taken: Vec::new(),
        }
    }
}
