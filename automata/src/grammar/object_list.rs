//! Lists of items with counts and order: the properties of an object, the items of an array.

use super::ids::{ExprId, RegularId};

/// A list of items separated by a separator, with counts and order kept in a register instead of in states.
///
/// The words are `item (separator item)*`, or nothing if no item is required, such that every property is
/// used at most once (exactly once if required), each additional item any number of times, the number of all
/// items is in `min..=max`, and for each demand the number of items that meet it is within its bounds.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ObjectList {
    /// Items that may be used once each.
    pub properties: Vec<Property>,
    /// Items that may be used any number of times.
    pub additional: Vec<Additional>,
    /// Keys that no additional item may have, such as the keys of properties, in order. A few of them cost
    /// less here than as a complement in the language of every key.
    pub taken: Vec<Box<[u8]>>,
    /// The text between two items (for instance `,` and white space).
    pub separator: ExprId,
    /// The order of the properties among each other and relative to the additional items.
    pub order: ItemOrder,
    /// The smallest number of items, properties and additional items together.
    pub min: u64,
    /// The largest number of items; `None` if unbounded.
    pub max: Option<u64>,
    /// Bounds on how many items have something in common, such as "the key begins with x"; at most 31 of
    /// them.
    pub demands: Vec<Demand>,
}

/// A demand of an [`ObjectList`]: how many of its items must meet it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Demand {
    /// The smallest number of items.
    pub min: u64,
    /// The largest number of items; `None` if unbounded.
    pub max: Option<u64>,
}

/// The set of demands that an item meets, one bit for each, by index in [`ObjectList::demands`].
pub type Meets = u32;

/// An item of an [`ObjectList`] that may be used once.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Property {
    /// The ways to write the property. Ways may overlap; a text then meets the demands of every way that
    /// matches it.
    pub ways: Vec<Way>,
    /// `true` if the property must be used.
    pub required: bool,
}

impl Property {
    /// Creates a property with one way to write it, which meets no demand.
    pub fn new(item: ExprId, required: bool) -> Property {
        let ways = vec![Way { item, meets: 0 }];
        Property { ways, required }
    }
}

/// One way to write a [`Property`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Way {
    /// The text to write (for an object: key, colon, value).
    pub item: ExprId,
    /// The demands that this way meets.
    pub meets: Meets,
}

/// An item of an [`ObjectList`] that may be used any number of times. Several may have the same key or item
/// and meet different demands.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Additional {
    /// The name of one use of the item: for an object, the whole encoded key, quotes included. If there is
    /// one, no two uses in one object list may have the same bytes here.
    pub key: Option<RegularId>,
    /// The text to write (after the key, if there is one).
    pub item: ExprId,
    /// The demands that the item meets.
    pub meets: Meets,
}

/// The order of the items of an [`ObjectList`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ItemOrder {
    /// Properties as listed, then the additional items. Optional properties may be left out.
    Listed,
    /// Properties and additional items in any order.
    Any,
    /// Properties as listed, none left out while the object list continues, then the additional items: the
    /// items of a tuple.
    Leading,
}
