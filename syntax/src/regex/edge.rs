//! Restricts the words of a plain expression to those that begin, or end, with certain characters.

use regex_syntax::hir::ClassUnicode;

use super::error::RegexError;
use super::node::{Node, difference, intersection, is_empty};

/// A side of a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    /// The first character.
    First,
    /// The last character.
    Last,
}

/// The number of nodes that may still be created; splitting `a?a?a?…` is quadratic.
pub(crate) struct Budget {
    left: u64,
}

impl Budget {
    pub(crate) fn new(nodes: u64) -> Self {
        Budget { left: nodes }
    }

    pub(crate) fn spend(&mut self, nodes: u64) -> Result<(), RegexError> {
        self.left = self.left.checked_sub(nodes).ok_or_else(|| {
            RegexError::limit(
                "resolving the anchors and look-around needs too many nodes; the limit is `regular_states`",
            )
        })?;
        Ok(())
    }
}

/// Returns the characters that a word of a plain node can have at this side.
pub(crate) fn edge_set(node: &Node, side: Side) -> ClassUnicode {
    match node {
        Node::Set(set) => set.clone(),
        Node::Alt(parts) => union(parts.iter().map(|part| edge_set(part, side))),
        Node::Concat(parts) => {
            let mut sets = Vec::new();
            for part in from_side(parts, side) {
                sets.push(edge_set(part, side));
                if !part.is_nullable() {
                    break;
                }
            }
            union(sets)
        }
        Node::Repeat { body, .. } => edge_set(body, side),
        Node::Empty | Node::Look(_) | Node::Test(_) | Node::Around(_) => ClassUnicode::empty(),
    }
}

fn union(sets: impl IntoIterator<Item = ClassUnicode>) -> ClassUnicode {
    let mut all = ClassUnicode::empty();
    sets.into_iter().for_each(|set| all.union(&set));
    all
}

fn from_side(parts: &[Node], side: Side) -> Box<dyn Iterator<Item = &Node> + '_> {
    match side {
        Side::First => Box::new(parts.iter()),
        Side::Last => Box::new(parts.iter().rev()),
    }
}

/// Returns the nonempty words of a plain node whose character at this side is in `set`.
pub(crate) fn words_with(
    node: &Node,
    side: Side,
    set: &ClassUnicode,
    budget: &mut Budget,
) -> Result<Node, RegexError> {
    budget.spend(1)?;
    if !node.is_nullable() && is_empty(&difference(&edge_set(node, side), set)) {
        return Ok(node.clone());
    }
    match node {
        Node::Set(own) => Ok(Node::Set(intersection(own, set))),
        Node::Alt(parts) => {
            let kept: Result<Vec<_>, _> = parts
                .iter()
                .map(|part| words_with(part, side, set, budget))
                .collect();
            Ok(Node::alt(kept?))
        }
        Node::Concat(parts) => concat_with(parts, side, set, budget),
        Node::Repeat { body, min, max } => {
            let one = words_with(body, side, set, budget)?;
            let others = Node::repeat((**body).clone(), min.saturating_sub(1), max.map(|max| max - 1));
            Ok(joined(one, others, side))
        }
        Node::Empty | Node::Look(_) | Node::Test(_) | Node::Around(_) => Ok(Node::never()),
    }
}

/// Restricts a sequence. Any part may provide the character, as long as the parts beyond it can be empty.
fn concat_with(
    parts: &[Node],
    side: Side,
    set: &ClassUnicode,
    budget: &mut Budget,
) -> Result<Node, RegexError> {
    let mut alternatives = Vec::new();
    for index in 0..parts.len() {
        let (part, others) = match side {
            Side::First => (&parts[index], &parts[index + 1..]),
            Side::Last => (&parts[parts.len() - 1 - index], &parts[..parts.len() - 1 - index]),
        };
        let one = words_with(part, side, set, budget)?;
        if !one.is_never() {
            budget.spend(others.len() as u64)?;
            alternatives.push(joined(one, Node::concat(others.iter().cloned()), side));
        }
        if !part.is_nullable() {
            break;
        }
    }
    Ok(Node::alt(alternatives))
}

fn joined(edge: Node, others: Node, side: Side) -> Node {
    match side {
        Side::First => Node::concat([edge, others]),
        Side::Last => Node::concat([others, edge]),
    }
}
