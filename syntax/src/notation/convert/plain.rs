//! Writes a tree with texts, sets of characters, calls, sequences, alternatives and repetitions only.
//!
//! A notation that has `a - b` keeps it. What cannot be written in this way is a problem.

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};

use super::names;
use crate::notation::lower::{Names, Problems, RegularParts};
use crate::notation::recognise::Notation;
use crate::notation::tree::{Definition, Ending, Node, NodeKind};
use crate::regex::node as pattern;
use crate::regex::whole;
use lexiform_automata::error::ProblemKind;
use lexiform_automata::limits::Limits;

/// The most nodes of all rules together.
const MOST_NODES: usize = 500_000;
/// The most parts that are written out as expressions, which may need an automaton each.
const MOST_EXPRESSIONS: usize = 2_000;

/// Returns rules in plain constructs, with the one first with which texts begin, under names that the
/// notation allows.
pub(super) fn definitions(
    all: &[Definition],
    (names, start): (Names, usize),
    (to, limits): (Notation, &Limits),
    problems: &mut Problems,
) -> Vec<Definition> {
    let order = in_order(all, names, start);
    let mut written: Vec<&str> = order.iter().map(|&at| all[at].name.as_str()).collect();
    let first = names::start_of(to).filter(|first| written.first().is_some_and(|name| name != first));
    match (first, written.first_mut()) {
        (Some(first), Some(name)) if is_made_up(name) => *name = first,
        (Some(first), _) => written.insert(0, first),
        (None, _) => {}
    }
    let renamed = names::renamed(&written, to);
    let has_first = written.len() > order.len();
    let mut named = HashMap::with_capacity(order.len());
    for (&at, name) in order.iter().zip(&renamed[usize::from(has_first)..]) {
        named.insert(names.key(&all[at].name), name.clone());
    }
    let mut plain = Plain {
        names,
        named,
        to,
        limits,
        problems,
        regulars: RegularParts::new(all, names, limits),
        expressions: 0,
        nodes: 0,
        lazy: reaching(all, names, is_lazy),
        unsaid: reaching(all, names, is_unsaid),
    };
    let mut found = Vec::with_capacity(written.len());
    if let (true, Some(definition)) = (has_first, order.first().map(|&at| &all[at])) {
        found.push(Definition {
            name: renamed[0].clone(),
            at: definition.at,
            body: Node::name(definition.at, renamed[1].as_str()),
        });
    }
    for (&at, name) in order.iter().zip(&renamed[usize::from(has_first)..]) {
        let Definition { at, body, .. } = &all[at];
        let body = plain.node(body);
        if is_never(&body) {
            plain.refuse(*at, "a rule without any texts");
        }
        found.push(Definition {
            name: name.clone(),
            at: *at,
            body,
        });
    }
    found
}

/// Returns the rules with the start first, without a start that only calls another rule for the reader.
fn in_order(all: &[Definition], names: Names, start: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    if start >= all.len() {
        return order;
    }
    let called = match &all[start].body.kind {
        NodeKind::Name(name) if is_made_up(&all[start].name) => {
            let mut all = all.iter();
            all.position(|definition| names.key(&definition.name) == names.key(name))
        }
        _ => None,
    };
    let first = called.unwrap_or(start);
    order.retain(|&at| at != start && at != first);
    order.insert(0, first);
    order
}

/// Returns `true` for the name of a rule that a reader made up.
fn is_made_up(name: &str) -> bool {
    name.starts_with('{')
}

struct Plain<'a> {
    names: Names,
    /// The new name of each rule.
    named: HashMap<String, String>,
    to: Notation,
    limits: &'a Limits,
    problems: &'a mut Problems,
    regulars: RegularParts<'a>,
    /// The number of parts that were written out as expressions.
    expressions: usize,
    nodes: usize,
    /// The rules that have, or call a rule that has, a lazy expression.
    lazy: HashSet<String>,
    /// Those that have, or call a rule that has, what is written out as an expression.
    unsaid: HashSet<String>,
}

impl Plain<'_> {
    fn refuse(&mut self, at: usize, what: &str) {
        let message = format!("grammars in `{}` cannot contain {what}", self.to);
        self.problems.unsupported(at, message);
    }

    /// Returns a part in plain constructs. A choice without parts stands for no text.
    fn node(&mut self, node: &Node) -> Node {
        let at = node.at;
        if !self.has_room(at) {
            return Node::empty(at);
        }
        match &node.kind {
            NodeKind::Text(text) if text.is_empty() => Node::empty(at),
            NodeKind::Text(_) | NodeKind::Special(_) | NodeKind::Tokens(_) => node.clone(),
            NodeKind::Set(set) => self.pattern(&pattern::Node::Set(set.clone()), at),
            NodeKind::AnyCase(text) => {
                let sets = text.chars().map(|c| pattern::either_case(pattern::char_set(c)));
                let sets = pattern::Node::concat(sets.map(pattern::Node::Set));
                self.pattern(&sets, at)
            }
            NodeKind::Pattern(it) if !it.is_lazy && it.node.is_plain() => self.pattern(&it.node, at),
            NodeKind::Name(name) => match self.named.get(&self.names.key(name)) {
                Some(name) => Node::name(at, name.as_str()),
                None => Node::empty(at),
            },
            NodeKind::Seq(parts) => {
                let parts = parts.iter().map(|part| self.node(part)).collect();
                sequence(at, parts)
            }
            NodeKind::Choice(parts) => {
                let parts = parts.iter().map(|part| self.node(part)).collect();
                choice(at, parts)
            }
            NodeKind::Repeat(body, min, max) => repeated(self.node(body), *min, *max, at),
            NodeKind::Word(body, Ending::AsWritten) if !is_combined(body) && !self.reaches_lazy(body) => {
                self.node(body)
            }
            NodeKind::All(parts) => match &parts[..] {
                [
                    whole,
                    Node {
                        kind: NodeKind::Not(other),
                        ..
                    },
                ] if self.has_exceptions(whole, other) => {
                    let (whole, other) = (self.node(whole), self.node(other));
                    whole.except(other, at)
                }
                _ => self.regular(node),
            },
            NodeKind::Pattern(_) | NodeKind::Not(_) | NodeKind::Word(..) => self.regular(node),
            NodeKind::Longest(_) => {
                self.refuse(at, "a word that ends only where no longer word begins");
                Node::empty(at)
            }
            NodeKind::Grammar(_) => {
                self.refuse(at, "another grammar, such as that of a JSON Schema");
                Node::empty(at)
            }
            NodeKind::TooDeep => Node::empty(at),
        }
    }

    fn reaches_lazy(&self, node: &Node) -> bool {
        reaches(node, self.names, is_lazy, &self.lazy)
    }

    /// Returns `true` if the notation has `a - b`, and both are parts of the tree that stay as they are.
    fn has_exceptions(&self, whole: &Node, other: &Node) -> bool {
        let has = matches!(self.to, Notation::W3c | Notation::Iso);
        has && [whole, other]
            .iter()
            .all(|part| !reaches(part, self.names, is_unsaid, &self.unsaid))
    }

    /// Writes a regular part out as one expression.
    fn regular(&mut self, node: &Node) -> Node {
        let at = node.at;
        self.expressions += 1;
        if self.expressions > MOST_EXPRESSIONS || self.limits.cancel.is_asked() {
            if self.expressions == MOST_EXPRESSIONS + 1 {
                let message = format!("more than {MOST_EXPRESSIONS} parts would be written out");
                self.problems.add(ProblemKind::Limit, at, message);
            }
            return Node::empty(at);
        }
        let size = self.limits.regular_states as u64;
        let found = self.regulars.of(node);
        let found = found.and_then(|regular| {
            whole::one_expression(&regular, size).map_err(|error| (error.kind, at, error.message))
        });
        match found {
            Ok(expression) if expression.is_plain() => self.pattern(&expression, at),
            Ok(_) => {
                self.refuse(at, "an expression with look-around");
                Node::empty(at)
            }
            Err((kind, at, message)) => {
                let what = match &node.kind {
                    NodeKind::Pattern(_) => "this expression",
                    NodeKind::Word(..) => "this word",
                    _ => "this intersection or exception",
                };
                let message = format!("{what} cannot be written out for `{}`: {message}", self.to);
                self.problems.add(kind, at, message);
                Node::empty(at)
            }
        }
    }

    /// Returns an expression without look-around in plain constructs.
    fn pattern(&mut self, node: &pattern::Node, at: usize) -> Node {
        if !self.has_room(at) {
            return Node::empty(at);
        }
        match node {
            pattern::Node::Set(set) => match set.ranges() {
                [] => Node::choice(at, Vec::new()),
                [one] if one.start() == one.end() => Node::text(at, one.start()),
                _ => Node::leaf(at, NodeKind::Set(set.clone())),
            },
            pattern::Node::Concat(parts) => {
                let parts = parts.iter().map(|part| self.pattern(part, at)).collect();
                sequence(at, parts)
            }
            pattern::Node::Alt(parts) => {
                let parts = parts.iter().map(|part| self.pattern(part, at)).collect();
                choice(at, parts)
            }
            pattern::Node::Repeat { body, min, max } => repeated(self.pattern(body, at), *min, *max, at),
            _ => Node::empty(at),
        }
    }

    fn has_room(&mut self, at: usize) -> bool {
        self.nodes += 1;
        if self.nodes == MOST_NODES {
            let message = format!(
                "the rules for `{}` would have more than {MOST_NODES} parts",
                self.to
            );
            self.problems.add(ProblemKind::Limit, at, message);
        }
        self.nodes < MOST_NODES
    }
}

fn is_lazy(node: &Node) -> bool {
    matches!(&node.kind, NodeKind::Pattern(it) if it.is_lazy)
}

/// Returns `true` if a part itself is written out as an expression, or cannot be part of an exception.
fn is_unsaid(node: &Node) -> bool {
    match &node.kind {
        NodeKind::Pattern(it) => it.is_lazy || !it.node.is_plain(),
        NodeKind::Text(_)
        | NodeKind::Set(_)
        | NodeKind::AnyCase(_)
        | NodeKind::Name(_)
        | NodeKind::Seq(_)
        | NodeKind::Choice(_)
        | NodeKind::Repeat(..) => false,
        _ => true,
    }
}

/// Returns `true` if a part has one of a kind, or calls a rule that reaches one. Recurses as deep as the
/// part, which is bounded.
fn reaches(node: &Node, names: Names, is: fn(&Node) -> bool, reaching: &HashSet<String>) -> bool {
    let is_called = matches!(&node.kind, NodeKind::Name(name) if reaching.contains(&names.key(name)));
    let mut parts = node.parts().iter();
    is(node) || is_called || parts.any(|part| reaches(part, names, is, reaching))
}

/// Returns the rules that have a part of a kind, or call a rule that reaches one.
fn reaching(all: &[Definition], names: Names, is: fn(&Node) -> bool) -> HashSet<String> {
    let mut callers: HashMap<String, Vec<&Definition>> = HashMap::new();
    let (mut found, mut open) = (HashSet::new(), Vec::new());
    for definition in all {
        let mut parts = vec![&definition.body];
        let mut has = false;
        while let Some(part) = parts.pop() {
            if let NodeKind::Name(name) = &part.kind {
                callers.entry(names.key(name)).or_default().push(definition);
            }
            has |= is(part);
            parts.extend(part.parts());
        }
        open.extend(has.then_some(definition));
    }
    while let Some(definition) = open.pop() {
        let key = names.key(&definition.name);
        if found.contains(&key) {
            continue;
        }
        open.extend(callers.get(&key).into_iter().flatten());
        found.insert(key);
    }
    found
}

fn is_combined(node: &Node) -> bool {
    matches!(node.kind, NodeKind::All(_) | NodeKind::Not(_))
}

/// Returns `true` if a part has no texts.
fn is_never(node: &Node) -> bool {
    matches!(&node.kind, NodeKind::Choice(parts) if parts.is_empty())
}

fn is_empty(node: &Node) -> bool {
    matches!(&node.kind, NodeKind::Seq(parts) if parts.is_empty())
}

/// Returns parts one after the other, with texts that follow each other as one.
fn sequence(at: usize, parts: Vec<Node>) -> Node {
    if parts.iter().any(is_never) {
        return Node::choice(at, Vec::new());
    }
    let mut flat: Vec<Node> = Vec::with_capacity(parts.len());
    for part in parts {
        let inner = match part.kind {
            NodeKind::Seq(inner) => inner,
            _ => vec![part],
        };
        for part in inner {
            match (flat.last_mut().map(|last| &mut last.kind), &part.kind) {
                (Some(NodeKind::Text(before)), NodeKind::Text(text)) => before.push_str(text),
                _ => flat.push(part),
            }
        }
    }
    Node::seq(at, flat)
}

/// Returns a choice without alternatives that have no texts; an empty one makes the others optional.
fn choice(at: usize, parts: Vec<Node>) -> Node {
    let (mut flat, mut is_optional) = (Vec::with_capacity(parts.len()), false);
    for part in parts {
        match part.kind {
            NodeKind::Choice(inner) => flat.extend(inner),
            _ if is_empty(&part) => is_optional = true,
            _ => flat.push(part),
        }
    }
    match (is_optional, flat.is_empty()) {
        (true, true) => Node::empty(at),
        (true, false) => Node::choice(at, flat).repeat(0, Some(1), at),
        (false, _) => Node::choice(at, flat),
    }
}

fn repeated(body: Node, min: u32, max: Option<u32>, at: usize) -> Node {
    let is_nothing = max == Some(0) || is_empty(&body);
    match (min, max) {
        _ if is_nothing => Node::empty(at),
        (0, _) if is_never(&body) => Node::empty(at),
        _ if is_never(&body) => body,
        (1, Some(1)) => body,
        _ => body.repeat(min, max, at),
    }
}
