//! Makes the tree of a grammar of its items: imports, templates, terminals as words, and ignored texts.
//!
//! A terminal is one regular language, and what is ignored may follow each text, expression and terminal in a
//! rule:
//!
//! ```text
//!   start: NAME "=" value              start: NAME {ignored} "=" {ignored} value
//!   NAME: LETTER+              ─►      NAME: one word for LETTER+
//!   %ignore WS                         {ignored}: WS*
//! ```

use foldhash::{HashMap, HashSet, HashSetExt};

use super::expand::{Expanded, expand};
use super::indentation::{Layout, write_out};
use super::items::{
    Alternative, Attributes, Import, Items, Mode, Name, RuleItem, is_terminal, nested_name, use_of,
};
use super::longest::Lexing;
use super::parser::parse;
use super::reading::{Dialect, Reading, built_in};
use super::settle::settle;
use super::spacing::{IGNORED, IGNORED_WITHIN, space};
use crate::notation::lower::Problems;
use crate::notation::lower::{Names, Tree, lower};
use crate::notation::tree::{Definition, Ending, Node, NodeKind};
use lexiform_automata::error::ProblemKind;

/// The name of the rule for a text with ignored texts before it.
const WHOLE: &str = "{whole}";
/// The deepest nesting of imports, and of grammars in braces.
const MOST_SOURCES: usize = 8;

/// Makes the tree of a grammar.
pub(super) fn tree<'t>(text: &'t str, dialect: Dialect, reading: &Reading<'_>) -> Tree<'t> {
    let mut problems = Problems::default();
    let mut items = parse(text, dialect, reading, &mut problems);
    import_all(&mut items, dialect, reading, &mut problems);
    check_terminals(&items, &mut problems);
    let rules = expand(&items, reading.limits, &mut problems);
    let start = start_of(&items, reading, &mut problems);
    let ignores = !items.ignored.is_empty();
    let layout = Layout::of(&items);
    let mut definitions: Vec<Definition> = rules.into_iter().map(|rule| definition(rule, &items)).collect();
    let mut ignored = items.ignored.clone();
    if problems.is_empty() {
        let prioritised = items.rules.iter().filter(|rule| rule.attributes.has_priority);
        let lexing = Lexing {
            dialect,
            ignored: &items.ignored,
            prioritised: &prioritised.map(|rule| rule.name.text.clone()).collect(),
            layout: layout.as_ref(),
        };
        ignored = settle(&mut definitions, &start, &lexing, reading.limits, &mut problems);
    }
    if ignores {
        let newline = layout.as_ref().map(|layout| &layout.newline);
        let newline = newline.and_then(|name| definitions.iter().find(|it| it.name == *name));
        let rules = ignored_rules(ignored, newline.map(|newline| newline.body.clone()));
        space(&mut definitions, layout.as_ref());
        definitions.extend(rules);
    }
    let called = match &layout {
        Some(layout) if problems.is_empty() => write_out(&mut definitions, &start, layout, &mut problems),
        _ => Node::name(0, start),
    };
    definitions.extend(nested(&items, dialect, reading, &mut problems));
    let skips = items.initial_skip.unwrap_or(dialect == Dialect::Lark) && ignores;
    let body = match skips {
        true => Node::seq(0, vec![Node::name(0, IGNORED), called]),
        false => called,
    };
    definitions.insert(
        0,
        Definition {
            name: WHOLE.to_owned(),
            at: 0,
            body,
        },
    );
    Tree {
        text,
        definitions,
        starts: &[WHOLE],
        names: Names::AsWritten,
        has_gaps: !problems.is_empty(),
        problems,
    }
}

/// Returns the rules for ignored texts; between brackets, line breaks are ignored too.
fn ignored_rules(ignored: Vec<Node>, newline: Option<Node>) -> Vec<Definition> {
    let words = ignored.into_iter().map(|ignored| match ignored.kind {
        NodeKind::Longest(_) => ignored,
        _ => ignored.word(Ending::AsWritten),
    });
    let words: Vec<Node> = words.collect();
    let rule = |name: &str, words| Definition {
        name: name.to_owned(),
        at: 0,
        body: Node::choice(0, words).repeat(0, None, 0),
    };
    let within = newline.map(|newline| [&words[..], &[newline]].concat());
    let within = within.map(|words| rule(IGNORED_WITHIN, words));
    [rule(IGNORED, words)].into_iter().chain(within).collect()
}

/// Returns the name of the rule that derives whole texts.
fn start_of(items: &Items, reading: &Reading<'_>, problems: &mut Problems) -> String {
    let wanted = reading.start.unwrap_or("start");
    let is_there = items.rules.iter().any(|rule| rule.name.text == wanted);
    if !is_there && problems.is_empty() {
        let message = format!("there is no rule `{wanted}`, with which texts begin");
        problems.add(ProblemKind::Reference, 0, message);
    }
    match is_there {
        true => wanted.to_owned(),
        false => items
            .rules
            .first()
            .map_or_else(String::new, |rule| rule.name.text.clone()),
    }
}

/// Returns the rules of the grammars in braces. Recurses as deep as they nest.
fn nested(
    items: &Items,
    dialect: Dialect,
    reading: &Reading<'_>,
    problems: &mut Problems,
) -> Vec<Definition> {
    let mut definitions = Vec::new();
    for (index, source) in items.nested.iter().enumerate() {
        if reading.depth >= MOST_SOURCES {
            problems.add(ProblemKind::Limit, source.at, "grammars nest too deeply");
            break;
        }
        let inner = Reading {
            depth: reading.depth + 1,
            start: None,
            ..reading.clone()
        };
        match lower(tree(&source.text, dialect, &inner), reading.limits) {
            Ok(cfg) => definitions.push(Definition {
                name: nested_name(index),
                at: source.at,
                body: Node::leaf(source.at, NodeKind::Grammar(Box::new(cfg))),
            }),
            Err(error) => {
                for problem in error.problems {
                    problems.add(problem.kind, source.at, format!("in these braces: {problem}"));
                }
            }
        }
    }
    definitions
}

fn definition(rule: Expanded, items: &Items) -> Definition {
    let item = &items.rules[rule.rule];
    let body = Node::choice(rule.at, rule.alternatives);
    let attributes = &item.attributes;
    let body = if let Some(stop) = &attributes.stop {
        Node::seq(rule.at, vec![body, stop.clone()]).word(Ending::Soonest)
    } else if attributes.is_lazy {
        body.word(Ending::Soonest)
    } else if let NodeKind::Grammar(_) = body.kind {
        // The spans of a text, as a terminal: no expression could say it.
        body
    } else if is_terminal(&item.name.text) {
        body.word(Ending::AsWritten)
    } else {
        body
    };
    Definition {
        name: rule.name,
        at: rule.at,
        body,
    }
}

/// Reports terminals that call rules, and terminals with what only rules may have.
fn check_terminals(items: &Items, problems: &mut Problems) {
    for rule in items.rules.iter().filter(|rule| is_terminal(&rule.name.text)) {
        let mut open: Vec<&Node> = rule.alternatives.iter().map(|it| &it.body).collect();
        for alternative in &rule.alternatives {
            if alternative.condition.is_some() {
                problems.syntax(alternative.body.at, "a terminal has no `%if`");
            }
        }
        while let Some(node) = open.pop() {
            open.extend(node.parts());
            let what = match &node.kind {
                NodeKind::Name(name) => {
                    let used = use_of(name).map(|index| &items.uses[index].name.text);
                    let name = used.unwrap_or(name);
                    match is_terminal(name) || rule.parameters.contains(name) {
                        true => continue,
                        false => format!("the rule `{name}`"),
                    }
                }
                NodeKind::Special(token) => format!("the token `{token}`"),
                NodeKind::Tokens(set) => format!("the token `{set}`"),
                _ => continue,
            };
            let message = format!("the terminal `{}` cannot contain {what}", rule.name.text);
            problems.syntax(node.at, message);
        }
    }
}

/// Adds the rules of all imports, and applies `%override` and `%extend`.
fn import_all(items: &mut Items, dialect: Dialect, reading: &Reading<'_>, problems: &mut Problems) {
    let mut importing = Importing {
        dialect,
        reading,
        problems,
        libraries: HashMap::default(),
        added: HashSet::new(),
        rules: Vec::new(),
    };
    for import in std::mem::take(&mut items.imports) {
        importing.import(&import);
    }
    let imported = std::mem::take(&mut importing.rules);
    let mut rules: Vec<RuleItem> = imported;
    let names = rules.iter().enumerate();
    let names: HashMap<String, usize> = names.map(|(at, rule)| (rule.name.text.clone(), at)).collect();
    for rule in std::mem::take(&mut items.rules) {
        let other = names.get(&rule.name.text).copied();
        match (rule.mode, other) {
            (Mode::Define, _) => rules.push(rule),
            (Mode::Override, Some(other)) => rules[other] = rule,
            (Mode::Extend, Some(other)) => rules[other].alternatives.extend(rule.alternatives),
            (_, None) => {
                let message = format!("there is no imported `{}` to change", rule.name.text);
                problems.add(ProblemKind::Reference, rule.name.at, message);
            }
        }
    }
    items.rules = rules;
    let layout = Layout::of(items);
    let defined: HashSet<&str> = items.rules.iter().map(|rule| rule.name.text.as_str()).collect();
    for name in &items.declared {
        let is_found = layout.as_ref().is_some_and(|layout| layout.has(&name.text));
        if !is_found && !defined.contains(name.text.as_str()) {
            let message = format!(
                "`{}` is declared for a program that finds its texts, which is not supported: define it",
                name.text
            );
            problems.unsupported(name.at, message);
        }
    }
}

struct Importing<'a> {
    dialect: Dialect,
    reading: &'a Reading<'a>,
    problems: &'a mut Problems,
    /// The items of each library that was read.
    libraries: HashMap<String, Option<Items>>,
    /// The full names of the rules that were added.
    added: HashSet<String>,
    rules: Vec<RuleItem>,
}

impl Importing<'_> {
    fn import(&mut self, import: &Import) {
        let library = import.path.join(".");
        if !self.libraries.contains_key(&library) {
            let items = self.read(import);
            self.libraries.insert(library.clone(), items);
        }
        for (name, alias) in &import.names {
            let known = self.libraries.get(&library).and_then(Option::as_ref);
            let Some(items) = known else { return };
            if !items.rules.iter().any(|rule| rule.name.text == name.text) {
                let message = format!("`{library}` has no `{}`", name.text);
                self.problems.add(ProblemKind::Reference, name.at, message);
                continue;
            }
            let full = format!("{library}.{}", name.text);
            self.add(&library, &name.text, name.at);
            self.rules.push(RuleItem {
                name: Name {
                    text: alias.clone(),
                    at: name.at,
                },
                mode: Mode::Define,
                parameters: Vec::new(),
                is_parametric: false,
                attributes: Attributes::default(),
                alternatives: vec![Alternative {
                    body: Node::name(name.at, full),
                    condition: None,
                }],
            });
        }
    }

    /// Reads a library that is built in or was given with the source.
    fn read(&mut self, import: &Import) -> Option<Items> {
        let library = import.path.join(".");
        let given = self.reading.imports.get(&library).map(String::as_str);
        let built_in = || built_in(&import.path).filter(|_| !import.is_relative);
        let Some(text) = given.or_else(built_in) else {
            let message = format!("there is no library `{library}`; `common` is built in");
            self.problems.add(ProblemKind::Reference, import.at, message);
            return None;
        };
        if self.reading.depth >= MOST_SOURCES {
            self.problems
                .add(ProblemKind::Limit, import.at, "imports nest too deeply");
            return None;
        }
        let inner = Reading {
            depth: self.reading.depth + 1,
            ..self.reading.clone()
        };
        // Libraries are written for the lark parser, whatever imports them.
        let dialect = if given.is_some() {
            self.dialect
        } else {
            Dialect::Lark
        };
        let mut problems = Problems::default();
        let mut items = parse(text, dialect, &inner, &mut problems);
        import_all(&mut items, dialect, &inner, &mut problems);
        if let Err(error) = problems.placed(text) {
            let first = error
                .problems
                .first()
                .map(ToString::to_string)
                .unwrap_or_default();
            let message = format!("in `{library}`: {first}");
            self.problems.syntax(import.at, message);
            return None;
        }
        Some(items)
    }

    /// Adds a rule of a library, and those that it calls, under full names.
    fn add(&mut self, library: &str, name: &str, at: usize) {
        let mut open = vec![name.to_owned()];
        while let Some(name) = open.pop() {
            if !self.added.insert(format!("{library}.{name}")) {
                continue;
            }
            let Some(Some(items)) = self.libraries.get(library) else {
                return;
            };
            let Some(rule) = items.rules.iter().find(|rule| rule.name.text == name) else {
                continue;
            };
            if !rule.parameters.is_empty() || rule.is_parametric || !items.uses.is_empty() {
                let message = format!("`{library}` has templates, which cannot be imported");
                self.problems.unsupported(at, message);
                return;
            }
            let mut rule = rule.clone();
            for alternative in &mut rule.alternatives {
                alternative.body = within(&alternative.body, library, at, &mut open);
            }
            rule.name = Name {
                text: format!("{library}.{name}"),
                at,
            };
            self.rules.push(rule);
        }
    }
}

/// Returns a part with full names, at the place of its import; the names are added to `called`.
fn within(node: &Node, library: &str, at: usize, called: &mut Vec<String>) -> Node {
    let all = |parts: &[Node], called: &mut Vec<String>| -> Vec<Node> {
        parts
            .iter()
            .map(|part| within(part, library, at, called))
            .collect()
    };
    match &node.kind {
        NodeKind::Seq(parts) => Node::seq(at, all(parts, called)),
        NodeKind::Choice(parts) => Node::choice(at, all(parts, called)),
        NodeKind::All(parts) => Node::all(at, all(parts, called)),
        NodeKind::Repeat(body, min, max) => within(body, library, at, called).repeat(*min, *max, at),
        NodeKind::Not(body) => within(body, library, at, called).not(at),
        NodeKind::Name(name) => {
            called.push(name.clone());
            Node::name(at, format!("{library}.{name}"))
        }
        kind => Node::leaf(at, kind.clone()),
    }
}
