//! A language of decoded strings and its spelling inside JSON: the building block of patterns and formats.

use std::sync::{Arc, OnceLock};

use regex_syntax::hir::{Hir, Repetition};

use crate::regex::{self, Escapes};
use lexiform_automata::grammar::{Expression, Part};

use super::hir;

/// A language of decoded strings.
#[derive(Debug)]
pub(crate) enum Text {
    Match(Expression),
    /// Runs of `min` to `max` units; see [`Part::Units`].
    Units {
        unit: Expression,
        min: u64,
        max: Option<u64>,
    },
}

/// A language of decoded strings with its spellings inside JSON. For formats they are created once for all
/// schemas.
#[derive(Debug)]
pub(super) struct Spelled {
    pub(super) text: Text,
    /// The spelling between quotes, for each variant of [`Escapes`].
    pub(super) encoded: [OnceLock<Expression>; Escapes::COUNT],
}

impl Spelled {
    pub(super) fn new(text: Text) -> Spelled {
        Spelled {
            text,
            encoded: Default::default(),
        }
    }
}

/// Languages with their signs, which are intersected.
pub(super) type SpelledParts = Vec<(Arc<Spelled>, bool)>;

/// Converts the parts of a language of decoded strings.
pub(super) fn spelled(parts: Vec<Part>) -> SpelledParts {
    let parts = parts.into_iter().map(|part| {
        let (text, sign) = match part {
            Part::Match(expression) => (Text::Match(expression), true),
            Part::Not(expression) => (Text::Match(expression), false),
            Part::Units { unit, min, max } => (Text::Units { unit, min, max }, true),
        };
        (Arc::new(Spelled::new(text)), sign)
    });
    parts.collect()
}

/// Returns a counted run as a plain expression, if the counts are small enough.
pub(crate) fn unrolled(unit: &Hir, min: u64, max: Option<u64>) -> Option<Hir> {
    const LARGEST: u64 = 2_000;
    if min > LARGEST || max.is_some_and(|max| max > LARGEST) {
        return None;
    }
    let (min, max) = (min as u32, max.map(|max| max as u32));
    Some(Hir::repetition(Repetition {
        min,
        max,
        greedy: true,
        sub: Box::new(unit.clone()),
    }))
}

/// Returns any key with its quotes. It is created and hashed once, because every object with open keys has
/// it.
pub(crate) fn any_key(escapes: Escapes) -> Expression {
    static KEYS: [OnceLock<Expression>; Escapes::COUNT] = [const { OnceLock::new() }; Escapes::COUNT];
    let key = KEYS[escapes as usize].get_or_init(|| quoted(&regex::string_body(escapes)));
    key.clone()
}

/// Returns an expression with a quote before and after it.
pub(crate) fn quoted(hir: &Hir) -> Expression {
    hir::concat([hir::text("\""), hir.clone(), hir::text("\"")]).into()
}
