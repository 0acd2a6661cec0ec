//! The syntax of ECMA-262, as JSON Schema's `pattern` uses it.
//!
//! The meaning is that of the `u` flag: the text is a sequence of Unicode scalar values, `\d` and `\w` are
//! ASCII, and `\s` is ECMAScript's definition of white space. The accepted syntax is slightly wider, like
//! that of validators in practice: any punctuation may be escaped, `{`, `}` and `]` are literals where they
//! cannot mean anything else, and `[\w-.]` is a class of three items. Escaping a letter whose escape has no
//! meaning is an error, because one dialect reads `\Z` as an anchor and another as the letter.
//!
//! ```text
//!   pattern:  alternative ('|' alternative)*
//!   term:     (assertion | atom) quantifier?
//! ```

mod class;

use regex_syntax::hir::{ClassUnicode, Look};

use super::cursor::Cursor;
use super::error::RegexError;
use super::node::{Around, Node, Test, any_set, difference, is_empty};
use lexiform_automata::error::ProblemKind;

/// Parses a pattern; the result may contain look-around.
pub(crate) fn parse(pattern: &str, nesting: usize) -> Result<Node, RegexError> {
    let mut parser = Parser {
        text: Cursor::new(pattern),
        depth: 0,
        nesting,
        names: Vec::new(),
    };
    let node = parser.disjunction()?;
    match parser.text.peek() {
        None => Ok(node),
        Some(_) => Err(parser.text.error("unmatched `)`")),
    }
}

struct Parser {
    text: Cursor,
    depth: usize,
    nesting: usize,
    names: Vec<String>,
}

/// A term, as far as a following quantifier is concerned.
enum Term {
    /// An atom, which may be repeated.
    Atom(Node),
    /// A condition, which must not be repeated.
    Assertion(Node),
}

impl Parser {
    fn disjunction(&mut self) -> Result<Node, RegexError> {
        self.depth += 1;
        // The pattern itself is one level but not a group.
        if self.depth > self.nesting + 1 {
            let message = format!("groups nest too deeply; the limit `nesting` is {}", self.nesting);
            return Err(RegexError::at(ProblemKind::Limit, self.text.at + 1, message));
        }
        let mut alternatives = vec![self.alternative()?];
        while self.text.eat('|') {
            alternatives.push(self.alternative()?);
        }
        self.depth -= 1;
        Ok(Node::alt(alternatives))
    }

    fn alternative(&mut self) -> Result<Node, RegexError> {
        let mut parts = Vec::new();
        while let Some(c) = self.text.peek() {
            if c == '|' || c == ')' {
                break;
            }
            let start = self.text.at;
            let term = self.term(c)?;
            parts.push(self.quantified(term, start)?);
        }
        Ok(Node::concat(parts))
    }

    fn term(&mut self, c: char) -> Result<Term, RegexError> {
        match c {
            '^' => self.assertion(Look::Start),
            '$' => self.assertion(Look::End),
            '(' => self.group(),
            '[' => Ok(Term::Atom(Node::Set(self.text.class()?))),
            '.' => {
                self.text.at += 1;
                Ok(Term::Atom(Node::Set(difference(
                    &any_set(),
                    &class::line_terminators(),
                ))))
            }
            '\\' => self.escape(),
            '*' | '+' | '?' => Err(self.text.error(format!("`{c}` has nothing to repeat"))),
            '{' if self.counts().is_some() => Err(self.text.error("`{…}` has nothing to repeat")),
            _ => {
                self.text.at += 1;
                Ok(Term::Atom(Node::char(c)))
            }
        }
    }

    fn assertion(&mut self, look: Look) -> Result<Term, RegexError> {
        self.text.at += 1;
        Ok(Term::Assertion(Node::Look(look)))
    }

    fn escape(&mut self) -> Result<Term, RegexError> {
        match self.text.peek_at(1) {
            Some('b') => {
                self.text.at += 1;
                self.assertion(Look::WordAscii)
            }
            Some('B') => {
                self.text.at += 1;
                self.assertion(Look::WordAsciiNegate)
            }
            Some('1'..='9') | Some('k') => {
                let message = "backreferences are not supported";
                Err(RegexError::unsupported(self.text.at + 1, message))
            }
            _ => {
                let set = self.text.class_escape(false)?.into_set();
                self.text.spend_ranges(set.ranges().len())?;
                Ok(Term::Atom(Node::Set(set)))
            }
        }
    }

    fn group(&mut self) -> Result<Term, RegexError> {
        let start = self.text.at;
        self.text.at += 1;
        let kind = self.group_kind()?;
        let body = self.disjunction()?;
        if !self.text.eat(')') {
            return Err(RegexError::syntax(start + 1, "unclosed `(`"));
        }
        Ok(match kind {
            GroupKind::Plain => Term::Atom(body),
            GroupKind::Around { ahead, negative } => {
                let node = look_around(ahead, negative, body, start + 1);
                // Annex B allows quantifiers after a lookahead, but not after a lookbehind.
                if ahead {
                    Term::Atom(node)
                } else {
                    Term::Assertion(node)
                }
            }
        })
    }

    fn group_kind(&mut self) -> Result<GroupKind, RegexError> {
        if self.text.peek() != Some('?') {
            return Ok(GroupKind::Plain);
        }
        for (text, ahead, negative) in [
            ("?=", true, false),
            ("?!", true, true),
            ("?<=", false, false),
            ("?<!", false, true),
        ] {
            if self.text.eat_str(text) {
                return Ok(GroupKind::Around { ahead, negative });
            }
        }
        if self.text.eat_str("?:") {
            return Ok(GroupKind::Plain);
        }
        if self.text.eat_str("?<") {
            self.group_name()?;
            return Ok(GroupKind::Plain);
        }
        if matches!(self.text.peek_at(1), Some('i' | 'm' | 's' | '-')) {
            let message = "groups that change flags are not supported";
            return Err(RegexError::unsupported(self.text.at, message));
        }
        Err(self
            .text
            .error("expected `?:`, `?=`, `?!`, `?<=`, `?<!` or `?<name>` after `(`"))
    }

    fn group_name(&mut self) -> Result<(), RegexError> {
        let start = self.text.at;
        let mut name = String::new();
        let closed = loop {
            match self.text.peek() {
                None => break false,
                Some('\\') => name.push(self.text.name_escape()?),
                Some(c) => {
                    self.text.at += 1;
                    if c == '>' {
                        break true;
                    }
                    name.push(c);
                }
            }
        };
        if !closed || !class::is_name(&name) {
            return Err(RegexError::syntax(start + 1, "invalid group name"));
        }
        if self.names.contains(&name) {
            return Err(RegexError::syntax(
                start + 1,
                format!("group name `{name}` is used twice"),
            ));
        }
        self.names.push(name);
        Ok(())
    }

    /// Reads the counts of `{n}`, `{n,}` or `{n,m}` at the current place, and returns them with the place
    /// where they end, or `None` if there are none.
    fn counts(&self) -> Option<(u64, Option<u64>, usize)> {
        let mut at = self.text.at + 1;
        let min = self.text.number(&mut at)?;
        let max = if self.text.chars.get(at) == Some(&',') {
            at += 1;
            self.text.number(&mut at)
        } else {
            Some(min)
        };
        (self.text.chars.get(at) == Some(&'}')).then_some((min, max, at + 1))
    }

    fn quantified(&mut self, term: Term, start: usize) -> Result<Node, RegexError> {
        let Some((min, max)) = self.quantifier()? else {
            return Ok(match term {
                Term::Atom(node) | Term::Assertion(node) => node,
            });
        };
        // A lazy quantifier prefers another match, but it matches the same texts.
        self.text.eat('?');
        match term {
            Term::Assertion(_) => Err(RegexError::syntax(start + 1, "an assertion cannot be repeated")),
            Term::Atom(node) => Ok(Node::repeat(node, min, max)),
        }
    }

    fn quantifier(&mut self) -> Result<Option<(u32, Option<u32>)>, RegexError> {
        let counts = match self.text.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => match self.counts() {
                Some((min, max, end)) => {
                    let counts = self.text.checked_counts(min, max)?;
                    self.text.at = end - 1;
                    counts
                }
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        self.text.at += 1;
        Ok(Some(counts))
    }
}

enum GroupKind {
    Plain,
    Around { ahead: bool, negative: bool },
}

/// Returns the node of a lookahead or lookbehind: a test where the body is only one character.
pub(super) fn look_around(ahead: bool, negative: bool, body: Node, column: usize) -> Node {
    match one_character(&body, ahead) {
        Some((set, edge)) if negative => Node::Test(Test {
            ahead,
            set: difference(&any_set(), &set),
            edge: !edge,
        }),
        Some((set, edge)) => Node::Test(Test { ahead, set, edge }),
        None => Node::Around(Around {
            ahead,
            negative,
            body: Box::new(body),
            column,
        }),
    }
}

/// Returns the characters that a body matches, and whether it also accepts the edge of the text, if the body
/// matches nothing else.
fn one_character(body: &Node, ahead: bool) -> Option<(ClassUnicode, bool)> {
    let edge = if ahead { Look::End } else { Look::Start };
    match body {
        Node::Set(set) => Some((set.clone(), false)),
        Node::Look(look) if *look == edge => Some((ClassUnicode::empty(), true)),
        Node::Alt(alternatives) => {
            let mut all = (ClassUnicode::empty(), false);
            for alternative in alternatives {
                let (set, edge) = one_character(alternative, ahead)?;
                all.0.union(&set);
                all.1 |= edge;
            }
            Some(all).filter(|(set, edge)| *edge || !is_empty(set))
        }
        _ => None,
    }
}
