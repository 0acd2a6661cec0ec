//! Represents a finite set of words as a tree, which serves as an automaton.
//!
//! The names of an object's properties, and the strings of an `enum`, come as expressions such as
//! `name|age|tags`. As a tree they need no determinisation. Suffixes that words have in common are stored
//! once.

use regex_syntax::hir::{Class, Hir, HirKind};

use rustc_hash::FxHashMap;

use crate::language::characters::{Alphabet, Failure, Letters};
use crate::language::graph::Graph;

/// The words and all their prefixes. State 0 is dead, state 1 is the start.
pub(super) struct WordTree {
    nodes: Vec<WordNode>,
    /// The letters that words contain, in order: each is a class of its own, and all others form one class.
    used: Vec<u32>,
    letters: Letters,
}

/// The letters that can be read at a node, in order, each with the child that it leads to.
type Children = Vec<(u32, u32)>;

#[derive(Default)]
struct WordNode {
    children: Children,
    word: bool,
}

const DEAD: u32 = 0;
const START: u32 = 1;

/// The number of nodes up to which a tree is always accepted; a larger one must have no more nodes than this
/// plus the bytes of its words.
const FEW_NODES: usize = 64;
/// The maximum nesting of expressions that are converted to trees.
const MOST_NESTING: usize = 64;
/// The maximum number of characters of a class in a tree.
const MOST_CHARS: usize = 16;

impl WordTree {
    /// Returns the tree of an expression, or `None` if the expression is not clearly a set of words.
    ///
    /// # Errors
    /// Returns an error if the words cannot be written in characters.
    pub(super) fn new(hir: &Hir, alphabet: Alphabet) -> Result<Option<WordTree>, Failure> {
        let Some(bytes) = literal_bytes(hir, MOST_NESTING) else {
            return Ok(None);
        };
        let mut planting = Planting {
            nodes: vec![WordNode::default(), WordNode::default()],
            alphabet,
            room: FEW_NODES + bytes,
        };
        let ends = match planting.add(hir, &[START], MOST_NESTING) {
            Ok(ends) => ends,
            Err(No::Words) => return Ok(None),
            Err(No::Text) => return Err(Failure::NotText),
        };
        let mut nodes = planting.nodes;
        for end in ends {
            nodes[end as usize].word = true;
        }
        let nodes = shared(nodes);
        let children = nodes.iter().flat_map(|node| &node.children);
        let mut used: Vec<u32> = children.map(|&(letter, _)| letter).collect();
        used.sort_unstable();
        used.dedup();
        let letters = Letters::single(&used, alphabet)?;
        Ok(Some(WordTree { nodes, used, letters }))
    }

    pub(super) fn letters(&self) -> &Letters {
        &self.letters
    }

    /// Returns the number of states.
    pub(super) fn len(&self) -> u32 {
        self.nodes.len() as u32
    }

    pub(super) fn start(&self) -> u32 {
        START
    }

    /// Writes the states after each class of letters.
    pub(super) fn write_row(&self, state: u32, row: &mut Vec<u32>) {
        row.resize(self.letters.count(), DEAD);
        self.fill(&self.nodes[state as usize], row, |child| child);
    }

    /// Writes the targets of the letters into the entries of their classes.
    fn fill(&self, node: &WordNode, row: &mut [u32], entry: impl Fn(u32) -> u32) {
        let mut class = 0;
        for &(letter, child) in &node.children {
            class += self.used[class..].partition_point(|&used| used < letter);
            row[class] = entry(child);
        }
    }

    /// Returns the tree as a table, from each of whose states a word can be completed.
    pub(super) fn graph(&self) -> Graph {
        let stride = self.letters.count();
        let nodes = &self.nodes[START as usize..];
        let mut next = vec![crate::language::graph::DEAD; nodes.len() * stride];
        for (node, row) in nodes.iter().zip(next.chunks_exact_mut(stride)) {
            self.fill(node, row, |child| (child - START) << 1);
        }
        Graph {
            stride,
            next,
            accepting: nodes.iter().map(|node| node.word).collect(),
        }
    }

    /// Returns `true` if there are any words.
    pub(super) fn has_words(&self) -> bool {
        let start = &self.nodes[START as usize];
        start.word || !start.children.is_empty()
    }

    pub(super) fn dead(&self) -> u32 {
        DEAD
    }

    pub(super) fn accepts(&self, state: u32) -> bool {
        self.nodes[state as usize].word
    }
}

/// Returns the tree with common suffixes stored once (Daciuk et al. 2000, for a complete tree): nodes from
/// which the same words are completed are merged. The strings of a long `enum` have common suffixes, but few
/// common prefixes.
fn shared(nodes: Vec<WordNode>) -> Vec<WordNode> {
    // A child was added after its parent, so the children of a node are handled before it.
    let mut kept: Vec<WordNode> = vec![WordNode::default(), WordNode::default()];
    let mut known: FxHashMap<(bool, Children), u32> = FxHashMap::default();
    let mut number = vec![DEAD; nodes.len()];
    for (at, mut node) in nodes.into_iter().enumerate().skip(START as usize).rev() {
        for (_, child) in &mut node.children {
            *child = number[*child as usize];
        }
        node.children.retain(|&(_, child)| child != DEAD);
        if at == START as usize {
            kept[at] = node;
            break;
        }
        if !node.word && node.children.is_empty() {
            continue;
        }
        let new = kept.len() as u32;
        number[at] = *known.entry((node.word, node.children.clone())).or_insert(new);
        if number[at] == new {
            kept.push(node);
        }
    }
    kept
}

/// The reason why there is no tree.
enum No {
    /// The expression is not clearly a set of words, or has too many.
    Words,
    /// A word is not text.
    Text,
}

/// A tree under construction.
struct Planting {
    nodes: Vec<WordNode>,
    alphabet: Alphabet,
    /// The maximum number of nodes: adjacent classes would make a tree of all their combinations, where an
    /// automaton has one state for each class.
    room: usize,
}

impl Planting {
    /// Adds the words of an expression after some nodes; returns the nodes at which they end.
    fn add(&mut self, hir: &Hir, from: &[u32], depth: usize) -> Result<Vec<u32>, No> {
        let depth = depth.checked_sub(1).ok_or(No::Words)?;
        let mut ends = match hir.kind() {
            HirKind::Empty => from.to_vec(),
            HirKind::Literal(literal) => {
                // The first path is accounted for; every other path repeats the text.
                if self.nodes.len() + from.len().saturating_sub(1) * literal.0.len() > self.room {
                    return Err(No::Words);
                }
                let letters = self.letters(&literal.0)?;
                from.iter().map(|&node| self.path(node, &letters)).collect()
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
                if chars.len() > MOST_CHARS || self.nodes.len() + from.len() * chars.len() > self.room {
                    return Err(No::Words);
                }
                let mut ends = Vec::with_capacity(chars.len() * from.len());
                for c in chars {
                    let letters = self.letters(c.to_string().as_bytes())?;
                    ends.extend(from.iter().map(|&node| self.path(node, &letters)));
                }
                ends
            }
            _ => return Err(No::Words),
        };
        ends.sort_unstable();
        ends.dedup();
        Ok(ends)
    }

    fn letters(&self, bytes: &[u8]) -> Result<Vec<u32>, No> {
        match self.alphabet {
            Alphabet::Bytes => Ok(bytes.iter().copied().map(u32::from).collect()),
            Alphabet::Chars => {
                let text = std::str::from_utf8(bytes).map_err(|_| No::Text)?;
                Ok(text.chars().map(u32::from).collect())
            }
        }
    }

    fn path(&mut self, node: u32, letters: &[u32]) -> u32 {
        letters.iter().fold(node, |at, &letter| self.child(at, letter))
    }

    fn child(&mut self, node: u32, letter: u32) -> u32 {
        let next = self.nodes.len() as u32;
        let children = &mut self.nodes[node as usize].children;
        match children.binary_search_by_key(&letter, |&(letter, _)| letter) {
            Ok(at) => children[at].1,
            Err(at) => {
                children.insert(at, (letter, next));
                self.nodes.push(WordNode::default());
                next
            }
        }
    }
}

/// Returns the total bytes of all literals of an expression; `None` if it nests too deeply, or repeats
/// something.
fn literal_bytes(hir: &Hir, depth: usize) -> Option<usize> {
    let depth = depth.checked_sub(1)?;
    match hir.kind() {
        HirKind::Literal(literal) => Some(literal.0.len()),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(|part| literal_bytes(part, depth)).sum()
        }
        HirKind::Repetition(_) => None,
        _ => Some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(pattern: &str) -> Option<WordTree> {
        let hir = regex_syntax::parse(pattern).expect("the test's pattern is well formed");
        WordTree::new(&hir, Alphabet::Chars).expect("it is text")
    }

    fn has(tree: &WordTree, word: &str) -> bool {
        let class = |letter: char| {
            tree.used
                .binary_search(&u32::from(letter))
                .unwrap_or(tree.used.len())
        };
        let mut letters = word.chars();
        let end = letters.try_fold(tree.start(), |state, letter| {
            let mut row = Vec::new();
            tree.write_row(state, &mut row);
            let next = row[class(letter)];
            (next != tree.dead()).then_some(next)
        });
        end.is_some_and(|end| tree.accepts(end))
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
        assert_eq!(tree.letters().count(), 7, "n, a, m, e, g, s and all others");
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
