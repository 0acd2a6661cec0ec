//! Converts small normal forms to one regular language each; see [`flat`](super::flat).

use std::rc::Rc;

use regex_syntax::hir::Hir;

use crate::schema::forms::{Array, GoalId, NumberShape, Object, StringShape};
use crate::schema::options::Whitespace;
use crate::schema::text::{Text, hir};
use lexiform_automata::grammar::Part;

use super::draft::Draft;
use super::flat::{COMPACT, Flat, SPACED, Style, one_kind, some_of};
use super::writer::Writer;
use super::{number, numeral};

/// The deepest nesting of objects and arrays in one language.
const FLAT_DEPTH: u32 = 4;
/// The most properties and items that are written out.
const PROPERTIES: usize = 16;
/// The greatest length of a string that is written out.
const LENGTH: u64 = 300;
/// The total size of the languages that are cached.
const REMEMBERED_SIZES: u64 = 200_000;

impl Writer<'_> {
    /// Returns the spacings of unique items that the options allow.
    pub(super) fn styles(&self) -> &'static [Style] {
        match self.options.whitespace {
            Whitespace::Flexible | Whitespace::Indented => &[SPACED, COMPACT],
            Whitespace::Compact => &[COMPACT],
            Whitespace::Pattern(_) if self.space.may_be_empty => &[COMPACT],
            Whitespace::Pattern(_) => &[],
        }
    }

    /// Returns all values of a goal, if they are a small regular language.
    pub(super) fn flat(&mut self, goal: GoalId, style: Style) -> Option<Flat> {
        self.flat_within(goal, style, FLAT_DEPTH)
    }

    fn flat_within(&mut self, goal: GoalId, style: Style, depth: u32) -> Option<Flat> {
        if let Some(known) = self.flats.get(&(goal, style, depth)) {
            return known.clone();
        }
        let flat = self.new_flat(goal, style, depth);
        let size = flat.as_ref().map_or(1, Flat::size);
        if self.flat_sizes.saturating_add(size) <= REMEMBERED_SIZES {
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

    /// Returns the scalars of a goal, if there are any. The outer `None` means that they are not a small
    /// regular language.
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

    /// Returns the keys of a class, as whole literals.
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

    /// Returns an array whose items the caller writes, if it is a small regular language.
    pub(super) fn flat_array_of(
        &mut self,
        array: &Array,
        style: Style,
        item: impl FnOnce(&mut Self, GoalId) -> Option<Flat>,
    ) -> Option<Flat> {
        let plain = array.prefix.is_empty() && array.distinct.is_empty() && array.demands.is_empty();
        let differ = array.unique.is_some() && array.max.is_none_or(|max| max > 1);
        let few = |count: u64| count <= PROPERTIES as u64;
        if !plain || differ || !few(array.min) || !array.max.is_none_or(few) {
            return None;
        }
        let ways = array
            .additional
            .iter()
            .filter(|way| self.forms.is_live(way.goal))
            .count();
        let (min, max) = (array.min as u32, array.max.map(|max| max as u32));
        if ways == 0 || max == Some(0) {
            return (min == 0).then(|| Flat::text("[]"));
        }
        let [way] = &array.additional[..] else { return None };
        let items = item(self, way.goal)?;
        let full = items.list(style.comma, min, max);
        let full = Flat::seq(&[Flat::text("["), full, Flat::text("]")]);
        Some(match min {
            0 => Flat::any(&[Flat::text("[]"), full]),
            _ => full,
        })
    }

    /// Returns `true` if every required key of an object has a value.
    pub(super) fn is_possible(&self, object: &Object) -> bool {
        let mut needed = object.properties.iter().filter(|property| property.required);
        needed.all(|property| self.is_any_live(&property.ways))
    }

    pub(super) fn flat_object(&mut self, object: &Object, style: Style, depth: u32) -> Option<Flat> {
        if !self.is_plain(object)
            || object
                .additional
                .iter()
                .any(|class| self.is_any_live(&class.ways))
        {
            return None;
        }
        let properties = object
            .properties
            .iter()
            .filter(|property| self.is_any_live(&property.ways));
        let properties: Vec<_> = properties.collect();
        if properties.len() > PROPERTIES {
            return None;
        }
        let mut entries = Vec::new();
        for property in properties {
            let [way] = property.ways[..] else { return None };
            let value = self.flat_within(way.goal, style, depth - 1)?;
            entries.push((self.entry(&property.name, value, style), property.required));
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

    /// Returns a key with its value.
    pub(super) fn entry(&self, name: &str, value: Flat, style: Style) -> Flat {
        let key = format!("{}{}", serde_json::Value::from(name), style.colon);
        Flat::seq(&[Flat::text(key), value])
    }

    /// Returns `true` if the only constraints of an object are its properties: no counts that matter, no
    /// demand for some key.
    pub(super) fn is_plain(&self, object: &Object) -> bool {
        let required = object
            .properties
            .iter()
            .filter(|property| property.required)
            .count() as u64;
        let most = |max: u64| object.additional.is_empty() && object.properties.len() as u64 <= max;
        object.demands == 0 && object.min <= required && object.max.is_none_or(most)
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
    // The first part is the set of all spellings, which includes the unique ones.
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
