//! Regular languages of whole values with one spelling each, and how they are combined.
//!
//! Items that must differ are distinguished by their text, so the text has to be the same wherever the value
//! occurs: no choice of white space, keys in the order of the schema, numbers without an exponent, no
//! unnecessary escapes. A [`Flat`] is such a language for a whole object or array: an expression, and further
//! expressions over the same text that must, or must not, match too.
//!
//! ```text
//!   {"id": integer ≥ 10, "tag": string}      expect   \{"id": INTEGER, "tag": STRING\}
//!                                            and      \{"id": AT_LEAST_10, "tag": STRING\}
//! ```
//!
//! This is exact because there is only one way to split a JSON text into its parts.

use regex_syntax::hir::{Hir, HirKind};

use crate::regex::Escapes;
use crate::schema::text::{any_key, hir};
use lexiform_automata::grammar::{Expression, Part, Regular};

use super::draft::Draft;

/// The spacing between the parts of unique items.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Style {
    pub(super) comma: &'static str,
    pub(super) colon: &'static str,
}

pub(super) const SPACED: Style = Style {
    comma: ", ",
    colon: ": ",
};
pub(super) const COMPACT: Style = Style {
    comma: ",",
    colon: ":",
};

/// A regular language of whole values; see the module docs.
#[derive(Clone, Debug)]
pub(super) struct Flat {
    pub(super) main: Draft,
    /// Expressions that the whole text must match as well (`true`) or must not match (`false`).
    pub(super) parts: Vec<(Draft, bool)>,
    /// The approximate number of states of the main expression.
    pub(super) states: u64,
}

/// The most expressions that are intersected.
const PARTS: usize = 12;
/// The greatest size of an expression, in states.
const WEIGHT: u64 = 6_000;
impl Flat {
    pub(super) fn text(text: impl AsRef<[u8]>) -> Flat {
        Flat::of(hir::text(text))
    }

    pub(super) fn of(main: Hir) -> Flat {
        let states = weight(&main);
        Flat {
            main: main.into(),
            parts: Vec::new(),
            states,
        }
    }

    /// Returns a choice between many texts with common prefixes: a list of 2,500 names is still affordable.
    pub(super) fn listed(main: &Expression) -> Flat {
        Flat {
            states: weight(main) / 16 + 1,
            main: main.clone().into(),
            parts: Vec::new(),
        }
    }

    /// Returns all parts, one after the other.
    pub(super) fn seq(list: &[Flat]) -> Flat {
        let main = Draft::concat(list.iter().map(|flat| flat.main.clone()));
        let mut parts = Vec::new();
        for (at, flat) in list.iter().enumerate() {
            for (part, sign) in &flat.parts {
                let here = |other: usize| {
                    if other == at {
                        part.clone()
                    } else {
                        list[other].main.clone()
                    }
                };
                parts.push((Draft::concat((0..list.len()).map(here)), *sign));
            }
        }
        let states = together(list);
        Flat { main, parts, states }
    }

    /// Returns the union of languages that share no text.
    pub(super) fn any(list: &[Flat]) -> Flat {
        let main = Draft::any(list.iter().map(|flat| flat.main.clone()));
        let mut parts = Vec::new();
        for (at, flat) in list.iter().enumerate() {
            for (part, sign) in &flat.parts {
                let others = list.iter().enumerate().filter(|(other, _)| *sign && *other != at);
                let others = others.map(|(_, flat)| flat.main.clone());
                parts.push((Draft::any(std::iter::once(part.clone()).chain(others)), *sign));
            }
        }
        let states = together(list);
        Flat { main, parts, states }
    }

    /// Returns a list of one or more items with a separator.
    pub(super) fn list(&self, comma: &str, min: u32, max: Option<u32>) -> Flat {
        let comma = Draft::from(hir::text(comma));
        let list = |item: &Draft| {
            let more = Draft::concat([comma.clone(), item.clone()]);
            let more = Draft::repeat(more, min.saturating_sub(1), max.map(|max| max - 1));
            Draft::concat([item.clone(), more])
        };
        let main = list(&self.main);
        let parts = self.parts.iter().map(|(part, sign)| {
            if *sign {
                return (list(part), true);
            }
            let item = Draft::concat([self.main.clone(), comma.clone()]);
            let after = Draft::concat([comma.clone(), self.main.clone()]);
            let some = [
                Draft::repeat(item, 0, None),
                part.clone(),
                Draft::repeat(after, 0, None),
            ];
            (Draft::concat(some), false)
        });
        let times = u64::from(max.unwrap_or(min + 1).max(1));
        Flat {
            main,
            parts: parts.collect(),
            states: self.states.saturating_mul(times),
        }
    }

    /// Returns `true` if the properties of an object can be written out; each is written once for every
    /// property that may come first.
    pub(super) fn is_affordable(entries: &[(Flat, bool)]) -> bool {
        let first = entries.iter().take_while(|(_, required)| !required).count() as u64 + 1;
        let parts: usize = entries.iter().map(|(entry, _)| entry.parts.len()).sum();
        let size = entries
            .iter()
            .map(|(entry, _)| entry.states)
            .fold(0, u64::saturating_add);
        parts as u64 * first <= PARTS as u64 && size.saturating_mul(first) <= WEIGHT
    }

    /// Restricts the keys of a class to those in a language of keys.
    pub(super) fn in_bucket(mut self, keys: Hir) -> Flat {
        self.states += weight(&keys);
        let class = std::mem::replace(&mut self.main, keys.into());
        if !class.is(&any_key(Escapes::Canonical)) {
            self.parts.push((class, true));
        }
        self
    }

    /// Returns the language of all keys of objects.
    pub(super) fn any_key() -> Flat {
        let key = any_key(Escapes::Canonical);
        Flat {
            states: weight(&key),
            main: key.into(),
            parts: Vec::new(),
        }
    }

    /// Returns the approximate number of states of its expressions.
    pub(super) fn size(&self) -> u64 {
        self.states.saturating_mul(self.parts.len() as u64 + 1)
    }

    pub(super) fn small(self) -> Option<Flat> {
        (self.parts.len() <= PARTS && self.size() <= WEIGHT).then_some(self)
    }

    /// Returns the language as an intersection.
    pub(super) fn regular(self) -> Regular {
        let mut parts = vec![Part::Match(self.main.written())];
        parts.extend(self.parts.into_iter().map(|(part, sign)| match sign {
            true => Part::Match(part.written()),
            false => Part::Not(part.written()),
        }));
        Regular::of(parts)
    }
}

fn together(list: &[Flat]) -> u64 {
    list.iter().map(|flat| flat.states).fold(0, u64::saturating_add)
}

/// Returns the approximate number of states of an expression. An expression nests as deep as patterns and
/// values do, which is bounded.
fn weight(hir: &Hir) -> u64 {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 0,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Class(_) => 2,
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min + 1).max(1);
            weight(&repetition.sub).saturating_mul(u64::from(times))
        }
        HirKind::Capture(capture) => weight(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(weight).fold(1, u64::saturating_add)
        }
    }
}

/// Returns one or more entries of a list, in order and separated, or `None` if the list is empty.
pub(super) fn some_of(entries: &[(Flat, bool)], style: Style) -> Option<Flat> {
    let mut after = Flat::text("");
    let mut ways: Vec<Flat> = Vec::new();
    for (entry, required) in entries.iter().rev() {
        if *required {
            ways.clear();
        }
        ways.insert(0, Flat::seq(&[entry.clone(), after.clone()]));
        let here = Flat::seq(&[Flat::text(style.comma), entry.clone()]);
        let here = if *required {
            here
        } else {
            Flat::any(&[here, Flat::text("")])
        };
        after = Flat::seq(&[here, after]);
    }
    (!ways.is_empty()).then(|| Flat::any(&ways))
}

/// Returns the union of languages of one kind of value, or `None` if they may overlap although one of them
/// has further parts.
pub(super) fn one_kind(list: Vec<Flat>) -> Option<Option<Flat>> {
    match &list[..] {
        [] => Some(None),
        [one] => Some(Some(one.clone())),
        _ if list.iter().all(|flat| flat.parts.is_empty()) => Some(Some(Flat::any(&list))),
        _ => None,
    }
}
