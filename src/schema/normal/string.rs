//! Sets of strings: a length, texts with signs, and finite sets within or without.

use std::rc::Rc;

use foldhash::HashSet;

use crate::schema::goal::GoalId;
use crate::schema::node::Keyword;
use crate::schema::text::{Text, TextId, TextSet};

use super::Algebra;
use super::expand::Demand;
use super::step::{Step, StringStep};

/// A conjunction of demands on a string.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StringShape {
    /// The least number of characters.
    pub(crate) min: u64,
    pub(crate) max: Option<u64>,
    pub(crate) texts: Vec<(TextId, bool)>,
    /// The string is one of these.
    pub(crate) only: Option<Rc<[Rc<str>]>>,
    pub(crate) except: Vec<Rc<str>>,
}

impl StringShape {
    /// Whether every string is allowed.
    pub(crate) fn is_any(&self) -> bool {
        *self == StringShape::default()
    }

    pub(super) fn add(&mut self, step: StringStep) -> bool {
        match step {
            StringStep::Min(min) => self.min = self.min.max(min),
            StringStep::Max(max) => self.max = Some(self.max.map_or(max, |old| old.min(max))),
            StringStep::Text(text, sign) => {
                if self.texts.contains(&(text, !sign)) {
                    return false;
                }
                super::push_new(&mut self.texts, (text, sign));
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
}

impl StringShape {
    /// Adds all that another shape says, which is not a finite set; false where no string is left.
    pub(super) fn narrow(&mut self, other: &StringShape) -> bool {
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

impl Algebra<'_> {
    /// Evaluates the demands on a finite set; false where nothing is left.
    pub(super) fn finish_string(&mut self, shape: &mut StringShape, goal: GoalId) -> bool {
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
                // A format of which only a part is known may have it nevertheless.
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
        use crate::error::ProblemKind;
        if let Some(literal) = self.goals.literals(goal).first().copied() {
            self.report(
                ProblemKind::Limit,
                literal.node,
                "pattern",
                "the pattern is too large to test values against",
            );
        }
    }

    /// Whether a string might satisfy a shape if formats of which only a part is known had it.
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

    /// Whether a string satisfies a shape; `None` where a pattern is too large to tell.
    pub(super) fn string_fits(&self, shape: &StringShape, value: &str) -> Option<bool> {
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

    /// The denial of a set of texts: one of them fails.
    pub(super) fn deny_text(&mut self, set: &TextSet) -> Demand {
        let step = |text: TextId, sign: bool| Step::String(StringStep::Text(text, sign));
        let mut ways = Vec::new();
        for &(text, sign) in self.texts.denied(set).iter() {
            let Text::Units { unit, min, max } = self.texts.text(text) else {
                ways.push(vec![step(text, !sign)]);
                continue;
            };
            if !sign {
                ways.push(vec![step(text, true)]);
                continue;
            }
            // Not a run of so many units: no run at all, or a shorter or a longer one.
            let (unit, min, max) = (unit.clone(), *min, *max);
            let run = crate::schema::text::unrolled(&unit, 0, None);
            let run = run.map(|run| self.texts.add(Text::Match(run.into())));
            ways.extend(run.map(|run| vec![step(run, false)]));
            let mut counted = |min: u64, max: Option<u64>| {
                let text = self.texts.add(Text::Units {
                    unit: unit.clone(),
                    min,
                    max,
                });
                ways.push(vec![step(text, true)]);
            };
            if let Some(less) = min.checked_sub(1) {
                counted(0, Some(less));
            }
            if let Some(more) = max.and_then(|max| max.checked_add(1)) {
                counted(more, None);
            }
        }
        Demand::any(ways)
    }
}

/// What a keyword asks of a string.
pub(super) fn affirm(keyword: &Keyword) -> Demand {
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

/// What the denial of a bound asks of a string's length.
pub(super) fn deny(keyword: &Keyword) -> Demand {
    let step = match keyword {
        Keyword::MinLength(count) => count.checked_sub(1).map(StringStep::Max),
        Keyword::MaxLength(count) => count.checked_add(1).map(StringStep::Min),
        _ => None,
    };
    step.map_or(Demand::Never, |step| Demand::one(Step::String(step)))
}
