//! The atoms of the algebra: the demands of one keyword, affirmed or denied, on one kind of value.

use std::rc::Rc;

use crate::schema::decimal::Decimal;
use crate::schema::forms::Literal;
use crate::schema::node::{KeyMap, NodeId};
use crate::schema::text::{TextId, TextSet};
use lexiform_automata::grammar::Demand;

/// One demand on a value.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Another schema holds, or does not.
    Literal(Literal),
    Number(NumberStep),
    String(StringStep),
    Array(ArrayStep),
    Object(ObjectStep),
}

impl Step {
    /// Returns the key whose value the demand constrains, if it constrains the value of a single key.
    pub(crate) fn value_of(&self) -> Option<Rc<str>> {
        match self {
            Step::Object(ObjectStep::Value(name, _)) => Some(name.clone()),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum NumberStep {
    Lower {
        value: Decimal,
        exclusive: bool,
    },
    Upper {
        value: Decimal,
        exclusive: bool,
    },
    Multiple(Decimal),
    NotMultiple(Decimal),
    Among(Rc<[Decimal]>),
    NotAmong(Rc<[Decimal]>),
    /// Written without a point and an exponent (`true`), or with at least one of them (`false`).
    Spelled(bool),
}

#[derive(Clone, Debug)]
pub(crate) enum StringStep {
    Min(u64),
    Max(u64),
    Text(TextId, bool),
    Among(Rc<[Rc<str>]>),
    NotAmong(Rc<[Rc<str>]>),
}

#[derive(Clone, Debug)]
pub(crate) enum ArrayStep {
    Min(u64),
    Max(u64),
    /// Each item satisfies the schema of its place.
    Items {
        prefix: Rc<[NodeId]>,
        additional: Option<NodeId>,
    },
    /// There is an item at this place, and it satisfies this literal.
    At(usize, Literal),
    /// Of the items from a place on, between `min` and `max` satisfy a literal.
    Some(SomeItems),
    Unique(NodeId),
    NotUnique(NodeId),
}

/// A demand on how many items satisfy something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SomeItems {
    pub(crate) literal: Literal,
    pub(crate) from: usize,
    pub(crate) min: u64,
    pub(crate) max: Option<u64>,
    /// The keyword that it comes from, for messages.
    pub(crate) source: (NodeId, &'static str),
}

impl SomeItems {
    pub(crate) fn count(&self) -> Demand {
        let (min, max) = (self.min, self.max);
        Demand { min, max }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum ObjectStep {
    Min(u64),
    Max(u64),
    /// Each value satisfies the schema of its key.
    Keys(Rc<KeyMap>),
    Require(Rc<str>),
    Absent(Rc<str>),
    /// If the key is present, its value satisfies this literal.
    Value(Rc<str>, Literal),
    /// Every key satisfies this literal, as a string.
    Names(Literal),
    /// Some key of a class has a value that satisfies a literal.
    Some(SomeKey),
}

/// A demand that some key is present.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SomeKey {
    pub(crate) class: KeyClass,
    /// The literal that its value satisfies.
    pub(crate) value: Option<Literal>,
    pub(crate) source: (NodeId, &'static str),
}

/// A class of keys.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum KeyClass {
    /// Keys that belong to a text set.
    Text(TextSet),
    /// Keys that a map neither names nor matches.
    Other(MapRef),
    /// Keys that, as strings, satisfy this literal.
    Names(Literal),
}

impl KeyClass {
    /// Returns the names that the class mentions one by one.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Rc<str>> {
        let map = match self {
            KeyClass::Other(MapRef(map)) => Some(map),
            _ => None,
        };
        map.into_iter()
            .flat_map(|map| map.named.iter().map(|(name, _)| name))
    }

    /// Returns the patterns that determine which keys are in the class.
    pub(crate) fn patterns(&self) -> impl Iterator<Item = &TextSet> {
        let (text, map) = match self {
            KeyClass::Text(set) => (Some(set), None),
            KeyClass::Other(MapRef(map)) => (None, Some(map)),
            KeyClass::Names(_) => (None, None),
        };
        let mapped = map
            .into_iter()
            .flat_map(|map| map.patterns.iter().map(|(set, _)| set));
        text.into_iter().chain(mapped)
    }
}

/// A key map, compared by identity.
#[derive(Clone, Debug)]
pub(crate) struct MapRef(pub(crate) Rc<KeyMap>);

impl PartialEq for MapRef {
    fn eq(&self, other: &MapRef) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}
