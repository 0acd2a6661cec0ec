//! Parses texts, expressions, tokens, and other grammars within a grammar.

use serde_json::Value;

use super::items::{Name, nested_name};
use super::parser::{Parser, set};
use super::reading::Dialect;
use super::scanner::Bad;
use crate::notation::extract;
use crate::notation::tree::{Node, NodeKind, Pattern};
use crate::regex::{MOST_NESTING, python, rust};
use crate::schema;
use lexiform_automata::error::CompileError;
use lexiform_automata::grammar::{Cfg, CfgBuilder, TokenSet};

impl Parser<'_, '_> {
    /// `"text"`, `"text"i` and `"a".."z"`.
    pub(super) fn text(&mut self) -> Result<Node, Bad> {
        let at = self.scanner.at;
        let text = self.scanner.string()?;
        let flags = self.scanner.flags();
        let end = self.scanner.at;
        if self.scanner.eat_after_blanks("..") {
            self.scanner.eat(".");
            self.scanner.blanks();
            if self.scanner.peek() != Some('"') {
                return self.expected("the last character of the range, in quotes");
            }
            let last = self.scanner.string()?;
            let last_flags = self.scanner.flags();
            if !flags.is_empty() || !last_flags.is_empty() {
                return Err((at, "a range has no flags".to_owned()));
            }
            return range(at, &text, &last);
        }
        self.scanner.at = end;
        match flags {
            "" => Ok(Node::text(at, text)),
            "i" => Ok(Node::leaf(at, NodeKind::AnyCase(text))),
            flags => Err((at, format!("a text has the flag `i` and no other, not `{flags}`"))),
        }
    }

    /// `/expression/flags`.
    pub(super) fn expression(&mut self) -> Result<Node, Bad> {
        let at = self.scanner.at;
        let (body, start) = self.scanner.expression()?;
        let letters = self.scanner.flags();
        let mut flags = python::Flags::default();
        for letter in letters.chars().filter(|&letter| letter != 'u') {
            if !flags.set(letter, true) {
                return Err((at, format!("the flag `{letter}` is not supported")));
            }
        }
        // A slash needs a backslash here and nowhere else.
        let body = body.replace("\\/", "/");
        let nesting = self.limits.nesting.min(MOST_NESTING);
        let pattern = match self.dialect {
            Dialect::Lark => python::parse_with(&body, flags, nesting),
            Dialect::Llguidance => rust::parse(&prefixed(&body, letters), nesting).map(|node| (node, false)),
        };
        let shift = match self.dialect {
            Dialect::Llguidance if !letters.is_empty() => letters.len() + 3,
            _ => 0,
        };
        match pattern {
            Ok((node, is_lazy)) => Ok(Node::leaf(at, NodeKind::Pattern(Pattern { node, is_lazy }))),
            Err(error) => {
                let column = error.column.unwrap_or(1).saturating_sub(shift).max(1);
                let before = body.chars().take(column - 1).map(char::len_utf8);
                Err((start + before.sum::<usize>(), error.message))
            }
        }
    }

    /// `<|name|>`, `<name>`, `<[5]>`, `<[5,7-9]>`, `<[^5]>` and `<[*]>`.
    pub(super) fn token(&mut self) -> Result<Node, Bad> {
        let at = self.scanner.at;
        let rest = self.scanner.rest();
        let end = rest.find(['>', '\n']).filter(|&end| rest[end..].starts_with('>'));
        let Some(end) = end else {
            return Err((at, "this `<` is never closed on its line".to_owned()));
        };
        let token = &rest[..=end];
        self.scanner.at += token.len();
        if let Some(inside) = token
            .strip_prefix("<[")
            .and_then(|token| token.strip_suffix("]>"))
        {
            let set = token_set(inside).map_err(|message| (at, message))?;
            return Ok(Node::leaf(at, NodeKind::Tokens(set)));
        }
        match token.contains(char::is_whitespace) || token.len() < 3 {
            true => Err((at, format!("`{token}` is not the name of a token"))),
            false => Ok(Node::leaf(at, NodeKind::Special(token.to_owned()))),
        }
    }

    /// `%json {…}`, `%regex {…}` and `%lark {…}`.
    pub(super) fn embedded(&mut self) -> Result<Node, Bad> {
        let at = self.scanner.at;
        self.scanner.at += 1;
        let word = self.scanner.name().unwrap_or_default();
        let cfg = match word {
            "json" => {
                let text = self.scanner.json()?;
                let lowered = schema::lower(text, &self.reading.schema, self.limits);
                lowered
                    .map_err(|error| (at, first_problem("the schema", &error)))?
                    .0
            }
            "regex" => {
                let text = self.scanner.json()?;
                self.substring(text).map_err(|message| (at, message))?
            }
            "lark" => return self.nested(),
            word => return Err((at, format!("`%{word}` is not a part of a rule"))),
        };
        Ok(Node::leaf(at, NodeKind::Grammar(Box::new(cfg))))
    }

    /// The texts of `%regex {"substring_words": …}`.
    fn substring(&self, text: &str) -> Result<Cfg, String> {
        let Ok(Value::Object(fields)) = serde_json::from_str(text) else {
            return Err("the value of `%regex` is an object".to_owned());
        };
        let mut fields = fields.into_iter();
        let (Some((name, value)), None) = (fields.next(), fields.next()) else {
            return Err("`%regex` has one field".to_owned());
        };
        let text = || value.as_str().ok_or_else(|| format!("`{name}` is a text"));
        let pieces = match name.as_str() {
            "substring_chars" => text()?.chars().map(String::from).collect(),
            "substring_words" => words(text()?),
            "substring_chunks" => {
                let chunks = value.as_array().into_iter().flatten();
                let chunks: Option<Vec<String>> =
                    chunks.map(|chunk| Some(chunk.as_str()?.to_owned())).collect();
                let chunks = chunks.filter(|_| value.is_array());
                chunks.ok_or_else(|| format!("`{name}` is a list of texts"))?
            }
            name => return Err(format!("unknown field `{name}` of `%regex`")),
        };
        let pieces: Vec<String> = pieces.into_iter().filter(|piece| !piece.is_empty()).collect();
        if pieces.is_empty() {
            let mut builder = CfgBuilder::new();
            let (start, empty) = (builder.declare(""), builder.empty());
            builder.define(start, empty);
            return Ok(builder.finish(start));
        }
        Ok(extract::runs(&pieces))
    }

    /// A grammar in braces, which is read when the rest was.
    fn nested(&mut self) -> Result<Node, Bad> {
        self.scanner.blanks();
        let at = self.scanner.at;
        if self.scanner.peek() != Some('{') {
            return self.expected("`{` and a grammar");
        }
        let length = closed(self.scanner.rest()).ok_or((at, "this `{` is never closed".to_owned()))?;
        let inside = &self.scanner.rest()[1..length - 1];
        self.scanner.at += length;
        self.items.nested.push(Name {
            text: inside.to_owned(),
            at: at + 1,
        });
        Ok(Node::name(at, nested_name(self.items.nested.len() - 1)))
    }
}

fn first_problem(what: &str, error: &CompileError) -> String {
    match error.problems.first() {
        Some(problem) => format!("{what}: {problem}"),
        None => format!("{what} is invalid"),
    }
}

fn prefixed(body: &str, letters: &str) -> String {
    let letters: String = letters.chars().filter(|&letter| letter != 'l').collect();
    match letters.as_str() {
        "" => body.to_owned(),
        letters => format!("(?{letters}){body}"),
    }
}

fn range(at: usize, first: &str, last: &str) -> Result<Node, Bad> {
    let one = |text: &str| {
        let mut letters = text.chars();
        letters.next().filter(|_| letters.next().is_none())
    };
    match (one(first), one(last)) {
        (Some(first), Some(last)) if first <= last => Ok(set(at, first, last)),
        (Some(_), Some(_)) => Err((
            at,
            "the first character of a range comes after its last".to_owned(),
        )),
        _ => Err((at, "the ends of a range are single characters".to_owned())),
    }
}

/// Reads `5,7-9`, `^5` or `*`.
fn token_set(inside: &str) -> Result<TokenSet, String> {
    let (is_complement, list) = match inside.strip_prefix('^') {
        Some(list) => (true, list),
        None => (false, inside),
    };
    match list {
        "*" if is_complement => return Err("`<[^*]>` has no token".to_owned()),
        "*" => return Ok(TokenSet::any()),
        _ => {}
    }
    let number = |text: &str| {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty();
        text.parse::<u32>().ok().filter(|_| digits)
    };
    let range = |text: &str| match text.split_once('-') {
        None => number(text).map(|token| (token, token)),
        Some((first, last)) => {
            let range = number(first).zip(number(last));
            range.filter(|(first, last)| first <= last)
        }
    };
    let ids = list.split(',').map(|text| {
        range(text).ok_or_else(|| format!("`{text}` is not a token or a range of tokens such as `5-9`"))
    });
    Ok(TokenSet {
        ids: ids.collect::<Result<_, _>>()?,
        names: Vec::new(),
        is_complement,
    })
}

/// Returns the words of a text, and what is between them, as pieces.
fn words(text: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let mut was_word = false;
    for c in text.chars() {
        let is_word = c.is_alphanumeric() || c == '_';
        match pieces.last_mut() {
            Some(last) if is_word && was_word => last.push(c),
            _ => pieces.push(c.to_string()),
        }
        was_word = is_word;
    }
    pieces
}

/// Returns the length of a text in braces, with these; braces in quotes do not count.
fn closed(text: &str) -> Option<usize> {
    let (mut depth, mut quote, mut is_escaped) = (0_usize, None, false);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some(_), '\\') => is_escaped = true,
            (Some(open), c) if c == open || c == '\n' => quote = None,
            (Some(_), _) => {}
            (None, '"') => quote = Some(c),
            (None, '{') => depth += 1,
            (None, '}') => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}
