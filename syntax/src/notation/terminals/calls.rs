//! Finds the rules that an expression calls, and an order in which every rule comes after those that it
//! calls.

use foldhash::{HashSet, HashSetExt};

use lexiform_automata::grammar::{Cfg, Expr, ExprId, RuleId};

/// Returns the direct parts of an expression; rules are not followed.
pub(super) fn parts(cfg: &Cfg, id: ExprId) -> &[ExprId] {
    match cfg.expr(id) {
        Expr::Seq(parts) | Expr::Choice(parts) => parts,
        Expr::Repeat { body, .. } => std::slice::from_ref(body),
        _ => &[],
    }
}

/// Returns the rules that an expression calls, each once.
pub(super) fn callees(cfg: &Cfg, id: ExprId) -> Vec<RuleId> {
    let mut callees = Vec::new();
    let mut seen = HashSet::new();
    let mut open = vec![id];
    while let Some(id) = open.pop() {
        if seen.insert(id) {
            match cfg.expr(id) {
                Expr::Rule(rule) => callees.push(*rule),
                _ => open.extend(parts(cfg, id)),
            }
        }
    }
    callees
}

/// Returns the rules in an order in which each comes after all others that it calls. Rules without such an
/// order call each other in a cycle, or call such rules, and are left out.
pub(super) fn callees_first(cfg: &Cfg) -> Vec<RuleId> {
    let mut callers = vec![Vec::new(); cfg.rules.len()];
    let mut missing = vec![0usize; cfg.rules.len()];
    let rules = (0..cfg.rules.len()).map(|rule| RuleId(rule as u32));
    for rule in rules.clone() {
        let mut callees = callees(cfg, cfg.rules[rule.index()].body);
        callees.retain(|&callee| callee != rule);
        missing[rule.index()] = callees.len();
        for callee in callees {
            callers[callee.index()].push(rule);
        }
    }
    let mut order: Vec<RuleId> = rules.filter(|rule| missing[rule.index()] == 0).collect();
    let mut at = 0;
    while let Some(&rule) = order.get(at) {
        at += 1;
        for &caller in &callers[rule.index()] {
            missing[caller.index()] -= 1;
            if missing[caller.index()] == 0 {
                order.push(caller);
            }
        }
    }
    order
}
