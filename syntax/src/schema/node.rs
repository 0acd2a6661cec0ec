//! The keyword tree: a schema after reading, with every keyword in one typed form.
//!
//! A node is one schema of the source. Its keywords refer to other nodes by number, so the tree may be cyclic
//! through references, and nothing here recurses. Old spellings (draft 4's boolean `exclusiveMinimum`,
//! `items` with a list, `dependencies`) no longer occur: the reader converts them to the newest form.

use std::borrow::Cow;
use std::rc::Rc;

use foldhash::HashMap;

use super::decimal::Decimal;
use super::text::TextSet;

/// The index of a schema of the source.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct NodeId(pub(crate) u32);

impl NodeId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The index of a reference of the source in [`Tree::targets`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct RefId(pub(crate) u32);

/// The kinds of JSON values; `true` and `false` are separate kinds, so that a set of kinds can express a set
/// of booleans.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    Null,
    False,
    True,
    Number,
    String,
    Array,
    Object,
}

impl Kind {
    pub(crate) const ALL: [Kind; 7] = [
        Kind::Null,
        Kind::False,
        Kind::True,
        Kind::Number,
        Kind::String,
        Kind::Array,
        Kind::Object,
    ];
}

/// A set of kinds, one bit for each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Kinds(u8);

impl Kinds {
    pub(crate) const NONE: Kinds = Kinds(0);
    pub(crate) const ALL: Kinds = Kinds((1 << Kind::ALL.len()) - 1);

    pub(crate) fn has(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the kinds that are in both sets.
    pub(crate) fn and(self, other: Kinds) -> Kinds {
        Kinds(self.0 & other.0)
    }

    /// Returns the kinds that are in either set.
    pub(crate) fn or(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }

    /// Returns the kinds that are not in the set.
    pub(crate) fn others(self) -> Kinds {
        Kinds(!self.0 & Kinds::ALL.0)
    }
}

impl FromIterator<Kind> for Kinds {
    fn from_iter<I: IntoIterator<Item = Kind>>(kinds: I) -> Kinds {
        Kinds(kinds.into_iter().fold(0, |set, kind| set | 1 << kind as u8))
    }
}

/// A set of the seven types that `type` can name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Types(u8);

impl Types {
    pub(crate) const INTEGER: u8 = 1 << 7;

    /// Adds a type by its name; returns `false` if there is no such type.
    pub(crate) fn add(&mut self, name: &str) -> bool {
        self.0 |= match name {
            "null" => 1 << Kind::Null as u8,
            "boolean" => 1 << Kind::False as u8 | 1 << Kind::True as u8,
            "number" => 1 << Kind::Number as u8,
            "string" => 1 << Kind::String as u8,
            "array" => 1 << Kind::Array as u8,
            "object" => 1 << Kind::Object as u8,
            "integer" => Types::INTEGER,
            _ => return false,
        };
        true
    }

    /// Returns `true` if all values of a kind are in the set.
    pub(crate) fn has(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    /// Returns `true` if `integer` is in the set (`number` may or may not be).
    pub(crate) fn has_integers(self) -> bool {
        self.0 & Types::INTEGER != 0
    }

    /// Returns the set of exactly one kind.
    pub(crate) fn only(kind: Kind) -> Types {
        Types(1 << kind as u8)
    }
}

/// One keyword of a node.
#[derive(Clone, Debug)]
pub(crate) enum Keyword {
    /// The schema `false`.
    Never,
    /// `type`; `whole` defines an integer: by its value (since draft 6) or its spelling (draft 4).
    Type {
        types: Types,
        whole: Whole,
    },
    /// `enum` or `const`.
    Values(Rc<Values>),
    /// `$ref`.
    Ref(RefId),
    AllOf(Vec<NodeId>),
    AnyOf(Vec<NodeId>),
    OneOf(Vec<NodeId>),
    Not(NodeId),
    /// `if` with `then` and `else`, which are optional.
    If {
        condition: NodeId,
        then: Option<NodeId>,
        otherwise: Option<NodeId>,
    },
    Minimum {
        value: Decimal,
        exclusive: bool,
    },
    Maximum {
        value: Decimal,
        exclusive: bool,
    },
    MultipleOf(Decimal),
    MinLength(u64),
    MaxLength(u64),
    /// `pattern` or `format`: a set of strings.
    Text(TextSet),
    /// A `format` that is a union of such sets, which are disjoint.
    AnyText(Rc<[TextSet]>),
    /// `prefixItems` and `items`; `None` means no constraint.
    Items {
        prefix: Vec<NodeId>,
        additional: Option<NodeId>,
    },
    MinItems(u64),
    MaxItems(u64),
    Contains {
        item: NodeId,
        min: u64,
        max: Option<u64>,
        /// `true` if the items that satisfy it count as evaluated (since 2020-12).
        evaluates: bool,
    },
    UniqueItems,
    UnevaluatedItems(NodeId),
    /// `properties`, `patternProperties` and `additionalProperties`.
    Properties(Rc<KeyMap>),
    UnevaluatedProperties(NodeId),
    Required(Rc<[Rc<str>]>),
    MinProperties(u64),
    MaxProperties(u64),
    PropertyNames(NodeId),
    /// `dependentRequired`, `dependentSchemas`, `dependencies`.
    Dependent {
        key: Rc<str>,
        then: Dependency,
    },
}

impl Keyword {
    /// Returns `true` if the constraint depends on another part of the value.
    pub(crate) fn is_condition(&self) -> bool {
        matches!(self, Keyword::If { .. } | Keyword::Dependent { .. })
    }
}

/// The constraint that the presence of a property adds.
#[derive(Clone, Debug)]
pub(crate) enum Dependency {
    Keys(Rc<[Rc<str>]>),
    Schema(NodeId),
}

/// The meaning of `integer`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Whole {
    /// A number without a fractional part, including `1.0`.
    Value,
    /// A number written without a point and an exponent.
    Spelling,
}

/// A finite set of values, by kind. Arrays and objects are nodes that allow exactly that value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Values {
    pub(crate) null: bool,
    pub(crate) no: bool,
    pub(crate) yes: bool,
    pub(crate) numbers: Vec<Decimal>,
    pub(crate) strings: Vec<Rc<str>>,
    pub(crate) arrays: Vec<NodeId>,
    pub(crate) objects: Vec<NodeId>,
}

/// A map from keys to the schemas that their values must satisfy.
#[derive(Debug, Default)]
pub(crate) struct KeyMap {
    /// The keys with their own schemas, each once, in the order of the source.
    pub(crate) named: Vec<(Rc<str>, NodeId)>,
    pub(crate) index: HashMap<Rc<str>, NodeId>,
    pub(crate) patterns: Vec<(TextSet, NodeId)>,
    /// The schema for keys that are neither named nor matched; `None` means no constraint.
    pub(crate) additional: Option<NodeId>,
    /// The schema whose `properties` names the keys, if it has that keyword.
    pub(crate) listed_by: Option<NodeId>,
}

impl KeyMap {
    /// Returns some schema of the map, for messages.
    pub(crate) fn any_node(&self) -> Option<NodeId> {
        let named = self.named.first().map(|&(_, node)| node);
        named
            .or_else(|| self.patterns.first().map(|&(_, node)| node))
            .or(self.additional)
    }
}

/// Keywords with the names under which they are reported. They are shared, because they are read while the
/// tree grows.
pub(crate) type Keywords = Vec<(&'static str, Keyword)>;

/// One schema of the source.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) parent: Option<NodeId>,
    /// The part of the JSON pointer after the parent's pointer, such as `/properties/a`.
    pub(crate) segment: Box<str>,
    pub(crate) keywords: Rc<Keywords>,
}

/// All nodes of a source.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<Node>,
    /// The target of each reference, once resolved.
    pub(crate) targets: Vec<NodeId>,
}

impl Tree {
    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    pub(crate) fn target(&self, reference: RefId) -> NodeId {
        self.targets[reference.0 as usize]
    }

    /// Returns the schemas that apply to the same value as a node, and that constrain its parts if they hold.
    pub(crate) fn beside(&self, id: NodeId) -> Vec<NodeId> {
        let mut next = Vec::new();
        for (_, keyword) in self.node(id).keywords.iter() {
            match keyword {
                Keyword::Ref(reference) => next.push(self.target(*reference)),
                Keyword::AllOf(list) | Keyword::AnyOf(list) | Keyword::OneOf(list) => next.extend(list),
                Keyword::If {
                    condition,
                    then,
                    otherwise,
                } => {
                    next.push(*condition);
                    next.extend(then.iter().chain(otherwise));
                }
                Keyword::Dependent {
                    then: Dependency::Schema(child),
                    ..
                } => next.push(*child),
                _ => {}
            }
        }
        next
    }

    /// Returns the JSON pointer of a node.
    pub(crate) fn pointer(&self, id: NodeId) -> String {
        let mut parts = Vec::new();
        let mut at = Some(id);
        while let Some(here) = at {
            parts.push(&*self.node(here).segment);
            at = self.node(here).parent;
        }
        parts.reverse();
        parts.concat()
    }

    /// Returns the JSON pointer of a node, or of the nearest enclosing schema whose pointer has at most
    /// `most` bytes. Names are for people, and there may be as many as there are schemas.
    pub(crate) fn short_pointer(&self, id: NodeId, most: usize) -> String {
        let mut length = 0;
        let mut at = Some(id);
        while let Some(here) = at {
            length += self.node(here).segment.len();
            at = self.node(here).parent;
        }
        let mut short = id;
        while length > most {
            length -= self.node(short).segment.len();
            match self.node(short).parent {
                Some(parent) => short = parent,
                None => return String::new(),
            }
        }
        self.pointer(short)
    }

    /// Returns the JSON pointer of a keyword of a node.
    pub(crate) fn keyword_pointer(&self, id: NodeId, name: &str) -> String {
        format!("{}/{name}", self.pointer(id))
    }
}

/// Decodes a segment of a JSON pointer to a key.
pub(crate) fn plain_segment(segment: &str) -> Cow<'_, str> {
    match segment.contains('~') {
        true => segment.replace("~1", "/").replace("~0", "~").into(),
        false => segment.into(),
    }
}

/// Encodes a key as a segment of a JSON pointer.
pub(crate) fn escape_segment(key: &str) -> Cow<'_, str> {
    match key.contains(['~', '/']) {
        true => key.replace('~', "~0").replace('/', "~1").into(),
        false => key.into(),
    }
}
