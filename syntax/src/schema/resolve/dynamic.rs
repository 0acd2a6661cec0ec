//! Dynamic references: one schema whose meaning depends on the path that led to it.
//!
//! `$dynamicRef` and `$recursiveRef` look for the outermost resource on the path from the root that has an
//! anchor of their name. All that matters about a path is which resource each name is bound to, and a bound
//! name stays bound. So a schema is copied once for each such binding under which it can be reached, and in
//! the copies every reference is a plain one.
//!
//! ```text
//!   strict-tree ──$ref──► tree ──$dynamicRef #node──► ?          tree under {node: strict-tree}
//!                                                                tree under {node: tree}
//! ```
//!
//! Sources in which no dynamic anchor has the same name in several resources are left as they are.

use std::collections::BTreeMap;
use std::rc::Rc;

use foldhash::{HashMap, HashMapExt};

use crate::schema::node::{Dependency, KeyMap, Keyword, Keywords, Node, NodeId, RefId, Tree, Values};
use lexiform_automata::limits::{Account, Limits};

/// The anchors and references of the source that are needed to look up dynamic references.
#[derive(Debug, Default)]
pub(super) struct Anchors {
    /// The resource that each node belongs to.
    pub(super) resource: Vec<u32>,
    /// The dynamic anchors of each resource.
    pub(super) of: HashMap<u32, Vec<(Rc<str>, NodeId)>>,
    /// The references that are dynamic, with the name that they look for.
    pub(super) references: HashMap<RefId, Rc<str>>,
}

/// The node that each name is bound to.
type Binding = BTreeMap<Rc<str>, NodeId>;

/// A node under a binding.
type BoundNode = (NodeId, u32);

/// The approximate number of bytes of a name in a binding, and of a copied schema without its keywords.
const BINDING_BYTES: usize = 48;
const COPY_BYTES: usize = 240;

/// The most copies; there is a copy for every binding that can reach a node.
const MOST_NODES: usize = 200_000;

/// The most names of bindings that are examined, one by one.
const MOST_LOOKED_AT: usize = 8_000_000;

/// Copies the tree so that no reference is dynamic; returns `None` if that takes too many copies.
pub(super) fn resolve(
    tree: Tree,
    root: NodeId,
    anchors: &Anchors,
    limits: &Limits,
) -> Option<(Tree, NodeId)> {
    let mut copier = Copier {
        held: limits.cancel.account(),
        tree,
        anchors,
        copy: Tree::default(),
        copies: HashMap::new(),
        bindings: vec![Binding::new()],
        known: HashMap::from_iter([(Binding::new(), 0)]),
        open: Vec::new(),
        looked_at: 0,
    };
    let start = copier.enter(root, 0);
    let root = copier.copy_of(start, None);
    while let Some((place, id)) = copier.open.pop() {
        let too_many = copier.copy.nodes.len() > MOST_NODES || copier.looked_at > MOST_LOOKED_AT;
        if too_many || limits.cancel.is_asked() {
            return None;
        }
        let keywords = copier.tree.node(place.0).keywords.clone();
        let keywords = keywords.iter().cloned();
        let keywords: Keywords = keywords
            .map(|(name, keyword)| (name, copier.keyword(keyword, place, id)))
            .collect();
        copier.copy.nodes[id.index()].keywords = Rc::new(keywords);
    }
    Some((copier.copy, root))
}

struct Copier<'a> {
    tree: Tree,
    anchors: &'a Anchors,
    copy: Tree,
    copies: HashMap<BoundNode, NodeId>,
    bindings: Vec<Binding>,
    known: HashMap<Binding, u32>,
    open: Vec<(BoundNode, NodeId)>,
    /// The number of names of bindings that were examined.
    looked_at: usize,
    held: Account,
}

impl Copier<'_> {
    /// Returns the place of a node that is reached under a binding: the anchors of its resource are bound,
    /// unless their names are bound already.
    fn enter(&mut self, node: NodeId, binding: u32) -> BoundNode {
        let resource = self.anchors.resource[node.index()];
        let Some(own) = self.anchors.of.get(&resource) else {
            return (node, binding);
        };
        let names = self.bindings[binding as usize].len() + own.len();
        self.looked_at += names;
        let mut bound = self.bindings[binding as usize].clone();
        for (name, anchor) in own {
            bound.entry(name.clone()).or_insert(*anchor);
        }
        let next = self.bindings.len() as u32;
        if let Some(&known) = self.known.get(&bound) {
            return (node, known);
        }
        // Stored twice, as a binding and as a key of the table.
        if !self.held.grow(2 * names * BINDING_BYTES) {
            return (node, binding);
        }
        self.known.insert(bound.clone(), next);
        self.bindings.push(bound);
        (node, next)
    }

    fn copy_of(&mut self, place: BoundNode, parent: Option<NodeId>) -> NodeId {
        if let Some(&known) = self.copies.get(&place) {
            return known;
        }
        let keywords = self.tree.node(place.0).keywords.len();
        self.held
            .grow(COPY_BYTES + keywords * 2 * size_of::<(&str, Keyword)>());
        let id = NodeId(self.copy.nodes.len() as u32);
        let segment = match parent {
            Some(_) => self.tree.node(place.0).segment.clone(),
            // It is reached by a reference: the pointer is the one of the source.
            None => self.tree.pointer(place.0).into(),
        };
        self.copy.nodes.push(Node {
            parent,
            segment,
            keywords: Rc::default(),
        });
        self.copies.insert(place, id);
        self.open.push((place, id));
        id
    }

    fn reference(&mut self, reference: RefId, binding: u32) -> RefId {
        let mut target = self.tree.target(reference);
        if let Some(name) = self.anchors.references.get(&reference)
            && let Some(&bound) = self.bindings[binding as usize].get(name)
        {
            target = bound;
        }
        let place = self.enter(target, binding);
        let id = RefId(self.copy.targets.len() as u32);
        let copy = self.copy_of(place, None);
        self.copy.targets.push(copy);
        id
    }

    fn keyword(&mut self, keyword: Keyword, (_, binding): BoundNode, parent: NodeId) -> Keyword {
        if let Keyword::Properties(keys) = &keyword {
            self.held.grow(keys.named.len() * 2 * BINDING_BYTES);
        }
        if let Keyword::Ref(reference) = keyword {
            return Keyword::Ref(self.reference(reference, binding));
        }
        keyword.with_children(&mut |child| {
            let place = self.enter(child, binding);
            self.copy_of(place, Some(parent))
        })
    }
}

impl Keyword {
    /// Returns the keyword with its schemas mapped to others.
    fn with_children(self, map: &mut impl FnMut(NodeId) -> NodeId) -> Keyword {
        let list =
            |nodes: Vec<NodeId>, map: &mut dyn FnMut(NodeId) -> NodeId| nodes.into_iter().map(map).collect();
        match self {
            Keyword::AllOf(nodes) => Keyword::AllOf(list(nodes, map)),
            Keyword::AnyOf(nodes) => Keyword::AnyOf(list(nodes, map)),
            Keyword::OneOf(nodes) => Keyword::OneOf(list(nodes, map)),
            Keyword::Not(node) => Keyword::Not(map(node)),
            Keyword::If {
                condition,
                then,
                otherwise,
            } => Keyword::If {
                condition: map(condition),
                then: then.map(&mut *map),
                otherwise: otherwise.map(&mut *map),
            },
            Keyword::Items { prefix, additional } => Keyword::Items {
                prefix: list(prefix, map),
                additional: additional.map(&mut *map),
            },
            Keyword::Contains {
                item,
                min,
                max,
                evaluates,
            } => Keyword::Contains {
                item: map(item),
                min,
                max,
                evaluates,
            },
            Keyword::UnevaluatedItems(node) => Keyword::UnevaluatedItems(map(node)),
            Keyword::UnevaluatedProperties(node) => Keyword::UnevaluatedProperties(map(node)),
            Keyword::PropertyNames(node) => Keyword::PropertyNames(map(node)),
            Keyword::Properties(keys) => Keyword::Properties(Rc::new(keys.with_children(map))),
            Keyword::Dependent {
                key,
                then: Dependency::Schema(node),
            } => Keyword::Dependent {
                key,
                then: Dependency::Schema(map(node)),
            },
            Keyword::Values(values) => {
                let Values { arrays, objects, .. } = &*values;
                let (arrays, objects) = (list(arrays.clone(), map), list(objects.clone(), map));
                Keyword::Values(Rc::new(Values {
                    arrays,
                    objects,
                    ..(*values).clone()
                }))
            }
            other => other,
        }
    }
}

impl KeyMap {
    fn with_children(&self, map: &mut impl FnMut(NodeId) -> NodeId) -> KeyMap {
        let named: Vec<(Rc<str>, NodeId)> = (self.named.iter())
            .map(|(name, node)| (name.clone(), map(*node)))
            .collect();
        KeyMap {
            index: named.iter().cloned().collect(),
            named,
            patterns: (self.patterns.iter())
                .map(|(set, node)| (set.clone(), map(*node)))
                .collect(),
            additional: self.additional.map(map),
            listed_by: self.listed_by,
        }
    }
}
