//! Filters finite sets of strings by all other demands on them.

use std::rc::Rc;

use foldhash::HashSet;

use crate::schema::forms::{GoalId, StringShape};
use crate::schema::normal::Algebra;
use lexiform_automata::error::ProblemKind;

impl Algebra<'_> {
    /// Combines the demands: of a finite set, only the strings that meet all of them are kept. Returns
    /// `false` if none are left.
    pub(crate) fn finish_string(&mut self, shape: &mut StringShape, goal: GoalId) -> bool {
        let Some(only) = shape.only.take() else {
            shape.texts.sort_unstable();
            shape.except.sort();
            shape.except.dedup();
            return true;
        };
        if shape.is_any() {
            shape.only = Some(only);
            return true;
        }
        let except: HashSet<Rc<str>> = shape.except.drain(..).collect();
        let mut kept = Vec::new();
        for value in only.iter().filter(|value| !except.contains(*value)) {
            match self.string_fits(shape, value) {
                Some(true) => kept.push(value.clone()),
                // The string may belong to a format of which only a part is known.
                Some(false) if self.may_fit(shape, value) => {
                    self.uncertain.insert(goal);
                }
                Some(false) => {}
                None => self.too_large(goal),
            }
        }
        *shape = StringShape {
            only: Some(kept.into()),
            ..StringShape::default()
        };
        shape.only.as_ref().is_some_and(|only| !only.is_empty())
    }

    fn too_large(&mut self, goal: GoalId) {
        if let Some(literal) = self.goals.literals(goal).first().copied() {
            self.report(
                ProblemKind::Limit,
                literal.node,
                "pattern",
                "the pattern is too large to test values against",
            );
        }
    }

    /// Checks whether a string could satisfy a shape if it belonged to all formats of which only a part is
    /// known.
    fn may_fit(&self, shape: &StringShape, value: &str) -> bool {
        let texts = self.texts.without_parts(&shape.texts);
        let is_less = texts.len() < shape.texts.len();
        is_less && {
            let wider = StringShape {
                texts,
                ..shape.clone()
            };
            self.string_fits(&wider, value) != Some(false)
        }
    }

    /// Checks whether a string satisfies a shape; returns `None` if a pattern is too large to decide.
    pub(crate) fn string_fits(&self, shape: &StringShape, value: &str) -> Option<bool> {
        let length = || value.chars().count() as u64;
        if (shape.min > 0 || shape.max.is_some())
            && (length() < shape.min || shape.max.is_some_and(|max| length() > max))
        {
            return Some(false);
        }
        if shape
            .only
            .as_ref()
            .is_some_and(|only| !only.iter().any(|item| &**item == value))
            || shape.except.iter().any(|item| &**item == value)
        {
            return Some(false);
        }
        self.texts.set_contains(&shape.texts, value)
    }
}
