//! A walk of threads through a trie.
//!
//! The trie is that of the vocabulary, or a small one of rests behind a terminal. A node is entered if some thread
//! can take its byte; a subtree that none can enter is passed over, and so is one through which a thread stays in its
//! terminal whatever is read: all of its tokens may come. Behind `x + ` a variable may begin with any letter, and of the
//! 100,000 nodes below all letters one in thirty is entered.

use std::cell::Cell;
use std::ops::Range;

use super::loops::Loops;
use super::set::Mask;
use crate::machine::{ByteSet, Local, Stacks, Thread, Threads};
use crate::vocab::Trie;

/// What is kept from node to node, and from walk to walk of one mask.
pub(super) struct Walk<'a> {
    pub(super) threads: Threads<'a>,
    room: Room,
    /// The length of the longest token.
    horizon: u64,
    /// What leads back to the states of a terminal, for those that came to a large subtree.
    loops: Vec<(u32, Loops<'a>)>,
    /// How many nodes were entered.
    entered: u32,
}

/// Subtrees with fewer nodes than this are entered sooner than it is found out what leads back to a state, unless the
/// walk has entered so many others that it will need to know.
const LARGE: u32 = 1024;
const MANY_ENTERED: u32 = 512;
/// Subtrees with fewer nodes than this are entered in any case.
const SMALL: u32 = 64;

/// Room for a walk, handed on to the next one of the same operating-system thread.
#[derive(Default)]
struct Room {
    local: Local,
    path: Vec<u8>,
    levels: Vec<Level>,
    next: Vec<Thread>,
}

/// Room for more readers than this is not handed on.
const KEPT_READERS: usize = 1 << 12;

thread_local! {
    static SPARE: Cell<Option<Box<Room>>> = const { Cell::new(None) };
}

/// What can be read at one depth.
#[derive(Default)]
struct Level {
    readers: Vec<Thread>,
    bytes: ByteSet,
    /// The children that are left to be looked at.
    places: Range<u32>,
}

impl<'a> Walk<'a> {
    /// A walk for tokens of up to `horizon` bytes.
    pub(super) fn new(stacks: &'a Stacks, horizon: u64) -> Walk<'a> {
        let mut room = SPARE.take().map_or_else(Room::default, |room| *room);
        Walk {
            threads: Threads::within(stacks, std::mem::take(&mut room.local)),
            room,
            horizon,
            loops: Vec::new(),
            entered: 0,
        }
    }

    /// The bytes that these readers may take.
    pub(super) fn bytes(&self, readers: &[Thread]) -> ByteSet {
        let mut bytes = ByteSet::default();
        for reader in readers {
            self.threads.add_bytes(reader, &mut bytes);
        }
        bytes
    }

    /// Begins to read with these readers, which may take these bytes.
    pub(super) fn start(&mut self, readers: &[Thread], bytes: ByteSet) {
        self.room.level(0);
        self.room.levels[0].readers.clear();
        self.room.levels[0].readers.extend_from_slice(readers);
        self.room.levels[0].bytes = bytes;
    }

    /// Adds the tokens of a node and below it, or of the whole trie, that the readers of the [`start`](Self::start)
    /// allow. Tokens of which only their own bytes can tell are put into `lost` instead.
    pub(super) fn tokens(&mut self, trie: &Trie, top: Option<usize>, mask: &mut Mask, lost: &mut Vec<u32>) {
        let mut depth = 0;
        match top {
            None => self.room.levels[0].places = trie.children(None),
            Some(node) => {
                self.room.levels[0].places = 0..0;
                let byte = trie.nodes()[node].byte;
                depth += usize::from(self.enter(trie, (byte, node), 0, mask, lost));
            }
        }
        loop {
            let level = &mut self.room.levels[depth];
            let Some(place) = level.places.next() else {
                match depth.checked_sub(1) {
                    Some(above) => depth = above,
                    None => return,
                }
                continue;
            };
            let (byte, node) = trie.child(place);
            if !level.bytes.contains(byte) {
                continue;
            }
            if self.stays(trie, node as usize, depth) {
                mask.insert_all(trie.tokens_below(node as usize));
                continue;
            }
            depth += usize::from(self.enter(trie, (byte, node as usize), depth, mask, lost));
        }
    }

    /// Whether a reader of this depth is back in its terminal wherever the subtree of a node is left.
    fn stays(&mut self, trie: &Trie, node: usize, depth: usize) -> bool {
        let least = if self.entered < MANY_ENTERED { LARGE } else { SMALL };
        if trie.nodes()[node].end - (node as u32) < least {
            return false;
        }
        let readers = self.room.levels[depth].readers.iter();
        for reader in readers {
            let Some((index, terminal, state)) = self.threads.plain(reader, self.horizon) else {
                continue;
            };
            let known = self.loops.iter().position(|&(known, _)| known == index);
            let at = known.unwrap_or_else(|| {
                self.loops.push((index, Loops::new(terminal)));
                self.loops.len() - 1
            });
            if self.loops[at].1.pass_over(trie, node, state) {
                return true;
            }
        }
        false
    }

    /// Reads the byte of a node and adds the tokens that end there. Whether a level was made below.
    fn enter(
        &mut self,
        trie: &Trie,
        (byte, node): (u8, usize),
        depth: usize,
        mask: &mut Mask,
        lost: &mut Vec<u32>,
    ) -> bool {
        self.entered += 1;
        let Room {
            path, levels, next, ..
        } = &mut self.room;
        path.truncate(depth);
        path.push(byte);
        self.threads.step(&levels[depth].readers, path, next);
        if self.threads.take_lost() {
            lost.extend_from_slice(trie.tokens_below(node));
            return false;
        }
        if next.is_empty() {
            return false;
        }
        mask.insert_all(trie.tokens_at(&trie.nodes()[node]));
        let places = trie.children(Some(node));
        if places.is_empty() {
            return false;
        }
        self.descend(places, depth);
        if self.threads.take_lost() {
            lost.extend_from_slice(trie.tokens_below(node));
            return false;
        }
        true
    }

    /// Makes the level below a node that was entered.
    fn descend(&mut self, places: Range<u32>, depth: usize) {
        self.room.level(depth + 1);
        let Room {
            path, levels, next, ..
        } = &mut self.room;
        let level = &mut levels[depth + 1];
        self.threads.expand(next, path, &mut level.readers);
        level.places = places;
        level.bytes = ByteSet::default();
        for reader in &level.readers {
            self.threads.add_bytes(reader, &mut level.bytes);
        }
    }

    /// Whether a reader allows these bytes; `None` if threads cannot tell.
    pub(super) fn allows(&mut self, reader: Thread, bytes: &[u8]) -> Option<bool> {
        let mut readers = vec![reader];
        let Room { path, next, .. } = &mut self.room;
        path.clear();
        for (at, &byte) in bytes.iter().enumerate() {
            path.push(byte);
            self.threads.step(&readers, path, next);
            if at + 1 < bytes.len() {
                self.threads.expand(next, path, &mut readers);
            }
            if self.threads.take_lost() {
                return None;
            }
        }
        Some(!next.is_empty())
    }
}

impl Room {
    /// Makes sure that there is a level at this depth, if there is one above.
    fn level(&mut self, depth: usize) {
        if self.levels.len() == depth {
            self.levels.push(Level::default());
        }
    }
}

impl Drop for Walk<'_> {
    fn drop(&mut self) {
        let mut room = std::mem::take(&mut self.room);
        room.local = self.threads.leave();
        room.levels
            .retain(|level| level.readers.capacity() <= KEPT_READERS);
        SPARE.set(Some(Box::new(room)));
    }
}
