//! Converts a table over classes of letters to bytes: each character is written out as the bytes of its
//! UTF-8.
//!
//! ```text
//!   over characters   ○ ──é──► ●         over bytes   ○ ─C3─► ◦ ─A9─► ●
//! ```
//!
//! Which classes follow which first bytes depends only on the partition into classes, and is stored as a
//! tree. A state between two bytes of a character is identified by its node in that tree and by the targets
//! of the classes below the node; states that lead to the same targets by the same bytes are one.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use regex_syntax::utf8::Utf8Sequences;
use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;

use super::failure::Failure;
use super::letters::{Alphabet, Letters};

/// An edge that leads nowhere.
const NOWHERE: u32 = u32::MAX;

/// The initial capacity for states inside letters.
const INNER: usize = 16;

/// A table over classes of bytes.
pub(crate) struct Bytes {
    /// The class of each byte.
    pub(crate) classes: Box<[u8; 256]>,
    /// The number of classes.
    pub(crate) stride: usize,
    /// The next states, one row per state. The states of the original table come first and keep their
    /// numbers.
    pub(crate) next: Vec<u32>,
}

/// Spells a table in bytes. `edge` decodes the entries of the table: twice a state, plus a mark that is kept
/// at the last byte of its letter, or `u32::MAX`, which leads nowhere. `room` bounds the bytes of the new
/// table. O(states · nodes of the tree · classes of bytes).
pub(crate) fn spell(
    next: &[u32],
    edge: impl Fn(u32) -> u32,
    letters: &Letters,
    room: usize,
) -> Result<Bytes, Failure> {
    let tree = Tree::new(letters);
    let (classes, stride) = tree.byte_classes(letters.count());
    let states = next.len() / letters.count();
    let mut writer = TableWriter {
        letters: letters.count(),
        next,
        edge: &edge,
        nodes: tree.rows(&classes, stride),
        below: tree.classes_below(),
        stride,
        states: states as u32,
        inner: Vec::new(),
        known_rows: HashTable::new(),
        known: FxHashMap::default(),
    };
    let beyond = tree.classes_beyond_bytes();
    let (single, long) = writer.root();
    // The states inside letters come after them; there are few.
    let mut rows = Vec::with_capacity((states + INNER) * stride);
    // If letters of several bytes lead from two states to the same targets, the rows of the states differ
    // only at single-byte letters.
    let mut known: FxHashMap<Targets, usize> = FxHashMap::default();
    let (mut targets, mut last) = (Targets::new(), Targets::new());
    let mut last_representative = None;
    for state in 0..states {
        targets.clear();
        targets.extend(beyond.iter().map(|&class| writer.target(state, class)));
        let start = rows.len();
        rows.resize(start + stride, NOWHERE);
        // Most states are like the previous one: inside words no letter of several bytes can be read.
        let representative = match last_representative {
            Some(representative) if targets == last => Some(representative),
            _ => known.get(&targets).copied(),
        };
        match representative {
            Some(representative) => long
                .iter()
                .for_each(|&(byte, _)| rows[start + byte] = rows[representative + byte]),
            None => {
                known.insert(targets.clone(), start);
                for &(byte, child) in &long {
                    rows[start + byte] = writer.inside(child, state);
                }
            }
        }
        last_representative = Some(representative.unwrap_or(start));
        std::mem::swap(&mut targets, &mut last);
        let letters = &next[state * letters.count()..(state + 1) * letters.count()];
        for &(byte, class) in &single {
            rows[start + byte] = edge(letters[class as usize]);
        }
        if (rows.len() + writer.inner.len()) * 4 > room {
            return Err(Failure::Limit);
        }
    }
    rows.append(&mut writer.inner);
    Ok(Bytes {
        classes,
        stride,
        next: rows,
    })
}

/// The targets of some classes of letters. Usually all characters beyond ASCII are one class.
type Targets = SmallVec<[u32; 4]>;

/// Classes of bytes, each with its target.
type Entries<T> = Vec<(usize, T)>;

/// The result of reading a byte at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum After {
    /// No letter begins with these bytes.
    Nothing,
    /// The letter is complete, and of this class.
    Class(u16),
    /// More bytes follow: a node of the tree.
    Node(u32),
}

impl After {
    /// Returns a unique number, given `kinds`, the number of classes of letters and nodes.
    fn number(self, kinds: usize) -> usize {
        match self {
            After::Nothing => kinds,
            After::Class(class) => class as usize,
            After::Node(node) => kinds - 1 - node as usize,
        }
    }
}

/// The tree of the bytes of letters. Node 0 is the beginning of a letter.
struct Tree {
    nodes: Vec<Vec<(u8, u8, After)>>,
}

impl Tree {
    fn new(letters: &Letters) -> Tree {
        let mut tree = Tree {
            nodes: vec![Vec::new()],
        };
        for (first, last, class) in letters.runs() {
            match letters.alphabet() {
                Alphabet::Bytes => tree.nodes[0].push((first as u8, last as u8, After::Class(class))),
                Alphabet::Chars => tree.add_chars(first, last, class),
            }
        }
        tree
    }

    fn add_chars(&mut self, first: u32, last: u32, class: u16) {
        // The code points of surrogates are not characters.
        for (first, last) in [(first, last.min(0xd7ff)), (first.max(0xe000), last)] {
            let (Some(first), Some(last)) = (char::from_u32(first), char::from_u32(last)) else {
                continue;
            };
            if first > last {
                continue;
            }
            for spelling in Utf8Sequences::new(first, last) {
                let bytes = spelling.as_slice();
                let (end, beginning) = bytes.split_last().expect("a character has a byte");
                let node = beginning
                    .iter()
                    .fold(0, |node, range| self.child(node, range.start, range.end));
                self.nodes[node as usize].push((end.start, end.end, After::Class(class)));
            }
        }
    }

    /// Returns the node after a range of first bytes. Characters come in order, so it is the last child or a
    /// new one; a range of several bytes occurs only with all possible continuations.
    fn child(&mut self, node: u32, first: u8, last: u8) -> u32 {
        let new = self.nodes.len() as u32;
        let children = &mut self.nodes[node as usize];
        match children.last() {
            Some(&(from, to, After::Node(known))) if (from, to) == (first, last) => known,
            _ => {
                children.push((first, last, After::Node(new)));
                self.nodes.push(Vec::new());
                new
            }
        }
    }

    /// Partitions the bytes into classes that no node distinguishes, and returns the classes and their
    /// number.
    fn byte_classes(&self, letters: usize) -> (Box<[u8; 256]>, usize) {
        // All bytes between two cuts are equivalent, so only one of them is examined.
        let mut cut = [false; 257];
        cut[0] = true;
        for &(first, last, _) in self.nodes.iter().flatten() {
            cut[usize::from(first)] = true;
            cut[usize::from(last) + 1] = true;
        }
        let starts: Vec<u8> = (0..=255).filter(|&byte| cut[usize::from(byte)]).collect();
        let mut division = Division {
            class_of: vec![0; starts.len()],
            count: 1,
            starts,
        };
        for node in &self.nodes {
            division.refine(node, letters + self.nodes.len());
        }
        division.classes()
    }

    /// Returns, for each node, the result of reading each class of bytes.
    fn rows(&self, classes: &[u8; 256], stride: usize) -> Vec<Box<[After]>> {
        let row = |node: &Vec<(u8, u8, After)>| {
            let mut row = vec![After::Nothing; stride].into_boxed_slice();
            for &(first, last, after) in node {
                for &class in &classes[first as usize..=last as usize] {
                    row[class as usize] = after;
                }
            }
            row
        };
        self.nodes.iter().map(row).collect()
    }

    /// Returns the classes of letters that take more than one byte.
    fn classes_beyond_bytes(&self) -> Vec<u16> {
        let mut classes: Vec<u16> = (self.nodes[1..].iter().flatten())
            .filter_map(|&(.., after)| match after {
                After::Class(class) => Some(class),
                _ => None,
            })
            .collect();
        classes.sort_unstable();
        classes.dedup();
        classes
    }

    /// Returns the classes of letters below each node, in order. A child has a larger number than its parent.
    fn classes_below(&self) -> Vec<Vec<u16>> {
        let mut below: Vec<Vec<u16>> = vec![Vec::new(); self.nodes.len()];
        for node in (0..self.nodes.len()).rev() {
            let mut classes = Vec::new();
            for &(_, _, after) in &self.nodes[node] {
                match after {
                    After::Class(class) => classes.push(class),
                    After::Node(child) => classes.extend(&below[child as usize]),
                    After::Nothing => {}
                }
            }
            classes.sort_unstable();
            classes.dedup();
            below[node] = classes;
        }
        below
    }
}

/// The classes of bytes under construction.
struct Division {
    /// The bytes that are examined, in order, and their classes.
    starts: Vec<u8>,
    class_of: Vec<u8>,
    count: usize,
}

impl Division {
    /// Separates bytes with different results at a node. `kinds` bounds the number of results.
    fn refine(&mut self, node: &[(u8, u8, After)], kinds: usize) {
        // The result of the first byte of each class; bytes with another result form a new class.
        let mut first: Vec<Option<After>> = vec![None; self.count];
        let mut others: Vec<(u8, After, u8)> = Vec::new();
        // The root node is refined first, when all bytes are in one class and have many results.
        let mut of_things = if self.count == 1 {
            vec![None; kinds + 1]
        } else {
            Vec::new()
        };
        let mut ranges = node.iter().peekable();
        for (class, &start) in self.class_of.iter_mut().zip(&self.starts) {
            while ranges.peek().is_some_and(|range| range.1 < start) {
                ranges.next();
            }
            let after = match ranges.peek() {
                Some(&&(from, _, after)) if from <= start => after,
                _ => After::Nothing,
            };
            let of_class = &mut first[*class as usize];
            if of_class.is_none() {
                *of_class = Some(after);
            }
            if *of_class == Some(after) {
                continue;
            }
            let known = match of_things.is_empty() {
                true => others
                    .iter()
                    .find(|other| other.0 == *class && other.1 == after)
                    .map(|other| other.2),
                false => of_things[after.number(kinds)],
            };
            let found = known.unwrap_or(self.count as u8);
            if known.is_none() {
                self.count += 1;
                match of_things.is_empty() {
                    true => others.push((*class, after, found)),
                    false => of_things[after.number(kinds)] = Some(found),
                }
            }
            *class = found;
        }
    }

    /// Returns the class of each byte, numbered in the order of the bytes, and the number of classes.
    fn classes(self) -> (Box<[u8; 256]>, usize) {
        let mut numbers: Vec<Option<u8>> = vec![None; self.count];
        let mut classes = Box::new([0u8; 256]);
        let mut next = 0;
        for (&class, &start) in self.class_of.iter().zip(&self.starts) {
            let number = *numbers[class as usize].get_or_insert_with(|| {
                next += 1;
                (next - 1) as u8
            });
            classes[start as usize..].fill(number);
        }
        (classes, self.count)
    }
}

/// The table under construction.
struct TableWriter<'a, E> {
    /// The number of classes of letters.
    letters: usize,
    next: &'a [u32],
    edge: E,
    /// The result of reading each class of bytes at each node of the tree.
    nodes: Vec<Box<[After]>>,
    below: Vec<Vec<u16>>,
    stride: usize,
    states: u32,
    /// The rows of the states inside letters, which are numbered after those between letters.
    inner: Vec<u32>,
    known_rows: HashTable<u32>,
    /// The edges to states inside letters, by node and by the targets of the classes below it.
    known: FxHashMap<(u32, Targets), u32>,
}

impl<E: Fn(u32) -> u32> TableWriter<'_, E> {
    fn target(&self, state: usize, class: u16) -> u32 {
        (self.edge)(self.next[state * self.letters + class as usize])
    }

    /// Returns the classes of bytes that are letters, each with the class of the letter, and those that begin
    /// longer letters, each with its node.
    fn root(&self) -> (Entries<u16>, Entries<u32>) {
        let (mut single, mut long) = (Vec::new(), Vec::new());
        for (byte, after) in self.nodes[0].iter().enumerate() {
            match *after {
                After::Nothing => {}
                After::Class(class) => single.push((byte, class)),
                After::Node(child) => long.push((byte, child)),
            }
        }
        (single, long)
    }

    /// Writes the targets of bytes from a node inside a letter.
    fn write(&mut self, node: u32, state: usize, row: &mut [u32]) {
        for (class, entry) in row.iter_mut().enumerate() {
            *entry = match self.nodes[node as usize][class] {
                After::Nothing => NOWHERE,
                After::Class(class) => self.target(state, class),
                After::Node(child) => self.inside(child, state),
            };
        }
    }

    /// Returns the edge to the state at a node inside a letter.
    fn inside(&mut self, node: u32, state: usize) -> u32 {
        let below = &self.below[node as usize];
        let targets: Targets = below.iter().map(|&class| self.target(state, class)).collect();
        if targets.iter().all(|&target| target == NOWHERE) {
            return NOWHERE;
        }
        let key = (node, targets);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let mut row = vec![NOWHERE; self.stride];
        self.write(node, state, &mut row);
        let number = self.row(&row);
        let edge = (self.states + number) << 1;
        self.known.insert(key, edge);
        edge
    }

    /// Returns the number of a row inside letters, which is added if it is new.
    fn row(&mut self, row: &[u32]) -> u32 {
        let (inner, stride) = (&mut self.inner, self.stride);
        let same = |&at: &u32| inner[at as usize * stride..][..stride] == *row;
        let hash = FxBuildHasher.hash_one(row);
        if let Some(&known) = self.known_rows.find(hash, same) {
            return known;
        }
        let new = (inner.len() / stride) as u32;
        inner.extend(row);
        let hash_of = |&at: &u32| FxBuildHasher.hash_one(&inner[at as usize * stride..][..stride]);
        self.known_rows.insert_unique(hash, new, hash_of);
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::characters::Automaton;
    use crate::language::characters::Room;
    use crate::limits::Cancel;

    /// Returns the result of reading a byte at each node.
    fn column(tree: &Tree, byte: u8) -> Vec<After> {
        let at = |node: &Vec<(u8, u8, After)>| {
            let range = node.iter().find(|range| range.0 <= byte && byte <= range.1);
            range.map_or(After::Nothing, |range| range.2)
        };
        tree.nodes.iter().map(at).collect()
    }

    #[test]
    fn bytes_are_of_one_class_where_no_node_tells_them_apart() {
        let cancel = &Cancel::default();
        for pattern in [
            "a",
            "[a-cé-€]x|[^b€]y",
            r"\s*\w",
            "[\u{d7ff}-\u{e000}😀]|é[\u{0}-\u{7f}]",
            "(?-u:[\\x00-\\x7f])*",
        ] {
            let hir = regex_syntax::parse(pattern).expect("the test's pattern is well formed");
            for alphabet in [Alphabet::Chars, Alphabet::Bytes] {
                let room = Room {
                    bytes: 1 << 20,
                    cancel,
                };
                let automaton = Automaton::new(&hir, alphabet, room).expect("it is small");
                let tree = Tree::new(automaton.letters());
                let (classes, count) = tree.byte_classes(automaton.letters().count());
                // The naive way: a class for each list of results of a byte, in the order of the bytes.
                let mut lists: Vec<Vec<After>> = Vec::new();
                for byte in 0..=255 {
                    let column = column(&tree, byte);
                    let known = lists.iter().position(|list| *list == column);
                    let class = known.unwrap_or(lists.len());
                    if known.is_none() {
                        lists.push(column);
                    }
                    assert_eq!(classes[byte as usize] as usize, class, "{pattern}, byte {byte}");
                }
                assert_eq!(count, lists.len(), "{pattern}");
            }
        }
    }
}
