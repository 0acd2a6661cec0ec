//! Grammars out of grammars: whole grammars become parts of a larger one.
//!
//! Expressions refer to each other by index, so a grammar is taken over by moving its indices behind those that are
//! there already.

use lexiform::grammar::{
    Cfg, Expr, ExprId, Member, Regular, RegularId, Rest, Rule, RuleId, Series, SeriesId,
};

/// A grammar in the making.
#[derive(Debug, Default)]
pub struct Composer {
    exprs: Vec<Expr>,
    rules: Vec<Rule>,
    regulars: Vec<Regular>,
    series: Vec<Series>,
}

impl Composer {
    /// Takes a whole grammar over, and refers to its start.
    pub fn import(&mut self, cfg: Cfg) -> ExprId {
        let shift = Shift {
            exprs: self.exprs.len() as u32,
            rules: self.rules.len() as u32,
            regulars: self.regulars.len() as u32,
            series: self.series.len() as u32,
        };
        self.exprs
            .extend(cfg.exprs.into_iter().map(|expr| shift.expr(expr)));
        self.rules.extend(cfg.rules.into_iter().map(|rule| Rule {
            name: rule.name,
            body: shift.id(rule.body),
        }));
        self.regulars.extend(cfg.regulars);
        self.series
            .extend(cfg.series.into_iter().map(|series| shift.series(series)));
        self.push(Expr::Rule(shift.rule(cfg.start)))
    }

    /// Exactly this text, which is not empty.
    pub fn text(&mut self, text: &str) -> ExprId {
        self.push(Expr::Bytes(text.as_bytes().into()))
    }

    /// The special token of this name.
    pub fn special(&mut self, name: &str) -> ExprId {
        self.push(Expr::Special(name.into()))
    }

    /// A word of a regular language.
    pub fn regular(&mut self, regular: Regular) -> ExprId {
        self.regulars.push(regular);
        self.push(Expr::Regular(RegularId(self.regulars.len() as u32 - 1)))
    }

    /// All parts, one after the other.
    pub fn seq(&mut self, parts: Vec<ExprId>) -> ExprId {
        self.push(Expr::Seq(parts.into()))
    }

    /// One of these.
    pub fn choice(&mut self, alternatives: Vec<ExprId>) -> ExprId {
        match alternatives.as_slice() {
            [one] => *one,
            _ => self.push(Expr::Choice(alternatives.into())),
        }
    }

    /// This or nothing.
    pub fn optional(&mut self, body: ExprId) -> ExprId {
        let nothing = self.push(Expr::Empty);
        self.choice(vec![body, nothing])
    }

    /// The body a number of times.
    pub fn repeat(&mut self, body: ExprId, min: u32, max: u32) -> ExprId {
        let max = Some(max);
        self.push(Expr::Repeat { body, min, max })
    }

    /// The grammar of this expression.
    pub fn finish(mut self, body: ExprId) -> Cfg {
        self.rules.push(Rule {
            name: "answer".to_owned(),
            body,
        });
        let start = RuleId(self.rules.len() as u32 - 1);
        Cfg {
            exprs: self.exprs,
            rules: self.rules,
            regulars: self.regulars,
            series: self.series,
            start,
        }
    }

    fn push(&mut self, expr: Expr) -> ExprId {
        self.exprs.push(expr);
        ExprId(self.exprs.len() as u32 - 1)
    }
}

/// How far the indices of a grammar move.
struct Shift {
    exprs: u32,
    rules: u32,
    regulars: u32,
    series: u32,
}

impl Shift {
    fn id(&self, id: ExprId) -> ExprId {
        ExprId(id.0 + self.exprs)
    }

    fn rule(&self, id: RuleId) -> RuleId {
        RuleId(id.0 + self.rules)
    }

    fn regular(&self, id: RegularId) -> RegularId {
        RegularId(id.0 + self.regulars)
    }

    fn ids(&self, ids: &[ExprId]) -> Box<[ExprId]> {
        ids.iter().map(|id| self.id(*id)).collect()
    }

    fn expr(&self, expr: Expr) -> Expr {
        match expr {
            Expr::Seq(parts) => Expr::Seq(self.ids(&parts)),
            Expr::Choice(parts) => Expr::Choice(self.ids(&parts)),
            Expr::Repeat { body, min, max } => Expr::Repeat {
                body: self.id(body),
                min,
                max,
            },
            Expr::Rule(rule) => Expr::Rule(self.rule(rule)),
            Expr::Regular(regular) => Expr::Regular(self.regular(regular)),
            Expr::Series(series) => Expr::Series(SeriesId(series.0 + self.series)),
            leaf @ (Expr::Never | Expr::Empty | Expr::Bytes(_) | Expr::Special(_)) => leaf,
        }
    }

    fn series(&self, series: Series) -> Series {
        let member = |member: Member| Member {
            item: self.id(member.item),
            ..member
        };
        let rest = |rest: Rest| Rest {
            key: rest.key.map(|key| self.regular(key)),
            item: self.id(rest.item),
        };
        Series {
            members: series.members.into_iter().map(member).collect(),
            rest: series.rest.into_iter().map(rest).collect(),
            separator: self.id(series.separator),
            ..series
        }
    }
}
