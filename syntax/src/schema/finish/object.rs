//! Converts shapes of objects to sets of objects: the ways of each named key, and of each class of the
//! others.

use std::rc::Rc;

use crate::schema::forms::{AdditionalClass, Closing, MOST_WISHES, Object, Property};
use crate::schema::node::NodeId;
use crate::schema::normal::Algebra;
use crate::schema::options::AdditionalProperties;
use crate::schema::shape::{ObjectShape, ObjectStep};
use lexiform_automata::grammar::Meets;

use super::keys::Keys;
use super::ways::Wish;

/// The result of looking for a demand for some key that only a named key can meet.
enum Placed {
    Nothing,
    One,
}

impl Algebra<'_> {
    /// Returns the objects of a shape, or `None` if there are none.
    pub(crate) fn finish_object(&mut self, shape: &ObjectShape) -> Option<Object> {
        if shape.some.is_empty() {
            let keys = self.keys(shape);
            return self.with_ways(shape, keys);
        }
        let mut shape = shape.clone();
        let keys = loop {
            let keys = self.keys(&shape);
            match self.place_key(&mut shape, &keys)? {
                Placed::Nothing => break keys,
                Placed::One => {}
            }
        };
        if shape.some.len() > MOST_WISHES {
            self.dropped = true;
            return None;
        }
        self.with_ways(&shape, keys)
    }

    /// Meets a demand for some key that has only one candidate, a named key. Returns `None` if a demand has
    /// no candidate.
    fn place_key(&mut self, shape: &mut ObjectShape, keys: &Keys) -> Option<Placed> {
        for at in 0..shape.some.len() {
            let wanted = |meets: Meets| meets >> at & 1 == 1;
            let mut named = keys.named.iter().filter(|key| key.allowed && wanted(key.wanted));
            let (first, second) = (named.next(), named.next());
            let open = keys.classes.iter().any(|class| wanted(class.wanted));
            match (first, second, open) {
                (None, None, false) => return None,
                (Some(key), None, false) => {
                    let some = shape.some.remove(at);
                    let mut fits = shape.add(ObjectStep::Require(key.name.clone()));
                    if let Some(value) = some.value {
                        fits &= shape.add(ObjectStep::Value(key.name.clone(), value));
                    }
                    return fits.then_some(Placed::One);
                }
                _ => {}
            }
        }
        Some(Placed::Nothing)
    }

    fn with_ways(&mut self, shape: &ObjectShape, keys: Keys) -> Option<Object> {
        let wishes = |wanted: Meets| -> Vec<Wish> {
            let wished = shape.some.iter().enumerate();
            let wished = wished.filter(|(bit, _)| wanted >> bit & 1 == 1);
            let wish = wished.map(|(bit, some)| Wish {
                bit,
                literal: some.value,
                exact: false,
            });
            wish.collect()
        };
        let mut properties = Vec::with_capacity(keys.named.len());
        for key in keys.named {
            let required = shape.required.contains(&key.name);
            let ways = if key.allowed {
                self.ways(&key.literals, &wishes(key.wanted))
            } else {
                Vec::new()
            };
            if required && ways.is_empty() {
                return None;
            }
            properties.push(Property {
                name: key.name,
                ways,
                required,
            });
        }
        let lists = self.closing_lists(shape);
        let mut classes = keys.classes;
        if lists.is_some() {
            classes.sort_by_key(|class| !class.matched);
        }
        let (mut additional, mut matched) = (Vec::with_capacity(classes.len()), 0);
        for class in classes {
            let ways = self.ways(&class.literals, &wishes(class.wanted));
            if !ways.is_empty() {
                matched += usize::from(class.matched);
                additional.push(AdditionalClass { key: class.key, ways });
            }
        }
        let closing = lists.filter(|_| matched < additional.len());
        Some(Object {
            properties,
            additional,
            min: shape.min,
            max: shape.max,
            demands: shape.some.len(),
            closing: closing.map(|lists| Closing { lists, matched }),
        })
    }

    /// Returns the schemas whose `properties` close an object, if they are the only constraints on its set of
    /// keys.
    fn closing_lists(&self, shape: &ObjectShape) -> Option<Rc<[NodeId]>> {
        let says_more = !shape.names.is_empty() || shape.maps.iter().any(|map| map.additional.is_some());
        if self.additional_properties == AdditionalProperties::Specified || says_more {
            return None;
        }
        let lists: Rc<[NodeId]> = shape.maps.iter().filter_map(|map| map.listed_by).collect();
        (!lists.is_empty()).then_some(lists)
    }
}
