//! XGrammar's EBNF, as version 0.2.8 reads it.
//!
//! ```text
//! root  ::= "{" pair ("," pair){0,4} "}" |            the start; lines do not matter
//!           [^}\n] free # comment
//! pair  ::= "\"" [a-z_\-]+ "\""                       one operator after a part, at most
//! free  ::= TagDispatch(("<call>", pair), loop_after_dispatch=true, excludes=("</s>",))
//! token ::= Token(5, 7) ExcludeToken(3) TokenTagDispatch((9, pair), excludes=(8,))
//! names ::= Regex("a|b+") Substring("some", "words")      any words that follow each other
//! last  ::= "x" (= "y")                               a lookahead
//! ```
//!
//! * In quotes and classes: `\n \r \t \b \f \a \v \0 \e`, `\xN…`, `\uNNNN`, `\UNNNNNNNN` and a backslash
//!   before `" \ / ' ?`; in classes also before the signs of regular expressions.
//! * The macros are those of [`macros`].
//! * A lookahead tells XGrammar what comes after its rule, so that it has less to check. It is read and has
//!   no effect here.
//! * Options of rules such as `max_tokens` and `capture` are about more than texts. They are refused by name.
//! * Beyond XGrammar, a rule may begin anywhere in a line, and an alternative may be empty.

mod expression;
mod macros;
mod spelling;
mod tokens;

#[cfg(test)]
mod tests;

use pest::iterators::Pair;

use super::lower::{Names, Problems, Tree};
use super::reading;
use super::reading::outline::{Lexis, Span};
use super::reading::pairs::PairReader;
use super::tree::{Definition, Node, NodeKind};
use lexiform_automata::error::CompileError;
use lexiform_automata::grammar::Cfg;
use lexiform_automata::limits::Limits;
use spelling::{CLASS, TEXT};
use tokens::{Rule, Tokens, described};

/// The quotes, comments and brackets of the notation.
pub(super) const LEXIS: Lexis = Lexis {
    spans: &[
        Span::plain("#", "\n"),
        Span::escaped("\"", "\""),
        Span::escaped("[", "]"),
    ],
    open: b"(",
    close: b")",
};

/// Lowers a grammar in XGrammar's EBNF.
///
/// ```
/// use lexiform::limits::Limits;
/// use lexiform_syntax::notation::xgrammar;
/// let source = "root ::= TagDispatch((\"<sum>\", sum))\nsum ::= [0-9]+ \"+\" [0-9]+";
/// assert!(xgrammar::lower(source, &Limits::default()).is_ok());
/// let error = xgrammar::lower("root[max_tokens=3] ::= [a-z]*", &Limits::default()).unwrap_err();
/// assert!(error.to_string().contains("`max_tokens`"));
/// ```
///
/// # Errors
/// Returns all problems of the grammar that do not hide one another.
pub fn lower(text: &str, limits: &Limits) -> Result<Cfg, CompileError> {
    reading::read(text, limits, &LEXIS, |text| tree(text, limits))
}

/// Reads a grammar in XGrammar's EBNF that was checked.
pub(super) fn tree<'t>(text: &'t str, limits: &Limits) -> Result<Tree<'t>, CompileError> {
    let pairs = reading::parse::<Tokens, _>(Rule::grammar, text, described, hint)?;
    let mut reader = Reader {
        limits,
        rules: Vec::new(),
        problems: Problems::default(),
    };
    let mut definitions = reader.definitions(pairs);
    definitions.append(&mut reader.rules);
    reader.check_root(&definitions, "XGrammar's EBNF");
    Ok(Tree {
        text,
        definitions,
        starts: &["root"],
        names: Names::AsWritten,
        problems: reader.problems,
        has_gaps: false,
    })
}

/// Names what other notations allow, where a grammar does not parse.
fn hint(text: &str, offset: usize) -> Option<String> {
    let message = match text.get(offset..)?.chars().next()? {
        '\'' => "texts are written in double quotes",
        '.' => "any character is written `[^]`",
        '?' | '*' | '+' | '{' => {
            "a part has one operator at most; write brackets around it to repeat it again"
        }
        _ => return LEXIS.unclosed(text, offset),
    };
    Some(message.to_owned())
}

struct Reader<'a> {
    limits: &'a Limits,
    /// The rules of macros.
    rules: Vec<Definition>,
    problems: Problems,
}

impl PairReader<Rule> for Reader<'_> {
    const BODY: Rule = Rule::choice;

    fn problems(&mut self) -> &mut Problems {
        &mut self.problems
    }

    fn definition(&mut self, pair: Pair<'_, Rule>) -> Option<Definition> {
        let mut inner = pair.into_inner();
        let name = inner.next()?;
        let mut body = None;
        for pair in inner {
            match pair.as_rule() {
                Rule::attributes => self.attributes(pair),
                Rule::choice => body = Some(self.choice(pair)),
                _ => {}
            }
        }
        Some(Definition {
            name: name.as_str().to_owned(),
            at: name.as_span().start(),
            body: body?,
        })
    }

    fn primary(&mut self, pair: Pair<'_, Rule>) -> Node {
        let (text, at) = (pair.as_str(), pair.as_span().start());
        let inside = text.get(1..text.len() - 1).unwrap_or_default();
        match pair.as_rule() {
            Rule::literal => Node::text(at, TEXT.text(inside, at + 1, &mut self.problems)),
            Rule::class => {
                let set = CLASS.class(inside, at + 1, &mut self.problems);
                Node::leaf(at, NodeKind::Set(set))
            }
            Rule::reference => Node::name(at, text),
            Rule::call => macros::read(pair, self.limits, &mut self.rules, &mut self.problems),
            _ => self.bracketed(pair),
        }
    }
}

impl Reader<'_> {
    /// Refuses the options of a rule.
    fn attributes(&mut self, pair: Pair<'_, Rule>) {
        for attribute in pair.into_inner() {
            let at = attribute.as_span().start();
            let key = attribute.into_inner().next().map_or("", |key| key.as_str());
            let message = format!("the option `{key}` of rules is not supported");
            self.problems.unsupported(at, message);
        }
    }
}
