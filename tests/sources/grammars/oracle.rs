//! A recogniser that is slow and obvious: the ends that an expression can reach from a place, as a least
//! fixpoint.
//!
//! It shares nothing with the machine but the grammar's own representation, and is there to be compared with
//! it.

use std::collections::{BTreeSet, HashMap, HashSet};

use lexiform_automata::grammar::{Cfg, Expr, ExprId};

use crate::regular_run::Runner;

type Ends = BTreeSet<usize>;

/// A grammar and a text, with the ends found so far.
pub(crate) struct Oracle<'a> {
    cfg: &'a Cfg,
    text: &'a [u8],
    runners: Vec<Runner>,
    ends: HashMap<(ExprId, usize), Ends>,
    visited: HashSet<(ExprId, usize)>,
    grew: bool,
}

/// Whether the grammar has the text; the grammar must be without object lists.
pub(crate) fn has(cfg: &Cfg, text: &str) -> bool {
    let runners = cfg
        .regulars
        .iter()
        .map(|regular| Runner::new(regular).expect("a small language"))
        .collect();
    let (text, ends, visited) = (text.as_bytes(), HashMap::new(), HashSet::new());
    let mut oracle = Oracle {
        cfg,
        text,
        runners,
        ends,
        visited,
        grew: true,
    };
    let start = cfg.rules[cfg.start.index()].body;
    while std::mem::take(&mut oracle.grew) {
        oracle.visited.clear();
        oracle.visit(start, 0);
    }
    oracle.visit(start, 0).contains(&text.len())
}

impl Oracle<'_> {
    fn visit(&mut self, id: ExprId, at: usize) -> Ends {
        if self.visited.insert((id, at)) {
            let found = self.ends_of(id, at);
            let known = self.ends.entry((id, at)).or_default();
            let before = known.len();
            known.extend(found);
            self.grew |= known.len() > before;
        }
        self.ends.get(&(id, at)).cloned().unwrap_or_default()
    }

    fn visit_all(&mut self, id: ExprId, starts: &Ends) -> Ends {
        starts.iter().flat_map(|&at| self.visit(id, at)).collect()
    }

    fn ends_of(&mut self, id: ExprId, at: usize) -> Ends {
        let cfg = self.cfg;
        match cfg.expr(id) {
            Expr::Never | Expr::Special(_) | Expr::Marked(_) | Expr::Tokens(_) => Ends::new(),
            Expr::Empty => Ends::from([at]),
            Expr::Bytes(bytes) if self.text[at..].starts_with(bytes) => Ends::from([at + bytes.len()]),
            Expr::Bytes(_) => Ends::new(),
            Expr::Seq(parts) => parts
                .iter()
                .fold(Ends::from([at]), |ends, &part| self.visit_all(part, &ends)),
            Expr::Choice(parts) => parts.iter().flat_map(|&part| self.visit(part, at)).collect(),
            Expr::Rule(rule) => self.visit(cfg.rules[rule.index()].body, at),
            Expr::Regular(regular) => {
                let runner = &self.runners[regular.index()];
                (at..=self.text.len())
                    .filter(|&end| runner.accepts(&self.text[at..end]))
                    .collect()
            }
            Expr::Validated(validated) => {
                let text = self.text;
                let accepts = |&end: &usize| validated.validator().accepts(&text[at..end]);
                (at..=text.len()).filter(accepts).collect()
            }
            Expr::Repeat { body, min, max } => self.repeated(*body, *min, *max, at),
            Expr::ObjectList(_) => panic!("no front end of texts makes an object list"),
        }
    }

    fn repeated(&mut self, body: ExprId, min: u32, max: Option<u32>, at: usize) -> Ends {
        let mut now = Ends::from([at]);
        for _ in 0..min {
            now = self.visit_all(body, &now);
        }
        let mut all = now.clone();
        // Beyond the length of the text, further rounds can only repeat places that are known.
        let rounds = max.map_or(self.text.len() as u32 + 1, |max| max.saturating_sub(min));
        for _ in 0..rounds.min(self.text.len() as u32 + 1) {
            now = self.visit_all(body, &now);
            all.extend(&now);
        }
        all
    }
}
