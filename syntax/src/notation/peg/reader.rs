//! Reads the parsed grammar as rules with expressions.

use foldhash::{HashSet, HashSetExt};
use pest::iterators::{Pair, Pairs};
use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::builtin;
use super::expr::{DEEPEST, Expr, Kind, RuleItem, Spacing};
use super::tokens::Rule;
use crate::notation::lower::Problems;
use crate::notation::reading::counts;
use crate::notation::reading::spelling::{Escapes, Spelling};
use crate::suggest;
use lexiform_automata::error::ProblemKind;

const SPELLING: Spelling = Spelling {
    escapes: Some(Escapes {
        letters: &[('n', '\n'), ('r', '\r'), ('t', '\t'), ('0', '\0')],
        is_plain: |c| matches!(c, '"' | '\\' | '\''),
        hex_digits: Some(2),
        has_wide: true,
    }),
    has_points: false,
};

/// Reads all rules, and adds what is wrong with them to the problems.
pub(super) fn read(grammar: Pairs<'_, Rule>, problems: &mut Problems) -> Vec<RuleItem> {
    let definitions = || grammar.clone().flat_map(Pair::into_inner);
    let mut names = HashSet::new();
    for pair in definitions() {
        if let Some(name) = pair.into_inner().next().filter(|it| it.as_rule() == Rule::name) {
            let (text, at) = (name.as_str(), name.as_span().start());
            if builtin::is_reserved(text) {
                problems.add(
                    ProblemKind::Reference,
                    at,
                    format!("`{text}` is built in and cannot be defined"),
                );
            } else if !names.insert(text) {
                problems.add(
                    ProblemKind::Reference,
                    at,
                    format!("rule `{text}` is defined twice"),
                );
            }
        }
    }
    let mut reader = Reader { names, problems };
    definitions().filter_map(|pair| reader.definition(pair)).collect()
}

struct Reader<'a, 't> {
    names: HashSet<&'t str>,
    problems: &'a mut Problems,
}

impl Reader<'_, '_> {
    fn definition(&mut self, pair: Pair<'_, Rule>) -> Option<RuleItem> {
        let mut inner = pair.into_inner();
        let name = inner.next()?;
        let mut spacing = Spacing::Inherited;
        for pair in inner {
            match (pair.as_rule(), pair.as_str()) {
                (Rule::modifier, "@" | "$") => spacing = Spacing::Atomic,
                (Rule::modifier, "!") => spacing = Spacing::Free,
                (Rule::choice, _) => {
                    return Some(RuleItem {
                        name: name.as_str().to_owned(),
                        at: name.as_span().start(),
                        spacing,
                        body: self.choice(pair),
                    });
                }
                _ => {}
            }
        }
        None
    }

    fn choice(&mut self, pair: Pair<'_, Rule>) -> Expr {
        let at = pair.as_span().start();
        let ways = pair.into_inner().map(|way| self.sequence(way));
        Expr::choice(at, ways.collect())
    }

    fn sequence(&mut self, pair: Pair<'_, Rule>) -> Expr {
        let at = pair.as_span().start();
        let terms = pair.into_inner().map(|term| self.term(term));
        Expr::seq(at, terms.collect())
    }

    /// Reads a part with its operators: those after it bind more tightly than those before it.
    fn term(&mut self, pair: Pair<'_, Rule>) -> Expr {
        let at = pair.as_span().start();
        let (mut predicates, mut term) = (Vec::new(), Expr::empty(at));
        for pair in pair.into_inner() {
            let at = pair.as_span().start();
            match pair.as_rule() {
                Rule::name => {}
                Rule::predicate => predicates.push((at, pair.as_str() == "&")),
                Rule::postfix => {
                    if let Some((min, max)) = counts::operator(pair, self.problems) {
                        if max == Some(0) {
                            self.problems
                                .syntax(at, "a part cannot be repeated 0 times in pest");
                        }
                        let repeated = term.repeat(min, max, at);
                        term = self.bounded(repeated);
                    }
                }
                _ => term = self.primary(pair),
            }
        }
        for (at, is_there) in predicates.into_iter().rev() {
            let ahead = term.ahead(is_there, at);
            term = self.bounded(ahead);
        }
        term
    }

    /// Reports an expression that is too deep, and leaves it out.
    fn bounded(&mut self, expr: Expr) -> Expr {
        if expr.depth() <= DEEPEST {
            return expr;
        }
        let message = format!("operators nest too deeply; the limit `nesting` is {DEEPEST}");
        self.problems.add(ProblemKind::Limit, expr.at, message);
        Expr::empty(expr.at)
    }

    fn primary(&mut self, pair: Pair<'_, Rule>) -> Expr {
        let (text, at) = (pair.as_str(), pair.as_span().start());
        let kind = match pair.as_rule() {
            Rule::literal => Kind::Text(self.text(text, at)),
            Rule::insensitive => {
                let quoted = text.trim_start_matches('^').trim_start();
                Kind::AnyCase(self.text(quoted, at + text.len() - quoted.len()))
            }
            Rule::range => Kind::Set(self.range(pair)),
            Rule::reference => return self.reference(pair),
            Rule::stack => {
                self.of_the_stack(text.split(['(', '[']).next().unwrap_or_default().trim(), at);
                return Expr::empty(at);
            }
            _ => {
                let inner = pair.into_inner().next();
                let expr = inner.map_or(Expr::empty(at), |choice| self.choice(choice));
                return self.bounded(expr);
            }
        };
        Expr::leaf(at, kind)
    }

    fn text(&mut self, quoted: &str, at: usize) -> String {
        let inside = quoted.get(1..quoted.len() - 1).unwrap_or_default();
        SPELLING.text(inside, at + 1, self.problems)
    }

    fn range(&mut self, pair: Pair<'_, Rule>) -> ClassUnicode {
        let at = pair.as_span().start();
        let mut ends = pair.into_inner().map(|end| {
            let at = end.as_span().start();
            let text = self.text(end.as_str(), at);
            let mut characters = text.chars();
            match (characters.next(), characters.next()) {
                (Some(c), None) => c,
                _ => {
                    self.problems
                        .syntax(at, "the ends of a range are single characters");
                    '\0'
                }
            }
        });
        let (first, last) = (ends.next().unwrap_or('\0'), ends.next().unwrap_or('\0'));
        drop(ends);
        if first > last {
            let message = "the first character of a range comes after its last";
            self.problems.syntax(at, message);
        }
        ClassUnicode::new([ClassUnicodeRange::new(first, last)])
    }

    fn reference(&mut self, pair: Pair<'_, Rule>) -> Expr {
        let at = pair.as_span().start();
        let name = pair.as_str().trim_end();
        if self.names.contains(name) {
            return Expr::name(at, name);
        }
        if builtin::is_of_the_stack(name) {
            self.of_the_stack(name, at);
            return Expr::empty(at);
        }
        if let Some(expr) = builtin::read(name, at) {
            return expr;
        }
        let meant = suggest::nearest(name, self.names.iter().copied());
        let meant = meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
        let message = format!("rule `{name}` is not defined{meant}");
        self.problems.add(ProblemKind::Reference, at, message);
        Expr::empty(at)
    }

    fn of_the_stack(&mut self, name: &str, at: usize) {
        let message = format!("`{name}` uses the stack of the parser, which no grammar here has");
        self.problems.unsupported(at, message);
    }
}
