//! EBNF as the specification of XML defines it (section 6), which other specifications of the W3C use.
//!
//! ```text
//! [1]  document ::= prolog element Misc*              a number before a rule is ignored; the first rule is the start
//! [2]  Char     ::= #x9 | [#x20-#xD7FF] | [^a-z"]     a character, a class and the complement of one
//! [15] Comment  ::= '<!--' ((Char - '-') | ("-" (Char - '-')))* '-->'      `a - b`: an `a` that is not a `b`
//! [40] STag     ::= '<' Name (S Attribute)* S? '>'    [ WFC: Unique Att Spec ]  /* conditions are ignored */
//! ```
//!
//! * There are no escapes: a backslash is a backslash. `#xN` is a character, also inside of a class.
//! * `a - b` needs parts that call no recursive rule. It binds more tightly than a sequence.
//! * Names are equal if they are written alike. A `;` may end a rule.

mod tokens;

#[cfg(test)]
mod tests;

use pest::iterators::Pair;

use super::lower::{Names, Problems, Tree};
use super::reading;
use super::reading::outline::{Lexis, Span};
use super::reading::pairs::PairReader;
use super::reading::spelling::{Spelling, point};
use super::tree::{Node, NodeKind};
use lexiform_automata::error::CompileError;
use lexiform_automata::grammar::Cfg;
use lexiform_automata::limits::Limits;
use tokens::{Rule, Tokens, described};

/// The quotes, comments and brackets of the notation.
pub(super) const LEXIS: Lexis = Lexis {
    spans: &[
        Span::plain("/*", "*/"),
        Span::plain("\"", "\""),
        Span::plain("'", "'"),
        Span::plain("[", "]"),
    ],
    open: b"(",
    close: b")",
};

const SPELLING: Spelling = Spelling {
    escapes: None,
    has_points: true,
};

/// Lowers a grammar in the notation of the W3C.
///
/// ```
/// use lexiform::limits::Limits;
/// use lexiform_syntax::notation::w3c;
/// let cfg = w3c::lower("[1] Name ::= [a-z]+ - 'xml'", &Limits::default());
/// assert!(cfg.is_ok());
/// let error = w3c::lower("Name ::= Letter+", &Limits::default()).unwrap_err();
/// assert!(error.to_string().contains("column 10"));
/// ```
///
/// # Errors
/// Returns all problems of the grammar that do not hide one another.
pub fn lower(text: &str, limits: &Limits) -> Result<Cfg, CompileError> {
    reading::read(text, limits, &LEXIS, tree)
}

/// Reads a grammar in the notation of the W3C that was checked.
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
        '{' => "a repetition is written `x*`, `x+` or `x?`",
        '.' => "any character is written `[#x0-#x10FFFF]`",
        '#' => "a comment is written `/* … */`",
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

    /// Reads `a - b - c`, which is `(a - b) - c`.
    fn part(&mut self, pair: Pair<'_, Rule>) -> Node {
        let at = pair.as_span().start();
        let mut items = pair.into_inner().map(|item| self.item(item));
        let first = items.next().unwrap_or(Node::empty(at));
        let others: Vec<Node> = items.collect();
        match others.is_empty() {
            true => first,
            false => first.except(Node::choice(at, others), at),
        }
    }

    fn primary(&mut self, pair: Pair<'_, Rule>) -> Node {
        let (text, at) = (pair.as_str(), pair.as_span().start());
        let inside = text.get(1..text.len() - 1).unwrap_or_default();
        let kind = match pair.as_rule() {
            Rule::literal => NodeKind::Text(inside.to_owned()),
            Rule::class => NodeKind::Set(SPELLING.class(inside, at + 1, &mut self.problems)),
            Rule::point => NodeKind::Text(self.point(text, at)),
            Rule::reference => NodeKind::Name(text.to_owned()),
            _ => return self.bracketed(pair),
        };
        Node::leaf(at, kind)
    }
}

impl Reader {
    fn point(&mut self, text: &str, at: usize) -> String {
        let point = point(&text[2..], 16);
        if point.is_none() {
            let message = format!("`{text}` is not a Unicode character");
            self.problems.syntax(at, message);
        }
        point.map(String::from).unwrap_or_default()
    }
}
