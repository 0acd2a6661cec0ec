//! Texts in which the names of special tokens denote those tokens.
//!
//! Models are trained to write `<tool_call>` or `<arg_key>` as one token, and never letter by letter, where
//! their vocabulary has such a token. A front end that writes frames of calls does not know the vocabulary,
//! so it leaves them as [`Expr::Marked`], and they are replaced when a grammar meets its vocabulary.

use super::cfg::{Cfg, Expr, Rule};
use super::ids::{ExprId, RuleId};

/// The longest name of a special token that is looked for in a text.
const NAME_BYTES: usize = 64;
/// The longest text in which names are looked for: no frame of any model is longer.
const MARKED_BYTES: usize = 4_096;

impl Cfg {
    /// Returns the grammar with its marked texts replaced by texts and special tokens, or `None` if it has no
    /// marked texts. `is_mark` says whether a text is the name of a special token after which a text can
    /// continue.
    pub fn with_marks(&self, is_mark: &dyn Fn(&str) -> bool) -> Option<Cfg> {
        let is_marked = |expr: &Expr| matches!(expr, Expr::Marked(_));
        if !self.exprs.iter().any(is_marked) {
            return None;
        }
        let mut cfg = self.clone();
        for index in 0..self.exprs.len() {
            if let Expr::Marked(text) = &self.exprs[index] {
                cfg.exprs[index] = cfg.replaced(text, is_mark);
            }
        }
        Some(cfg)
    }

    /// Returns the expression for a marked text: its bytes, or a call of a new rule for its parts.
    fn replaced(&mut self, text: &str, is_mark: &dyn Fn(&str) -> bool) -> Expr {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, name, after)) = first_mark(rest, is_mark) {
            if !before.is_empty() {
                parts.push(self.push(Expr::Bytes(before.as_bytes().into())));
            }
            parts.push(self.push(Expr::Special(name.into())));
            rest = after;
        }
        if parts.is_empty() {
            return match text.is_empty() {
                true => Expr::Empty,
                false => Expr::Bytes(text.as_bytes().into()),
            };
        }
        if !rest.is_empty() {
            parts.push(self.push(Expr::Bytes(rest.as_bytes().into())));
        }
        // Children come before their parents, but for the bodies of rules.
        let body = self.push(Expr::Seq(parts.into()));
        let name = String::new();
        self.rules.push(Rule { name, body });
        Expr::Rule(RuleId(self.rules.len() as u32 - 1))
    }

    fn push(&mut self, expr: Expr) -> ExprId {
        self.exprs.push(expr);
        ExprId(self.exprs.len() as u32 - 1)
    }
}

/// Finds the first name of a special token in a text, the longest one that begins there, and returns the text
/// before it, the name, and the text after it.
fn first_mark<'t>(text: &'t str, is_mark: &dyn Fn(&str) -> bool) -> Option<(&'t str, &'t str, &'t str)> {
    if text.len() > MARKED_BYTES {
        return None;
    }
    text.char_indices().find_map(|(at, _)| {
        let rest = &text[at..];
        let longest = rest.len().min(NAME_BYTES);
        let ends = (2..=longest).rev().filter(|end| rest.is_char_boundary(*end));
        let end = ends.into_iter().find(|end| is_mark(&rest[..*end]))?;
        Some((&text[..at], &rest[..end], &rest[end..]))
    })
}

#[cfg(test)]
mod tests {
    use crate::grammar::{CfgBuilder, Expr};

    #[test]
    fn marks_become_tokens_where_the_vocabulary_has_them() {
        let mut builder = CfgBuilder::new();
        let frame = builder.marked("<|open|>argument<|sep|>");
        let start = builder.declare("start");
        builder.define(start, frame);
        let cfg = builder.finish(start);
        let with = cfg
            .with_marks(&|name| matches!(name, "<|open|>" | "<|sep|>"))
            .expect("a mark");
        let Expr::Rule(rule) = with.expr(with.rules[0].body) else {
            panic!("no rule");
        };
        let Expr::Seq(parts) = with.expr(with.rules[rule.index()].body) else {
            panic!("no sequence");
        };
        let parts: Vec<&Expr> = parts.iter().map(|&part| with.expr(part)).collect();
        let special = |name: &str| Expr::Special(name.into());
        let text = Expr::Bytes(b"argument"[..].into());
        assert_eq!(parts, [&special("<|open|>"), &text, &special("<|sep|>")]);
        let without = cfg.with_marks(&|_| false).expect("a mark");
        let whole = Expr::Bytes(b"<|open|>argument<|sep|>"[..].into());
        assert_eq!(without.expr(without.rules[0].body), &whole);
    }
}
