//! Rewrites rules that call themselves only at one end as repetitions.
//!
//! ```text
//!   digits ::= digit | digits digit          digits ::= digit digit*
//!   ws     ::= " " ws | ""            ─►     ws     ::= " "*
//! ```
//!
//! The parts before a call at the end may come any number of times before everything else, and the parts
//! after a call at the beginning any number of times after it.

use lexiform_automata::grammar::{Cfg, Expr, ExprId, RuleId};

use super::calls::callees;

/// The alternatives of a rule, by their calls of the rule.
#[derive(Default)]
struct Alternatives {
    /// The parts before a call of the rule at the end.
    before: Vec<ExprId>,
    /// The alternatives without such a call.
    between: Vec<ExprId>,
    /// The parts after a call of the rule at the beginning.
    after: Vec<ExprId>,
}

/// Returns the body of a rule as a repetition, if the rule calls itself in no other way.
pub(super) fn of(cfg: &mut Cfg, rule: RuleId) -> Option<ExprId> {
    let body = cfg.rules[rule.index()].body;
    if !callees(cfg, body).contains(&rule) {
        return None;
    }
    let alternatives = split(cfg, rule, body)?;
    let (before, after) = (alternatives.before, alternatives.after);
    let between = choice(cfg, alternatives.between)?;
    let before = choice(cfg, before).map(|body| any_number(cfg, body));
    let after = choice(cfg, after).map(|body| any_number(cfg, body));
    let parts: Vec<ExprId> = before.into_iter().chain([between]).chain(after).collect();
    Some(add(cfg, Expr::Seq(parts.into())))
}

fn split(cfg: &mut Cfg, rule: RuleId, body: ExprId) -> Option<Alternatives> {
    let alternatives: Vec<ExprId> = match cfg.expr(body) {
        Expr::Choice(alternatives) => alternatives.to_vec(),
        _ => vec![body],
    };
    let mut split = Alternatives::default();
    for id in alternatives {
        let parts: Vec<ExprId> = match cfg.expr(id) {
            Expr::Seq(parts) => parts.to_vec(),
            _ => vec![id],
        };
        let is_call = |id: &ExprId| *cfg.expr(*id) == Expr::Rule(rule);
        let calls = |parts: &[ExprId]| parts.iter().any(|&id| callees(cfg, id).contains(&rule));
        match &parts[..] {
            [one] if is_call(one) => {}
            [first, rest @ ..] if is_call(first) && !calls(rest) => {
                let rest = Expr::Seq(rest.into());
                split.after.push(add(cfg, rest));
            }
            [rest @ .., last] if is_call(last) && !calls(rest) => {
                let rest = Expr::Seq(rest.into());
                split.before.push(add(cfg, rest));
            }
            parts if calls(parts) => return None,
            _ => split.between.push(id),
        }
    }
    Some(split)
}

fn choice(cfg: &mut Cfg, alternatives: Vec<ExprId>) -> Option<ExprId> {
    match alternatives[..] {
        [] => None,
        [one] => Some(one),
        _ => Some(add(cfg, Expr::Choice(alternatives.into()))),
    }
}

fn any_number(cfg: &mut Cfg, body: ExprId) -> ExprId {
    let (min, max) = (0, None);
    add(cfg, Expr::Repeat { body, min, max })
}

fn add(cfg: &mut Cfg, expr: Expr) -> ExprId {
    cfg.exprs.push(expr);
    ExprId(cfg.exprs.len() as u32 - 1)
}
