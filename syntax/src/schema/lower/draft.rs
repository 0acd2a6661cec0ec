//! Expressions that are assembled before they are written.
//!
//! Many ways to distinguish unique items are tried, most of which turn out too large. A draft shares its
//! parts with the drafts it is made of, so that trying costs nothing; only the one that is used is written as
//! an expression.

use std::rc::Rc;

use regex_syntax::hir::Hir;

use crate::schema::text::hir;
use lexiform_automata::grammar::Expression;

/// An expression made of shared parts.
#[derive(Clone, Debug)]
pub(super) struct Draft(Rc<DraftForm>);

#[derive(Debug)]
enum DraftForm {
    Whole(Expression),
    Concat(Vec<Draft>),
    Any(Vec<Draft>),
    Repeat { body: Draft, min: u32, max: Option<u32> },
}

impl Draft {
    /// Returns all parts, one after the other.
    pub(super) fn concat(parts: impl IntoIterator<Item = Draft>) -> Draft {
        Draft(Rc::new(DraftForm::Concat(parts.into_iter().collect())))
    }

    /// Returns a choice between the ways.
    pub(super) fn any(ways: impl IntoIterator<Item = Draft>) -> Draft {
        Draft(Rc::new(DraftForm::Any(ways.into_iter().collect())))
    }

    /// Returns the body repeated between `min` and `max` times.
    pub(super) fn repeat(body: Draft, min: u32, max: Option<u32>) -> Draft {
        Draft(Rc::new(DraftForm::Repeat { body, min, max }))
    }

    /// Returns `true` if the draft consists of exactly this expression.
    pub(super) fn is(&self, expression: &Expression) -> bool {
        matches!(&*self.0, DraftForm::Whole(whole) if whole == expression)
    }

    /// Returns the expression. A draft nests as deep as the values that it describes, which is bounded.
    pub(super) fn written(&self) -> Expression {
        match &*self.0 {
            DraftForm::Whole(expression) => expression.clone(),
            _ => self.hir().into(),
        }
    }

    fn hir(&self) -> Hir {
        match &*self.0 {
            DraftForm::Whole(expression) => Hir::clone(expression),
            DraftForm::Concat(parts) => hir::concat(parts.iter().map(Draft::hir)),
            DraftForm::Any(ways) => hir::any(ways.iter().map(Draft::hir)),
            DraftForm::Repeat { body, min, max } => hir::repeat(body.hir(), *min, *max),
        }
    }
}

impl From<Expression> for Draft {
    fn from(expression: Expression) -> Draft {
        Draft(Rc::new(DraftForm::Whole(expression)))
    }
}

impl From<Hir> for Draft {
    fn from(hir: Hir) -> Draft {
        Expression::from(hir).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_is_written_as_what_it_was_made_of() {
        let text = |text: &str| Draft::from(hir::text(text));
        let part = Draft::any([text("ab"), Draft::repeat(text("c"), 0, None)]);
        let whole = Draft::concat([text("x"), part.clone(), part]);
        let expected = regex_syntax::parse("x(?:ab|c*)(?:ab|c*)").expect("a constant");
        assert_eq!(Hir::clone(&whole.written()), expected);
    }
}
