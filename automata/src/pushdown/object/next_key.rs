//! The properties of an object list, read together as long as they have a common prefix.
//!
//! An object with a thousand properties may continue with a thousand keys. Following each separately would
//! cost a thousand frames for every set of remaining keys, and a thousand look-ups for every byte. So one
//! automaton, which depends on the object list alone, reads the properties until a single one is left or its
//! rule does more than read bytes; from there on the rule of the property reads itself.
//!
//! ```text
//!   "name" "namespace" "id"        ○ ─"─► ○ ─n─► ○ ─a─► ○ ─m─► ○ ─e─► ○ ─"─► ● name
//!                                         │                           └──s─► ● namespace
//!                                         └──i─► ● id
//! ```
//!
//! Which properties may still be written depends on the progress: a branch is open as long as one of its
//! properties is. A [`Permit`] describes the open properties in a few numbers.

use rustc_hash::{FxHashMap, FxHashSet};

use super::progress::Progress;
use crate::grammar::Meets;
use crate::language::ByteSet;
use crate::pushdown::plan::nfa::{Label, Nfa};
use crate::work::spend;

/// The automaton of the properties of one object list. Its first node is the start.
#[derive(Debug)]
pub(crate) struct NextKeyAutomaton {
    pub(super) ways: Box<[Way]>,
    pub(super) nodes: Vec<Node>,
}

/// One way to write a property.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) property: u32,
    pub(crate) rule: u32,
    pub(crate) meets: Meets,
}

/// A way, and the current node of its rule.
type Stand = (u32, u32);

#[derive(Debug)]
pub(super) struct Node {
    /// The ways with this prefix, in order.
    pub(super) stands: Box<[Stand]>,
    /// The ways that their own rules read from here on.
    pub(super) own: Box<[Stand]>,
    /// The targets of the bytes that the other ways read, as ranges in order.
    pub(super) edges: Vec<(u8, u8, u32)>,
    bytes: ByteSet,
}

/// The properties of an object list that may come next: the unwritten ones from `first` to `end` that are
/// required or optional as the flags allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Permit {
    pub(super) first: u32,
    pub(super) end: u32,
    pub(super) required: bool,
    pub(super) optional: bool,
}

/// The state of a next key: the object list with its progress and permit, and the node of the automaton.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NextKeyState {
    pub(crate) object_list: u32,
    pub(crate) progress: Progress,
    pub(crate) permit: Permit,
    pub(crate) node: u32,
}

/// The maximum average number of nodes per way for which stands are stored; longer texts are read by the
/// rules themselves.
const MOST_STAND_NODES: usize = 64;

impl NextKeyAutomaton {
    /// Builds the automaton. O(stands), of which there is at most a constant number for each way.
    pub(crate) fn new(nfa: &Nfa, object_list: u32) -> NextKeyAutomaton {
        let properties = nfa.object_lists[object_list as usize]
            .properties
            .iter()
            .zip(0u32..);
        let ways = properties.flat_map(|(property, index)| {
            let way = move |&(rule, meets): &(u32, Meets)| Way {
                property: index,
                rule,
                meets,
            };
            property.ways.iter().map(way)
        });
        let ways: Box<[Way]> = ways.collect();
        let start = ways.iter().zip(0u32..);
        let start: Vec<Stand> = start
            .map(|(way, index)| (index, nfa.rules[way.rule as usize].start))
            .collect();
        let mut known = FxHashMap::from_iter([(start.clone(), 0)]);
        let mut found = vec![start];
        let (mut nodes, mut room) = (Vec::new(), ways.len() * MOST_STAND_NODES);
        while let Some(stands) = found.get(nodes.len()).cloned() {
            spend(stands.len());
            room = room.saturating_sub(stands.len());
            nodes.push(Node::new(nfa, stands, room > 0, |stands| {
                *known.entry(stands).or_insert_with_key(|stands| {
                    found.push(stands.clone());
                    found.len() as u32 - 1
                })
            }));
        }
        NextKeyAutomaton { ways, nodes }
    }

    /// Returns the byte with which all properties begin, if they are read together.
    pub(crate) fn opening(&self) -> Option<u8> {
        let start = self.nodes.first()?;
        match start.edges[..] {
            [(first, last, _)] if first == last && start.own.is_empty() => Some(first),
            _ => None,
        }
    }

    /// Returns the properties that continue after their opening byte with one of these bytes, or that may do
    /// so.
    pub(crate) fn properties_after(&self, opening: u8, bytes: &ByteSet) -> FxHashSet<u32> {
        let Some(node) = self.nodes[0].next(opening) else {
            return FxHashSet::default();
        };
        let node = &self.nodes[node as usize];
        let reached = node.edges.iter();
        let reached = reached.filter(|&&(first, last, _)| (first..=last).any(|byte| bytes.contains(byte)));
        let stands = reached.flat_map(|&(.., next)| &self.nodes[next as usize].stands);
        let stands = stands.chain(&node.own);
        stands.map(|&(way, _)| self.ways[way as usize].property).collect()
    }

    /// Returns the bytes with which some property continues at a node.
    pub(crate) fn bytes(&self, node: u32) -> &ByteSet {
        &self.nodes[node as usize].bytes
    }
}

impl Node {
    /// Creates the node of these stands; `number` returns the numbers of its successors.
    fn new(nfa: &Nfa, stands: Vec<Stand>, reads_on: bool, mut number: impl FnMut(Vec<Stand>) -> u32) -> Node {
        let is_plain = |&(_, node): &Stand| {
            let edges = &nfa.nodes[node as usize];
            !edges.is_empty() && edges.iter().all(|edge| matches!(edge.label, Label::Bytes(..)))
        };
        let reads_on = reads_on && stands.len() > 1;
        let (plain, own): (Vec<Stand>, Vec<Stand>) =
            stands.iter().partition(|stand| reads_on && is_plain(stand));
        let mut edges = Vec::new();
        let mut bytes = ByteSet::default();
        for (first, last) in nfa.byte_ranges(plain.iter().map(|&(_, node)| node)) {
            let next: Vec<Stand> = plain.iter().flat_map(|&stand| next(nfa, stand, first)).collect();
            if !next.is_empty() {
                bytes.insert_range(first, last);
                edges.push((first, last, number(next)));
            }
        }
        Node {
            stands: stands.into(),
            own: own.into(),
            edges,
            bytes,
        }
    }

    pub(super) fn next(&self, byte: u8) -> Option<u32> {
        let at = self.edges.partition_point(|&(_, last, _)| last < byte);
        let &(first, _, next) = self.edges.get(at)?;
        (first <= byte).then_some(next)
    }
}

/// Returns the stands after a byte; a rule with two successors has two stands.
fn next(nfa: &Nfa, (way, node): Stand, byte: u8) -> impl Iterator<Item = Stand> + '_ {
    let covers = move |label| matches!(label, Label::Bytes(first, last) if first <= byte && byte <= last);
    let edges = nfa.nodes[node as usize].iter();
    edges
        .filter(move |edge| covers(edge.label))
        .map(move |edge| (way, edge.to))
}
