//! A finite set of words as a tree that serves as an automaton.
//!
//! The names of an object's properties, and the strings of an `enum`, come as expressions like `name|age|tags`. As a
//! tree they need no determinising.

use regex_syntax::hir::{Hir, HirKind};

/// The words and all their beginnings. State 0 is dead, state 1 the start.
pub(super) struct WordTree {
    nodes: Vec<Node>,
    used: Box<[bool; 256]>,
}

#[derive(Default)]
struct Node {
    children: Vec<(u8, u32)>,
    word: bool,
}

const DEAD: u32 = 0;
const START: u32 = 1;

/// Expressions with more words than this stay expressions.
const MOST_WORDS: usize = 1 << 16;

impl WordTree {
    /// The tree of an expression that is plainly a set of words.
    pub(super) fn new(hir: &Hir) -> Option<WordTree> {
        let mut tree = WordTree {
            nodes: vec![Node::default(), Node::default()],
            used: Box::new([false; 256]),
        };
        match hir.kind() {
            HirKind::Alternation(words) if words.len() <= MOST_WORDS => {
                for word in words {
                    tree.add(word)?;
                }
            }
            _ => tree.add(hir)?,
        }
        Some(tree)
    }

    fn add(&mut self, hir: &Hir) -> Option<()> {
        let parts = match hir.kind() {
            HirKind::Concat(parts) => &parts[..],
            _ => std::slice::from_ref(hir),
        };
        let mut at = START;
        for part in parts {
            let HirKind::Literal(literal) = part.kind() else {
                return None;
            };
            for &byte in &literal.0 {
                at = self.child(at, byte);
            }
        }
        self.nodes[at as usize].word = true;
        Some(())
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
    fn other_expressions_are_left_alone() {
        assert!(tree("a*").is_none() && tree("name|[0-9]+").is_none());
        assert!(has(&tree("one").expect("a literal is a word"), "one"));
    }
}
