//! Reads the parsed grammar as a syntax tree.

use pest::iterators::Pair;
use regex_syntax::hir::ClassUnicode;

use super::tokens::Rule;
use crate::notation::lower::Problems;
use crate::notation::reading::counts;
use crate::notation::reading::spelling::{Escapes, Spelling, point};
use crate::notation::tree::{Definition, Node, NodeKind};
use crate::regex::{self, Dialect, RegexError, node as pattern};
use lexiform_automata::error::ProblemKind;
use lexiform_automata::limits::Limits;

/// The deepest nesting of brackets and operators, whatever `nesting` allows: later passes recurse.
const MOST_NESTING: usize = 1_000;

const SPELLING: Spelling = Spelling {
    escapes: Some(Escapes {
        letters: &[
            ('n', '\n'),
            ('r', '\r'),
            ('t', '\t'),
            ('b', '\u{8}'),
            ('f', '\u{c}'),
            ('v', '\u{b}'),
            ('0', '\0'),
        ],
        is_plain: |c| !c.is_ascii_alphanumeric() && c != '\n',
        hex_digits: Some(2),
        has_wide: true,
    }),
    has_points: true,
};

/// Reads all definitions, and adds what is wrong with them to the problems.
pub(super) fn read<'a>(
    definitions: impl Iterator<Item = Pair<'a, Rule>>,
    limits: &Limits,
    problems: &mut Problems,
) -> Vec<Definition> {
    let mut reader = Reader { limits, problems };
    definitions.filter_map(|pair| reader.definition(pair)).collect()
}

struct Reader<'a> {
    limits: &'a Limits,
    problems: &'a mut Problems,
}

/// A part and its nesting depth: one level for each pair of brackets around a part, and one for each operator
/// after a part. The tree is at most twice as deep.
struct Nested {
    node: Node,
    depth: usize,
}

impl Nested {
    /// Returns a part without parts.
    fn flat(node: Node) -> Nested {
        Nested { node, depth: 0 }
    }
}

impl Reader<'_> {
    fn definition(&mut self, pair: Pair<'_, Rule>) -> Option<Definition> {
        let mut inner = pair.into_inner();
        let name = inner.next()?;
        let body = inner.find(|pair| pair.as_rule() == Rule::choice)?;
        Some(Definition {
            name: name.as_str().to_owned(),
            at: name.as_span().start(),
            body: self.choice(body).node,
        })
    }

    /// Adds one level around a part, for the operator at an offset. A part that is too deep is reported once
    /// and left out.
    fn deeper(&mut self, node: Node, inside: usize, at: usize) -> Nested {
        let (depth, limit) = (inside + 1, self.limits.nesting.min(MOST_NESTING));
        if depth <= limit {
            return Nested { node, depth };
        }
        let message = format!("brackets and repetitions nest too deeply; the limit `nesting` is {limit}");
        self.problems.add(ProblemKind::Limit, at, message);
        Nested::flat(Node::empty(at))
    }

    fn choice(&mut self, pair: Pair<'_, Rule>) -> Nested {
        let (at, mut depth) = (pair.as_span().start(), 0);
        let ways = pair.into_inner().map(|way| self.sequence(way, &mut depth));
        let node = Node::choice(at, ways.collect());
        Nested { node, depth }
    }

    /// Reads a sequence, and raises `depth` to the depth of its deepest part.
    fn sequence(&mut self, pair: Pair<'_, Rule>, depth: &mut usize) -> Node {
        let at = pair.as_span().start();
        let items = pair.into_inner().map(|item| {
            let item = self.item(item);
            *depth = item.depth.max(*depth);
            item.node
        });
        Node::seq(at, items.collect())
    }

    /// Reads a part with the operators after it.
    fn item(&mut self, pair: Pair<'_, Rule>) -> Nested {
        let at = pair.as_span().start();
        let mut inner = pair.into_inner();
        let Some(primary) = inner.next() else {
            return Nested::flat(Node::empty(at));
        };
        let mut item = self.primary(primary);
        for operator in inner {
            let at = operator.as_span().start();
            if let Some((min, max)) = counts::operator(operator, self.problems) {
                let node = item.node.repeat(min, max, at);
                item = self.deeper(node, item.depth, at);
            }
        }
        item
    }

    fn primary(&mut self, pair: Pair<'_, Rule>) -> Nested {
        let (text, at) = (pair.as_str(), pair.as_span().start());
        let inside = text.get(1..text.len() - 1).unwrap_or_default();
        let kind = match pair.as_rule() {
            Rule::class => NodeKind::Set(self.class(inside, at)),
            Rule::any => NodeKind::Set(pattern::any_set()),
            Rule::literal => NodeKind::Text(SPELLING.text(inside, at + 1, self.problems)),
            Rule::point => NodeKind::Text(self.point(text, at)),
            Rule::special => NodeKind::Special(text.to_owned()),
            Rule::reference => NodeKind::Name(name(text)),
            Rule::expression => return Nested::flat(self.expression(pair)),
            Rule::braces => {
                let body = self.only_choice(pair);
                return self.deeper(body.node.repeat(0, None, at), body.depth, at);
            }
            _ => {
                let body = self.only_choice(pair);
                return self.deeper(grouped(body.node), body.depth, at);
            }
        };
        Nested::flat(Node::leaf(at, kind))
    }

    fn only_choice(&mut self, pair: Pair<'_, Rule>) -> Nested {
        let at = pair.as_span().start();
        match pair.into_inner().next() {
            Some(choice) => self.choice(choice),
            None => Nested::flat(Node::empty(at)),
        }
    }

    fn class(&mut self, inside: &str, at: usize) -> ClassUnicode {
        SPELLING.class(inside, at + 1, self.problems)
    }

    fn point(&mut self, text: &str, at: usize) -> String {
        let point = point(&text[2..], 16);
        if point.is_none() {
            let message = format!("`{text}` is not a Unicode character");
            self.problems.syntax(at, message);
        }
        point.map(String::from).unwrap_or_default()
    }

    fn expression(&mut self, pair: Pair<'_, Rule>) -> Node {
        let at = pair.as_span().start();
        let mut inner = pair.into_inner();
        let (Some(body), flags) = (inner.next(), inner.next().map_or("", |flags| flags.as_str())) else {
            return Node::empty(at);
        };
        let prefix = if flags.is_empty() {
            String::new()
        } else {
            format!("(?{flags})")
        };
        let at = body.as_span().start();
        match regex::parse(&format!("{prefix}{}", body.as_str()), Dialect::Rust, self.limits) {
            Ok(pattern) => Node::pattern(at, pattern),
            Err(error) => {
                self.expression_problem(&body, prefix.len(), error);
                Node::empty(at)
            }
        }
    }

    fn expression_problem(&mut self, body: &Pair<'_, Rule>, prefix: usize, error: RegexError) {
        let column = error.column.unwrap_or(1).saturating_sub(prefix).max(1);
        let before = body.as_str().chars().take(column - 1).map(char::len_utf8);
        let at = body.as_span().start() + before.sum::<usize>();
        self.problems.add(error.kind, at, error.message);
    }
}

/// Returns a part as it is in brackets. A class is repeated as a class only where it is not in brackets.
fn grouped(node: Node) -> Node {
    let at = node.at;
    match node.kind {
        NodeKind::Set(_) => Node::leaf(at, NodeKind::Seq(vec![node])),
        _ => node,
    }
}

/// Returns the name of a reference, whose span may include the white space and comments after it.
fn name(text: &str) -> String {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    text.split(|c| !is_name(c)).next().unwrap_or(text).to_owned()
}
