//! Lowers objects.

use std::rc::Rc;

use crate::regex::Escapes;
use crate::schema::forms::{GoalId, Object, Property, Way};
use crate::schema::options::KeyOrder;
use lexiform_automata::grammar::{self, Additional, Demand, ExprId, ItemOrder, ObjectList};

use super::writer::Writer;

/// The most names that are excluded from the other keys at run time rather than by an automaton.
const MOST_TAKEN: usize = 300;

impl Writer<'_> {
    /// Returns the expression for the texts of a set of objects.
    pub(super) fn object(&mut self, object: &Object, goal: GoalId) -> ExprId {
        let open = self.builder.bytes("{");
        let body = self.object_body(object, goal);
        self.builder.seq([open, body])
    }

    /// Returns the text of an object after its opening bracket.
    pub(super) fn object_body(&mut self, object: &Object, goal: GoalId) -> ExprId {
        let close = self.builder.bytes("}");
        let mut ways = Vec::new();
        if may_be_empty(object) {
            ways.push(close);
        }
        if let Some(entries) = self.entries(object, goal) {
            ways.push(
                self.builder
                    .seq([self.space.edge, entries, self.space.edge, close]),
            );
        }
        self.builder.choice(ways)
    }

    /// Returns the text of an object after some of its keys, or none of them, have been written; `object` is
    /// the rest of it.
    pub(super) fn object_tail(&mut self, object: &Object, goal: GoalId, some: bool) -> ExprId {
        if !some {
            return self.object_body(object, goal);
        }
        let close = self.builder.bytes("}");
        let mut ways = Vec::new();
        if may_be_empty(object) {
            ways.push(self.builder.seq([self.space.edge, close]));
        }
        if let Some(entries) = self.entries(object, goal) {
            let parts = [self.space.comma, entries, self.space.edge, close];
            ways.push(self.builder.seq(parts));
        }
        self.builder.choice(ways)
    }

    /// Returns one or more keys with their values, or `None` if there can be no key, or if a required key
    /// cannot be present.
    fn entries(&mut self, object: &Object, goal: GoalId) -> Option<ExprId> {
        let mut properties = Vec::new();
        for property in &object.properties {
            let ways = self.property_ways(property);
            if !ways.is_empty() {
                let required = property.required;
                properties.push(grammar::Property { ways, required });
            } else if property.required {
                return None;
            }
        }
        let others = self.additional(object, goal);
        self.some_of(object, properties, others, self.space.comma)
    }

    /// Returns a list of one or more properties and additional items of an object, or `None` if there cannot
    /// be as many as the object needs.
    pub(super) fn some_of(
        &mut self,
        object: &Object,
        properties: Vec<grammar::Property>,
        (additional, taken): (Vec<Additional>, Vec<Box<[u8]>>),
        separator: ExprId,
    ) -> Option<ExprId> {
        let (min, max) = (object.min.max(1), object.max);
        let enough = !additional.is_empty() || properties.len() as u64 >= min;
        if !enough || max.is_some_and(|max| max < min) {
            return None;
        }
        let order = match self.options.key_order {
            KeyOrder::Schema => ItemOrder::Listed,
            KeyOrder::Any => ItemOrder::Any,
        };
        Some(self.builder.object_list(ObjectList {
            properties,
            additional,
            taken,
            separator,
            order,
            min,
            max,
            demands: vec![Demand { min: 1, max: None }; object.demands],
        }))
    }

    fn property_ways(&mut self, property: &Property) -> Vec<grammar::Way> {
        let forms = self.forms;
        let mut ways = Vec::new();
        for way in property.ways.iter().filter(|way| forms.is_live(way.goal)) {
            let (key, value) = (self.name_of(property), self.goal(way.goal));
            ways.push(grammar::Way {
                item: self.builder.seq([key, value]),
                meets: way.meets,
            });
        }
        ways
    }

    /// Returns the text before the value of a property. It is cached, because schemas repeat the same names.
    fn name_of(&mut self, property: &Property) -> ExprId {
        if let Some(&known) = self.names.get(&property.name) {
            return known;
        }
        let (key, colon) = (self.literal(&property.name), self.space.colon);
        let name = self.builder.seq([key, colon]);
        self.names.insert(property.name.clone(), name);
        name
    }

    /// Returns the keys that are not properties, and the names that are excluded from them at run time.
    pub(super) fn additional(&mut self, object: &Object, goal: GoalId) -> (Vec<Additional>, Vec<Box<[u8]>>) {
        let (forms, colon) = (self.forms, self.space.colon);
        // Most objects have only named keys, so there is nothing to exclude.
        let any = object.additional.iter().any(|class| class.key.is_any());
        let taken = any.then(|| self.taken(object)).flatten();
        let mut additional = Vec::new();
        for class in &object.additional {
            let live = class.ways.iter().filter(|way| forms.is_live(way.goal));
            let ways: Vec<Way> = live.copied().collect();
            if self.is_over() {
                break;
            }
            if ways.is_empty() {
                continue;
            }
            // Every object with open keys then shares one language of keys.
            let outside = taken.is_some() && class.key.is_any();
            let names = object.properties.iter().map(|property| &property.name);
            let near: Vec<Rc<str>> = names
                .filter(|name| !outside && self.may_be_in(&class.key, name))
                .cloned()
                .collect();
            let key = Some(self.key(&class.key, &near, goal));
            for way in ways {
                let value = self.goal(way.goal);
                additional.push(Additional {
                    key,
                    item: self.builder.seq([colon, value]),
                    meets: way.meets,
                });
            }
        }
        (additional, taken.unwrap_or_default())
    }

    /// Returns the literals of all property names, or `None` if there are too many, or if one has several
    /// spellings.
    fn taken(&self, object: &Object) -> Option<Vec<Box<[u8]>>> {
        if object.properties.len() > MOST_TAKEN {
            return None;
        }
        let names = object.properties.iter().map(|property| &property.name);
        names.map(|name| self.only_spelling(name)).collect()
    }

    /// Returns the literal of a name, if there is only one.
    fn only_spelling(&self, name: &str) -> Option<Box<[u8]>> {
        let minimal = self.escapes != Escapes::Any && !name.bytes().any(|byte| byte < 0x20);
        if !minimal {
            return None;
        }
        let plain = !name.bytes().any(|byte| byte == b'"' || byte == b'\\');
        let text = match plain {
            true => ["\"", name, "\""].concat(),
            false => serde_json::Value::from(name).to_string(),
        };
        Some(text.into_bytes().into())
    }

    /// Checks whether a name could belong to a class of keys and must be excluded from it.
    fn may_be_in(&self, key: &crate::schema::forms::StringShape, name: &str) -> bool {
        key.texts.iter().all(|&(text, sign)| {
            self.forms
                .texts
                .contains(text, name)
                .is_none_or(|within| within == sign)
        })
    }
}

pub(super) fn may_be_empty(object: &Object) -> bool {
    object.min == 0 && object.demands == 0 && !object.properties.iter().any(|property| property.required)
}
