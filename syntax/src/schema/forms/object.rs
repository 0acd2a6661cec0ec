//! Sets of objects: named keys with goals, and disjoint classes of the other keys with goals.
//!
//! Several schemas may constrain one key: by its name, through patterns, or because it is "additional" to the
//! keys that they name. A finished object has, for every key, exactly one goal that is the conjunction of all
//! these constraints:
//!
//! ```text
//!   named keys        each by itself: the constraints of every map on it
//!   all other keys    split by which patterns match: {p, not q}, {p, q}, {not p, q}, {neither}
//! ```

use std::hash::{Hash as _, Hasher as _};
use std::rc::Rc;

use rustc_hash::FxHasher;

use crate::schema::node::NodeId;

use super::goal::GoalId;
use super::string::StringShape;
use super::way::{Way, bytes_of_ways};

/// A set of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) properties: Vec<Property>,
    /// Disjoint classes of the keys that are not properties.
    pub(crate) additional: Vec<AdditionalClass>,
    pub(crate) min: u64,
    pub(crate) max: Option<u64>,
    /// The number of demands for some key; ways record which of them they meet.
    pub(crate) demands: usize,
    /// The reason for closing it, if the options say so.
    pub(crate) closing: Option<Closing>,
}

/// The reason for closing a set of objects that lists its keys and does not mention others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Closing {
    /// The schemas whose `properties` list the keys.
    pub(crate) lists: Rc<[NodeId]>,
    /// The number of classes of the other keys, from the first one, that match a pattern of the schema. The
    /// schema does not mention the keys of the classes after them.
    pub(crate) matched: usize,
}

/// A key with its own goals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Property {
    pub(crate) name: Rc<str>,
    /// The ways of its value; empty if the key cannot be present.
    pub(crate) ways: Vec<Way>,
    pub(crate) required: bool,
}

/// A class of keys. It excludes the names of properties, although the shape does not say so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AdditionalClass {
    pub(crate) key: StringShape,
    pub(crate) ways: Vec<Way>,
}

impl Object {
    pub(crate) fn ways(&self) -> impl Iterator<Item = &Way> {
        let properties = self.properties.iter().flat_map(|property| &property.ways);
        properties.chain(self.additional.iter().flat_map(|class| &class.ways))
    }

    pub(crate) fn parts(&self) -> impl Iterator<Item = GoalId> {
        self.ways().map(|way| way.goal)
    }

    /// Returns the approximate number of bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        let properties = self
            .properties
            .iter()
            .map(|property| bytes_of_ways(&property.ways));
        let additional = self.additional.iter().map(|class| {
            let StringShape { texts, except, .. } = &class.key;
            bytes_of_ways(&class.ways) + size_of_val(&texts[..]) + size_of_val(&except[..])
        });
        size_of::<Object>()
            + size_of_val(&self.properties[..])
            + size_of_val(&self.additional[..])
            + properties.chain(additional).sum::<usize>()
    }

    /// Returns a hash that equal objects share, and different ones mostly do not. It does not read the names.
    pub(crate) fn sketch(&self) -> u64 {
        let mut hasher = FxHasher::default();
        (self.properties.len(), self.min, self.max).hash(&mut hasher);
        for property in &self.properties {
            property.required.hash(&mut hasher);
        }
        for way in self.ways() {
            (way.goal, way.meets).hash(&mut hasher);
        }
        hasher.finish()
    }
}
