//! Writes out the uses of templates and of rules with a parameter as rules of their own.
//!
//! ```text
//!   list: _sep{item, ","}            list: _sep{item, ","}      (the name of a rule now)
//!   _sep{x, y}: x (y x)*       ─►    _sep{item, ","}: item ("," item)*
//!   start: count::0            ─►    start: count::0
//!   count::_: "a" count::incr(_) %if lt(_, 2)      count::0: "a" count::1,  count::1: "a" count::2, …
//! ```
//!
//! Equal uses share a rule, so that a template may use itself with the same arguments.

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};

use super::items::{Alternative, Given, Items, RuleItem, use_of};
use crate::notation::lower::Problems;
use crate::notation::tree::{Node, NodeKind};
use lexiform_automata::error::ProblemKind;
use lexiform_automata::limits::Limits;

/// The most rules that are made of templates and parameters.
const MOST_RULES: usize = 20_000;
/// The longest name of such a rule in bytes, which has the arguments in it.
const LONGEST_NAME: usize = 2_000;
/// The most nodes that are copied for them.
const MOST_NODES: usize = 1_000_000;

/// A rule whose body is finished.
#[derive(Debug)]
pub(super) struct Expanded {
    pub(super) name: String,
    pub(super) at: usize,
    pub(super) rule: usize,
    pub(super) alternatives: Vec<Node>,
}

/// Returns all rules that are no templates, and those that their uses become.
pub(super) fn expand(items: &Items, limits: &Limits, problems: &mut Problems) -> Vec<Expanded> {
    let mut names = HashMap::with_capacity(items.rules.len());
    for (index, rule) in items.rules.iter().enumerate() {
        names.entry(rule.name.text.as_str()).or_insert(index);
    }
    let mut expansion = Expansion {
        items,
        names,
        problems,
        known: HashSet::new(),
        open: Vec::new(),
        nodes: 0,
    };
    let mut done = Vec::new();
    for (rule, item) in items.rules.iter().enumerate() {
        if item.parameters.is_empty() && !item.is_parametric {
            expansion.open.push(Instance {
                name: item.name.text.clone(),
                rule,
                with: With::Nothing,
            });
        }
    }
    expansion.open.reverse();
    while let Some(instance) = expansion.open.pop() {
        if limits.cancel.is_asked() || expansion.is_too_large() {
            break;
        }
        let item = &items.rules[instance.rule];
        done.push(Expanded {
            alternatives: expansion.alternatives(item, &instance.with),
            at: item.name.at,
            rule: instance.rule,
            name: instance.name,
        });
    }
    done
}

/// A rule that is to be written out.
struct Instance {
    name: String,
    rule: usize,
    with: With,
}

/// What a rule is written out with.
#[derive(Clone)]
enum With {
    Nothing,
    Arguments(Vec<Node>),
    Number(u64),
}

struct Expansion<'a> {
    items: &'a Items,
    names: HashMap<&'a str, usize>,
    problems: &'a mut Problems,
    /// The names of the instances so far.
    known: HashSet<String>,
    open: Vec<Instance>,
    nodes: usize,
}

impl Expansion<'_> {
    fn is_too_large(&mut self) -> bool {
        let is_large = self.known.len() > MOST_RULES || self.nodes > MOST_NODES;
        if is_large {
            let message =
                format!("templates and parameters make more than {MOST_RULES} rules, or large ones");
            self.problems.add(ProblemKind::Limit, 0, message);
        }
        is_large
    }

    fn alternatives(&mut self, item: &RuleItem, with: &With) -> Vec<Node> {
        let holds = |alternative: &&Alternative| match (&alternative.condition, with) {
            (Some(condition), With::Number(value)) => condition.holds(*value),
            _ => true,
        };
        let alternatives: Vec<&Node> = item
            .alternatives
            .iter()
            .filter(holds)
            .map(|alternative| &alternative.body)
            .collect();
        if let (With::Nothing, Some(alternative)) =
            (with, item.alternatives.iter().find(|it| it.condition.is_some()))
        {
            let message = "`%if` needs a rule with a parameter, such as `name::_`";
            self.problems.syntax(alternative.body.at, message);
        }
        let written = alternatives
            .into_iter()
            .map(|node| self.written(node, item, with));
        written.collect()
    }

    /// Copies a part, with arguments in the place of parameters and names of rules in the place of uses.
    fn written(&mut self, node: &Node, item: &RuleItem, with: &With) -> Node {
        self.nodes += 1;
        if self.nodes > MOST_NODES {
            return Node::empty(node.at);
        }
        let at = node.at;
        let mut all = |parts: &[Node]| -> Vec<Node> {
            parts.iter().map(|part| self.written(part, item, with)).collect()
        };
        match &node.kind {
            NodeKind::Seq(parts) => Node::seq(at, all(parts)),
            NodeKind::Choice(parts) => Node::choice(at, all(parts)),
            NodeKind::All(parts) => Node::all(at, all(parts)),
            NodeKind::Repeat(body, min, max) => {
                let body = self.written(body, item, with);
                body.repeat(*min, *max, at)
            }
            NodeKind::Not(body) => self.written(body, item, with).not(at),
            NodeKind::Name(name) => match use_of(name) {
                Some(index) => self.used(index, item, with),
                None => self.named(name, at, item, with),
            },
            _ => node.clone(),
        }
    }

    fn named(&mut self, name: &str, at: usize, item: &RuleItem, with: &With) -> Node {
        let parameter = item.parameters.iter().position(|parameter| parameter == name);
        if let (Some(index), With::Arguments(arguments)) = (parameter, with)
            && let Some(argument) = arguments.get(index)
        {
            return argument.clone();
        }
        if let Some(rule) = self.names.get(name).map(|&rule| &self.items.rules[rule])
            && (rule.is_parametric || !rule.parameters.is_empty())
        {
            let message = match rule.is_parametric {
                true => format!("`{name}` has a parameter: write `{name}::0`"),
                false => format!("`{name}` is a template with {} parameters", rule.parameters.len()),
            };
            self.problems.add(ProblemKind::Reference, at, message);
            return Node::empty(at);
        }
        Node::name(at, name)
    }

    fn used(&mut self, index: usize, item: &RuleItem, with: &With) -> Node {
        let used = &self.items.uses[index];
        let (name, at) = (used.name.text.as_str(), used.name.at);
        let Some(&rule) = self.names.get(name) else {
            let message = format!("`{name}` is not defined");
            self.problems.add(ProblemKind::Reference, at, message);
            return Node::empty(at);
        };
        let callee = &self.items.rules[rule];
        let given = match &used.with {
            Given::Number(number) if callee.is_parametric => {
                let value = match with {
                    With::Number(value) => *value,
                    _ => 0,
                };
                With::Number(number.of(value))
            }
            Given::Arguments(arguments)
                if !callee.parameters.is_empty() && arguments.len() == callee.parameters.len() =>
            {
                let arguments = arguments
                    .iter()
                    .map(|argument| self.written(argument, item, with));
                With::Arguments(arguments.collect())
            }
            _ => {
                let message = match &used.with {
                    Given::Number(_) => format!("`{name}` has no parameter; it is not written `{name}::_`"),
                    Given::Arguments(_) => {
                        format!(
                            "`{name}` is a template with {} parameters",
                            callee.parameters.len()
                        )
                    }
                };
                self.problems.add(ProblemKind::Reference, at, message);
                return Node::empty(at);
            }
        };
        Node::name(at, self.instance(name, rule, given))
    }

    /// Returns the name of a rule written out with what is given to it.
    fn instance(&mut self, name: &str, rule: usize, with: With) -> String {
        let instance = match &with {
            With::Number(value) => format!("{name}::{value}"),
            With::Arguments(arguments) => {
                let arguments: Vec<String> = arguments.iter().map(written_as).collect();
                format!("{name}{{{}}}", arguments.join(", "))
            }
            With::Nothing => name.to_owned(),
        };
        if instance.len() > LONGEST_NAME {
            let message = format!("the uses of `{name}` within its own arguments have no end");
            self.problems
                .add(ProblemKind::Limit, self.items.rules[rule].name.at, message);
            return name.to_owned();
        }
        if self.known.insert(instance.clone()) {
            self.open.push(Instance {
                name: instance.clone(),
                rule,
                with,
            });
        }
        instance
    }
}

/// Returns a text that is the same for equal arguments only.
fn written_as(node: &Node) -> String {
    match &node.kind {
        NodeKind::Name(name) => name.clone(),
        NodeKind::Text(text) => format!("{text:?}"),
        // Places are no part of an argument.
        kind => {
            let text = format!("{kind:?}");
            let mut parts = text.split("at: ");
            let mut written = parts.next().unwrap_or_default().to_owned();
            for part in parts {
                written.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
            }
            written
        }
    }
}
