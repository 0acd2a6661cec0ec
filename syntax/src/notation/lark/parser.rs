//! Parses a source to items: rules, terminals and directives.
//!
//! ```text
//!   item:        ["?" "!"] name ["{" parameters "}"] ["::_"] ["." priority] ["[" attributes "]"] ":" alternatives
//!   alternatives: alternative ("|" alternative)*          %if conditions stand at the end of an alternative
//!   alternative: conjunct ("&" conjunct)* ["->" name]
//!   conjunct:    (["~"] atom repetition*)*
//!   atom:        text | text ".." text | expression | name | template use | token | "(" … ")" | "[" … "]" | %json …
//! ```
//!
//! After a problem, parsing goes on at the next line that begins an item, so that all lines with problems are
//! reported at once.

use super::items::{
    Alternative, Attributes, Given, Import, Items, Mode, Name, RuleItem, Use, is_terminal, placeholder,
};
use super::reading::{Dialect, Reading};
use super::scanner::{Bad, Scanner};
use crate::notation::lower::Problems;
use crate::notation::tree::{Node, NodeKind};
use lexiform_automata::limits::Limits;

/// The deepest nesting of brackets, whatever `nesting` allows: the parser recurses.
const MOST_BRACKETS: usize = 200;
/// The most operators after one part: each is a level of the tree.
const MOST_OPERATORS: usize = 50;

/// Parses a source; all problems are added to `problems`.
pub(super) fn parse(text: &str, dialect: Dialect, reading: &Reading<'_>, problems: &mut Problems) -> Items {
    let mut parser = Parser {
        scanner: Scanner::new(text),
        dialect,
        reading,
        limits: reading.limits,
        items: Items::default(),
    };
    parser.scanner.lines();
    while !parser.scanner.rest().is_empty() && !reading.limits.cancel.is_asked() {
        if let Err((at, message)) = parser.item() {
            problems.syntax(at, message);
            parser.scanner.skip_item();
        }
        parser.scanner.lines();
    }
    parser.items
}

pub(super) struct Parser<'t, 'o> {
    pub(super) scanner: Scanner<'t>,
    pub(super) dialect: Dialect,
    pub(super) reading: &'o Reading<'o>,
    pub(super) limits: &'o Limits,
    pub(super) items: Items,
}

impl<'t> Parser<'t, '_> {
    /// Returns a problem at the current place.
    pub(super) fn expected<T>(&self, what: &str) -> Result<T, Bad> {
        let found = match self.scanner.peek() {
            None => "the end of the grammar".to_owned(),
            Some('\n' | '\r') => "the end of the line".to_owned(),
            Some(c) => format!("`{}`", c.escape_default()),
        };
        Err((self.scanner.at, format!("expected {what}, found {found}")))
    }

    pub(super) fn required(&mut self, sign: &str, after: &str) -> Result<(), Bad> {
        match self.scanner.eat_after_blanks(sign) {
            true => Ok(()),
            false => self.expected(&format!("`{sign}` {after}")),
        }
    }

    pub(super) fn name(&mut self, what: &str) -> Result<Name, Bad> {
        self.scanner.blanks();
        let at = self.scanner.at;
        match self.scanner.name() {
            Some(text) => Ok(Name {
                text: text.to_owned(),
                at,
            }),
            None => self.expected(what),
        }
    }

    fn item(&mut self) -> Result<(), Bad> {
        let at = self.scanner.at;
        if self.scanner.eat("%") {
            let word = self.scanner.name().unwrap_or_default();
            self.directive(word, at)?;
        } else {
            let rule = self.rule(Mode::Define)?;
            self.items.rules.push(rule);
        }
        self.end_of_item()
    }

    fn end_of_item(&mut self) -> Result<(), Bad> {
        self.scanner.blanks();
        match self.scanner.is_line_end() {
            true => Ok(()),
            false => self.expected("a part (text, expression, name, group …), `|` or the end of the line"),
        }
    }

    fn directive(&mut self, word: &str, at: usize) -> Result<(), Bad> {
        match word {
            "ignore" => {
                let ignored = self.alternatives_as_node()?;
                self.items.ignored.push(ignored);
            }
            "import" => self.import(at)?,
            "declare" => {
                self.scanner.blanks();
                while !self.scanner.is_line_end() {
                    let name = self.name("the name of a terminal")?;
                    self.items.declared.push(name);
                    self.scanner.blanks();
                }
            }
            "override" | "extend" => {
                self.scanner.blanks();
                let mode = if word == "extend" {
                    Mode::Extend
                } else {
                    Mode::Override
                };
                let rule = self.rule(mode)?;
                self.items.rules.push(rule);
            }
            "llguidance" | "grammar_options" => self.engine_options()?,
            word => {
                let known = "`%ignore`, `%import`, `%declare`, `%override` and `%extend`";
                return Err((at, format!("unknown directive `%{word}`; there are {known}")));
            }
        }
        Ok(())
    }

    /// Reads the options of `%llguidance {…}`; only one of them changes the language.
    fn engine_options(&mut self) -> Result<(), Bad> {
        self.scanner.blanks();
        let at = self.scanner.at;
        if self.scanner.is_line_end() {
            return Ok(());
        }
        let json = self.scanner.json()?;
        let Ok(serde_json::Value::Object(options)) = serde_json::from_str(json) else {
            return Err((at, "the options of a grammar are a JSON object".to_owned()));
        };
        for (name, value) in options {
            let value = value
                .as_bool()
                .ok_or_else(|| (at, format!("`{name}` is true or false")))?;
            match (name.as_str(), value) {
                ("allow_initial_skip", value) => self.items.initial_skip = Some(value),
                // They do not change the texts of the language.
                ("no_forcing", _) | ("allow_invalid_utf8", false) => {}
                _ => return Err((at, format!("the option `{name}` is not supported"))),
            }
        }
        Ok(())
    }

    fn import(&mut self, at: usize) -> Result<(), Bad> {
        self.scanner.blanks();
        let is_relative = self.scanner.eat(".");
        let mut path = vec![self.name("the name of a library")?];
        while self.scanner.eat(".") {
            path.push(self.name("a name")?);
        }
        let mut names = Vec::new();
        if self.scanner.eat_after_blanks("(") {
            self.scanner.open += 1;
            loop {
                let name = self.name("the name of a rule")?;
                names.push((name.clone(), name.text));
                if !self.scanner.eat_after_blanks(",") {
                    break;
                }
            }
            self.required(")", "after the names")?;
            self.scanner.open -= 1;
        } else {
            let alias = match self.scanner.eat_after_blanks("->") {
                true => Some(self.name("a name after `->`")?.text),
                false => None,
            };
            let name = path.pop().filter(|_| !path.is_empty());
            let name = name.ok_or_else(|| (at, "an import names a library and a rule of it".to_owned()))?;
            names.push((name.clone(), alias.unwrap_or(name.text)));
        }
        let path = path.into_iter().map(|name| name.text).collect();
        self.items.imports.push(Import {
            at,
            path,
            is_relative,
            names,
        });
        Ok(())
    }

    fn rule(&mut self, mode: Mode) -> Result<RuleItem, Bad> {
        while self.scanner.eat("?") || self.scanner.eat("!") {}
        let name = self.name("the name of a rule")?;
        let mut parameters = Vec::new();
        if self.scanner.eat("{") {
            loop {
                parameters.push(self.name("the name of a parameter")?.text);
                if !self.scanner.eat_after_blanks(",") {
                    break;
                }
            }
            self.required("}", "after the parameters")?;
        }
        let is_parametric = self.scanner.eat("::_");
        let has_priority = self.scanner.eat(".");
        if has_priority {
            // Priorities choose between readings of a text, and between words that begin at the same place.
            self.scanner.eat("-");
            if self.scanner.digits().is_empty() {
                return self.expected("a priority");
            }
        }
        let mut attributes = match self.scanner.eat("[") {
            true => self.attributes(&name)?,
            false => Attributes::default(),
        };
        attributes.has_priority = has_priority;
        self.required(":", "after the name of a rule")?;
        Ok(RuleItem {
            alternatives: self.alternatives(0)?,
            name,
            mode,
            parameters,
            is_parametric,
            attributes,
        })
    }

    /// Parses alternatives of a rule, which may have conditions.
    fn alternatives(&mut self, depth: usize) -> Result<Vec<Alternative>, Bad> {
        let mut all = Vec::new();
        // A `|` may stand before the first alternative on a line of its own.
        loop {
            let body = self.alternative(depth)?;
            let condition = match self.scanner.eat_after_blanks("%if") {
                true => Some(self.condition(0)?),
                false => None,
            };
            all.push(Alternative { body, condition });
            if !self.scanner.eat_after_blanks("|") {
                return Ok(all);
            }
        }
    }

    /// Parses alternatives without conditions.
    pub(super) fn alternatives_as_node(&mut self) -> Result<Node, Bad> {
        self.inner_alternatives(0)
    }

    fn inner_alternatives(&mut self, depth: usize) -> Result<Node, Bad> {
        let at = self.scanner.at;
        let mut all = Vec::new();
        loop {
            all.push(self.alternative(depth)?);
            if !self.scanner.eat_after_blanks("|") {
                return Ok(Node::choice(at, all));
            }
        }
    }

    fn alternative(&mut self, depth: usize) -> Result<Node, Bad> {
        let at = self.scanner.at;
        let mut conjuncts = vec![self.sequence(depth)?];
        while self.scanner.eat_after_blanks("&") {
            conjuncts.push(self.sequence(depth)?);
        }
        if self.scanner.eat_after_blanks("->") {
            // An alias names a node of the parse tree and changes no text.
            self.name("a name after `->`")?;
        }
        Ok(Node::all(at, conjuncts))
    }

    fn sequence(&mut self, depth: usize) -> Result<Node, Bad> {
        self.scanner.blanks();
        let at = self.scanner.at;
        let mut parts = Vec::new();
        loop {
            self.scanner.blanks();
            let is_end = match self.scanner.peek() {
                None | Some('\r' | '\n' | '|' | ')' | ']' | '}' | '&' | ',') => true,
                Some('-') => self.scanner.rest().starts_with("->"),
                Some('%') => self.scanner.rest().starts_with("%if"),
                _ => false,
            };
            if is_end {
                return Ok(Node::seq(at, parts));
            }
            parts.push(self.part(depth)?);
        }
    }

    fn part(&mut self, depth: usize) -> Result<Node, Bad> {
        let at = self.scanner.at;
        let is_complement = self.scanner.eat("~");
        let mut part = self.atom(depth)?;
        for _ in 0..MOST_OPERATORS {
            match self.operator()? {
                Some((min, max)) => part = part.repeat(min, max, at),
                None if is_complement => return Ok(part.not(at)),
                None => return Ok(part),
            }
        }
        Err((
            at,
            format!("more than {MOST_OPERATORS} operators follow this part"),
        ))
    }

    /// Reads a repetition, if one follows.
    fn operator(&mut self) -> Result<Option<(u32, Option<u32>)>, Bad> {
        self.scanner.blanks();
        let at = self.scanner.at;
        let rest = self.scanner.rest();
        // A `?` before a letter begins the name of the next rule.
        let is_mark = |c: char| c.is_alphabetic();
        let counts = match self.scanner.peek() {
            Some('?') if !rest[1..].starts_with(is_mark) => (0, Some(1)),
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('{') => return self.braces(at).map(Some),
            Some('~') if rest[1..].trim_start().starts_with(|c: char| c.is_ascii_digit()) => {
                return self.tilde(at).map(Some);
            }
            _ => return Ok(None),
        };
        self.scanner.at += 1;
        Ok(Some(counts))
    }

    /// `~3` and `~2..4`.
    fn tilde(&mut self, at: usize) -> Result<(u32, Option<u32>), Bad> {
        self.scanner.eat("~");
        self.scanner.blanks();
        let min = self.count(at)?;
        let end = self.scanner.at;
        let max = match self.scanner.eat_after_blanks("..") {
            true => {
                self.scanner.blanks();
                self.count(at)?
            }
            false => {
                self.scanner.at = end;
                min
            }
        };
        self.ordered(min, Some(max), at)
    }

    /// `{3}`, `{2,}`, `{,4}` and `{2,4}`.
    fn braces(&mut self, at: usize) -> Result<(u32, Option<u32>), Bad> {
        self.scanner.eat("{");
        self.scanner.blanks();
        let is_number = |parser: &Self| parser.scanner.peek().is_some_and(|c| c.is_ascii_digit());
        let min = match is_number(self) {
            true => Some(self.count(at)?),
            false => None,
        };
        let max = match self.scanner.eat_after_blanks(",") {
            false => min,
            true => {
                self.scanner.blanks();
                match is_number(self) {
                    true => Some(self.count(at)?),
                    false if min.is_some() => None,
                    false => return self.expected("a count"),
                }
            }
        };
        self.required("}", "after the counts")?;
        match (min, max) {
            (None, None) => Err((at, "expected a count such as `{2,4}`".to_owned())),
            (min, max) => self.ordered(min.unwrap_or(0), max, at),
        }
    }

    fn count(&mut self, at: usize) -> Result<u32, Bad> {
        let digits = self.scanner.digits();
        match digits.parse::<u32>() {
            Ok(count) if count <= i32::MAX as u32 => Ok(count),
            _ if digits.is_empty() => self.expected("a count"),
            _ => Err((at, "the repetition count is too large".to_owned())),
        }
    }

    fn ordered(&self, min: u32, max: Option<u32>, at: usize) -> Result<(u32, Option<u32>), Bad> {
        match max.is_some_and(|max| max < min) {
            true => Err((
                at,
                "the minimum of a repetition is greater than its maximum".to_owned(),
            )),
            false => Ok((min, max)),
        }
    }

    fn atom(&mut self, depth: usize) -> Result<Node, Bad> {
        let at = self.scanner.at;
        match self.scanner.peek() {
            Some('(') => self.group(depth, ")"),
            Some('[') => {
                let body = self.group(depth, "]")?;
                Ok(body.repeat(0, Some(1), at))
            }
            Some('"') => self.text(),
            Some('/') => self.expression(),
            Some('<') => self.token(),
            Some('%') => self.embedded(),
            Some(c) if c == '_' || c.is_alphabetic() => self.reference(depth),
            _ => self.expected("a part (text, expression, name, group …)"),
        }
    }

    fn group(&mut self, depth: usize, close: &str) -> Result<Node, Bad> {
        let (at, limit) = (self.scanner.at, self.limits.nesting.min(MOST_BRACKETS));
        if depth >= limit {
            return Err((
                at,
                format!("brackets nest too deeply; the limit `nesting` is {limit}"),
            ));
        }
        self.scanner.at += 1;
        self.scanner.open += 1;
        let body = self.inner_alternatives(depth + 1)?;
        self.required(close, "after the group")?;
        self.scanner.open = self.scanner.open.saturating_sub(1);
        Ok(body)
    }

    fn reference(&mut self, depth: usize) -> Result<Node, Bad> {
        let name = self.name("a name")?;
        let at = name.at;
        let starts_count = |rest: &str| {
            let inside = rest.trim_start();
            inside.starts_with(|c: char| c.is_ascii_digit() || c == ',' || c == '-')
        };
        let rest = self.scanner.rest();
        let with = if rest.starts_with('{') && !starts_count(&rest[1..]) {
            self.scanner.at += 1;
            Given::Arguments(self.arguments(depth)?)
        } else if self.scanner.eat("::") {
            Given::Number(self.number()?)
        } else {
            return Ok(Node::name(at, name.text));
        };
        let index = self.items.uses.len();
        self.items.uses.push(Use { name, with });
        Ok(Node::name(at, placeholder(index)))
    }

    fn arguments(&mut self, depth: usize) -> Result<Vec<Node>, Bad> {
        if depth >= self.limits.nesting.min(MOST_BRACKETS) {
            let at = self.scanner.at;
            return Err((at, "templates nest too deeply".to_owned()));
        }
        self.scanner.open += 1;
        let mut arguments = Vec::new();
        loop {
            arguments.push(self.inner_alternatives(depth + 1)?);
            if !self.scanner.eat_after_blanks(",") {
                break;
            }
        }
        self.required("}", "after the arguments of a template")?;
        self.scanner.open = self.scanner.open.saturating_sub(1);
        Ok(arguments)
    }
}

/// Returns the name of what a rule is, for messages.
pub(super) fn kind_of(name: &str) -> &'static str {
    match is_terminal(name) {
        true => "terminal",
        false => "rule",
    }
}

/// Returns a part that is one of several characters.
pub(super) fn set(at: usize, first: char, last: char) -> Node {
    use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};
    Node::leaf(
        at,
        NodeKind::Set(ClassUnicode::new([ClassUnicodeRange::new(first, last)])),
    )
}
