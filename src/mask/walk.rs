//! A walk of threads through a trie.
//!
//! The trie is that of the vocabulary, or a small one of rests behind a terminal. A node is entered if some thread
//! can take its byte; a subtree that none can enter is passed over.

use std::cell::Cell;
use std::ops::Range;

use super::set::Mask;
use crate::machine::{ByteSet, Local, Stacks, Thread, Threads};
use crate::vocab::Trie;

/// What is kept from node to node, and from walk to walk of one mask.
pub(super) struct Walk<'a> {
    pub(super) threads: Threads<'a>,
    room: Room,
}

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
    pub(super) fn new(stacks: &'a Stacks) -> Walk<'a> {
        let mut room = SPARE.take().map_or_else(Room::default, |room| *room);
        Walk {
            threads: Threads::within(stacks, std::mem::take(&mut room.local)),
            room,
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
            if level.bytes.contains(byte) {
                depth += usize::from(self.enter(trie, (byte, node as usize), depth, mask, lost));
            }
        }
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
