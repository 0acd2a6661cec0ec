//! Writes out the white space between the parts of rules, and the start and the end of the text.
//!
//! ```text
//!   list = { item ~ ("," ~ item)* }        list:   item skip ("," skip item (skip "," skip item)*)?
//!   item = @{ ASCII_DIGIT+ }        ─►     item:   [0-9]+
//!   WHITESPACE = _{ " " }                  skip:   " "*
//!   file = { SOI ~ (list | EOI) }          file:   skip list | skip, at the end of the text
//! ```
//!
//! A rule that may be called with and without white space between its parts is written twice. So is one that
//! can ask for the end of the text: once for what it reads without asking, and once for what it reads up to
//! the end, after which only empty parts may stand.

use foldhash::{HashMap, HashMapExt};
use regex_syntax::hir::ClassUnicode;

use super::expr::{Expanded, Expr, Kind, RuleItem, Spacing, cases};
use super::facts::{Facts, Work};
use crate::notation::lower::Problems;
use crate::regex::node as pattern;

/// The name of the rule for white space and comments. No name in a source has braces.
pub(super) const SKIP: &str = "{skip}";
/// The name of the rule for a text, if it is the start up to the end and otherwise.
const WHOLE: &str = "{whole}";

/// How often names of rules are followed to find a set of characters.
const MOST_NAMES: usize = 20;
/// The most alternatives of a look-ahead that are taken apart.
const MOST_WAYS: usize = 1_000;

/// Writes the rules out that texts begin with and those that these call.
pub(super) fn written_out(
    rules: &[RuleItem],
    start: usize,
    work: &Work,
    problems: &mut Problems,
) -> Vec<Expanded> {
    let facts = Facts::find(rules, work);
    let has_skip = ["WHITESPACE", "COMMENT"].map(|name| facts.index.contains_key(name));
    let mut writing = Writing {
        rules,
        facts,
        work,
        problems,
        has_skip: has_skip.contains(&true),
        known: HashMap::new(),
        open: Vec::new(),
    };
    let mut done = Vec::new();
    let at = rules[start].at;
    let called = writing.called(
        &Expr::name(at, rules[start].name.as_str()),
        start,
        Context {
            is_free: true,
            is_start: true,
        },
    );
    if let (Some(on), Some(end)) = (&called.on, &called.end) {
        done.push(Expanded {
            name: WHOLE.to_owned(),
            at,
            body: Expr::either(at, vec![on.clone(), end.clone()]),
        });
    }
    while let Some(instance) = writing.open.pop() {
        if work.is_spent() {
            break;
        }
        done.extend(writing.definition(&instance));
    }
    if writing.has_skip {
        let at = rules[start].at;
        let body = writing.skip(at, has_skip);
        done.push(Expanded {
            name: SKIP.to_owned(),
            at,
            body,
        });
        while let Some(instance) = writing.open.pop() {
            done.extend(writing.definition(&instance));
        }
    }
    done
}

/// Where a part stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Context {
    /// White space may stand between parts.
    is_free: bool,
    /// The text begins here.
    is_start: bool,
}

/// What a rule is written out for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Instance {
    rule: usize,
    context: Context,
    /// It is for what the rule reads up to the end of the text.
    is_end: bool,
}

/// What a part reads: without asking for the end of the text, and up to the end.
#[derive(Default)]
struct Ways {
    on: Option<Expr>,
    end: Option<Expr>,
}

impl Ways {
    fn on(expr: Expr) -> Ways {
        Ways {
            on: Some(expr),
            end: None,
        }
    }
}

struct Writing<'a> {
    rules: &'a [RuleItem],
    facts: Facts,
    work: &'a Work,
    problems: &'a mut Problems,
    has_skip: bool,
    known: HashMap<Instance, String>,
    open: Vec<Instance>,
}

impl Writing<'_> {
    fn definition(&mut self, instance: &Instance) -> Option<Expanded> {
        let rule = &self.rules[instance.rule];
        let ways = self.ways(&rule.body, instance.context);
        Some(Expanded {
            name: self.known.get(instance)?.clone(),
            at: rule.at,
            body: if instance.is_end { ways.end } else { ways.on }
                .unwrap_or_else(|| Expr::leaf(rule.at, Kind::Set(ClassUnicode::empty()))),
        })
    }

    /// Returns the name of a rule that is written out for something.
    fn instance(&mut self, instance: Instance) -> String {
        if let Some(name) = self.known.get(&instance) {
            return name.clone();
        }
        let rule = &self.rules[instance.rule];
        let is_odd = self.has_skip && rule.spacing == Spacing::Inherited && !instance.context.is_free;
        let is_other_end = instance.is_end && self.facts.goes_on[instance.rule];
        let name = match (is_odd, is_other_end) {
            (false, false) => rule.name.clone(),
            (true, false) => format!("{}@", rule.name),
            (false, true) => format!("{}$", rule.name),
            (true, true) => format!("{}@$", rule.name),
        };
        self.known.insert(instance, name.clone());
        self.open.push(instance);
        name
    }

    fn skip(&mut self, at: usize, [has_space, has_comment]: [bool; 2]) -> Expr {
        let context = Context {
            is_free: false,
            is_start: false,
        };
        let mut many = |name: &str| {
            let rule = self.facts.index.get(name).copied().unwrap_or_default();
            let called = self.called(&Expr::name(at, name), rule, context);
            called.on.unwrap_or_else(|| Expr::empty(at)).repeat(0, None, at)
        };
        match (has_space, has_comment) {
            (true, false) => many("WHITESPACE"),
            (false, _) => many("COMMENT"),
            (true, true) => {
                let (space, comments) = (many("WHITESPACE"), many("COMMENT"));
                let comment = match comments.kind {
                    Kind::Repeat(body, ..) => *body,
                    _ => comments,
                };
                let round = Expr::seq(at, vec![comment, space.clone()]);
                Expr::seq(at, vec![space, round.repeat(0, None, at)])
            }
        }
    }

    fn ways(&mut self, expr: &Expr, context: Context) -> Ways {
        let at = expr.at;
        if !self.work.go_on(1) {
            return Ways::on(Expr::empty(at));
        }
        match &expr.kind {
            Kind::Name(name) => match self.facts.index.get(name) {
                Some(&rule) => self.called(expr, rule, context),
                None => Ways::on(self.work.copy(expr)),
            },
            Kind::Start => {
                if !context.is_start {
                    let message = "`SOI` is read only at the beginning of the rule with which texts begin";
                    self.problems.unsupported(at, message);
                }
                Ways::on(Expr::empty(at))
            }
            Kind::End => Ways {
                on: None,
                end: Some(Expr::empty(at)),
            },
            Kind::Seq(parts) if context.is_free => self.sequence(parts, at, context),
            Kind::Seq(parts) => {
                let parts = self.without_lookahead(parts);
                self.sequence(&parts, at, context)
            }
            Kind::Choice(parts) => {
                let (mut on, mut end) = (Vec::new(), Vec::new());
                for part in parts {
                    let ways = self.ways(part, context);
                    on.extend(ways.on);
                    end.extend(ways.end);
                }
                Ways {
                    on: (!on.is_empty()).then(|| Expr::choice(at, on)),
                    end: (!end.is_empty()).then(|| Expr::choice(at, end)),
                }
            }
            Kind::Repeat(body, min, max) => self.repeated(body, (*min, *max), at, context),
            Kind::Ahead(body, true) if matches!(body.kind, Kind::End) => self.ways(body, context),
            Kind::Ahead(body, is_there) => Ways::on(self.ahead(body, context).ahead(*is_there, at)),
            _ => Ways::on(self.work.copy(expr)),
        }
    }

    fn called(&mut self, call: &Expr, rule: usize, context: Context) -> Ways {
        let name = &self.rules[rule].name;
        let is_space = name == "WHITESPACE" || name == "COMMENT";
        let is_free = match self.rules[rule].spacing {
            _ if is_space => false,
            Spacing::Inherited => context.is_free,
            Spacing::Atomic => false,
            Spacing::Free => true,
        };
        let context = Context {
            is_free: is_free && self.has_skip,
            is_start: context.is_start && self.facts.starts[rule],
        };
        let (ends, goes_on) = (self.facts.ends[rule], self.facts.goes_on[rule]);
        let mut named = |is_end| {
            let name = self.instance(Instance {
                rule,
                context,
                is_end,
            });
            Expr::name(call.at, name)
        };
        Ways {
            on: (goes_on || !ends).then(|| named(false)),
            end: ends.then(|| named(true)),
        }
    }

    /// Returns what a look-ahead asks for, which may be the end of the text.
    fn ahead(&mut self, body: &Expr, context: Context) -> Expr {
        let at = body.at;
        let ways = self.ways(
            body,
            Context {
                is_start: false,
                ..context
            },
        );
        let mut all: Vec<Expr> = ways.on.into_iter().collect();
        if ways.end.is_some() {
            let message = "`EOI` within this look-ahead is not supported";
            self.problems.unsupported(at, message);
        }
        match all.len() {
            1 => all.remove(0),
            _ => Expr::choice(at, all),
        }
    }

    fn sequence(&mut self, parts: &[Expr], at: usize, context: Context) -> Ways {
        let mut is_empty_after = vec![true; parts.len() + 1];
        for index in (0..parts.len()).rev() {
            is_empty_after[index] =
                is_empty_after[index + 1] && self.facts.is_empty(&parts[index], self.work);
        }
        let (mut before, mut ends) = (Vec::new(), Vec::new());
        let mut is_start = context.is_start;
        for (index, part) in parts.iter().enumerate() {
            if index > 0 && context.is_free && self.has_skip {
                before.push(Expr::name(part.at, SKIP));
            }
            let ways = self.ways(part, Context { is_start, ..context });
            if let (Some(end), true) = (ways.end, is_empty_after[index + 1]) {
                let parts = before.iter().map(|part| self.work.copy(part));
                let parts = parts.chain([end]).collect();
                ends.push(Expr::seq(at, parts));
            }
            is_start &= matches!(part.kind, Kind::Start);
            match ways.on {
                Some(on) => before.push(on),
                None => {
                    return Ways {
                        on: None,
                        end: (!ends.is_empty()).then(|| Expr::either(at, ends)),
                    };
                }
            }
        }
        Ways {
            on: Some(Expr::seq(at, before)),
            end: (!ends.is_empty()).then(|| Expr::either(at, ends)),
        }
    }

    fn repeated(&mut self, body: &Expr, (min, max): (u32, Option<u32>), at: usize, context: Context) -> Ways {
        let inner = Context {
            is_start: false,
            ..context
        };
        let ways = self.ways(body, inner);
        let skip = (context.is_free && self.has_skip).then(|| Expr::name(at, SKIP));
        let on = match (&ways.on, &skip) {
            (None, _) => (min == 0).then(|| Expr::empty(at)),
            (Some(on), Some(skip)) if max != Some(1) => {
                let round = Expr::seq(at, vec![skip.clone(), self.work.copy(on)]);
                let rounds = round.repeat(min.saturating_sub(1), max.map(|max| max - 1), at);
                let all = Expr::seq(at, vec![self.work.copy(on), rounds]);
                Some(all.repeat(min.min(1), Some(1), at))
            }
            (Some(on), _) => Some(self.work.copy(on).repeat(min, max, at)),
        };
        let end = ways.end.and_then(|end| {
            let least = match self.facts.is_empty(body, self.work) {
                true => 0,
                false => min.saturating_sub(1),
            };
            match ways.on {
                None => (least == 0).then_some(end),
                Some(on) => {
                    let round = Expr::seq(at, [on].into_iter().chain(skip).collect());
                    let rounds = round.repeat(least, max.map(|max| max - 1), at);
                    Some(Expr::seq(at, vec![rounds, end]))
                }
            }
        });
        Ways { on, end }
    }

    /// Returns parts without white space between them, with each look-ahead for a character before a
    /// character resolved: `!"a" ~ ANY` is `[^a]`.
    fn without_lookahead(&self, parts: &[Expr]) -> Vec<Expr> {
        let mut done: Vec<Expr> = Vec::with_capacity(parts.len());
        for part in parts.iter().rev() {
            let next = done.last().and_then(|next| self.set(next, 0));
            let (Kind::Ahead(body, is_there), Some(mut set)) = (&part.kind, next) else {
                done.push(self.work.copy(part));
                continue;
            };
            self.work.go_on(set.ranges().len());
            let mut left = Vec::new();
            match (is_there, self.set(body, 0)) {
                (true, Some(wanted)) => set = pattern::intersection(&set, &wanted),
                (true, None) => left.push(self.work.copy(part)),
                (false, _) => {
                    let mut ways = Vec::new();
                    self.alternatives(body, 0, &mut ways);
                    for way in &ways {
                        if let Some(unwanted) = self.set(way, 0) {
                            set = pattern::difference(&set, &unwanted);
                        }
                    }
                    ways.retain(|way| self.may_begin(way, &set));
                    if !ways.is_empty() {
                        left.push(Expr::choice(body.at, ways).ahead(false, part.at));
                    }
                }
            }
            if let Some(next) = done.last_mut() {
                *next = Expr::leaf(next.at, Kind::Set(set));
            }
            done.extend(left);
        }
        done.reverse();
        done
    }

    /// Returns `true` if a part of a look-ahead may begin with a character out of a set.
    fn may_begin(&self, way: &Expr, set: &ClassUnicode) -> bool {
        match &way.kind {
            Kind::End => false,
            Kind::Text(text) => text.chars().next().is_none_or(|c| {
                let both = pattern::intersection(set, &pattern::char_set(c));
                !pattern::is_empty(&both)
            }),
            _ => self
                .set(way, 0)
                .is_none_or(|way| !pattern::is_empty(&pattern::intersection(set, &way))),
        }
    }

    /// Collects the alternatives of a part, and those of rules that have nothing but texts and characters.
    fn alternatives(&self, expr: &Expr, depth: usize, found: &mut Vec<Expr>) {
        match &expr.kind {
            Kind::Choice(parts) if found.len() < MOST_WAYS => {
                for part in parts {
                    self.alternatives(part, depth + 1, found);
                }
            }
            Kind::Name(name) if found.len() < MOST_WAYS && self.has_texts(expr, depth) => {
                if let Some(&rule) = self.facts.index.get(name) {
                    self.alternatives(&self.rules[rule].body, depth + 1, found);
                }
            }
            _ => found.push(self.work.copy(expr)),
        }
    }

    /// Returns `true` if a part is a choice of texts and characters.
    fn has_texts(&self, expr: &Expr, depth: usize) -> bool {
        if depth > MOST_NAMES || !self.work.go_on(1) {
            return false;
        }
        match &expr.kind {
            Kind::Text(_) | Kind::AnyCase(_) | Kind::Set(_) => true,
            Kind::Choice(parts) => parts.iter().all(|part| self.has_texts(part, depth + 1)),
            Kind::Name(name) => {
                let rule = self.facts.index.get(name).map(|&rule| &self.rules[rule]);
                rule.is_some_and(|rule| self.has_texts(&rule.body, depth + 1))
            }
            _ => false,
        }
    }

    /// Returns the characters that a part reads, if it reads a character.
    fn set(&self, expr: &Expr, depth: usize) -> Option<ClassUnicode> {
        if depth > MOST_NAMES || !self.work.go_on(1) {
            return None;
        }
        let only = |text: &str| {
            let mut characters = text.chars();
            characters.next().filter(|_| characters.next().is_none())
        };
        match &expr.kind {
            Kind::Set(set) => Some(set.clone()),
            Kind::Text(text) => only(text).map(pattern::char_set),
            Kind::AnyCase(text) => only(text).map(cases),
            Kind::Choice(parts) => {
                let mut all = ClassUnicode::empty();
                for part in parts {
                    all.union(&self.set(part, depth + 1)?);
                }
                Some(all)
            }
            Kind::Name(name) => {
                let &rule = self.facts.index.get(name)?;
                self.set(&self.rules[rule].body, depth + 1)
            }
            _ => None,
        }
    }
}
