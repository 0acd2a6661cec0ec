//! EBNF as ISO/IEC 14977 defines it.
//!
//! ```text
//! signed number = [ "-" | '+' ], digits, { ",", 3 * digit } ;      the start is the first rule
//! digits        = digit, { digit } | { digit }- .                  `{ a }-`: at least once
//! digit         = "0" | '1' / "2" ! non zero digit - "0" ;         `|`, `/` and `!` are the same
//! other (* a comment *) = (/ "optional" /), (: "repeated" :) ;     an `a - b` is an `a` that is not a `b`
//! ```
//!
//! * Parts are separated by `,`: names may consist of several words. Lines and the space between words do not
//!   matter. There are no escapes in quotes.
//! * `a - b` needs parts that call no recursive rule.
//! * `? … ?` is refused: only people know what it means. Comments do not nest.

mod tokens;

#[cfg(test)]
mod tests;

use pest::iterators::Pair;

use super::lower::{Names, Problems, Tree};
use super::reading::outline::{Lexis, Span};
use super::reading::pairs::PairReader;
use super::reading::{self, counts};
use super::tree::Node;
use lexiform_automata::error::CompileError;
use lexiform_automata::grammar::Cfg;
use lexiform_automata::limits::Limits;
use tokens::{Rule, Tokens, described};

/// The quotes, comments and brackets of the notation.
pub(super) const LEXIS: Lexis = Lexis {
    spans: &[
        Span::plain("(*", "*)"),
        Span::plain("\"", "\""),
        Span::plain("'", "'"),
        Span::plain("?", "?"),
    ],
    open: b"([{",
    close: b")]}",
};

/// Lowers a grammar in the notation of ISO/IEC 14977.
///
/// ```
/// use lexiform::limits::Limits;
/// use lexiform_syntax::notation::iso;
/// let cfg = iso::lower("list = item, { \",\", item } ; item = 'a' | \"b\" ;", &Limits::default());
/// assert!(cfg.is_ok());
/// let error = iso::lower("list = ? any text ? ;", &Limits::default()).unwrap_err();
/// assert!(error.to_string().contains("column 8"));
/// ```
///
/// # Errors
/// Returns all problems of the grammar that do not hide one another.
pub fn lower(text: &str, limits: &Limits) -> Result<Cfg, CompileError> {
    reading::read(text, limits, &LEXIS, tree)
}

/// Reads a grammar in the notation of ISO/IEC 14977 that was checked.
pub(super) fn tree(text: &str) -> Result<Tree<'_>, CompileError> {
    let pairs = reading::parse::<Tokens, _>(Rule::grammar, text, described, hint)?;
    let mut reader = Reader::default();
    let definitions = reader.definitions(pairs);
    Ok(Tree {
        text,
        definitions,
        starts: &[],
        names: Names::AsWritten,
        problems: reader.problems,
        has_gaps: false,
    })
}

/// Names what other notations allow, where a grammar does not parse.
fn hint(text: &str, offset: usize) -> Option<String> {
    let message = match text.get(offset..)?.chars().next()? {
        '*' | '+' => "a repetition is written `{ x }`, or `3 * x` for a count",
        ':' => "a rule is written `name = … ;`",
        _ => return LEXIS.unclosed(text, offset),
    };
    Some(message.to_owned())
}

#[derive(Default)]
struct Reader {
    problems: Problems,
}

impl PairReader<Rule> for Reader {
    const BODY: Rule = Rule::choice;

    fn problems(&mut self) -> &mut Problems {
        &mut self.problems
    }

    /// Returns a name with one space between its words.
    fn name(text: &str) -> String {
        let words: Vec<&str> = text.split_whitespace().collect();
        words.join(" ")
    }

    /// Reads a part with the texts that are excepted from it.
    fn part(&mut self, pair: Pair<'_, Rule>) -> Node {
        let at = pair.as_span().start();
        let mut inner = pair.into_inner();
        let Some(first) = inner.next() else {
            return Node::empty(at);
        };
        let Some(other) = inner.find(|pair| pair.as_rule() == Rule::factor) else {
            return self.factor(first);
        };
        let braces = first
            .clone()
            .into_inner()
            .find(|pair| pair.as_rule() == Rule::braces);
        match (other.clone().into_inner().next(), braces) {
            (None, Some(braces)) => self.bracketed(braces).repeat(1, None, at),
            _ => {
                let (first, other) = (self.factor(first), self.factor(other));
                first.except(other, at)
            }
        }
    }

    fn primary(&mut self, pair: Pair<'_, Rule>) -> Node {
        let (text, at) = (pair.as_str(), pair.as_span().start());
        match pair.as_rule() {
            Rule::literal => Node::text(at, text.get(1..text.len() - 1).unwrap_or_default()),
            Rule::name => Node::name(at, Self::name(text)),
            Rule::optional => self.bracketed(pair).repeat(0, Some(1), at),
            Rule::braces => self.bracketed(pair).repeat(0, None, at),
            Rule::special => {
                let message = format!("`{text}` is known to people only; write a rule instead");
                self.problems.unsupported(at, message);
                Node::empty(at)
            }
            _ => self.bracketed(pair),
        }
    }
}

impl Reader {
    fn factor(&mut self, pair: Pair<'_, Rule>) -> Node {
        let at = pair.as_span().start();
        let mut count = None;
        let mut node = Node::empty(at);
        for pair in pair.into_inner() {
            match pair.as_rule() {
                Rule::count => count = counts::number(pair.as_str(), at, &mut self.problems),
                _ => node = self.primary(pair),
            }
        }
        match count {
            Some(count) => node.repeat(count, Some(count), at),
            None => node,
        }
    }
}
