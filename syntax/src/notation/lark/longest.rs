//! Finds the words that a lexer could find in the place of a word, and ends the word where it ends it.
//!
//! The lark parser takes the longest match: `ab` is one name and not two, and `inx` is a name and not `in`
//! and `x`. So after each word, characters must not follow with which the lexer would have found a longer
//! one:
//!
//! ```text
//!   "in"    not before letters, where a name may begin in its place
//!   NAME    not before letters
//!   "<"     not before "=", where "<=" may begin in its place
//! ```
//!
//! The lexer tries words in the order of their priorities and of their longest texts, and takes the first
//! that matches. A word is therefore ended only by those that are known to be tried before it, and only by
//! those that may begin at every place where it may; in llguidance's dialect, where the places are known
//! less well, only by itself. What the lexer would find only with two or more characters, as `1.5` after
//! `1`, is not looked for. A word ends anywhere if no ignored text is a single character, because then what
//! may follow it might be nothing.

use std::cell::Cell;
use std::collections::BTreeSet;

use foldhash::HashMap;
use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::contexts::{WordUse, anything};
use super::indentation::Layout;
use super::reading::Dialect;
use super::words::{following, matches_whole, may_go_on};
use crate::notation::tree::{Definition, Ending, LongestWord, Node, NodeKind};
use crate::regex::node as pattern;

/// The deepest nesting of a word that is looked into.
const DEEPEST: usize = 100;

/// Characters that grammars ignore.
const GAPS: [u8; 4] = *b" \t\n\r";

/// What a source says about its words, besides their rules.
pub(super) struct Lexing<'a> {
    pub(super) dialect: Dialect,
    /// The ignored texts, which may begin in the place of every word.
    pub(super) ignored: &'a [Node],
    /// The terminals with a priority.
    pub(super) prioritised: &'a BTreeSet<String>,
    /// The terminals of indentation, which the lexer does not end.
    pub(super) layout: Option<&'a Layout>,
}

/// The lexer of a source, with the rules that its words are made of.
pub(super) struct Lexer<'a> {
    pub(super) lexing: &'a Lexing<'a>,
    pub(super) definitions: &'a [Definition],
    pub(super) names: &'a HashMap<String, usize>,
    /// The steps that were taken to compare words.
    pub(super) steps: &'a Cell<usize>,
}

impl Lexer<'_> {
    /// Returns the characters that are ignored texts.
    pub(super) fn gaps(&self) -> Vec<u8> {
        let mut gaps = GAPS.to_vec();
        gaps.retain(|&gap| {
            let text = char::from(gap).to_string();
            self.lexing
                .ignored
                .iter()
                .any(|node| self.is_word_of(node, &text))
        });
        gaps
    }

    /// Returns a word without the texts that belong to others, which ends where the lexer ends it. `rivals`
    /// are the words that may begin wherever it may.
    pub(super) fn settled(
        &self,
        word: &WordUse,
        mut exceptions: Vec<Node>,
        rivals: &[&WordUse],
        gaps: &[u8],
    ) -> Node {
        if let (NodeKind::Name(name), Some(layout)) = (&word.node.kind, self.lexing.layout)
            && layout.has(name)
        {
            return word.node.clone();
        }
        exceptions.extend(self.lost(word, rivals));
        let narrowed = match exceptions.is_empty() {
            true => word.node.clone(),
            false => Node::all(word.node.at, [vec![word.node.clone()], exceptions].concat()),
        };
        let ended = (!gaps.is_empty()).then(|| self.ended(word, &narrowed, rivals, gaps));
        ended.flatten().unwrap_or(narrowed)
    }

    /// Returns the ignored texts, which end where the lexer ends them.
    pub(super) fn ignored(&self, gaps: &[u8]) -> Vec<Node> {
        let ended = |node: &Node| {
            let word = WordUse::ignored(node.clone());
            match node.kind {
                NodeKind::Text(_) | NodeKind::AnyCase(_) => None,
                _ => self.ended(&word, node, &[], gaps),
            }
        };
        let ignored = self.lexing.ignored.iter();
        ignored
            .map(|node| ended(node).unwrap_or_else(|| node.clone()))
            .collect()
    }

    /// Returns the texts that a word loses to words that are tried before it: those that begin with one.
    fn lost(&self, word: &WordUse, rivals: &[&WordUse]) -> Vec<Node> {
        let is_text = matches!(word.node.kind, NodeKind::Text(_) | NodeKind::AnyCase(_));
        if is_text || self.lexing.dialect == Dialect::Llguidance || self.width(&word.node, 0) == usize::MAX {
            return Vec::new();
        }
        let at = word.node.at;
        let first = self
            .before(word, rivals)
            .filter(|rival| self.is_greedy(&rival.node, 0));
        let first = first.map(|rival| {
            let more = anything(at).repeat(0, None, at);
            Node::seq(at, vec![rival.node.clone(), more]).not(at)
        });
        first.collect()
    }

    /// Returns the expressions that the lexer tries before a word.
    fn before<'r>(
        &'r self,
        word: &'r WordUse,
        rivals: &'r [&'r WordUse],
    ) -> impl Iterator<Item = &'r WordUse> + 'r {
        let widest = self.width(&word.node, 0);
        let is_first = move |rival: &WordUse| {
            let is_expression = !matches!(rival.node.kind, NodeKind::Text(_) | NodeKind::AnyCase(_));
            rival.symbol != word.symbol
                && is_expression
                && self.are_equal(word, rival)
                && self.width(&rival.node, 0) > widest
        };
        rivals.iter().copied().filter(move |rival| is_first(rival))
    }

    /// Returns a word that ends where the lexer ends it, or `None` if it ends anywhere. `narrowed` is the
    /// word without the texts that belong to others.
    fn ended(&self, word: &WordUse, narrowed: &Node, rivals: &[&WordUse], gaps: &[u8]) -> Option<Node> {
        let (head, word, longer) = match &word.node.kind {
            NodeKind::Special(_) | NodeKind::Tokens(_) | NodeKind::Grammar(_) => return None,
            NodeKind::Word(_, Ending::Soonest) => return None,
            NodeKind::Text(text) | NodeKind::AnyCase(text) => self.ended_text(word, text, rivals, gaps)?,
            _ => (None, narrowed.clone(), self.longer(word, rivals)?),
        };
        let at = narrowed.at;
        let longest = LongestWord {
            head,
            word,
            longer,
            gaps: gaps.to_vec(),
        };
        Some(Node::leaf(at, NodeKind::Longest(Box::new(longest))))
    }

    /// Returns the beginning of a text, its last character, and the two-character texts that the lexer would
    /// go on with.
    fn ended_text(
        &self,
        word: &WordUse,
        text: &str,
        rivals: &[&WordUse],
        gaps: &[u8],
    ) -> Option<(Option<Node>, Node, Node)> {
        let at = word.node.at;
        let is_any_case = matches!(word.node.kind, NodeKind::AnyCase(_));
        let more = match is_any_case {
            false => self.more(word, text, rivals),
            true => {
                let spelled = [text.to_lowercase(), text.to_uppercase()];
                let [lower, upper] = spelled.map(|text| self.more(word, &text, rivals));
                pattern::intersection(&lower, &upper)
            }
        };
        let holds = |gap: char| {
            let mut ranges = more.ranges().iter();
            ranges.any(|range| (range.start()..=range.end()).contains(&gap))
        };
        let has_gap = gaps.iter().any(|&gap| !holds(gap.into()));
        let (last_at, last) = text.char_indices().next_back()?;
        if pattern::is_empty(&more) || !has_gap {
            return None;
        }
        let written = |text: &str| match is_any_case {
            true => NodeKind::AnyCase(text.to_owned()),
            false => NodeKind::Text(text.to_owned()),
        };
        let part = |text: &str| Node::leaf(at, written(text));
        let head = (last_at > 0).then(|| part(&text[..last_at]));
        let last = part(&last.to_string());
        let more = Node::leaf(at, NodeKind::Set(blockable(&more)));
        Some((head, last.clone(), Node::seq(at, vec![last, more])))
    }

    /// Returns the characters with which a text becomes another word.
    fn more(&self, word: &WordUse, text: &str, rivals: &[&WordUse]) -> ClassUnicode {
        let may_go_on = |rival: &WordUse| match &rival.text {
            Some(other) => other.starts_with(text),
            None => true,
        };
        let others = rivals
            .iter()
            .filter(|rival| rival.symbol != word.symbol && may_go_on(rival) && self.are_equal(word, rival));
        let nodes = others.map(|rival| &rival.node).chain(self.lexing.ignored);
        let mut more = ClassUnicode::empty();
        if self.lexing.dialect == Dialect::Llguidance {
            return more;
        }
        for node in nodes.filter(|node| self.is_greedy(node, 0)) {
            if let Some(found) = following(node, text, self.definitions, self.names, self.steps) {
                more.union(&found);
            }
        }
        more
    }

    /// Returns the words that the lexer could find in the place of a word that is an expression.
    fn longer(&self, word: &WordUse, rivals: &[&WordUse]) -> Option<Node> {
        let others = match self.lexing.dialect {
            Dialect::Lark => self.before(word, rivals).map(|rival| &rival.node).collect(),
            Dialect::Llguidance => Vec::new(),
        };
        let nodes = [&word.node].into_iter().chain(others);
        let nodes: Vec<Node> = nodes.filter(|node| self.is_greedy(node, 0)).cloned().collect();
        (!nodes.is_empty()).then(|| Node::choice(word.node.at, nodes))
    }

    /// Returns `true` if priorities say nothing about two words.
    fn are_equal(&self, one: &WordUse, other: &WordUse) -> bool {
        let has_priority = |word: &WordUse| match &word.node.kind {
            NodeKind::Name(name) => self.lexing.prioritised.contains(name),
            _ => false,
        };
        !has_priority(one) && !has_priority(other)
    }

    fn is_word_of(&self, node: &Node, text: &str) -> bool {
        matches_whole(node, text, self.definitions, self.names, self.steps).unwrap_or(false)
    }

    fn body(&self, name: &str) -> Option<&Node> {
        Some(&self.definitions[*self.names.get(name)?].body)
    }

    /// Returns `true` if the lexer is known to take the longest word of a part: it prefers more of what is
    /// repeated, and no alternative of an expression before a longer one.
    fn is_greedy(&self, node: &Node, depth: usize) -> bool {
        if depth > DEEPEST || !may_go_on(self.steps) {
            return false;
        }
        match &node.kind {
            NodeKind::Text(_) | NodeKind::AnyCase(_) | NodeKind::Set(_) => true,
            NodeKind::Pattern(pattern) => !pattern.is_lazy && is_greedy(&pattern.node, 0),
            NodeKind::Name(name) => self
                .body(name)
                .is_some_and(|body| self.is_greedy(body, depth + 1)),
            // The alternatives of a terminal are tried from the longest on.
            NodeKind::Seq(parts) | NodeKind::Choice(parts) => {
                parts.iter().all(|part| self.is_greedy(part, depth + 1))
            }
            NodeKind::Repeat(body, ..) | NodeKind::Word(body, Ending::AsWritten) => {
                self.is_greedy(body, depth + 1)
            }
            _ => false,
        }
    }

    /// Returns the number of characters of the longest text of a part, [`usize::MAX`] if there is none.
    fn width(&self, node: &Node, depth: usize) -> usize {
        if depth > DEEPEST || !may_go_on(self.steps) {
            return usize::MAX;
        }
        let widths =
            |parts: &[Node]| -> Vec<usize> { parts.iter().map(|part| self.width(part, depth + 1)).collect() };
        match &node.kind {
            NodeKind::Text(text) | NodeKind::AnyCase(text) => text.chars().count(),
            NodeKind::Set(_) => 1,
            NodeKind::Pattern(pattern) => width(&pattern.node),
            NodeKind::Name(name) => self
                .body(name)
                .map_or(usize::MAX, |body| self.width(body, depth + 1)),
            NodeKind::Seq(parts) => widths(parts).into_iter().fold(0, usize::saturating_add),
            NodeKind::Choice(parts) => widths(parts).into_iter().max().unwrap_or(0),
            NodeKind::Repeat(body, _, max) => repeated(self.width(body, depth + 1), *max),
            NodeKind::Word(body, _) => self.width(body, depth + 1),
            _ => usize::MAX,
        }
    }
}

/// Returns the characters of a set that can be told apart by their first byte, which is all that is blocked:
/// those of ASCII, and those whose first byte only characters of the set have.
fn blockable(set: &ClassUnicode) -> ClassUnicode {
    // The first character for each first byte; surrogates are none.
    let firsts = (0x80..0x800)
        .step_by(0x40)
        .chain((0x800..0x1_0000).step_by(0x1000));
    let firsts: Vec<u32> = firsts.chain((0x1_0000..0x11_0000).step_by(0x4_0000)).collect();
    let ends = firsts[1..].iter().copied().chain([0x11_0000]);
    let ascii = ClassUnicodeRange::new('\0', '\x7F');
    let mut found = pattern::intersection(set, &ClassUnicode::new([ascii]));
    for (&first, end) in firsts.iter().zip(ends) {
        let (Some(first), Some(last)) = (char_from(first), char_from(end - 1)) else {
            continue;
        };
        let group = ClassUnicode::new([ClassUnicodeRange::new(first, last)]);
        if pattern::is_empty(&pattern::difference(&group, set)) {
            found.union(&group);
        }
    }
    found
}

/// Returns the character at a place, or the one before the surrogates.
fn char_from(place: u32) -> Option<char> {
    char::from_u32(place).or_else(|| char::from_u32(0xD7FF))
}

fn repeated(width: usize, max: Option<u32>) -> usize {
    max.map_or(usize::MAX, |max| width.saturating_mul(max as usize))
}

/// Returns the number of characters of the longest text of an expression. Recurses as deep as it nests,
/// which its parser bounds.
fn width(node: &pattern::Node) -> usize {
    match node {
        pattern::Node::Set(_) => 1,
        pattern::Node::Concat(parts) => parts.iter().map(width).fold(0, usize::saturating_add),
        pattern::Node::Alt(parts) => parts.iter().map(width).max().unwrap_or(0),
        pattern::Node::Repeat { body, max, .. } => repeated(width(body), *max),
        pattern::Node::Empty | pattern::Node::Look(_) | pattern::Node::Test(_) | pattern::Node::Around(_) => {
            0
        }
    }
}

/// Returns `true` if no alternative of an expression can be taken where a longer one matches: alternatives
/// begin with different characters.
fn is_greedy(node: &pattern::Node, depth: usize) -> bool {
    if depth > DEEPEST {
        return false;
    }
    match node {
        pattern::Node::Empty | pattern::Node::Set(_) => true,
        pattern::Node::Concat(parts) => parts.iter().all(|part| is_greedy(part, depth + 1)),
        pattern::Node::Repeat { body, .. } => is_greedy(body, depth + 1),
        pattern::Node::Alt(parts) => {
            let firsts: Vec<Option<ClassUnicode>> = parts.iter().map(first).collect();
            let are_apart = firsts.iter().enumerate().all(|(at, one)| {
                let Some(one) = one else { return false };
                let mut before = firsts[..at].iter().flatten();
                before.all(|other| pattern::is_empty(&pattern::intersection(one, other)))
            });
            are_apart && parts.iter().all(|part| is_greedy(part, depth + 1))
        }
        pattern::Node::Look(_) | pattern::Node::Test(_) | pattern::Node::Around(_) => false,
    }
}

/// Returns the characters with which an expression begins, or `None` if it may be empty or is not so simple.
fn first(node: &pattern::Node) -> Option<ClassUnicode> {
    match node {
        pattern::Node::Set(set) => Some(set.clone()),
        pattern::Node::Concat(parts) => first(parts.first()?),
        pattern::Node::Alt(parts) => {
            let mut all = ClassUnicode::empty();
            for part in parts {
                all.union(&first(part)?);
            }
            Some(all)
        }
        pattern::Node::Repeat { body, min, .. } if *min > 0 => first(body),
        _ => None,
    }
}
