//! Writes out indentation, for grammars that declare terminals for it.
//!
//! Grammars of languages such as Python leave indentation to a program between lexer and parser (lark's
//! `Indenter`). It follows each line break by one declared terminal where a line is indented more than the
//! lines before it, and by one or more of the other where it is indented less:
//!
//! ```text
//!   %declare _INDENT _DEDENT
//!   suite: _NEWLINE _INDENT stmt+ _DEDENT
//! ```
//!
//! No context-free grammar has such texts for any indentation, and for each column there is one: rules with
//! line breaks are written out for every column, and for what they begin and end with.
//!
//! ```text
//!   suite, in a block at column 4:   line break, then a block at column 5 or 6 or 7 …
//!   a block at column 8:             each line begins with eight spaces, or with a tab
//! ```
//!
//! A line is indented by spaces or by tabs, of which each is eight columns, up to [`MOST`] columns. A text
//! does not end with spaces after its last line break.

use std::cell::Cell;

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};

use super::items::{Items, is_terminal};
use crate::notation::lower::Problems;
use crate::notation::tree::{Definition, Node, NodeKind};
use crate::regex::node::any_set;
use lexiform_automata::error::ProblemKind;

/// The greatest column at which a line may begin.
const MOST: u32 = 40;
/// The columns of a tab.
const TAB: u32 = 8;
/// The most rules that are made, and the most steps that it takes.
const MOST_RULES: usize = 20_000;
pub(super) const MOST_STEPS: usize = 20_000_000;
/// The steps that a part counts for: it takes memory.
const PART_STEPS: usize = 64;
/// The most repetitions that are written out; more are refused.
const MOST_TIMES: u32 = 8;

/// The terminals of indentation.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) newline: String,
    pub(super) indent: String,
    pub(super) dedent: String,
}

impl Layout {
    /// Returns the declared terminals for more and less indentation, and the terminal of the line breaks
    /// before them, if the grammar has them.
    pub(super) fn of(items: &Items) -> Option<Layout> {
        let [indent, dedent] = declared(items)?;
        let bodies = items.rules.iter().flat_map(|rule| &rule.alternatives);
        let mut open: Vec<&Node> = bodies.map(|it| &it.body).collect();
        while let Some(node) = open.pop() {
            open.extend(node.parts());
            for two in node.parts().windows(2) {
                if let [NodeKind::Name(newline), NodeKind::Name(next)] = [&two[0].kind, &two[1].kind]
                    && *next == indent
                {
                    let newline = newline.clone();
                    return Some(Layout {
                        newline,
                        indent,
                        dedent,
                    });
                }
            }
        }
        None
    }

    /// Returns `true` for the names of the terminals.
    pub(super) fn has(&self, name: &str) -> bool {
        [&self.newline, &self.indent, &self.dedent]
            .iter()
            .any(|known| **known == name)
    }
}

/// Returns the names of the declared terminals for more and less indentation.
fn declared(items: &Items) -> Option<[String; 2]> {
    let mut names = items.declared.iter().map(|name| &name.text);
    let dedent = names.clone().find(|name| name.ends_with("DEDENT"))?;
    let indent = names.find(|name| name.ends_with("INDENT"))?;
    Some([indent.clone(), dedent.clone()])
}

/// What was read before a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum At {
    /// The beginning of the text, or the indentation of a line.
    Begun,
    /// A line break.
    Line,
    /// A word of the line.
    Middle,
}

pub(super) const ALL: [At; 3] = [At::Begun, At::Line, At::Middle];

/// Some of [`ALL`], in order.
pub(super) type Ends = [bool; 3];

/// A rule that is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    /// A rule of the source, in a block at a column.
    Rule(usize, u32, At, At),
    /// Any number of a part.
    Loop(usize, u32, At, At),
    /// The rest of a sequence.
    Rest(usize, u32, At, At),
    /// The lines of a block at a column, after the indentation of the first.
    Block(usize, u32),
    /// A part without line breaks, which is the same in all blocks.
    Shared(usize),
    /// One more space, or one more tab, and then a block.
    Spaces(usize, u32),
    Tabs(usize, u32),
}

/// Writes the rules of a grammar out, from the rule with this name, and returns the node that calls it.
pub(super) fn write_out(
    definitions: &mut Vec<Definition>,
    start: &str,
    layout: &Layout,
    problems: &mut Problems,
) -> Node {
    let mut columns = Columns::new(definitions, layout);
    let called = Node::name(0, start);
    if !columns.has_lines(&called) {
        return called;
    }
    let ends: Vec<Node> = ALL
        .iter()
        .filter_map(|&end| columns.part(&called, 0, At::Begun, end))
        .collect();
    let mut made = Vec::new();
    while let Some(key) = columns.open.pop() {
        if made.len() > MOST_RULES || columns.is_exhausted() {
            break;
        }
        let body = columns.body(key).unwrap_or_else(|| Node::choice(0, Vec::new()));
        let name = columns.name(key);
        made.push(Definition { name, at: 0, body });
    }
    if !columns.open.is_empty() || columns.is_exhausted() {
        let message = "the indentation of this grammar takes too many rules";
        problems.add(ProblemKind::Limit, 0, message);
    }
    for &at in &columns.refused {
        let message = format!(
            "`{}` stands where no `{}` follows it",
            layout.indent, layout.dedent
        );
        problems.unsupported(at, message);
    }
    let newline = Node::name(0, &*layout.newline);
    let ends_line = vec![
        Node::leaf(0, NodeKind::Set(any_set())).repeat(0, None, 0),
        Node::text(0, "\n"),
    ];
    made.push(Definition {
        name: NEWLINE.to_owned(),
        at: 0,
        body: Node::all(0, vec![newline, Node::seq(0, ends_line)]),
    });
    let lines: HashSet<String> = columns.with_lines().map(str::to_owned).collect();
    definitions.retain(|definition| !lines.contains(&definition.name));
    definitions.extend(made);
    Node::choice(0, ends)
}

/// The name of the rule for a line break without the indentation of the next line.
const NEWLINE: &str = "{line break}";

pub(super) struct Columns<'a> {
    pub(super) definitions: &'a [Definition],
    pub(super) layout: &'a Layout,
    pub(super) rules: HashMap<&'a str, usize>,
    /// For each rule, whether a line break may be in it, and whether it may be empty.
    pub(super) lines: Vec<bool>,
    pub(super) nullable: Vec<bool>,
    /// Where each rule may end, by where it begins.
    pub(super) ends: Vec<[Ends; 3]>,
    /// The numbers of parts by their addresses, and what is repeated, in a block or shared by their numbers.
    numbers: HashMap<*const Node, usize>,
    numbered: HashMap<usize, &'a [Node]>,
    /// The rests of sequences, by the numbers of their first parts.
    rests: HashMap<usize, &'a [Node]>,
    open: Vec<Key>,
    seen: HashSet<Key>,
    /// The steps that were taken.
    pub(super) steps: Cell<usize>,
    /// The places where more indentation is not followed by less.
    refused: HashSet<usize>,
}

impl<'a> Columns<'a> {
    fn new(definitions: &'a [Definition], layout: &'a Layout) -> Columns<'a> {
        let rules = definitions
            .iter()
            .enumerate()
            .filter(|(_, it)| !is_terminal(&it.name));
        let mut columns = Columns {
            definitions,
            layout,
            rules: rules.map(|(index, it)| (it.name.as_str(), index)).collect(),
            lines: vec![false; definitions.len()],
            nullable: vec![false; definitions.len()],
            ends: vec![[[false; 3]; 3]; definitions.len()],
            numbers: HashMap::new(),
            numbered: HashMap::new(),
            rests: HashMap::new(),
            open: Vec::new(),
            seen: HashSet::new(),
            steps: Cell::new(0),
            refused: HashSet::new(),
        };
        columns.settle(|columns, index| {
            let body = &columns.definitions[index].body;
            let (lines, nullable) = (columns.has_lines(body), columns.is_nullable(body));
            let change = (lines, nullable) != (columns.lines[index], columns.nullable[index]);
            (columns.lines[index], columns.nullable[index]) = (lines, nullable);
            change
        });
        columns.settle(|columns, index| {
            let body = &columns.definitions[index].body;
            let ends = ALL.map(|from| columns.ends_of(body, from));
            std::mem::replace(&mut columns.ends[index], ends) != ends
        });
        columns
    }

    /// Repeats a step for all rules until nothing changes.
    fn settle(&mut self, mut step: impl FnMut(&mut Self, usize) -> bool) {
        let rules: Vec<usize> = self.rules.values().copied().collect();
        let mut is_changed = true;
        while is_changed && !self.is_exhausted() {
            is_changed = false;
            for &rule in &rules {
                is_changed |= step(self, rule);
            }
        }
    }

    /// Returns the names of the rules in which a line break may be.
    fn with_lines(&self) -> impl Iterator<Item = &str> {
        let rules = self
            .definitions
            .iter()
            .zip(&self.lines)
            .filter(|&(_, &lines)| lines);
        rules.map(|(definition, _)| definition.name.as_str())
    }

    fn number(&mut self, node: &Node) -> usize {
        let new = self.numbers.len();
        *self.numbers.entry(std::ptr::from_ref(node)).or_insert(new)
    }

    fn call(&mut self, key: Key) -> Node {
        if self.seen.insert(key) {
            self.open.push(key);
        }
        Node::name(0, self.name(key))
    }

    /// Returns the texts of a part in a block at a column that begin and end here, if there are any.
    fn part(&mut self, node: &'a Node, column: u32, from: At, to: At) -> Option<Node> {
        self.steps.set(self.steps.get() + PART_STEPS);
        if !self.ends_of(node, from)[to as usize] {
            return None;
        }
        if !self.has_lines(node) {
            return Some(match (from, to) {
                (At::Middle, _) | (At::Begun, At::Middle) => self.shared(node),
                (At::Line, At::Middle) => Node::seq(node.at, vec![indentation(column), self.shared(node)]),
                _ => Node::empty(node.at),
            });
        }
        match &node.kind {
            NodeKind::Name(name) => match self.rules.get(name.as_str()) {
                Some(&rule) => Some(self.call(Key::Rule(rule, column, from, to))),
                // In a block, two line breaks are one.
                None if from == At::Begun && column > 0 => None,
                None => Some(Node::name(node.at, NEWLINE)),
            },
            NodeKind::Choice(parts) => {
                let parts = parts.iter().filter_map(|part| self.part(part, column, from, to));
                some_of(node.at, parts.collect())
            }
            NodeKind::Seq(parts) => self.sequence(parts, column, from, to),
            NodeKind::Repeat(body, min, max) => self.repeat(node, (body, *min, *max), column, (from, to)),
            _ => None,
        }
    }

    /// Returns a part without line breaks, as a call.
    fn shared(&mut self, node: &'a Node) -> Node {
        if matches!(node.kind, NodeKind::Name(_)) {
            return node.clone();
        }
        let number = self.number(node);
        self.numbered.insert(number, std::slice::from_ref(node));
        self.call(Key::Shared(number))
    }

    fn sequence(&mut self, parts: &'a [Node], column: u32, from: At, to: At) -> Option<Node> {
        let (mut state, mut before) = (from, Vec::new());
        let mut at = 0;
        while let Some(part) = parts.get(at) {
            at += 1;
            if self.is(part, &self.layout.indent) {
                let Some(inner) = self.block(&parts[at..]) else {
                    self.refused.insert(part.at);
                    return None;
                };
                at += inner.len() + 1;
                if state != At::Line {
                    return None;
                }
                before.push(self.deeper(part, inner, column));
                continue;
            }
            let ends = self.ends_of(part, state);
            let ends: Vec<At> = ALL.into_iter().filter(|&end| ends[end as usize]).collect();
            match ends[..] {
                [end] => {
                    before.push(self.part(part, column, state, end)?);
                    state = end;
                }
                _ => {
                    // The rest of the sequence is written out once for each of the ways to it.
                    let ways = ends.iter().filter_map(|&end| {
                        let part = self.part(part, column, state, end)?;
                        Some(Node::seq(
                            part.at,
                            vec![part, self.rest(&parts[at..], column, end, to)?],
                        ))
                    });
                    before.push(some_of(part.at, ways.collect())?);
                    return Some(Node::seq(0, before));
                }
            }
        }
        (state == to).then(|| Node::seq(0, before))
    }

    /// Returns the call of the rest of a sequence.
    fn rest(&mut self, parts: &'a [Node], column: u32, from: At, to: At) -> Option<Node> {
        let Some(first) = parts.first() else {
            return (from == to).then(|| Node::empty(0));
        };
        let number = self.number(first);
        self.rests.insert(number, parts);
        Some(self.call(Key::Rest(number, column, from, to)))
    }

    /// Returns the call of a block that is indented more than a column.
    fn deeper(&mut self, at: &Node, inner: &'a [Node], column: u32) -> Node {
        let block = self.number(at);
        self.numbered.insert(block, inner);
        let indented = |unit: &str, times: u32, more: Node| {
            Node::seq(0, vec![Node::text(0, unit.repeat(times as usize)), more])
        };
        let spaces = self.call(Key::Spaces(block, column));
        let tabs = self.call(Key::Tabs(block, column / TAB * TAB));
        Node::choice(
            0,
            vec![indented(" ", column, spaces), indented("\t", column / TAB, tabs)],
        )
    }

    fn repeat(
        &mut self,
        node: &'a Node,
        (body, min, max): (&'a Node, u32, Option<u32>),
        column: u32,
        (from, to): (At, At),
    ) -> Option<Node> {
        let number = self.number(node);
        self.numbered.insert(number, std::slice::from_ref(body));
        let least = min.min(MOST_TIMES);
        let mut reached: Vec<(At, Node)> = vec![(from, Node::empty(0))];
        let mut found = Vec::new();
        let times = max.map_or(least, |max| max.min(MOST_TIMES));
        for time in 0..=times {
            if time >= least {
                let ends = reached.iter().filter(|(end, _)| *end == to);
                found.extend(ends.map(|(_, node)| node.clone()));
                if max.is_none() {
                    let ways = reached.iter().map(|(end, before)| (*end, before.clone()));
                    for (end, before) in ways.collect::<Vec<_>>() {
                        let more = self.call(Key::Loop(number, column, end, to));
                        found.push(Node::seq(0, vec![before, more]));
                    }
                }
            }
            if time < times {
                reached = self.once_more(reached, body, column);
            }
        }
        some_of(node.at, found)
    }

    fn once_more(&mut self, reached: Vec<(At, Node)>, body: &'a Node, column: u32) -> Vec<(At, Node)> {
        let mut next = Vec::new();
        for (end, before) in reached {
            for to in ALL {
                if let Some(part) = self.part(body, column, end, to) {
                    next.push((to, Node::seq(0, vec![before.clone(), part])));
                }
            }
        }
        next
    }

    /// Returns the name of a rule that is made, which people see where it is said what may come next.
    fn name(&self, key: Key) -> String {
        match key {
            Key::Rule(rule, column, from, to) => {
                let name = &self.definitions[rule].name;
                format!("{{{name} at column {column}, from {from:?} to {to:?}}}")
            }
            key => format!("{{{key:?}}}"),
        }
    }

    /// Returns the body of a rule that is made, if it has any text.
    fn body(&mut self, key: Key) -> Option<Node> {
        match key {
            Key::Rule(rule, column, from, to) => {
                let definitions = self.definitions;
                self.part(&definitions[rule].body, column, from, to)
            }
            Key::Loop(number, column, from, to) => {
                let body = &self.numbered[&number][0];
                let mut ways = Vec::new();
                for end in ALL {
                    let Some(once) = self.part(body, column, from, end) else {
                        continue;
                    };
                    if end == to {
                        ways.push(once.clone());
                    }
                    let more = self.call(Key::Loop(number, column, end, to));
                    ways.push(Node::seq(0, vec![once, more]));
                }
                some_of(0, ways)
            }
            Key::Rest(number, column, from, to) => {
                let parts = self.rests[&number];
                self.sequence(parts, column, from, to)
            }
            Key::Shared(number) => Some(self.numbered[&number][0].clone()),
            Key::Block(block, column) => {
                let inner = self.numbered[&block];
                self.sequence(inner, column, At::Begun, At::Line)
            }
            Key::Spaces(block, column) => self.indented(block, column, (" ", 1), Key::Spaces),
            Key::Tabs(block, column) => self.indented(block, column, ("\t", TAB), Key::Tabs),
        }
    }

    /// Returns one more space or tab, and then a block or more of the same.
    fn indented(
        &mut self,
        block: usize,
        column: u32,
        (text, width): (&str, u32),
        more: impl Fn(usize, u32) -> Key,
    ) -> Option<Node> {
        let next = column + width;
        if next > MOST {
            return None;
        }
        let ways = vec![self.call(Key::Block(block, next)), self.call(more(block, next))];
        Some(Node::seq(0, vec![Node::text(0, text), Node::choice(0, ways)]))
    }
}

fn some_of(at: usize, ways: Vec<Node>) -> Option<Node> {
    (!ways.is_empty()).then(|| Node::choice(at, ways))
}

/// Returns the indentation of a line at a column.
fn indentation(column: u32) -> Node {
    let spaces = Node::text(0, " ".repeat(column as usize));
    match column % TAB {
        0 if column > 0 => {
            let tabs = Node::text(0, "\t".repeat((column / TAB) as usize));
            Node::choice(0, vec![spaces, tabs])
        }
        _ => spaces,
    }
}
