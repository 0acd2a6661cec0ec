//! The children of the nodes of a trie, stored contiguously.
//!
//! In depth-first order, the next sibling of a node comes after its whole subtree, so scanning a hundred
//! siblings touches a hundred places in memory. Here the bytes of siblings are adjacent, and only the nodes
//! that are entered are touched.

use super::node::Node;

/// The bytes and the nodes of the children of the root and of each node.
#[derive(Clone, Debug)]
pub(super) struct Children {
    /// The children of the root are `0..first[0]`, the children of node `i` are `first[i]..first[i + 1]`.
    first: Box<[u32]>,
    bytes: Box<[u8]>,
    nodes: Box<[u32]>,
}

impl Children {
    /// Builds the lists of children. O(nodes).
    pub(super) fn new(nodes: &[Node]) -> Children {
        let mut children = Children {
            first: vec![0; nodes.len() + 1].into(),
            bytes: vec![0; nodes.len()].into(),
            nodes: vec![0; nodes.len()].into(),
        };
        let mut filled = children.fill(nodes, 0..nodes.len(), 0);
        for (at, node) in nodes.iter().enumerate() {
            children.first[at] = filled;
            filled = children.fill(nodes, at + 1..node.end as usize, filled);
        }
        children.first[nodes.len()] = filled;
        children
    }

    /// Stores the siblings that make up a range; returns the place for the next ones.
    fn fill(&mut self, nodes: &[Node], range: std::ops::Range<usize>, mut filled: u32) -> u32 {
        let mut at = range.start;
        while at < range.end {
            self.bytes[filled as usize] = nodes[at].byte;
            self.nodes[filled as usize] = at as u32;
            filled += 1;
            at = nodes[at].end as usize;
        }
        filled
    }

    /// Returns the places of the children of a node, or of the root.
    pub(super) fn of(&self, node: Option<usize>) -> std::ops::Range<u32> {
        match node {
            None => 0..self.first[0],
            Some(node) => self.first[node]..self.first[node + 1],
        }
    }

    /// Returns the child of a node, or of the root, on the edge with this byte. O(log children).
    pub(super) fn find(&self, node: Option<usize>, byte: u8) -> Option<usize> {
        self.among(self.of(node), byte).map(|node| node as usize)
    }

    /// Returns the one of these children on the edge with this byte. O(log children).
    #[inline]
    pub(super) fn among(&self, places: std::ops::Range<u32>, byte: u8) -> Option<u32> {
        let bytes = &self.bytes[places.start as usize..places.end as usize];
        let place = bytes.binary_search(&byte).ok()?;
        Some(self.nodes[places.start as usize + place])
    }

    /// Returns the byte and the node at a place.
    #[inline]
    pub(super) fn at(&self, place: u32) -> (u8, u32) {
        (self.bytes[place as usize], self.nodes[place as usize])
    }
}
