//! Names of configurations: 64 bits that are the same in every process, for data about a state that outlives
//! its grammar.
//!
//! ```text
//!   grammar   automata of rules, lists, structure of terminals ─► content ───────┐ once
//!   frame     kind, place in the plan, the text that it remembers ───────────────┼─► name of a configuration
//!   callers   their names; the bottom of every stack is named by the content ────┘ cached there
//! ```
//!
//! The numbers of frames and configurations reflect the order in which they were found, which differs
//! between texts and between threads. A name reflects their content: it is a hash of the places in the plan,
//! which are numbered in source order, and of the written text, as far as a frame remembers it. The pairs of
//! a configuration are ordered by number, so their hashes are added, which does not depend on the order.
//!
//! The free keys that an object remembers are left out: they determine which keys cannot come again, and
//! next to nothing about what comes. Configurations that differ only in these keys have one name, and so do
//! those whose texts differ only before their last [`TEXT`] bytes. All others differ, except with
//! probability 2⁻⁶⁴ for each pair. Nothing exact may depend on a name: the author of a grammar can make two
//! of them equal.
//!
//! Cost: the content takes O(grammar), once, when the first name is requested. A name takes O(pairs + the
//! data that their frames remember), once for each configuration; its callers usually have their names,
//! since they were states before. After that, a name is one load.

use std::hash::{Hash, Hasher};

use crate::grammar::ItemOrder;
use crate::pushdown::frame::{FrameId, FrameKey, Frames};
use crate::pushdown::object::progress::Progress;
use crate::pushdown::stack::{ConfigId, END, FINISHED, Stacks};
use crate::work::spend;

/// The number of last bytes of a key or a validated word that its name depends on.
const TEXT: usize = 64;

/// The number of values that are hashed in the time of one round of other loops.
const HASHES_A_ROUND: usize = 16;

/// A hash that depends only on the bytes written, each of whose bits depends on all of theirs (SplitMix64 at
/// each word).
#[derive(Default)]
struct Stable(u64);

impl Stable {
    fn word(&mut self, word: u64) {
        let mut mixed = (self.0 ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.0 = mixed ^ mixed >> 31;
    }
}

impl Hasher for Stable {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
        self.word(bytes.len() as u64);
    }

    fn write_u8(&mut self, number: u8) {
        self.word(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.word(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.word(number);
    }

    fn write_usize(&mut self, number: usize) {
        self.word(number as u64);
    }

    fn write_isize(&mut self, number: isize) {
        self.word(number as u64);
    }

    /// Never returns 0, which means that a name is not known.
    fn finish(&self) -> u64 {
        self.0.max(1)
    }
}

fn stable(write: impl FnOnce(&mut Stable)) -> u64 {
    let mut hasher = Stable::default();
    write(&mut hasher);
    hasher.finish()
}

impl Stacks {
    /// Returns the name of a configuration: the same for the same grammar, wherever and in whatever order it
    /// was found.
    pub fn name(&self, config: ConfigId) -> u64 {
        self.named(config).unwrap_or_else(|| self.find_name(config))
    }

    /// Returns the name of a configuration, if it is known. END and FINISHED are not found by their pairs.
    fn named(&self, config: ConfigId) -> Option<u64> {
        match config {
            END => Some(self.frames.content()),
            FINISHED => Some(stable(|name| (self.frames.content(), config).hash(name))),
            _ => self.known_name(config),
        }
    }

    #[cold]
    fn find_name(&self, config: ConfigId) -> u64 {
        let known = |config| self.named(config);
        let found = self.fold_callers(config, known, |pairs, name_of| {
            let pair = |&(frame, callers): &(FrameId, ConfigId)| {
                stable(|name| (self.frames.name(frame), name_of(callers)).hash(name))
            };
            let all = pairs.iter().map(pair).fold(0, u64::wrapping_add);
            stable(|name| (pairs.len(), all).hash(name))
        });
        for (&config, &name) in &found {
            self.remember_name(config, name);
        }
        found[&config]
    }
}

impl Frames {
    /// Returns the hash that distinguishes the grammar from all others.
    fn content(&self) -> u64 {
        *self.content.get_or_init(|| {
            stable(|name| {
                self.nfa.hash(name);
                self.forgets_keys.hash(name);
                for terminal in self.terminals.iter() {
                    terminal.as_ref().map(|terminal| terminal.structure()).hash(name);
                }
            })
        })
    }

    /// Returns the name of a frame without its callers. Numbers of the plan are those of the source;
    /// interned values are hashed by content.
    fn name(&self, id: FrameId) -> u64 {
        stable(|name| {
            let key = &self.get(id).key;
            std::mem::discriminant(key).hash(name);
            match key {
                FrameKey::Return => {}
                FrameKey::RuleStart(index) | FrameKey::TerminalStart(index) => index.hash(name),
                FrameKey::Rule { rule, nodes } => {
                    spend(nodes.len() / HASHES_A_ROUND);
                    (rule, nodes).hash(name);
                }
                FrameKey::Terminal(index, cursor) => (index, cursor).hash(name),
                FrameKey::Guarded(frame, guard) => (self.name(*frame), self.guards.set(*guard)).hash(name),
                FrameKey::ObjectList(object_list, progress) => {
                    self.hash_progress(*object_list, *progress, name)
                }
                FrameKey::NextKey(at) => {
                    (at.permit, at.node).hash(name);
                    self.hash_progress(at.object_list, at.progress, name);
                }
                FrameKey::Key {
                    object_list,
                    additional,
                    progress,
                    cursor,
                    text,
                } => {
                    (additional, cursor).hash(name);
                    self.hash_progress(*object_list, *progress, name);
                    self.hash_text(*text, name);
                }
                FrameKey::Validated {
                    validated,
                    cursor,
                    text,
                } => {
                    (validated, cursor).hash(name);
                    self.hash_text(*text, name);
                }
            }
        })
    }

    /// Hashes the data that a list remembers, without its free keys.
    fn hash_progress(&self, object_list: u32, progress: Progress, name: &mut Stable) {
        object_list.hash(name);
        match self.nfa.object_lists[object_list as usize].order {
            ItemOrder::Any => self.written.get(progress.done).hash(name),
            ItemOrder::Listed | ItemOrder::Leading => progress.done.hash(name),
        }
        self.met.get(progress.met).hash(name);
        (progress.count, progress.started, progress.separated).hash(name);
    }

    fn hash_text(&self, text: u32, name: &mut Stable) {
        self.texts.iter(text).take(TEXT).for_each(|byte| byte.hash(name));
    }
}
