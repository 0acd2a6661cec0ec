//! The syntax of Python's `re` module, for `str` patterns.
//!
//! Python classifies letters, digits and white space by Unicode, its `.` matches anything but a line feed,
//! and `$` matches at the end or before a last line feed. Features that are not regular (backreferences) or
//! that depend on which match is found first (atomic groups, possessive quantifiers) are refused by name;
//! patterns that Python itself refuses are syntax errors.
//!
//! ```text
//!   pattern:  alternative ('|' alternative)*
//!   term:     (assertion | atom) quantifier?
//! ```

mod class;
mod flags;

use regex_syntax::hir::{ClassUnicode, Look};

use super::cursor::Cursor;
use super::ecma::look_around;
use super::error::RegexError;
use super::node::{Node, Test, any_set, char_set, difference, either_case};
pub(crate) use flags::Flags;
use lexiform_automata::error::ProblemKind;

/// Parses a pattern without flags but those that it sets itself; the result may contain look-around.
pub(crate) fn parse(pattern: &str, nesting: usize) -> Result<Node, RegexError> {
    parse_with(pattern, Flags::default(), nesting).map(|(node, _)| node)
}

/// Parses a pattern with flags; the result may contain look-around. Also returns whether some quantifier is
/// lazy.
pub(crate) fn parse_with(pattern: &str, flags: Flags, nesting: usize) -> Result<(Node, bool), RegexError> {
    let mut parser = Parser {
        flags,
        is_lazy: false,
        text: Cursor::new(pattern),
        depth: 0,
        nesting,
        names: Vec::new(),
    };
    let node = parser.disjunction()?;
    match parser.text.peek() {
        None => Ok((node, parser.is_lazy)),
        Some(_) => Err(parser.text.error("unmatched `)`")),
    }
}

struct Parser {
    /// The flags at the current place.
    flags: Flags,
    /// `true` if some quantifier so far is lazy.
    is_lazy: bool,
    text: Cursor,
    depth: usize,
    nesting: usize,
    names: Vec<String>,
}

/// A term, as far as a following quantifier is concerned.
enum Term {
    /// An atom, which may be repeated.
    Atom(Node),
    /// A place in the text, which cannot be repeated.
    Place(Node),
    /// Nothing, such as a comment.
    Nothing,
}

/// The kinds of parenthesised parts.
enum Parenthesis {
    Plain,
    Around {
        ahead: bool,
        negative: bool,
    },
    /// A part with flags of its own.
    Flagged(Flags),
    Comment,
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
        loop {
            self.skip_layout();
            let Some(c) = self.text.peek() else {
                break;
            };
            if c == '|' || c == ')' {
                break;
            }
            let term = self.term(c)?;
            parts.push(self.quantified(term)?);
        }
        Ok(Node::concat(parts))
    }

    fn term(&mut self, c: char) -> Result<Term, RegexError> {
        match c {
            '^' if self.flags.multi_line => self.place(1, Node::Look(Look::StartLF)),
            '$' if self.flags.multi_line => self.place(1, Node::Look(Look::EndLF)),
            '^' => self.place(1, Node::Look(Look::Start)),
            '$' => {
                self.text.at += 1;
                Ok(Term::Place(self.dollar()))
            }
            '(' => self.group(),
            '[' => Ok(Term::Atom(Node::Set(
                self.text.python_class(self.flags.ignore_case)?,
            ))),
            '.' if self.flags.dot_all => {
                self.text.at += 1;
                Ok(Term::Atom(Node::Set(any_set())))
            }
            '.' => {
                self.text.at += 1;
                Ok(Term::Atom(Node::Set(difference(&any_set(), &char_set('\n')))))
            }
            '\\' => self.escape(),
            '*' | '+' | '?' => Err(self.text.error(format!("`{c}` has nothing to repeat"))),
            '{' if self.counts().is_some() => Err(self.text.error("`{…}` has nothing to repeat")),
            _ => {
                self.text.at += 1;
                Ok(Term::Atom(self.set(char_set(c))))
            }
        }
    }

    /// Returns a node for one of these characters, in either case if the flags say so.
    fn set(&self, set: ClassUnicode) -> Node {
        Node::Set(match self.flags.ignore_case {
            true => either_case(set),
            false => set,
        })
    }

    fn place(&mut self, length: usize, node: Node) -> Result<Term, RegexError> {
        self.text.at += length;
        Ok(Term::Place(node))
    }

    /// Returns the node of `$`: the end of the text, or the place before a last line feed. Where nothing can
    /// follow, it is only the end, because the whole text is matched.
    fn dollar(&self) -> Node {
        let rest = &self.text.chars[self.text.at..];
        let is_last = rest.iter().all(|&c| c == ')') || (self.depth == 1 && rest.first() == Some(&'|'));
        let end = Node::Look(Look::End);
        if is_last {
            return end;
        }
        let before_line_feed = Node::concat([Node::char('\n'), end.clone()]);
        Node::alt(vec![
            end,
            look_around(true, false, before_line_feed, self.text.at),
        ])
    }

    fn escape(&mut self) -> Result<Term, RegexError> {
        let start = self.text.at;
        match self.text.peek_at(1) {
            Some('A') => self.place(2, Node::Look(Look::Start)),
            Some('Z' | 'z') => self.place(2, Node::Look(Look::End)),
            Some('b') => self.place(2, word_boundary()),
            Some('B') => self.place(2, no_word_boundary()),
            Some('1'..='9') if !self.text.is_octal(start + 1, 3) => {
                let message = "backreferences are not supported";
                Err(RegexError::unsupported(start + 1, message))
            }
            _ => {
                let set = self.text.python_escape(false)?.into_set();
                self.text.spend_ranges(set.ranges().len())?;
                Ok(Term::Atom(self.set(set)))
            }
        }
    }

    fn group(&mut self) -> Result<Term, RegexError> {
        let start = self.text.at;
        self.text.at += 1;
        let kind = self.group_kind(start)?;
        let outside = self.flags;
        match kind {
            Parenthesis::Comment => return self.comment(start),
            Parenthesis::Flagged(flags) if self.text.eat(')') => {
                self.flags = flags;
                return Ok(Term::Nothing);
            }
            Parenthesis::Flagged(flags) => {
                self.flags = flags;
                self.text.at += 1;
            }
            _ => {}
        }
        let body = self.disjunction()?;
        self.flags = outside;
        if !self.text.eat(')') {
            return Err(RegexError::syntax(start + 1, "unclosed `(`"));
        }
        Ok(Term::Atom(match kind {
            Parenthesis::Around { ahead, negative } => look_around(ahead, negative, body, start + 1),
            _ => body,
        }))
    }

    fn comment(&mut self, start: usize) -> Result<Term, RegexError> {
        loop {
            match self.text.peek() {
                None => return Err(RegexError::syntax(start + 1, "unclosed comment")),
                Some(c) => {
                    self.text.at += 1;
                    if c == ')' {
                        return Ok(Term::Nothing);
                    }
                }
            }
        }
    }

    fn group_kind(&mut self, start: usize) -> Result<Parenthesis, RegexError> {
        if self.text.peek() != Some('?') {
            return Ok(Parenthesis::Plain);
        }
        let around = |ahead, negative| Parenthesis::Around { ahead, negative };
        let known = [
            ("?:", Parenthesis::Plain),
            ("?#", Parenthesis::Comment),
            ("?=", around(true, false)),
            ("?!", around(true, true)),
            ("?<=", around(false, false)),
            ("?<!", around(false, true)),
        ];
        for (text, kind) in known {
            if self.text.eat_str(text) {
                return Ok(kind);
            }
        }
        if self.text.eat_str("?P<") {
            self.group_name(start)?;
            return Ok(Parenthesis::Plain);
        }
        let what = match (self.text.peek_at(1), self.text.peek_at(2)) {
            (Some('P'), Some('=')) => "backreferences are",
            (Some('>'), _) => "atomic groups are",
            (Some('('), _) => "conditions on groups are",
            (Some('a' | 'i' | 'L' | 'm' | 's' | 'u' | 'x' | '-'), _) => return self.flags_of_group(start),
            _ => return Err(RegexError::syntax(start + 1, "unknown kind of group")),
        };
        Err(RegexError::unsupported(
            start + 1,
            format!("{what} not supported"),
        ))
    }

    fn group_name(&mut self, start: usize) -> Result<(), RegexError> {
        let rest = &self.text.chars[self.text.at..];
        let length = rest.iter().position(|&c| c == '>');
        let name: String = rest[..length.unwrap_or(0)].iter().collect();
        if !class::is_identifier(&name) {
            return Err(RegexError::syntax(start + 1, "invalid group name"));
        }
        self.text.at += name.chars().count() + 1;
        if self.names.contains(&name) {
            let message = format!("group name `{name}` is used twice");
            return Err(RegexError::syntax(start + 1, message));
        }
        self.names.push(name);
        Ok(())
    }

    /// Reads the counts of `{n}`, `{n,}`, `{,m}`, `{n,m}` or `{,}` at the current place, and returns them
    /// with the place where they end, or `None` if there are none; any other brace is a literal.
    fn counts(&self) -> Option<(u64, Option<u64>, usize)> {
        let mut at = self.text.at + 1;
        let min = self.text.number(&mut at);
        let max = match self.text.chars.get(at) {
            Some(',') => {
                at += 1;
                self.text.number(&mut at)
            }
            _ => Some(min?),
        };
        (self.text.chars.get(at) == Some(&'}')).then_some((min.unwrap_or(0), max, at + 1))
    }

    fn quantifier(&mut self) -> Result<Option<(u32, Option<u32>)>, RegexError> {
        let (counts, end) = match self.text.peek() {
            Some('*') => ((0, None), self.text.at + 1),
            Some('+') => ((1, None), self.text.at + 1),
            Some('?') => ((0, Some(1)), self.text.at + 1),
            Some('{') => match self.counts() {
                Some((min, max, end)) => (self.text.checked_counts(min, max)?, end),
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        self.text.at = end;
        Ok(Some(counts))
    }

    fn quantified(&mut self, term: Term) -> Result<Node, RegexError> {
        self.skip_layout();
        let start = self.text.at;
        let Some((min, max)) = self.quantifier()? else {
            return Ok(match term {
                Term::Atom(node) | Term::Place(node) => node,
                Term::Nothing => Node::Empty,
            });
        };
        // A lazy quantifier prefers another match, but it matches the same texts.
        let is_lazy = self.text.eat('?');
        self.is_lazy |= is_lazy;
        if !is_lazy && self.text.peek() == Some('+') {
            let message = "possessive quantifiers are not supported";
            return Err(RegexError::unsupported(start + 1, message));
        }
        let after = self.text.at;
        if self.quantifier()?.is_some() {
            return Err(RegexError::syntax(after + 1, "a repetition cannot be repeated"));
        }
        match term {
            Term::Atom(node) => Ok(Node::repeat(node, min, max)),
            Term::Place(_) => Err(RegexError::syntax(start + 1, "a place cannot be repeated")),
            Term::Nothing => Err(RegexError::syntax(start + 1, "a comment cannot be repeated")),
        }
    }
}

impl Parser {
    /// Reads the flags of a group, up to the `:` or `)` after them.
    fn flags_of_group(&mut self, start: usize) -> Result<Parenthesis, RegexError> {
        let at_start = start == 0;
        let (mut flags, mut on) = (self.flags, true);
        self.text.at += 1;
        loop {
            match self.text.peek() {
                Some(')') if at_start => return Ok(Parenthesis::Flagged(flags)),
                Some(')') => {
                    let message = "flags for the whole pattern stand at its beginning";
                    return Err(RegexError::syntax(start + 1, message));
                }
                Some(':') => return Ok(Parenthesis::Flagged(flags)),
                Some('-') if on => on = false,
                // Patterns are Unicode in any case.
                Some('u') if on => {}
                Some(letter @ ('a' | 'L')) => {
                    let message = format!("the flag `{letter}` is not supported");
                    return Err(RegexError::unsupported(self.text.at + 1, message));
                }
                Some(letter) if flags.set(letter, on) => {}
                _ => return Err(RegexError::syntax(start + 1, "unknown kind of group")),
            }
            self.text.at += 1;
        }
    }

    /// Skips white space and comments where the flag `x` says that they mean nothing.
    fn skip_layout(&mut self) {
        if !self.flags.verbose {
            return;
        }
        while let Some(c) = self.text.peek() {
            match c {
                ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c' => self.text.at += 1,
                '#' => {
                    let rest = &self.text.chars[self.text.at..];
                    let length = rest.iter().position(|&c| c == '\n');
                    self.text.at += length.unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }
}

/// Tests whether the character on one side is a word character; the edge of the text is not one.
fn word_on(ahead: bool, is_word: bool) -> Node {
    let set = match is_word {
        true => class::word(),
        false => difference(&any_set(), &class::word()),
    };
    Node::Test(Test {
        ahead,
        set,
        edge: !is_word,
    })
}

fn both_sides(before: bool, after: bool) -> Node {
    Node::concat([word_on(false, before), word_on(true, after)])
}

fn word_boundary() -> Node {
    Node::alt(vec![both_sides(true, false), both_sides(false, true)])
}

fn no_word_boundary() -> Node {
    Node::alt(vec![both_sides(true, true), both_sides(false, false)])
}
