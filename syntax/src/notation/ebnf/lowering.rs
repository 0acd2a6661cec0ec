//! Lowers the parsed grammar to the intermediate representation.

use foldhash::{HashMap, HashMapExt};
use pest::iterators::Pair;
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, Repetition};

use super::escape::{self, BadText};
use super::misread;
use super::tokens::Rule;
use crate::regex::{self, RegexError};
use crate::suggest;
use lexiform_automata::error::{CompileError, Place, Places, Problem, ProblemKind};
use lexiform_automata::grammar::{Cfg, CfgBuilder, ExprId, Part, Regular, RuleId};
use lexiform_automata::limits::Limits;

/// Counts of a class up to this are unrolled into states; larger ones are left to a register.
const SMALL_COUNT: u32 = 64;

/// The deepest nesting of brackets and operators, whatever `nesting` allows: later passes recurse.
const MOST_NESTING: usize = 1_000;

/// Lowers all definitions, or reports all problems in them.
pub(super) fn lower<'a>(
    text: &str,
    definitions: impl Iterator<Item = Pair<'a, Rule>>,
    limits: &Limits,
) -> Result<Cfg, CompileError> {
    let mut lowering = Lowering {
        text,
        limits,
        builder: CfgBuilder::within(limits.cancel.account()),
        rules: HashMap::new(),
        classes: HashMap::new(),
        problems: misread_problems(text),
        too_large: None,
    };
    let bodies = lowering.declare(definitions);
    for (rule, body) in bodies {
        if limits.cancel.is_asked() {
            break;
        }
        let body = lowering.choice(body).expr;
        lowering.builder.define(rule, body);
        if lowering.builder.len() > limits.exprs {
            let message = format!(
                "the grammar has too many expressions; the limit `exprs` is {}",
                limits.exprs
            );
            lowering.too_large = Some(Problem::new(ProblemKind::Limit, Place::Whole, message));
            break;
        }
    }
    let problems = lowering.all_problems();
    if !problems.is_empty() {
        return Err(CompileError { problems });
    }
    let named = |name: &str| lowering.rules.get(name).copied();
    let start = named("root").or(named("start")).unwrap_or(RuleId(0));
    Ok(lowering.builder.finish(start))
}

fn misread_problems(text: &str) -> Vec<(usize, ProblemKind, String)> {
    let found = misread::find(text).into_iter();
    let problems = found.map(|(offset, message)| (offset, ProblemKind::Unsupported, message));
    problems.collect()
}

struct Lowering<'a> {
    text: &'a str,
    limits: &'a Limits,
    builder: CfgBuilder,
    rules: HashMap<String, RuleId>,
    classes: HashMap<String, ClassUnicode>,
    /// The offset, kind and message of each problem.
    problems: Vec<(usize, ProblemKind, String)>,
    /// The problem that the grammar as a whole exceeds a limit.
    too_large: Option<Problem>,
}

/// A part of a rule, as far as a following repetition is concerned.
enum Item {
    Set(ClassUnicode),
    Expr(Nested),
}

/// An expression and its nesting depth: one level for each pair of brackets around a part, and one for each
/// operator after a part. Later passes recurse at most twice as deep.
#[derive(Clone, Copy)]
struct Nested {
    expr: ExprId,
    depth: usize,
}

impl Nested {
    /// Returns an expression without parts.
    fn flat(expr: ExprId) -> Nested {
        Nested { expr, depth: 0 }
    }
}

impl Lowering<'_> {
    fn problem(&mut self, kind: ProblemKind, offset: usize, message: impl Into<String>) {
        self.problems.push((offset, kind, message.into()));
    }

    /// Returns all problems with their places, in the order of the text. The text is walked once for all of
    /// them.
    fn all_problems(&mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|&(offset, ..)| offset);
        let mut places = Places::new(self.text);
        let placed = self.problems.drain(..).map(|(offset, kind, message)| {
            let place = places.to(offset);
            Problem::new(kind, place, message)
        });
        self.too_large.take().into_iter().chain(placed).collect()
    }

    /// Adds one level around an expression, for the operator at `offset`. An expression that is too deep is
    /// reported once and left out.
    fn deeper(&mut self, expr: ExprId, inside: usize, offset: usize) -> Nested {
        let (depth, limit) = (inside + 1, self.limits.nesting.min(MOST_NESTING));
        if depth <= limit {
            return Nested { expr, depth };
        }
        let message = format!("brackets and repetitions nest too deeply; the limit `nesting` is {limit}");
        self.problem(ProblemKind::Limit, offset, message);
        Nested::flat(self.builder.empty())
    }

    fn bad_texts(&mut self, start: usize, bad: Vec<BadText>) {
        for BadText { offset, message } in bad {
            self.problem(ProblemKind::Syntax, start + offset, message);
        }
    }

    /// Declares every rule, so that bodies can refer to later rules.
    fn declare<'p>(
        &mut self,
        definitions: impl Iterator<Item = Pair<'p, Rule>>,
    ) -> Vec<(RuleId, Pair<'p, Rule>)> {
        let mut bodies = Vec::new();
        for definition in definitions {
            let mut inner = definition.into_inner();
            let (Some(name), Some(body)) = (inner.next(), inner.find(|pair| pair.as_rule() == Rule::choice))
            else {
                continue;
            };
            let rule = self.builder.declare(name.as_str());
            if self.rules.insert(name.as_str().to_owned(), rule).is_some() {
                let message = format!("rule `{}` is defined twice", name.as_str());
                self.problem(ProblemKind::Reference, name.as_span().start(), message);
            }
            bodies.push((rule, body));
        }
        bodies
    }

    fn choice(&mut self, pair: Pair<'_, Rule>) -> Nested {
        let mut depth = 0;
        let alternatives: Vec<ExprId> = pair
            .into_inner()
            .map(|sequence| self.sequence(sequence, &mut depth))
            .collect();
        Nested {
            expr: self.builder.choice(alternatives),
            depth,
        }
    }

    /// Lowers a sequence, and raises `depth` to the depth of its deepest part.
    fn sequence(&mut self, pair: Pair<'_, Rule>, depth: &mut usize) -> ExprId {
        let items = pair.into_inner().map(|item| {
            let item = self.item(item);
            *depth = item.depth.max(*depth);
            item.expr
        });
        let items: Vec<ExprId> = items.collect();
        self.builder.seq(items)
    }

    /// Lowers a part with the operators after it.
    fn item(&mut self, pair: Pair<'_, Rule>) -> Nested {
        let mut inner = pair.into_inner();
        let Some(primary) = inner.next() else {
            return Nested::flat(self.builder.empty());
        };
        let mut item = self.primary(primary);
        for postfix in inner {
            let offset = postfix.as_span().start();
            let Some((min, max)) = self.counts(postfix) else {
                continue;
            };
            let (expr, inside) = match item {
                Item::Set(set) => (self.repeated_set(set, min, max), 0),
                Item::Expr(body) => (self.repeated(body.expr, min, max, offset), body.depth),
            };
            item = Item::Expr(self.deeper(expr, inside, offset));
        }
        match item {
            Item::Set(set) => Nested::flat(self.set(set)),
            Item::Expr(nested) => nested,
        }
    }

    fn repeated(&mut self, body: ExprId, min: u32, max: Option<u32>, offset: usize) -> ExprId {
        if max.unwrap_or(min) > self.limits.repeat {
            let limit = self.limits.repeat;
            let message = format!("the repetition count is too large; the limit `repeat` is {limit}");
            self.problem(ProblemKind::Limit, offset, message);
        }
        self.builder.repeat(body, min, max)
    }

    fn primary(&mut self, pair: Pair<'_, Rule>) -> Item {
        let (text, start) = (pair.as_str(), pair.as_span().start());
        let expr = match pair.as_rule() {
            Rule::class => return Item::Set(self.class(text, start)),
            Rule::any => {
                return Item::Set(ClassUnicode::new([ClassUnicodeRange::new('\0', char::MAX)]));
            }
            Rule::literal => self.literal(text, start),
            Rule::point => self.point(text, start),
            Rule::special => self.builder.special(text),
            Rule::reference => self.reference(text.trim_end(), start),
            Rule::expression => self.expression(pair),
            Rule::braces => {
                let body = self.only_choice(pair);
                let expr = self.builder.repeat(body.expr, 0, None);
                return Item::Expr(self.deeper(expr, body.depth, start));
            }
            _ => {
                let body = self.only_choice(pair);
                return Item::Expr(self.deeper(body.expr, body.depth, start));
            }
        };
        Item::Expr(Nested::flat(expr))
    }

    fn only_choice(&mut self, pair: Pair<'_, Rule>) -> Nested {
        match pair.into_inner().next() {
            Some(choice) => self.choice(choice),
            None => Nested::flat(self.builder.empty()),
        }
    }

    fn literal(&mut self, text: &str, start: usize) -> ExprId {
        match escape::unquote(&text[1..text.len() - 1]) {
            Ok(text) => self.builder.bytes(text),
            Err(bad) => {
                self.bad_texts(start + 1, bad);
                self.builder.empty()
            }
        }
    }

    fn point(&mut self, text: &str, start: usize) -> ExprId {
        match escape::point(&text[2..]) {
            Some(c) => self.builder.bytes(c.to_string()),
            None => {
                self.problem(
                    ProblemKind::Syntax,
                    start,
                    format!("`{text}` is not a Unicode character"),
                );
                self.builder.empty()
            }
        }
    }

    fn reference(&mut self, text: &str, start: usize) -> ExprId {
        // The span of a reference may include the white space and comments after its name.
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let name = text.split(|c| !is_name(c)).next().unwrap_or(text);
        match self.rules.get(name).copied() {
            Some(rule) => self.builder.rule(rule),
            None => {
                let meant = suggest::nearest(name, self.rules.keys().map(String::as_str));
                let meant = meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
                let message = format!("rule `{name}` is not defined{meant}");
                self.problem(ProblemKind::Reference, start, message);
                self.builder.empty()
            }
        }
    }

    fn class(&mut self, text: &str, start: usize) -> ClassUnicode {
        if let Some(known) = self.classes.get(text) {
            return known.clone();
        }
        match escape::class(&text[1..text.len() - 1]) {
            Ok(set) => {
                self.classes.insert(text.to_owned(), set.clone());
                set
            }
            Err(bad) => {
                self.bad_texts(start + 1, bad);
                ClassUnicode::empty()
            }
        }
    }

    fn set(&mut self, set: ClassUnicode) -> ExprId {
        match set.ranges() {
            [] => self.builder.never(),
            [one] if one.start() == one.end() => self.builder.bytes(one.start().to_string()),
            _ => self.builder.hir(Hir::class(Class::Unicode(set))),
        }
    }

    /// A repeated class is one regular language: it stays within the automaton of a terminal.
    fn repeated_set(&mut self, set: ClassUnicode, min: u32, max: Option<u32>) -> ExprId {
        if set.ranges().is_empty() || max == Some(0) || max.is_some_and(|max| max < min) {
            let body = self.set(set);
            return self.builder.repeat(body, min, max);
        }
        let unit = Hir::class(Class::Unicode(set));
        if max.unwrap_or(min) <= SMALL_COUNT {
            return self.builder.hir(Hir::repetition(Repetition {
                min,
                max,
                greedy: true,
                sub: Box::new(unit),
            }));
        }
        let part = Part::Units {
            unit: unit.into(),
            min: u64::from(min),
            max: max.map(u64::from),
        };
        let regular = self.builder.add_regular(Regular { parts: vec![part] });
        self.builder.regular(regular)
    }

    fn expression(&mut self, pair: Pair<'_, Rule>) -> ExprId {
        let mut inner = pair.into_inner();
        let (Some(body), flags) = (inner.next(), inner.next().map_or("", |flags| flags.as_str())) else {
            return self.builder.empty();
        };
        let prefix = if flags.is_empty() {
            String::new()
        } else {
            format!("(?{flags})")
        };
        match regex::rust(&format!("{prefix}{}", body.as_str()), self.limits) {
            Ok(regular) => {
                let regular = self.builder.add_regular(regular);
                self.builder.regular(regular)
            }
            Err(error) => {
                self.expression_problem(&body, prefix.len(), error);
                self.builder.empty()
            }
        }
    }

    fn expression_problem(&mut self, body: &Pair<'_, Rule>, prefix: usize, error: RegexError) {
        let column = error.column.unwrap_or(1).saturating_sub(prefix).max(1);
        let before = body.as_str().chars().take(column - 1).map(char::len_utf8);
        let offset = body.as_span().start() + before.sum::<usize>();
        self.problem(error.kind, offset, error.message);
    }

    fn counts(&mut self, postfix: Pair<'_, Rule>) -> Option<(u32, Option<u32>)> {
        let start = postfix.as_span().start();
        match postfix.as_str().trim_end() {
            "?" => return Some((0, Some(1))),
            "*" => return Some((0, None)),
            "+" => return Some((1, None)),
            _ => {}
        }
        let counts = postfix.into_inner().next()?;
        let mut numbers: [Option<u32>; 2] = [None, None];
        let mut slot = 0;
        for pair in counts.into_inner() {
            if pair.as_rule() == Rule::comma {
                slot = 1;
                continue;
            }
            match pair.as_str().parse::<u32>() {
                Ok(number) if number < u32::MAX => numbers[slot] = Some(number),
                _ => {
                    let message = "the repetition count is too large";
                    self.problem(ProblemKind::Limit, pair.as_span().start(), message);
                    return None;
                }
            }
        }
        let min = numbers[0].unwrap_or(0);
        let max = if slot == 0 { Some(min) } else { numbers[1] };
        if max.is_some_and(|max| max < min) {
            let message = "the minimum of a repetition is greater than its maximum";
            self.problem(ProblemKind::Syntax, start, message);
            return None;
        }
        Some((min, max))
    }
}
