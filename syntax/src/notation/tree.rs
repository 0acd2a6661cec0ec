//! The syntax tree that the readers of all notations return.
//!
//! A reader decides what its notation means and says it in these nodes; [`lower`](super::lower) turns them
//! into a grammar and reports what no reader can see, such as names that no rule has.

use regex_syntax::hir::ClassUnicode;

use crate::regex::node as pattern;
use lexiform_automata::grammar::{Cfg, TokenSet};

/// The deepest tree, whatever `nesting` allows: all passes over it recurse.
pub(crate) const DEEPEST: usize = 1_000;

/// A rule.
#[derive(Debug)]
pub(crate) struct Definition {
    /// The name by which other rules call it.
    pub(crate) name: String,
    /// The offset of the name in the source.
    pub(crate) at: usize,
    /// The texts that it derives.
    pub(crate) body: Node,
}

/// A part of a rule.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// The offset in the source.
    pub(crate) at: usize,
    /// The number of levels below, at most [`DEEPEST`].
    depth: usize,
    pub(crate) kind: NodeKind,
}

/// A regular expression.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub(crate) node: pattern::Node,
    /// `true` if it has a quantifier that prefers the shorter of two matches. Whatever contains the
    /// expression then ends as soon as it can.
    pub(crate) is_lazy: bool,
}

/// Which of its words a regular part has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// All, or those of [`Ending::Soonest`] if some expression in it is lazy.
    AsWritten,
    /// Those that do not begin with another one.
    Soonest,
}

/// The texts that a part derives.
#[derive(Clone, Debug)]
pub(crate) enum NodeKind {
    /// Exactly this text.
    Text(String),
    /// This text with each letter in either case.
    AnyCase(String),
    /// One character out of a set.
    Set(ClassUnicode),
    /// The words of a regular expression, as a whole.
    Pattern(Pattern),
    /// The texts of the rule with this name.
    Name(String),
    /// The special token of this name.
    Special(String),
    /// Any one token out of a set, whatever its text is.
    Tokens(TokenSet),
    /// All parts, one after the other.
    Seq(Vec<Node>),
    /// Any one of the parts.
    Choice(Vec<Node>),
    /// The part, at least and at most so many times.
    Repeat(Box<Node>, u32, Option<u32>),
    /// The texts that all parts derive. The parts are regular.
    All(Vec<Node>),
    /// All texts that the part, which is regular, does not derive.
    Not(Box<Node>),
    /// The texts of the part, which is regular, as one language.
    Word(Box<Node>, Ending),
    /// A word that ends where a lexer that takes the longest match ends it.
    Longest(Box<LongestWord>),
    /// The texts of another grammar, such as that of a JSON Schema.
    Grammar(Box<Cfg>),
    /// A part that nests too deeply, and was left out.
    TooDeep,
}

/// A word, and the words that a lexer could find in its place.
#[derive(Clone, Debug)]
pub(crate) struct LongestWord {
    /// The beginning of the word, where only its last character matters.
    pub(crate) head: Option<Node>,
    /// The rest of the word.
    pub(crate) word: Node,
    /// The words that may begin where `word` does. The word does not end before a character with which it
    /// would be one of these.
    pub(crate) longer: Node,
    /// Characters that may follow every word.
    pub(crate) gaps: Vec<u8>,
}

impl Node {
    /// Returns a part without parts of its own.
    pub(crate) fn leaf(at: usize, kind: NodeKind) -> Node {
        Node { at, depth: 0, kind }
    }

    /// Returns a part for exactly this text.
    pub(crate) fn text(at: usize, text: impl Into<String>) -> Node {
        Node::leaf(at, NodeKind::Text(text.into()))
    }

    /// Returns a part for the empty text.
    pub(crate) fn empty(at: usize) -> Node {
        Node::leaf(at, NodeKind::Seq(Vec::new()))
    }

    /// Returns a call of a rule.
    pub(crate) fn name(at: usize, name: impl Into<String>) -> Node {
        Node::leaf(at, NodeKind::Name(name.into()))
    }

    /// Returns the words of a regular expression whose quantifiers all mean the same.
    pub(crate) fn pattern(at: usize, node: pattern::Node) -> Node {
        let is_lazy = false;
        Node::leaf(at, NodeKind::Pattern(Pattern { node, is_lazy }))
    }

    /// Returns the parts one after the other.
    pub(crate) fn seq(at: usize, mut parts: Vec<Node>) -> Node {
        match parts.len() {
            1 => parts.remove(0),
            _ => Node::over(at, deepest(&parts), NodeKind::Seq(parts)),
        }
    }

    /// Returns the choice among the parts.
    pub(crate) fn choice(at: usize, mut parts: Vec<Node>) -> Node {
        match parts.len() {
            1 => parts.remove(0),
            _ => Node::over(at, deepest(&parts), NodeKind::Choice(parts)),
        }
    }

    /// Returns the texts that all parts derive.
    pub(crate) fn all(at: usize, mut parts: Vec<Node>) -> Node {
        match parts.len() {
            1 => parts.remove(0),
            _ => Node::over(at, deepest(&parts), NodeKind::All(parts)),
        }
    }

    /// Returns the part, repeated.
    pub(crate) fn repeat(self, min: u32, max: Option<u32>, at: usize) -> Node {
        Node::over(at, self.depth, NodeKind::Repeat(Box::new(self), min, max))
    }

    /// Returns all texts that this part does not derive.
    pub(crate) fn not(self, at: usize) -> Node {
        Node::over(at, self.depth, NodeKind::Not(Box::new(self)))
    }

    /// Returns the texts of this part that another does not derive.
    pub(crate) fn except(self, other: Node, at: usize) -> Node {
        let other = other.not(at);
        Node::all(at, vec![self, other])
    }

    /// Returns the texts of this part, which is regular, as one language.
    pub(crate) fn word(self, ending: Ending) -> Node {
        Node::over(self.at, self.depth, NodeKind::Word(Box::new(self), ending))
    }

    fn over(at: usize, below: usize, kind: NodeKind) -> Node {
        match below + 1 {
            depth if depth <= DEEPEST => Node { at, depth, kind },
            _ => Node::leaf(at, NodeKind::TooDeep),
        }
    }

    /// Returns the number of levels below this part.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Returns the parts of this part.
    pub(crate) fn parts(&self) -> &[Node] {
        match &self.kind {
            NodeKind::Seq(parts) | NodeKind::Choice(parts) | NodeKind::All(parts) => parts,
            NodeKind::Repeat(body, ..) | NodeKind::Not(body) | NodeKind::Word(body, _) => {
                std::slice::from_ref(body)
            }
            _ => &[],
        }
    }
}

fn deepest(parts: &[Node]) -> usize {
    parts.iter().map(Node::depth).max().unwrap_or(0)
}
