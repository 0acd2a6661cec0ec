//! Values as one regular language, in one spelling each.
//!
//! Items that must differ are told apart by their text, so the text has to be the same wherever the value is: no choice of
//! white space, keys in the order of the schema, numbers without exponent, no escape that is not needed. A [`Flat`] is such a
//! language for a whole object or array: an expression, and further expressions over the same text that must match, too, or
//! must not.
//!
//! ```text
//!   {"id": integer ≥ 10, "tag": string}      expect   \{"id": INTEGER, "tag": STRING\}
//!                                            and      \{"id": AT_LEAST_10, "tag": STRING\}
//! ```
//!
//! That is exact because a JSON text falls into its parts in one way only.

use std::rc::Rc;

use regex_syntax::hir::{Hir, HirKind};

use crate::grammar::{Expression, Part, Regular};
use crate::regex::Escapes;
use crate::schema::goal::GoalId;
use crate::schema::normal::{Array, NumberShape, Object, StringShape};
use crate::schema::options::Whitespace;
use crate::schema::text::{Text, hir};

use super::draft::Draft;
use super::string::any_key;
use super::{Writer, number, numeral};

/// How the parts of unique items are spaced.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Style {
    pub(super) comma: &'static str,
    pub(super) colon: &'static str,
}

const SPACED: Style = Style {
    comma: ", ",
    colon: ": ",
};
const COMPACT: Style = Style {
    comma: ",",
    colon: ":",
};

/// A regular language of whole values; see the module.
#[derive(Clone, Debug)]
pub(super) struct Flat {
    main: Draft,
    /// What the whole text must match as well (`true`) or must not match.
    parts: Vec<(Draft, bool)>,
    /// About how many states the expression becomes.
    states: u64,
}

/// The most objects and arrays inside each other in one language.
const DEPTH: u32 = 4;
/// The most members and items that are written out.
const MEMBERS: usize = 16;
/// The greatest length of a string that is written out.
const LENGTH: u64 = 300;
/// The most expressions that are intersected.
const PARTS: usize = 12;
/// The greatest size of an expression.
const WEIGHT: u64 = 6_000;
/// The sizes of the languages that are remembered, together.
const REMEMBERED: u64 = 200_000;

impl Flat {
    pub(super) fn text(text: impl AsRef<[u8]>) -> Flat {
        Flat::of(hir::text(text))
    }

    fn of(main: Hir) -> Flat {
        let states = weight(&main);
        Flat {
            main: main.into(),
            parts: Vec::new(),
            states,
        }
    }

    /// One of many texts, which begin alike: a list of 2,500 names is still affordable.
    fn listed(main: &Expression) -> Flat {
        Flat {
            states: weight(main) / 16 + 1,
            main: main.clone().into(),
            parts: Vec::new(),
        }
    }

    /// All parts, one after the other.
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

    /// Any one of languages that share no text.
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

    /// A list of one or more, with a separator.
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
            let behind = Draft::concat([comma.clone(), self.main.clone()]);
            let some = [
                Draft::repeat(item, 0, None),
                part.clone(),
                Draft::repeat(behind, 0, None),
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

    /// Whether the members of an object can be written out: what is said of one is written for each that may come first.
    pub(super) fn is_affordable(entries: &[(Flat, bool)]) -> bool {
        let first = entries.iter().take_while(|(_, required)| !required).count() as u64 + 1;
        let parts: usize = entries.iter().map(|(entry, _)| entry.parts.len()).sum();
        let size = entries
            .iter()
            .map(|(entry, _)| entry.states)
            .fold(0, u64::saturating_add);
        parts as u64 * first <= PARTS as u64 && size.saturating_mul(first) <= WEIGHT
    }

    /// The keys of a class that are in a language of keys as well.
    pub(super) fn in_bucket(mut self, keys: Hir) -> Flat {
        self.states += weight(&keys);
        let class = std::mem::replace(&mut self.main, keys.into());
        if !class.is(&any_key(Escapes::Canonical)) {
            self.parts.push((class, true));
        }
        self
    }

    /// The keys of objects.
    pub(super) fn any_key() -> Flat {
        let key = any_key(Escapes::Canonical);
        Flat {
            states: weight(&key),
            main: key.into(),
            parts: Vec::new(),
        }
    }

    /// About how many states its expressions become.
    pub(super) fn size(&self) -> u64 {
        self.states.saturating_mul(self.parts.len() as u64 + 1)
    }

    fn small(self) -> Option<Flat> {
        (self.parts.len() <= PARTS && self.size() <= WEIGHT).then_some(self)
    }

    /// The language as an intersection.
    pub(super) fn regular(self) -> Regular {
        let mut parts = vec![Part::Match(self.main.written())];
        parts.extend(self.parts.into_iter().map(|(part, sign)| match sign {
            true => Part::Match(part.written()),
            false => Part::Not(part.written()),
        }));
        Regular { parts }
    }
}

fn together(list: &[Flat]) -> u64 {
    list.iter().map(|flat| flat.states).fold(0, u64::saturating_add)
}

/// About how many states an expression becomes. An expression nests as deep as patterns and values do, which is bounded.
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

impl Writer<'_> {
    /// The ways to space unique items that the options allow.
    pub(super) fn styles(&self) -> &'static [Style] {
        match self.options.whitespace {
            Whitespace::Flexible => &[SPACED, COMPACT],
            Whitespace::Compact => &[COMPACT],
            Whitespace::Pattern(_) if self.space.may_be_empty => &[COMPACT],
            Whitespace::Pattern(_) => &[],
        }
    }

    /// All values of a goal, if they are a small regular language.
    pub(super) fn flat(&mut self, goal: GoalId, style: Style) -> Option<Flat> {
        self.flat_within(goal, style, DEPTH)
    }

    fn flat_within(&mut self, goal: GoalId, style: Style, depth: u32) -> Option<Flat> {
        if let Some(known) = self.flats.get(&(goal, style, depth)) {
            return known.clone();
        }
        let flat = self.new_flat(goal, style, depth);
        let size = flat.as_ref().map_or(1, Flat::size);
        if self.flat_sizes.saturating_add(size) <= REMEMBERED {
            self.flat_sizes += size;
            self.flats.insert((goal, style, depth), flat.clone());
        }
        flat
    }

    fn new_flat(&mut self, goal: GoalId, style: Style, depth: u32) -> Option<Flat> {
        let normal = Rc::clone(&self.forms.normals[goal.index()]);
        if !self.forms.is_live(goal) || depth == 0 && !(normal.arrays.is_empty() && normal.objects.is_empty())
        {
            return None;
        }
        let mut kinds: Vec<Flat> = self.flat_scalars(goal)?.into_iter().collect();
        let arrays: Option<Vec<Flat>> = normal
            .arrays
            .iter()
            .map(|array| self.flat_array(array, style, depth))
            .collect();
        kinds.extend(one_kind(arrays?)?);
        let possible = normal.objects.iter().filter(|object| self.is_possible(object));
        let possible: Vec<&Object> = possible.collect();
        let objects: Option<Vec<Flat>> = possible
            .iter()
            .map(|object| self.flat_object(object, style, depth))
            .collect();
        kinds.extend(one_kind(objects?)?);
        (!kinds.is_empty()).then(|| Flat::any(&kinds))?.small()
    }

    /// The scalars of a goal, if there are any; `None` where they are no small regular language.
    pub(super) fn flat_scalars(&mut self, goal: GoalId) -> Option<Option<Flat>> {
        let normal = Rc::clone(&self.forms.normals[goal.index()]);
        let mut kinds = Vec::new();
        for (there, text) in [(normal.null, "null"), (normal.yes, "true"), (normal.no, "false")] {
            kinds.extend(there.then(|| Flat::text(text)));
        }
        let numbers: Option<Vec<Flat>> = normal.numbers.iter().map(flat_number).collect();
        kinds.extend(one_kind(numbers?)?);
        let strings: Option<Vec<Flat>> = normal
            .strings
            .iter()
            .map(|shape| self.flat_string(shape, goal))
            .collect();
        kinds.extend(one_kind(strings?)?);
        Some(if kinds.is_empty() {
            None
        } else {
            Some(Flat::any(&kinds))
        })
    }

    fn flat_string(&mut self, shape: &StringShape, goal: GoalId) -> Option<Flat> {
        let long = |&count: &u64| count > LENGTH;
        let counted = shape
            .texts
            .iter()
            .any(|&(text, _)| match self.forms.texts.text(text) {
                Text::Units { min, max, .. } => long(min) || max.as_ref().is_some_and(long),
                Text::Match(_) => false,
            });
        if counted || long(&shape.min) || shape.max.as_ref().is_some_and(long) {
            return None;
        }
        let parts = self.unique_string(shape, goal);
        if let (true, [Part::Match(listed)]) = (shape.only.is_some(), &parts[..]) {
            return Flat::listed(listed).small();
        }
        let mut flat = Flat::any_key();
        let mut first = true;
        for part in parts {
            match part {
                Part::Match(part) if std::mem::replace(&mut first, false) => flat.main = part.into(),
                Part::Match(part) => flat.parts.push((part.into(), true)),
                Part::Not(part) => flat.parts.push((part.into(), false)),
                Part::Units { .. } => return None,
            }
        }
        flat.small()
    }

    /// The keys of a class, as whole literals.
    pub(super) fn flat_key(&mut self, shape: &StringShape, goal: GoalId) -> Option<Flat> {
        match shape.is_any() {
            true => Some(Flat::any_key()),
            false => self.flat_string(shape, goal),
        }
    }

    pub(super) fn flat_array(&mut self, array: &Array, style: Style, depth: u32) -> Option<Flat> {
        self.flat_array_of(array, style, |writer, goal| {
            writer.flat_within(goal, style, depth - 1)
        })?
        .small()
    }

    /// The same with items that the caller writes.
    pub(super) fn flat_array_of(
        &mut self,
        array: &Array,
        style: Style,
        item: impl FnOnce(&mut Self, GoalId) -> Option<Flat>,
    ) -> Option<Flat> {
        let plain = array.prefix.is_empty() && array.distinct.is_empty() && array.demands.is_empty();
        let differ =
            (array.unique.is_some() || array.repeated.is_some()) && array.max.is_none_or(|max| max > 1);
        let few = |count: u64| count <= MEMBERS as u64;
        if !plain || differ || !few(array.min) || !array.max.is_none_or(few) {
            return None;
        }
        let ways = array
            .rest
            .iter()
            .filter(|way| self.forms.is_live(way.goal))
            .count();
        let (min, max) = (array.min as u32, array.max.map(|max| max as u32));
        if ways == 0 || max == Some(0) {
            return (min == 0).then(|| Flat::text("[]"));
        }
        let [way] = &array.rest[..] else { return None };
        let items = item(self, way.goal)?;
        let full = items.list(style.comma, min, max);
        let full = Flat::seq(&[Flat::text("["), full, Flat::text("]")]);
        Some(match min {
            0 => Flat::any(&[Flat::text("[]"), full]),
            _ => full,
        })
    }

    /// Whether every key that an object needs has a value.
    pub(super) fn is_possible(&self, object: &Object) -> bool {
        let mut needed = object.members.iter().filter(|member| member.required);
        needed.all(|member| self.is_any_live(&member.ways))
    }

    pub(super) fn flat_object(&mut self, object: &Object, style: Style, depth: u32) -> Option<Flat> {
        if !self.is_plain(object) || object.rest.iter().any(|class| self.is_any_live(&class.ways)) {
            return None;
        }
        let members = object
            .members
            .iter()
            .filter(|member| self.is_any_live(&member.ways));
        let members: Vec<_> = members.collect();
        if members.len() > MEMBERS {
            return None;
        }
        let mut entries = Vec::new();
        for member in members {
            let [way] = member.ways[..] else { return None };
            let value = self.flat_within(way.goal, style, depth - 1)?;
            entries.push((self.entry(&member.name, value, style), member.required));
        }
        if !Flat::is_affordable(&entries) {
            return None;
        }
        let mut ways = Vec::new();
        if entries.iter().all(|(_, required)| !required) {
            ways.push(Flat::text("{}"));
        }
        if let Some(some) = some_of(&entries, style) {
            ways.push(Flat::seq(&[Flat::text("{"), some, Flat::text("}")]));
        }
        Flat::any(&ways).small()
    }

    /// A key with its value.
    pub(super) fn entry(&self, name: &str, value: Flat, style: Style) -> Flat {
        let key = format!("{}{}", serde_json::Value::from(name), style.colon);
        Flat::seq(&[Flat::text(key), value])
    }

    /// Whether an object asks for nothing but its members: no counts that matter, no demand for some key.
    pub(super) fn is_plain(&self, object: &Object) -> bool {
        let required = object.members.iter().filter(|member| member.required).count() as u64;
        let most = |max: u64| object.rest.is_empty() && object.members.len() as u64 <= max;
        object.demands == 0 && object.min <= required && object.max.is_none_or(most)
    }
}

/// One member or more of a list, in order, separated; `None` where the list is empty.
pub(super) fn some_of(entries: &[(Flat, bool)], style: Style) -> Option<Flat> {
    let mut behind = Flat::text("");
    let mut ways: Vec<Flat> = Vec::new();
    for (entry, required) in entries.iter().rev() {
        if *required {
            ways.clear();
        }
        ways.insert(0, Flat::seq(&[entry.clone(), behind.clone()]));
        let here = Flat::seq(&[Flat::text(style.comma), entry.clone()]);
        let here = if *required {
            here
        } else {
            Flat::any(&[here, Flat::text("")])
        };
        behind = Flat::seq(&[here, behind]);
    }
    (!ways.is_empty()).then(|| Flat::any(&ways))
}

/// Languages of one kind of value: `None` where they may overlap although more is said of one of them.
fn one_kind(list: Vec<Flat>) -> Option<Option<Flat>> {
    match &list[..] {
        [] => Some(None),
        [one] => Some(Some(one.clone())),
        _ if list.iter().all(|flat| flat.parts.is_empty()) => Some(Some(Flat::any(&list))),
        _ => None,
    }
}

fn flat_number(shape: &NumberShape) -> Option<Flat> {
    let mut parts = number::unique_spellings(shape)?;
    let Some(Part::Match(main)) = parts.pop() else {
        return None;
    };
    let mut main = Hir::clone(&main);
    if shape.step.is_some() {
        main = hir::any([hir::text("0"), numeral::signed(numeral::positive_integer())]);
    }
    // What comes first is the set of all spellings, of which the unique ones are some.
    let implied = shape.only.is_none() && shape.plain != Some(false) && shape.not_steps.is_empty();
    if implied {
        parts.remove(0);
    }
    let parts = parts.into_iter().map(|part| match part {
        Part::Match(part) => Some((Draft::from(part), true)),
        Part::Not(part) => Some((Draft::from(part), false)),
        Part::Units { .. } => None,
    });
    let parts: Option<Vec<_>> = parts.collect();
    Some(Flat {
        parts: parts?,
        ..Flat::of(main)
    })
}
