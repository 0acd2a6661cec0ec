//! ABNF, the notation of RFC 5234 and RFC 7405.
//!
//! ```text
//! date    = 4DIGIT "-" 1*2DIGIT *( "." [ zone ] )   ; the start is the first rule
//!           / %s"Now"                               ; a line that is indented further continues the rule
//! zone    = "utc" / "CET"                           ; texts in either case; %s"…" as written, %i"…" either case
//! zone    =/ %x41-5A / %d65.66 / %b1000001          ; further alternatives; a range; two characters; one
//! ```
//!
//! * Names are the same in either case. `ALPHA`, `DIGIT` and the other core rules need no definition.
//! * Numbers are those of Unicode characters: `%xE9` is `é`. RFCs that give the bytes of UTF-8 by numbers are
//!   not grammars of characters, and mean something else here.
//! * Prose, `<…>`, is refused: only people can read it.

mod core_rules;
mod tokens;

#[cfg(test)]
mod tests;

use foldhash::HashMap;
use pest::iterators::Pair;
use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::lower::{Names, Problems, Tree};
use super::reading::outline::{Lexis, Span};
use super::reading::pairs::PairReader;
use super::reading::spelling::point;
use super::reading::{self, counts};
use super::tree::{Definition, Node, NodeKind};
use crate::regex::node as pattern;
use lexiform_automata::error::{CompileError, ProblemKind};
use lexiform_automata::grammar::Cfg;
use lexiform_automata::limits::Limits;
use tokens::{Rule, Tokens, described};

/// The quotes, comments and brackets of the notation.
pub(super) const LEXIS: Lexis = Lexis {
    spans: &[
        Span::plain(";", "\n"),
        Span::plain("\"", "\""),
        Span::plain("<", ">"),
    ],
    open: b"([",
    close: b")]",
};

/// Lowers a grammar in ABNF.
///
/// ```
/// use lexiform::limits::Limits;
/// use lexiform_syntax::notation::abnf;
/// let cfg = abnf::lower("list = item *(\",\" item)\nitem = 1*3DIGIT / \"none\"", &Limits::default());
/// assert!(cfg.is_ok());
/// let error = abnf::lower("list = <any number of items>", &Limits::default()).unwrap_err();
/// assert!(error.to_string().contains("column 8"));
/// ```
///
/// # Errors
/// Returns all problems of the grammar that do not hide one another.
pub fn lower(text: &str, limits: &Limits) -> Result<Cfg, CompileError> {
    reading::read(text, limits, &LEXIS, tree)
}

/// Reads a grammar in ABNF that was checked.
pub(super) fn tree(text: &str) -> Result<Tree<'_>, CompileError> {
    let mut reader = Reader::default();
    let mut definitions = reader.rules(text)?;
    core_rules::add(&mut definitions, Reader::default().rules(core_rules::SOURCE)?);
    Ok(Tree {
        text,
        definitions,
        starts: &[],
        names: Names::AnyCase,
        problems: reader.problems,
        has_gaps: false,
    })
}

/// Names what other notations allow, where a grammar does not parse.
fn hint(text: &str, offset: usize) -> Option<String> {
    let message = match text.get(offset..)?.chars().next()? {
        '|' => "alternatives are separated by `/`",
        '\'' => "texts are written in double quotes",
        '?' | '+' | '{' => "a repetition is written before its part: `*x`, `1*x`, `2*3x`, `[x]`",
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

    fn part(&mut self, pair: Pair<'_, Rule>) -> Node {
        let at = pair.as_span().start();
        self.counted(pair).unwrap_or(Node::empty(at))
    }

    fn primary(&mut self, pair: Pair<'_, Rule>) -> Node {
        let (text, at) = (pair.as_str(), pair.as_span().start());
        match pair.as_rule() {
            Rule::reference => Node::name(at, text),
            Rule::literal => literal(pair),
            Rule::number => self.number(text, at).unwrap_or(Node::empty(at)),
            Rule::optional => self.bracketed(pair).repeat(0, Some(1), at),
            Rule::group => self.bracketed(pair),
            _ => {
                let message = format!("`{text}` is prose, which only people can read; write a rule instead");
                self.problems.unsupported(at, message);
                Node::empty(at)
            }
        }
    }
}

impl Reader {
    fn rules(&mut self, text: &str) -> Result<Vec<Definition>, CompileError> {
        let pairs = reading::parse::<Tokens, _>(Rule::grammar, text, described, hint)?;
        let mut rules = Rules::default();
        for pair in pairs.flat_map(Pair::into_inner) {
            self.rule(pair, &mut rules);
        }
        Ok(rules.definitions())
    }

    /// Reads a definition, which may add to an earlier one.
    fn rule(&mut self, pair: Pair<'_, Rule>, rules: &mut Rules) {
        let mut inner = pair.into_inner();
        let (Some(name), Some(sign), Some(body)) = (inner.next(), inner.next(), inner.next()) else {
            return;
        };
        let (at, name) = (name.as_span().start(), name.as_str());
        let ways = self.ways(body);
        match sign.as_rule() {
            Rule::defines => rules.add(name, at, ways),
            _ if rules.add_to(name, ways) => {}
            _ => {
                let message = format!("`=/` adds to a rule, and `{name}` is not defined before");
                self.problems.add(ProblemKind::Reference, at, message);
            }
        }
    }

    fn ways(&mut self, pair: Pair<'_, Rule>) -> Vec<Node> {
        pair.into_inner().map(|way| self.sequence(way)).collect()
    }

    /// Reads a part with the counts before it; one with a problem is left out.
    fn counted(&mut self, pair: Pair<'_, Rule>) -> Option<Node> {
        let at = pair.as_span().start();
        let mut inner = pair.into_inner();
        let first = inner.next()?;
        if first.as_rule() != Rule::counts {
            return Some(self.primary(first));
        }
        let counts = self.counts(first.as_str(), at);
        let body = self.primary(inner.next()?);
        let (min, max) = counts?;
        Some(body.repeat(min, max, at))
    }

    fn counts(&mut self, text: &str, at: usize) -> Option<counts::Counts> {
        let mut number = |digits: &str, at| counts::number(digits, at, &mut self.problems);
        let Some((min, max)) = text.split_once('*') else {
            let count = number(text, at)?;
            return Some((count, Some(count)));
        };
        let least = if min.is_empty() { 0 } else { number(min, at)? };
        let most = match max {
            "" => None,
            _ => Some(number(max, at + min.len() + 1)?),
        };
        counts::in_order((least, most), at, &mut self.problems)
    }

    /// Reads `%x41-5A`, `%d65.66` or `%b1000001`.
    fn number(&mut self, text: &str, at: usize) -> Option<Node> {
        let radix = match text.as_bytes().get(1)? {
            b'x' | b'X' => 16,
            b'd' | b'D' => 10,
            _ => 2,
        };
        let digits = text.get(2..)?;
        let characters = digits.split(['.', '-']).map(|digits| point(digits, radix));
        let Some(characters) = characters.collect::<Option<String>>() else {
            let message = format!("`{text}` has a number that is not a Unicode character");
            self.problems.syntax(at, message);
            return None;
        };
        let mut both = characters.chars();
        let (Some(first), Some(last), true) = (both.next(), both.next(), digits.contains('-')) else {
            return Some(Node::text(at, characters));
        };
        if first > last {
            let message = "the first character of a range comes after its last";
            self.problems.syntax(at, message);
        }
        let range = ClassUnicodeRange::new(first, last);
        Some(Node::leaf(at, NodeKind::Set(ClassUnicode::new([range]))))
    }
}

/// The rules that were read, with their alternatives.
#[derive(Default)]
struct Rules {
    found: Vec<(String, usize, Vec<Node>)>,
    /// The index of the first rule with each name, in lower case.
    first: HashMap<String, usize>,
}

impl Rules {
    fn add(&mut self, name: &str, at: usize, ways: Vec<Node>) {
        let index = self.found.len();
        self.first.entry(name.to_ascii_lowercase()).or_insert(index);
        self.found.push((name.to_owned(), at, ways));
    }

    /// Adds alternatives to a rule, and returns whether there is such a rule.
    fn add_to(&mut self, name: &str, ways: Vec<Node>) -> bool {
        let index = self.first.get(&name.to_ascii_lowercase());
        let rule = index.and_then(|&index| self.found.get_mut(index));
        rule.map(|(.., earlier)| earlier.extend(ways)).is_some()
    }

    fn definitions(self) -> Vec<Definition> {
        let definitions = self.found.into_iter().map(|(name, at, ways)| Definition {
            name,
            at,
            body: Node::choice(at, ways),
        });
        definitions.collect()
    }
}

/// Reads a text in quotes. Only the letters of ASCII have two cases in ABNF.
fn literal(pair: Pair<'_, Rule>) -> Node {
    let at = pair.as_span().start();
    let text = pair.as_str();
    let is_as_written = text.starts_with("%s") || text.starts_with("%S");
    let text = text.trim_start_matches(|c| c != '"').trim_matches('"');
    if is_as_written || !text.contains(|c: char| c.is_ascii_alphabetic()) {
        return Node::text(at, text);
    }
    let sets = text.chars().map(|c| {
        let cases = [c.to_ascii_lowercase(), c.to_ascii_uppercase()];
        let cases = cases.map(|c| ClassUnicodeRange::new(c, c));
        pattern::Node::Set(ClassUnicode::new(cases))
    });
    Node::pattern(at, pattern::Node::concat(sets))
}
