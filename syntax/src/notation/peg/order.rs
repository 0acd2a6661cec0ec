//! Finds where the order of alternatives and the greed of repetitions decide what is read.
//!
//! A part is *neutral* if it reads the same whether or not a parser keeps to the first alternative that it
//! can read and repeats as often as it can: alternatives begin with different characters, what is repeated
//! begins with none that may follow, a look-ahead asks for nothing that could stand there.

use regex_syntax::hir::ClassUnicode;

use super::expr::{Expr, Kind, cases};
use super::first::{First, Firsts};
use super::spaces::SKIP;
use crate::regex::node as pattern;

/// The longest text in bytes with which alternatives are compared.
const LONGEST: usize = 256;

fn are_apart(one: &ClassUnicode, other: &ClassUnicode) -> bool {
    pattern::is_empty(&pattern::intersection(one, other))
}

impl Firsts<'_> {
    /// Returns the body of a rule, and what follows it where it is called.
    pub(super) fn called(&self, name: &str, after: &First) -> Option<(&Expr, First)> {
        let &at = self.index.get(name)?;
        Some((&self.rules[at].body, after.clone()))
    }

    /// Returns `true` if a part that calls no recursive rule is neutral before what may follow it.
    pub(super) fn is_neutral(&self, expr: &Expr, after: &First) -> bool {
        self.is_neutral_before(expr, after, &[])
    }

    /// The same, with the parts that follow in the same sequence.
    pub(super) fn is_neutral_before(&self, expr: &Expr, after: &First, next: &[Expr]) -> bool {
        if !self.work.go_on(after.set.ranges().len() + 1) {
            return true;
        }
        match &expr.kind {
            Kind::Text(_) | Kind::AnyCase(_) | Kind::Set(_) | Kind::Start | Kind::End => true,
            Kind::Name(name) => match self.called(name, after) {
                // White space after white space is read by either, if all between them is neutral.
                Some((body, mut after)) if name == SKIP => {
                    after.set.clone_from(&after.apart);
                    self.is_neutral(body, &after)
                }
                Some((body, after)) => self.is_neutral(body, &after),
                None => true,
            },
            Kind::Seq(parts) => {
                let mut after = after.clone();
                for (index, part) in parts.iter().enumerate().rev() {
                    if !self.is_neutral_before(part, &after, &parts[index + 1..]) {
                        return false;
                    }
                    after = self.first(part).then(&after);
                }
                true
            }
            Kind::Choice(parts) => {
                let inner = parts.iter().all(|part| self.is_neutral(part, after));
                inner && (1..parts.len()).all(|index| self.rivals(parts, index, after).is_empty())
            }
            Kind::Either(parts) => parts.iter().all(|part| self.is_neutral(part, after)),
            Kind::Repeat(body, ..) => {
                let inner = self.first(body).or(after);
                !self.is_greedy(expr, after, next) && self.is_neutral(body, &inner)
            }
            Kind::Ahead(..) => self.is_redundant(expr, after),
        }
    }

    /// Returns `true` if a look-ahead holds wherever it stands before what may follow it.
    pub(super) fn is_redundant(&self, ahead: &Expr, after: &First) -> bool {
        let Kind::Ahead(body, false) = &ahead.kind else {
            return false;
        };
        let first = self.first(body);
        !first.is_nullable && are_apart(&first.set, &after.set)
    }

    /// Returns `true` if it matters that a repetition is read as often as possible.
    pub(super) fn is_greedy(&self, repeat: &Expr, after: &First, next: &[Expr]) -> bool {
        let Kind::Repeat(body, min, max) = &repeat.kind else {
            return false;
        };
        if *max == Some(*min) || are_apart(&self.first(body).set, &after.set) {
            return false;
        }
        !self.is_stopped(body, next)
    }

    /// Returns `true` if what is repeated begins by looking out for the text with which the next part
    /// begins, as in `(!"*/" ~ ANY)* ~ "*/"`: nothing of the next part can be read as a round.
    fn is_stopped(&self, body: &Expr, next: &[Expr]) -> bool {
        let Kind::Seq(parts) = &body.kind else {
            return false;
        };
        let (Some(next), Some(first)) = (next.first(), parts.first()) else {
            return false;
        };
        let Kind::Ahead(stop, false) = &first.kind else {
            return false;
        };
        let ((stop, is_all), (next, _)) = (self.lead(stop), self.lead(next));
        is_all && !stop.is_empty() && next.starts_with(&stop)
    }

    /// Returns the earlier alternatives that may be read where a later one could be.
    pub(super) fn rivals<'e>(&self, parts: &'e [Expr], index: usize, after: &First) -> Vec<&'e Expr> {
        let first = self.first(&parts[index]).then(after);
        let earlier = parts[..index].iter();
        let rivals = earlier.filter(|earlier| {
            let begins = self.first(earlier);
            if begins.is_nullable {
                return true;
            }
            !are_apart(&begins.set, &first.set) && !self.differ(earlier, &parts[index], after)
        });
        rivals.collect()
    }

    /// Returns `true` if the texts with which two parts begin differ, also with what may follow the other.
    fn differ(&self, one: &Expr, other: &Expr, after: &First) -> bool {
        let ((one, _), (other, is_all)) = (self.lead(one), self.lead(other));
        let mut pairs = one.chars().zip(other.chars());
        if pairs.any(|(one, other)| one != other) {
            return true;
        }
        let rest = one.get(other.len()..).and_then(|rest| rest.chars().next());
        rest.is_some_and(|c| is_all && are_apart(&pattern::char_set(c), &after.set))
    }

    /// Returns a text with which all texts of a part begin, and whether it is the whole of it.
    fn lead(&self, expr: &Expr) -> (String, bool) {
        if !self.work.go_on(1) {
            return (String::new(), false);
        }
        match &expr.kind {
            Kind::Text(text) if text.len() <= LONGEST => (text.clone(), true),
            Kind::Set(set) => match set.ranges() {
                [one] if one.start() == one.end() => (one.start().to_string(), true),
                _ => (String::new(), false),
            },
            Kind::Seq(parts) => {
                let mut lead = String::new();
                for part in parts {
                    let (more, is_all) = self.lead(part);
                    lead.push_str(&more);
                    if !is_all || lead.len() > LONGEST {
                        return (lead, false);
                    }
                }
                (lead, true)
            }
            Kind::Name(name) => match self.index.get(name.as_str()) {
                Some(&at) if self.shape(expr).is_some() => self.lead(&self.rules[at].body),
                _ => (String::new(), false),
            },
            _ => (String::new(), false),
        }
    }

    /// Returns how many characters a part that is not neutral may look at beyond its end; `None` if there is
    /// no limit.
    pub(super) fn reach(&self, expr: &Expr) -> Option<u64> {
        if !self.work.go_on(1) {
            return Some(0);
        }
        let most = |expr: &Expr| {
            let own = self.shape(expr)?.most?;
            Some(own.saturating_add(self.reach(expr)?))
        };
        match &expr.kind {
            Kind::Name(name) => match self.called(name, &First::empty()) {
                Some((body, _)) => self.reach(body),
                None => Some(0),
            },
            Kind::Seq(parts) => parts.iter().try_fold(0, |far, part| {
                let part = self.reach(part)?;
                Some(part.max(far))
            }),
            Kind::Choice(parts) | Kind::Either(parts) => {
                parts.iter().try_fold(0, |far, part| Some(most(part)?.max(far)))
            }
            Kind::Repeat(body, ..) | Kind::Ahead(body, _) => most(body),
            _ => Some(0),
        }
    }

    /// Returns all characters that a part may look at.
    pub(super) fn alphabet(&self, expr: &Expr, found: &mut ClassUnicode) {
        if !self.work.go_on(found.ranges().len() + 1) {
            return;
        }
        match &expr.kind {
            Kind::Text(text) => text.chars().for_each(|c| found.union(&pattern::char_set(c))),
            Kind::AnyCase(text) => text.chars().for_each(|c| found.union(&cases(c))),
            Kind::Set(set) => found.union(set),
            Kind::Name(name) => {
                if let Some((body, _)) = self.called(name, &First::empty()) {
                    self.alphabet(body, found);
                }
            }
            _ => expr.parts().iter().for_each(|part| self.alphabet(part, found)),
        }
    }

    /// Returns characters that cannot follow a part, because it would have read them.
    pub(super) fn eaten(&self, expr: &Expr) -> ClassUnicode {
        match &expr.kind {
            _ if !self.work.go_on(1) => ClassUnicode::empty(),
            Kind::Repeat(body, _, None) => match &body.kind {
                Kind::Set(set) => set.clone(),
                Kind::Name(name) => match self.called(name, &First::empty()).map(|(body, _)| &body.kind) {
                    Some(Kind::Set(set)) => set.clone(),
                    _ => ClassUnicode::empty(),
                },
                _ => ClassUnicode::empty(),
            },
            Kind::Seq(parts) => parts
                .last()
                .map_or_else(ClassUnicode::empty, |part| self.eaten(part)),
            Kind::Name(name) => match self.called(name, &First::empty()) {
                Some((body, _)) => self.eaten(body),
                None => ClassUnicode::empty(),
            },
            _ => ClassUnicode::empty(),
        }
    }
}
