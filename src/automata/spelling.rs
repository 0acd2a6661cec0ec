//! From classes of letters to bytes: each character is written out as the bytes of its UTF-8.
//!
//! ```text
//!   over characters   ○ ──é──► ●         over bytes   ○ ─C3─► ◦ ─A9─► ●
//! ```
//!
//! Which classes stand behind which first bytes is a tree of the division alone. A state between two bytes of a
//! character is known by its place in that tree and by where the classes below it lead; those that lead to the same
//! places by the same bytes are one.

use regex_syntax::utf8::Utf8Sequences;
use rustc_hash::FxHashMap;

use super::Failure;
use super::letters::{Alphabet, Letters};

/// An edge that leads nowhere.
const NOWHERE: u32 = u32::MAX;

/// A table over classes of bytes.
pub(crate) struct Bytes {
    /// The class of each byte.
    pub(crate) classes: Box<[u8; 256]>,
    /// How many classes there are.
    pub(crate) stride: usize,
    /// A row for each state. The states of the table it is made from come first and keep their numbers.
    pub(crate) next: Vec<u32>,
}

/// Spells a table out. An entry is twice a state, plus a mark that stays at the last byte of its letter, or `u32::MAX`,
/// which leads nowhere. `room` bounds the bytes of the new table. O(states · nodes of the tree · classes of bytes).
pub(crate) fn spell(next: &[u32], letters: &Letters, room: usize) -> Result<Bytes, Failure> {
    let tree = Tree::new(letters);
    let (classes, stride) = tree.byte_classes();
    let states = next.len() / letters.count();
    let mut writer = Writer {
        letters: letters.count(),
        next,
        nodes: tree.rows(&classes, stride),
        below: tree.classes_below(),
        stride,
        states: states as u32,
        inner: Vec::new(),
        known_rows: FxHashMap::default(),
        known: FxHashMap::default(),
    };
    let beyond = tree.classes_beyond_bytes();
    let mut rows = Vec::with_capacity(states * stride);
    // The rows of states from which letters of several bytes lead to the same places are the same up to single bytes.
    let mut known: FxHashMap<Vec<u32>, usize> = FxHashMap::default();
    let mut targets = Vec::new();
    for state in 0..states {
        targets.clear();
        targets.extend(beyond.iter().map(|&class| writer.target(state, class)));
        let start = rows.len();
        match known.get(&targets) {
            Some(&like) => rows.extend_from_within(like..like + stride),
            None => {
                known.insert(targets.clone(), start);
                rows.resize(start + stride, NOWHERE);
                writer.write_long(state, &mut rows[start..]);
            }
        }
        writer.write_single(state, &mut rows[start..]);
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

/// What a byte leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Behind {
    /// No letter begins like this.
    Nothing,
    /// The letter is complete, and of this class.
    Class(u16),
    /// More bytes: a node of the tree.
    Node(u32),
}

/// How letters are spelled. Node 0 is where they begin.
struct Tree {
    nodes: Vec<Vec<(u8, u8, Behind)>>,
}

impl Tree {
    fn new(letters: &Letters) -> Tree {
        let mut tree = Tree {
            nodes: vec![Vec::new()],
        };
        for (first, last, class) in letters.runs() {
            match letters.alphabet() {
                Alphabet::Bytes => tree.nodes[0].push((first as u8, last as u8, Behind::Class(class))),
                Alphabet::Chars => tree.add_chars(first, last, class),
            }
        }
        tree
    }

    fn add_chars(&mut self, first: u32, last: u32, class: u16) {
        // The code points of surrogates are no characters.
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
                self.nodes[node as usize].push((end.start, end.end, Behind::Class(class)));
            }
        }
    }

    /// The node behind a range of first bytes. Characters come in order, so that it is the last one or new; a range of
    /// several bytes stands only where all that can follow does.
    fn child(&mut self, node: u32, first: u8, last: u8) -> u32 {
        let new = self.nodes.len() as u32;
        let children = &mut self.nodes[node as usize];
        match children.last() {
            Some(&(from, to, Behind::Node(known))) if (from, to) == (first, last) => known,
            _ => {
                children.push((first, last, Behind::Node(new)));
                self.nodes.push(Vec::new());
                new
            }
        }
    }

    /// Bytes that no node tells apart are one class; and how many classes there are.
    fn byte_classes(&self) -> (Box<[u8; 256]>, usize) {
        // Between two cuts all bytes are alike, so that one of them is looked at.
        let mut cut = [false; 257];
        cut[0] = true;
        for &(first, last, _) in self.nodes.iter().flatten() {
            cut[usize::from(first)] = true;
            cut[usize::from(last) + 1] = true;
        }
        let starts: Vec<u8> = (0..=255).filter(|&byte| cut[usize::from(byte)]).collect();
        let mut class_of = vec![0u8; starts.len()];
        let mut count = 1;
        let mut behind = [Behind::Nothing; 256];
        let mut known: FxHashMap<(u8, Behind), u8> = FxHashMap::default();
        for node in &self.nodes {
            behind.fill(Behind::Nothing);
            for &(first, last, to) in node {
                behind[first as usize..=last as usize].fill(to);
            }
            known.clear();
            for (class, &start) in class_of.iter_mut().zip(&starts) {
                let new = known.len() as u8;
                *class = *known.entry((*class, behind[start as usize])).or_insert(new);
            }
            count = known.len();
        }
        let mut classes = Box::new([0u8; 256]);
        for (&class, &start) in class_of.iter().zip(&starts) {
            classes[start as usize..].fill(class);
        }
        (classes, count)
    }

    /// What each class of bytes leads to, for each node.
    fn rows(&self, classes: &[u8; 256], stride: usize) -> Vec<Box<[Behind]>> {
        let row = |node: &Vec<(u8, u8, Behind)>| {
            let mut row = vec![Behind::Nothing; stride].into_boxed_slice();
            for &(first, last, behind) in node {
                for &class in &classes[first as usize..=last as usize] {
                    row[class as usize] = behind;
                }
            }
            row
        };
        self.nodes.iter().map(row).collect()
    }

    /// The classes of letters that take more than one byte.
    fn classes_beyond_bytes(&self) -> Vec<u16> {
        let mut classes: Vec<u16> = (self.nodes[1..].iter().flatten())
            .filter_map(|&(.., behind)| match behind {
                Behind::Class(class) => Some(class),
                _ => None,
            })
            .collect();
        classes.sort_unstable();
        classes.dedup();
        classes
    }

    /// The classes of letters below each node, in order. A child has a greater number than its parent.
    fn classes_below(&self) -> Vec<Vec<u16>> {
        let mut below: Vec<Vec<u16>> = vec![Vec::new(); self.nodes.len()];
        for node in (0..self.nodes.len()).rev() {
            let mut classes = Vec::new();
            for &(_, _, behind) in &self.nodes[node] {
                match behind {
                    Behind::Class(class) => classes.push(class),
                    Behind::Node(child) => classes.extend(&below[child as usize]),
                    Behind::Nothing => {}
                }
            }
            classes.sort_unstable();
            classes.dedup();
            below[node] = classes;
        }
        below
    }
}

/// The table while it is written.
struct Writer<'a> {
    /// How many classes of letters there are.
    letters: usize,
    next: &'a [u32],
    /// What each class of bytes leads to at each node of the tree.
    nodes: Vec<Box<[Behind]>>,
    below: Vec<Vec<u16>>,
    stride: usize,
    states: u32,
    /// The rows of the states inside letters, which are numbered behind those between letters.
    inner: Vec<u32>,
    known_rows: FxHashMap<Box<[u32]>, u32>,
    /// The states inside letters by node and by where the classes below it lead.
    known: FxHashMap<(u32, Box<[u32]>), u32>,
}

impl Writer<'_> {
    fn target(&self, state: usize, class: u16) -> u32 {
        self.next[state * self.letters + class as usize]
    }

    /// Writes where the first bytes of longer letters lead.
    fn write_long(&mut self, state: usize, row: &mut [u32]) {
        for (class, entry) in row.iter_mut().enumerate() {
            if let Behind::Node(child) = self.nodes[0][class] {
                *entry = self.inside(child, state);
            }
        }
    }

    /// Writes where letters of a single byte lead.
    fn write_single(&self, state: usize, row: &mut [u32]) {
        for (entry, behind) in row.iter_mut().zip(&self.nodes[0]) {
            if let Behind::Class(class) = *behind {
                *entry = self.target(state, class);
            }
        }
    }

    /// Writes where bytes lead from a node inside a letter.
    fn write(&mut self, node: u32, state: usize, row: &mut [u32]) {
        for (class, entry) in row.iter_mut().enumerate() {
            *entry = match self.nodes[node as usize][class] {
                Behind::Nothing => NOWHERE,
                Behind::Class(class) => self.target(state, class),
                Behind::Node(child) => self.inside(child, state),
            };
        }
    }

    /// The edge to the state at a node inside a letter.
    fn inside(&mut self, node: u32, state: usize) -> u32 {
        let below = &self.below[node as usize];
        let targets: Box<[u32]> = below.iter().map(|&class| self.target(state, class)).collect();
        if targets.iter().all(|&target| target == NOWHERE) {
            return NOWHERE;
        }
        let key = (node, targets);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let mut row = vec![NOWHERE; self.stride];
        self.write(node, state, &mut row);
        let edge = match self.known_rows.get(&row[..]) {
            Some(&known) => known,
            None => {
                let new = (self.states + (self.inner.len() / self.stride) as u32) << 1;
                self.inner.extend(&row);
                self.known_rows.insert(row.into(), new);
                new
            }
        };
        self.known.insert(key, edge);
        edge
    }
}
