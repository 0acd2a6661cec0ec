//! From the judges' own forms to the library's grammars, so that the machine is judged without any front end.

use std::sync::Arc;

use lexiform::Grammar;
use lexiform::error::CompileError;
use lexiform::limits::Limits;
use lexiform::vocab::Vocabulary;
use lexiform_automata::grammar::{Cfg, CfgBuilder, ExprId, Part, Regular, RuleId};
use lexiform_automata::mask::Tables;

use super::context_free::{Rules, Term};
use super::regular::{Operand, Pattern};
use super::vocabulary::NAMED;

/// Compiles a grammar with tables of its own.
pub(crate) fn compile(cfg: &Cfg, vocabulary: &Arc<Vocabulary>) -> Result<Grammar, CompileError> {
    let tables = Arc::new(Tables::new(vocabulary.clone(), 1 << 20));
    Grammar::new(cfg, &tables, &Limits::default())
}

/// A grammar of one expression.
pub(crate) fn grammar_of(build: impl FnOnce(&mut CfgBuilder) -> ExprId) -> Cfg {
    let mut builder = CfgBuilder::new();
    let start = builder.declare("start");
    let body = build(&mut builder);
    builder.define(start, body);
    builder.finish(start)
}

/// The regular expression of a pattern.
pub(crate) fn hir(pattern: &Pattern) -> regex_syntax::hir::Hir {
    regex_syntax::parse(&pattern.source()).expect("patterns print as regular expressions")
}

/// The pattern as one terminal.
pub(crate) fn terminal(pattern: &Pattern) -> Cfg {
    grammar_of(|builder| builder.hir(hir(pattern)))
}

/// The pattern as expressions, with terminals for single characters only.
pub(crate) fn expressions(pattern: &Pattern) -> Cfg {
    grammar_of(|builder| expression(pattern, builder))
}

pub(crate) fn expression(pattern: &Pattern, builder: &mut CfgBuilder) -> ExprId {
    match pattern {
        Pattern::Chars(chars) => {
            let all: Vec<ExprId> = chars.iter().map(|it| builder.bytes(it.to_string())).collect();
            builder.choice(all)
        }
        Pattern::Dot => builder.hir(hir(pattern)),
        Pattern::Seq(parts) => {
            let parts: Vec<ExprId> = parts.iter().map(|part| expression(part, builder)).collect();
            builder.seq(parts)
        }
        Pattern::Alt(parts) => {
            let parts: Vec<ExprId> = parts.iter().map(|part| expression(part, builder)).collect();
            builder.choice(parts)
        }
        Pattern::Repeat(part, min, max) => {
            let body = expression(part, builder);
            builder.repeat(body, *min, *max)
        }
    }
}

/// The rules as rules.
pub(crate) fn rules(rules: &Rules) -> Cfg {
    let mut builder = CfgBuilder::new();
    let ids: Vec<RuleId> = (0..rules.0.len())
        .map(|rule| builder.declare(format!("r{rule}")))
        .collect();
    for (&id, body) in ids.iter().zip(&rules.0) {
        let body = term(body, &ids, &mut builder);
        builder.define(id, body);
    }
    builder.finish(ids[0])
}

fn term(it: &Term, rules: &[RuleId], builder: &mut CfgBuilder) -> ExprId {
    match it {
        Term::Text(text) => builder.bytes(text),
        Term::Class(class, _) => {
            let class = regex_syntax::parse(class);
            builder.hir(class.expect("classes are those of regular expressions"))
        }
        Term::Named => builder.special(NAMED),
        Term::Rule(rule) => builder.rule(rules[*rule]),
        Term::Seq(parts) => {
            let parts: Vec<ExprId> = parts.iter().map(|part| term(part, rules, builder)).collect();
            builder.seq(parts)
        }
        Term::Alt(parts) => {
            let parts: Vec<ExprId> = parts.iter().map(|part| term(part, rules, builder)).collect();
            builder.choice(parts)
        }
        Term::Optional(part) => {
            let part = term(part, rules, builder);
            builder.optional(part)
        }
        Term::Star(part) => {
            let part = term(part, rules, builder);
            builder.repeat(part, 0, None)
        }
        Term::Plus(part) => {
            let part = term(part, rules, builder);
            builder.repeat(part, 1, None)
        }
    }
}

/// A counted language as one terminal, and a pattern as expressions behind it.
pub(crate) fn count_before(counted: Operand, pattern: &Pattern) -> Cfg {
    let counted = regular(&[counted]);
    grammar_of(|builder| {
        let counted = builder.add_regular(counted);
        let first = builder.regular(counted);
        let second = expression(pattern, builder);
        builder.seq(vec![first, second])
    })
}

/// An intersection as one regular language.
pub(crate) fn regular(operands: &[Operand]) -> Regular {
    let part = |operand: &Operand| match operand {
        Operand::Match(pattern) => Part::Match(hir(pattern).into()),
        Operand::Not(pattern) => Part::Not(hir(pattern).into()),
        Operand::Units(unit, min, max) => Part::Units {
            unit: hir(unit).into(),
            min: u64::from(*min),
            max: max.map(u64::from),
        },
    };
    Regular::of(operands.iter().map(part).collect())
}
