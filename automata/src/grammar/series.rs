//! Lists of items with counts and order: the members of an object, the items of an array.

use super::ids::{ExprId, RegularId};

/// A list of items separated by a separator, with counts and order kept in a register instead of in states.
///
/// The words are `item (separator item)*` — or nothing, where no item is required — such that every member is
/// used at most once (exactly once where required), the `rest` any number of times, the number of all items
/// lies in `min..=max`, and so does the number of the items that meet each demand.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Series {
    /// Items that may be used once each.
    pub members: Vec<Member>,
    /// Items that may be used any number of times.
    pub rest: Vec<Rest>,
    /// Keys that no item of the rest may have, such as those of members, in order. Few of them cost less here
    /// than as a complement in the language of every key.
    pub taken: Vec<Box<[u8]>>,
    /// What stands between two items (for instance `,` and white space).
    pub separator: ExprId,
    /// How members are ordered among each other and among the rest.
    pub order: SeriesOrder,
    /// The least number of items, members and rest together.
    pub min: u64,
    /// The greatest number of items; `None` is no bound.
    pub max: Option<u64>,
    /// How many items must meet something, such as "be a key that begins with x"; at most 31 of them.
    pub demands: Vec<Demand>,
}

/// A demand of a [`Series`]: how many of its items must meet it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Demand {
    /// The least number of items.
    pub min: u64,
    /// The greatest number of items; `None` is no bound.
    pub max: Option<u64>,
}

/// The demands that an item meets, a bit for each by its place in [`Series::demands`].
pub type Meets = u32;

/// An item of a [`Series`] that may be used once.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Member {
    /// The ways to write it. Ways may overlap; a text then meets what any of its ways does.
    pub ways: Vec<Way>,
    /// Whether it must be used.
    pub required: bool,
}

impl Member {
    /// A member with one way to write it, which meets no demand.
    pub fn new(item: ExprId, required: bool) -> Member {
        let ways = vec![Way { item, meets: 0 }];
        Member { ways, required }
    }
}

/// One way to write a [`Member`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Way {
    /// What is written (for an object: key, colon, value).
    pub item: ExprId,
    /// Which demands are met by that.
    pub meets: Meets,
}

/// An item of a [`Series`] that may be used any number of times. Several may have the same key or item and
/// meet different demands.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Rest {
    /// What names this use of the item: the whole encoded key of an object, quotes included. Where it is
    /// given, no two uses in one series may have the same bytes here.
    pub key: Option<RegularId>,
    /// What is written (behind the key, if there is one).
    pub item: ExprId,
    /// Which demands are met by that.
    pub meets: Meets,
}

/// The order of the items of a [`Series`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SeriesOrder {
    /// Members as listed, then the rest. An optional member may be left out.
    Listed,
    /// Any order.
    Any,
    /// Members as listed and none left out as long as the series goes on, then the rest: the items of a
    /// tuple.
    Leading,
}
