//! Makes the tree of a grammar of its expressions: neutral parts as they are, others as regular expressions
//! with look-around.
//!
//! ```text
//!   a / b        a | (?!a)b           where `b` could be read although `a` can be read
//!   a*           a*(?!a)              where what follows could begin with `a`
//!   !a           (?!a)
//! ```
//!
//! Such an expression is exact within itself. It extends over so many parts that each look-ahead is decided,
//! or up to a part that is recursive, whose texts no expression knows.

use foldhash::HashSet;
use regex_syntax::hir::ClassUnicode;

use super::expr::{Expanded, Expr, Kind, cases};
use super::facts::Work;
use super::first::{First, Firsts};
use super::spaces::SKIP;
use crate::notation::lower::Problems;
use crate::notation::tree::{Definition, Node, NodeKind};
use crate::regex::node::{self as pattern, Around};

/// The steps that a node of an expression counts as: it takes memory.
const STEPS_OF_NODE: usize = 8;

/// Returns the definitions of the first rule and of all that it calls.
pub(super) fn definitions(rules: &[Expanded], work: &Work, problems: &mut Problems) -> Vec<Definition> {
    let firsts = Firsts::find(rules, work);
    let mut lowering = Lowering {
        firsts: &firsts,
        problems,
        known: HashSet::from_iter([0]),
        open: vec![0],
    };
    let mut done = Vec::new();
    while let Some(at) = lowering.open.pop() {
        if work.is_spent() {
            break;
        }
        let rule = &rules[at];
        // Where the texts of a regular rule depend on what is around it, it is not called.
        let is_called = at > 0 && firsts.shape(&rule.body).is_some();
        let body = match is_called {
            true => lowering.neutral(&rule.body),
            false => lowering.node(&rule.body, firsts.follow_of(at)),
        };
        done.push((
            at,
            Definition {
                name: rule.name.clone(),
                at: rule.at,
                body,
            },
        ));
    }
    done.sort_by_key(|&(at, _)| at);
    done.into_iter().map(|(_, definition)| definition).collect()
}

struct Lowering<'a> {
    firsts: &'a Firsts<'a>,
    problems: &'a mut Problems,
    /// The rules that are called.
    known: HashSet<usize>,
    open: Vec<usize>,
}

impl Lowering<'_> {
    /// Returns a part before what may follow it.
    fn node(&mut self, expr: &Expr, after: &First) -> Node {
        let at = expr.at;
        if !self.firsts.work.go_on(1) {
            return Node::empty(at);
        }
        if self.firsts.shape(expr).is_some() {
            if self.firsts.is_neutral(expr, after) {
                return self.neutral(expr);
            }
            if !matches!(expr.kind, Kind::Seq(_)) {
                return self.decided(std::slice::from_ref(expr), after);
            }
        }
        match &expr.kind {
            Kind::Seq(parts) => self.sequence(parts, at, after),
            Kind::Choice(parts) | Kind::Either(parts) => {
                let parts = parts.iter().map(|part| self.node(part, after));
                Node::choice(at, parts.collect())
            }
            Kind::Repeat(body, min, max) => {
                let after = self.firsts.first(body).or(after);
                self.node(body, &after).repeat(*min, *max, at)
            }
            Kind::Ahead(body, _) => {
                let mut name = "";
                body.each_name(&mut |called, at| {
                    if self.firsts.shape(&Expr::name(at, called)).is_none() && name.is_empty() {
                        name = called;
                    }
                });
                let name = name.trim_end_matches(['@', '$']);
                let message = format!(
                    "this look-ahead asks for `{name}`, which is recursive or very large: not supported"
                );
                self.problems.unsupported(at, message);
                Node::empty(at)
            }
            _ => self.neutral(expr),
        }
    }

    fn sequence(&mut self, parts: &[Expr], at: usize, after: &First) -> Node {
        let mut afters = vec![after.clone()];
        for part in parts.iter().rev() {
            let first = self.firsts.first(part);
            let next = afters.last().map_or_else(First::empty, |after| first.then(after));
            if !self.firsts.work.go_on(next.weight()) {
                return Node::empty(at);
            }
            afters.push(next);
        }
        afters.reverse();
        let is_regular: Vec<bool> = parts
            .iter()
            .map(|part| self.firsts.shape(part).is_some())
            .collect();
        let mut is_neutral: Vec<bool> = (0..parts.len())
            .map(|index| {
                let (next, after) = (&parts[index + 1..], &afters[index + 1]);
                is_regular[index] && self.firsts.is_neutral_before(&parts[index], after, next)
            })
            .collect();
        // White space before a part that may be empty and is not neutral decides where that part begins.
        for index in (0..parts.len()).rev() {
            let is_skip = matches!(&parts[index].kind, Kind::Name(name) if name == SKIP);
            let mut next = parts[index + 1..].iter().zip(&is_neutral[index + 1..]);
            let empty = next
                .by_ref()
                .take_while(|(part, _)| self.firsts.first(part).is_nullable);
            is_neutral[index] &= !is_skip || empty.fold(true, |all, (_, is)| all && *is);
        }
        let (mut nodes, mut index) = (Vec::new(), 0);
        while index < parts.len() {
            let part = &parts[index];
            if !is_regular[index] || is_neutral[index] {
                nodes.push(match is_neutral[index] {
                    true => self.neutral(part),
                    false => self.node(part, &afters[index + 1]),
                });
                index += 1;
                continue;
            }
            let end = self.end_of_expression(parts, index, (&is_regular, &is_neutral));
            nodes.push(self.decided(&parts[index..end], &afters[end]));
            index = end;
        }
        Node::seq(at, nodes)
    }

    /// Returns the end of the parts that decide what a part reads which is not neutral.
    fn end_of_expression(
        &self,
        parts: &[Expr],
        begin: usize,
        (is_regular, is_neutral): (&[bool], &[bool]),
    ) -> usize {
        let mut missing = self.firsts.reach(&parts[begin]);
        let mut end = begin + 1;
        while end < parts.len() && is_regular[end] && missing != Some(0) {
            let least = self.firsts.shape(&parts[end]).map_or(0, |shape| shape.least);
            missing = missing.map(|missing| missing.saturating_sub(least));
            if !is_neutral[end] {
                let reach = self.firsts.reach(&parts[end]);
                missing = missing.zip(reach).map(|(missing, reach)| missing.max(reach));
            }
            end += 1;
        }
        end
    }

    /// Returns a neutral part.
    fn neutral(&mut self, expr: &Expr) -> Node {
        let at = expr.at;
        let kind = match &expr.kind {
            Kind::Text(text) => NodeKind::Text(text.clone()),
            Kind::AnyCase(text) => return Node::pattern(at, any_case(text)),
            Kind::Set(set) => NodeKind::Set(set.clone()),
            Kind::Name(name) => {
                if let Some(&rule) = self.firsts.index.get(name.as_str())
                    && self.known.insert(rule)
                {
                    self.open.push(rule);
                }
                NodeKind::Name(name.clone())
            }
            Kind::Seq(parts) => {
                let parts = parts.iter().filter(|part| !matches!(part.kind, Kind::Ahead(..)));
                let parts = parts.map(|part| self.neutral(part)).collect();
                return Node::seq(at, parts);
            }
            Kind::Choice(parts) | Kind::Either(parts) => {
                let parts = parts.iter().map(|part| self.neutral(part)).collect();
                return Node::choice(at, parts);
            }
            Kind::Repeat(body, min, max) => return self.neutral(body).repeat(*min, *max, at),
            Kind::Start | Kind::End | Kind::Ahead(..) => return Node::empty(at),
        };
        Node::leaf(at, kind)
    }

    /// Returns parts as one expression in which all is decided.
    fn decided(&mut self, parts: &[Expr], after: &First) -> Node {
        let at = parts.first().map_or(0, |part| part.at);
        let whole = Expr::seq(at, parts.to_vec());
        let mut follows = after.set.clone();
        follows.difference(&self.firsts.eaten(&whole));
        self.check_lookaheads(&whole, 0, &follows, after);
        Node::pattern(at, self.pattern(&whole, after, &[]))
    }

    /// Reports look-aheads that may look at what follows an expression.
    fn check_lookaheads(&mut self, expr: &Expr, least: u64, follows: &ClassUnicode, after: &First) {
        if !self.firsts.work.go_on(1) {
            return;
        }
        match &expr.kind {
            Kind::Seq(parts) => {
                let (mut least, mut after) = (least, after.clone());
                for part in parts.iter().rev() {
                    self.check_lookaheads(part, least, follows, &after);
                    let shape = self.firsts.shape(part);
                    least = least.saturating_add(shape.map_or(0, |shape| shape.least));
                    after = self.firsts.first(part).then(&after);
                }
            }
            Kind::Choice(parts) | Kind::Either(parts) => {
                for part in parts {
                    self.check_lookaheads(part, least, follows, after);
                }
            }
            Kind::Repeat(body, ..) => {
                let after = self.firsts.first(body).or(after);
                self.check_lookaheads(body, least, follows, &after);
            }
            Kind::Name(name) => {
                let firsts = self.firsts;
                if let Some((body, after)) = firsts.called(name, after) {
                    self.check_lookaheads(body, least, follows, &after);
                }
            }
            Kind::Ahead(body, _) => {
                let shape = self.firsts.shape(body);
                let most = shape.and_then(|shape| shape.most.zip(self.firsts.reach(body)));
                let is_inside = most.is_some_and(|(own, reach)| own.saturating_add(reach) <= least);
                let mut alphabet = ClassUnicode::empty();
                self.firsts.alphabet(body, &mut alphabet);
                let is_apart = pattern::is_empty(&pattern::intersection(&alphabet, follows));
                if !is_inside && !is_apart && !self.firsts.is_redundant(expr, after) {
                    let message = "what this look-ahead finds depends on what follows the regular parts around it, \
                                   which is recursive: not supported";
                    self.problems.unsupported(expr.at, message);
                }
            }
            _ => {}
        }
    }

    /// Returns a part as an expression. Recurses as deep as the part and the rules that it calls, which is
    /// bounded.
    fn pattern(&self, expr: &Expr, after: &First, next: &[Expr]) -> pattern::Node {
        if !self.firsts.work.go_on(STEPS_OF_NODE) {
            return pattern::Node::Empty;
        }
        match &expr.kind {
            Kind::Text(text) | Kind::AnyCase(text)
                if !self.firsts.work.go_on(text.len().saturating_mul(STEPS_OF_NODE)) =>
            {
                pattern::Node::Empty
            }
            Kind::Text(text) => pattern::Node::concat(text.chars().map(pattern::Node::char)),
            Kind::AnyCase(text) => any_case(text),
            Kind::Set(set) => {
                self.firsts.work.go_on(set.ranges().len());
                pattern::Node::Set(set.clone())
            }
            Kind::Name(name) => match self.firsts.called(name, after) {
                Some((body, after)) => self.pattern(body, &after, &[]),
                None => pattern::Node::Empty,
            },
            Kind::Seq(parts) => {
                let (mut all, mut after) = (Vec::new(), after.clone());
                for (index, part) in parts.iter().enumerate().rev() {
                    all.push(self.pattern(part, &after, &parts[index + 1..]));
                    after = self.firsts.first(part).then(&after);
                }
                pattern::Node::concat(all.into_iter().rev())
            }
            Kind::Either(parts) => {
                let ways = parts.iter().map(|part| self.pattern(part, after, &[]));
                pattern::Node::alt(ways.collect::<Vec<_>>())
            }
            Kind::Choice(parts) => {
                let ways = (0..parts.len()).map(|index| {
                    let rivals = self.firsts.rivals(parts, index, after);
                    let rivals = rivals.into_iter().map(|rival| self.ahead(rival, false));
                    let way = self.pattern(&parts[index], after, &[]);
                    pattern::Node::concat(rivals.chain([way]))
                });
                pattern::Node::alt(ways.collect::<Vec<_>>())
            }
            Kind::Repeat(body, min, max) => {
                let inner = self.firsts.first(body).or(after);
                let round = self.pattern(body, &inner, &[]);
                if !self.firsts.is_greedy(expr, after, next) {
                    return pattern::Node::repeat(round, *min, *max);
                }
                let stop = self.ahead(body, false);
                let Some(most) = *max else {
                    return pattern::Node::concat([pattern::Node::repeat(round, *min, None), stop]);
                };
                let fewer = pattern::Node::repeat(round, *min, Some(most - 1));
                let all = self.pattern(body, &inner, &[]);
                let all = pattern::Node::repeat(all, most, Some(most));
                pattern::Node::alt([all, pattern::Node::concat([fewer, stop])])
            }
            Kind::Ahead(..) if self.firsts.is_redundant(expr, after) => pattern::Node::Empty,
            Kind::Ahead(body, is_there) => self.ahead(body, *is_there),
            Kind::Start | Kind::End => pattern::Node::Empty,
        }
    }

    fn ahead(&self, body: &Expr, is_there: bool) -> pattern::Node {
        let body = self.pattern(body, &First::any(), &[]);
        if body == pattern::Node::Empty {
            return match is_there {
                true => body,
                false => pattern::Node::never(),
            };
        }
        pattern::Node::Around(Around {
            ahead: true,
            negative: !is_there,
            body: Box::new(body),
            column: 1,
        })
    }
}

fn any_case(text: &str) -> pattern::Node {
    pattern::Node::concat(text.chars().map(|c| pattern::Node::Set(cases(c))))
}
