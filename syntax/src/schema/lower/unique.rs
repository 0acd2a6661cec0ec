//! Lowers arrays whose items differ.
//!
//! A scalar is identified by its text. An object or array is identified by the beginning of its text: a
//! *lead*, which spells, in a unique way, everything up to the first part that is not a small regular
//! language. The text after the lead is free.
//!
//! ```text
//!   properties: name (a string), size (an integer), children (a list of such objects)
//!
//!   {"name": "a", "size": 3, "children": [ … ]}
//!   ╰──────── lead ───────╯ ╰──── item ───────╯      two items with the same lead are never written
//! ```
//!
//! So no array with equal items is written, compared as JSON compares them. Left out, and noted, are
//!
//! * arrays and objects that differ only after their leads;
//! * objects whose keys are not in the order of the schema, where an array has two or more items.
//!
//! Numbers are in their shortest plain spelling (`1` for `1.0`), and strings have no unnecessary escapes:
//! this leaves out spellings but no values.
//!
//! Finite sets of scalars are exact and are not handled here. Finite sets of arrays or objects could be used
//! once each in the same way, but none of the schemas that were measured has any.

use std::rc::Rc;

use regex_syntax::hir::Hir;

use crate::regex::{self, Escapes};
use crate::schema::forms::{self, AdditionalClass, Array, GoalId, Normal, Object, Way};
use crate::schema::node::NodeId;
use crate::schema::text::hir;
use lexiform_automata::error::{Problem, ProblemKind};
use lexiform_automata::grammar::{Additional, ExprId, ItemOrder, ObjectList, Part, Property, RegularId};

use super::flat::{Flat, Style, some_of};
use super::number;
use super::writer::{Piece, Writer};

/// The beginning of the texts of some items, and their continuation.
struct Lead {
    key: Flat,
    item: ExprId,
    /// `true` if several, possibly infinitely many, values begin this way.
    varies: bool,
}

/// The deepest nesting of objects that one lead extends through.
const LEAD_DEPTH: u32 = 3;
/// The most leads of one goal.
const LEADS: usize = 24;
/// The greatest number of properties in one lead.
const RUN: usize = 12;
/// The total size of leads beyond which further ones are short.
const SIZES: u64 = 6_000;
/// The division of keys that no schema names: by the first character. They are written in this order.
const BUCKETS: [&str; 4] = [r"[\x00-a]", "[b-f]", "[g-o]", r"[p-\x{10FFFF}]"];

impl Writer<'_> {
    /// Returns the texts of an array after its opening bracket, where no two items are equal and some are
    /// arrays or objects.
    pub(super) fn unique_array(&mut self, array: &Array, node: NodeId) -> ExprId {
        let mut ways = Vec::new();
        if array.min <= 1 && array.prefix.is_empty() {
            let alone = Array {
                unique: None,
                max: Some(1),
                ..array.clone()
            };
            ways.push(self.array_body(&alone));
        }
        // Ways may overlap, and then their leads would distinguish an item from itself.
        let others = array.additional.iter();
        let alike = others.filter(|way| self.has_structure(way)).count() == 1;
        let close = self.builder.bytes("]");
        let (mut several, mut open) = (false, false);
        for &style in self.styles() {
            let mut additional = Vec::new();
            for way in array.additional.iter().filter(|way| self.forms.is_live(way.goal)) {
                additional.extend(self.different_scalars(way, node));
                let leads = match alike {
                    true => self.leads(way.goal, style, LEAD_DEPTH, true),
                    false => self.opaque_leads(way.goal),
                };
                for lead in leads {
                    open |= lead.varies;
                    self.lead_sizes += lead.key.size();
                    additional.push(Additional {
                        key: Some(self.builder.add_regular(lead.key.regular())),
                        item: lead.item,
                        meets: way.meets,
                    });
                }
            }
            if array.max.is_some_and(|max| max < array.min.max(2)) || additional.is_empty() {
                continue;
            }
            open |= additional.len() > 1;
            several = true;
            let leading = array.prefix.iter().map(|place| self.item_ways(place));
            let leading: Vec<_> = leading.collect();
            let items = self.builder.object_list(ObjectList {
                properties: leading
                    .into_iter()
                    .map(|ways| Property {
                        ways,
                        required: false,
                    })
                    .collect(),
                additional,
                taken: array.taken.clone(),
                separator: self.space.comma,
                order: ItemOrder::Leading,
                min: array.min.max(2),
                max: array.max,
                demands: array.demands.clone(),
            });
            ways.push(self.builder.seq([self.space.edge, items, self.space.edge, close]));
        }
        if array.min > 1 && !(several && open) {
            self.unsupported_unique(
                node,
                "`uniqueItems` is not supported for arrays and objects of this form",
            );
        }
        self.builder.choice(ways)
    }

    /// Returns the scalars that their text identifies, where all items must differ.
    pub(super) fn different_scalars(&mut self, way: &Way, node: NodeId) -> Vec<Additional> {
        let normal = &self.forms.normals[way.goal.index()];
        if normal
            .numbers
            .iter()
            .any(|shape| number::unique_spellings(shape).is_none())
        {
            self.unsupported_unique(node, "`uniqueItems` is not supported together with `multipleOf`");
        }
        self.scalar_keys(way)
    }

    fn unsupported_unique(&mut self, node: NodeId, message: &str) {
        let pointer = self.forms.tree.keyword_pointer(node, "uniqueItems");
        let problem = Problem::at_pointer(ProblemKind::Unsupported, pointer, message);
        self.problems.add(problem);
    }

    /// Returns the leads of the arrays and objects of a goal, and of its scalars unless they have keys
    /// already.
    fn leads(&mut self, goal: GoalId, style: Style, depth: u32, scalars_have_keys: bool) -> Vec<Lead> {
        let normal = Rc::clone(&self.forms.normals[goal.index()]);
        let mut leads = Vec::new();
        if !scalars_have_keys && normal.has_scalars() {
            match self.flat_scalars(goal) {
                Some(Some(key)) => leads.push(self.whole(key)),
                Some(None) => {}
                None => return Vec::new(),
            }
        }
        match &normal.arrays[..] {
            [] => {}
            [array] => leads.extend(self.array_leads(array, goal, style, depth)),
            _ => leads.push(self.opaque_arrays(goal)),
        }
        leads.extend(self.leads_of_objects(&normal, goal, style, depth));
        leads
    }

    fn leads_of_objects(&mut self, normal: &Normal, goal: GoalId, style: Style, depth: u32) -> Vec<Lead> {
        let possible = normal.objects.iter().filter(|object| self.is_possible(object));
        let objects: Vec<&Object> = possible.collect();
        if let [object] = objects[..] {
            return self.object_leads(object, goal, style, depth);
        }
        // Two sets may share an object, which would then have two leads, unless a lead is the whole object.
        let apart = (1..objects.len()).all(|at| {
            objects[..at]
                .iter()
                .all(|other| self.exclude_each_other(objects[at], other))
        });
        if apart {
            let leads = objects
                .iter()
                .flat_map(|object| self.object_leads(object, goal, style, depth));
            let leads: Vec<Lead> = leads.collect();
            // At most one of the items may be an object about which nothing is known.
            if leads.iter().all(|lead| lead.varies) {
                return leads;
            }
        }
        let whole: Option<Vec<Flat>> = objects
            .iter()
            .map(|object| self.flat_object(object, style, LEAD_DEPTH))
            .collect();
        if let Some(whole) = whole {
            return whole.into_iter().map(|key| self.whole(key)).collect();
        }
        self.leads_of_alike(&objects, goal, style)
            .unwrap_or_else(|| vec![self.opaque_objects(normal, goal)])
    }

    /// Returns `true` if no object is in both sets: one requires a key that the other cannot have, or both
    /// require a key and have no value of it in common, as far as its values are listed strings.
    fn exclude_each_other(&self, left: &Object, right: &Object) -> bool {
        self.needs_what_is_not_in(left, right)
            || self.needs_what_is_not_in(right, left)
            || left
                .properties
                .iter()
                .filter(|property| property.required)
                .any(|property| {
                    let other = named(right, &property.name).filter(|other| other.required);
                    let there = other.and_then(|other| self.few_strings(&other.ways));
                    let values = self.few_strings(&property.ways).zip(there);
                    values.is_some_and(|(left, right)| !left.iter().any(|value| right.contains(value)))
                })
    }

    fn needs_what_is_not_in(&self, left: &Object, right: &Object) -> bool {
        let mut needed = left.properties.iter().filter(|property| property.required);
        needed
            .any(|property| named(right, &property.name).is_some_and(|other| !self.is_any_live(&other.ways)))
    }

    /// Returns the values of a part, if they are strings and listed.
    fn few_strings(&self, ways: &[Way]) -> Option<Vec<Rc<str>>> {
        let [way] = ways else { return None };
        let normal = &self.forms.normals[way.goal.index()];
        let mut values = Vec::new();
        for shape in &normal.strings {
            values.extend(shape.only.as_ref()?.iter().cloned());
        }
        (normal.kinds() == Normal::STRINGS).then_some(values)
    }

    /// Returns leads that only say whether an item is an array or an object.
    fn opaque_leads(&mut self, goal: GoalId) -> Vec<Lead> {
        let normal = Rc::clone(&self.forms.normals[goal.index()]);
        let mut leads = Vec::new();
        if !normal.arrays.is_empty() {
            leads.push(self.opaque_arrays(goal));
        }
        if normal.objects.iter().any(|object| self.is_possible(object)) {
            leads.push(self.opaque_objects(&normal, goal));
        }
        leads
    }

    fn whole(&mut self, key: Flat) -> Lead {
        Lead {
            key,
            item: self.builder.empty(),
            varies: true,
        }
    }

    /// Returns a lead that only says that an item is an object, so that there is at most one such item.
    fn opaque_objects(&mut self, normal: &Normal, goal: GoalId) -> Lead {
        let bodies: Vec<ExprId> = normal
            .objects
            .iter()
            .map(|object| self.object_body(object, goal))
            .collect();
        Lead {
            key: Flat::text("{"),
            item: self.builder.choice(bodies),
            varies: false,
        }
    }

    fn array_leads(&mut self, array: &Array, goal: GoalId, style: Style, depth: u32) -> Vec<Lead> {
        let flat = match self.is_any_json(&array.additional) {
            true => self.flat_array_of(array, style, |writer, _| writer.some_json(style, 1)),
            false => self.flat_array(array, style, depth.max(1)),
        };
        match flat {
            Some(key) if array.prefix.is_empty() => vec![self.whole(key)],
            _ => vec![self.opaque_arrays(goal)],
        }
    }

    fn opaque_arrays(&mut self, goal: GoalId) -> Lead {
        Lead {
            key: Flat::text("["),
            item: self.piece(goal, Piece::ArrayTails),
            varies: false,
        }
    }

    fn object_leads(&mut self, object: &Object, goal: GoalId, style: Style, depth: u32) -> Vec<Lead> {
        let opaque = |writer: &mut Self| {
            let normal = Rc::clone(&writer.forms.normals[goal.index()]);
            vec![writer.opaque_objects(&normal, goal)]
        };
        if !self.is_plain(object) {
            return opaque(self);
        }
        let properties = self.live_properties(object);
        if properties.is_empty() && object.additional.len() == 1 {
            let unnamed = without_properties(object);
            let class = &unnamed.additional[0];
            let nothing = class.key.only.as_ref().is_some_and(|only| only.is_empty());
            let leads = match nothing {
                true => None,
                false => self.bucket_leads(&unnamed, class, goal, style),
            };
            return leads.unwrap_or_else(|| opaque(self));
        }
        let values = self.run_of(&[&properties], style);
        let run = self.entries_of(&properties, &values, style);
        let written = properties[..run.len()].iter();
        let remaining = without(object, written.map(|property| &*property.name));
        let beginnings = beginnings(&run, style);
        let mut leads = Vec::new();
        let mut after = remaining.clone();
        if let Some(next) = properties.get(run.len())
            && let ([way], true) = (&next.ways[..], depth > 0)
        {
            let inner = self.leads(way.goal, style, depth - 1, false);
            if inner.iter().any(|lead| lead.varies) && inner.len() * beginnings.len() < LEADS {
                after = without(&remaining, [&*next.name]);
                for (beginning, some) in &beginnings {
                    let comma = if *some { style.comma } else { "" };
                    for lead in &inner {
                        let text = Flat::seq(&[beginning.clone(), Flat::text(comma)]);
                        let key = self.entry(&next.name, lead.key.clone(), style);
                        let tail = self.object_tail(&after, goal, true);
                        leads.push(Lead {
                            key: Flat::seq(&[text, key]),
                            item: self.builder.seq([lead.item, tail]),
                            varies: lead.varies,
                        });
                    }
                }
                if next.required {
                    return leads;
                }
            }
        }
        leads.extend(self.ends_of_run(beginnings, &after, goal));
        leads
    }

    fn live_properties(&self, object: &Object) -> Vec<forms::Property> {
        let properties = object.properties.iter();
        let live = properties.filter(|property| self.is_any_live(&property.ways));
        live.cloned().collect()
    }

    /// Returns the values of the first properties, as many as a lead can extend through in each of these
    /// lists, which differ only in which properties are required.
    fn run_of(&mut self, lists: &[&[forms::Property]], style: Style) -> Vec<Flat> {
        let mut values: Vec<Flat> = Vec::new();
        // The leads of a schema share a budget, except for the first property.
        let longest = if self.lead_sizes < SIZES { RUN } else { 1 };
        for property in lists[0].iter().take(longest) {
            let [way] = property.ways[..] else { break };
            let Some(value) = self.flat(way.goal, style) else {
                break;
            };
            values.push(value);
            let affordable =
                |list: &&[forms::Property]| Flat::is_affordable(&self.entries_of(list, &values, style));
            if !lists.iter().all(affordable) {
                values.pop();
                break;
            }
        }
        values
    }

    fn entries_of(&self, properties: &[forms::Property], values: &[Flat], style: Style) -> Vec<(Flat, bool)> {
        let entries = properties.iter().zip(values);
        entries
            .map(|(property, value)| {
                let entry = self.entry(&property.name, value.clone(), style);
                (entry, property.required)
            })
            .collect()
    }

    /// Returns the leads that end after a run of properties.
    fn ends_of_run(&mut self, beginnings: Vec<(Flat, bool)>, after: &Object, goal: GoalId) -> Vec<Lead> {
        let closed = !self.is_any_live_object(after);
        let mut leads = Vec::new();
        for (beginning, some) in beginnings {
            let lead = match closed {
                true => self.whole(Flat::seq(&[beginning, Flat::text("}")])),
                false => Lead {
                    key: beginning,
                    item: self.object_tail(after, goal, some),
                    varies: some,
                },
            };
            leads.push(Lead { varies: some, ..lead });
        }
        leads
    }

    /// Returns the leads of sets of objects that differ only in which of their properties are required, such
    /// as branches that each require another property. An object that is in several sets has the same lead in
    /// all of them, since all leads end after the same properties.
    fn leads_of_alike(&mut self, objects: &[&Object], goal: GoalId, style: Style) -> Option<Vec<Lead>> {
        let lists = objects.iter().map(|object| self.live_properties(object));
        let lists: Vec<Vec<forms::Property>> = lists.collect();
        let lists: Vec<&[forms::Property]> = lists.iter().map(|list| &list[..]).collect();
        let parts = |list: &[forms::Property]| -> Vec<_> {
            let parts = list
                .iter()
                .map(|property| (property.name.clone(), property.ways.clone()));
            parts.collect()
        };
        let (first, properties) = (objects.first()?, parts(lists.first()?));
        let alike = objects.iter().zip(&lists).all(|(object, list)| {
            self.is_plain(object) && object.additional == first.additional && parts(list) == properties
        });
        let values = if alike {
            self.run_of(&lists, style)
        } else {
            Vec::new()
        };
        let mut leads = Vec::new();
        for (object, list) in objects.iter().zip(lists).filter(|_| !values.is_empty()) {
            let run = self.entries_of(list, &values, style);
            let after = without(object, list[..run.len()].iter().map(|property| &*property.name));
            leads.extend(self.ends_of_run(beginnings(&run, style), &after, goal));
        }
        (!leads.is_empty()).then_some(leads)
    }

    /// Returns the leads of objects whose keys no schema names. The keys are divided into buckets; each lead
    /// is the only key of the first bucket with its value, and the keys after it belong to later buckets.
    fn bucket_leads(
        &mut self,
        object: &Object,
        class: &AdditionalClass,
        goal: GoalId,
        style: Style,
    ) -> Option<Vec<Lead>> {
        let [way] = class.ways[..] else { return None };
        let value = match self.forms.goals.literals(way.goal).is_empty() {
            true => self.some_json(style, 2)?,
            false => self.flat(way.goal, style)?,
        };
        let key = self.flat_key(&class.key, goal)?;
        let mut leads = vec![self.whole(Flat::text("{}"))];
        for at in 0..BUCKETS.len() {
            let named = key.clone().in_bucket(in_buckets(&BUCKETS[at..=at]));
            let later = in_buckets(&BUCKETS[at + 1..]);
            let tail = self.bucket_tail(object, goal, later);
            leads.push(Lead {
                key: Flat::seq(&[Flat::text("{"), named, Flat::text(style.colon), value.clone()]),
                item: tail,
                varies: true,
            });
        }
        Some(leads)
    }

    /// Returns the end of an object, or further keys that match an expression.
    fn bucket_tail(&mut self, object: &Object, goal: GoalId, keys: Hir) -> ExprId {
        let close = self.builder.bytes("}");
        let (additional, _) = self.additional(object, goal);
        let narrowed = additional.into_iter();
        let narrowed: Vec<Additional> = narrowed.map(|item| self.with_keys(item, &keys)).collect();
        let more = self.builder.object_list(ObjectList {
            properties: Vec::new(),
            additional: narrowed,
            taken: Vec::new(),
            separator: self.space.comma,
            order: ItemOrder::Leading,
            min: 1,
            max: None,
            demands: Vec::new(),
        });
        let more = self.builder.seq([self.space.comma, more, self.space.edge, close]);
        let end = self.builder.seq([self.space.edge, close]);
        self.builder.choice([more, end])
    }

    fn with_keys(&mut self, additional: Additional, keys: &Hir) -> Additional {
        let key = additional.key.map(|key: RegularId| {
            let mut regular = self.builder.regular_parts(key).clone();
            regular.parts.push(Part::Match(keys.clone().into()));
            self.builder.add_regular(regular)
        });
        Additional { key, ..additional }
    }

    /// Returns values of any kind, with shallow nesting and one key in each object.
    fn some_json(&mut self, style: Style, depth: u32) -> Option<Flat> {
        let scalars = self.flat_scalars(GoalId(0))??;
        if depth == 0 {
            return Some(scalars);
        }
        let inner = self.some_json(style, depth - 1)?;
        let arrays = some_array(&inner, style);
        let entry = Flat::seq(&[
            Flat::text("{"),
            Flat::any_key(),
            Flat::text(style.colon),
            inner,
            Flat::text("}"),
        ]);
        Some(Flat::any(&[scalars, arrays, Flat::text("{}"), entry]))
    }

    fn is_any_json(&self, ways: &[Way]) -> bool {
        matches!(ways, [way] if self.forms.goals.literals(way.goal).is_empty())
    }

    fn is_any_live_object(&self, object: &Object) -> bool {
        let properties = object.properties.iter().map(|property| &property.ways);
        properties
            .chain(object.additional.iter().map(|class| &class.ways))
            .any(|ways| self.is_any_live(ways))
    }

    pub(super) fn is_any_live(&self, ways: &[Way]) -> bool {
        ways.iter().any(|way| self.forms.is_live(way.goal))
    }
}

fn named<'o>(object: &'o Object, name: &str) -> Option<&'o forms::Property> {
    object.properties.iter().find(|property| &*property.name == name)
}

/// Returns arrays of any length.
fn some_array(item: &Flat, style: Style) -> Flat {
    let items = item.list(style.comma, 1, None);
    Flat::any(&[
        Flat::text("[]"),
        Flat::seq(&[Flat::text("["), items, Flat::text("]")]),
    ])
}

/// Returns the object without the constraints of its first properties, whose names stay taken.
fn without<'n>(object: &Object, names: impl IntoIterator<Item = &'n str>) -> Object {
    let names: Vec<&str> = names.into_iter().collect();
    let mut object = object.clone();
    for property in object
        .properties
        .iter_mut()
        .filter(|property| names.contains(&&*property.name))
    {
        property.ways.clear();
        property.required = false;
    }
    (object.min, object.max) = (0, None);
    object
}

/// Returns the object without its properties, none of which can be written: their names are excluded from the
/// other keys.
fn without_properties(object: &Object) -> Object {
    let mut object = object.clone();
    let names = object.properties.drain(..).map(|property| property.name);
    let names: Vec<Rc<str>> = names.collect();
    for class in &mut object.additional {
        match &mut class.key.only {
            Some(only) => *only = only.iter().filter(|key| !names.contains(key)).cloned().collect(),
            None => class.key.except.extend(names.iter().cloned()),
        }
    }
    object
}

/// Returns the texts of an object up to the end of a run of properties: with some of them, and with none if
/// that is allowed.
fn beginnings(run: &[(Flat, bool)], style: Style) -> Vec<(Flat, bool)> {
    let mut beginnings = Vec::new();
    if let Some(some) = some_of(run, style) {
        beginnings.push((Flat::seq(&[Flat::text("{"), some]), true));
    }
    if run.iter().all(|(_, required)| !required) {
        beginnings.push((Flat::text("{"), false));
    }
    beginnings
}

/// Returns whole keys that begin with a character of one of these buckets. The empty key belongs to the first
/// bucket.
fn in_buckets(buckets: &[&str]) -> Hir {
    let Some(&first) = buckets.first() else {
        return hir::never();
    };
    let beginnings = buckets
        .iter()
        .map(|bucket| regex::encode_json(&hir::own(bucket), Escapes::Canonical));
    let body = hir::concat([hir::any(beginnings), regex::json_string_body(Escapes::Canonical)]);
    let body = if first == BUCKETS[0] {
        hir::optional(body)
    } else {
        body
    };
    hir::concat([hir::text("\""), body, hir::text("\"")])
}
