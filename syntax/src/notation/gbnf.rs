//! GBNF, the notation of llama.cpp.
//!
//! ```text
//! root   ::= "{" ws pair ("," ws pair)* "}"        the start; a rule ends at the end of its line, except …
//! pair   ::= key |                                 … after `::=` and `|`, and within round brackets
//!            <think> !<[7]>                        the special token of this name; any token but number 7
//! key    ::= "\"" [^"\\\x00-\x1F]{1,20} "\"" .     `.` any character; `?`, `*`, `+`, `{n}`, `{n,}`, `{n,m}`
//! ws     ::= | " " | "\n" [ \t]*  # comment        an alternative may be empty; `#x41` is a comment, too
//! ```
//!
//! * In quotes and classes: `\n \r \t \" \\ \[ \]`, `\xNN`, `\uNNNN` and `\UNNNNNNNN`, all of which are
//!   numbers of characters. A quote and a class may contain line breaks.
//! * Beyond llama.cpp, counts may be written `{,m}`, and rules may be left-recursive.
//! * A rule that is defined twice is refused. llama.cpp forgets its first definition.

mod tokens;

#[cfg(test)]
mod tests;

use pest::iterators::Pair;

use super::lower::{Names, Problems, Tree};
use super::reading;
use super::reading::outline::{Lexis, Span};
use super::reading::pairs::PairReader;
use super::reading::spelling::{Escapes, Spelling};
use super::tree::{Node, NodeKind};
use crate::regex::node::any_set;
use lexiform_automata::error::{CompileError, ProblemKind};
use lexiform_automata::grammar::{Cfg, TokenSet};
use lexiform_automata::limits::Limits;
use tokens::{Rule, Tokens, described};

/// The quotes, comments and brackets of the notation.
pub(super) const LEXIS: Lexis = Lexis {
    spans: &[
        Span::plain("#", "\n"),
        Span::escaped("\"", "\""),
        Span::escaped("[", "]"),
        Span::plain("<[", "]>"),
        Span::plain("<", ">"),
    ],
    open: b"(",
    close: b")",
};

const SPELLING: Spelling = Spelling {
    escapes: Some(Escapes {
        letters: &[('n', '\n'), ('r', '\r'), ('t', '\t')],
        is_plain: |c| matches!(c, '"' | '\\' | '[' | ']'),
        hex_digits: Some(2),
        has_wide: false,
    }),
    has_points: false,
};

/// Lowers a grammar in GBNF.
///
/// ```
/// use lexiform::limits::Limits;
/// use lexiform_syntax::notation::gbnf;
/// let cfg = gbnf::lower("root ::= item+\nitem ::= \"- \" [^\\n]+ \"\\n\"", &Limits::default());
/// assert!(cfg.is_ok());
/// let error = gbnf::lower("start ::= \"a\"\n  | \"b\"", &Limits::default()).unwrap_err();
/// assert!(error.to_string().contains("line 2"));
/// ```
///
/// # Errors
/// Returns all problems of the grammar that do not hide one another.
pub fn lower(text: &str, limits: &Limits) -> Result<Cfg, CompileError> {
    reading::read(text, limits, &LEXIS, tree)
}

/// Reads a grammar in GBNF that was checked.
pub(super) fn tree(text: &str) -> Result<Tree<'_>, CompileError> {
    let pairs = reading::parse::<Tokens, _>(Rule::grammar, text, described, hint)?;
    let mut reader = Reader::default();
    let definitions = reader.definitions(pairs);
    reader.check_root(&definitions, "GBNF");
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
        '|' => "a rule ends at the end of its line; write the `|` at the end of the line before",
        '\'' => "texts are written in double quotes",
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

    fn primary(&mut self, pair: Pair<'_, Rule>) -> Node {
        let (text, at) = (pair.as_str(), pair.as_span().start());
        let inside = text.get(1..text.len() - 1).unwrap_or_default();
        let kind = match pair.as_rule() {
            Rule::literal => NodeKind::Text(SPELLING.text(inside, at + 1, &mut self.problems)),
            Rule::class => NodeKind::Set(SPELLING.class(inside, at + 1, &mut self.problems)),
            Rule::any => NodeKind::Set(any_set()),
            Rule::tokens => NodeKind::Tokens(self.tokens(pair)),
            Rule::reference => NodeKind::Name(text.to_owned()),
            _ => return self.bracketed(pair),
        };
        Node::leaf(at, kind)
    }
}

impl Reader {
    fn tokens(&mut self, pair: Pair<'_, Rule>) -> TokenSet {
        let mut set = TokenSet::default();
        for pair in pair.into_inner() {
            match pair.as_rule() {
                Rule::other => set.is_complement = true,
                Rule::named => set.names.push(pair.as_str().into()),
                _ => set.ids.extend(self.token(pair).map(|id| (id, id))),
            }
        }
        set
    }

    fn token(&mut self, pair: Pair<'_, Rule>) -> Option<u32> {
        let number = pair.into_inner().next()?;
        let id = number.as_str().parse();
        if id.is_err() {
            let at = number.as_span().start();
            self.problems
                .add(ProblemKind::Limit, at, "the number of the token is too large");
        }
        id.ok()
    }
}
