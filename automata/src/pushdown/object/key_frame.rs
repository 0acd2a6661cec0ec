//! The frames of keys: which keys can still be written, and what follows them.

use std::sync::Arc;

use smallvec::smallvec;

use super::key_set::KeySet;
use super::progress::Progress;
use crate::language::{Cursor, Terminal};
use crate::pushdown::frame::{Call, Calls, FrameId, FrameKey, Frames, RETURN};
use crate::pushdown::intern::interner::NIL;
use crate::pushdown::plan::nfa::Callee;

/// A byte that occurs in no text.
const NO_TEXT: u8 = 0xFF;

impl Frames {
    /// Returns the used keys, in order. O(their length), unless this list or the one that it extends was
    /// requested last.
    pub(crate) fn used_keys(&self, progress: Progress) -> Arc<KeySet> {
        self.last_used.keys(progress.used, &self.keys, &self.texts)
    }

    pub(crate) fn key_terminal(&self, object_list: u32, additional: u32) -> &Arc<Terminal> {
        let key = self.nfa.object_lists[object_list as usize].additional[additional as usize].key;
        self.terminal(key.expect("only keyed items have key frames"))
    }

    pub(crate) fn key_calls(
        &self,
        object_list: u32,
        additional: u32,
        progress: Progress,
        cursor: Cursor,
        text: u32,
    ) -> Calls {
        if !self.key_terminal(object_list, additional).is_accepting(cursor)
            || self.is_used(object_list, progress, text)
        {
            return Calls::new();
        }
        let then = self.frame_after_key(object_list, additional, progress, text);
        smallvec![Call {
            callee: self.item_start(object_list, additional),
            then,
        }]
    }

    pub(crate) fn frame_after_key(
        &self,
        object_list: u32,
        additional: u32,
        progress: Progress,
        text: u32,
    ) -> FrameId {
        let after = self.after_additional(object_list, additional, progress);
        let after = match self.forgets_keys {
            true => after,
            false => Progress {
                used: self.keys.push(progress.used, text),
                ..after
            },
        };
        self.object_list_frame(object_list, after)
    }

    pub(crate) fn is_used(&self, object_list: u32, progress: Progress, text: u32) -> bool {
        let plan = &self.nfa.object_lists[object_list as usize];
        self.keys.iter(progress.used).any(|used| used == text)
            || (!plan.taken.is_empty() && plan.is_taken(&self.texts.to_vec(text)))
    }

    /// Returns `true` if every key can be written: none was written, and none is taken.
    fn all_keys_are_free(&self, object_list: u32, progress: Progress) -> bool {
        self.unwritable(object_list, progress) == 0
    }

    /// Returns how many keys can no longer be written, known or not.
    fn unwritable(&self, object_list: u32, progress: Progress) -> usize {
        let taken = self.nfa.object_lists[object_list as usize].taken.len();
        self.used_keys(progress).len() + taken + usize::from(progress.doubted)
    }

    /// Returns `true` if more keys continue from a cursor than can no longer be written, whichever those are.
    pub(crate) fn keys_abound(
        &self,
        (object_list, additional, progress): (u32, u32, Progress),
        cursor: Cursor,
    ) -> bool {
        let terminal = self.key_terminal(object_list, additional);
        terminal.is_infinite(cursor)
            || terminal.has_more_words(cursor, self.unwritable(object_list, progress))
    }

    /// Returns the frame of an object list after any key with its item, for looking ahead: the progress does
    /// not know the key. Returns `None` if the continuation depends on the key, as when keys can run out or a
    /// key in doubt was written before.
    pub(crate) fn frame_after_any_key(&self, id: FrameId) -> Option<FrameId> {
        let (object_list, additional, progress, _) = self.key_parts(id);
        let plan = &self.nfa.object_lists[object_list as usize];
        let after = Progress {
            doubted: true,
            ..self.after_additional(object_list, additional, progress)
        };
        let most = self.unwritable(object_list, after);
        let abounds = |&key: &u32| {
            let terminal = self.terminal(key);
            terminal.has_more_words(terminal.start(), most)
        };
        // If some keys abound, an item can follow in any case; keys that may run out are in doubt once they
        // begin.
        let mut keys = plan
            .additional
            .iter()
            .filter_map(|additional| additional.key.as_ref())
            .peekable();
        let is_known = !progress.doubted
            && !plan.has_demands()
            && self.capacities[object_list as usize].is_none()
            && (keys.peek().is_none() || keys.any(abounds));
        is_known.then(|| self.object_list_frame(object_list, after))
    }

    /// Returns `true` if the key of the frame follows an unknown key.
    pub(crate) fn is_doubted(&self, id: FrameId) -> bool {
        self.key_parts(id).2.doubted
    }

    /// Returns `true` if whether a key may be at this cursor depends on a key in doubt.
    pub(crate) fn is_in_doubt(&self, id: FrameId, cursor: Cursor) -> bool {
        let (object_list, additional, progress, _) = self.key_parts(id);
        progress.doubted && !self.keys_abound((object_list, additional, progress), cursor)
    }

    /// Returns `true` if some key that continues from here has not been written yet.
    pub(crate) fn unused_key_exists(
        &self,
        (object_list, additional, progress): (u32, u32, Progress),
        cursor: Cursor,
        prefix: &[u8],
    ) -> bool {
        self.keys_abound((object_list, additional, progress), cursor)
            || self.unused_among(
                &self.used_keys(progress),
                (object_list, additional),
                cursor,
                prefix,
            )
    }

    /// Checks for an unwritten key like [`unused_key_exists`](Self::unused_key_exists), given the written
    /// keys in order.
    fn unused_among(
        &self,
        used: &KeySet,
        (object_list, additional): (u32, u32),
        cursor: Cursor,
        prefix: &[u8],
    ) -> bool {
        let terminal = self.key_terminal(object_list, additional);
        if terminal.is_infinite(cursor) {
            return true;
        }
        let taken = self.nfa.object_lists[object_list as usize].taken.after(prefix);
        let unwritable = used.after(prefix).chain(taken);
        let unwritable = unwritable.filter(|left| terminal.matches_from(cursor, left));
        terminal.has_more_words(cursor, unwritable.count())
    }

    pub(crate) fn key_parts(&self, id: FrameId) -> (u32, u32, Progress, u32) {
        match self.get(id).key {
            FrameKey::Key {
                object_list,
                additional,
                progress,
                text,
                ..
            } => (object_list, additional, progress, text),
            _ => unreachable!("asked only of the frames of keys"),
        }
    }

    /// Returns the cursor of a key after one more byte. `cursor` is the previous one, and `written` are the
    /// bytes since the key frame `id`, the new one last. Returns `None` if no unwritten key continues with
    /// the byte.
    pub(crate) fn read_key(&self, id: FrameId, cursor: Cursor, written: &[u8]) -> Option<Cursor> {
        let (object_list, additional, progress, text) = self.key_parts(id);
        let terminal = self.key_terminal(object_list, additional);
        let next = terminal.next(cursor, *written.last()?)?;
        if self.keys_abound((object_list, additional, progress), next) {
            return Some(next);
        }
        let prefix = [&self.texts.to_vec(text)[..], written].concat();
        self.unused_among(
            &self.used_keys(progress),
            (object_list, additional),
            next,
            &prefix,
        )
        .then_some(next)
    }

    /// Returns the frame of a key that has continued with these bytes.
    pub(crate) fn key_frame(&self, id: FrameId, cursor: Cursor, written: &[u8]) -> FrameId {
        let (object_list, additional, progress, text) = self.key_parts(id);
        let text = match self.forgets_keys {
            true => self.excluded_text(object_list, text, written),
            false => self.add_text(text, written),
        };
        self.intern(FrameKey::Key {
            object_list,
            additional,
            progress,
            cursor,
            text,
        })
    }

    /// Returns the text of a key if it is a prefix of an excluded key. All other keys share one text, which
    /// is a prefix of none.
    fn excluded_text(&self, object_list: u32, text: u32, written: &[u8]) -> u32 {
        let key = [&self.texts.to_vec(text)[..], written].concat();
        let excluded = &self.nfa.object_lists[object_list as usize].taken;
        match excluded.after(&key).next() {
            Some(_) => self.add_text(text, written),
            None => self.add_text(NIL, &[NO_TEXT]),
        }
    }

    pub(crate) fn add_text(&self, text: u32, bytes: &[u8]) -> u32 {
        bytes.iter().fold(text, |text, &byte| self.texts.push(text, byte))
    }

    /// Returns the points at which a key in progress would run into keys that were written before: for each
    /// written key that it could still become, the shortest bytes after which no unwritten key is left. If
    /// `fits` is false for the rest of a written key, that key may be omitted if all of the rest is needed.
    pub(crate) fn taken(&self, id: FrameId, fits: impl Fn(&[u8]) -> bool) -> Vec<Vec<u8>> {
        let (object_list, additional, progress, text) = self.key_parts(id);
        if self.all_keys_are_free(object_list, progress) {
            return Vec::new();
        }
        let FrameKey::Key { cursor, .. } = self.get(id).key else {
            return Vec::new();
        };
        let terminal = self.key_terminal(object_list, additional);
        let prefix = self.texts.to_vec(text);
        let used = self.used_keys(progress);
        let taken = self.nfa.object_lists[object_list as usize].taken.after(&prefix);
        let lefts = used.after(&prefix).chain(taken);
        if terminal.is_endless_inside() {
            let fitting = lefts.filter(|left| fits(left) && terminal.matches_from(cursor, left));
            return fitting.map(<[u8]>::to_vec).collect();
        }
        let is_left = |left: &[u8]| {
            let at = read(terminal, cursor, left)?;
            let text = [&prefix[..], left].concat();
            Some(self.unused_among(&used, (object_list, additional), at, &text))
        };
        // The longer the prefix of a key, the fewer keys are left.
        let shortest = |left: &[u8]| {
            terminal.matches_from(cursor, left).then_some(())?;
            let (mut least, mut most) = (1, left.len());
            while least < most {
                // Usually another key is left up to the last byte.
                let length = if most == left.len() {
                    most - 1
                } else {
                    (least + most) / 2
                };
                match is_left(&left[..length])? {
                    true => least = length + 1,
                    false => most = length,
                }
            }
            Some(left[..most].to_vec())
        };
        lefts.filter_map(shortest).collect()
    }

    /// Returns `true` if a key that has continued from the frame with these bytes may end there.
    pub(crate) fn key_ends(&self, id: FrameId, cursor: Cursor, written: &[u8]) -> bool {
        let (object_list, _, progress, text) = self.key_parts(id);
        if !self.key_terminal_of(id).is_accepting(cursor) {
            return false;
        }
        self.all_keys_are_free(object_list, progress) || {
            let whole = [&self.texts.to_vec(text)[..], written].concat();
            !self.nfa.object_lists[object_list as usize].is_taken(&whole)
                && !self.used_keys(progress).contains(&whole)
        }
    }

    /// Returns the texts of at most `longest` bytes that complete the key of a frame, after these bytes of
    /// it, to one that may not be written; `None` if it follows an unknown key.
    pub(crate) fn unwritable_after(
        &self,
        id: FrameId,
        written: &[u8],
        longest: usize,
    ) -> Option<Vec<Vec<u8>>> {
        let (object_list, _, progress, text) = self.key_parts(id);
        if progress.doubted {
            return None;
        }
        if self.all_keys_are_free(object_list, progress) {
            return Some(Vec::new());
        }
        let prefix = [&self.texts.to_vec(text)[..], written].concat();
        let used = self.used_keys(progress);
        let taken = self.nfa.object_lists[object_list as usize].taken.after(&prefix);
        Some(
            used.after(&prefix)
                .chain(taken)
                .filter(|left| left.len() <= longest)
                .map(<[u8]>::to_vec)
                .collect(),
        )
    }

    /// Returns the language of the keys of a key frame.
    pub(crate) fn key_terminal_of(&self, id: FrameId) -> &Arc<Terminal> {
        let (object_list, additional, ..) = self.key_parts(id);
        self.key_terminal(object_list, additional)
    }

    /// Returns the start of the item after a key.
    pub(crate) fn item_of(&self, id: FrameId) -> FrameId {
        let (object_list, additional, ..) = self.key_parts(id);
        self.item_start(object_list, additional)
    }

    /// Returns the frame in which the item after a key begins. The item may be empty; then the key is the
    /// whole item.
    fn item_start(&self, object_list: u32, additional: u32) -> FrameId {
        let item =
            Callee::Rule(self.nfa.object_lists[object_list as usize].additional[additional as usize].item);
        if self.analysis.is_nullable(item) {
            RETURN
        } else {
            self.start(item)
        }
    }
}

/// Returns the cursor of a terminal after these bytes.
fn read(terminal: &Terminal, cursor: Cursor, bytes: &[u8]) -> Option<Cursor> {
    let mut bytes = bytes.iter();
    bytes.try_fold(cursor, |cursor, &byte| terminal.next(cursor, byte))
}
