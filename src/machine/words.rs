//! A finite set of words as a tree that serves as an automaton.
//!
//! The names of an object's properties, and the strings of an `enum`, come as expressions like `name|age|tags`. As a
//! tree they need no determinising.

use regex_syntax::hir::{Class, Hir, HirKind};

/// The words and all their beginnings. State 0 is dead, state 1 the start.
pub(super) struct WordTree {
    nodes: Vec<Node>,
    used: Box<[bool; 256]>,
    /// How many nodes the tree may have: classes in a row would make a tree of all their combinations, where an
    /// automaton has a state for each.
    room: usize,
}

#[derive(Default)]
struct Node {
    children: Vec<(u8, u32)>,
    word: bool,
}

const DEAD: u32 = 0;
const START: u32 = 1;

/// A tree of this many nodes is always small enough; a larger one must be no larger than the text of its words.
const FEW_NODES: usize = 64;
/// Expressions that nest deeper stay expressions.
const MOST_NESTING: usize = 64;
/// A class with more characters than this is no set of words worth a tree.
const MOST_CHARS: usize = 16;

impl WordTree {
    /// The tree of an expression that is plainly a set of words.
    pub(super) fn new(hir: &Hir) -> Option<WordTree> {
        let mut tree = WordTree {
            nodes: vec![Node::default(), Node::default()],
            used: Box::new([false; 256]),
            room: FEW_NODES + literal_bytes(hir, MOST_NESTING)?,
        };
        let ends = tree.add(hir, &[START], MOST_NESTING)?;
        for end in ends {
            tree.nodes[end as usize].word = true;
        }
        Some(tree)
    }

    /// Adds the words of an expression behind some nodes; where they end.
    fn add(&mut self, hir: &Hir, from: &[u32], depth: usize) -> Option<Vec<u32>> {
        let depth = depth.checked_sub(1)?;
        let mut ends = match hir.kind() {
            HirKind::Empty => from.to_vec(),
            HirKind::Literal(literal) => {
                // The first way has its room; every other way repeats the text.
                if self.nodes.len() + from.len().saturating_sub(1) * literal.0.len() > self.room {
                    return None;
                }
                from.iter().map(|&node| self.path(node, &literal.0)).collect()
            }
            HirKind::Concat(parts) => {
                let mut ends = from.to_vec();
                for part in parts {
                    ends = self.add(part, &ends, depth)?;
                }
                ends
            }
            HirKind::Alternation(parts) => {
                let mut ends = Vec::new();
                for part in parts {
                    ends.extend(self.add(part, from, depth)?);
                }
                ends
            }
            HirKind::Class(Class::Unicode(class)) => {
                let chars = class.iter().flat_map(|range| range.start()..=range.end());
                let chars: Vec<char> = chars.take(MOST_CHARS + 1).collect();
                if chars.len() > MOST_CHARS {
                    return None;
                }
                if self.nodes.len() + from.len() * chars.len() > self.room {
                    return None;
                }
                let texts = chars.iter().map(char::to_string);
                let ends = texts.flat_map(|text| {
                    let path = |&node: &u32| self.path(node, text.as_bytes());
                    from.iter().map(path).collect::<Vec<u32>>()
                });
                ends.collect()
            }
            _ => return None,
        };
        ends.sort_unstable();
        ends.dedup();
        Some(ends)
    }

    fn path(&mut self, node: u32, bytes: &[u8]) -> u32 {
        bytes.iter().fold(node, |at, &byte| self.child(at, byte))
    }

    fn child(&mut self, node: u32, byte: u8) -> u32 {
        self.used[byte as usize] = true;
        let next = self.nodes.len() as u32;
        let children = &mut self.nodes[node as usize].children;
        match children.binary_search_by_key(&byte, |&(byte, _)| byte) {
            Ok(at) => children[at].1,
            Err(at) => {
                children.insert(at, (byte, next));
                self.nodes.push(Node::default());
                next
            }
        }
    }

    pub(super) fn start(&self) -> u32 {
        START
    }

    pub(super) fn next(&self, state: u32, byte: u8) -> u32 {
        let children = &self.nodes[state as usize].children;
        let found = children.binary_search_by_key(&byte, |&(byte, _)| byte);
        found.map_or(DEAD, |at| children[at].1)
    }

    pub(super) fn is_dead(&self, state: u32) -> bool {
        state == DEAD
    }

    pub(super) fn accepts(&self, state: u32) -> bool {
        self.nodes[state as usize].word
    }

    /// A number that tells the bytes of words from one another; all other bytes share one.
    pub(super) fn class(&self, byte: u8) -> u8 {
        // A byte that no word has stands for all such bytes, so that the numbers stay below 256.
        let unused = (0..=255).find(|&byte: &u8| !self.used[byte as usize]);
        match (self.used[byte as usize], unused) {
            (false, Some(unused)) => unused,
            _ => byte,
        }
    }
}

/// The bytes of all literals of an expression; `None` if it nests too deeply.
fn literal_bytes(hir: &Hir, depth: usize) -> Option<usize> {
    let depth = depth.checked_sub(1)?;
    match hir.kind() {
        HirKind::Literal(literal) => Some(literal.0.len()),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(|part| literal_bytes(part, depth)).sum()
        }
        _ => Some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(pattern: &str) -> Option<WordTree> {
        WordTree::new(&regex_syntax::parse(pattern).expect("the test's pattern is well formed"))
    }

    fn has(tree: &WordTree, word: &str) -> bool {
        let end = word
            .bytes()
            .fold(tree.start(), |state, byte| tree.next(state, byte));
        tree.accepts(end)
    }

    #[test]
    fn words_and_nothing_else_are_accepted() {
        let tree = tree("name|age|names").expect("these are words");
        for (word, expected) in [
            ("name", true),
            ("names", true),
            ("age", true),
            ("nam", false),
            ("ages", false),
        ] {
            assert_eq!(has(&tree, word), expected, "{word}");
        }
        assert_eq!(tree.class(b'z'), tree.class(b'0'));
        assert_ne!(tree.class(b'n'), tree.class(b'a'));
    }

    #[test]
    fn parts_that_words_share_may_be_written_once() {
        let tree = tree("\"(?:na(?:me|)|a(?:g|p)e)\"").expect("these are words");
        for word in ["\"name\"", "\"na\"", "\"age\"", "\"ape\""] {
            assert!(has(&tree, word), "{word}");
        }
        assert!(!has(&tree, "\"nam\"") && !has(&tree, "name"));
    }

    #[test]
    fn combinations_of_classes_are_no_words() {
        assert!(tree("[a-p][a-p][a-p]").is_none());
        assert!(tree("(?:aa|b)(?:cc|d)(?:ee|f)(?:gg|h)(?:ii|j)(?:kk|l)").is_none());
    }

    #[test]
    fn other_expressions_are_left_alone() {
        assert!(tree("a*").is_none() && tree("name|[0-9]+").is_none());
        assert!(has(&tree("one").expect("a literal is a word"), "one"));
    }
}
