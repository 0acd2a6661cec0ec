//! What is known about the rules of a grammar before white space is written out.

use std::cell::Cell;

use foldhash::{HashMap, HashMapExt};

use super::expr::{Expr, Kind, RuleItem};

/// The most steps of all passes over a grammar together.
const MOST_STEPS: usize = 10_000_000;
/// The steps that a node of a copy counts as: it takes memory.
const STEPS_OF_NODE: usize = 4;

/// The steps that were taken.
#[derive(Debug, Default)]
pub(super) struct Work {
    steps: Cell<usize>,
}

impl Work {
    /// Counts steps, and returns whether there may be more.
    pub(super) fn go_on(&self, steps: usize) -> bool {
        self.steps.set(self.steps.get().saturating_add(steps));
        !self.is_spent()
    }

    /// Returns a copy of a part, or an empty part if there are no steps left.
    pub(super) fn copy(&self, expr: &Expr) -> Expr {
        match self.go_on(expr.size().saturating_mul(STEPS_OF_NODE)) {
            true => expr.clone(),
            false => Expr::empty(expr.at),
        }
    }

    pub(super) fn is_spent(&self) -> bool {
        self.steps.get() > MOST_STEPS
    }
}

/// Whether something holds for a part, given the names of the rules for which it holds.
type Holds = fn(&Expr, &dyn Fn(&str) -> bool, &Work) -> bool;

/// Facts about rules, each by the index of the rule.
#[derive(Debug)]
pub(super) struct Facts {
    /// The rule of each name.
    pub(super) index: HashMap<String, usize>,
    /// It can be read at the end of a text.
    pub(super) is_empty: Vec<bool>,
    /// It can ask for the end of the text.
    pub(super) ends: Vec<bool>,
    /// It can be read without asking for the end of the text.
    pub(super) goes_on: Vec<bool>,
    /// It asks for the start of the text somewhere.
    pub(super) starts: Vec<bool>,
}

impl Facts {
    pub(super) fn find(rules: &[RuleItem], work: &Work) -> Facts {
        let mut index = HashMap::with_capacity(rules.len());
        for (at, rule) in rules.iter().enumerate() {
            index.entry(rule.name.clone()).or_insert(at);
        }
        let mut callers = vec![Vec::new(); rules.len()];
        for (at, rule) in rules.iter().enumerate() {
            rule.body.each_name(&mut |name, _| {
                if let Some(&callee) = index.get(name) {
                    callers[callee].push(at);
                }
            });
        }
        let least = |holds: Holds| {
            let mut known = vec![false; rules.len()];
            let mut open: Vec<usize> = (0..rules.len()).collect();
            while let Some(at) = open.pop() {
                let is_known = |name: &str| index.get(name).is_some_and(|&at| known[at]);
                if !known[at] && holds(&rules[at].body, &is_known, work) {
                    known[at] = true;
                    open.extend(callers[at].iter().filter(|&&caller| !known[caller]));
                }
            }
            known
        };
        Facts {
            is_empty: least(is_empty),
            ends: least(ends),
            goes_on: least(goes_on),
            starts: least(starts),
            index,
        }
    }

    /// Returns `true` if a part can be read at the end of a text.
    pub(super) fn is_empty(&self, expr: &Expr, work: &Work) -> bool {
        is_empty(
            expr,
            &|name| self.index.get(name).is_some_and(|&at| self.is_empty[at]),
            work,
        )
    }
}

fn is_empty(expr: &Expr, known: &dyn Fn(&str) -> bool, work: &Work) -> bool {
    if !work.go_on(1) {
        return false;
    }
    match &expr.kind {
        Kind::Text(text) | Kind::AnyCase(text) => text.is_empty(),
        Kind::Set(_) => false,
        Kind::Name(name) => known(name),
        Kind::Start | Kind::End => true,
        Kind::Seq(parts) => parts.iter().all(|part| is_empty(part, known, work)),
        Kind::Choice(parts) | Kind::Either(parts) => parts.iter().any(|part| is_empty(part, known, work)),
        Kind::Repeat(body, min, _) => *min == 0 || is_empty(body, known, work),
        Kind::Ahead(body, true) => is_empty(body, known, work),
        Kind::Ahead(body, false) => !matches!(body.kind, Kind::End),
    }
}

fn ends(expr: &Expr, known: &dyn Fn(&str) -> bool, work: &Work) -> bool {
    if !work.go_on(1) {
        return false;
    }
    match &expr.kind {
        Kind::End => true,
        Kind::Name(name) => known(name),
        Kind::Ahead(body, is_there) => *is_there && matches!(body.kind, Kind::End),
        _ => expr.parts().iter().any(|part| ends(part, known, work)),
    }
}

fn goes_on(expr: &Expr, known: &dyn Fn(&str) -> bool, work: &Work) -> bool {
    if !work.go_on(1) {
        return false;
    }
    match &expr.kind {
        Kind::End => false,
        Kind::Name(name) => known(name),
        Kind::Seq(parts) => parts.iter().all(|part| goes_on(part, known, work)),
        Kind::Choice(parts) | Kind::Either(parts) => parts.iter().any(|part| goes_on(part, known, work)),
        Kind::Repeat(body, min, _) => *min == 0 || goes_on(body, known, work),
        Kind::Ahead(body, is_there) => !(*is_there && matches!(body.kind, Kind::End)),
        _ => true,
    }
}

fn starts(expr: &Expr, known: &dyn Fn(&str) -> bool, work: &Work) -> bool {
    if !work.go_on(1) {
        return false;
    }
    match &expr.kind {
        Kind::Start => true,
        Kind::Name(name) => known(name),
        _ => expr.parts().iter().any(|part| starts(part, known, work)),
    }
}
