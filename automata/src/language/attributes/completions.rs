//! The words that continue from a place in a terminal, and their number.

use super::words_left::WordsLeft;
use crate::language::counter::Cursor;
use crate::language::graph::DEAD;
use crate::language::terminal::Terminal;
use crate::work::spend;

impl Terminal {
    /// Returns `true` if there are more than `most` ways to complete a word from here. If units are counted,
    /// this iterates over lengths: each prefix leads to a word of its own, so the number of prefixes of one
    /// length plus the number of shorter words is a lower bound, and exact once no prefix is left. O(bytes
    /// until there are more · cursors reachable with that many).
    pub(crate) fn has_more_words(&self, from: Cursor, most: usize) -> bool {
        if most == 0 || self.is_infinite(from) {
            return true;
        }
        if self.counter.is_none() {
            let new = || WordsLeft::new(self.len(), self.stride, &self.classes);
            let words = self.words_left.get_or_init(new);
            let words = words.of(from.state, &self.next, &self.accepting);
            return words as usize > most;
        }
        // Each byte leads to words of its own, which usually settles it.
        let branches = (0..=255).filter(|&byte| self.next(from, byte).is_some());
        if branches.take(most + 1).count() > most {
            return true;
        }
        let most = most as u64;
        let mut words = 0u64;
        let mut beginnings = vec![(from, 1u64)];
        while !beginnings.is_empty() {
            spend(beginnings.len());
            let ended = beginnings.iter().filter(|(cursor, _)| self.is_accepting(*cursor));
            words = ended.fold(words, |sum, (_, ways)| sum.saturating_add(*ways));
            let longer = self.longer(&beginnings);
            let open = longer
                .iter()
                .fold(0u64, |sum, (_, ways)| sum.saturating_add(*ways));
            if words.saturating_add(open) > most {
                return true;
            }
            beginnings = longer;
        }
        false
    }

    /// Returns the cursors one byte further, with the number of paths to each.
    fn longer(&self, beginnings: &[(Cursor, u64)]) -> Vec<(Cursor, u64)> {
        let mut longer: Vec<(Cursor, u64)> = Vec::new();
        for &(cursor, ways) in beginnings {
            let next = (0..=255).filter_map(|byte| self.next(cursor, byte));
            longer.extend(next.map(|next| (next, ways)));
        }
        longer.sort_unstable_by_key(|&(cursor, _)| cursor);
        longer.dedup_by(|one, kept| {
            let same = one.0 == kept.0;
            if same {
                kept.1 = kept.1.saturating_add(one.1);
            }
            same
        });
        longer
    }

    /// Returns all ways to complete a word from here, or `None` if there are more than `cap`. O(cap · length
    /// of the words).
    pub fn words(&self, cursor: Cursor, cap: usize) -> Option<Vec<Vec<u8>>> {
        if self.has_more_words(cursor, cap) {
            return None;
        }
        let mut of_class: Vec<Vec<u8>> = vec![Vec::new(); self.stride];
        for byte in 0..=255 {
            of_class[self.classes[byte as usize] as usize].push(byte);
        }
        let mut words = Vec::new();
        let (mut open, mut bytes) = (vec![(cursor, Vec::new())], Vec::new());
        while let Some((cursor, text)) = open.pop() {
            spend(1);
            // Inside a word, usually only one byte can be read.
            let row = &self.next[cursor.state as usize * self.stride..][..self.stride];
            let ways = row.iter().zip(&of_class).filter(|(next, _)| **next != DEAD);
            bytes.clear();
            bytes.extend(ways.flat_map(|(_, bytes)| bytes));
            bytes.sort_unstable();
            for &byte in &bytes {
                if let Some(next) = self.next(cursor, byte) {
                    open.push((next, [&text[..], &[byte]].concat()));
                }
            }
            if self.is_accepting(cursor) {
                words.push(text);
            }
        }
        Some(words)
    }
}
