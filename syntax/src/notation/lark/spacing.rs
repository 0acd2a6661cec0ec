//! Adds the ignored texts: after each word of a rule.
//!
//! Where a grammar has indentation, line breaks between brackets are ignored, too. What stands between
//! brackets is written out with other ignored texts, in rules of its own:
//!
//! ```text
//!   call: NAME "(" args ")"      call: NAME {ignored} "(" {ignored within} args{within} ")" {ignored}
//! ```

use foldhash::{HashMap, HashSet, HashSetExt};

use super::indentation::Layout;
use super::items::is_terminal;
use crate::notation::tree::{Definition, Node, NodeKind};

/// The name of the rule for ignored texts. No name in a source has braces.
pub(super) const IGNORED: &str = "{ignored}";
/// The name of the rule for ignored texts between brackets.
pub(super) const IGNORED_WITHIN: &str = "{ignored within}";

/// Adds ignored texts after the words of all rules. With indentation, line breaks between brackets are
/// ignored, and nothing is ignored after a line break elsewhere.
pub(super) fn space(definitions: &mut Vec<Definition>, layout: Option<&Layout>) {
    let is_rule = |it: &&Definition| !is_terminal(&it.name);
    let rules: HashMap<&str, &Definition> = definitions
        .iter()
        .filter(is_rule)
        .map(|it| (it.name.as_str(), it))
        .collect();
    let mut spacing = Spacing {
        layout,
        rules: &rules,
        within: Vec::new(),
        seen: HashSet::new(),
    };
    let bodies: Vec<Option<Node>> = (definitions.iter())
        .map(|it| (!is_terminal(&it.name)).then(|| spacing.spaced(&it.body, false)))
        .collect();
    let mut made = Vec::new();
    while let Some(name) = spacing.within.pop() {
        let Some(rule) = rules.get(name.as_str()) else {
            continue;
        };
        made.push(Definition {
            name: within(&name),
            at: rule.at,
            body: spacing.spaced(&rule.body, true),
        });
    }
    for (definition, body) in definitions.iter_mut().zip(bodies) {
        definition.body = body.unwrap_or_else(|| definition.body.clone());
    }
    definitions.extend(made);
}

/// Returns the name of a rule between brackets.
fn within(name: &str) -> String {
    format!("{{within {name}}}")
}

struct Spacing<'a> {
    layout: Option<&'a Layout>,
    rules: &'a HashMap<&'a str, &'a Definition>,
    /// The rules that are called between brackets and are not written out yet.
    within: Vec<String>,
    seen: HashSet<String>,
}

impl Spacing<'_> {
    fn spaced(&mut self, node: &Node, is_within: bool) -> Node {
        let at = node.at;
        match &node.kind {
            NodeKind::Seq(parts) => self.sequence(node, parts, is_within),
            NodeKind::Choice(parts) => Node::choice(
                at,
                parts.iter().map(|part| self.spaced(part, is_within)).collect(),
            ),
            NodeKind::Repeat(body, min, max) => self.spaced(body, is_within).repeat(*min, *max, at),
            NodeKind::Name(name) if self.layout.is_some_and(|layout| layout.has(name)) => match is_within {
                // A line break is an ignored text there.
                true => Node::choice(at, Vec::new()),
                false => node.clone(),
            },
            NodeKind::Name(name) if is_terminal(name) || name.starts_with("{lark") => {
                followed(node.clone(), is_within)
            }
            NodeKind::Text(text) if text.is_empty() => node.clone(),
            NodeKind::Name(name) => self.call(node, name, is_within),
            NodeKind::TooDeep => node.clone(),
            _ => followed(node.clone(), is_within),
        }
    }

    fn sequence(&mut self, node: &Node, parts: &[Node], is_within: bool) -> Node {
        let mut open = 0;
        let spaced = parts.iter().map(|part| {
            let bracket = self.layout.and_then(|_| bracket(part));
            open += bracket.unwrap_or(0);
            match bracket {
                Some(_) => followed(part.clone(), is_within || open > 0),
                None => self.spaced(part, is_within || open > 0),
            }
        });
        Node::seq(node.at, spaced.collect())
    }

    fn call(&mut self, node: &Node, name: &str, is_within: bool) -> Node {
        if !is_within || !self.rules.contains_key(name) {
            return node.clone();
        }
        if self.seen.insert(name.to_owned()) {
            self.within.push(name.to_owned());
        }
        Node::name(node.at, within(name))
    }
}

fn followed(word: Node, is_within: bool) -> Node {
    let at = word.at;
    let ignored = if is_within { IGNORED_WITHIN } else { IGNORED };
    Node::seq(at, vec![word, Node::name(at, ignored)])
}

/// Returns 1 for a bracket that opens, and -1 for one that closes.
fn bracket(node: &Node) -> Option<i32> {
    let text = match &node.kind {
        NodeKind::Text(text) => text,
        NodeKind::Longest(longest) => match (&longest.head, &longest.word.kind) {
            (None, NodeKind::Text(text)) => text,
            _ => return None,
        },
        _ => return None,
    };
    match text.as_str() {
        "(" | "[" | "{" => Some(1),
        ")" | "]" | "}" => Some(-1),
        _ => None,
    }
}
