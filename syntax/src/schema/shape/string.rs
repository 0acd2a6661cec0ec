//! Sets of strings while they are collected: the demands of keywords on a string, and their conjunctions.

use std::rc::Rc;

use foldhash::HashSet;

use crate::schema::forms::StringShape;
use crate::schema::node::Keyword;
use crate::schema::text::TextSet;

use super::demand::Demand;
use super::listed::push_new;
use super::step::{Step, StringStep};

impl StringShape {
    /// Adds a demand; returns `false` if the shape has no values left.
    pub(crate) fn add(&mut self, step: StringStep) -> bool {
        match step {
            StringStep::Min(min) => self.min = self.min.max(min),
            StringStep::Max(max) => self.max = Some(self.max.map_or(max, |old| old.min(max))),
            StringStep::Text(text, sign) => {
                if self.texts.contains(&(text, !sign)) {
                    return false;
                }
                push_new(&mut self.texts, (text, sign));
            }
            StringStep::Among(values) => {
                self.only = Some(match &self.only {
                    Some(only) => {
                        let values: HashSet<&Rc<str>> = values.iter().collect();
                        only.iter()
                            .filter(|value| values.contains(value))
                            .cloned()
                            .collect()
                    }
                    None => values,
                });
            }
            StringStep::NotAmong(values) => self.except.extend(values.iter().cloned()),
        }
        self.max.is_none_or(|max| self.min <= max) && self.only.as_ref().is_none_or(|only| !only.is_empty())
    }

    /// Adds all demands of another shape, which is not a finite set; returns `false` if no string is left.
    pub(crate) fn narrow(&mut self, other: &StringShape) -> bool {
        let texts = other
            .texts
            .iter()
            .map(|&(text, sign)| StringStep::Text(text, sign));
        let max = other.max.map(StringStep::Max);
        let except = (!other.except.is_empty()).then(|| StringStep::NotAmong(other.except.clone().into()));
        let mut steps = texts.chain([StringStep::Min(other.min)]).chain(max).chain(except);
        steps.all(|step| self.add(step))
    }
}

/// Returns the demand of a keyword on a string.
pub(crate) fn affirm(keyword: &Keyword) -> Demand {
    match keyword {
        Keyword::MinLength(count) => Demand::one(Step::String(StringStep::Min(*count))),
        Keyword::MaxLength(count) => Demand::one(Step::String(StringStep::Max(*count))),
        Keyword::Text(set) => Demand::All(within(set)),
        Keyword::AnyText(sets) => Demand::any(sets.iter().map(within).collect()),
        _ => Demand::nothing(),
    }
}

fn within(set: &TextSet) -> Vec<Step> {
    let steps = set
        .iter()
        .map(|&(text, sign)| Step::String(StringStep::Text(text, sign)));
    steps.collect()
}

/// Returns the demand of the denial of a bound on the length of a string.
pub(crate) fn deny(keyword: &Keyword) -> Demand {
    let step = match keyword {
        Keyword::MinLength(count) => count.checked_sub(1).map(StringStep::Max),
        Keyword::MaxLength(count) => count.checked_add(1).map(StringStep::Min),
        _ => None,
    };
    step.map_or(Demand::Never, |step| Demand::one(Step::String(step)))
}
